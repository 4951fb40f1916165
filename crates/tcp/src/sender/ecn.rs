//! What a sender makes of ECN: what it offers, what it writes into its packets, and what it is told.

use jostle_control::EcnFeedback;
use jostle_units::Ecn;

use crate::segment::Ack;

/// The sender's side of ECN.
#[derive(Clone, Copy, Debug)]
pub(super) struct EcnState {
    /// How the receiver tells of marks: first what the controller needs, then what was agreed on.
    feedback: EcnFeedback,
    /// Packets that were reported as marked (`delivered_ce`).
    marked: u64,
    /// RFC 3168: CWR is to be set on the next new segment.
    cwr_due: bool,
}

impl EcnState {
    /// What the controller needs.
    pub const fn new(needed: EcnFeedback) -> Self {
        Self { feedback: needed, marked: 0, cwr_due: false }
    }

    /// How the receiver tells of marks.
    #[inline]
    pub const fn feedback(&self) -> EcnFeedback {
        self.feedback
    }

    /// Packets that were reported as marked.
    pub const fn marked(&self) -> u64 {
        self.marked
    }

    /// The handshake is over: whether both sides want ECN.
    pub fn agree(&mut self, wanted: bool) {
        if !wanted {
            self.feedback = EcnFeedback::None;
        } else if self.feedback == EcnFeedback::None {
            self.feedback = EcnFeedback::Classic;
        }
    }

    /// ECN field of a packet; `new`: it is data that was never sent before. RFC 3168 §6.1.5: an
    /// ECT codepoint "MUST NOT" be set on retransmissions; under controllers that need ECN Linux
    /// makes all packets ECN-capable (`tcp_ecn_send`).
    #[inline]
    pub const fn field(&self, new: bool) -> Ecn {
        match self.feedback {
            EcnFeedback::Classic if new => Ecn::Capable,
            EcnFeedback::None | EcnFeedback::Classic => Ecn::NotCapable,
            EcnFeedback::PerPacket => Ecn::Capable,
            EcnFeedback::Counted => Ecn::L4s,
        }
    }

    /// Whether an ACK tells of marked packets.
    #[inline]
    pub const fn reports_marks(&self, ack: &Ack) -> bool {
        match self.feedback {
            EcnFeedback::None => false,
            EcnFeedback::Classic | EcnFeedback::PerPacket => ack.ece,
            EcnFeedback::Counted => ack.newly_marked(self.marked) > 0,
        }
    }

    /// Counts the packets that an ACK reports as marked: with ECE all that it has `delivered`
    /// (`tcp_count_delivered`).
    pub fn count(&mut self, ack: &Ack, delivered: u32) -> u32 {
        let marked = match self.feedback {
            EcnFeedback::Counted => u32::from(ack.newly_marked(self.marked)),
            _ if ack.ece => delivered,
            _ => 0,
        };
        self.marked += u64::from(marked);
        marked
    }

    /// The window was reduced: whether CWR says so (`tcp_ecn_queue_cwr`). With counted marks there is no
    /// such exchange.
    pub const fn on_reduction(&mut self) {
        self.cwr_due = matches!(self.feedback, EcnFeedback::Classic | EcnFeedback::PerPacket);
    }

    /// The reduction was undone (`tcp_ecn_withdraw_cwr`).
    pub const fn withdraw_cwr(&mut self) {
        self.cwr_due = false;
    }

    /// Whether the next new segment carries CWR; the one after it does not.
    #[inline]
    pub const fn take_cwr(&mut self) -> bool {
        std::mem::replace(&mut self.cwr_due, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::fixtures;

    #[test]
    fn what_is_agreed_on_is_what_both_want() {
        let agreed = |needed, wanted| {
            let mut state = EcnState::new(needed);
            state.agree(wanted);
            (state.feedback(), state.field(true), state.field(false))
        };
        let none = (EcnFeedback::None, Ecn::NotCapable, Ecn::NotCapable);
        assert_eq!(agreed(EcnFeedback::Counted, false), none);
        let classic = (EcnFeedback::Classic, Ecn::Capable, Ecn::NotCapable);
        assert_eq!(agreed(EcnFeedback::None, true), classic);
        let dctcp = (EcnFeedback::PerPacket, Ecn::Capable, Ecn::Capable);
        assert_eq!(agreed(EcnFeedback::PerPacket, true), dctcp);
        assert_eq!(agreed(EcnFeedback::Counted, true), (EcnFeedback::Counted, Ecn::L4s, Ecn::L4s));
    }

    #[test]
    fn marks_are_counted_as_they_are_told() {
        let ack = Ack { ece: true, marks: 3, ..fixtures::ack(5, 0, 9, false) };
        let mut classic = EcnState::new(EcnFeedback::Classic);
        assert!(classic.reports_marks(&ack));
        assert_eq!((classic.count(&ack, 2), classic.marked()), (2, 2));
        let mut counted = EcnState::new(EcnFeedback::Counted);
        assert_eq!((counted.count(&ack, 2), counted.marked()), (3, 3));
        assert!(!counted.reports_marks(&ack), "it is known");
    }

    #[test]
    fn cwr_is_said_once_and_not_where_marks_are_counted() {
        let mut state = EcnState::new(EcnFeedback::Classic);
        state.on_reduction();
        assert!(state.take_cwr() && !state.take_cwr());
        state.on_reduction();
        state.withdraw_cwr();
        assert!(!state.take_cwr());
        let mut counted = EcnState::new(EcnFeedback::Counted);
        counted.on_reduction();
        assert!(!counted.take_cwr());
    }
}
