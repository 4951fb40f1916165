//! The sending side of a TCP connection with SACK, timestamps and RACK, modelled on Linux 6.1.
//!
//! Comments give the Linux name of a field or function where it exists. Modules: outstanding
//! segments (`scoreboard`), opening and closing (`handshake`), processing of ACKs (`ack`) and of
//! SACK blocks (`sack`), the recovery states (`recovery`) and their undo (`undo`), RACK (`rack`),
//! timers (`timers`), the retransmission timeout (`rto`), the tail loss probe (`tlp`), sending of
//! new data (`transmit`) from the write queue (`write_queue`), burst sizes (`burst_size`),
//! retransmissions (`retransmit`), congestion window validation (`cwnd_validation`), the receiver's
//! window (`advertised_window`) and ECN (`ecn`).

mod ack;
mod advertised_window;
mod burst_size;
mod cwnd_validation;
mod ecn;
mod handshake;
mod rack;
mod recovery;
mod retransmit;
mod rto;
mod sack;
mod scoreboard;
mod timers;
mod tlp;
mod transmit;
mod undo;
mod write_queue;

#[cfg(test)]
mod tests;

use jostle_congestion::peer_cache::PeerAddress;
use jostle_congestion::transport::{CwndUsage, HostTimers, Pacer, RecoverFlightSize};
use jostle_congestion::{
    CongestionController, CongestionEvent, CongestionSignal, CwndReductionBy, DeliveryRateSampler,
    EstablishedEvent, RecoveryState, RttEstimator,
};
use jostle_units::{Ecn, Rate, SendLimit, Span, Time};

use crate::segment::{Segment, timestamp_ms};
use advertised_window::AdvertisedWindow;
use ecn::EcnState;
use rack::{Rack, Reordering};
use recovery::Recovery;
use rto::RetransmissionTimeout;
use scoreboard::Scoreboard;
use timers::PendingTimer;
use tlp::TailProbe;
use write_queue::WriteQueue;

/// Destination of a sender's packets.
pub trait SegmentSink {
    /// Passes a segment to the NIC of the host. `ecn` is the field of its IP header.
    fn transmit(&mut self, now: Time, segment: Segment, ecn: Ecn);

    /// Returns the bytes of this flow that wait in the sending host (counted by TCP small queues).
    fn host_queue_bytes(&self) -> u64;

    /// Records a burst before it is sent.
    fn note_sent(&mut self, now: Time, packets: u32, wire_bytes: u64, retransmission: bool);

    /// Records what limits the sender from now on. Called only if it changes.
    fn note_limit(&mut self, now: Time, limit: SendLimit);
}

/// Configuration of a sender.
#[derive(Clone, Copy, Debug)]
pub struct SenderConfig {
    /// Paces the packets of a window-based controller, as under `fq`.
    pub pacing: bool,
    /// Offers ECN in the SYN even if the controller does not require it.
    pub ecn: bool,
    /// Initial window.
    pub initial_window: u32,
    /// Offset of the receiver's timestamps from the sender's, in ms. Linux draws a random offset
    /// for each connection (`net.ipv4.tcp_timestamps` 1).
    pub timestamp_offset: u32,
    /// Spreads the initial window over the RTT of the handshake.
    pub initial_pacing: bool,
    /// Sends larger bursts on very short paths (`tcp_tso_rtt_log`, since Linux 5.18).
    pub short_path_bursts: bool,
    /// RecoverFS of Proportional Rate Reduction.
    pub recover_flight_size: RecoverFlightSize,
    /// Timers of the sending host.
    pub timers: HostTimers,
    /// Address of the receiver.
    pub peer: PeerAddress,
    /// Payload of a full-sized segment ([`jostle_units::mss_of`] the MTU).
    pub mss_bytes: u16,
    /// Unsent data that the application keeps, if it has as much (`TCP_NOTSENT_LOWAT`).
    pub unsent_bytes: u32,
    /// The sender accepts the connection, and its application responds to requests of the peer.
    pub is_server: bool,
}

/// Deadlines of a sender; [`Time::NEVER`] for a deadline that is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderTimers {
    /// Deadline for [`Sender::on_timer`]: retransmission, loss probe, reordering, window probe.
    pub retransmission: Time,
    /// Deadline for [`Sender::on_pacing_timer`]: departure time of the next packet under pacing.
    pub pacing: Time,
    /// Deadline for [`Sender::on_wakeup`], set by the controller.
    pub wakeup: Time,
}

impl Default for SenderTimers {
    fn default() -> Self {
        Self { retransmission: Time::NEVER, pacing: Time::NEVER, wakeup: Time::NEVER }
    }
}

/// Returns whether a deadline has passed, and clears it.
#[inline]
fn take_expired(deadline: &mut Time, now: Time) -> bool {
    let expired = now >= *deadline;
    if expired {
        *deadline = Time::NEVER;
    }
    expired
}

/// State after an ACK, for recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckOutcome {
    /// RTT sample, if the ACK provides one.
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
    /// The SYN-ACK of this end is not yet acknowledged.
    SynReceived,
    Established,
}

/// The sending side of a connection.
pub struct Sender {
    options: SenderConfig,
    connection: Connection,
    /// The application has closed the connection, and all its data is acknowledged.
    is_finished: bool,
    syn_sent_at: Time,
    board: Scoreboard,
    sampler: DeliveryRateSampler,
    rtt: RttEstimator,
    controller: Box<dyn CongestionController>,
    owner: CwndReductionBy,
    /// Whether the controller requests ACK events
    /// ([`TcpExtension::wants_ack_events`](jostle_congestion::TcpExtension::wants_ack_events)).
    wants_ack_events: bool,
    ecn: EcnState,

    queue: WriteQueue,
    peer_window: AdvertisedWindow,

    /// Copies of the controller's outputs, updated after each event that may change them.
    cwnd: u32,
    ssthresh: u32,
    pacer: Pacer,
    /// Whether the pacing rate is fixed: the controller requires it, or the first flight is spread.
    rate_required: bool,
    /// Rate that spreads the first flight over a round trip. `None` after the first ACK.
    first_flight_rate: Option<Rate>,

    recovery: Recovery,
    /// Whether TCP small queues are delaying packets.
    throttled: bool,
    /// Limit of the sender. `None` before the handshake is complete.
    limit: Option<SendLimit>,

    rack: Rack,
    reordering: Reordering,
    tail_probe: TailProbe,
    duplicates_reported: u64,

    pending: PendingTimer,
    deadlines: SenderTimers,
    rto: RetransmissionTimeout,
    usage: CwndUsage,
    last_send: Time,

    total_sent: u64,
    total_retransmitted: u64,
    acked_bytes: u64,
    /// `ts_recent`: timestamp that the next segment echoes.
    echo_ms: u32,
    /// What the controller of a server gets before its first response.
    unstarted: Option<Box<EstablishedEvent>>,
}

impl Sender {
    /// Creates a sender whose connection is not yet open.
    pub fn new(options: SenderConfig, controller: Box<dyn CongestionController>) -> Self {
        let owner = controller.recovery_owner();
        let paced = options.pacing || controller.pacing_rate().is_some();
        let ecn = EcnState::new(controller.required_ecn_feedback());
        Self {
            options,
            connection: Connection::Closed,
            is_finished: false,
            syn_sent_at: Time::ZERO,
            board: Scoreboard::default(),
            sampler: DeliveryRateSampler::default(),
            rtt: RttEstimator::default(),
            controller,
            owner,
            wants_ack_events: false,
            ecn,
            queue: WriteQueue::new(options.mss_bytes, options.unsent_bytes),
            peer_window: AdvertisedWindow::default(),
            cwnd: options.initial_window,
            ssthresh: u32::MAX,
            pacer: Pacer::new(paced),
            rate_required: false,
            first_flight_rate: None,
            recovery: Recovery::default(),
            throttled: false,
            limit: None,
            rack: Rack::default(),
            reordering: Reordering::default(),
            tail_probe: TailProbe::default(),
            duplicates_reported: 0,
            pending: PendingTimer::None,
            deadlines: SenderTimers::default(),
            rto: RetransmissionTimeout::new(),
            usage: CwndUsage::new(),
            last_send: Time::ZERO,
            total_sent: 0,
            total_retransmitted: 0,
            acked_bytes: 0,
            echo_ms: 0,
            unstarted: None,
        }
    }

    /// Adds `bytes` to the data written by the application, or unlimited data.
    pub fn supply(&mut self, now: Time, bytes: Option<u64>, out: &mut impl SegmentSink) {
        let established = self.connection == Connection::Established;
        let is_started = self.unstarted.is_none();
        if established {
            if is_started {
                self.restart_after_idle(now);
            }
            self.note_application_limit(out);
        }
        let is_long = self.queue.append(bytes, self.board.next(), self.peer_window.largest);
        if established {
            if !is_started {
                self.start_server(now);
            }
            self.write_appended(now, is_long, out);
        }
    }

    /// Ends the data of the application, whose send buffer is still sent. It is empty until the
    /// connection is open.
    pub fn stop_writing(&mut self) {
        if self.connection == Connection::Established {
            self.queue.stop_writing(self.board.next());
        } else {
            self.withdraw();
        }
    }

    /// Ends the data of the application and discards unsent data. Returns whether there was any.
    pub fn withdraw(&mut self) -> bool {
        let discarded = self.has_data();
        self.queue.truncate(self.board.next());
        discarded
    }

    /// Returns whether all written data is acknowledged.
    pub fn is_drained(&self) -> bool {
        self.connection == Connection::Established
            && self.queue.end() == self.board.first()
            && self.board.outstanding() == 0
    }

    /// Returns the first segment that was never sent (`snd_nxt`).
    pub fn next_to_send(&self) -> u32 {
        self.board.next()
    }

    /// Returns the payload acknowledged since the connection began, in order.
    pub const fn acked_bytes(&self) -> u64 {
        self.acked_bytes
    }

    /// Returns the congestion window in packets.
    pub fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// Returns the estimated number of packets in flight.
    pub fn in_flight(&self) -> u32 {
        self.board.in_flight()
    }

    /// Returns the payload of `segments` full-sized segments.
    #[inline]
    pub fn bytes_of(&self, packets: u32) -> u64 {
        self.queue.bytes_of(packets)
    }

    /// Returns the smoothed RTT; zero before the first sample.
    pub fn srtt(&self) -> Span {
        self.rtt.srtt()
    }

    /// Returns the congestion controller.
    pub fn controller(&self) -> &dyn CongestionController {
        self.controller.as_ref()
    }

    /// Returns the pacing rate, if packets are paced.
    pub fn visible_pacing_rate(&self) -> Option<Rate> {
        self.pacer.visible_rate()
    }

    /// Returns the name of the mode for plots. During recovery it replaces the controller's own
    /// mode.
    pub fn mode(&self) -> &'static str {
        match (self.connection, self.recovery.state(), self.owner) {
            (Connection::Closed | Connection::SynSent | Connection::SynReceived, ..) => "handshake",
            (_, RecoveryState::Loss, _) => "timeout",
            (_, RecoveryState::Recovery, CwndReductionBy::Transport) => "recovery",
            (_, RecoveryState::Cwr, CwndReductionBy::Transport) => "cwr",
            _ => self.controller.mode(),
        }
    }

    /// Returns the time of the next call, unless a segment arrives earlier.
    #[inline]
    pub const fn deadlines(&self) -> &SenderTimers {
        &self.deadlines
    }

    /// Checks the invariants that hold after every call.
    #[inline]
    fn check(&self) {
        let (board, counts) = (&self.board, self.board.counts());
        debug_assert!(board.is_consistent(), "{counts:?}");
        debug_assert!(self.queue.is_consistent(board.next()), "{:?}, {counts:?}", self.queue);
        debug_assert!(self.recovery.is_consistent(board), "{:?}, {counts:?}", self.recovery);
        debug_assert!(u64::from(board.in_flight()) <= self.total_sent, "{counts:?}");
        debug_assert!(self.cwnd >= 1 && self.ssthresh >= 1, "{} of {}", self.cwnd, self.ssthresh);
        // RFC 6298 §5 (5.1): "Every time a packet containing data is sent (including a
        // retransmission), if the timer is not running, start it".
        let timed =
            self.pending != PendingTimer::None && self.deadlines.retransmission < Time::NEVER;
        debug_assert!(
            board.outstanding() == 0 || timed,
            "no timer: {:?}, {counts:?}",
            self.pending
        );
    }

    /// Copies cwnd and ssthresh from the controller.
    #[inline]
    fn take_window(&mut self) {
        debug_assert!(self.controller.cwnd() >= 1, "no window");
        self.cwnd = self.controller.cwnd().max(1);
        self.ssthresh = self.controller.ssthresh().unwrap_or(u32::MAX);
    }

    /// Copies all outputs of the controller.
    fn copy_controller_outputs(&mut self) {
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
        self.controller.on_recovery_state(now, state);
        self.recovery.enter(state);
    }

    /// Sets the pacing rate (`tcp_input.c::tcp_update_pacing_rate` in Linux): cwnd per SRTT, at 200
    /// % in the early part of slow start and 120 % afterwards. It also determines the burst size
    /// when packets are not paced.
    #[inline]
    fn update_pacing_rate(&mut self) {
        if self.rate_required
            || self.owner == CwndReductionBy::Controller
            || self.rtt.srtt_8us() == 0
        {
            return;
        }
        let percent = if self.cwnd < self.ssthresh / 2 { 200 } else { 120 };
        let window = u64::from(self.cwnd.max(self.board.outstanding()));
        // bytes/s = percent/100 · MSS · window / (srtt_8us / 8 · 10⁻⁶)
        let per_s =
            u64::from(self.queue.mss_bytes()) * 80_000 * percent * window / self.rtt.srtt_8us();
        self.pacer.rate = Rate::from_bytes_per_s(per_s);
    }

    fn congestion(&mut self, now: Time, signal: CongestionSignal) {
        self.controller.on_congestion_event(&CongestionEvent {
            now,
            signal,
            in_flight: self.board.in_flight(),
            next_to_send: u64::from(self.board.next()),
        });
        self.copy_controller_outputs();
    }
}
