//! Processing of received ECN fields according to the negotiated feedback.

use jostle_congestion::EcnFeedback;
use jostle_units::{Ecn, Time};

use super::Receiver;
use crate::segment::Ack;

impl Receiver {
    /// Records the ECN field of a data segment (`tcp_input.c::__tcp_ecn_check_ce`). Returns whether
    /// an ACK must be sent before the ACK of this segment. `in_order`: no data is missing before
    /// the segment.
    #[inline]
    pub(super) fn note_mark(&mut self, now: Time, ecn: Ecn, in_order: bool) -> bool {
        match self.feedback {
            EcnFeedback::None => false,
            _ => self.on_ce_mark(now, ecn, in_order),
        }
    }

    /// Returns the ACK that a mark caused, to be sent before the ACK of the segment.
    #[cold]
    pub fn take_immediate_ack(&mut self) -> Option<Ack> {
        self.early.take()
    }

    fn on_ce_mark(&mut self, now: Time, ecn: Ecn, in_order: bool) -> bool {
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
            (EcnFeedback::DctcpEcho, _) => early = self.echo(now, marked, in_order),
            (EcnFeedback::AccEcn, _) => self.count(marked),
            _ => {}
        }
        self.ecn_seen |= ecn != Ecn::NotCapable;
        early
    }

    /// RFC 8257 §3.2: sends an immediate ACK if a marked packet follows an unmarked packet or vice
    /// versa. A delayed ACK is sent first and reports the previous state
    /// (`tcp_dctcp.h::dctcp_ece_ack_update`).
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
                self.early = Some(self.build_ack(now));
                early = true;
            }
            self.at_once = true;
        }
        self.marked = marked;
        self.ece = marked;
        early
    }

    /// Change-triggered ACKs of RFC 9768: the first mark after an unmarked packet is reported
    /// immediately. (Increment-triggered ACKs are due after two more marks, but two segments cause
    /// an ACK anyway.)
    fn count(&mut self, marked: bool) {
        self.marks += u64::from(marked);
        self.at_once |= marked && !self.marked;
        self.marked = marked;
    }
}
