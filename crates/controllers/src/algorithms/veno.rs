//! Veno as implemented in Linux.

use alloc::boxed::Box;

use jostle_registry::RegistryEntry;
use jostle_units::{Span, Time};

use crate::cwnd::CongestionWindow;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{BETA_ECN, CongestionAvoidance, WindowBasedController, reno_increase};
use jostle_congestion::{AckSample, CongestionEvent, RawAckSample, RecoveryState, StateObserver};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "veno",
        summary: "Reno that distinguishes random loss from congestion by the number of queued \
            packets",
        class: "hybrid",
        based_on: &["reno", "vegas"],
        source: "Fu & Liew, TCP Veno, IEEE JSAC 21(2), 2003; Linux 6.1 tcp_veno.c",
        parameters: &[BETA_ECN],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| {
        Box::new(
            WindowBasedController::new(Veno::default(), parts.slow_start).with_abe(&parts.values),
        )
    },
};

/// β of the paper, 3 packets, in half packets like N: a longer queue indicates congestion.
const BETA_HALVES: u64 = 2 * 3;

/// Congestion avoidance of Veno. N = W − W · base / RTT is the number of packets in the queue.
/// Below β the window grows by a packet per round trip, and a loss is considered random and reduces
/// the window by a fifth. Above β it grows every second round trip and a loss halves it.
///
/// Two details follow Linux, not the paper. N is computed for each ACK from the RTTs since the
/// previous ACK, not once per round trip. Samples are counted over the complete connection, so that
/// Reno replaces N only at its start.
#[derive(Clone, Debug)]
pub struct Veno {
    /// Whether the connection is in state `Open`; otherwise Veno is Reno (`doing_veno_now`).
    enabled: bool,
    /// Number of RTT samples in 16 bits as in Linux: each time it wraps, two ACKs are processed
    /// like Reno (`cntrtt`).
    samples: u16,
    /// Minimum RTT since Veno last grew the window, plus 1 µs; `None` before a sample (`minrtt`).
    min_us: Option<u64>,
    /// Minimum RTT since the last idle time (`basertt`).
    base_us: Option<u64>,
    /// Whether the current one of two congested round trips adds a packet (`inc`).
    adds: bool,
    /// Packets in the queue, in half packets (`diff`).
    queued_halves: u64,
}

impl Default for Veno {
    fn default() -> Self {
        Self {
            enabled: true,
            samples: 0,
            min_us: None,
            base_us: None,
            adds: true,
            queued_halves: 0,
        }
    }
}

impl Veno {
    fn enable(&mut self) {
        self.enabled = true;
        self.min_us = None;
    }

    const fn is_congested(&self) -> bool {
        self.queued_halves >= BETA_HALVES
    }

    /// Computes the packets in the queue in half packets. Both terms of N are rounded as in Linux.
    fn count_queued(&mut self, cwnd: u32) {
        let cwnd_halves = 2 * u64::from(cwnd);
        // Linux uses 2³¹ − 1 µs for an unknown RTT. If both are unknown, their ratio is 1 and no
        // packet is queued.
        let base_us = self.base_us.unwrap_or(UNKNOWN_US);
        let unqueued = cwnd_halves * base_us / self.min_us.unwrap_or(UNKNOWN_US);
        self.queued_halves = cwnd_halves.saturating_sub(unqueued);
    }

    /// Adds a packet every second round trip. The last ACK of a round trip only ends it.
    fn grow_in_congestion(&mut self, window: &mut CongestionWindow, acked: u32) {
        if window.count < window.cwnd {
            window.count = window.count.saturating_add(acked);
            return;
        }
        if self.adds && window.cwnd < window.clamp {
            window.cwnd += 1;
            self.adds = false;
        } else {
            self.adds = true;
        }
        window.count = 0;
    }
}

/// Linux's value for an unknown RTT.
const UNKNOWN_US: u64 = 0x7fff_ffff;

impl CongestionAvoidance for Veno {
    fn on_flight_start(&mut self, _window: &mut CongestionWindow, _now: Time, _idle: Span) {
        self.base_us = None;
        self.adds = true;
        self.enable();
    }

    /// `tcp_veno.c::tcp_veno_pkts_acked`.
    fn on_ack_before_loss_detection(
        &mut self,
        _window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        let Some(rtt) = measurement.rtt else { return };
        // + 1, so that it is never zero.
        let rtt_us = rtt.as_us() + 1;
        self.base_us = Some(self.base_us.map_or(rtt_us, |base| base.min(rtt_us)));
        self.min_us = Some(self.min_us.map_or(rtt_us, |min| min.min(rtt_us)));
        self.samples = self.samples.wrapping_add(1);
    }

    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        if !self.enabled {
            reno_increase(window, slow_start, ack);
            return;
        }
        if !ack.cwnd_limited {
            return;
        }
        if self.samples <= 2 {
            reno_increase(window, slow_start, ack);
        } else {
            self.count_queued(window.cwnd);
            let mut acked = ack.acked;
            if window.in_slow_start() {
                acked = slow_start.grow(window, ack);
            }
            if acked > 0 {
                self.increase_cwnd(window, acked, ack);
            }
            window.cwnd = window.cwnd.min(window.clamp).max(2);
        }
        self.min_us = None;
    }

    /// `tcp_veno.c::tcp_veno_cong_avoid`.
    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, _ack: &AckSample) {
        if self.is_congested() {
            self.grow_in_congestion(window, acked);
        } else {
            window.additive_increase(window.cwnd, acked);
        }
    }

    /// `tcp_veno.c::tcp_veno_ssthresh`.
    fn ssthresh_after(&mut self, window: &CongestionWindow, _congestion: &CongestionEvent) -> u32 {
        if self.is_congested() {
            (window.cwnd / 2).max(2)
        } else {
            ((u64::from(window.cwnd) * 4 / 5) as u32).max(2)
        }
    }

    fn on_recovery_state(
        &mut self,
        _window: &mut CongestionWindow,
        _now: Time,
        state: RecoveryState,
    ) {
        if state == RecoveryState::Open {
            self.enable();
        } else {
            self.enabled = false;
        }
    }

    fn mode(&self) -> &'static str {
        if self.is_congested() { "congestive" } else { "non_congestive" }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("base_rtt_s", self.base_us.unwrap_or(0) as f64 * 1e-6);
        observer.record_value("queued_packets", self.queued_halves as f64 / 2.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slow_start::Standard;
    use crate::test_support::{ack, measurement};
    use jostle_congestion::CongestionSignal;

    const LOSS: CongestionEvent = CongestionEvent {
        now: Time::ZERO,
        signal: CongestionSignal::Loss,
        in_flight: 0,
        next_to_send: 0,
    };

    /// Veno at a base RTT of 100 ms and a window of 100, that has just heard of `rtt_us`.
    fn veno(rtt_us: u64) -> (Veno, CongestionWindow) {
        let mut law = Veno { samples: 3, base_us: Some(100_000), ..Veno::default() };
        let mut window =
            CongestionWindow { cwnd: 100, ssthresh: 50, ..CongestionWindow::default() };
        law.on_ack_before_loss_detection(&mut window, &measurement(Span::from_us(rtt_us - 1)));
        (law, window)
    }

    /// N = 100 − 100 · base / RTT is 3 packets at an RTT of base / 0.97, 103.09 ms. Linux rounds the
    /// window that needs no queue down to half packets and sees them from base / 0.975 on.
    #[test]
    fn three_packets_in_the_queue_are_congestion() {
        for (rtt_us, halves, ssthresh) in [
            (100_000, 0, 80),
            (102_563, 5, 80),
            (102_565, 6, 50),
            (103_092, 6, 50),
            (103_093, 7, 50),
        ] {
            let (mut law, mut window) = veno(rtt_us);
            law.on_cwnd_limited_ack(&mut window, &mut Standard, &ack(1));
            assert_eq!(law.queued_halves, halves, "at {rtt_us} us");
            assert_eq!(law.ssthresh_after(&window, &LOSS), ssthresh, "at {rtt_us} us");
        }
    }

    #[test]
    fn congestion_halves_the_growth() {
        let grown = |rtt_us| {
            let (mut law, mut window) = veno(rtt_us);
            for number in 0..1_010 {
                law.on_ack_before_loss_detection(
                    &mut window,
                    &measurement(Span::from_us(rtt_us - 1)),
                );
                law.on_cwnd_limited_ack(&mut window, &mut Standard, &ack(number));
            }
            window.cwnd
        };
        // 100 + 101 + … + 108 ACKs are 936, the next packet would need 109 more.
        assert_eq!(grown(100_000), 109);
        // cwnd + 1 ACKs are a round trip; the first one adds a packet, then every other one.
        assert_eq!(grown(110_000), 105);
    }

    #[test]
    fn two_samples_are_not_enough() {
        let (mut law, mut window) = veno(200_000);
        law.samples = 2;
        window.count = 99;
        law.on_cwnd_limited_ack(&mut window, &mut Standard, &ack(1));
        assert_eq!((window.cwnd, law.queued_halves), (101, 0));
        // In congestion the hundredth ACK only completes the round trip.
        law.samples = 3;
        window.count = 100;
        law.on_ack_before_loss_detection(&mut window, &measurement(Span::from_us(199_999)));
        law.on_cwnd_limited_ack(&mut window, &mut Standard, &ack(2));
        assert_eq!((window.cwnd, window.count, law.queued_halves), (101, 101, 101));
    }

    #[test]
    fn outside_of_open_veno_is_reno_and_a_new_flight_forgets_the_base() {
        let (mut law, mut window) = veno(200_000);
        law.on_recovery_state(&mut window, Time::ZERO, RecoveryState::Loss);
        law.on_cwnd_limited_ack(&mut window, &mut Standard, &ack(1));
        assert_eq!(law.queued_halves, 0);
        assert_eq!(law.min_us, Some(200_000), "kept until Veno is back");
        law.on_recovery_state(&mut window, Time::ZERO, RecoveryState::Open);
        assert_eq!((law.min_us, law.base_us), (None, Some(100_000)));
        law.on_flight_start(&mut window, Time::ZERO, Span::ZERO);
        assert_eq!(law.base_us, None);
    }

    /// An ACK that brings no RTT after one that did: Linux's placeholder makes N all of W.
    #[test]
    fn an_ack_without_a_sample_looks_like_a_long_queue() {
        let (mut law, mut window) = veno(100_000);
        law.min_us = None;
        law.on_cwnd_limited_ack(&mut window, &mut Standard, &ack(1));
        assert_eq!(law.queued_halves, 200);
    }
}
