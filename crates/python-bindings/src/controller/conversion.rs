//! Conversion of times, states and signals to Python values.

use jostle_congestion::{CongestionSignal, RecoveryState};
use jostle_units::{Span, Time};

/// Converts a time to seconds.
pub fn seconds(time: Time) -> f64 {
    time.as_secs_f64()
}

/// Returns the name of a recovery state.
pub fn state_name(state: RecoveryState) -> &'static str {
    match state {
        RecoveryState::Open => "open",
        RecoveryState::Disorder => "disorder",
        RecoveryState::Cwr => "cwr",
        RecoveryState::Recovery => "recovery",
        RecoveryState::Loss => "loss",
    }
}

/// Returns the name of a congestion signal.
pub fn signal_name(signal: CongestionSignal) -> &'static str {
    match signal {
        CongestionSignal::Loss => "loss",
        CongestionSignal::Ecn => "ecn",
        CongestionSignal::Request => "request",
        CongestionSignal::Timeout => "timeout",
    }
}

/// Converts a span to seconds.
pub fn span_s(span: Span) -> f64 {
    span.as_secs_f64()
}
