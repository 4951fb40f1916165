//! Times, states and signals as Python hears them.

use jostle_control::{RecoveryState, Signal};
use jostle_units::{Span, Time};

/// A time in seconds.
pub fn seconds(time: Time) -> f64 {
    time.as_secs_f64()
}

/// The name of a state.
pub fn state_name(state: RecoveryState) -> &'static str {
    match state {
        RecoveryState::Open => "open",
        RecoveryState::Disorder => "disorder",
        RecoveryState::Cwr => "cwr",
        RecoveryState::Recovery => "recovery",
        RecoveryState::Loss => "loss",
    }
}

/// The name of what happened.
pub fn signal_name(signal: Signal) -> &'static str {
    match signal {
        Signal::Loss => "loss",
        Signal::Ecn => "ecn",
        Signal::Request => "request",
        Signal::Timeout => "timeout",
    }
}

/// A span in seconds.
pub fn span_s(span: Span) -> f64 {
    span.as_secs_f64()
}
