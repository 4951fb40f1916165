//! The step of gradient ascent: confidence amplifier and dynamic change bound (NSDI 2018, §4.2).

/// Parameters of the rate change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    /// Rate change per unit of the utility's gradient, in bit/s (θ₀ of the paper).
    pub(super) conversion_bps: f64,
    /// Largest first change as a share of the rate (ω₀).
    pub(super) bound: f64,
    /// Increase of the bound each time a change in the same direction reaches it (δ).
    pub(super) bound_step: f64,
    /// Minimum change as a share of the rate: closer rates cannot be distinguished.
    pub(super) least: f64,
}

/// Confidence in the current direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Confidence {
    /// Consecutive changes in this direction.
    changes: u32,
    /// Consecutive changes that reached the bound.
    bounded: u32,
}

impl Confidence {
    /// Returns the change of the rate along `gradient`, in bit/s.
    pub(super) fn step(&mut self, steps: &Steps, rate_bps: f64, gradient: f64) -> f64 {
        self.changes = self.changes.saturating_add(1);
        let wanted = amplifier(self.changes) * steps.conversion_bps * gradient.abs();
        let bound = (steps.bound + f64::from(self.bounded) * steps.bound_step) * rate_bps;
        let size = if wanted > bound {
            self.bounded = self.bounded.saturating_add(1);
            bound
        } else {
            self.bounded = 0;
            wanted.max((steps.least * rate_bps).min(bound))
        };
        size.min(MAX_CHANGE * rate_bps).copysign(gradient)
    }
}

/// Limits a step to between half and 1½ of the rate, regardless of the bound.
const MAX_CHANGE: f64 = 0.5;

/// m(τ) of the paper: τ up to 3, then 2τ − 3.
fn amplifier(changes: u32) -> f64 {
    let changes = f64::from(changes);
    if changes <= 3.0 { changes } else { 2.0 * changes - 3.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: Steps = Steps { conversion_bps: 1e6, bound: 0.05, bound_step: 0.05, least: 0.02 };

    #[test]
    fn repeated_changes_grow_by_the_amplifier() {
        let mut confidence = Confidence::default();
        let steps = Steps { least: 0.0, ..STEPS };
        let taken: Vec<_> = (0..6).map(|_| confidence.step(&steps, 1e9, 1.0) / 1e6).collect();
        assert_eq!(taken, [1.0, 2.0, 3.0, 5.0, 7.0, 9.0]);
    }

    #[test]
    fn the_bound_widens_while_it_is_hit() {
        let mut confidence = Confidence::default();
        let shares: Vec<_> =
            (0..4).map(|_| (confidence.step(&STEPS, 10e6, -1000.0) / 1e5).round()).collect();
        assert_eq!(shares, [-5.0, -10.0, -15.0, -20.0], "percent of the rate");
        assert_eq!(confidence.step(&STEPS, 1e12, 1.0), 0.02e12);
        assert_eq!(confidence.bounded, 0, "a step within the bound narrows it again");
    }

    #[test]
    fn steps_are_at_least_two_percent_and_follow_the_sign() {
        assert_eq!(Confidence::default().step(&STEPS, 100e6, 0.1), 2e6);
        assert_eq!(Confidence::default().step(&STEPS, 100e6, -0.1), -2e6);
        assert_eq!(Confidence::default().step(&STEPS, 1e6, 1.0), 50e3, "5 % bound 1 Mbit/s");
    }
}
