//! BBR's model of the path: rounds, delivery rate, ACK aggregation, and detection of a full pipe.
//! Version 3 uses it, too.
//!
//! Bandwidths are packets per microsecond in 2⁻²⁴ (`BW_SCALE` in Linux), gains are in 256ths.

use jostle_units::{Span, Time};

use jostle_congestion::{AckSample, RateSample, RecoveryState};

/// One in the unit of gains (`BBR_UNIT`).
pub(in crate::algorithms) const GAIN_UNIT: u64 = 256;

const BW_SCALE: u32 = 24;

/// RTT in microseconds that determines the first pacing rate if the handshake gave no RTT.
pub(in crate::algorithms) const NOMINAL_RTT_US: u64 = 1_000;

/// Returns whether the state repairs losses.
pub(in crate::algorithms) fn is_recovery(state: RecoveryState) -> bool {
    matches!(state, RecoveryState::Recovery | RecoveryState::Loss)
}

/// Bandwidth of a delivery-rate sample; none for a sample without a whole microsecond.
pub(in crate::algorithms) fn bandwidth(sample: &RateSample) -> Option<u64> {
    bandwidth_of(u64::from(sample.delivered), sample.interval.as_us())
}

/// Bandwidth of a sample, rounded up (`bbr_calculate_bw_sample` of version 3).
pub(in crate::algorithms) fn bandwidth_rounded_up(sample: &RateSample) -> Option<u64> {
    let interval_us = sample.interval.as_us();
    (interval_us > 0).then(|| (u64::from(sample.delivered) << BW_SCALE).div_ceil(interval_us))
}

/// Bandwidth of `packets` in `interval_us`; none for an empty interval.
pub(in crate::algorithms) fn bandwidth_of(packets: u64, interval_us: u64) -> Option<u64> {
    (packets << BW_SCALE).checked_div(interval_us)
}

/// Whole packets that `bandwidth` delivers in `interval_us`.
pub(in crate::algorithms) fn packets_in(bandwidth: u64, interval_us: u64) -> u64 {
    ((u128::from(bandwidth) * u128::from(interval_us)) >> BW_SCALE) as u64
}

/// `gain` × `bandwidth` × `rtt_us`, rounded up like `tcp_bbr.c::bbr_bdp`: rounding down would
/// reduce the bandwidth again and again.
pub(in crate::algorithms) fn bdp(bandwidth: u64, rtt_us: u64, gain: u64) -> u32 {
    let most = u32::MAX / 2;
    // 64 bits hold twice the packets of a terabit per second over a second.
    let product = bandwidth.checked_mul(rtt_us).and_then(|product| product.checked_mul(gain));
    match product {
        Some(product) => (product >> 8).div_ceil(1 << BW_SCALE).min(u64::from(most)) as u32,
        None => {
            let product = u128::from(bandwidth) * u128::from(rtt_us) * u128::from(gain) / 256;
            product.div_ceil(1 << BW_SCALE).min(u128::from(most)) as u32
        }
    }
}

/// Converts bandwidths to pacing rates.
#[derive(Clone, Copy, Debug)]
pub(in crate::algorithms) struct Pacing {
    pub(in crate::algorithms) mss_bytes: u64,
    pub(in crate::algorithms) margin_percent: u64,
}

/// A change of the packet size: the path's capacity in bytes remains the same.
#[derive(Clone, Copy, Debug)]
pub(in crate::algorithms) struct MssChange {
    from_bytes: u64,
    to_bytes: u64,
}

impl MssChange {
    /// Converts a bandwidth in packets.
    pub(in crate::algorithms) fn bandwidth(self, before: u64) -> u64 {
        let after = u128::from(before) * u128::from(self.from_bytes) / u128::from(self.to_bytes);
        u64::try_from(after).unwrap_or(u64::MAX)
    }
}

impl Pacing {
    /// Changes the payload of a packet to `mss_bytes`.
    pub(in crate::algorithms) fn resize(&mut self, mss_bytes: u32) -> MssChange {
        let to_bytes = u64::from(mss_bytes.max(1));
        MssChange { from_bytes: core::mem::replace(&mut self.mss_bytes, to_bytes), to_bytes }
    }

    /// Bytes per second of payload at `gain` × `bandwidth`, minus the margin.
    pub(in crate::algorithms) fn bytes_per_s(self, bandwidth: u64, gain: u64) -> u64 {
        let per_us = (u128::from(bandwidth) * u128::from(self.mss_bytes) * u128::from(gain)) >> 8;
        let per_s = (per_us * u128::from(10_000 * (100 - self.margin_percent))) >> BW_SCALE;
        u64::try_from(per_s).unwrap_or(u64::MAX)
    }

    /// Bits per second of payload at `bandwidth`, for plots.
    pub(in crate::algorithms) fn bits_per_s(self, bandwidth: u64) -> f64 {
        bandwidth as f64 * self.mss_bytes as f64 * 8e6 / f64::from(1 << BW_SCALE)
    }
}

/// Round trips, counted by packets: a round ends when a packet sent after its start is delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::algorithms) struct Rounds {
    pub(in crate::algorithms) count: u64,
    /// Whether the current ACK started a round.
    pub(in crate::algorithms) started: bool,
    end_delivered: u64,
}

impl Rounds {
    pub(in crate::algorithms) fn on_sample(&mut self, ack: &AckSample) {
        if ack.prior_delivered >= self.end_delivered {
            self.end_delivered = ack.delivered;
            self.count += 1;
            self.started = true;
        }
    }

    /// Starts a round now.
    pub(in crate::algorithms) fn restart(&mut self, delivered: u64) {
        self.end_delivered = delivered;
    }
}

/// The stay in PROBE_RTT: a minimum time and at least one round, both counted from the first small
/// flight.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::algorithms) struct ProbeRtt {
    until: Option<Time>,
    round_done: bool,
}

impl ProbeRtt {
    /// Starts PROBE_RTT.
    pub(in crate::algorithms) fn enter(&mut self) {
        self.until = None;
    }

    /// Processes an ACK. The stay of length `duration` begins when at most `small` packets are in
    /// flight. Returns whether its round has ended.
    pub(in crate::algorithms) fn on_ack(
        &mut self,
        ack: &AckSample,
        small: u32,
        duration: Span,
        rounds: &mut Rounds,
    ) -> bool {
        if self.until.is_some() {
            self.round_done |= rounds.started;
            return self.round_done;
        }
        if ack.in_flight <= small {
            *self = Self { until: Some(ack.now + duration), round_done: false };
            rounds.restart(ack.delivered);
        }
        false
    }

    /// Returns whether the time has passed.
    pub(in crate::algorithms) fn is_over(&self, now: Time) -> bool {
        self.until.is_some_and(|until| now > until)
    }
}

/// ACK aggregation: maximum number of packets acknowledged beyond the bandwidth's share, over the
/// last five to ten rounds (`tcp_bbr.c::bbr_update_ack_aggregation`).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::algorithms) struct AckAggregation {
    epoch_start: Time,
    epoch_acked: u64,
    extra: [u32; 2],
    half: usize,
    half_rounds: u32,
}

impl AckAggregation {
    /// Rounds in each half of the window.
    const HALF_ROUNDS: u32 = 5;
    /// Maximum time whose packets may be added to cwnd.
    const MAX_EXTRA_US: u64 = 100_000;
    /// Maximum number of packets in an epoch before it is restarted.
    const EPOCH_MAX_PACKETS: u64 = 1 << 20;

    pub(in crate::algorithms) fn restart(&mut self, now: Time) {
        self.epoch_start = now;
        self.epoch_acked = 0;
    }

    /// Starts a round. After [`HALF_ROUNDS`](Self::HALF_ROUNDS) rounds the older half of the window
    /// is discarded.
    pub(in crate::algorithms) fn on_round(&mut self) {
        self.age(Self::HALF_ROUNDS);
    }

    /// Starts a round of version 3's Startup, in which only the previous round counts.
    pub(in crate::algorithms) fn on_startup_round(&mut self) {
        self.age(1);
    }

    fn age(&mut self, rounds: u32) {
        self.half_rounds += 1;
        if self.half_rounds >= rounds {
            self.half_rounds = 0;
            self.half ^= 1;
            self.extra[self.half] = 0;
        }
    }

    /// Starts a round and discards all previous rounds.
    pub(in crate::algorithms) fn forget(&mut self) {
        (self.extra, self.half_rounds) = ([0; 2], 0);
    }

    /// Processes `ack`, which acknowledges at least one packet.
    pub(in crate::algorithms) fn on_ack(&mut self, ack: &AckSample, bandwidth: u64, cwnd: u32) {
        let mut expected = packets_in(bandwidth, ack.now.since(self.epoch_start).as_us());
        let acked = u64::from(ack.acked);
        if self.epoch_acked <= expected || self.epoch_acked + acked >= Self::EPOCH_MAX_PACKETS {
            self.restart(ack.now);
            expected = 0;
        }
        self.epoch_acked += acked;
        let extra = (self.epoch_acked - expected).min(u64::from(cwnd)) as u32;
        self.extra[self.half] = self.extra[self.half].max(extra);
    }

    /// Packets to add to cwnd.
    pub(in crate::algorithms) fn allowance(&self, bandwidth: u64) -> u32 {
        let most = packets_in(bandwidth, Self::MAX_EXTRA_US);
        u64::from(self.max_extra()).min(most) as u32
    }

    pub(in crate::algorithms) fn max_extra(&self) -> u32 {
        self.extra[0].max(self.extra[1])
    }
}

/// Full-pipe detection: STARTUP ends when the bandwidth stops growing
/// (`tcp_bbr.c::bbr_check_full_bw_reached`).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::algorithms) struct FullPipe {
    pub(in crate::algorithms) reached: bool,
    bandwidth: u64,
    stalled_rounds: u32,
}

impl FullPipe {
    /// Starts a round without application-limited samples.
    pub(in crate::algorithms) fn on_round(&mut self, bandwidth: u64, growth: u64, rounds: u32) {
        self.on_sample(bandwidth, growth, rounds, true);
    }

    /// Processes a sample that is not application-limited. Growth is detected at each ACK, a lack
    /// of growth once per round.
    pub(in crate::algorithms) fn on_sample(
        &mut self,
        bandwidth: u64,
        growth: u64,
        rounds: u32,
        round_started: bool,
    ) {
        if self.reached {
            return;
        }
        if bandwidth >= (self.bandwidth * growth) >> 8 {
            self.bandwidth = bandwidth;
            self.stalled_rounds = 0;
            return;
        }
        if round_started {
            self.stalled_rounds += 1;
            self.reached = self.stalled_rounds >= rounds;
        }
    }

    /// After a timeout, the next round counts as growth regardless of its rate. A detected full
    /// pipe remains detected.
    pub(in crate::algorithms) fn on_timeout(&mut self) {
        self.bandwidth = 0;
    }

    /// Undoes the effect of spurious congestion.
    pub(in crate::algorithms) fn on_undo(&mut self) {
        self.bandwidth = 0;
        self.stalled_rounds = 0;
    }

    /// Adapts to a new packet size.
    pub(in crate::algorithms) fn resize(&mut self, resize: MssChange) {
        self.bandwidth = resize.bandwidth(self.bandwidth);
    }

    /// Restarts the detection. Growth is measured from `bandwidth`.
    pub(in crate::algorithms) fn restart(&mut self, bandwidth: u64) {
        *self = Self { bandwidth, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::ack;

    /// 50 Mbit/s in packets of 1514 bytes, 4128.1 a second.
    fn link() -> u64 {
        bandwidth(&RateSample { delivered: 4128, interval: Span::from_secs(1) }).unwrap()
    }

    #[test]
    fn bandwidth_is_scaled_by_2_to_the_24() {
        assert_eq!(link(), 4128 * (1 << 24) / 1_000_000);
        let short = RateSample { delivered: 3, interval: Span::from_ns(900) };
        assert_eq!(bandwidth(&short), None);
    }

    #[test]
    fn the_bdp_rounds_up() {
        assert_eq!(bdp(link(), 40_000, 256), 166);
        assert_eq!(bdp(link(), 40_000, 512), 331);
        assert_eq!(bdp(1 << 24, 7, 256), 7);
        assert_eq!(bdp((1 << 24) + 1, 7, 256), 8);
    }

    #[test]
    fn pacing_stays_one_percent_below_the_bandwidth() {
        let pacing = Pacing { mss_bytes: 1448, margin_percent: 1 };
        let rate = pacing.bytes_per_s(link(), GAIN_UNIT);
        let exact = 0.99 * 4128.0 * 1448.0;
        assert!((rate as f64 / exact - 1.0).abs() < 1e-4, "{rate} against {exact}");
        assert_eq!(pacing.bytes_per_s(link(), 512), 2 * rate + 1);
    }

    #[test]
    fn a_round_lasts_until_a_packet_sent_in_it_is_delivered() {
        let mut rounds = Rounds::default();
        let mut starts = Vec::new();
        for delivered in 1..=40u64 {
            // Ten packets are in flight all the time.
            let sample = AckSample {
                delivered,
                prior_delivered: delivered.saturating_sub(10),
                ..ack(delivered)
            };
            rounds.started = false;
            rounds.on_sample(&sample);
            if rounds.started {
                starts.push(delivered);
            }
        }
        assert_eq!(starts, [1, 11, 21, 31]);
        assert_eq!(rounds.count, 4);
    }

    #[test]
    fn the_pipe_is_full_after_three_rounds_without_a_quarter_more() {
        let mut pipe = FullPipe::default();
        for bandwidth in [1000, 1250, 1562] {
            pipe.on_round(bandwidth, 320, 3);
        }
        pipe.on_round(1951, 320, 3);
        pipe.on_round(1951, 320, 3);
        assert!(!pipe.reached, "two rounds are not enough");
        pipe.on_round(1951, 320, 3);
        assert!(pipe.reached);
    }

    #[test]
    fn growth_starts_the_count_anew() {
        let mut pipe = FullPipe::default();
        for bandwidth in [1000, 1100, 1200, 1250, 1300, 1400] {
            pipe.on_round(bandwidth, 320, 3);
        }
        assert!(!pipe.reached);
        pipe.on_round(1500, 320, 3);
        assert!(pipe.reached);
        pipe.on_timeout();
        assert!(pipe.reached, "a timeout does not empty the pipe");
    }

    #[test]
    fn bursts_of_acks_widen_the_window_by_their_excess() {
        let mut aggregation = AckAggregation::default();
        // The bandwidth is one packet a millisecond, but ACKs come eight at a time, 8 ms apart.
        let per_ms = bandwidth_of(1, 1000).unwrap();
        for burst in 0..20u64 {
            let sample =
                AckSample { acked: 8, now: Time::from_ns(burst * 8_000_000), ..ack(8 * burst) };
            if burst % 4 == 0 {
                aggregation.on_round();
            }
            aggregation.on_ack(&sample, per_ms, 1000);
        }
        // What the expected rate does not explain when a burst arrives is the burst itself, or
        // two where the epoch did not end between them (8 packets against 7.99 expected).
        assert!((8..=16).contains(&aggregation.max_extra()), "{}", aggregation.max_extra());
        assert_eq!(aggregation.allowance(per_ms / 1000), 0, "100 ms of a slow link hold nothing");
    }

    #[test]
    fn the_aggregation_window_forgets() {
        let mut aggregation = AckAggregation::default();
        let per_ms = bandwidth_of(1, 1000).unwrap();
        let burst = AckSample { acked: 50, now: Time::from_ns(1_000_000), ..ack(50) };
        aggregation.on_round();
        aggregation.on_ack(&burst, per_ms, 1000);
        for round in 0..10u64 {
            let now = Time::from_ns(1_000_000_000 * (round + 1));
            aggregation.on_round();
            aggregation.on_ack(&AckSample { now, ..ack(51 + round) }, per_ms, 1000);
            let kept = aggregation.max_extra() == 50;
            assert_eq!(kept, round < 8, "after {} rounds", round + 2);
        }
    }
}
