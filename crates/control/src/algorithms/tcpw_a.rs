//! TCPW-A.

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::Time;

use super::westwood::Westwood;
use crate::controller::{AckSample, Congestion, Established, Measurement, Observer};
use crate::estimate::PacketPairs;
use crate::jiffies::HZ;
use crate::row::{ControllerRow, Start};
use crate::window::{INFINITE_SSTHRESH, Window};
use crate::windowed::{WindowLaw, Windowed};

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "tcpw-a",
        summary: "Westwood+ that starts, and starts again, with the threshold that it measures",
        class: "loss",
        based_on: &["westwood"],
        source: "Wang, Pau, Yamada, Sanadidi & Gerla, TCP Startup Performance in Large Bandwidth \
                 Delay Networks, IEEE INFOCOM 2004",
        parameters: &[
            Parameter {
                name: "shortfall",
                summary: "part of the expected rate that may be missing where nothing is congested",
                kind: Kind::Number { default: 0.125, min: 0.0, max: 1.0 },
            },
            Parameter {
                name: "rounds",
                summary: "round trips without congestion after which it probes again",
                kind: Kind::Integer { default: 10, min: 1, max: 1_000 },
            },
            HZ,
        ],
    },
    start: Start::Composed("standard"),
    build: |parts| Box::new(Windowed::new(TcpwA::new(&parts.values), parts.slow_start)),
};

/// The TCPW-A window law: Westwood+ and two additions. Agile Probing: until a congestion signal
/// ssthresh is raised to the window that the eligible rate fills, so that the window grows
/// exponentially up to what is known of the path, and no further. Persistent Non-Congestion
/// Detection: where the rate has been what the window should give for some rounds, probing begins
/// again.
#[derive(Clone, Debug)]
pub struct TcpwA {
    shortfall: f64,
    rounds: u32,
    westwood: Westwood,
    pairs: PacketPairs,
    probing: bool,
    /// The packet whose acknowledgement ends the round.
    round_end: u64,
    /// No ACK of the round fell short of the expected rate.
    round_is_clear: bool,
    clear_rounds: u32,
}

impl TcpwA {
    /// TCPW-A with the parameters of its registry row.
    pub fn new(values: &Values) -> Self {
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

    /// Ends a round of persistent non-congestion detection where one is over.
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

impl WindowLaw for TcpwA {
    fn on_established(&mut self, window: &mut Window, established: &Established) {
        self.westwood.on_established(window, established);
        window.ssthresh = window.cwnd.max(2);
    }

    fn on_measurement(&mut self, window: &mut Window, measurement: &Measurement) {
        self.westwood.on_measurement(window, measurement);
        self.pairs.on_measurement(measurement);
    }

    fn on_packet_size(&mut self, mss_bytes: u32) {
        self.westwood.on_packet_size(mss_bytes);
    }

    fn hears_headers(&self) -> bool {
        self.westwood.hears_headers()
    }

    fn on_ack_event(&mut self, window: &mut Window, now: Time, slow_path: bool) {
        self.westwood.on_ack_event(window, now, slow_path);
    }

    fn on_any_ack(&mut self, window: &mut Window, ack: &AckSample) {
        self.westwood.on_any_ack(window, ack);
        let Some(rate) = ack.rate.filter(|_| !ack.app_limited) else { return };
        let min_rtt_s = ack.min_rtt.as_secs_f64();
        // Packets that the rate delivers in the least RTT, and those that were in flight for it.
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

    fn avoid(&mut self, window: &mut Window, acked: u32, ack: &AckSample) {
        self.westwood.avoid(window, acked, ack);
    }

    fn ssthresh(&mut self, window: &Window, congestion: &Congestion) -> u32 {
        (self.probing, self.clear_rounds) = (false, 0);
        self.westwood.ssthresh(window, congestion)
    }

    fn on_reduction_end(&mut self, window: &mut Window, now: Time) {
        self.westwood.on_reduction_end(window, now);
    }

    fn mode(&self) -> &'static str {
        if self.probing { "probing" } else { "avoidance" }
    }

    fn observe(&self, observer: &mut dyn Observer) {
        observer.value("capacity_pps", self.pairs.packets_per_s().unwrap_or(0.0));
        observer.value("clear_rounds", f64::from(self.clear_rounds));
        self.westwood.observe(observer);
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::Span;

    use super::*;
    use crate::controller::RateSample;
    use crate::fixtures::{ack, loss};

    const RTT: Span = Span::from_ms(40);

    /// A law after three packet pairs 400 µs apart, which are 100 packets per 40 ms.
    fn law() -> TcpwA {
        let mut law = TcpwA::new(&ROW.entry.defaults());
        for i in 0..4 {
            let gap = Span::from_us(400 * i);
            law.pairs.on_measurement(&Measurement {
                now: Time::ZERO + RTT + gap,
                rtt: Some(RTT + gap),
                packets: 1,
                ..Measurement::default()
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
            let mut window = Window { cwnd: 10, ssthresh: 10, ..Window::default() };
            law().on_any_ack(&mut window, &ack_of(delivered, 0));
            assert_eq!(window.ssthresh, ssthresh, "{delivered} of 50");
        }
    }

    #[test]
    fn a_loss_ends_probing_and_ten_clear_rounds_bring_it_back() {
        let mut law = law();
        let mut window = Window { cwnd: 50, ssthresh: 25, ..Window::default() };
        law.ssthresh(&window, &loss());
        for round in 0..9 {
            law.on_any_ack(&mut window, &ack_of(50, round));
        }
        law.on_any_ack(&mut window, &ack_of(30, 9));
        assert_eq!((law.probing, law.clear_rounds, window.ssthresh), (false, 0, 25));
        for round in 10..20 {
            assert!(!law.probing);
            law.on_any_ack(&mut window, &ack_of(50, round));
        }
        assert!(law.probing);
        law.on_any_ack(&mut window, &ack_of(50, 20));
        assert_eq!(window.ssthresh, 100);
    }
}
