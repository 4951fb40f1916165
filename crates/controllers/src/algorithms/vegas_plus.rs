//! Vegas+ of Hasegawa, Kurata and Murata.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Span, Time};

use super::vegas::{self, Vegas};
use crate::cwnd::CongestionWindow;
use crate::estimators::RoundRtts;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{CongestionAvoidance, WindowBasedController, reno_increase};
use jostle_congestion::{AckSample, CongestionEvent, StateObserver};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "vegas+",
        summary: "Vegas that switches to Reno when other flows fill the queue",
        class: "delay",
        based_on: &["vegas", "reno"],
        source: "Hasegawa, Kurata & Murata, Analysis and Improvement of Fairness between TCP Reno \
                 and Vegas, IEEE ICNP 2000",
        parameters: &[
            vegas::ALPHA,
            vegas::BETA,
            vegas::GAMMA,
            Parameter::integer("count_max", 8, 1..=1_000).summary(
                "rounds with an unexplained rise of the RTT, minus rounds with a fall, that switch \
                 to Reno",
            ),
        ],
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| {
        Box::new(WindowBasedController::new(VegasPlus::new(&parts.values), parts.slow_start))
    },
};

/// Congestion avoidance of Vegas+. In moderate mode it is Vegas, and counts the rounds in which the
/// RTT rose although the window did not grow, so that another flow must have filled the queue.
/// Rounds with a falling RTT are subtracted. After enough of them it enters aggressive mode, which
/// is Reno, until the next congestion signal.
#[derive(Clone, Debug)]
pub struct VegasPlus {
    vegas: Vegas,
    count_max: u32,
    count: u32,
    aggressive: bool,
    /// Minimum RTT and window of the previous round; `None` before a round in congestion avoidance.
    last: Option<(u64, u32)>,
}

impl VegasPlus {
    /// Creates Vegas+ with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            vegas: Vegas::new(values),
            count_max: values.u32("count_max"),
            count: 0,
            aggressive: false,
            last: None,
        }
    }

    /// Evaluates a round by its minimum RTT.
    fn judge(&mut self, rtt_us: u64, cwnd: u32) {
        if let Some((last_us, last_cwnd)) = self.last.replace((rtt_us, cwnd)) {
            if rtt_us > last_us && cwnd <= last_cwnd {
                self.count += 1;
            } else if rtt_us < last_us {
                self.count = self.count.saturating_sub(1);
            }
        }
        if self.count >= self.count_max {
            (self.count, self.last) = (0, None);
            self.aggressive = true;
        }
    }
}

impl CongestionAvoidance for VegasPlus {
    fn on_flight_start(&mut self, window: &mut CongestionWindow, now: Time, idle: Span) {
        self.last = None;
        self.vegas.on_flight_start(window, now, idle);
    }

    fn round_rtts(&mut self) -> Option<&mut RoundRtts> {
        Some(&mut self.vegas.rtts)
    }

    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        let rtts = &mut self.vegas.rtts;
        let over = rtts.enabled() && rtts.round_is_over(ack);
        if self.aggressive {
            if over {
                rtts.start_round(ack.next_to_send);
            }
            reno_increase(window, slow_start, ack);
            return;
        }
        if over
            && !window.in_slow_start()
            && let Some((rtt_us, _)) = rtts.minima_us()
        {
            self.judge(rtt_us, window.cwnd);
        }
        self.vegas.on_cwnd_limited_ack(window, slow_start, ack);
    }

    fn keeps_unused_window(&self) -> bool {
        true
    }

    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        (self.count, self.last, self.aggressive) = (0, None, false);
        self.vegas.ssthresh_after(window, congestion)
    }

    fn mode(&self) -> &'static str {
        if self.aggressive { "aggressive" } else { "moderate" }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        self.vegas.observe(observer);
        observer.record_value("count_rounds", f64::from(self.count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::loss;

    /// The law after rounds of the given RTT and window.
    fn after(rounds: &[(u64, u32)]) -> VegasPlus {
        let mut law = VegasPlus::new(&ROW.entry.defaults());
        rounds.iter().for_each(|&(rtt_us, cwnd)| law.judge(rtt_us, cwnd));
        law
    }

    #[test]
    fn rises_without_cause_count_and_falls_count_back() {
        assert_eq!(after(&[(100, 20), (101, 20), (102, 19), (103, 18)]).count, 3);
        assert_eq!(after(&[(100, 20), (101, 21), (102, 22)]).count, 0, "its own window did it");
        assert_eq!(after(&[(100, 20), (101, 20), (102, 20), (101, 20), (101, 20)]).count, 1);
        assert_eq!(after(&[(100, 20), (99, 20), (98, 20)]).count, 0);
    }

    #[test]
    fn eight_make_it_aggressive_until_a_loss() {
        let rounds: Vec<_> = (0..9).map(|i| (100 + i, 20)).collect();
        assert!(!after(&rounds[..8]).aggressive);
        let mut law = after(&rounds);
        assert!(law.aggressive);
        assert_eq!(
            law.ssthresh_after(
                &CongestionWindow { cwnd: 30, ..CongestionWindow::default() },
                &loss()
            ),
            15
        );
        assert!(!law.aggressive);
    }
}
