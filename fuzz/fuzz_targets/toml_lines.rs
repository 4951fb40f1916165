//! Scenarios, studies and link files: whatever a text holds, it is refused or its keys stand on lines
//! that it has.

#![no_main]

use jostle_toml_lines::{Children, LinePosition, key_lines};
use libfuzzer_sys::fuzz_target;

fn check(place: &LinePosition, lines: usize) {
    assert!(place.line == usize::MAX || (1..=lines).contains(&place.line));
    match &place.below {
        Children::Nothing => {}
        Children::Table(keys) => keys.iter().for_each(|(_, place)| check(place, lines)),
        Children::List(elements) => elements.iter().for_each(|place| check(place, lines)),
    }
}

fuzz_target!(|text: &str| {
    let lines = text.matches('\n').count() + 1;
    if let Ok(found) = key_lines(text) {
        found.iter().for_each(|(_, place)| check(place, lines));
    }
});
