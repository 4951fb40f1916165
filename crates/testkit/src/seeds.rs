//! Repetition of a test with several seeds.

use std::env;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Environment variable with the only seed to run.
pub const SEED_VARIABLE: &str = "JOSTLE_SEED";

/// Runs a test with each seed, also after one has failed, and reports the seeds that failed.
///
/// `JOSTLE_SEED=7 cargo test NAME` runs only seed 7, whether or not it is in `seeds`.
///
/// # Panics
/// If the test panicked with any seed, or the environment variable is not a number.
pub fn for_each_seed(seeds: Range<u64>, test: impl Fn(u64)) {
    let only = env::var(SEED_VARIABLE).ok().map(|text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{SEED_VARIABLE} cannot be \"{text}\": expected a seed"))
    });
    run(only.map_or(seeds, |seed: u64| seed..seed + 1), test);
}

fn run(seeds: Range<u64>, test: impl Fn(u64)) {
    let count = seeds.end.saturating_sub(seeds.start);
    let fails = |seed: &u64| catch_unwind(AssertUnwindSafe(|| test(*seed))).is_err();
    let failed: Vec<_> = seeds.filter(fails).map(|seed| seed.to_string()).collect();
    if let Some(first) = failed.first() {
        panic!(
            "failed with {} of {count} seeds: {}. To repeat one: {SEED_VARIABLE}={first}",
            failed.len(),
            failed.join(", "),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn every_seed_runs_and_the_failed_ones_are_reported() {
        let ran = RefCell::new(Vec::new());
        let test = |seed| {
            ran.borrow_mut().push(seed);
            assert!(seed % 2 == 0, "odd");
        };
        let panic = catch_unwind(AssertUnwindSafe(|| run(3..8, test))).unwrap_err();
        assert_eq!(*ran.borrow(), [3, 4, 5, 6, 7]);
        let text = panic.downcast_ref::<String>().unwrap();
        assert_eq!(text, "failed with 3 of 5 seeds: 3, 5, 7. To repeat one: JOSTLE_SEED=3");
    }
}
