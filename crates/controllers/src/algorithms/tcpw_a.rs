//! TCPW-A.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::Time;

use super::westwood::{Westwood, forward_to_westwood};
use crate::cwnd::{CongestionWindow, INFINITE_SSTHRESH};
use crate::estimators::PacketPairs;
use crate::jiffies::HZ;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::window_based::{CongestionAvoidance, WindowBasedController};
use jostle_congestion::{
    AckSample, CongestionEvent, EstablishedEvent, RawAckSample, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "tcpw-a",
        summary: "Westwood+ that raises ssthresh by an estimated rate on an uncongested path",
        class: "loss",
        based_on: &["westwood"],
        source: "Wang, Pau, Yamada, Sanadidi & Gerla, TCP Startup Performance in Large Bandwidth \
                 Delay Networks, IEEE INFOCOM 2004",
        parameters: &[
            Parameter::number("shortfall", 0.125, 0.0..=1.0)
                .summary("share of the expected rate that may be missing without congestion"),
            Parameter::integer("rounds", 10, 1..=1_000)
                .summary("round trips without congestion after which probing restarts"),
            HZ,
        ],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| {
        Box::new(WindowBasedController::new(TcpwA::new(&parts.values), parts.slow_start))
    },
};

/// Congestion avoidance of TCPW-A: Westwood+ with two additions. Agile Probing: until a congestion
/// signal, ssthresh is raised to the window of the eligible rate, so that the window grows
/// exponentially up to the estimated capacity and not further. Persistent Non-Congestion Detection:
/// if the rate has matched the window for some rounds, probing restarts.
#[derive(Clone, Debug)]
pub struct TcpwA {
    shortfall: f64,
    rounds: u32,
    westwood: Westwood,
    pairs: PacketPairs,
    probing: bool,
    /// Packet whose acknowledgement ends the round.
    round_end: u64,
    /// Whether all ACKs of the round reached the expected rate.
    round_is_clear: bool,
    clear_rounds: u32,
}

impl TcpwA {
    /// Creates TCPW-A with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            shortfall: values.number("shortfall"),
            rounds: values.u32("rounds"),
            westwood: Westwood::new(values),
            pairs: PacketPairs::default(),
            probing: true,
            round_end: 0,
            round_is_clear: true,
            clear_rounds: 0,
        }
    }

    /// Ends a round of persistent non-congestion detection if it is complete.
    fn detect(&mut self, ack: &AckSample) {
        if ack.first_unacked <= self.round_end {
            return;
        }
        self.round_end = ack.next_to_send;
        self.clear_rounds = if self.round_is_clear { self.clear_rounds + 1 } else { 0 };
        self.round_is_clear = true;
        if self.clear_rounds >= self.rounds {
            self.clear_rounds = 0;
            self.probing = true;
        }
    }
}

impl CongestionAvoidance for TcpwA {
    fn on_established(&mut self, window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.westwood.on_established(window, established);
        window.ssthresh = window.cwnd.max(2);
    }

    fn on_ack_before_loss_detection(
        &mut self,
        window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        self.westwood.on_ack_before_loss_detection(window, measurement);
        self.pairs.on_ack_before_loss_detection(measurement);
    }

    forward_to_westwood!();

    fn on_ack(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        self.westwood.on_ack(window, ack);
        let Some(rate) = ack.rate.filter(|_| !ack.app_limited) else { return };
        let min_rtt_s = ack.min_rtt.as_secs_f64();
        // Packets that the rate delivers in the minimum RTT, compared with those that were in
        // flight.
        let achieved = f64::from(rate.delivered) * min_rtt_s / rate.interval.as_secs_f64();
        let is_clear = achieved >= f64::from(ack.in_flight_at_send) * (1.0 - self.shortfall);
        if self.probing {
            let carried = self.pairs.packets_per_s().map(|rate| rate * min_rtt_s);
            let eligible = if is_clear { carried.unwrap_or(achieved) } else { achieved };
            let ssthresh = (eligible as u32).min(INFINITE_SSTHRESH - 1);
            window.ssthresh = window.ssthresh.max(ssthresh);
        } else {
            self.round_is_clear &= is_clear;
            self.detect(ack);
        }
    }

    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, ack: &AckSample) {
        self.westwood.increase_cwnd(window, acked, ack);
    }

    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        (self.probing, self.clear_rounds) = (false, 0);
        self.westwood.ssthresh_after(window, congestion)
    }

    fn on_cwr_complete(&mut self, window: &mut CongestionWindow, now: Time) {
        self.westwood.on_cwr_complete(window, now);
    }

    fn mode(&self) -> &'static str {
        if self.probing { "probing" } else { "avoidance" }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("capacity_pps", self.pairs.packets_per_s().unwrap_or(0.0));
        observer.record_value("clear_rounds", f64::from(self.clear_rounds));
        self.westwood.observe(observer);
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::Span;

    use super::*;
    use crate::test_support::{ack, loss};
    use jostle_congestion::RateSample;

    const RTT: Span = Span::from_ms(40);

    /// A law after three packet pairs 400 µs apart, which are 100 packets per 40 ms.
    fn law() -> TcpwA {
        let mut law = TcpwA::new(&ROW.entry.defaults());
        for i in 0..4 {
            let gap = Span::from_us(400 * i);
            law.pairs.on_ack_before_loss_detection(&RawAckSample {
                now: Time::ZERO + RTT + gap,
                rtt: Some(RTT + gap),
                packets: 1,
                ..RawAckSample::default()
            });
        }
        law
    }

    /// An ACK of a round trip in which `delivered` of 50 packets arrived, the end of its round.
    fn ack_of(delivered: u32, round: u64) -> AckSample {
        AckSample {
            rate: Some(RateSample { delivered, interval: RTT }),
            in_flight_at_send: 50,
            first_unacked: 100 * round + 1,
            next_to_send: 100 * (round + 1),
            ..ack(1)
        }
    }

    #[test]
    fn the_threshold_is_the_capacity_where_nothing_is_congested_and_the_rate_elsewhere() {
        for (delivered, ssthresh) in [(50, 100), (44, 100), (43, 43)] {
            let mut window =
                CongestionWindow { cwnd: 10, ssthresh: 10, ..CongestionWindow::default() };
            law().on_ack(&mut window, &ack_of(delivered, 0));
            assert_eq!(window.ssthresh, ssthresh, "{delivered} of 50");
        }
    }

    #[test]
    fn a_loss_ends_probing_and_ten_clear_rounds_bring_it_back() {
        let mut law = law();
        let mut window = CongestionWindow { cwnd: 50, ssthresh: 25, ..CongestionWindow::default() };
        law.ssthresh_after(&window, &loss());
        for round in 0..9 {
            law.on_ack(&mut window, &ack_of(50, round));
        }
        law.on_ack(&mut window, &ack_of(30, 9));
        assert_eq!((law.probing, law.clear_rounds, window.ssthresh), (false, 0, 25));
        for round in 10..20 {
            assert!(!law.probing);
            law.on_ack(&mut window, &ack_of(50, round));
        }
        assert!(law.probing);
        law.on_ack(&mut window, &ack_of(50, 20));
        assert_eq!(window.ssthresh, 100);
    }
}
