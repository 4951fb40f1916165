//! StopEG: ends slow start by the share of packets on the forward path.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Span, Time};

use super::algorithm::SlowStart;
use crate::cwnd::CongestionWindow;
use crate::registry_rows::SlowStartEntry;
use jostle_congestion::{AckSample, EstablishedEvent, RawAckSample};

/// Default share of the flight on the forward path above which growth stops. The abstract of the
/// paper has 0.568, but ideal doubling has 2 − √2 = 0.586.
pub(crate) const DEFAULT_THRESHOLD: f64 = 0.60;

pub(crate) const ROW: SlowStartEntry = SlowStartEntry {
    entry: RegistryEntry {
        name: "stopeg",
        summary: "ends when a large share of the data in flight is on the forward path",
        class: "window",
        based_on: &["standard"],
        source: "Arghavani et al., \"StopEG: Detecting when to stop exponential growth in TCP \
                 slow-start\", IEEE LCN 2020",
        parameters: &[Parameter::number("threshold", DEFAULT_THRESHOLD, 0.5..=1.0).summary(
            "share of the data in flight on the forward path above which slow start ends",
        )],
    },
    build: |values| Box::new(StopEg::new(values)),
};

/// Measures the share of a flight that was still on the forward path, or in the bottleneck's queue,
/// at the start of the measurement.
///
/// On an unloaded symmetric path, packets acknowledged within half a minimum RTT had arrived at the
/// start: their ACKs were in flight. The rest, f = 1 − R/N₀, had not. While a perfectly paced
/// sender doubles per round trip, f = 2 − √2 = 0.586. A full bottleneck with a queue of Q
/// acknowledges half a BDP in this time, so that f = 1 − ½ / (1 + Q/BDP) rises towards 1.
///
/// A measurement only begins at the start of a round trip: an early start-up sends its flight in a
/// part of the round trip, and the gap after it would look like a full path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ForwardPathShare {
    start: Option<Start>,
}

#[derive(Clone, Copy, Debug)]
struct Start {
    at: Time,
    acked: u64,
    in_flight: u32,
}

impl ForwardPathShare {
    /// Starts a measurement at the start of a round trip, with `in_flight` packets in flight and
    /// `acked` packets acknowledged since the connection began.
    #[inline]
    pub(crate) fn start(&mut self, now: Time, acked: u64, in_flight: u32) {
        self.start = (in_flight > 0).then_some(Start { at: now, acked, in_flight });
    }

    /// Processes the number of packets acknowledged so far. Returns the share after half of
    /// `min_rtt` since the start. The ACK that reaches this time is included, because a rounding
    /// error must not stop growth.
    #[inline]
    pub(crate) fn finish(&mut self, now: Time, acked: u64, min_rtt: Span) -> Option<f64> {
        let start = self.start?;
        if now < start.at + min_rtt.mul_div(1, 2) {
            return None;
        }
        self.start = None;
        let arrived = acked.saturating_sub(start.acked) as f64;
        Some((1.0 - arrived / f64::from(start.in_flight)).max(0.0))
    }
}

/// Standard slow start that ends if `ForwardPathShare` exceeds a threshold.
#[derive(Clone, Debug)]
pub struct StopEg {
    threshold: f64,
    min_rtt: Option<Span>,
    /// `snd_nxt` when the round began: its acknowledgement ends the round.
    round_end: u64,
    share: ForwardPathShare,
}

impl StopEg {
    /// Creates StopEG with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            threshold: values.number("threshold"),
            min_rtt: None,
            round_end: 0,
            share: ForwardPathShare::default(),
        }
    }
}

impl SlowStart for StopEg {
    fn on_established(&mut self, _window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.min_rtt = established.rtt;
    }

    fn on_ack_before_loss_detection(
        &mut self,
        window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        if let Some(rtt) = measurement.rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        }
        let Some(min_rtt) = self.min_rtt else { return };
        if !window.in_slow_start() {
            return;
        }
        let (now, acked) = (measurement.now, measurement.first_unacked);
        if let Some(share) = self.share.finish(now, acked, min_rtt)
            && share > self.threshold
        {
            window.ssthresh = window.cwnd;
        }
        if acked > self.round_end {
            self.round_end = measurement.next_to_send;
            let in_flight = measurement.next_to_send.saturating_sub(acked);
            self.share.start(now, acked, u32::try_from(in_flight).unwrap_or(u32::MAX));
        }
    }

    fn grow(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> u32 {
        window.slow_start(ack.acked)
    }

    fn on_timeout(&mut self, _now: Time, next_to_send: u64) {
        // The acknowledgement times of packets retransmitted by the timeout have no meaning.
        self.round_end = next_to_send;
        self.share = ForwardPathShare::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    const RTT: Span = Span::from_ms(100);

    fn seconds(s: f64) -> Time {
        Time::ZERO + Span::from_secs_f64(s)
    }

    /// The share of a fluid of which `sent(t)` has left at t and `acked(t)` is acknowledged,
    /// measured from `t` on with an ACK every 10 µs.
    fn share_of(sent: impl Fn(f64) -> f64, acked: impl Fn(f64) -> f64, t: f64) -> f64 {
        let mut share = ForwardPathShare::default();
        share.start(seconds(t), acked(t) as u64, (sent(t) - acked(t)) as u32);
        for i in 0.. {
            let now = t + f64::from(i) * 1e-5;
            if let Some(found) = share.finish(seconds(now), acked(now) as u64, RTT) {
                return found;
            }
        }
        f64::NAN
    }

    /// algorithms.md: ideal doubling gives 2 − √2 = 0.586 ± 0.01, whenever it is measured; a growth
    /// of g per round trip 1 / (1 + 1/√g).
    #[test]
    fn doubling_leaves_586_permille_on_the_forward_path() {
        for (growth, expected) in [(2.0, 0.5858), (1.7320508, 0.5682), (1.0001, 0.5)] {
            for t in [1.0, 1.013, 1.05, 1.08] {
                let sent = |t: f64| 1e6 * libm::pow(growth, (t - 1.0) / 0.1);
                let share = share_of(sent, |t| sent(t - 0.1), t);
                assert!((share - expected).abs() < 0.01, "{share} at growth {growth}");
            }
        }
    }

    /// f = 1 − ½ / (1 + Q/BDP): 0.60 at Q = 0.25 BDP, 0.568 at 0.16.
    #[test]
    fn a_standing_queue_shows_in_the_share() {
        for (queue, expected) in [(0.0, 0.5), (0.16, 0.569), (0.25, 0.6), (1.0, 0.75)] {
            let rate = 1e6;
            let acked = |t: f64| rate * t;
            let share = share_of(|t| rate * (t + 0.1 * (1.0 + queue)), acked, 1.0);
            assert!((share - expected).abs() < 0.002, "{share} with {queue} BDP");
        }
    }

    fn stopeg(threshold: f64) -> StopEg {
        let given = BTreeMap::from([(
            "threshold".into(),
            jostle_registry::ParameterValue::Number(threshold),
        )]);
        StopEg::new(&ROW.entry.resolve(&given).unwrap())
    }

    /// algorithms.md: with θ = 0.60 slow start ends at a queue of 0.2 to 0.5 BDP; here one that
    /// grows by a tenth of a BDP per round trip, since a measurement takes half a round trip and
    /// comes once in one.
    #[test]
    fn slow_start_ends_at_a_fifth_to_half_a_bdp() {
        for (threshold, least, most) in [(0.568, 0.1, 0.4), (0.60, 0.2, 0.5), (0.65, 0.38, 0.65)] {
            let mut stopeg = stopeg(threshold);
            let mut window = CongestionWindow { cwnd: 1000, ..CongestionWindow::default() };
            stopeg.min_rtt = Some(RTT);
            let bdp = 1000.0;
            let mut ended = None;
            // An ACK every 0.1 ms; the queue grows by a tenth of what is sent.
            for acked in 1..20_000u64 {
                let now = seconds(acked as f64 * 1e-4);
                let queue = 0.1 * acked as f64 / bdp;
                stopeg.on_ack_before_loss_detection(
                    &mut window,
                    &RawAckSample {
                        now,
                        rtt: Some(RTT.saturating_add(Span::from_secs_f64(0.1 * queue))),
                        packets: 1,
                        first_unacked: acked,
                        next_to_send: acked + (bdp * (1.0 + queue)) as u64,
                        ..RawAckSample::default()
                    },
                );
                if !window.in_slow_start() {
                    ended = Some(queue);
                    break;
                }
            }
            let queue = ended.unwrap();
            assert!((least..most).contains(&queue), "left at {queue} BDP with {threshold}");
        }
    }

    #[test]
    fn a_timeout_starts_anew() {
        let mut stopeg = stopeg(0.6);
        stopeg.share.start(Time::ZERO, 0, 100);
        stopeg.on_timeout(seconds(1.0), 500);
        assert!(stopeg.share.start.is_none());
        assert_eq!(stopeg.round_end, 500);
    }
}
