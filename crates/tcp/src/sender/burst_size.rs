//! Burst sizes, and the deferral of small bursts.

use jostle_units::{Span, Time};

use super::Sender;

/// `GSO_MAX_SIZE`: maximum burst size of segmentation offload.
const BURST_MAX_BYTES: u64 = 65_536;
/// `tcp_min_tso_segs`.
const BURST_MIN_SEGMENTS: u32 = 2;
/// `tcp_tso_win_divisor`: a burst below a third of the window may be deferred.
const WINDOW_DIVISOR: u32 = 3;

impl Sender {
    /// Returns the packets per burst (`tcp_output.c::tcp_tso_autosize`): the data that the pacing
    /// rate sends in about 1 ms, more on very short paths.
    pub(super) fn burst_segments(&self) -> u32 {
        if self.start_is_paced() && self.controller.next_packet_gap().is_some() {
            return 1;
        }
        let mut bytes = self.pacer.rate.as_bytes_per_s() >> 10;
        // `tcp_tso_rtt_log`: gso_max_size, halved per 512 us of minimum RTT.
        let halvings = self.rtt.min_rtt().as_us() >> 9;
        if halvings < 32 && self.options.short_path_bursts {
            bytes = bytes.saturating_add(BURST_MAX_BYTES >> halvings);
        }
        let segments = self.queue.segments_in(bytes.min(BURST_MAX_BYTES));
        let least = self.controller.min_burst_packets().unwrap_or(BURST_MIN_SEGMENTS);
        let most = self.controller.max_burst_packets().unwrap_or(u32::MAX).max(1);
        segments.max(least).min(most)
    }

    /// Returns whether to wait for a larger burst because the next ACK is expected soon
    /// (`tcp_output.c::tcp_tso_should_defer`).
    #[inline]
    pub(super) fn should_defer(
        &self,
        now: Time,
        in_flight: u32,
        offered: u32,
        buffered: u32,
        burst_max: u32,
    ) -> bool {
        if self.recovery.is_repairing()
            || now.since(self.pacer.departure) > Span::from_ms(1)
            || self.board.outstanding() == 0
        {
            return false;
        }
        let room = self.cwnd.saturating_sub(in_flight);
        let limit = room.min(offered);
        let last_buffer = self.queue.end() - self.board.next() <= buffered;
        let first = self.board.first();
        let window = self.cwnd.min(self.offered(first));
        if limit >= burst_max
            || (!last_buffer && limit >= buffered)
            || limit * WINDOW_DIVISOR >= window
        {
            return false;
        }
        let srtt = self.rtt.srtt();
        let expected = self.board.slot(self.board.first()).stamp.sent_at + srtt;
        let patience = srtt.mul_div(1, 2).min(Span::from_ms(1));
        expected.since(now) <= patience
    }
}
