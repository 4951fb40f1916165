//! YeAH as implemented in Linux.

use alloc::boxed::Box;

use jostle_registry::RegistryEntry;

use crate::cwnd::CongestionWindow;
use crate::estimators::RoundRtts;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{CongestionAvoidance, WindowBasedController};
use jostle_congestion::{AckSample, CongestionEvent, EstablishedEvent, StateObserver};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "yeah",
        summary: "Scalable while the queue is short; otherwise Reno that also drains the queue",
        class: "hybrid",
        based_on: &["scalable", "reno", "vegas"],
        source: "Baiocchi, Castellani & Vacirca, YeAH-TCP, PFLDnet 2007; Linux 6.1 tcp_yeah.c",
        parameters: &[],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| Box::new(WindowBasedController::new(Yeah::default(), parts.slow_start)),
};

/// `TCP_YEAH_ALPHA`: maximum number of packets to leave in the queue.
const ALPHA: u32 = 80;
/// `TCP_YEAH_EPSILON`: a drain reduces the window by half at most. γ, the share of the queue that
/// is drained per round trip, is 1.
const EPSILON_SHIFT: u32 = 1;
/// `TCP_YEAH_DELTA`: a loss reduces the window by at least an eighth.
const DELTA_SHIFT: u32 = 3;
/// `TCP_YEAH_PHY`: a queueing delay above an eighth of the base RTT also indicates congestion.
const PHI: u64 = 8;
/// `TCP_YEAH_RHO`: after this number of consecutive slow rounds, a loss is attributed to a
/// competing flow.
const RHO: u32 = 16;
/// `TCP_YEAH_ZETA`: after more fast rounds, there is no competing flow.
const ZETA: u32 = 50;
/// `TCP_SCALABLE_AI_CNT`: number of ACKs per added packet in fast mode.
const SCALABLE_PER_INCREASE: u32 = 100;
/// Largest window of YeAH in Linux.
const CLAMP: u32 = u32::MAX / 128;
/// Limit of Linux's count of slow rounds.
const SLOW_ROUNDS_MAX: u32 = 0x00ff_ffff;

/// Congestion avoidance of YeAH. Once per round trip it estimates the packets in the queue as Q = W
/// · (RTT − base) / RTT, where RTT is the minimum of the round and base the minimum of the
/// connection. With Q ≤ α and a queueing delay of at most base / φ it grows like Scalable,
/// otherwise like Reno. With Q > α it immediately removes Q from the window (*precautionary
/// decongestion*), but not below the window of Reno, which it estimates by adding a packet per slow
/// round.
#[derive(Clone, Debug)]
pub struct Yeah {
    rtts: RoundRtts,
    /// Packets in the queue in the last round (`lastQ`).
    queued: u32,
    /// Consecutive slow rounds (`doing_reno_now`).
    slow_rounds: u32,
    /// Fast rounds since a loss, or since there were [`ZETA`] of them (`fast_count`).
    fast_rounds: u32,
    /// Estimated window of a competing Reno flow (`reno_count`).
    reno_window: u32,
}

impl Default for Yeah {
    fn default() -> Self {
        Self {
            rtts: RoundRtts::default(),
            queued: 0,
            slow_rounds: 0,
            fast_rounds: 0,
            reno_window: 2,
        }
    }
}

impl Yeah {
    /// Chooses the growth of the next round from the RTTs of a round.
    fn end_round(&mut self, window: &mut CongestionWindow, (rtt_us, base_us): (u64, u64)) {
        let delay_us = rtt_us - base_us;
        // No overflow: the result is less than cwnd.
        self.queued = (u128::from(window.cwnd) * u128::from(delay_us) / u128::from(rtt_us)) as u32;
        if self.queued <= ALPHA && delay_us <= base_us / PHI {
            self.fast_rounds += 1;
            if self.fast_rounds > ZETA {
                (self.reno_window, self.fast_rounds) = (2, 0);
            }
            self.slow_rounds = 0;
            return;
        }
        if self.queued > ALPHA && window.cwnd > self.reno_window {
            let reduction = self.queued.min(window.cwnd >> EPSILON_SHIFT);
            window.cwnd = (window.cwnd - reduction).max(self.reno_window);
            window.ssthresh = window.cwnd;
        }
        if self.reno_window <= 2 {
            self.reno_window = (window.cwnd / 2).max(2);
        } else {
            self.reno_window = self.reno_window.saturating_add(1);
        }
        self.slow_rounds = (self.slow_rounds + 1).min(SLOW_ROUNDS_MAX);
    }
}

impl CongestionAvoidance for Yeah {
    fn on_established(&mut self, window: &mut CongestionWindow, _established: &EstablishedEvent) {
        window.clamp = CLAMP;
        window.cwnd = window.cwnd.min(CLAMP);
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
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.acked;
        if window.in_slow_start() {
            acked = slow_start.grow(window, ack);
        }
        if acked > 0 {
            self.increase_cwnd(window, acked, ack);
        }
        // Applies in every state, not only in `Open` as in Vegas.
        if self.rtts.round_is_over(ack) {
            if let Some(minima_us) = self.rtts.minima_us() {
                self.end_round(window, minima_us);
            }
            self.rtts.start_round(ack.next_to_send);
        }
    }

    /// `tcp_yeah.c::tcp_yeah_cong_avoid`.
    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, _ack: &AckSample) {
        let fast = self.slow_rounds == 0;
        let most = if fast { SCALABLE_PER_INCREASE } else { u32::MAX };
        window.additive_increase(window.cwnd.min(most), acked);
    }

    /// A loss reduces the window by the queue, but by at least an eighth and at most half of the
    /// window. With a competing flow it halves the window.
    /// `tcp_yeah.c::tcp_yeah_ssthresh`.
    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        self.rtts.on_congestion_event(congestion);
        let half = (window.cwnd / 2).max(2);
        let reduction = if self.slow_rounds < RHO {
            self.queued.min(half).max(window.cwnd >> DELTA_SHIFT)
        } else {
            half
        };
        self.fast_rounds = 0;
        self.reno_window = (self.reno_window / 2).max(2);
        window.cwnd.saturating_sub(reduction).max(2)
    }

    fn mode(&self) -> &'static str {
        if self.slow_rounds == 0 { "fast" } else { "slow" }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("base_rtt_s", self.rtts.base_us().unwrap_or(0) as f64 * 1e-6);
        observer.record_value("queued_packets", f64::from(self.queued));
        observer.record_value("reno_window_packets", f64::from(self.reno_window));
        observer.record_value("slow_rounds", f64::from(self.slow_rounds));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slow_start::Standard;
    use crate::test_support::{ack, measurement};
    use jostle_congestion::CongestionSignal;
    use jostle_units::{Span, Time};

    const LOSS: CongestionEvent = CongestionEvent {
        now: Time::ZERO,
        signal: CongestionSignal::Loss,
        in_flight: 0,
        next_to_send: 0,
    };
    const BASE_US: u64 = 100_000;

    fn at(cwnd: u32) -> CongestionWindow {
        CongestionWindow { cwnd, ssthresh: 2, ..CongestionWindow::default() }
    }

    /// YeAH after a round of `rtt_us` at a window of `cwnd`.
    fn after_a_round(cwnd: u32, rtt_us: u64) -> (Yeah, CongestionWindow) {
        let (mut law, mut window) = (Yeah::default(), at(cwnd));
        law.end_round(&mut window, (rtt_us, BASE_US));
        (law, window)
    }

    #[test]
    fn a_long_queue_or_a_long_delay_ends_fast_mode() {
        // 112.5 ms is base + base / 8, at which 720 packets have 80 in the queue.
        for (cwnd, rtt_us, mode, queued) in [
            (100, 100_000, "fast", 0),
            (100, 112_500, "fast", 11),
            (100, 112_501, "slow", 11),
            (728, 112_500, "fast", 80),
            (729, 112_500, "slow", 81),
        ] {
            let (law, _) = after_a_round(cwnd, rtt_us);
            assert_eq!((law.mode(), law.queued), (mode, queued), "{cwnd} at {rtt_us} us");
        }
    }

    #[test]
    fn decongestion_takes_the_queue_and_no_more_than_half_of_the_window() {
        let (law, window) = after_a_round(1_000, 112_500);
        // ⌊1000 · 12.5 / 112.5⌋ = 111 packets.
        assert_eq!((window.cwnd, window.ssthresh), (889, 889));
        assert_eq!(law.reno_window, 444, "half of the window for a start");
        assert_eq!(after_a_round(1_000, 1_000_000).1.cwnd, 500);
        let (mut law, mut window) = (Yeah { reno_window: 950, ..Yeah::default() }, at(1_000));
        law.end_round(&mut window, (112_500, BASE_US));
        assert_eq!((window.cwnd, law.reno_window), (950, 951), "not below Reno's window");
    }

    #[test]
    fn a_short_queue_that_waits_long_drains_nothing() {
        let (_, window) = after_a_round(100, 150_000);
        assert_eq!((window.cwnd, window.ssthresh), (100, 2));
    }

    #[test]
    fn a_loss_costs_the_queue_unless_there_is_a_competitor() {
        let loss = |cwnd, queued, slow_rounds| {
            let mut law = Yeah { queued, slow_rounds, reno_window: 100, ..Yeah::default() };
            let ssthresh = law.ssthresh_after(&at(cwnd), &LOSS);
            assert_eq!((law.reno_window, law.fast_rounds), (50, 0));
            ssthresh
        };
        assert_eq!(loss(800, 0, 0), 700, "an eighth");
        assert_eq!(loss(800, 150, 15), 650, "the queue");
        assert_eq!(loss(800, 700, 15), 400, "half");
        assert_eq!(loss(800, 150, 16), 400, "half beside a competitor");
        assert_eq!(loss(1, 0, 16), 2);
    }

    #[test]
    fn fifty_fast_rounds_forget_the_competitor() {
        let (mut law, mut window) = (Yeah { reno_window: 100, ..Yeah::default() }, at(100));
        for _ in 0..50 {
            law.end_round(&mut window, (BASE_US, BASE_US));
        }
        assert_eq!(law.reno_window, 100);
        law.end_round(&mut window, (BASE_US, BASE_US));
        assert_eq!((law.reno_window, law.fast_rounds), (2, 0));
    }

    #[test]
    fn fast_mode_adds_one_packet_per_hundred_acks() {
        for (slow_rounds, cwnd) in [(0, 405), (1, 401)] {
            let (mut law, mut window) = (Yeah { slow_rounds, ..Yeah::default() }, at(400));
            (0..500).for_each(|number| law.increase_cwnd(&mut window, 1, &ack(number)));
            assert_eq!(window.cwnd, cwnd);
        }
    }

    #[test]
    fn two_samples_are_not_enough() {
        for (samples, slow_rounds) in [(2, 0), (3, 1)] {
            let (mut law, mut window) = (Yeah::default(), at(100));
            law.rtts = RoundRtts::with_base_us(BASE_US);
            for _ in 0..samples {
                law.on_ack_before_loss_detection(&mut window, &measurement(Span::from_ms(150)));
            }
            law.on_cwnd_limited_ack(&mut window, &mut Standard, &ack(1));
            assert_eq!(law.slow_rounds, slow_rounds);
        }
    }
}
