//! What a receiver makes of the ECN fields that arrive, by the feedback that was agreed on.

use jostle_control::EcnFeedback;
use jostle_units::{Ecn, Time};

use super::Receiver;
use crate::segment::Ack;

impl Receiver {
    /// Takes note of a data segment's ECN field (`__tcp_ecn_check_ce`): whether an ACK is due before
    /// the segment's own. `in_order`: nothing is missing before the segment.
    #[inline]
    pub(super) fn note_mark(&mut self, now: Time, ecn: Ecn, in_order: bool) -> bool {
        match self.feedback {
            EcnFeedback::None => false,
            _ => self.take_mark(now, ecn, in_order),
        }
    }

    /// The ACK that a mark has brought about before the segment's own.
    #[cold]
    pub fn take_early(&mut self) -> Option<Ack> {
        self.early.take()
    }

    fn take_mark(&mut self, now: Time, ecn: Ecn, in_order: bool) -> bool {
        let marked = ecn == Ecn::Marked;
        let mut early = false;
        match (self.feedback, ecn) {
            // Probably a retransmission.
            (_, Ecn::NotCapable) if self.ecn_seen => self.enter_quick_mode(2),
            (_, Ecn::NotCapable) => {}
            // RFC 3168 §6.1.3.
            (EcnFeedback::Classic, _) if marked && !self.ece => {
                self.ece = true;
                self.enter_quick_mode(2);
            }
            (EcnFeedback::PerPacket, _) => early = self.echo(now, marked, in_order),
            (EcnFeedback::Counted, _) => self.count(marked),
            _ => {}
        }
        self.ecn_seen |= ecn != Ecn::NotCapable;
        early
    }

    /// RFC 8257 §3.2: an immediate ACK whenever marked packets follow unmarked ones, or the other
    /// way round. If an ACK was delayed it goes first, and tells what came before
    /// (`dctcp_ece_ack_update`).
    fn echo(&mut self, now: Time, marked: bool, in_order: bool) -> bool {
        let mut early = false;
        if marked != self.marked {
            if self.delayed < Time::NEVER {
                self.ece = self.marked;
                if in_order {
                    self.report();
                } else {
                    self.acknowledge();
                }
                self.early = Some(self.answer(now));
                early = true;
            }
            self.at_once = true;
        }
        self.marked = marked;
        self.ece = marked;
        early
    }

    /// RFC 9768, its change-triggered ACKs: the first mark after an unmarked packet is told at once.
    /// (Its increment-triggered ones are due after two more marks: two segments get an ACK anyway.)
    fn count(&mut self, marked: bool) {
        self.marks += u64::from(marked);
        self.at_once |= marked && !self.marked;
        self.marked = marked;
    }
}
