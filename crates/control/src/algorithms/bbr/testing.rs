//! What the tests of both versions begin with.

use std::collections::BTreeMap;

use jostle_catalogue::Value;
use jostle_units::{Span, Stream, Time};

use crate::algorithms::fixtures::ack;
use crate::controller::{AckSample, Controller, Established, RateSample};
use crate::registry::{ControllerRow, Parts};
use crate::slow_start::Standard;

pub(in crate::algorithms) const RTT: Span = Span::from_ms(40);

/// What a controller of `row` with the parameters `given` is built from.
pub(in crate::algorithms) fn parts(
    row: &ControllerRow,
    seed: u64,
    given: &[(&str, Value)],
) -> Parts {
    let given: BTreeMap<_, _> = given.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
    Parts {
        values: row.entry.resolve(&given).unwrap(),
        slow_start: Box::new(Standard),
        random: Stream::new(seed, row.entry.name),
    }
}

/// The controller after its handshake.
pub(in crate::algorithms) fn established<C: Controller>(mut controller: C) -> C {
    controller.on_established(&Established {
        now: Time::ZERO + RTT,
        mss_bytes: 1448,
        initial_window: 10,
        rtt: Some(RTT),
        prospect: Default::default(),
    });
    controller
}

/// A path of fixed rate: every round delivers `packets` in 40 ms.
pub(in crate::algorithms) struct Rounds40 {
    pub(in crate::algorithms) now: Time,
    pub(in crate::algorithms) delivered: u64,
}

impl Rounds40 {
    pub(in crate::algorithms) fn new() -> Self {
        Self { now: Time::ZERO + RTT, delivered: 0 }
    }

    /// The ACK that ends a round in which `packets` were delivered.
    pub(in crate::algorithms) fn round(&mut self, packets: u32) -> AckSample {
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
