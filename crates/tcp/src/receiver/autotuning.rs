//! Receive-buffer autotuning of Linux: the limit of the receive window follows the data that the
//! application reads (`tcp_input.c::tcp_rcv_space_adjust`).

use jostle_units::Time;

use crate::segment::timestamp_ms;

/// `TCP_INIT_CWND`.
const INITIAL_SEGMENTS: u64 = 10;
/// Segments added to twice the data read (`16 * tp->advmss`).
const CUSHION_SEGMENTS: u64 = 16;
/// Memory overhead of a segment: `MAX_TCP_HEADER`, `sk_buff`, `skb_shared_info`.
const SEGMENT_OVERHEAD_BYTES: u64 = 320 + 256 + 320;

/// Returns the window that Linux offers per segment of data: half of the memory that it assumes for
/// a segment. This memory starts at the true size and grows in steps of 128 bytes until half of it
/// holds the segment (`tcp_input.c::tcp_rcv_space_adjust`): 2,984 / 2 bytes for a segment of 1448
/// bytes.
const fn window_per_segment_bytes(mss_bytes: u64) -> u64 {
    let mut memory_bytes = mss_bytes + SEGMENT_OVERHEAD_BYTES;
    while memory_bytes / 2 < mss_bytes {
        memory_bytes += 128;
    }
    memory_bytes / 2
}

/// Measures how much data the application reads per round trip.
#[derive(Debug)]
pub(super) struct ReceiveBufferAutotuning {
    /// `advmss`.
    mss_bytes: u64,
    window_per_segment_bytes: u64,
    /// Half of `tcp_rmem[2]`.
    most_bytes: u64,
    /// `rcvq_space.space`: maximum amount of data read in a round trip.
    space_bytes: u64,
    /// Data read in the current round trip.
    read_bytes: u64,
    /// `rcvq_space.time`: start of the current round trip. The first one starts with the first
    /// data.
    since: Time,
    /// `rcv_rtt_est.rtt_us`: eight times the receiver's smoothed RTT, in µs.
    rtt_us8: u64,
    /// `rcv_rtt_last_tsecr`.
    echoed_ms: u32,
}

impl ReceiveBufferAutotuning {
    /// `first_bytes`: the window before data arrives.
    pub const fn new(mss_bytes: u64, first_bytes: u64, most_bytes: u64) -> Self {
        let initial = INITIAL_SEGMENTS * mss_bytes;
        Self {
            mss_bytes,
            window_per_segment_bytes: window_per_segment_bytes(mss_bytes),
            most_bytes,
            space_bytes: if first_bytes < initial { first_bytes } else { initial },
            read_bytes: 0,
            since: Time::ZERO,
            rtt_us8: 0,
            echoed_ms: 0,
        }
    }

    /// Measures the RTT from a full-sized segment that echoes `tsecr_ms`
    /// (`tcp_input.c::tcp_rcv_rtt_measure_ts`).
    pub fn on_segment(&mut self, now: Time, tsecr_ms: u32) {
        if tsecr_ms == self.echoed_ms {
            return;
        }
        self.echoed_ms = tsecr_ms;
        let sample_us = u64::from(timestamp_ms(now).saturating_sub(tsecr_ms).max(1)) * 1_000;
        self.rtt_us8 = if self.rtt_us8 == 0 || 8 * sample_us < self.rtt_us8 {
            8 * sample_us
        } else {
            self.rtt_us8 - self.rtt_us8 / 8 + sample_us
        };
    }

    /// Counts `bytes` that the application read. Returns, once per round trip, a new limit of the
    /// window if more was read than in any earlier round trip.
    pub fn on_read(&mut self, now: Time, bytes: u64) -> Option<u64> {
        self.read_bytes += bytes;
        if self.since == Time::ZERO {
            self.since = now;
        }
        if self.rtt_us8 == 0 || now.since(self.since).as_us() < self.rtt_us8 / 8 {
            return None;
        }
        let read = std::mem::take(&mut self.read_bytes);
        self.since = now;
        if read <= self.space_bytes {
            return None;
        }
        // "To cope with packet losses, we need a 2x factor. To cope with slow start, and sender
        // growing its cwin by 100 % every RTT, we need a 4x factor."
        let steady = 2 * read + CUSHION_SEGMENTS * self.mss_bytes;
        let growing = steady.saturating_mul(read - self.space_bytes) / self.space_bytes;
        self.space_bytes = read;
        let segments = steady.saturating_add(growing.saturating_mul(2)) / self.mss_bytes;
        Some(segments.saturating_mul(self.window_per_segment_bytes).min(self.most_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1448;
    const WINDOW_PER_SEGMENT_BYTES: u64 = 2_984 / 2;

    /// Twice the payload at least, and never a step of 128 more than that needs.
    #[test]
    fn half_of_the_memory_of_a_segment_holds_it() {
        assert_eq!(window_per_segment_bytes(SEGMENT), WINDOW_PER_SEGMENT_BYTES);
        assert_eq!(window_per_segment_bytes(524), 710);
        assert_eq!(window_per_segment_bytes(8_948), 8_954);
    }

    const fn ms(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    /// The first round trip brings the initial window and twice as much in the second.
    #[test]
    fn the_window_follows_what_is_read_in_a_round_trip() {
        let mut tuning = ReceiveBufferAutotuning::new(SEGMENT, 65_535, 30_000_000);
        tuning.on_segment(ms(600), 0);
        assert_eq!(tuning.on_read(ms(600), SEGMENT), None, "no RTT is known");
        tuning.on_segment(ms(601), 1);
        assert_eq!(tuning.on_read(ms(601), 9 * SEGMENT), None, "the round trip has begun");
        assert_eq!(tuning.on_read(ms(1_200), 9 * SEGMENT), None, "and is not over");
        // 2 · 20 + 16 = 56 segments; twice as much as before adds 2 · 56 · (20 − 10) / 10 = 112.
        assert_eq!(tuning.on_read(ms(1_201), SEGMENT), Some(168 * WINDOW_PER_SEGMENT_BYTES));
        assert_eq!(tuning.on_read(ms(1_802), 20 * SEGMENT), None, "as much as before");
        // 2 · 25 + 16 = 66, and 2 · 66 · 5 / 20 = 33.
        assert_eq!(tuning.on_read(ms(2_403), 25 * SEGMENT), Some(99 * WINDOW_PER_SEGMENT_BYTES));
        assert_eq!(tuning.on_read(ms(3_004), 25_000 * SEGMENT), Some(30_000_000), "the limit");
    }

    #[test]
    fn rtts_are_smoothed_upwards_and_taken_at_once_downwards() {
        let mut tuning = ReceiveBufferAutotuning::new(SEGMENT, 65_535, 30_000_000);
        tuning.on_segment(ms(700), 101);
        assert_eq!(tuning.rtt_us8, 8 * 600_000);
        tuning.on_segment(ms(1_500), 101);
        assert_eq!(tuning.rtt_us8, 8 * 600_000, "an echo counts once");
        tuning.on_segment(ms(1_600), 201);
        assert_eq!(tuning.rtt_us8, 7 * 600_000 + 1_400_000);
        tuning.on_segment(ms(1_800), 1_301);
        assert_eq!(tuning.rtt_us8, 8 * 500_000);
    }
}
