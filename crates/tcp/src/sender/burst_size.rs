//! Burst sizes, and the deferral of small bursts.

use jostle_congestion::RecoveryState;
use jostle_units::{Span, Time};

use super::Sender;
use crate::reciprocal_division::ReciprocalDivisor;

/// `GSO_MAX_SIZE`: maximum burst size of segmentation offload.
const BURST_MAX_BYTES: u64 = 65_536;
/// Maximum payload of a buffer in the socket's write queue (`tcp_xmit_size_goal`: `gso_max_size` −
/// 1 − `MAX_TCP_HEADER`).
const BUFFER_MAX_BYTES: u32 = 65_536 - 1 - 320;
/// `tcp_min_tso_segs`.
const BURST_MIN_SEGMENTS: u32 = 2;
/// `tcp_tso_win_divisor`: a burst below a third of the window may be deferred.
const WINDOW_DIVISOR: u32 = 3;

/// Returns the number of full-sized segments in a buffer of the socket's write queue.
pub(super) const fn buffer_segments(mss_bytes: u16) -> ReciprocalDivisor {
    let fitting = BUFFER_MAX_BYTES / mss_bytes as u32;
    ReciprocalDivisor::new(if fitting == 0 { 1 } else { fitting })
}

impl Sender {
    /// Returns the packets per burst (`tcp_tso_autosize`): the data that the pacing rate sends in
    /// about 1 ms, more on very short paths.
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
        let segments = self.mss.divide(bytes.min(BURST_MAX_BYTES));
        let least = self.controller.min_burst_packets().unwrap_or(BURST_MIN_SEGMENTS);
        let most = self.controller.max_burst_packets().unwrap_or(u32::MAX).max(1);
        (segments as u32).max(least).min(most)
    }

    /// Returns whether to wait for a larger burst because the next ACK is expected soon
    /// (`tcp_tso_should_defer`).
    #[inline]
    pub(super) fn should_defer(
        &self,
        now: Time,
        in_flight: u32,
        offered: u32,
        buffered: u32,
        burst_max: u32,
    ) -> bool {
        if matches!(self.state, RecoveryState::Recovery | RecoveryState::Loss)
            || now.since(self.pacer.departure) > Span::from_ms(1)
            || self.board.outstanding() == 0
        {
            return false;
        }
        let room = self.cwnd.saturating_sub(in_flight);
        let limit = room.min(offered);
        let last_buffer = self.written - self.board.next() <= buffered;
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
