//! What is sent again: segments marked lost, and the last one as a loss probe.

use jostle_control::SendStamp;
use jostle_units::{HEADER_BYTES, Time};

use super::scoreboard::Scoreboard;
use super::timers::Pending;
use super::{Connection, Egress, Sender, timestamp_ms};

impl Sender {
    /// Retransmits what is marked lost, lowest first (`tcp_xmit_retransmit_queue`).
    pub(super) fn retransmit_lost(&mut self, now: Time, out: &mut impl Egress) {
        if self.connection != Connection::Established {
            return;
        }
        while self.board.in_flight() < self.cwnd {
            let Some(number) = self.board.next_lost() else { return };
            if !self.fits_window(number) {
                return;
            }
            // "factor 1" of `tcp_small_queue_check`: repairs may queue twice as much.
            if self.must_wait(now) || self.host_queue_is_full(1, 2, out) {
                return;
            }
            let first = number == self.board.first();
            self.retransmit(now, number, out);
            if self.in_reduction() {
                self.reduction.note_sent(1);
            }
            if first && self.pending != Pending::Reordering {
                self.restart_rto(now);
            }
        }
    }

    /// Whether `number` may be sent again as far as the receiver is concerned: what was sent beyond
    /// its window may not, but for the first, which then probes the window (`__tcp_retransmit_skb`).
    #[inline]
    pub(super) fn fits_window(&self, number: u32) -> bool {
        number < self.peer_window.end || number == self.board.first()
    }

    /// Sends `number` again (`tcp_retransmit_skb`).
    pub(super) fn retransmit(&mut self, now: Time, number: u32, out: &mut impl Egress) {
        self.send_again(now, number, out, |board, stamp| board.retransmit(number, stamp));
        self.undo.note_retransmission(timestamp_ms(now));
    }

    /// Sends the last outstanding segment again as a loss probe: not counted as a retransmission
    /// in flight.
    pub(super) fn retransmit_last(&mut self, now: Time, out: &mut impl Egress) {
        let number = self.board.next() - 1;
        self.send_again(now, number, out, |board, stamp| board.probe(number, stamp));
    }

    fn send_again(
        &mut self,
        now: Time,
        number: u32,
        out: &mut impl Egress,
        record: impl FnOnce(&mut Scoreboard, SendStamp),
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
