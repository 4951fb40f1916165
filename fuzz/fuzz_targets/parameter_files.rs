//! Files that are parameters of algorithms, such as Remy's tables: each is refused or makes a
//! controller that answers.

#![no_main]

use jostle_controllers::registry::CONTROLLERS;
use jostle_registry::ParameterType;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    for row in CONTROLLERS {
        for parameter in row.entry.parameters {
            if let ParameterType::File { check, .. } = parameter.kind {
                let _ = check(file);
            }
        }
    }
});
