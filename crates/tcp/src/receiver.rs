//! The receiving side of a TCP connection, as Linux 6.1 behaves: when it acknowledges, and what it
//! selectively acknowledges.

use jostle_control::EcnFeedback;
use jostle_units::{Ecn, Span, Time};

use crate::runs::Runs;
use crate::segment::{Ack, Block, Clock, Data, Syn, SynAck};

mod answer;
mod autotuning;
mod feedback;
mod window;
use window::Window;

/// `TCP_MAX_QUICKACKS`.
const QUICK_ACKS_MAX: u32 = 16;
/// Blocks of which a compressed ACK surely tells (`TCP_SACK_BLOCKS_EXPECTED`).
const SETTLED_BLOCKS: usize = 2;
/// Least time between answers to segments without data (`tcp_invalid_ratelimit`).
const PROBE_ANSWER_INTERVAL: Span = Span::from_ms(500);
/// By how much a segment may be older than the one echoed last (`TCP_PAWS_WINDOW`).
const PAWS_WINDOW_MS: u32 = 1;

/// The receiving side of a connection.
#[derive(Debug)]
pub struct Receiver {
    /// First segment that has not arrived (`rcv_nxt`).
    next: u32,
    /// `next` when the last ACK was sent (`rcv_wup`).
    acked: u32,
    /// Segments that arrived beyond a gap.
    ahead: Runs,
    /// Segments that the latest arrival brought into order beside itself. The application reads at
    /// once, but not before they are acknowledged.
    unread: u32,
    /// The application reads when it likes ([`Receiver::read`]), and not at once.
    reads_later: bool,
    /// Payload that it has not read …
    backlog_bytes: u64,
    /// … in full segments.
    backlog: u32,
    /// Runs in `ahead`, most recently extended first; some of them.
    recent: [Block; 4],
    recent_count: usize,
    duplicate: Option<Block>,
    /// An ACK that is to leave before the next.
    early: Option<Ack>,
    /// Segments that are not full sized and not yet delivered, with what they lack.
    short: Vec<(u32, u32)>,

    window: Window,

    /// `icsk_ack.quick`: segments to be acknowledged at once.
    quick: u32,
    /// `icsk_ack.ato`; zero before the first segment.
    patience: Span,
    last_arrival: Time,
    delayed: Time,
    compressed: u32,
    compression: Time,
    duplicates_at: u32,
    duplicates: u32,
    /// When a window probe is answered again.
    probe_answers_from: Time,
    deadline: Time,

    /// `ts_recent`: what the next ACK echoes.
    echo_ms: u32,
    /// How marks are told of: first what this side is ready for, then what was agreed on.
    feedback: EcnFeedback,
    /// Data with an ECN codepoint has arrived.
    ecn_seen: bool,
    /// ECE is set. RFC 3168 §6.1.3: until the sender answers with CWR. RFC 8257: while packets
    /// come in marked.
    ece: bool,
    /// The data segment that came last was marked (`ce_state`).
    marked: bool,
    /// Data segments that came in marked.
    marks: u64,
    /// More of what the card has put together follows: ACKs are decided on with the last of it.
    merging: bool,
    /// ACKs of what comes out of order may be compressed into one (`tcp_comp_sack_nr`).
    compresses: bool,
    /// The next ACK is due at once (`ICSK_ACK_NOW`).
    at_once: bool,
    /// RTT of the handshake as this side saw it.
    rtt: Span,
}

/// What a data segment brought about. An ACK is not in it, but put together where it leaves.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Payload that the application can read now.
    pub bytes: u64,
    /// An ACK of what arrived before the segment is to be sent first: [`Receiver::take_early`].
    pub early: bool,
    /// An ACK is to be sent: [`Receiver::answer`].
    pub answers: bool,
    /// What the application has read since then opens the window so far that the sender is to be
    /// told, by [`Receiver::reopen`].
    pub reopens: bool,
}

impl Arrival {
    /// Nothing that the application can read.
    const fn unreadable(early: bool, answers: bool) -> Self {
        Self { bytes: 0, early, answers, reopens: false }
    }
}

impl Receiver {
    /// `mss_bytes`: payload of a full-sized segment. `rtt`: the path's base RTT, which Linux
    /// measures from its SYN-ACK. `feedback`: how it can tell of marks.
    pub fn new(mss_bytes: u16, window_max_bytes: u64, rtt: Span, feedback: EcnFeedback) -> Self {
        Self {
            next: 0,
            acked: 0,
            ahead: Runs::default(),
            unread: 0,
            reads_later: false,
            backlog_bytes: 0,
            backlog: 0,
            recent: [Block::default(); 4],
            recent_count: 0,
            duplicate: None,
            early: None,
            short: Vec::new(),
            window: Window::new(mss_bytes, window_max_bytes),
            quick: 0,
            patience: Span::ZERO,
            last_arrival: Time::ZERO,
            delayed: Time::NEVER,
            compressed: 0,
            compression: Time::NEVER,
            duplicates_at: 0,
            duplicates: 0,
            probe_answers_from: Time::ZERO,
            deadline: Time::NEVER,
            echo_ms: 0,
            feedback,
            ecn_seen: false,
            ece: false,
            marked: false,
            marks: 0,
            merging: false,
            compresses: true,
            at_once: false,
            rtt,
        }
    }

    /// Offers `window_bytes` before any data have arrived instead of what a SYN-ACK can hold.
    pub fn offering(mut self, window_bytes: u64) -> Self {
        self.window.begin_with(window_bytes);
        self
    }

    /// Lets the limit of the window grow from what it is before any data have arrived with what the
    /// application reads.
    pub fn autotuned(mut self) -> Self {
        self.window.tune();
        self
    }

    /// Leaves what has arrived in the buffer until the application reads it ([`Receiver::read`]).
    pub const fn read_later(&mut self) {
        self.reads_later = true;
    }

    /// Acknowledges whatever comes out of order at once, as before Linux 4.18.
    pub const fn uncompressed(mut self) -> Self {
        self.compresses = false;
        self
    }

    /// A SYN arrived: the answer.
    pub fn on_syn(&mut self, now: Time, syn: &Syn) -> SynAck {
        // The SYN that came first decides, whatever a repetition of it says: Linux keeps its answer.
        if self.echo_ms == 0 && !syn.ecn {
            self.feedback = EcnFeedback::None;
        }
        self.echo_ms = syn.tsval_ms;
        SynAck {
            ecn: self.feedback != EcnFeedback::None,
            rate: syn.rate,
            clock: Clock::at(now),
            tsecr_ms: syn.tsval_ms,
            window: self.offer(),
        }
    }

    /// ECN field of what it sends. RFC 3168 §6.1.4: pure ACKs "MUST be sent with the not-ECT
    /// codepoint"; under controllers that need ECN Linux makes all packets capable.
    pub const fn ecn(&self) -> Ecn {
        match self.feedback {
            EcnFeedback::None | EcnFeedback::Classic => Ecn::NotCapable,
            EcnFeedback::PerPacket => Ecn::Capable,
            EcnFeedback::Counted => Ecn::L4s,
        }
    }

    /// A data segment arrived that the card has put together with the one that follows.
    pub fn on_part(&mut self, now: Time, data: &Data, ecn: Ecn) -> Arrival {
        self.merging = true;
        let arrival = self.on_data(now, data, ecn);
        self.merging = false;
        arrival
    }

    /// A data segment arrived.
    #[inline]
    pub fn on_data(&mut self, now: Time, data: &Data, ecn: Ecn) -> Arrival {
        self.unread = 0;
        if data.tsval_ms + PAWS_WINDOW_MS < self.echo_ms {
            return self.on_stale(data.number);
        }
        // RFC 7323 §4.3: the timestamp of the segment that advances the left edge is echoed.
        if data.number <= self.acked {
            self.echo_ms = self.echo_ms.max(data.tsval_ms);
        }
        if data.number >= self.window.end() && self.refuses(data.number) {
            return self.on_beyond(data.number);
        }
        if self.feedback != EcnFeedback::None && data.cwr {
            // The sender's window may be very small now, so it should not have to wait.
            self.ece = false;
            self.at_once = true;
        }
        let mss_bytes = self.window.segment_bytes() as u32;
        // Of a full-sized segment.
        let lacking = mss_bytes.saturating_sub(u32::from(data.payload_bytes));
        if lacking == 0 {
            self.window.on_segment(now, data.tsecr_ms);
        }
        if data.number < self.next {
            return if data.payload_bytes == 0 {
                self.on_window_probe(now)
            } else {
                self.on_old(data.number)
            };
        }
        let early = self.note_mark(now, ecn, data.number == self.next);
        if self.ahead.contains(data.number) {
            self.duplicate = Some(Block::of(data.number));
            return Arrival::unreadable(early, self.decide(now));
        }
        if lacking > 0 {
            self.short.push((data.number, lacking));
        }
        if data.number > self.next {
            self.keep(data.number);
            self.grow_window();
            return Arrival::unreadable(early, self.decide(now));
        }
        self.time_arrival(now);
        self.grow_window();
        let had_gap = !self.ahead.is_empty();
        let end = self.ahead.take_from(self.next);
        let bytes = self.payload_until(end);
        self.unread = end - self.next - 1;
        self.next = end;
        self.forget_before_next();
        if self.ahead.is_empty() {
            // RFC 5681 §4.2: "a TCP receiver SHOULD send an immediate ACK when the incoming segment
            // fills in all or part of a gap"; Linux does when the last gap closes. The end of a
            // message is acknowledged as soon as it is read (`ICSK_ACK_PUSHED`).
            self.at_once |= had_gap || lacking > 0;
        }
        let answers = self.decide(now);
        if self.reads_later {
            self.keep_unread(self.backlog_bytes + bytes);
            return Arrival { bytes, early, answers, reopens: false };
        }
        // The application reads after the stack has decided on the ACK.
        self.window.on_read(now, bytes);
        // It reads when all of what the card has put together has arrived.
        let reopens = !self.merging && self.window.reopens(self.next, self.ahead.len());
        Arrival { bytes, early, answers, reopens }
    }

    /// The application has read: the ACK that tells of a window which has opened
    /// (`tcp_cleanup_rbuf`). RFC 9293 §3.8.6.2.2 bounds how small an opening may be told.
    #[cold]
    pub fn reopen(&mut self, now: Time) -> Ack {
        self.unread = 0;
        self.acknowledge();
        self.answer(now)
    }

    /// Payload that the application can read, of a receiver that reads later.
    pub const fn unread_bytes(&self) -> u64 {
        self.backlog_bytes
    }

    /// The application reads `bytes` of what it can: the ACK to send, if the window has opened so far
    /// that the sender is to be told.
    pub fn read(&mut self, now: Time, bytes: u64) -> Option<Ack> {
        debug_assert!(bytes <= self.backlog_bytes, "{bytes} of {}", self.backlog_bytes);
        self.keep_unread(self.backlog_bytes - bytes);
        self.window.on_read(now, bytes);
        let held = self.ahead.len() + self.backlog;
        self.window.reopens(self.next, held).then(|| self.reopen(now))
    }

    fn keep_unread(&mut self, bytes: u64) {
        self.unread = 0;
        self.backlog_bytes = bytes;
        self.backlog = bytes.div_ceil(self.window.segment_bytes()) as u32;
    }

    /// The sender asks for the window (`tcp_send_dupack`, `tcp_oow_rate_limited`).
    #[cold]
    fn on_window_probe(&mut self, now: Time) -> Arrival {
        let due = now >= self.probe_answers_from;
        if due {
            self.probe_answers_from = now + PROBE_ANSWER_INTERVAL;
            self.acknowledge();
        }
        Arrival::unreadable(false, due)
    }

    /// Whether a segment at the end of the window or beyond it is not taken. Header prediction does
    /// not look at the window: what comes in order is taken unless none was offered
    /// (`tcp_rcv_established`, `tcp_select_window`).
    #[cold]
    fn refuses(&self, number: u32) -> bool {
        number > self.next || (number == self.next && self.window.end() <= self.acked)
    }

    /// A segment arrived that the window has no room for (`tcp_data_queue`, `tcp_sequence`). RFC
    /// 9293 §3.10.7.4: "If an incoming segment is not acceptable, an acknowledgment should be sent
    /// in reply".
    #[cold]
    fn on_beyond(&mut self, number: u32) -> Arrival {
        if number == self.window.end().max(self.next) {
            self.enter_quick_mode(QUICK_ACKS_MAX);
        }
        if !self.merging {
            self.acknowledge();
        }
        Arrival::unreadable(false, !self.merging)
    }

    /// Payload of the segments from `next` to `end`.
    fn payload_until(&mut self, end: u32) -> u64 {
        let mut bytes = u64::from(end - self.next) * self.window.segment_bytes();
        if !self.short.is_empty() {
            self.short.retain(|&(number, lacking)| {
                let delivered = number < end;
                bytes -= if delivered { u64::from(lacking) } else { 0 };
                !delivered
            });
        }
        bytes
    }

    /// While the window grows every segment is acknowledged at once.
    fn grow_window(&mut self) {
        if self.window.grow() {
            // As Linux writes it (`|= 1`): an even number of quick ACKs does not shrink, either. A byte that
            // is written into the number would be waited for where the number is read.
            if self.quick.is_multiple_of(2) {
                self.quick += 1;
            }
        }
    }

    /// A segment arrived again that the application has had already.
    fn on_old(&mut self, number: u32) -> Arrival {
        self.duplicate = Some(Block::of(number));
        self.enter_quick_mode(QUICK_ACKS_MAX);
        self.acknowledge();
        Arrival::unreadable(false, true)
    }

    /// RFC 7323 §5.3 (PAWS): a segment older than what was echoed last is dropped and acknowledged
    /// at once. Reordering can do that to an original whose predecessors were retransmitted.
    #[cold]
    fn on_stale(&mut self, number: u32) -> Arrival {
        if number < self.next {
            return self.on_old(number);
        }
        self.acknowledge();
        Arrival::unreadable(false, true)
    }

    /// Keeps a segment that arrived beyond a gap.
    fn keep(&mut self, number: u32) {
        let run = self.ahead.insert(number);
        let kept = &mut self.recent;
        let position = kept[..self.recent_count].iter().position(|block| run.covers(*block));
        if self.compressed > 0 && position.unwrap_or(self.recent_count) >= SETTLED_BLOCKS {
            // News of blocks that one ACK may not hold is not withheld.
            self.at_once = true;
        }
        let mut count = 0;
        // The blocks that the run has grown out of leave the list; the others keep their order.
        for i in 0..self.recent_count {
            if !run.covers(kept[i]) {
                kept[count] = kept[i];
                count += 1;
            }
        }
        count = count.min(kept.len() - 1);
        kept.copy_within(0..count, 1);
        kept[0] = run;
        self.recent_count = count + 1;
    }

    fn forget_before_next(&mut self) {
        if self.recent_count == 0 {
            return;
        }
        let next = self.next;
        let mut count = 0;
        for i in 0..self.recent_count {
            if self.recent[i].end > next {
                self.recent[count] = self.recent[i];
                count += 1;
            }
        }
        self.recent_count = count;
    }
}

#[cfg(test)]
mod feedback_tests;
#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;
