//! FAST TCP.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};

use crate::cwnd::CongestionWindow;
use crate::cwnd::FractionalWindow;
use crate::estimators::RttRange;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{CongestionAvoidance, WindowBasedController};
use jostle_congestion::{
    AckSample, CongestionEvent, EstablishedEvent, RawAckSample, StateObserver,
};

/// α of the paper.
pub(super) const ALPHA: Parameter = Parameter::integer("alpha", 20, 1..=100_000).summary(
    "packets to keep in the queue; the paper uses 8 at 10 Mbit/s, 20 at 100 Mbit/s, 200 at 1 \
     Gbit/s",
);

/// γ of the paper.
pub(super) const GAMMA: Parameter = Parameter::number("gamma", 0.5, 0.01..=1.0)
    .summary("share of the distance to the target that a step covers");

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "fast",
        summary: "moves cwnd towards the value that keeps alpha packets in the queue",
        class: "delay",
        based_on: &["vegas"],
        source: "Wei, Jin, Low & Hegde, FAST TCP, IEEE/ACM ToN 14(6), 2006",
        parameters: &[ALPHA, GAMMA],
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| {
        Box::new(WindowBasedController::new(
            Fast::new(&parts.values, RttFilter::Window),
            parts.slow_start,
        ))
    },
};

/// Averaging of RTT samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RttFilter {
    /// As in FAST: weight min(3/W, ¼), an average over a window of packets.
    Window,
    /// The same weight while samples are within their mean deviation of the average, and
    /// `jump_weight` for other samples.
    Deviation { jump_weight: f64 },
}

/// Congestion avoidance of FAST: every second round trip W = min(2W, (1 − γ) W + γ (base/RTT · W +
/// α)). In equilibrium α packets are queued.
#[derive(Clone, Debug)]
pub struct Fast {
    alpha: f64,
    gamma: f64,
    filter: RttFilter,
    rtts: RttRange,
    /// Average RTT, and mean deviation of the samples.
    average_us: f64,
    deviation_us: f64,
    /// Packet whose acknowledgement ends the round.
    round_end: u64,
    /// Whether the window is updated at the end of the current round.
    updates: bool,
    fraction: FractionalWindow,
}

impl Fast {
    /// Creates FAST with the parameters of its registry entry.
    pub(super) fn new(values: &ParameterValues, filter: RttFilter) -> Self {
        Self {
            alpha: values.integer("alpha") as f64,
            gamma: values.number("gamma"),
            filter,
            rtts: RttRange::default(),
            average_us: 0.0,
            deviation_us: 0.0,
            round_end: 0,
            updates: false,
            fraction: FractionalWindow::default(),
        }
    }

    fn on_rtt(&mut self, cwnd: u32) {
        let sample_us = self.rtts.latest_us() as f64;
        if self.average_us == 0.0 {
            self.average_us = sample_us;
            return;
        }
        let error_us = sample_us - self.average_us;
        let mut weight = (3.0 / f64::from(cwnd)).min(0.25);
        if let RttFilter::Deviation { jump_weight } = self.filter {
            if error_us.abs() > self.deviation_us {
                weight = weight.max(jump_weight);
            }
            self.deviation_us += (error_us.abs() - self.deviation_us) / 4.0;
        }
        self.average_us += weight * error_us;
    }

    /// base / RTT.
    fn emptiness(&self) -> f64 {
        (self.rtts.least_us() as f64 / self.average_us.max(1.0)).min(1.0)
    }

    fn queued(&self, cwnd: u32) -> f64 {
        f64::from(cwnd) * (1.0 - self.emptiness())
    }

    /// Updates the window at the end of a round.
    fn adjust(&mut self, window: &mut CongestionWindow) {
        let w = f64::from(window.cwnd);
        let target = self.emptiness() * w + self.alpha;
        if window.in_slow_start() {
            // Use the complete step: packets that the last doubling added to the queue should not
            // stay there.
            if self.queued(window.cwnd) > self.alpha {
                window.cwnd = (target as u32).clamp(2, window.cwnd.max(2));
                window.ssthresh = window.cwnd;
                self.updates = false;
            }
            return;
        }
        if self.updates {
            let next = (w + self.gamma * (target - w)).min(2.0 * w);
            self.fraction.add(window, next - w);
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
        self.updates = !self.updates;
    }
}

impl CongestionAvoidance for Fast {
    fn on_established(&mut self, window: &mut CongestionWindow, established: &EstablishedEvent) {
        if let Some(rtt) = established.rtt {
            self.rtts.on_sample(rtt);
            self.on_rtt(window.cwnd);
        }
    }

    fn on_ack_before_loss_detection(
        &mut self,
        window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        if let Some(rtt) = measurement.rtt {
            self.rtts.on_sample(rtt);
            self.on_rtt(window.cwnd);
        }
    }

    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        if ack.first_unacked > self.round_end {
            self.round_end = ack.next_to_send;
            if ack.cwnd_limited {
                self.adjust(window);
            }
        }
        if ack.cwnd_limited && window.in_slow_start() {
            slow_start.grow(window, ack);
        }
    }

    /// The window does not change between updates.
    fn increase_cwnd(&mut self, _window: &mut CongestionWindow, _acked: u32, _ack: &AckSample) {}

    fn ssthresh_after(&mut self, window: &CongestionWindow, _congestion: &CongestionEvent) -> u32 {
        self.fraction.clear();
        (window.cwnd / 2).max(2)
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("base_rtt_s", self.rtts.least_us() as f64 * 1e-6);
        observer.record_value("average_rtt_s", self.average_us * 1e-6);
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::Span;

    use super::*;

    /// The law after samples of 100 ms and an average of `average_ms`.
    fn at_average(average_ms: f64) -> Fast {
        let mut law = Fast::new(&ROW.entry.defaults(), RttFilter::Window);
        law.rtts.on_sample(Span::from_us(99_999));
        law.average_us = 1e3 * average_ms;
        law
    }

    fn at(cwnd: u32) -> CongestionWindow {
        CongestionWindow { cwnd, ssthresh: 2, ..CongestionWindow::default() }
    }

    #[test]
    fn every_other_round_goes_half_of_the_way() {
        let (mut law, mut window) = (at_average(125.0), at(200));
        law.adjust(&mut window);
        assert_eq!(window.cwnd, 200);
        law.adjust(&mut window);
        // Target 0.8 · 200 + 20 = 180.
        assert_eq!(window.cwnd, 190);
    }

    #[test]
    fn alpha_packets_in_the_queue_are_the_fixed_point() {
        let (mut law, mut window) = (at_average(125.0), at(100));
        (0..10).for_each(|_| law.adjust(&mut window));
        assert_eq!(window.cwnd, 100);
    }

    #[test]
    fn a_step_doubles_at_most() {
        let (mut law, mut window) = (at_average(100.0), at(4));
        law.updates = true;
        law.adjust(&mut window);
        assert_eq!(window.cwnd, 8);
    }

    #[test]
    fn slow_start_ends_at_the_target() {
        let (mut law, mut window) =
            (at_average(200.0), CongestionWindow { cwnd: 400, ..CongestionWindow::default() });
        law.adjust(&mut window);
        assert_eq!((window.cwnd, window.ssthresh), (220, 220));
    }

    #[test]
    fn the_average_has_the_memory_of_a_window() {
        for (cwnd, weight) in [(4, 0.25), (12, 0.25), (300, 0.01)] {
            let mut law = at_average(100.0);
            law.rtts.on_sample(Span::from_us(199_999));
            law.on_rtt(cwnd);
            assert!((law.average_us - 100e3 * (1.0 + weight)).abs() < 1e-6);
        }
    }

    /// VFAST: 3/300 inside of the mean deviation, one half outside of it.
    #[test]
    fn a_jump_weighs_more_than_noise() {
        for (sample_ms, weight) in [(105, 0.01), (111, 0.5), (200, 0.5), (95, 0.01), (89, 0.5)] {
            let mut law = at_average(100.0);
            law.filter = RttFilter::Deviation { jump_weight: 0.5 };
            law.deviation_us = 10e3;
            law.rtts.on_sample(Span::from_us(1_000 * sample_ms - 1));
            law.on_rtt(300);
            let error_us = 1e3 * sample_ms as f64 - 100e3;
            assert!((law.average_us - 100e3 - weight * error_us).abs() < 1e-6, "{sample_ms} ms");
            let deviation_us = 0.75 * 10e3 + 0.25 * error_us.abs();
            assert!((law.deviation_us - deviation_us).abs() < 1e-6, "{sample_ms} ms");
        }
    }
}
