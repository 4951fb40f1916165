//! TCP Libra.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::Span;

use crate::cwnd::CongestionWindow;
use crate::cwnd::FractionalWindow;
use crate::estimators::PacketPairs;
use crate::estimators::RttRange;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::window_based::{CongestionAvoidance, WindowBasedController};
use jostle_congestion::{
    AckSample, CongestionEvent, EstablishedEvent, RawAckSample, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "libra",
        summary: "Reno with increase and decrease scaled so that the rate does not depend on the \
            RTT",
        class: "hybrid",
        based_on: &["reno"],
        source: "Marfia, Palazzi, Pau, Gerla, Sanadidi & Roccetti, TCP Libra: Exploring \
                 RTT-Fairness for TCP, UCLA TR-050037, 2005; IFIP Networking 2007",
        parameters: &[
            Parameter::number("k1", 2.0, 0.0..=10_000.0)
                .summary("growth in packets per second and Mbit/s of the path's capacity"),
            Parameter::number("k2", 2.0, 0.0..=100.0)
                .summary("exponent with which growth falls as the RTT approaches its maximum"),
            Parameter::span("t0", Span::from_secs(1), Span::from_ms(1)..=Span::from_secs(100))
                .summary("RTT above which growth per round trip is no longer quadratic in the RTT"),
            Parameter::span("t1", Span::from_secs(1), Span::from_ms(1)..=Span::from_secs(100))
                .summary(
                    "size of the decrease: a loss reduces cwnd by the share t1 / (2 (RTT + t0))",
                ),
        ],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| {
        Box::new(WindowBasedController::new(Libra::new(&parts.values), parts.slow_start))
    },
};

/// Congestion avoidance of Libra: an ACK adds (α/W) T²/(T + T0) and a loss subtracts W T1/(2 (T +
/// T0)), where T is the RTT. At a loss rate p the throughput is √(2α/(p T1)), independent of T. α =
/// k1 C e^(−k2 (T − Tmin)/(Tmax − Tmin)); packet pairs give the capacity C.
#[derive(Clone, Debug)]
pub struct Libra {
    k1: f64,
    k2: f64,
    t0_s: f64,
    t1_s: f64,
    packet_mbit: f64,
    pairs: PacketPairs,
    rtts: RttRange,
    fraction: FractionalWindow,
}

impl Libra {
    /// Creates Libra with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            k1: values.number("k1"),
            k2: values.number("k2"),
            t0_s: values.span("t0").as_secs_f64(),
            t1_s: values.span("t1").as_secs_f64(),
            packet_mbit: 0.0,
            pairs: PacketPairs::default(),
            rtts: RttRange::default(),
            fraction: FractionalWindow::default(),
        }
    }

    fn capacity_mbps(&self) -> Option<f64> {
        Some(self.pairs.packets_per_s()? * self.packet_mbit)
    }

    fn rtt_s(&self) -> f64 {
        self.rtts.latest_us() as f64 * 1e-6
    }

    /// Returns the increase in packets per round trip for a capacity.
    fn increase(&self, capacity_mbps: f64) -> f64 {
        let alpha = self.k1 * capacity_mbps * libm::exp(-self.k2 * self.rtts.position());
        let rtt_s = self.rtt_s();
        alpha * rtt_s * rtt_s / (rtt_s + self.t0_s)
    }
}

impl CongestionAvoidance for Libra {
    fn on_established(&mut self, _window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.on_mss_change(established.mss_bytes);
        if let Some(rtt) = established.rtt {
            self.rtts.on_sample(rtt);
        }
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.packet_mbit = 8e-6 * f64::from(mss_bytes);
    }

    fn on_ack_before_loss_detection(
        &mut self,
        _window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        self.pairs.on_ack_before_loss_detection(measurement);
        if let Some(rtt) = measurement.rtt {
            self.rtts.on_sample(rtt);
        }
    }

    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, _ack: &AckSample) {
        match self.capacity_mbps() {
            Some(capacity_mbps) => {
                let rounds = f64::from(acked) / f64::from(window.cwnd);
                self.fraction.add(window, self.increase(capacity_mbps) * rounds);
            }
            // Grow like Reno while the capacity is unknown.
            None => window.additive_increase(window.cwnd, acked),
        }
    }

    fn ssthresh_after(&mut self, window: &CongestionWindow, _congestion: &CongestionEvent) -> u32 {
        self.fraction.clear();
        let decrease = self.t1_s / (2.0 * (self.rtt_s() + self.t0_s));
        ((f64::from(window.cwnd) * (1.0 - decrease).max(0.0)) as u32).max(2)
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        let capacity_mbps = self.capacity_mbps().unwrap_or(0.0);
        observer.record_value("capacity_bps", 1e6 * capacity_mbps);
        observer.record_value("increase_packets", self.increase(capacity_mbps));
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::{Span, Time};

    use super::*;
    use crate::test_support::loss;

    fn at_rtts(ms: &[u64]) -> Libra {
        let mut law = Libra::new(&ROW.entry.defaults());
        ms.iter().for_each(|&ms| law.rtts.on_sample(Span::from_us(1_000 * ms - 1)));
        law
    }

    /// α T²/(T + T0) at 100 Mbit/s: 200 · 0.01/1.1, and e⁻² of it at the greatest RTT.
    #[test]
    fn growth_is_quadratic_in_the_rtt_and_falls_with_the_queue() {
        assert!((at_rtts(&[100]).increase(100.0) - 1.818).abs() < 0.001);
        assert!((at_rtts(&[200]).increase(100.0) - 6.667).abs() < 0.001);
        let full = at_rtts(&[50, 100]).increase(100.0);
        assert!((full - 1.818 * libm::exp(-2.0)).abs() < 0.001, "{full}");
    }

    /// Three pairs 1 ms apart: 1000 packets/s.
    #[test]
    fn the_capacity_follows_the_size_of_packets() {
        let mut law = at_rtts(&[100]);
        for i in 0..4 {
            let gap = Span::from_ms(i);
            let now = Time::ZERO + Span::from_ms(100) + gap;
            let rtt = Some(Span::from_ms(100) + gap);
            law.pairs.on_ack_before_loss_detection(&RawAckSample {
                now,
                rtt,
                packets: 1,
                ..Default::default()
            });
        }
        for (mss_bytes, mbps) in [(1_000, 8.0), (1_250, 10.0)] {
            law.on_mss_change(mss_bytes);
            let capacity_mbps = law.capacity_mbps().unwrap();
            assert!((capacity_mbps - mbps).abs() < 1e-9, "{capacity_mbps}");
        }
    }

    /// T1/(2 (T + T0)): 0.4545 at 100 ms, a quarter at a second.
    #[test]
    fn long_ways_give_up_less() {
        let window = CongestionWindow { cwnd: 1_000, ..CongestionWindow::default() };
        for (ms, kept) in [(100, 545), (1_000, 750)] {
            assert_eq!(at_rtts(&[ms]).ssthresh_after(&window, &loss()), kept, "at {ms} ms");
        }
    }
}
