//! Vegas as implemented in Linux.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};

use crate::cwnd::CongestionWindow;
use crate::estimators::RoundRtts;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{CongestionAvoidance, WindowBasedController, reno_increase};
use jostle_congestion::{AckSample, StateObserver};

/// Minimum number of packets to keep in the queue.
pub(super) const ALPHA: Parameter = Parameter::integer("alpha", 2, 0..=10_000)
    .summary("smallest number of packets to keep in the queue");

/// Maximum number of packets to keep in the queue.
pub(super) const BETA: Parameter = Parameter::integer("beta", 4, 0..=10_000)
    .summary("largest number of packets to keep in the queue");

/// Packets in the queue that end slow start.
pub(super) const GAMMA: Parameter =
    Parameter::integer("gamma", 1, 0..=10_000).summary("packets in the queue that end slow start");

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "vegas",
        summary: "keeps 2 to 4 packets in the queue, estimated from the RTT",
        class: "delay",
        based_on: &["reno"],
        source: "Brakmo & Peterson, TCP Vegas, IEEE JSAC 13(8), 1995; Linux 6.1 tcp_vegas.c",
        parameters: &[ALPHA, BETA, GAMMA],
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| {
        Box::new(WindowBasedController::new(Vegas::new(&parts.values), parts.slow_start))
    },
};

/// Leaves slow start with the window of the measured rate without a queue.
pub(super) fn end_slow_start(window: &mut CongestionWindow, rtt_us: u64, base_us: u64) {
    // + 1 because of the truncation. No overflow: the quotient is at most cwnd.
    let target = (u128::from(window.cwnd) * u128::from(base_us) / u128::from(rtt_us)) as u32;
    window.cwnd = window.cwnd.min(target.saturating_add(1));
    window.ssthresh = window.ssthresh.min(window.cwnd);
}

/// Congestion avoidance of Vegas. Once per round trip it estimates the packets in the queue as W ·
/// (RTT − base) / base, where RTT and base are the minima of the round and of the connection, and
/// changes the window by one packet to keep the estimate between α and β. With two or fewer
/// samples, or outside of state `Open`, it is Reno.
#[derive(Clone, Debug)]
pub struct Vegas {
    alpha: u64,
    beta: u64,
    gamma: u64,
    pub(super) rtts: RoundRtts,
    /// Most recent estimate of the packets in the queue.
    queued: u64,
}

impl Vegas {
    /// Creates Vegas with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            alpha: u64::from(values.u32("alpha")),
            beta: u64::from(values.u32("beta")),
            gamma: u64::from(values.u32("gamma")),
            rtts: RoundRtts::default(),
            queued: 0,
        }
    }

    /// Adjusts the window at the end of a round. As in Linux, the flow need not be cwnd-limited.
    fn adjust(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
        (rtt_us, base_us): (u64, u64),
    ) {
        // Diff of the paper divides by RTT; Linux divides by base, which gives long queues a larger
        // value.
        let queued = u128::from(window.cwnd) * u128::from(rtt_us - base_us) / u128::from(base_us);
        self.queued = u64::try_from(queued).unwrap_or(u64::MAX);
        if window.in_slow_start() {
            if self.queued > self.gamma {
                end_slow_start(window, rtt_us, base_us);
            } else {
                slow_start.grow(window, ack);
            }
        } else if self.queued > self.beta {
            window.cwnd -= 1;
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else if self.queued < self.alpha {
            window.cwnd = window.cwnd.saturating_add(1);
        }
        window.cwnd = window.cwnd.min(window.clamp).max(2);
        window.ssthresh = window.ssthresh.max(window.three_quarters());
    }
}

/// The defaults collect RTTs as `tcp_vegas.c::tcp_vegas_pkts_acked` and
/// `tcp_vegas.c::tcp_vegas_state` do.
impl CongestionAvoidance for Vegas {
    fn round_rtts(&mut self) -> Option<&mut RoundRtts> {
        Some(&mut self.rtts)
    }

    /// `tcp_vegas.c::tcp_vegas_cong_avoid`.
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
                Some(minima_us) => self.adjust(window, slow_start, ack, minima_us),
                None => reno_increase(window, slow_start, ack),
            }
            self.rtts.start_round(ack.next_to_send);
        } else if window.in_slow_start() {
            slow_start.grow(window, ack);
        }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("base_rtt_s", self.rtts.base_us().unwrap_or(0) as f64 * 1e-6);
        observer.record_value("queued_packets", self.queued as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slow_start::Standard;
    use jostle_congestion::{RawAckSample, RecoveryState};
    use jostle_units::{Span, Time};

    fn vegas() -> Vegas {
        Vegas::new(&ROW.entry.defaults())
    }

    fn hear(law: &mut Vegas, window: &mut CongestionWindow, rtt_us: u64, next_to_send: u64) {
        law.on_ack_before_loss_detection(
            window,
            &RawAckSample {
                now: Time::ZERO,
                rtt: Some(Span::from_us(rtt_us)),
                packets: 1,
                first_unacked: 1,
                next_to_send,
                ..RawAckSample::default()
            },
        );
    }

    fn ack(first_unacked: u64) -> AckSample {
        AckSample {
            now: Time::ZERO,
            acked: 1,
            lost: 0,
            rtt: None,
            srtt: Span::ZERO,
            min_rtt: Span::ZERO,
            rate: None,
            prior_delivered: 0,
            sent_at: Time::ZERO,
            in_flight_at_send: 10,
            lost_since_send: 0,
            app_limited: false,
            ack_delayed: false,
            delivered: 0,
            total_lost: 0,
            total_sent: 0,
            prior_in_flight: 0,
            in_flight: 0,
            first_unacked,
            next_to_send: first_unacked + 100,
            next_departure: Time::ZERO,
            state: RecoveryState::Open,
            cwnd_limited: true,
            pacing_limited: false,
            can_increase_cwnd: true,
            recovery_ended: false,
            ce_marked: 0,
        }
    }

    /// A round in avoidance at a window of 100 and a base RTT of 100 ms: the window after it.
    fn after_a_round(rtt_us: u64, samples: u32) -> u32 {
        let mut law = vegas();
        let mut window =
            CongestionWindow { cwnd: 100, ssthresh: 50, ..CongestionWindow::default() };
        law.rtts = RoundRtts::with_base_us(100_000);
        for _ in 0..samples {
            hear(&mut law, &mut window, rtt_us - 1, 100);
        }
        law.on_cwnd_limited_ack(&mut window, &mut Standard, &ack(1));
        window.cwnd
    }

    #[test]
    fn the_window_moves_by_one_to_keep_two_to_four_packets_queued() {
        for (rtt_us, cwnd) in
            [(100_000, 101), (101_999, 101), (102_000, 100), (104_999, 100), (105_000, 99)]
        {
            assert_eq!(after_a_round(rtt_us, 3), cwnd, "at {rtt_us} us");
        }
    }

    #[test]
    fn two_samples_are_not_enough() {
        // Reno's step: one of a hundred ACKs towards the next packet.
        assert_eq!(after_a_round(150_000, 2), 100);
        assert_eq!(after_a_round(150_000, 3), 99);
    }

    #[test]
    fn slow_start_ends_at_the_window_that_fills_the_path() {
        let mut law = vegas();
        let mut window = CongestionWindow { cwnd: 100, ..CongestionWindow::default() };
        law.rtts = RoundRtts::with_base_us(100_000);
        (0..3).for_each(|_| hear(&mut law, &mut window, 199_999, 100));
        law.on_cwnd_limited_ack(&mut window, &mut Standard, &ack(1));
        assert_eq!((window.cwnd, window.ssthresh), (51, 51));
    }
}
