//! ACKs of an end that also sends data: they ride on data segments. RFC 9293 §3.8.6.3: "Delayed ACK".

use jostle_congestion::{EcnFeedback, QuickStartRate};
use jostle_units::{Ecn, Span, Time};

use super::ack::DELAYED_ACK_MIN;
use super::{PAWS_WINDOW_MS, Reading, Receiver, SegmentArrival};
use crate::segment::{Ack, AckTag, Data, SynAck, TimestampClock};

impl Receiver {
    /// Processes the SYN-ACK that answers the SYN of this end.
    #[cold]
    pub fn on_syn_ack(&mut self, now: Time, answer: &SynAck) {
        if !answer.ecn {
            self.feedback = EcnFeedback::None;
        }
        self.echo_ms = self.echo_ms.max(answer.clock.tsval_ms(now));
    }

    /// Builds the SYN-ACK again.
    #[cold]
    pub fn rebuild_syn_ack(&self, now: Time) -> SynAck {
        SynAck {
            tag: AckTag::OfSender,
            ecn: self.feedback != EcnFeedback::None,
            rate: QuickStartRate::NONE,
            requests_rate: false,
            clock: TimestampClock::at(now),
            tsecr_ms: self.echo_ms,
            window: self.window.end() - self.acked,
        }
    }

    /// Returns whether both ends support ECN.
    pub fn supports_ecn(&self) -> bool {
        self.feedback != EcnFeedback::None
    }

    /// Returns whether header prediction expects a data segment: nothing is missing before it
    /// (`tcp_input.c::tcp_rcv_established`).
    #[cold]
    pub fn predicts(&self, data: &Data) -> bool {
        data.number == self.next && self.ahead.is_empty() && !data.cwr
    }

    /// Returns whether the ACK of a data segment is processed: not if the segment is too old
    /// or outside of the window (`tcp_input.c::tcp_rcv_established`).
    #[cold]
    pub const fn accepts_ack_of(&self, data: &Data) -> bool {
        data.tsval_ms + PAWS_WINDOW_MS >= self.echo_ms
            && data.number + 1 >= self.acked
            && data.number <= self.window.end()
    }

    /// Processes a data segment, but does not decide on its ACK. The caller passes the ACK in the segment
    /// to the sender of this end, which may send data with an ACK, and then calls
    /// [`conclude`](Self::conclude) (`tcp_input.c::tcp_rcv_established`).
    #[cold]
    pub fn on_data_before_ack(&mut self, now: Time, data: &Data, ecn: Ecn) -> SegmentArrival {
        // A segment beyond the window is answered at once (`tcp_input.c::tcp_send_dupack`).
        self.at_once |= data.number >= self.window.end() && self.refuses(data.number);
        let arrival = self.on_gro_segment(now, data, ecn);
        self.piggybacking.is_scheduled = !arrival.answers;
        arrival
    }

    /// Decides on the ACK of the segment, unless data have carried it
    /// (`tcp_input.c::tcp_ack_snd_check`). `srtt` is the SRTT of this end's sender.
    #[cold]
    pub fn conclude(&mut self, now: Time, srtt: Span) -> SegmentArrival {
        if srtt > Span::ZERO {
            self.rtt = srtt;
        }
        let is_scheduled = std::mem::take(&mut self.piggybacking.is_scheduled);
        let answers = is_scheduled && self.decide(now);
        if answers {
            self.count_quick_ack();
        }
        let occupied_bytes = self.occupied_bytes();
        let reopens =
            self.reading == Reading::AtOnce && self.window.reopens(self.next, occupied_bytes);
        SegmentArrival { bytes: 0, early: false, answers, reopens }
    }

    /// Returns the ACK that a data segment of this end carries (`tcp_output.c::tcp_event_ack_sent`,
    /// `tcp_output.c::tcp_event_data_sent`).
    #[cold]
    pub fn build_piggybacked_ack(&mut self, now: Time, has_payload: bool) -> Ack {
        if std::mem::take(&mut self.piggybacking.is_scheduled) || self.delayed < Time::NEVER {
            self.acknowledge();
            self.count_quick_ack();
        } else {
            self.report();
        }
        let is_reply = now.since(self.last_arrival) < self.patience;
        if has_payload && is_reply && !self.piggybacking.is_interactive {
            self.piggybacking.is_interactive = true;
            self.piggybacking.quick = std::mem::take(&mut self.quick);
        }
        self.build_ack(now)
    }

    /// Processes the timestamp of an ACK without data. `next` is the first segment that its sender has
    /// not sent (`tcp_input.c::tcp_replace_ts_recent`).
    #[cold]
    pub fn on_ack_timestamp(&mut self, now: Time, ack: &Ack, next: u32) {
        if next <= self.acked {
            self.echo_ms = self.echo_ms.max(ack.clock.tsval_ms(now));
        }
    }

    /// Returns `icsk_ack.quick`.
    pub(super) const fn quick_mut(&mut self) -> &mut u32 {
        match self.piggybacking.is_interactive {
            true => &mut self.piggybacking.quick,
            false => &mut self.quick,
        }
    }

    /// Counts an ACK of an interactive session (`tcp.h::tcp_dec_quickack_mode`).
    const fn count_quick_ack(&mut self) {
        self.piggybacking.quick = self.piggybacking.quick.saturating_sub(1);
    }

    pub(super) const fn is_interactive(&self) -> bool {
        self.piggybacking.is_interactive
    }

    /// Returns whether the end of a message is acknowledged when it was read: in an interactive session
    /// only the end of the second one since the last ACK (`ICSK_ACK_PUSHED2`,
    /// `tcp_input.c::tcp_measure_rcv_mss`).
    #[cold]
    pub(super) const fn acknowledges_message(&mut self) -> bool {
        let is_second = self.pushed;
        self.pushed = true;
        is_second || !self.piggybacking.is_interactive
    }

    /// Ends an interactive session (`inet_connection_sock.h::inet_csk_exit_pingpong_mode`).
    pub(super) const fn leave_interactive_mode(&mut self) {
        if self.piggybacking.is_interactive {
            self.piggybacking.is_interactive = false;
            self.quick = self.piggybacking.quick;
        }
    }

    /// Ends an interactive session in which no data were sent in time
    /// (`tcp_timer.c::tcp_delack_timer_handler`). Returns whether there was one.
    pub(super) const fn leave_interactive_mode_late(&mut self) -> bool {
        let is_late = self.piggybacking.is_interactive;
        self.leave_interactive_mode();
        if is_late {
            self.patience = DELAYED_ACK_MIN;
        }
        is_late
    }
}
