//! Test support for both versions of BBR.

use jostle_units::Time;

use crate::test_support::{RTT, ack};
use jostle_congestion::{AckSample, CongestionController, EstablishedEvent, RateSample};

/// Returns the controller after its handshake.
pub(crate) fn established<C: CongestionController>(mut controller: C) -> C {
    controller.on_established(&EstablishedEvent {
        now: Time::ZERO + RTT,
        mss_bytes: 1448,
        initial_window: 10,
        rtt: Some(RTT),
        prospect: Default::default(),
    });
    controller
}

/// A path of fixed rate: every round delivers `packets` in 40 ms.
pub(crate) struct Rounds40 {
    pub(crate) now: Time,
    pub(crate) delivered: u64,
}

impl Rounds40 {
    pub(crate) fn new() -> Self {
        Self { now: Time::ZERO + RTT, delivered: 0 }
    }

    /// Returns the ACK that ends a round with `packets` deliveries.
    pub(crate) fn round(&mut self, packets: u32) -> AckSample {
        self.now += RTT;
        let prior_delivered = self.delivered;
        self.delivered += u64::from(packets);
        AckSample {
            now: self.now,
            acked: packets,
            rtt: Some(RTT),
            rate: Some(RateSample { delivered: packets, interval: RTT }),
            prior_delivered,
            in_flight: packets,
            prior_in_flight: packets,
            in_flight_at_send: packets,
            next_departure: self.now,
            ..ack(self.delivered)
        }
    }
}
