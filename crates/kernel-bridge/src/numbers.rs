//! Numbers of states, signals and kinds of feedback in C.

use jostle_congestion::{CongestionSignal, EcnFeedback, RecoveryState};

const RECOVERY_STATES: [RecoveryState; 5] = [
    RecoveryState::Open,
    RecoveryState::Disorder,
    RecoveryState::Cwr,
    RecoveryState::Recovery,
    RecoveryState::Loss,
];

const SIGNALS: [CongestionSignal; 4] = [
    CongestionSignal::Loss,
    CongestionSignal::Ecn,
    CongestionSignal::Request,
    CongestionSignal::Timeout,
];

const FEEDBACKS: [EcnFeedback; 4] =
    [EcnFeedback::None, EcnFeedback::Classic, EcnFeedback::DctcpEcho, EcnFeedback::AccEcn];

/// Returns the recovery state with a number (`tcp_ca_state` in Linux).
///
/// # Panics
/// If there is none.
pub(crate) fn recovery_state(number: u32) -> RecoveryState {
    RECOVERY_STATES[number as usize]
}

/// Returns the ECN feedback with a number (`enum jk_ecn` of `jostle_bridge.h`).
///
/// # Panics
/// If there is none.
pub fn ecn_feedback(number: u32) -> EcnFeedback {
    FEEDBACKS[number as usize]
}

/// Returns the number of a recovery state (`tcp_ca_state` in Linux).
pub fn recovery_state_number(state: RecoveryState) -> u32 {
    number_in(&RECOVERY_STATES, state)
}

/// Returns the number of an ECN feedback.
pub fn ecn_feedback_number(feedback: EcnFeedback) -> u32 {
    number_in(&FEEDBACKS, feedback)
}

/// Returns the congestion signal with a number (`enum jk_signal` of `jostle_bridge.h`).
///
/// # Panics
/// If there is none.
pub(crate) fn signal(number: u32) -> CongestionSignal {
    SIGNALS[number as usize]
}

/// Returns the number of a congestion signal.
pub(crate) fn signal_number(signal: CongestionSignal) -> u32 {
    number_in(&SIGNALS, signal)
}

fn number_in<T: PartialEq>(list: &[T], value: T) -> u32 {
    list.iter().take_while(|other| **other != value).count() as u32
}
