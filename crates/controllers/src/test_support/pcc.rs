//! Test support for PCC's controllers.

use jostle_units::Time;

use crate::test_support::RTT;
use jostle_congestion::EstablishedEvent;

/// One second after the start of the connection.
pub(crate) const NOW: Time = Time::from_ns(1_000_000_000);

/// Returns a handshake with an RTT of [`RTT`].
pub(crate) fn established(initial_window: u32) -> EstablishedEvent {
    EstablishedEvent {
        now: Time::ZERO + RTT,
        mss_bytes: 1448,
        initial_window,
        rtt: Some(RTT),
        prospect: Default::default(),
    }
}
