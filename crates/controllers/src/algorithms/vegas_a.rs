//! Vegas-A.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Span, Time};

use super::vegas::{GAMMA, end_slow_start};
use crate::cwnd::CongestionWindow;
use crate::estimators::RoundRtts;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{CongestionAvoidance, WindowBasedController, reno_increase};
use jostle_congestion::{AckSample, RecoveryState, StateObserver};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "vegas-a",
        summary: "Vegas whose thresholds rise as long as the throughput rises",
        class: "delay",
        based_on: &["vegas"],
        source: "Srijith, Jacob & Ananda, TCP Vegas-A: Improving the Performance of TCP Vegas, \
                 Computer Communications 28(4), 2005",
        parameters: &[
            Parameter::integer("alpha", 1, 1..=10_000)
                .summary("initial smallest number of packets to keep in the queue"),
            Parameter::integer("beta", 3, 1..=10_000)
                .summary("initial largest number of packets to keep in the queue"),
            GAMMA,
        ],
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| {
        Box::new(WindowBasedController::new(VegasA::new(&parts.values), parts.slow_start))
    },
};

/// Congestion avoidance of Vegas-A: the decision of Vegas at the end of a round, with thresholds
/// that depend on the flow's throughput.
#[derive(Clone, Debug)]
pub struct VegasA {
    alpha: u64,
    beta: u64,
    gamma: u64,
    rtts: RoundRtts,
    /// Start of the round, and packets delivered then; `None` if the round was interrupted.
    round_start: Option<(Time, u64)>,
    /// Throughput of the previous round, in packets per second; 0 before the first.
    throughput: f64,
    /// Most recent estimate of the packets in the queue.
    queued: f64,
}

impl VegasA {
    /// Creates Vegas-A with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        let alpha = u64::from(values.u32("alpha"));
        Self {
            alpha,
            beta: u64::from(values.u32("beta")).max(alpha),
            gamma: u64::from(values.u32("gamma")),
            rtts: RoundRtts::default(),
            round_start: None,
            throughput: 0.0,
            queued: 0.0,
        }
    }

    fn lower_thresholds(&mut self) {
        if self.alpha > 1 {
            (self.alpha, self.beta) = (self.alpha - 1, self.beta - 1);
        }
    }

    /// Adjusts window and thresholds in congestion avoidance. `throughput`: throughput of the
    /// round.
    fn adjust(&mut self, window: &mut CongestionWindow, throughput: f64) {
        let (rose, fell) = (throughput > self.throughput, throughput < self.throughput);
        let cwnd = window.cwnd;
        if self.queued > self.beta as f64 {
            window.cwnd = cwnd - 1;
            self.lower_thresholds();
        } else if self.queued >= self.alpha as f64 {
            if rose {
                window.cwnd = cwnd.saturating_add(1);
                (self.alpha, self.beta) = (self.alpha + 1, self.beta + 1);
            }
        } else if self.alpha == 1 || rose {
            window.cwnd = cwnd.saturating_add(1);
        } else if fell {
            window.cwnd = cwnd - 1;
            self.lower_thresholds();
        }
        window.cwnd = window.cwnd.min(window.clamp).max(2);
        window.ssthresh = window.ssthresh.min(window.cwnd);
    }

    fn end_round(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
        (rtt_us, base_us): (u64, u64),
    ) {
        // The paper's Diff: (Expected − Actual) · base.
        self.queued = f64::from(window.cwnd) * (rtt_us - base_us) as f64 / rtt_us as f64;
        let throughput = self.round_start.map_or(0.0, |(start, delivered)| {
            let packets = ack.delivered.saturating_sub(delivered) as f64;
            packets / ack.now.since(start).as_secs_f64().max(1e-6)
        });
        if !window.in_slow_start() {
            self.adjust(window, throughput);
        } else if self.queued > self.gamma as f64 {
            end_slow_start(window, rtt_us, base_us);
        } else {
            slow_start.grow(window, ack);
        }
        self.throughput = throughput;
    }
}

impl CongestionAvoidance for VegasA {
    fn on_flight_start(&mut self, _window: &mut CongestionWindow, _now: Time, _idle: Span) {
        self.rtts.on_flight_start();
        self.round_start = None;
    }

    fn round_rtts(&mut self) -> Option<&mut RoundRtts> {
        Some(&mut self.rtts)
    }

    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        if !self.rtts.enabled() {
            reno_increase(window, slow_start, ack);
        } else if self.rtts.round_is_over(ack) {
            match self.rtts.minima_us() {
                Some(minima_us) => self.end_round(window, slow_start, ack, minima_us),
                None => reno_increase(window, slow_start, ack),
            }
            self.rtts.start_round(ack.next_to_send);
            self.round_start = Some((ack.now, ack.delivered));
        } else if window.in_slow_start() {
            slow_start.grow(window, ack);
        }
    }

    fn keeps_unused_window(&self) -> bool {
        true
    }

    fn on_recovery_state(
        &mut self,
        _window: &mut CongestionWindow,
        _now: Time,
        state: RecoveryState,
    ) {
        self.rtts.on_recovery_state(state);
        self.round_start = None;
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("alpha_packets", self.alpha as f64);
        observer.record_value("beta_packets", self.beta as f64);
        observer.record_value("queued_packets", self.queued);
        observer.record_value("base_rtt_s", self.rtts.base_us().unwrap_or(0) as f64 * 1e-6);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Window, α and β after a round that began with 20 packets, α, α + 2, and a throughput of 100.
    fn after(alpha: u64, queued: f64, throughput: f64) -> (u32, u64, u64) {
        let mut law = VegasA::new(&ROW.entry.defaults());
        (law.alpha, law.beta) = (alpha, alpha + 2);
        (law.queued, law.throughput) = (queued, 100.0);
        let mut window = CongestionWindow { cwnd: 20, ssthresh: 2, ..CongestionWindow::default() };
        law.adjust(&mut window, throughput);
        (window.cwnd, law.alpha, law.beta)
    }

    #[test]
    fn in_the_band_a_rising_throughput_lifts_window_and_thresholds() {
        assert_eq!(after(1, 2.0, 101.0), (21, 2, 4));
        assert_eq!(after(1, 2.0, 100.0), (20, 1, 3));
        assert_eq!(after(1, 2.0, 99.0), (20, 1, 3));
    }

    #[test]
    fn below_it_a_falling_throughput_lowers_them_again() {
        assert_eq!(after(1, 0.5, 99.0), (21, 1, 3), "Vegas, at the lowest thresholds");
        assert_eq!(after(4, 0.5, 101.0), (21, 4, 6));
        assert_eq!(after(4, 0.5, 100.0), (20, 4, 6));
        assert_eq!(after(4, 0.5, 99.0), (19, 3, 5));
    }

    #[test]
    fn above_it_window_and_thresholds_come_down() {
        assert_eq!(after(4, 6.5, 101.0), (19, 3, 5));
        assert_eq!(after(1, 3.5, 101.0), (19, 1, 3));
    }
}
