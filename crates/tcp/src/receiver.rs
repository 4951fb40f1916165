//! The receiving side of a TCP connection, modelled on Linux 6.1: delayed ACKs, SACK blocks and the
//! receive window.

use jostle_congestion::EcnFeedback;
use jostle_congestion::transport::HostTimers;
use jostle_units::{Ecn, Span, Time};

use crate::out_of_order::OutOfOrderSegments;
use crate::segment::{Ack, AckTag, Data, SackBlock, Syn, SynAck, TimestampClock};

mod ack;
mod autotuning;
mod ecn;
mod piggyback;
mod receive_window;
use receive_window::ReceiveWindow;

/// `TCP_MAX_QUICKACKS`.
const QUICK_ACKS_MAX: u32 = 16;
/// Number of SACK blocks that a compressed ACK is sure to contain (`TCP_SACK_BLOCKS_EXPECTED`).
const SETTLED_BLOCKS: usize = 2;
/// Minimum time between ACKs of segments without data (`tcp_invalid_ratelimit`).
const PROBE_ACK_INTERVAL: Span = Span::from_ms(500);
/// Maximum age of a segment relative to the last echoed timestamp (`TCP_PAWS_WINDOW`).
const PAWS_WINDOW_MS: u32 = 1;

/// The receiving side of a connection.
#[derive(Debug)]
pub struct Receiver {
    /// First segment that has not arrived (`rcv_nxt`).
    next: u32,
    /// `next` when the last ACK was sent (`rcv_wup`).
    acked: u32,
    /// Out-of-order segments.
    ahead: OutOfOrderSegments,
    /// Segments after the gap that the latest arrival filled. The application reads them
    /// immediately, but not before they are acknowledged.
    unread: u32,
    /// When the application reads.
    reading: Reading,
    /// Unread payload in bytes.
    backlog_bytes: u64,
    /// Unread payload in full-sized segments.
    backlog: u32,
    /// Some of the runs in `ahead`, most recently extended first.
    recent: [SackBlock; 4],
    recent_count: usize,
    duplicate: Option<SackBlock>,
    /// Whether a segment that is not full-sized waits to be read (`ICSK_ACK_PUSHED`).
    pushed: bool,
    /// An ACK to send before the next ACK.
    early: Option<Ack>,
    /// Undelivered segments that are not full-sized, with the number of bytes that they lack.
    short: Vec<(u32, u32)>,

    window: ReceiveWindow,

    /// `icsk_ack.quick`: number of segments to acknowledge immediately.
    quick: u32,
    /// `icsk_ack.ato`; zero before the first segment.
    patience: Span,
    last_arrival: Time,
    delayed: Time,
    /// Expiry of `icsk_delack_timer`. Linux does not stop this timer when an ACK is sent.
    delack_timer: Time,
    compressed: u32,
    compression: Time,
    duplicates_at: u32,
    duplicates: u32,
    /// Earliest time of the next ACK of a window probe.
    next_probe_ack: Time,
    deadline: Time,

    /// `ts_recent`: timestamp that the next ACK echoes.
    echo_ms: u32,
    /// Kind of ECN feedback: the supported kind before the handshake, the negotiated kind
    /// afterwards.
    feedback: EcnFeedback,
    /// Whether data with an ECN codepoint has arrived.
    ecn_seen: bool,
    /// Whether ACKs carry ECE. RFC 3168 §6.1.3: until the sender sends CWR. RFC 8257: while packets
    /// arrive marked.
    ece: bool,
    /// Whether the latest data segment was marked (`ce_state`).
    marked: bool,
    /// Number of data segments that arrived marked.
    marks: u64,
    /// Whether ACKs of AccECN carry its option.
    accecn_option: bool,
    /// Whether further segments merged by the NIC follow. The receiver decides on an ACK after the
    /// last of them.
    merging: bool,
    /// Whether ACKs of out-of-order data may be compressed into one (`tcp_comp_sack_nr`).
    compresses: bool,
    /// Whether the next ACK must be sent immediately (`ICSK_ACK_NOW`).
    at_once: bool,
    /// RTT of the handshake, as measured by the receiver.
    rtt: Span,
    /// State of an end that also sends data.
    piggybacking: Piggybacking,
    /// Timers of the receiving host.
    timers: HostTimers,
}

/// State of an end that also sends data.
#[derive(Debug, Default)]
struct Piggybacking {
    /// An ACK is due for the segment being processed (`ICSK_ACK_SCHED`), and none was sent yet.
    is_scheduled: bool,
    /// Interactive session (`icsk_ack.pingpong`): data are sent soon after data arrive, so that ACKs
    /// wait for them.
    is_interactive: bool,
    /// `icsk_ack.quick` during an interactive session, which does not use it.
    quick: u32,
}

/// When the application reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// As soon as data arrive in order.
    AtOnce,
    /// With [`Receiver::read`]: a proxy, whose reads do not affect ACKs.
    Later,
    /// With [`Receiver::read`], and ACKs wait for the reads as in Linux.
    Slowly,
}

/// Result of a data segment. The caller builds the ACK when it sends it.
#[derive(Clone, Copy, Debug)]
pub struct SegmentArrival {
    /// Payload that the application can now read.
    pub bytes: u64,
    /// Whether to send an ACK of earlier segments first, with [`Receiver::take_immediate_ack`].
    pub early: bool,
    /// Whether to send an ACK, with [`Receiver::build_ack`].
    pub answers: bool,
    /// Whether the application has read so much since the ACK that the sender must be notified of
    /// the larger window, with [`Receiver::build_window_update`].
    pub reopens: bool,
}

impl SegmentArrival {
    /// Returns a result without payload for the application.
    const fn unreadable(early: bool, answers: bool) -> Self {
        Self { bytes: 0, early, answers, reopens: false }
    }
}

impl Receiver {
    /// Creates a receiver. `mss_bytes`: payload of a full-sized segment. `rtt`: base RTT of the
    /// path, which Linux measures from its SYN-ACK. `feedback`: supported ECN feedback.
    pub fn new(mss_bytes: u16, window_max_bytes: u64, rtt: Span, feedback: EcnFeedback) -> Self {
        Self {
            next: 0,
            acked: 0,
            ahead: OutOfOrderSegments::default(),
            unread: 0,
            reading: Reading::AtOnce,
            backlog_bytes: 0,
            backlog: 0,
            recent: [SackBlock::default(); 4],
            recent_count: 0,
            duplicate: None,
            pushed: false,
            early: None,
            short: Vec::new(),
            window: ReceiveWindow::new(mss_bytes, window_max_bytes),
            quick: 0,
            patience: Span::ZERO,
            last_arrival: Time::ZERO,
            delayed: Time::NEVER,
            delack_timer: Time::NEVER,
            compressed: 0,
            compression: Time::NEVER,
            duplicates_at: 0,
            duplicates: 0,
            next_probe_ack: Time::ZERO,
            deadline: Time::NEVER,
            echo_ms: 0,
            feedback,
            ecn_seen: false,
            ece: false,
            marked: false,
            marks: 0,
            accecn_option: true,
            merging: false,
            compresses: true,
            at_once: false,
            rtt,
            piggybacking: Piggybacking::default(),
            timers: HostTimers::EXACT,
        }
    }

    /// Sets the window before data arrives to `window_bytes`, instead of the maximum of a SYN-ACK.
    pub fn offering(mut self, window_bytes: u64) -> Self {
        self.window.begin_with(window_bytes);
        self
    }

    /// Sets the timers of the receiving host.
    pub const fn on_host(mut self, timers: HostTimers) -> Self {
        self.timers = timers;
        self
    }

    /// Enables receive-buffer autotuning: the limit of the window starts at its initial value and
    /// grows with the data that the application reads.
    pub fn autotuned(mut self) -> Self {
        self.window.tune();
        self
    }

    /// Leaves data in the buffer until the application reads it with [`Receiver::read`].
    pub const fn read_later(&mut self) {
        self.reading = Reading::Later;
    }

    /// Leaves data in the buffer until the application reads it with [`Receiver::read`], and lets
    /// ACKs wait for the reads.
    pub const fn read_slowly(&mut self) {
        self.reading = Reading::Slowly;
    }

    /// Acknowledges each out-of-order segment immediately, like Linux before 4.18.
    pub const fn uncompressed(mut self) -> Self {
        self.compresses = false;
        self
    }

    /// Sends AccECN feedback without its option, as if a middlebox removed it (RFC 9768 §3.2.3.2).
    pub const fn without_accecn_option(mut self) -> Self {
        self.accecn_option = false;
        self
    }

    /// Returns the SYN-ACK for a SYN.
    pub fn on_syn(&mut self, now: Time, syn: &Syn) -> SynAck {
        // The first SYN decides, even if a retransmitted SYN differs: Linux keeps its SYN-ACK.
        if self.echo_ms == 0 && !syn.ecn {
            self.feedback = EcnFeedback::None;
        }
        self.echo_ms = syn.tsval_ms;
        SynAck {
            tag: AckTag::Ack,
            ecn: self.feedback != EcnFeedback::None,
            rate: syn.rate,
            requests_rate: false,
            clock: TimestampClock::at(now),
            tsecr_ms: syn.tsval_ms,
            window: self.offer(),
        }
    }

    /// Returns the ECN field of sent packets. RFC 3168 §6.1.4: pure ACKs "MUST be sent with the
    /// not-ECT codepoint". Under controllers that require ECN, Linux makes all packets ECN-capable.
    pub const fn ecn(&self) -> Ecn {
        match self.feedback {
            EcnFeedback::None | EcnFeedback::Classic => Ecn::NotCapable,
            EcnFeedback::DctcpEcho => Ecn::Capable,
            EcnFeedback::AccEcn => Ecn::L4s,
        }
    }

    /// Processes a data segment that the NIC merged with the following one.
    pub fn on_gro_segment(&mut self, now: Time, data: &Data, ecn: Ecn) -> SegmentArrival {
        self.merging = true;
        let arrival = self.on_data(now, data, ecn);
        self.merging = false;
        arrival
    }

    /// Processes a data segment.
    #[inline]
    pub fn on_data(&mut self, now: Time, data: &Data, ecn: Ecn) -> SegmentArrival {
        self.unread = 0;
        if data.tsval_ms + PAWS_WINDOW_MS < self.echo_ms {
            return self.on_stale(data.number);
        }
        // RFC 7323 §4.3: the timestamp of the segment that advances the left edge is echoed. A segment
        // that ends before it is out of the window (`tcp_input.c::tcp_sequence`) and changes nothing.
        if (self.acked.saturating_sub(1)..=self.acked).contains(&data.number) {
            self.echo_ms = self.echo_ms.max(data.tsval_ms);
        }
        if data.number >= self.window.end() && self.refuses(data.number) {
            return self.on_beyond(data.number);
        }
        if self.feedback != EcnFeedback::None && data.cwr {
            // The sender's window may be very small now, so that a delayed ACK could stall it.
            self.ece = false;
            self.at_once = true;
        }
        let mss_bytes = self.window.segment_bytes() as u32;
        // Bytes that the payload lacks to a full-sized segment.
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
            self.duplicate = Some(SackBlock::of(data.number));
            return SegmentArrival::unreadable(early, self.decide(now));
        }
        if lacking > 0 {
            self.short.push((data.number, lacking));
        }
        if data.number > self.next {
            self.keep(data.number);
            self.grow_window();
            return SegmentArrival::unreadable(early, self.decide(now));
        }
        self.deliver(now, early, lacking > 0)
    }

    /// Delivers the in-order segment that arrived, and those behind the gap that it fills. `is_short`:
    /// it is not full-sized.
    #[inline(always)]
    fn deliver(&mut self, now: Time, early: bool, is_short: bool) -> SegmentArrival {
        self.time_arrival(now);
        self.grow_window();
        let had_gap = !self.ahead.is_empty();
        let end = self.ahead.take_from(self.next);
        let bytes = self.payload_until(end);
        self.unread = end - self.next - 1;
        self.next = end;
        self.forget_before_next();
        self.check();
        let is_slow = self.reading == Reading::Slowly;
        if self.ahead.is_empty() {
            // RFC 5681 §4.2: "a TCP receiver SHOULD send an immediate ACK when the incoming segment
            // fills in all or part of a gap"; Linux does so when the last gap closes. The end of a
            // message is acknowledged immediately after it was read (`ICSK_ACK_PUSHED`).
            self.at_once |= had_gap || (is_short && !is_slow && self.acknowledges_message());
        }
        if is_slow {
            self.pushed |= is_short;
            self.keep_unread(self.backlog_bytes + bytes);
        }
        let answers = self.decide(now);
        if self.reading == Reading::Later {
            self.keep_unread(self.backlog_bytes + bytes);
        }
        if self.reading != Reading::AtOnce {
            return SegmentArrival { bytes, early, answers, reopens: false };
        }
        // The application reads after TCP has decided on the ACK.
        self.window.on_read(now, bytes);
        // The application reads when all segments merged by the NIC have arrived.
        let occupied_bytes = u64::from(self.ahead.len()) * self.window.segment_bytes();
        let reopens = !self.merging && self.window.reopens(self.next, occupied_bytes);
        SegmentArrival { bytes, early, answers, reopens }
    }

    /// Checks the invariants that hold when the left edge has moved.
    #[inline]
    fn check(&self) {
        let blocks = &self.recent[..self.recent_count];
        debug_assert!(self.acked <= self.next, "acknowledged {} of {}", self.acked, self.next);
        debug_assert!(!self.ahead.contains(self.next), "{} has arrived", self.next);
        debug_assert!(blocks.iter().all(|block| block.end > self.next), "{blocks:?}");
        debug_assert!(!self.ahead.is_empty() || blocks.is_empty(), "{blocks:?}");
    }

    /// Returns an ACK that announces a larger window after a read (`tcp.c::tcp_cleanup_rbuf`). RFC 9293
    /// §3.8.6.2.2 sets the minimum increase to announce.
    #[cold]
    pub fn build_window_update(&mut self, now: Time) -> Ack {
        self.unread = 0;
        self.acknowledge();
        self.build_ack(now)
    }

    /// Returns the payload that the application has not read, for a receiver with
    /// [`read_later`](Self::read_later) or [`read_slowly`](Self::read_slowly).
    pub const fn unread_bytes(&self) -> u64 {
        self.backlog_bytes
    }

    /// Reads `bytes` of the received data. Returns an ACK if it is due: the window has grown enough,
    /// or the ACK waited for the read.
    pub fn read(&mut self, now: Time, bytes: u64) -> Option<Ack> {
        debug_assert!(bytes <= self.backlog_bytes, "{bytes} of {}", self.backlog_bytes);
        self.keep_unread(self.backlog_bytes - bytes);
        self.window.on_read(now, bytes);
        let occupied_bytes = self.occupied_bytes();
        let due = self.is_ack_due_after_read() || self.window.reopens(self.next, occupied_bytes);
        due.then(|| self.build_window_update(now))
    }

    /// Returns how much of the window out-of-order and unread data occupy (`tcp.h::tcp_space`).
    pub(super) fn occupied_bytes(&self) -> u64 {
        let segments = self.ahead.len() + self.unread + self.backlog;
        if self.reading == Reading::Slowly {
            return self.window.coalesced_bytes(segments);
        }
        u64::from(segments) * self.window.segment_bytes()
    }

    fn keep_unread(&mut self, bytes: u64) {
        self.unread = 0;
        self.backlog_bytes = bytes;
        self.backlog = bytes.div_ceil(self.window.segment_bytes()) as u32;
    }

    /// Responds to a window probe (`tcp_input.c::tcp_send_dupack`,
    /// `tcp_input.c::tcp_oow_rate_limited`).
    #[cold]
    fn on_window_probe(&mut self, now: Time) -> SegmentArrival {
        let due = now >= self.next_probe_ack;
        if due {
            self.next_probe_ack = now + PROBE_ACK_INTERVAL;
            self.acknowledge();
        }
        SegmentArrival::unreadable(false, due)
    }

    /// Returns whether a segment at or beyond the end of the window is dropped. Header prediction
    /// does not check the window: an in-order segment is accepted unless the window was zero
    /// (`tcp_input.c::tcp_rcv_established`, `tcp_output.c::tcp_select_window`).
    #[cold]
    fn refuses(&self, number: u32) -> bool {
        number > self.next || (number == self.next && self.window.end() <= self.acked)
    }

    /// Responds to a segment beyond the window (`tcp_input.c::tcp_data_queue`,
    /// `tcp_input.c::tcp_sequence`). RFC 9293 §3.10.7.4: "If an incoming segment is not acceptable,
    /// an acknowledgment should be sent in reply".
    #[cold]
    fn on_beyond(&mut self, number: u32) -> SegmentArrival {
        if number == self.window.end().max(self.next) {
            self.enter_quick_mode(QUICK_ACKS_MAX);
        }
        if !self.merging {
            self.acknowledge();
        }
        SegmentArrival::unreadable(false, !self.merging)
    }

    /// Returns the payload of the segments from `next` to `end`.
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

    /// Grows the window. While it grows, each segment is acknowledged immediately.
    fn grow_window(&mut self) {
        // The window grows only into free space.
        let is_full = self.reading == Reading::Slowly && self.window.is_full(self.occupied_bytes());
        if !is_full && self.window.grow() {
            // Like Linux (`|= 1`): an even number of quick ACKs does not decrease, either. A branch
            // instead of `|=`, because the compiler would write a single byte, which delays the
            // next read of the number.
            let quick = self.quick_mut();
            if quick.is_multiple_of(2) {
                *quick += 1;
            }
        }
    }

    /// Responds to a segment that was already delivered.
    fn on_old(&mut self, number: u32) -> SegmentArrival {
        self.duplicate = Some(SackBlock::of(number));
        self.enter_quick_mode(QUICK_ACKS_MAX);
        self.acknowledge();
        SegmentArrival::unreadable(false, true)
    }

    /// RFC 7323 §5.3 (PAWS): drops a segment older than the last echoed timestamp and acknowledges
    /// it immediately. Reordering can cause this for an original whose predecessors were
    /// retransmitted.
    #[cold]
    fn on_stale(&mut self, number: u32) -> SegmentArrival {
        if number < self.next {
            return self.on_old(number);
        }
        self.acknowledge();
        SegmentArrival::unreadable(false, true)
    }

    /// Stores an out-of-order segment.
    fn keep(&mut self, number: u32) {
        let run = self.ahead.insert(number);
        let kept = &mut self.recent;
        let position = kept[..self.recent_count].iter().position(|block| run.covers(*block));
        if self.compressed > 0 && position.unwrap_or(self.recent_count) >= SETTLED_BLOCKS {
            // The change would not fit into one ACK: send the ACK immediately.
            self.at_once = true;
        }
        let mut count = 0;
        // Remove the blocks that the new run covers. The others keep their order.
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
mod ecn_tests;
#[cfg(test)]
mod piggyback_tests;
#[cfg(test)]
pub(crate) mod test_support;
#[cfg(test)]
mod tests;
