//! TCP New Vegas.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Rate, Span};

use super::vegas::{ALPHA, BETA, GAMMA, end_slow_start};
use crate::cwnd::{CongestionWindow, INFINITE_SSTHRESH};
use crate::estimators::RoundRtts;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{CongestionAvoidance, WindowBasedController, reno_increase};
use jostle_congestion::{AckSample, CongestionEvent, EstablishedEvent, StateObserver};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "new-vegas",
        summary: "Vegas with pacing and a slow start that halves its growth at each congestion \
            signal",
        class: "delay",
        based_on: &["vegas"],
        source: "Sing & Soh, TCP New Vegas: Improving the Performance of TCP Vegas over High \
                 Latency Links, IEEE NCA 2005",
        parameters: &[
            ALPHA,
            BETA,
            GAMMA,
            Parameter::integer("steps", 3, 0..=16).summary(
                "congestion signals that halve the growth of slow start before the next one ends \
                 it",
            ),
        ],
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| {
        Box::new(WindowBasedController::new(NewVegas::new(&parts.values), parts.slow_start))
    },
};

/// Congestion avoidance of New Vegas: Vegas with packets paced over the base RTT, whose slow start
/// continues at half of its growth after each of the first signs of congestion.
#[derive(Clone, Debug)]
pub struct NewVegas {
    alpha: u64,
    beta: u64,
    gamma: u64,
    steps: u32,
    rtts: RoundRtts,
    /// Number of congestion signs in this slow start.
    signs: u32,
    /// Whether the queue that caused a sign is still draining: the RTT of a round reflects the
    /// previous window.
    draining: bool,
    mss_bytes: u32,
    /// Most recent estimate of the packets in the queue.
    queued: u64,
}

impl NewVegas {
    /// Creates New Vegas with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            alpha: u64::from(values.u32("alpha")),
            beta: u64::from(values.u32("beta")),
            gamma: u64::from(values.u32("gamma")),
            steps: values.u32("steps"),
            rtts: RoundRtts::default(),
            signs: 0,
            draining: false,
            mss_bytes: 0,
            queued: 0,
        }
    }

    /// Slow start: grows by W / 2ᵏ packets per round trip after k signs of congestion.
    fn start(&self, window: &mut CongestionWindow, acked: u32) {
        let per_increase = 1 << self.signs;
        window.additive_increase(per_increase, acked);
        window.cwnd = window.cwnd.min(window.ssthresh);
    }

    /// Adjusts the window at the end of a round.
    fn adjust(&mut self, window: &mut CongestionWindow, acked: u32, (rtt_us, base_us): (u64, u64)) {
        // The paper's Diff: (Expected − Actual) · base.
        let queued = u128::from(window.cwnd) * u128::from(rtt_us - base_us) / u128::from(rtt_us);
        self.queued = u64::try_from(queued).unwrap_or(u64::MAX);
        if window.in_slow_start() {
            if self.queued <= self.gamma {
                self.draining = false;
                self.start(window, acked);
            } else {
                let ssthresh = window.ssthresh;
                end_slow_start(window, rtt_us, base_us);
                if (self.draining || self.signs < self.steps) && ssthresh == INFINITE_SSTHRESH {
                    self.signs += u32::from(!self.draining);
                    self.draining = true;
                    window.ssthresh = ssthresh;
                }
            }
        } else if self.queued > self.beta {
            window.cwnd -= 1;
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else if self.queued < self.alpha {
            window.cwnd = window.cwnd.saturating_add(1);
        }
        window.cwnd = window.cwnd.min(window.clamp).max(2);
    }
}

impl CongestionAvoidance for NewVegas {
    fn on_established(&mut self, _window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.mss_bytes = established.mss_bytes;
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.mss_bytes = mss_bytes;
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
                Some(minima_us) => self.adjust(window, ack.acked, minima_us),
                None => reno_increase(window, slow_start, ack),
            }
            self.rtts.start_round(ack.next_to_send);
        } else if window.in_slow_start() && !self.draining {
            self.start(window, ack.acked);
        }
    }

    fn keeps_unused_window(&self) -> bool {
        true
    }

    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        self.rtts.on_congestion_event(congestion);
        (self.signs, self.draining) = (0, false);
        (window.cwnd / 2).max(2)
    }

    /// A window per base RTT: not faster than the window allows on an empty path, and no slower if
    /// packets are queued.
    fn pacing_rate(&self, window: &CongestionWindow) -> Option<Rate> {
        let base = Span::from_us(self.rtts.base_us()?);
        let bytes = u64::from(window.cwnd) * u64::from(self.mss_bytes);
        Some(Rate::of(bytes, base)).filter(|rate| rate.as_bps() > 0)
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("base_rtt_s", self.rtts.base_us().unwrap_or(0) as f64 * 1e-6);
        observer.record_value("queued_packets", self.queued as f64);
        observer.record_value("growth_share", 1.0 / f64::from(1u32 << self.signs));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law() -> NewVegas {
        NewVegas { mss_bytes: 1_000, ..NewVegas::new(&ROW.entry.defaults()) }
    }

    #[test]
    fn signs_of_congestion_halve_the_growth_until_the_fourth_ends_slow_start() {
        let mut law = law();
        for (signs, growth) in [(0, 64), (1, 32), (2, 16), (3, 8)] {
            assert_eq!(law.signs, signs);
            law.draining = false;
            let mut window = CongestionWindow { cwnd: 64, ..CongestionWindow::default() };
            (0..64).for_each(|_| law.start(&mut window, 1));
            assert_eq!(window.cwnd, 64 + growth);
            window.cwnd = 100;
            law.adjust(&mut window, 1, (200_000, 100_000));
            assert_eq!((window.cwnd, window.in_slow_start()), (51, signs < 3));
        }
    }

    #[test]
    fn two_to_four_packets_stay_in_the_queue() {
        for (rtt_us, cwnd) in [(101_000, 101), (103_000, 100), (104_000, 100), (106_000, 99)] {
            let mut window =
                CongestionWindow { cwnd: 100, ssthresh: 50, ..CongestionWindow::default() };
            law().adjust(&mut window, 1, (rtt_us, 100_000));
            assert_eq!(window.cwnd, cwnd, "at {rtt_us} us");
        }
    }

    #[test]
    fn a_window_leaves_within_the_base_rtt() {
        let mut law = law();
        assert_eq!(law.pacing_rate(&CongestionWindow::default()), None);
        law.rtts = RoundRtts::with_base_us(100_000);
        assert_eq!(law.pacing_rate(&CongestionWindow::default()), Some(Rate::from_bps(800_000)));
    }
}
