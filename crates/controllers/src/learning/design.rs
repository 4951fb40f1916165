//! Design of a learned controller: observations, intervals and actions.

use alloc::vec::Vec;

use jostle_units::Span;

use super::features::Feature;
use super::monitor_interval::IntervalObservation;

/// Minimum length of an interval.
pub(super) const LEAST_INTERVAL: Span = Span::from_ms(1);
/// Maximum length of an interval.
pub(super) const LONGEST_INTERVAL: Span = Span::from_ms(10_000);
/// Maximum number of values in an action.
pub const MOST_ACTIONS: usize = 2;

/// Length of monitor intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IntervalLength {
    /// A fixed length.
    Fixed(Span),
    /// A multiple of the mean RTT of the previous interval.
    Rtts(f64),
}

impl IntervalLength {
    /// Returns the length of the interval after one with this mean RTT.
    pub fn next(self, rtt_mean_s: f64) -> Span {
        let length = match self {
            Self::Fixed(span) => span,
            Self::Rtts(rtts) => Span::from_secs_f64(rtts * rtt_mean_s),
        };
        length.clamp(LEAST_INTERVAL, LONGEST_INTERVAL)
    }
}

/// Meaning of the values of an action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// One value a: the pacing rate is multiplied by 1 + scale × a, or divided by 1 − scale × a if
    /// a is negative (Aurora, equation 1). The window is twice this rate times the smoothed RTT.
    Rate {
        /// Scale.
        scale: f64,
    },
    /// One value a: the window is multiplied by 2^(scale × a).
    Window {
        /// Scale.
        scale: f64,
    },
    /// Two values: the binary logarithms of the window in packets and of the pacing rate in Mbit/s.
    Absolute,
    /// One value a: Cubic's window is multiplied by 4^a (Orca).
    Cubic,
}

impl Action {
    /// Returns the minimum and maximum of each value.
    pub fn bounds(self) -> &'static [(f64, f64)] {
        match self {
            Self::Rate { .. } => &[(-10.0, 10.0)],
            Self::Window { .. } | Self::Cubic => &[(-1.0, 1.0)],
            Self::Absolute => &[(0.0, 20.0), (-7.0, 20.0)],
        }
    }
}

/// Design of a learned controller without its learned weights.
#[derive(Clone)]
pub struct AgentDesign {
    /// Observed features of an interval.
    pub features: Vec<&'static Feature>,
    /// Number of intervals in an observation.
    pub history: usize,
    /// Length of intervals.
    pub cadence: IntervalLength,
    /// Kind of action at the end of each interval.
    pub action: Action,
}

impl AgentDesign {
    /// Returns the number of values in an observation.
    pub fn observation_len(&self) -> usize {
        self.features.len() * self.history
    }

    /// Length of the interval after `observed`.
    pub fn length_after(&self, observed: &IntervalObservation) -> Span {
        self.cadence.next(observed.rtt_mean_s)
    }
}
