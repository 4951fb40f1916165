//! ECN of the sender: negotiation, codepoints of packets, and the count of reported marks.

use jostle_congestion::EcnFeedback;
use jostle_units::Ecn;

use crate::segment::Ack;

/// ECN state of the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct EcnState {
    /// Kind of ECN feedback: the kind that the controller requires before the handshake, the
    /// negotiated kind afterwards.
    feedback: EcnFeedback,
    /// Number of packets reported as marked (`delivered_ce`).
    marked: u64,
    /// RFC 3168: whether the next new segment carries CWR.
    cwr_due: bool,
}

impl EcnState {
    /// `needed`: the feedback that the controller requires.
    pub const fn new(needed: EcnFeedback) -> Self {
        Self { feedback: needed, marked: 0, cwr_due: false }
    }

    /// Returns the kind of ECN feedback.
    #[inline]
    pub const fn feedback(&self) -> EcnFeedback {
        self.feedback
    }

    /// Returns the number of packets reported as marked.
    pub const fn marked(&self) -> u64 {
        self.marked
    }

    /// Ends the negotiation. `wanted`: both ends support ECN.
    pub fn agree(&mut self, wanted: bool) {
        if !wanted {
            self.feedback = EcnFeedback::None;
        } else if self.feedback == EcnFeedback::None {
            self.feedback = EcnFeedback::Classic;
        }
    }

    /// Returns the ECN field of a packet. `new`: the packet contains data sent for the first time.
    /// RFC 3168 §6.1.5: an ECT codepoint "MUST NOT" be set on retransmissions. Under controllers
    /// that require ECN, Linux makes all packets ECN-capable (`tcp_ecn_send`).
    #[inline]
    pub const fn field(&self, new: bool) -> Ecn {
        match self.feedback {
            EcnFeedback::Classic if new => Ecn::Capable,
            EcnFeedback::None | EcnFeedback::Classic => Ecn::NotCapable,
            EcnFeedback::DctcpEcho => Ecn::Capable,
            EcnFeedback::AccEcn => Ecn::L4s,
        }
    }

    /// Returns whether an ACK reports marked packets.
    #[inline]
    pub const fn reports_marks(&self, ack: &Ack) -> bool {
        match self.feedback {
            EcnFeedback::None => false,
            EcnFeedback::Classic | EcnFeedback::DctcpEcho => ack.ece,
            EcnFeedback::AccEcn => ack.newly_marked(self.marked) > 0,
        }
    }

    /// Counts the packets that an ACK reports as marked. With ECE, these are all packets that it
    /// `delivered` (`tcp_count_delivered`).
    pub fn count(&mut self, ack: &Ack, delivered: u32) -> u32 {
        let marked = match self.feedback {
            EcnFeedback::AccEcn => u32::from(ack.newly_marked(self.marked)),
            _ if ack.ece => delivered,
            _ => 0,
        };
        self.marked += u64::from(marked);
        marked
    }

    /// Schedules CWR after a reduction of the window (`tcp_ecn_queue_cwr`). AccECN does not use
    /// CWR.
    pub const fn on_reduction(&mut self) {
        self.cwr_due = matches!(self.feedback, EcnFeedback::Classic | EcnFeedback::DctcpEcho);
    }

    /// Cancels CWR after an undo (`tcp_ecn_withdraw_cwr`).
    pub const fn withdraw_cwr(&mut self) {
        self.cwr_due = false;
    }

    /// Returns whether the next new segment carries CWR, and clears the flag.
    #[inline]
    pub const fn take_cwr(&mut self) -> bool {
        std::mem::replace(&mut self.cwr_due, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::test_support;

    #[test]
    fn what_is_agreed_on_is_what_both_want() {
        let agreed = |needed, wanted| {
            let mut state = EcnState::new(needed);
            state.agree(wanted);
            (state.feedback(), state.field(true), state.field(false))
        };
        let none = (EcnFeedback::None, Ecn::NotCapable, Ecn::NotCapable);
        assert_eq!(agreed(EcnFeedback::AccEcn, false), none);
        let classic = (EcnFeedback::Classic, Ecn::Capable, Ecn::NotCapable);
        assert_eq!(agreed(EcnFeedback::None, true), classic);
        let dctcp = (EcnFeedback::DctcpEcho, Ecn::Capable, Ecn::Capable);
        assert_eq!(agreed(EcnFeedback::DctcpEcho, true), dctcp);
        assert_eq!(agreed(EcnFeedback::AccEcn, true), (EcnFeedback::AccEcn, Ecn::L4s, Ecn::L4s));
    }

    #[test]
    fn marks_are_counted_as_they_are_told() {
        let ack = Ack { ece: true, marks: 3, ..test_support::ack(5, 0, 9, false) };
        let mut classic = EcnState::new(EcnFeedback::Classic);
        assert!(classic.reports_marks(&ack));
        assert_eq!((classic.count(&ack, 2), classic.marked()), (2, 2));
        let mut counted = EcnState::new(EcnFeedback::AccEcn);
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
        let mut counted = EcnState::new(EcnFeedback::AccEcn);
        counted.on_reduction();
        assert!(!counted.take_cwr());
    }
}
