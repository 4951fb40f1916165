//! ECN of the sender: negotiation, codepoints of packets, and the count of reported marks.

use jostle_congestion::EcnFeedback;
use jostle_units::Ecn;

use crate::segment::{AccEcnFeedback, Ack};

/// The ACE field has three bits.
const ACE_MODULUS: u32 = 8;

/// ECN state of the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct EcnState {
    /// Kind of ECN feedback: the kind that the controller requires before the handshake, the
    /// negotiated kind afterwards.
    feedback: EcnFeedback,
    /// Number of packets reported as marked (`delivered_ce`).
    marked: u64,
    /// AccECN: number of packets that the option has reported as marked
    /// (`delivered_ecn_bytes[INET_ECN_CE - 1]`).
    marked_by_option: u64,
    /// RFC 3168: whether the next new segment carries CWR.
    cwr_due: bool,
}

impl EcnState {
    /// `needed`: the feedback that the controller requires.
    pub const fn new(needed: EcnFeedback) -> Self {
        Self { feedback: needed, marked: 0, marked_by_option: 0, cwr_due: false }
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
    /// that require ECN, Linux makes all packets ECN-capable (`tcp_output.c::tcp_ecn_send`).
    #[inline]
    pub const fn field(&self, new: bool) -> Ecn {
        match self.feedback {
            EcnFeedback::Classic if new => Ecn::Capable,
            EcnFeedback::None | EcnFeedback::Classic => Ecn::NotCapable,
            EcnFeedback::DctcpEcho => Ecn::Capable,
            EcnFeedback::AccEcn => Ecn::L4s,
        }
    }

    /// Returns whether the flags of an ACK echo a mark. With AccECN they are a counter, which
    /// [`count`](Self::count) evaluates.
    #[inline]
    pub const fn echoes_mark(&self, ack: &Ack) -> bool {
        matches!(self.feedback, EcnFeedback::Classic | EcnFeedback::DctcpEcho) && ack.ece
    }

    /// Counts the packets that an ACK reports as marked. With ECE, these are all packets that it
    /// `delivered` (`tcp_input.c::tcp_count_delivered`). `current`: no later ACK has overtaken it.
    pub fn count(&mut self, ack: &Ack, delivered: u32, current: bool) -> u32 {
        let marked = match self.feedback {
            EcnFeedback::AccEcn if current => self.newly_marked(ack.accecn, delivered),
            EcnFeedback::AccEcn => 0,
            _ if ack.ece => delivered,
            _ => 0,
        };
        self.marked += u64::from(marked);
        marked
    }

    /// Returns the number of newly marked packets (RFC 9768 §3.2.2.5 and §A,
    /// `__tcp_accecn_process` in Linux 7.0). The ACE field may have wrapped if other ACKs were lost
    /// and many packets were delivered. Without the option, the largest possible number is assumed.
    fn newly_marked(&mut self, feedback: AccEcnFeedback, delivered: u32) -> u32 {
        let by_option = feedback.option_beyond(self.marked_by_option);
        self.marked_by_option += u64::from(by_option.unwrap_or(0));
        let least = feedback.ace().wrapping_sub(self.marked as u32) % ACE_MODULUS;
        if delivered < ACE_MODULUS {
            return least;
        }
        let most = delivered - (delivered - least) % ACE_MODULUS;
        match by_option {
            Some(0) => least,
            Some(marked) if delivered >= 2 * ACE_MODULUS => {
                most.min(least + marked / ACE_MODULUS * ACE_MODULUS)
            }
            Some(marked) if marked <= least && 2 * marked < most => least,
            _ => most,
        }
    }

    /// Schedules CWR after a reduction of the window (`tcp_input.c::tcp_ecn_queue_cwr`). AccECN
    /// does not use CWR.
    pub const fn on_reduction(&mut self) {
        self.cwr_due = matches!(self.feedback, EcnFeedback::Classic | EcnFeedback::DctcpEcho);
    }

    /// Cancels CWR after an undo (`tcp_input.c::tcp_ecn_withdraw_cwr`).
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
        let accecn = AccEcnFeedback::with_option(3);
        let ack = Ack { ece: true, accecn, ..test_support::ack(5, 0, 9, false) };
        let mut classic = EcnState::new(EcnFeedback::Classic);
        assert!(classic.echoes_mark(&ack));
        assert_eq!((classic.count(&ack, 2, true), classic.marked()), (2, 2));
        let mut counted = EcnState::new(EcnFeedback::AccEcn);
        assert!(!counted.echoes_mark(&ack));
        assert_eq!((counted.count(&ack, 3, true), counted.marked()), (3, 3));
        assert_eq!(counted.count(&ack, 3, true), 0, "it is known");
        let overtaken = Ack { accecn: AccEcnFeedback::with_option(2), ..ack };
        assert_eq!((counted.count(&overtaken, 0, false), counted.marked()), (0, 3));
    }

    /// One ACK for `delivered` packets, of which `marked` were, after `known` marks.
    fn counted(known: u64, delivered: u32, marked: u64, option: bool) -> u32 {
        let feedback = |marks| match option {
            true => AccEcnFeedback::with_option(marks),
            false => AccEcnFeedback::in_header(marks),
        };
        let mut state = EcnState::new(EcnFeedback::AccEcn);
        (state.marked, state.marked_by_option) = (known, known);
        state.newly_marked(feedback(known + marked), delivered)
    }

    /// RFC 9768 §3.2.2.5.1: up to seven packets the ACE field is unambiguous. Beyond them it may
    /// have wrapped, and the sender assumes as many marks as are possible. Ten packets with two
    /// marks may have been ten with ten.
    #[test]
    fn without_the_option_a_wrapped_counter_means_the_most_marks() {
        for delivered in 0..8 {
            for marked in 0..=u64::from(delivered) {
                assert_eq!(u64::from(counted(6, delivered, marked, false)), marked);
            }
        }
        assert_eq!(counted(6, 10, 2, false), 10);
        assert_eq!(counted(6, 10, 3, false), 3);
        assert_eq!(counted(6, 40, 0, false), 40);
    }

    /// The option resolves the ambiguity, whatever number of ACKs was lost.
    #[test]
    fn with_the_option_no_wrap_is_missed_or_invented() {
        for delivered in 0..100 {
            for marked in 0..=u64::from(delivered) {
                let found = u64::from(counted(16_370, delivered, marked, true));
                assert_eq!(found, marked, "of {delivered}");
            }
        }
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
