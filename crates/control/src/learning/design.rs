//! What a learnt controller observes, how often it acts, and what its actions mean.

use jostle_units::Span;

use super::features::Feature;
use super::interval::Observed;

/// Length of an interval at least.
pub(super) const LEAST_INTERVAL: Span = Span::from_ms(1);
/// And at most.
pub(super) const LONGEST_INTERVAL: Span = Span::from_ms(10_000);
/// Actions of the longest kind.
pub const MOST_ACTIONS: usize = 2;

/// How long monitor intervals are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cadence {
    /// Always the same.
    Fixed(Span),
    /// So many mean RTTs of the interval before.
    Rtts(f64),
}

impl Cadence {
    /// Length of the interval after one with a mean RTT.
    pub fn next(self, rtt_mean_s: f64) -> Span {
        let length = match self {
            Self::Fixed(span) => span,
            Self::Rtts(rtts) => Span::from_secs_f64(rtts * rtt_mean_s),
        };
        length.clamp(LEAST_INTERVAL, LONGEST_INTERVAL)
    }
}

/// What the numbers of an action do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// One number a: the pacing rate is multiplied by 1 + scale × a, or divided by 1 − scale × a if
    /// a is negative (Aurora, equation 1); the window is twice that rate over the smoothed RTT.
    Rate {
        /// Scale.
        scale: f64,
    },
    /// One number a: the window is multiplied by 2^(scale × a).
    Window {
        /// Scale.
        scale: f64,
    },
    /// Two numbers: the binary logarithms of the window in packets and of the pacing rate in Mbit/s.
    Absolute,
    /// One number a: Cubic governs the window, which is multiplied by 4^a (Orca).
    Cubic,
}

impl Action {
    /// Least and largest value of each number.
    pub fn bounds(self) -> &'static [(f64, f64)] {
        match self {
            Self::Rate { .. } => &[(-10.0, 10.0)],
            Self::Window { .. } | Self::Cubic => &[(-1.0, 1.0)],
            Self::Absolute => &[(0.0, 20.0), (-7.0, 20.0)],
        }
    }
}

/// What a learnt controller is like, but for what it learnt.
#[derive(Clone)]
pub struct Design {
    /// What is observed of an interval.
    pub features: Vec<&'static Feature>,
    /// Intervals that are observed together.
    pub history: usize,
    /// How long they are.
    pub cadence: Cadence,
    /// What is done at the end of each.
    pub action: Action,
}

impl Design {
    /// Numbers in an observation.
    pub fn observation_len(&self) -> usize {
        self.features.len() * self.history
    }

    /// Length of the interval after `observed`.
    pub fn length_after(&self, observed: &Observed) -> Span {
        self.cadence.next(observed.rtt_mean_s)
    }
}
