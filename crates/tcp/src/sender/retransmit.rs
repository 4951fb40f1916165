//! Retransmission of lost segments, and of the last segment as a loss probe.

use jostle_congestion::PacketDeliveryState;
use jostle_units::{HEADER_BYTES, Time};

use super::scoreboard::Scoreboard;
use super::timers::PendingTimer;
use super::{Connection, SegmentSink, Sender, timestamp_ms};

impl Sender {
    /// Retransmits segments marked lost, lowest first (`tcp_output.c::tcp_xmit_retransmit_queue`).
    pub(super) fn retransmit_lost(&mut self, now: Time, out: &mut impl SegmentSink) {
        if self.connection != Connection::Established {
            return;
        }
        while self.board.in_flight() < self.cwnd {
            let Some(number) = self.board.next_lost() else { return };
            if !self.fits_window(number) {
                return;
            }
            // "factor 1" of `tcp_output.c::tcp_small_queue_check`: retransmissions may queue twice
            // as much data.
            if self.must_wait(now) || self.host_queue_is_full(1, 2, out) {
                return;
            }
            let first = number == self.board.first();
            self.retransmit(now, number, out);
            self.recovery.note_sent(1);
            if first && self.pending != PendingTimer::Reordering {
                self.restart_rto(now);
            }
        }
    }

    /// Returns whether the receive window allows the retransmission of `number`. Segments beyond
    /// the window may not be retransmitted, except for the first segment, which then probes the
    /// window (`tcp_output.c::__tcp_retransmit_skb`).
    #[inline]
    pub(super) fn fits_window(&self, number: u32) -> bool {
        number < self.peer_window.end || number == self.board.first()
    }

    /// Retransmits `number` (`tcp_output.c::tcp_retransmit_skb`).
    pub(super) fn retransmit(&mut self, now: Time, number: u32, out: &mut impl SegmentSink) {
        self.send_retransmission(now, number, out, |board, stamp| board.retransmit(number, stamp));
        self.recovery.undo.note_retransmission(timestamp_ms(now));
    }

    /// Retransmits the last outstanding segment as a loss probe. It is not counted as a
    /// retransmission in flight.
    pub(super) fn retransmit_last(&mut self, now: Time, out: &mut impl SegmentSink) {
        let number = self.board.next() - 1;
        self.send_retransmission(now, number, out, |board, stamp| board.probe(number, stamp));
    }

    fn send_retransmission(
        &mut self,
        now: Time,
        number: u32,
        out: &mut impl SegmentSink,
        record: impl FnOnce(&mut Scoreboard, PacketDeliveryState),
    ) {
        let prior_in_flight = self.board.in_flight();
        let payload = self.board.slot(number).payload;
        let departure = self.pacer.depart(now);
        let stamp = self.sampler.on_send(departure, false, prior_in_flight + 1);
        record(&mut self.board, stamp);
        out.note_sent(now, 1, u64::from(HEADER_BYTES) + u64::from(payload), true);
        let segment = self.data(now, number, payload, false);
        out.transmit(now, segment, self.ecn.field(false));
        self.total_retransmitted += 1;
        self.account(now, 1, prior_in_flight);
        self.pace(departure, u64::from(payload));
    }
}
