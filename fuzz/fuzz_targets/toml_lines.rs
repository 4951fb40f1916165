//! Scenarios, studies and link files: whatever a text holds, it is refused or its keys stand on lines
//! that it has.

#![no_main]

use jostle_text::{Below, Place, places};
use libfuzzer_sys::fuzz_target;

fn check(place: &Place, lines: usize) {
    assert!(place.line == usize::MAX || (1..=lines).contains(&place.line));
    match &place.below {
        Below::Nothing => {}
        Below::Table(keys) => keys.iter().for_each(|(_, place)| check(place, lines)),
        Below::List(elements) => elements.iter().for_each(|place| check(place, lines)),
    }
}

fuzz_target!(|text: &str| {
    let lines = text.matches('\n').count() + 1;
    if let Ok(found) = places(text) {
        found.iter().for_each(|(_, place)| check(place, lines));
    }
});
