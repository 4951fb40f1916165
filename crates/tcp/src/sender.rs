//! The sending side of a TCP connection, as Linux 6.1 behaves with SACK, timestamps and RACK.
//!
//! Linux names are given where a field or a rule has one. The files: what is outstanding
//! (`scoreboard`), how a connection opens (`handshake`), what an ACK does (`acknowledge`) and says has
//! arrived (`delivered`), the states of recovery (`recovery`) with undo (`undo`), RACK
//! (`detection`), timers (`timers`) with the timeout (`rto`) and the loss probe (`tail_probe`), what
//! leaves when (`transmit`), together (`bursts`) and again (`retransmit`), what becomes of a window
//! that is not used (`usage`), the receiver's (`peer_window`), ECN (`ecn`).

mod acknowledge;
mod bursts;
mod delivered;
mod detection;
mod ecn;
mod handshake;
mod peer_window;
mod recovery;
mod retransmit;
mod rto;
mod scoreboard;
mod tail_probe;
mod timers;
mod transmit;
mod undo;
mod usage;

#[cfg(test)]
mod tests;

use jostle_control::memory::Peer;
use jostle_control::transport::{Pacer, Reduction, WindowUse};
use jostle_control::{
    Congestion, Controller, RecoveryOwner, RecoveryState, RttEstimator, Sampler, Signal,
};
use jostle_units::{Ecn, Rate, Span, Time};

use crate::segment::{Segment, timestamp_ms};
use crate::size::Divisor;
use detection::Rack;
use ecn::EcnState;
use peer_window::PeerWindow;
use rto::Rto;
use scoreboard::Scoreboard;
use tail_probe::TailProbe;
use timers::Pending;
use undo::Undo;

/// Where a sender's packets go.
pub trait Egress {
    /// Hands a segment to the host's network card; `ecn` goes into its IP header.
    fn transmit(&mut self, now: Time, segment: Segment, ecn: Ecn);

    /// Bytes of this flow that wait in its own host (TCP small queues count them).
    fn host_queue_bytes(&self) -> u64;

    /// For the record: a burst is about to be handed over.
    fn note_sent(&mut self, now: Time, packets: u32, wire_bytes: u64, retransmission: bool);
}

/// What a sender is told about its flow.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Packets of a window-based controller are paced, as under `fq`.
    pub pacing: bool,
    /// Offer ECN in the SYN even if the controller does not need it.
    pub ecn: bool,
    /// Initial window.
    pub initial_window: u32,
    /// By how much the receiver's timestamps are ahead of the sender's, in ms. Linux draws one for
    /// every connection (`net.ipv4.tcp_timestamps` 1).
    pub timestamp_offset: u32,
    /// The initial window leaves over the round trip that the handshake took.
    pub initial_pacing: bool,
    /// Bursts grow on very short paths (`tcp_tso_rtt_log`, from Linux 5.18 on).
    pub short_path_bursts: bool,
    /// Address of the receiver.
    pub peer: Peer,
    /// Payload of a full-sized segment ([`jostle_units::mss_of`] the MTU).
    pub mss_bytes: u16,
}

/// When a sender is to be called, [`Time::NEVER`] where it waits for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// By [`Sender::on_timer`]: retransmission, loss probe, reordering, window probe.
    pub retransmission: Time,
    /// By [`Sender::on_pacing_timer`]: pacing lets the next packet leave.
    pub pacing: Time,
    /// By [`Sender::on_wakeup`]: the controller asked for it.
    pub wakeup: Time,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { retransmission: Time::NEVER, pacing: Time::NEVER, wakeup: Time::NEVER }
    }
}

/// Whether a deadline has come. One that has is over.
#[inline]
fn take_expired(deadline: &mut Time, now: Time) -> bool {
    let expired = now >= *deadline;
    if expired {
        *deadline = Time::NEVER;
    }
    expired
}

/// What an ACK leaves behind, for a record of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// RTT sample, if the ACK gave one.
    pub rtt: Option<Span>,
    /// Congestion window after the ACK.
    pub cwnd_bytes: u64,
    /// Bytes in flight after the ACK.
    pub in_flight_bytes: u64,
    /// Payload bytes acknowledged since the connection began, cumulatively.
    pub acked_bytes: u64,
    /// Packets marked lost by this ACK.
    pub lost_packets: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    Closed,
    SynSent,
    Established,
}

/// The sending side of a connection.
pub struct Sender {
    options: Options,
    connection: Connection,
    /// The application has closed it, and all that it wrote is acknowledged.
    is_finished: bool,
    syn_sent_at: Time,
    board: Scoreboard,
    sampler: Sampler,
    rtt: RttEstimator,
    controller: Box<dyn Controller>,
    owner: RecoveryOwner,
    /// The controller wants to hear of headers ([`TcpExtension::hears_headers`]).
    hears_headers: bool,
    ecn: EcnState,

    /// Payload of a full-sized segment.
    mss: Divisor,
    /// Full segments in one buffer of the socket's write queue: bursts do not cross its boundary.
    buffer_segments: Divisor,

    /// End of the data that the application has written, in segments.
    written: u32,
    /// Segments that are not full sized, lowest first: the ends of messages.
    short: std::collections::VecDeque<(u32, u16)>,
    peer_window: PeerWindow,

    /// Copies of the controller's answers, taken after everything that may change them.
    cwnd: u32,
    ssthresh: u32,
    pacer: Pacer,
    /// The pacing rate is not this side's to choose: the controller requires it, or the first
    /// flight is spread.
    rate_required: bool,
    /// Rate that spreads the first flight over a round trip, until its first ACK.
    first_flight_rate: Option<Rate>,

    state: RecoveryState,
    /// `high_seq`: `snd_nxt` when the present state was entered.
    high: u32,
    reduction: Reduction,
    undo: Undo,
    /// `frto`: the timeout may prove to be spurious (RFC 5682).
    frto: bool,
    /// TCP small queues hold packets back.
    throttled: bool,

    rack: Rack,
    /// `reordering`: how many packets a packet was seen to be late, at least 3.
    reordering: u32,
    reordering_seen: bool,
    tail_probe: TailProbe,
    duplicates_reported: u64,

    pending: Pending,
    deadlines: Deadlines,
    rto: Rto,
    usage: WindowUse,
    last_send: Time,

    total_sent: u64,
    total_retransmitted: u64,
    acked_bytes: u64,
    /// `ts_recent`: what the next segment echoes.
    echo_ms: u32,
}

impl Sender {
    /// A sender that has not been opened.
    pub fn new(options: Options, controller: Box<dyn Controller>) -> Self {
        let owner = controller.recovery_owner();
        let paced = options.pacing || controller.pacing_rate().is_some();
        let ecn = EcnState::new(controller.needs_ecn());
        Self {
            options,
            connection: Connection::Closed,
            is_finished: false,
            syn_sent_at: Time::ZERO,
            board: Scoreboard::default(),
            sampler: Sampler::default(),
            rtt: RttEstimator::default(),
            controller,
            owner,
            hears_headers: false,
            ecn,
            mss: Divisor::new(u32::from(options.mss_bytes)),
            buffer_segments: bursts::buffer_segments(options.mss_bytes),
            written: 0,
            short: std::collections::VecDeque::new(),
            peer_window: PeerWindow::default(),
            cwnd: options.initial_window,
            ssthresh: u32::MAX,
            pacer: Pacer::new(paced),
            rate_required: false,
            first_flight_rate: None,
            state: RecoveryState::Open,
            high: 0,
            reduction: Reduction::default(),
            undo: Undo::default(),
            frto: false,
            throttled: false,
            rack: Rack::default(),
            reordering: 3,
            reordering_seen: false,
            tail_probe: TailProbe::default(),
            duplicates_reported: 0,
            pending: Pending::None,
            deadlines: Deadlines::default(),
            rto: Rto::new(),
            usage: WindowUse::new(),
            last_send: Time::ZERO,
            total_sent: 0,
            total_retransmitted: 0,
            acked_bytes: 0,
            echo_ms: 0,
        }
    }

    /// The application writes `bytes` more, or as much as the connection will ever take.
    pub fn supply(&mut self, now: Time, bytes: Option<u64>, out: &mut impl Egress) {
        let established = self.connection == Connection::Established;
        if established {
            self.restart_after_idle(now);
            self.note_application_limit(out);
        }
        match bytes {
            None => self.written = u32::MAX,
            Some(bytes) => {
                let full = u64::from(self.mss.get());
                // A segment that is short and has not left takes more (`tcp_sendmsg_locked` appends
                // to the tail of the write queue).
                let tail = self.short.pop_back_if(|&mut (number, _)| number + 1 == self.written);
                let bytes = match tail {
                    None => bytes,
                    Some((number, rest)) => {
                        self.written = number;
                        bytes + u64::from(rest)
                    }
                };
                // More than can be counted is more than any valid run can send.
                let segments = u32::try_from(bytes / full).unwrap_or(u32::MAX);
                self.written = self.written.saturating_add(segments);
                let rest = (bytes % full) as u16;
                if rest > 0 && self.written < u32::MAX {
                    self.short.push_back((self.written, rest));
                    self.written += 1;
                }
            }
        }
        if established {
            self.write(now, out);
        }
    }

    /// The application writes nothing more; what was not sent yet is discarded. Returns whether
    /// anything was.
    pub fn withdraw(&mut self) -> bool {
        let discarded = self.has_data();
        self.written = self.written.min(self.board.next());
        while self.short.back().is_some_and(|&(number, _)| number >= self.written) {
            self.short.pop_back();
        }
        discarded
    }

    /// Everything that was written is acknowledged.
    pub fn is_drained(&self) -> bool {
        self.connection == Connection::Established
            && self.written == self.board.first()
            && self.board.outstanding() == 0
    }

    /// Payload acknowledged since the connection began, in order.
    pub const fn acked_bytes(&self) -> u64 {
        self.acked_bytes
    }

    /// Congestion window, in packets.
    pub fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// Packets believed to be in the network.
    pub fn in_flight(&self) -> u32 {
        self.board.in_flight()
    }

    /// Payload of so many full segments.
    #[inline]
    pub fn bytes_of(&self, packets: u32) -> u64 {
        u64::from(packets) * u64::from(self.mss.get())
    }

    /// Smoothed RTT; zero before the first sample.
    pub fn srtt(&self) -> Span {
        self.rtt.srtt()
    }

    /// Who decides on the window.
    pub fn controller(&self) -> &dyn Controller {
        self.controller.as_ref()
    }

    /// The rate at which packets leave, if they are paced.
    pub fn visible_pacing_rate(&self) -> Option<Rate> {
        self.pacer.visible_rate()
    }

    /// Name of the mode for plots: recovery hides the controller's own.
    pub fn mode(&self) -> &'static str {
        match (self.connection, self.state, self.owner) {
            (Connection::Closed | Connection::SynSent, ..) => "handshake",
            (_, RecoveryState::Loss, _) => "timeout",
            (_, RecoveryState::Recovery, RecoveryOwner::Transport) => "recovery",
            (_, RecoveryState::Cwr, RecoveryOwner::Transport) => "cwr",
            _ => self.controller.mode(),
        }
    }

    /// When it is to be called next, unless a segment comes before that.
    #[inline]
    pub const fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }

    /// What holds after whatever a sender is called for.
    #[inline]
    fn check(&self) {
        let (board, counts) = (&self.board, self.board.counts());
        debug_assert!(board.is_consistent(), "{counts:?}");
        debug_assert!(board.next() <= self.written, "sent what was not written: {counts:?}");
        debug_assert!(u64::from(board.in_flight()) <= self.total_sent, "{counts:?}");
        debug_assert!(self.cwnd >= 1 && self.ssthresh >= 1, "{} of {}", self.cwnd, self.ssthresh);
        // RFC 6298 (5.1): "Every time a packet containing data is sent (including a retransmission),
        // if the timer is not running, start it".
        let timed = self.pending != Pending::None && self.deadlines.retransmission < Time::NEVER;
        debug_assert!(
            board.outstanding() == 0 || timed,
            "no timer: {:?}, {counts:?}",
            self.pending
        );
    }

    /// Copies window and threshold as the controller says them.
    #[inline]
    fn take_window(&mut self) {
        debug_assert!(self.controller.cwnd() >= 1, "no window");
        self.cwnd = self.controller.cwnd().max(1);
        self.ssthresh = self.controller.ssthresh().unwrap_or(u32::MAX);
    }

    /// Copies all of the controller's answers.
    fn take_answers(&mut self) {
        self.take_window();
        let required = match (self.controller.pacing_rate(), self.first_flight_rate) {
            (Some(rate), Some(first_flight)) => Some(rate.min(first_flight)),
            (rate, first_flight) => rate.or(first_flight),
        };
        if let Some(rate) = required {
            self.pacer.rate = rate;
        }
        self.rate_required = required.is_some();
        self.pacer.on = self.options.pacing || self.rate_required;
        self.deadlines.wakeup = self.controller.next_wakeup().unwrap_or(Time::NEVER);
    }

    fn set_cwnd(&mut self, cwnd: u32) {
        self.controller.set_cwnd(cwnd.max(1));
        self.cwnd = self.controller.cwnd().max(1);
    }

    fn set_state(&mut self, now: Time, state: RecoveryState) {
        debug_assert!(self.board.adds_up(), "before {state:?}: {:?}", self.board.counts());
        self.controller.on_state(now, state);
        self.state = state;
    }

    /// CWR or recovery: PRR moves cwnd (`tcp_in_cwnd_reduction`).
    #[inline]
    fn in_reduction(&self) -> bool {
        matches!(self.state, RecoveryState::Cwr | RecoveryState::Recovery)
    }

    /// Linux: `tcp_update_pacing_rate`. cwnd per SRTT, at 200 % in the early part of slow start
    /// and 120 % afterwards. It also governs the size of bursts when packets are not paced.
    #[inline]
    fn update_pacing_rate(&mut self) {
        if self.rate_required || self.owner == RecoveryOwner::Controller || self.rtt.srtt_8us() == 0
        {
            return;
        }
        let percent = if self.cwnd < self.ssthresh / 2 { 200 } else { 120 };
        let window = u64::from(self.cwnd.max(self.board.outstanding()));
        // bytes/s = percent/100 · MSS · window / (srtt_8us / 8 · 10⁻⁶)
        let per_s = u64::from(self.mss.get()) * 80_000 * percent * window / self.rtt.srtt_8us();
        self.pacer.rate = Rate::from_bytes_per_s(per_s);
    }

    fn congestion(&mut self, now: Time, signal: Signal) {
        self.controller.on_congestion(&Congestion {
            now,
            signal,
            in_flight: self.board.in_flight(),
            next_to_send: u64::from(self.board.next()),
        });
        self.take_answers();
    }
}
