//! RACK (RFC 8985): a packet is lost if one sent sufficiently later was delivered.

use jostle_units::{Span, Time};

use super::Sender;
use super::scoreboard::{LossDecision, SentSegment};

/// `TCP_RACK_RECOVERY_THRESH`: number of recoveries for which a larger reordering window is kept.
const PERSIST: u32 = 16;

/// Observed reordering.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reordering {
    /// `reordering`: maximum distance in packets.
    degree: u32,
    seen: bool,
}

impl Default for Reordering {
    fn default() -> Self {
        Self { degree: Self::INITIAL, seen: false }
    }
}

impl Reordering {
    /// `net.ipv4.tcp_reordering`.
    const INITIAL: u32 = 3;
    /// `net.ipv4.tcp_max_reordering`.
    const MAX: u32 = 300;

    #[inline]
    pub const fn degree(&self) -> u32 {
        self.degree
    }

    #[inline]
    pub const fn is_seen(&self) -> bool {
        self.seen
    }

    /// Returns whether more reordering was observed than every flow assumes.
    #[inline]
    pub const fn is_high(&self) -> bool {
        self.degree > Self::INITIAL
    }

    /// Discards the observed distance after a timeout.
    pub const fn reset(&mut self) {
        self.degree = Self::INITIAL;
    }

    /// Records that segment `low` was delivered after segments up to `highest_sacked`
    /// (`tcp_input.c::tcp_check_sack_reordering`).
    pub fn note(&mut self, low: u32, highest_sacked: u32) {
        if low < highest_sacked {
            self.degree = self.degree.max((highest_sacked - low).min(Self::MAX));
            self.seen = true;
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// Send time of the most recently sent packet among those delivered (`RACK.xmit_ts`), and its
    /// end.
    sent_at: Time,
    end: u32,
    /// RTT of that packet (`RACK.rtt`).
    rtt: Span,
    /// Whether a packet was delivered since the last loss detection.
    pub advanced: bool,
    /// Reordering window in quarters of the minimum RTT; 0 means 1.
    steps: u32,
    pub persist: u32,
    pub duplicate_seen: bool,
    last_delivered: u64,
}

impl Rack {
    /// RFC 8985 §6.2 step 2 "Update the state for the most recently sent segment that has been
    /// delivered" (`tcp_recovery.c::tcp_rack_advance`).
    #[inline]
    pub fn advance(&mut self, now: Time, slot: &SentSegment, end: u32, min_rtt: Span) {
        let rtt = now.since(slot.stamp.sent_at);
        if rtt < min_rtt && slot.ever_retransmitted() {
            // The ACK is too early for the retransmission.
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        if (slot.stamp.sent_at, end) > (self.sent_at, self.end) {
            (self.sent_at, self.end) = (slot.stamp.sent_at, end);
        }
    }

    /// Increases the reordering window after a round that reported a duplicate
    /// (`tcp_recovery.c::tcp_rack_update_reo_wnd`). `prior_delivered`: value for the newest packet
    /// of this ACK.
    #[inline]
    pub fn update_window(&mut self, prior_delivered: u64, delivered: u64) {
        if prior_delivered < self.last_delivered {
            self.duplicate_seen = false;
        }
        if self.duplicate_seen {
            self.steps = (self.steps.max(1) + 1).min(255);
            self.duplicate_seen = false;
            self.last_delivered = delivered;
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    pub fn note_recovery_undone(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }
}

impl Sender {
    /// Returns the time by which a packet may be late (`tcp_recovery.c::tcp_rack_reo_wnd`,
    /// RFC 8985 §6.2 step 4).
    pub(super) fn reordering_window(&self) -> Span {
        if !self.reordering.is_seen()
            && (self.recovery.is_repairing() || self.board.sacked() >= self.reordering.degree())
        {
            return Span::ZERO;
        }
        let steps = u64::from(self.rack.steps.max(1));
        self.rtt.min_rtt().mul_div(steps, 4).min(self.rtt.srtt())
    }

    /// Marks the packets lost that RACK considers lost. If packets are late but within the
    /// reordering window, returns the time until the latest of them is lost.
    pub(super) fn detect_losses(&mut self, now: Time) -> Option<Span> {
        let window = self.reordering_window();
        let rack = self.rack;
        let patience = rack.rtt + window;
        let waiting = self.board.detect_lost(|number, slot| {
            let sent_at = slot.stamp.sent_at;
            if (sent_at, number + 1) >= (rack.sent_at, rack.end) {
                LossDecision::Later
            } else if now.since(sent_at) >= patience {
                LossDecision::Lost
            } else {
                LossDecision::Wait
            }
        });
        self.report_lost_packets(now);
        waiting.map(|latest| patience - now.since(latest))
    }

    /// After a timeout, marks all outstanding packets lost except those that RACK does not yet
    /// consider lost (RFC 8985 §6.3, `tcp_input.c::tcp_timeout_mark_lost`).
    pub(super) fn mark_timed_out(&mut self, now: Time) {
        let rack = self.rack;
        let first = self.board.first();
        self.board.mark_lost_where(|number, slot| {
            number == first || now.since(slot.stamp.sent_at) >= rack.rtt
        });
        self.report_lost_packets(now);
    }

    /// Reports each newly lost packet to the controller.
    fn report_lost_packets(&mut self, now: Time) {
        let mut lost = self.board.take_newly_lost();
        for &number in &lost {
            let stamp = &self.board.slot(number).stamp;
            let packet = self.sampler.on_packet_lost(now, stamp, u64::from(number));
            self.controller.on_packet_lost(&packet);
        }
        lost.clear();
        self.board.return_newly_lost(lost);
    }
}

#[cfg(test)]
mod tests {
    use jostle_congestion::PacketDeliveryState;

    use super::*;
    use crate::sender::scoreboard::Scoreboard;

    const MIN_RTT: Span = Span::from_ms(40);

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// Advances `rack` by segment 0, sent at `sent_ms` and delivered at `now_ms`.
    fn deliver(rack: &mut Rack, sent_ms: u64, now_ms: u64, end: u32, retransmitted: bool) {
        let mut stamp = PacketDeliveryState::default();
        stamp.sent_at = ms(sent_ms);
        let mut board = Scoreboard::default();
        board.push(stamp, 1448);
        if retransmitted {
            board.retransmit(0, stamp);
        }
        rack.advance(ms(now_ms), board.slot(0), end, MIN_RTT);
    }

    /// RFC 8985 §6.2 step 2: an ACK within the minimum RTT is not of the retransmission.
    #[test]
    fn a_retransmission_counts_from_the_minimum_rtt_on() {
        for (rtt_ms, retransmitted, counts) in
            [(39, true, false), (40, true, true), (41, true, true), (39, false, true)]
        {
            let mut rack = Rack::default();
            deliver(&mut rack, 10, 10 + rtt_ms, 1, retransmitted);
            let expected = if counts {
                (Span::from_ms(rtt_ms), ms(10), 1)
            } else {
                (Span::ZERO, Time::ZERO, 0)
            };
            assert_eq!((rack.rtt, rack.sent_at, rack.end), expected, "{rtt_ms} ms");
            assert_eq!(rack.advanced, counts);
        }
    }

    /// RFC 8985 §6.2 step 2: the end decides between packets sent at the same time.
    #[test]
    fn the_packet_sent_last_is_kept() {
        let mut rack = Rack::default();
        for (sent_ms, end, expected) in [
            (10, 5, (10, 5)),
            (9, 8, (10, 5)),
            (10, 4, (10, 5)),
            (10, 6, (10, 6)),
            (11, 2, (11, 2)),
        ] {
            deliver(&mut rack, sent_ms, 60, end, false);
            assert_eq!((rack.sent_at, rack.end), (ms(expected.0), expected.1));
        }
    }

    /// RFC 8985 §6.2 step 4: at most one increase per round, kept for 16 recoveries.
    #[test]
    fn the_window_grows_once_per_round_with_a_duplicate() {
        let mut rack = Rack { duplicate_seen: true, ..Rack::default() };
        rack.update_window(0, 100);
        assert_eq!((rack.steps, rack.persist, rack.last_delivered), (2, 16, 100));
        rack.duplicate_seen = true;
        rack.update_window(99, 110);
        assert_eq!((rack.steps, rack.duplicate_seen), (2, false), "the same round");
        rack.duplicate_seen = true;
        rack.update_window(100, 110);
        assert_eq!((rack.steps, rack.last_delivered), (3, 110));
        rack.persist = 1;
        rack.update_window(110, 120);
        assert_eq!(rack.steps, 3);
        rack.persist = 0;
        rack.update_window(110, 120);
        assert_eq!(rack.steps, 1);
    }

    /// `tcp_input.c::tcp_check_sack_reordering`: the distance grows only, from 3 to 300 segments.
    #[test]
    fn reordering_is_high_above_three_segments() {
        let mut reordering = Reordering::default();
        for (low, highest_sacked, degree, seen, high) in [
            (7, 7, 3, false, false),
            (8, 7, 3, false, false),
            (4, 7, 3, true, false),
            (3, 7, 4, true, true),
            (6, 7, 4, true, true),
            (7, 700, 300, true, true),
        ] {
            reordering.note(low, highest_sacked);
            let state = (reordering.degree(), reordering.is_seen(), reordering.is_high());
            assert_eq!(state, (degree, seen, high), "{low} after {highest_sacked}");
        }
        reordering.reset();
        assert!(reordering.is_seen() && !reordering.is_high(), "after a timeout");
    }

    #[test]
    fn an_undone_recovery_does_not_count() {
        let mut rack = Rack { persist: 14, ..Rack::default() };
        for persist in [15, 16, 16] {
            rack.note_recovery_undone();
            assert_eq!(rack.persist, persist);
        }
    }
}
