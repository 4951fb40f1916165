//! Delayed ACKs, compression of ACKs of out-of-order data, and the contents of ACKs.

use jostle_congestion::EcnFeedback;
use jostle_units::{Span, Time};

use super::{QUICK_ACKS_MAX, Reading, Receiver};
use crate::segment::{AccEcnFeedback, Ack, AckTag, MAX_BLOCKS, SackBlock, TimestampClock};

/// `TCP_ATO_MIN`, `TCP_DELACK_MIN`.
pub(super) const DELAYED_ACK_MIN: Span = Span::from_ms(40);
/// `TCP_DELACK_MAX`.
const DELAYED_ACK_MAX: Span = Span::from_ms(200);
/// `tcp_comp_sack_nr`: maximum number of ACKs that are compressed into one.
const COMPRESSED_MAX: u32 = 44;
/// `tcp_comp_sack_delay_ns`.
const COMPRESSION_MAX: Span = Span::from_ms(1);
/// `tcp_comp_sack_slack_ns`: the timer may expire this much later, and does. For a timer that runs
/// in a soft interrupt, only its latest expiry time is programmed into the hardware
/// (`hrtimer.c::hrtimer_interrupt`, `hrtimer.c::__hrtimer_next_event_base`). If nothing else wakes
/// the receiver, it sends its ACK at that time.
const COMPRESSION_SLACK: Span = Span::from_us(100);
/// Number of duplicate ACKs before compression begins (`TCP_FASTRETRANS_THRESH`).
const UNCOMPRESSED_DUPLICATES: u32 = 3;

impl Receiver {
    /// Runs the delayed-ACK engine for an in-order segment (`tcp_input.c::tcp_event_data_recv`).
    pub(super) fn time_arrival(&mut self, now: Time) {
        let gap = now.since(self.last_arrival);
        if self.patience.is_zero() {
            // First segment: the sender is in slow start and needs every ACK.
            self.quicken(QUICK_ACKS_MAX);
            self.patience = DELAYED_ACK_MIN;
        } else if gap <= DELAYED_ACK_MIN.mul_div(1, 2) {
            self.patience = self.patience.mul_div(1, 2) + DELAYED_ACK_MIN.mul_div(1, 2);
        } else if gap < self.patience {
            self.patience = (self.patience.mul_div(1, 2) + gap).min(self.retransmission_timeout());
        } else if gap > self.retransmission_timeout() {
            // "Too long gap": the sender has probably restarted its window.
            self.quicken(QUICK_ACKS_MAX);
        }
        self.last_arrival = now;
    }

    /// `icsk_rto`, nearly.
    fn retransmission_timeout(&self) -> Span {
        Span::from_ms(200) + self.rtt
    }

    /// `tcp_input.c::tcp_incr_quickack`.
    pub(super) fn quicken(&mut self, most: u32) {
        let fitting = (self.window.segments() / 2).max(2);
        let quick = self.quick_mut();
        *quick = (*quick).max(most.min(fitting));
    }

    /// `tcp_input.c::tcp_enter_quickack_mode`.
    pub(super) fn enter_quick_mode(&mut self, most: u32) {
        self.quicken(most);
        self.leave_interactive_mode();
        self.patience = DELAYED_ACK_MIN;
    }

    /// Decides whether to acknowledge now, later, or together with later segments
    /// (`tcp_input.c::__tcp_ack_snd_check`). Returns whether to send [`build_ack`](Self::build_ack)
    /// now.
    pub(super) fn decide(&mut self, now: Time) -> bool {
        if self.merging {
            return false;
        }
        // RFC 5681 §4.2: "a TCP receiver MUST NOT … delay … an ACK for at least every second
        // full-sized segment".
        let is_second = self.next - self.acked > 1 && !self.waits_for_read();
        if is_second || self.quick > 0 || self.at_once {
            self.acknowledge();
            return true;
        }
        if self.ahead.is_empty() {
            return self.delay(now);
        }
        if self.compressed >= COMPRESSED_MAX {
            self.acknowledge();
            return true;
        }
        if self.duplicates_at != self.next {
            self.duplicates_at = self.next;
            self.duplicates = 0;
        }
        if self.duplicates < UNCOMPRESSED_DUPLICATES || !self.compresses {
            self.duplicates += 1;
            self.acknowledge();
            return true;
        }
        self.compressed += 1;
        if self.compression == Time::NEVER {
            let delay = self.rtt.mul_div(1, 20).min(COMPRESSION_MAX);
            self.compression = now + delay + COMPRESSION_SLACK;
            // The timer of an earlier delayed ACK sends compressed ACKs if it expires first, even
            // if that ACK was sent (`tcp_timer.c::tcp_delack_timer_handler`).
            if self.delack_timer > now {
                self.compression = self.compression.min(self.delack_timer);
            }
            self.set_timer();
        }
        false
    }

    /// Returns whether the ACK of a second segment waits until the application reads: "right edge of
    /// window advances far enough. (tcp_recvmsg() will send ACK otherwise)"
    /// (`tcp_input.c::__tcp_ack_snd_check`).
    fn waits_for_read(&mut self) -> bool {
        if self.reading != Reading::Slowly {
            return false;
        }
        let offered = self.window.end().saturating_sub(self.acked);
        self.leave_quick_mode_if_narrow();
        self.unread_bytes() > 0 && self.window.free_segments(self.occupied_bytes()) < offered
    }

    /// Returns whether a read sends the ACK that waited for it: of a second segment, or of the end of
    /// a message if no data are left (`tcp.c::__tcp_cleanup_rbuf`).
    pub(super) fn is_ack_due_after_read(&mut self) -> bool {
        if self.reading != Reading::Slowly {
            return false;
        }
        self.leave_quick_mode_if_narrow();
        let unacked = self.next - self.acked;
        let is_end = self.pushed && self.unread_bytes() == 0 && !self.is_interactive();
        unacked > 1 || (unacked > 0 && is_end)
    }

    /// Ends the immediate ACKs if more than half of the buffer is occupied
    /// (`tcp_output.c::__tcp_select_window`).
    fn leave_quick_mode_if_narrow(&mut self) {
        if self.window.is_half_full(self.occupied_bytes()) {
            self.quick = 0;
        }
    }

    /// Delays an ACK, or sends it now if the timer of an earlier one is about to expire
    /// (`tcp_output.c::tcp_send_delayed_ack`). Returns whether to send it now.
    fn delay(&mut self, now: Time) -> bool {
        let mut patience = self.patience;
        if patience > DELAYED_ACK_MIN {
            patience = patience.min(Span::from_ms(500)).min(self.rtt.max(DELAYED_ACK_MIN));
        }
        patience = patience.min(DELAYED_ACK_MAX);
        if self.delayed <= now + patience.mul_div(1, 4) {
            self.acknowledge();
            return true;
        }
        self.delayed = self.delayed.min(self.timers.on_wheel(now, now + patience));
        self.delack_timer = self.delayed;
        self.set_timer();
        false
    }

    fn set_timer(&mut self) {
        self.deadline = self.delayed.min(self.compression);
    }

    /// Returns the time to call [`on_timer`](Self::on_timer), unless a segment arrives earlier.
    #[inline]
    pub const fn deadline(&self) -> Time {
        self.deadline
    }

    /// Returns the ACK to send, if a deadline has passed.
    pub fn on_timer(&mut self, now: Time) -> Option<Ack> {
        if now < self.deadline {
            return None;
        }
        self.unread = 0;
        if self.compression > now && self.delayed <= now && !self.leave_interactive_mode_late() {
            // The delayed-ACK timer expired: the application is slow, so increase the delay.
            self.patience = (self.patience + self.patience).min(self.retransmission_timeout());
        }
        self.acknowledge();
        Some(self.build_ack(now))
    }

    /// Extends the offered window to the free buffer space. Returns the number of segments that the
    /// sender may send beyond `next`.
    pub(super) fn offer(&mut self) -> u32 {
        if self.reading == Reading::Slowly {
            self.leave_quick_mode_if_narrow();
        }
        self.window.offer(self.next, self.occupied_bytes())
    }

    /// Marks all data received so far as acknowledged by the next [`build_ack`](Self::build_ack).
    pub(super) fn acknowledge(&mut self) {
        self.delayed = Time::NEVER;
        self.at_once = false;
        self.pushed = false;
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.patience = DELAYED_ACK_MIN;
            }
        }
        self.report();
    }

    /// Like [`acknowledge`](Self::acknowledge), but does not change the delayed-ACK state
    /// (`tcp_output.c::__tcp_send_ack` with another `rcv_nxt`).
    pub(super) fn report(&mut self) {
        self.compression = Time::NEVER;
        self.compressed = 0;
        self.set_timer();
        self.acked = self.next;
        self.offer();
    }

    /// Builds the ACK that was decided on at `now`.
    pub fn build_ack(&mut self, now: Time) -> Ack {
        let mut ack = self.build_plain_ack(now);
        if self.has_sack_blocks() {
            ack.duplicate = self.duplicate.is_some();
            (ack.block_count, ack.blocks) = self.blocks();
            if usize::from(ack.block_count) == MAX_BLOCKS {
                // The options of the header are full.
                ack.accecn = ack.accecn.without_option();
            }
        }
        ack
    }

    /// Returns whether an ACK built now contains SACK blocks.
    #[inline]
    pub const fn has_sack_blocks(&self) -> bool {
        self.recent_count > 0 || self.duplicate.is_some()
    }

    /// Builds an ACK without SACK blocks. Always inlined, so that callers build it in its final
    /// place: a copy immediately after the writes of its fields stalls the CPU.
    #[inline(always)]
    pub const fn build_plain_ack(&self, now: Time) -> Ack {
        Ack {
            tag: AckTag::Ack,
            ece: self.ece,
            duplicate: false,
            block_count: 0,
            accecn: self.accecn_feedback(),
            clock: TimestampClock::at(now),
            number: self.acked,
            tsecr_ms: self.echo_ms,
            window: self.window.end() - self.acked,
            blocks: [SackBlock { start: 0, end: 0 }; MAX_BLOCKS],
        }
    }

    /// Returns the AccECN feedback of an ACK built now.
    #[inline]
    const fn accecn_feedback(&self) -> AccEcnFeedback {
        match (self.feedback, self.accecn_option) {
            (EcnFeedback::AccEcn, true) => AccEcnFeedback::with_option(self.marks),
            (EcnFeedback::AccEcn, false) => AccEcnFeedback::in_header(self.marks),
            _ => AccEcnFeedback::NONE,
        }
    }

    /// Returns the SACK blocks of an ACK: a duplicate first (RFC 2883), then the most recently
    /// changed blocks.
    #[cold]
    fn blocks(&mut self) -> (u8, [SackBlock; MAX_BLOCKS]) {
        let mut blocks = [SackBlock::default(); MAX_BLOCKS];
        let mut count = 0;
        for &block in self.duplicate.take().iter().chain(&self.recent[..self.recent_count]) {
            if count < MAX_BLOCKS {
                blocks[count] = block;
                count += 1;
            }
        }
        (count as u8, blocks)
    }
}
