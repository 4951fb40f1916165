//! A text is no RunSpec, or is refused, or runs and can be given up.

#![no_main]

use std::cell::Cell;

use jostle_metrics::Recorder;
use jostle_run_spec::RunSpec;
use libfuzzer_sys::fuzz_target;

/// Looks at whether to go on, after which a run is given up.
const LOOKS: u32 = 4;

fuzz_target!(|text: &str| {
    let Ok(spec) = RunSpec::from_json(text) else { return };
    let again = serde_json::to_string(&spec).expect("what was read can be written");
    assert_eq!(RunSpec::from_json(&again).ok().as_ref(), Some(&spec));
    let looks = Cell::new(0);
    let enough = || {
        looks.set(looks.get() + 1);
        looks.get() >= LOOKS
    };
    let mut recorder = Recorder::new(&spec);
    if jostle_sim::run(&spec, &mut recorder, &enough).is_ok() {
        recorder.finish();
    }
});
