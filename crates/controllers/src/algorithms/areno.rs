//! Adaptive Reno.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Rate, Time};

use super::westwood::{Westwood, forward_to_westwood};
use crate::cwnd::CongestionWindow;
use crate::cwnd::FractionalWindow;
use crate::estimators::RttRange;
use crate::jiffies::HZ;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::window_based::{CongestionAvoidance, WindowBasedController};
use jostle_congestion::{
    AckSample, CongestionEvent, EstablishedEvent, RawAckSample, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "areno",
        summary: "sum of Reno's cwnd and a window that grows with the rate while the queue is \
            short",
        class: "hybrid",
        based_on: &["reno", "westwood"],
        source: "Shimonishi, Hama & Murase, TCP-Adaptive Reno for Improving Efficiency-Friendliness \
                 Tradeoffs of TCP Congestion Control Algorithm, PFLDnet 2006",
        parameters: &[
            Parameter::rate(
                "rate_per_packet",
                Rate::from_mbps(10),
                Rate::from_bps(10_000)..=Rate::from_mbps(100_000),
            )
            .summary("bandwidth that adds a packet per round trip to the fastest growth"),
            Parameter::number("alpha", 10.0, 0.1..=1_000.0)
                .summary("exponent at which growth falls with congestion"),
            HZ,
        ],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| {
        Box::new(WindowBasedController::new(AdaptiveReno::new(&parts.values), parts.slow_start))
    },
};

/// Weight of the old average in the average RTT of losses.
const CONGESTION_RTT_MEMORY: f64 = 0.85;

/// Congestion avoidance of Adaptive Reno: W = Wbase + Wprobe. Wbase grows like Reno. Wprobe grows
/// by Winc per round trip. Winc depends on the congestion c, the position of the RTT between its
/// minimum and the average RTT of losses, and averages to Reno's increase. A loss leaves W/(1 + c).
#[derive(Clone, Debug)]
pub struct AdaptiveReno {
    rate_per_packet_bps: f64,
    alpha: f64,
    /// β/Wm and (1 − γ)/Wm.
    beta: f64,
    gamma: f64,
    westwood: Westwood,
    rtts: RttRange,
    /// Average RTT at losses; `None` before the first.
    congestion_rtt_us: Option<f64>,
    /// Wprobe, which is included in cwnd.
    probe: f64,
    fraction: FractionalWindow,
}

impl AdaptiveReno {
    /// Creates Adaptive Reno with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        let alpha = values.number("alpha");
        let (a, end) = (1.0 / alpha, libm::exp(-alpha));
        Self {
            rate_per_packet_bps: values.rate("rate_per_packet").as_bps() as f64,
            alpha,
            beta: 2.0 * (a - (a + 1.0) * end),
            gamma: 2.0 * (a - (a + 0.5) * end),
            westwood: Westwood::new(values),
            rtts: RttRange::default(),
            congestion_rtt_us: None,
            probe: 0.0,
            fraction: FractionalWindow::default(),
        }
    }

    /// Returns c, from 0 to 1; 0 before the first loss.
    fn congestion(&self) -> f64 {
        let Some(congestion_rtt_us) = self.congestion_rtt_us else { return 0.0 };
        let (latest, least) = (self.rtts.latest_us() as f64, self.rtts.least_us() as f64);
        ((latest - least) / (congestion_rtt_us - least).max(1.0)).clamp(0.0, 1.0)
    }

    /// Winc(c) = Wm e^(−αc) + βc + γ packets per round trip.
    fn increase(&self, c: f64) -> f64 {
        let most = self.westwood.bandwidth_bps() / self.rate_per_packet_bps;
        most * (libm::exp(-self.alpha * c) + self.beta * c - self.gamma) + 1.0
    }
}

impl CongestionAvoidance for AdaptiveReno {
    fn on_established(&mut self, window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.westwood.on_established(window, established);
        if let Some(rtt) = established.rtt {
            self.rtts.on_sample(rtt);
        }
    }

    fn on_ack_before_loss_detection(
        &mut self,
        window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        self.westwood.on_ack_before_loss_detection(window, measurement);
        if let Some(rtt) = measurement.rtt {
            self.rtts.on_sample(rtt);
        }
    }

    forward_to_westwood!();

    fn on_ack(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        self.westwood.on_ack(window, ack);
    }

    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, _ack: &AckSample) {
        let rounds = f64::from(acked) / f64::from(window.cwnd);
        let before = self.probe.min(f64::from(window.cwnd));
        self.probe = (before + self.increase(self.congestion()) * rounds).max(0.0);
        self.fraction.add(window, rounds + self.probe - before);
    }

    fn ssthresh_after(&mut self, window: &CongestionWindow, _congestion: &CongestionEvent) -> u32 {
        let latest_us = self.rtts.latest_us() as f64;
        // The first loss defines the congestion RTT.
        let c = if self.congestion_rtt_us.is_some() { self.congestion() } else { 1.0 };
        let average_us = self.congestion_rtt_us.unwrap_or(latest_us);
        let moved = average_us + (1.0 - CONGESTION_RTT_MEMORY) * (latest_us - average_us);
        self.congestion_rtt_us = Some(moved);
        self.probe = 0.0;
        self.fraction.clear();
        ((f64::from(window.cwnd) / (1.0 + c)) as u32).max(2)
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("congestion", self.congestion());
        observer.record_value("probe_packets", self.probe);
        observer.record_value("bandwidth_bps", self.westwood.bandwidth_bps());
        observer.record_value("congestion_rtt_s", self.congestion_rtt_us.unwrap_or(0.0) * 1e-6);
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::Span;

    use super::*;
    use crate::test_support::loss;

    /// A law with Wm = 10, a least RTT of 100 ms, losses at 200 ms, and an RTT of `rtt_ms`.
    fn at_rtt(rtt_ms: u64) -> AdaptiveReno {
        let mut law = AdaptiveReno::new(&ROW.entry.defaults());
        law.westwood = Westwood::with_bandwidth_bps(100_000_000);
        [100, rtt_ms].into_iter().for_each(|ms| law.rtts.on_sample(Span::from_ms(ms)));
        law.congestion_rtt_us = Some(200_001.0);
        law
    }

    /// algorithms.md: Winc(0) = 0.8 Wm + 1 and Winc(1) = 1.
    #[test]
    fn growth_is_a_packet_in_congestion_and_by_the_rate_without() {
        for (rtt_ms, c, increase) in [(100, 0.0, 9.0), (200, 1.0, 1.0), (500, 1.0, 1.0)] {
            let law = at_rtt(rtt_ms);
            assert!((law.congestion() - c).abs() < 1e-9);
            assert!((law.increase(c) - increase).abs() < 0.01, "{}", law.increase(c));
        }
    }

    /// algorithms.md: a loss at c = 0 keeps W, at c = 1 halves it.
    #[test]
    fn a_loss_costs_as_much_as_there_is_congestion() {
        for (rtt_ms, kept) in [(100, 100), (150, 66), (200, 50)] {
            let window = CongestionWindow { cwnd: 100, ..CongestionWindow::default() };
            assert_eq!(at_rtt(rtt_ms).ssthresh_after(&window, &loss()), kept, "at {rtt_ms} ms");
        }
        let mut law = at_rtt(150);
        law.congestion_rtt_us = None;
        assert_eq!(
            law.ssthresh_after(
                &CongestionWindow { cwnd: 100, ..CongestionWindow::default() },
                &loss()
            ),
            50
        );
    }

    #[test]
    fn losses_at_another_rtt_move_the_average_slowly() {
        let mut law = at_rtt(100);
        law.ssthresh_after(&CongestionWindow::default(), &loss());
        let moved = law.congestion_rtt_us.unwrap();
        assert!((moved - 185_001.0).abs() < 0.01, "{moved}");
    }
}
