//! What a transport tells a controller.

use jostle_units::{Rate, Span, Time};

/// Where the transport's loss recovery stands (`tcp_ca_state` in Linux).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryState {
    /// Nothing is suspected.
    #[default]
    Open,
    /// Packets arrived out of order; not yet taken for loss.
    Disorder,
    /// The window shrinks after a congestion signal without loss (ECN).
    Cwr,
    /// Fast recovery.
    Recovery,
    /// Recovery after a retransmission timeout.
    Loss,
}

/// Who brings cwnd down after a congestion signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryOwner {
    /// The transport moves cwnd to the controller's ssthresh by Proportional Rate Reduction
    /// (RFC 6937), as Linux does for window-based controllers.
    Transport,
    /// The controller answers every ACK with the cwnd it wants (`cong_control` in Linux).
    Controller,
}

/// How a sender learns of packets that the network marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnFeedback {
    /// Not at all: packets are not ECN-capable.
    #[default]
    None,
    /// RFC 3168: ECE from the first mark on, until the sender says that it has slowed down. Tells
    /// of a mark per window of data.
    Classic,
    /// RFC 8257: ECE says of every ACK whether the packets that it acknowledges were marked
    /// (`TCP_CONG_NEEDS_ECN` in Linux). All packets are ECT(0), those without data as well.
    PerPacket,
    /// RFC 9768 (AccECN): ACKs carry the number of packets that came in marked. All packets are
    /// ECT(1), the codepoint of L4S (RFC 9331).
    Counted,
}

/// What a connection looks like when its handshake is complete.
#[derive(Clone, Copy, Debug)]
pub struct Established {
    /// Time of the first ACK.
    pub now: Time,
    /// Payload of a full-sized packet.
    pub mss_bytes: u32,
    /// Initial window.
    pub initial_window: u32,
    /// RTT of the handshake, if it could be measured.
    pub rtt: Option<Span>,
    /// What may be sent before the first ACK.
    pub prospect: Prospect,
}

/// What the ends and the path say about the first flight, for start-ups that send more than an
/// initial window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prospect {
    /// Packets that the application has written so far; none if there is no end to them.
    pub backlog: Option<u64>,
    /// Packets that the receiver has offered to take.
    pub receive_window: u32,
    /// Rate that every router of the path has granted
    /// ([`TcpExtension::rate_request`](super::TcpExtension::rate_request)).
    pub granted: Option<Rate>,
}

impl Default for Prospect {
    /// No limit but the controller's own.
    fn default() -> Self {
        Self { backlog: None, receive_window: u32::MAX, granted: None }
    }
}

impl Prospect {
    /// Packets that could be sent at once if there were no congestion: the lesser of the data and
    /// the receiver's window.
    pub fn sendable(&self) -> u32 {
        let backlog = self.backlog.map_or(u32::MAX, |it| u32::try_from(it).unwrap_or(u32::MAX));
        backlog.min(self.receive_window)
    }
}

/// A burst of packets that was just handed to the network.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Time of sending.
    pub now: Time,
    /// Packets in the burst, retransmissions included.
    pub packets: u32,
    /// Packets sent since the connection began, this burst included.
    pub total_sent: u64,
    /// Next packet to be sent for the first time (`snd_nxt`), after the burst.
    pub next_to_send: u64,
    /// Packets that were in flight before the burst.
    pub prior_in_flight: u32,
    /// The connection had gone idle because its application had nothing to send: nothing was in
    /// flight, and samples count as limited by the application
    /// ([`Sampler::is_app_limited`](crate::Sampler::is_app_limited)).
    pub after_idle: bool,
}

/// The timestamps option of an ACK (RFC 7323) in milliseconds, the tick that Linux gives it
/// (`TCP_TS_HZ`). Each clock has an origin of its own and wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// The receiver's clock when it sent the ACK (TSval).
    pub value_ms: u32,
    /// The sender's clock when it sent the packet that the ACK echoes (TSecr).
    pub echo_ms: u32,
    /// The sender's clock now.
    pub now_ms: u32,
}

/// What an ACK measured, before loss detection acts on it (`pkts_acked` in Linux).
#[derive(Clone, Copy, Debug, Default)]
pub struct Measurement {
    /// Time at which the ACK arrived.
    pub now: Time,
    /// RTT of the packet sent last among those newly acknowledged; none where only
    /// retransmissions were acknowledged.
    pub rtt: Option<Span>,
    /// Packets newly acknowledged cumulatively.
    pub packets: u32,
    /// Packets delivered since the packet was sent that was sent last among those newly delivered
    /// (`ack_sample.in_flight` in Linux, in bytes there); 0 if none was.
    pub delivered: u32,
    /// Packets beyond `first_unacked` that are selectively acknowledged (`sacked_out`).
    pub sacked: u32,
    /// Timestamps option of the ACK; none for a transport without it.
    pub timestamps: Option<Timestamps>,
    /// First packet that is not acknowledged (`snd_una`), counted from the connection's start.
    pub first_unacked: u64,
    /// Next packet to be sent for the first time (`snd_nxt`).
    pub next_to_send: u64,
    /// Where recovery stood when the ACK arrived.
    pub state: RecoveryState,
    /// Pacing rate in force; none if packets are not paced.
    pub pacing_rate: Option<Rate>,
}

/// What an ACK says of marks, on a connection that negotiated ECN.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    /// Time at which the ACK arrived.
    pub now: Time,
    /// Packets delivered since the connection began, those of this ACK included.
    pub delivered: u64,
    /// Packets that the receiver reported as marked since the connection began.
    pub marked: u64,
    /// First packet that is not acknowledged (`snd_una`).
    pub first_unacked: u64,
    /// Next packet to be sent for the first time (`snd_nxt`).
    pub next_to_send: u64,
}

/// A delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation, `tcp_rate.c` in Linux).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Packets delivered over `interval`.
    pub delivered: u32,
    /// The longer of the send and the ACK phase. Samples shorter than the min RTT never appear.
    pub interval: Span,
}

/// A packet that was just marked lost (`skb_marked_lost` in Linux's BBR v3, "per-packet (P) state"
/// in draft-ietf-ccwg-bbr).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// Time at which it was marked.
    pub now: Time,
    /// Its number; packets that were first sent one after the other have numbers in a row.
    pub number: u64,
    /// Packets in flight when it had been sent, itself included (`P.tx_in_flight`).
    pub in_flight_at_send: u32,
    /// Packets marked lost since it was sent, itself included.
    pub lost_since_send: u32,
    /// The application had left the network idle when it was sent.
    pub app_limited: bool,
    /// Packets delivered since the connection began.
    pub delivered: u64,
}

/// Everything an ACK tells a controller.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// Time at which the ACK arrived.
    pub now: Time,
    /// Packets newly known to be delivered, cumulatively or selectively acknowledged.
    pub acked: u32,
    /// Packets newly marked lost.
    pub lost: u32,
    /// RTT of the packet sent last among those newly acknowledged.
    pub rtt: Option<Span>,
    /// Smoothed RTT (RFC 6298).
    pub srtt: Span,
    /// Windowed minimum of the RTT, over 300 s.
    pub min_rtt: Span,
    /// Delivery-rate sample, where one could be taken.
    pub rate: Option<RateSample>,
    /// `delivered` as it was when the packet sent last among those newly acknowledged was sent.
    pub prior_delivered: u64,
    /// Time at which that packet was sent.
    pub sent_at: Time,
    /// Packets in flight when that packet had been sent, itself included; 0 if nothing was newly
    /// acknowledged.
    pub in_flight_at_send: u32,
    /// Packets marked lost since that packet was sent; 0 if nothing was newly acknowledged.
    pub lost_since_send: u32,
    /// The rate sample was limited by the application, not by the network.
    pub app_limited: bool,
    /// The ACK acknowledges a single packet, so a delayed-ACK timer may have held it back.
    pub ack_delayed: bool,
    /// Packets delivered since the connection began.
    pub delivered: u64,
    /// Packets marked lost since the connection began.
    pub total_lost: u64,
    /// Packets sent since the connection began, retransmissions included.
    pub total_sent: u64,
    /// Packets in flight before the ACK.
    pub prior_in_flight: u32,
    /// Packets in flight after the ACK and its loss marks.
    pub in_flight: u32,
    /// First packet that is not acknowledged (`snd_una`).
    pub first_unacked: u64,
    /// Next packet to be sent for the first time (`snd_nxt`).
    pub next_to_send: u64,
    /// Earliest time at which pacing lets the next packet leave (`tcp_wstamp_ns` in Linux).
    pub next_departure: Time,
    /// Where recovery stands after the ACK.
    pub state: RecoveryState,
    /// The window was the limit of what was sent, so it may grow (RFC 9293's successor to
    /// RFC 2861, `tcp_is_cwnd_limited` in Linux). In slow start, half of the window is enough for a
    /// controller that leaves its recovery to the transport.
    pub cwnd_limited: bool,
    /// The transport is not reducing cwnd at the moment, so window-based growth applies.
    pub may_grow: bool,
    /// The ACK ended an episode of fast recovery or timeout recovery.
    pub left_recovery: bool,
    /// Packets newly reported as marked with congestion experienced.
    pub ce_marked: u32,
}

/// Why a window must shrink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Loss found by acknowledgements: fast recovery starts.
    Loss,
    /// The receiver echoed a congestion-experienced mark.
    Ecn,
    /// The controller asked for it
    /// ([`take_reduction_request`](super::Controller::take_reduction_request)).
    Request,
    /// The retransmission timer expired.
    Timeout,
}

/// A congestion signal: at most one per window of data.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// Time of the signal.
    pub now: Time,
    /// What it was.
    pub signal: Signal,
    /// Packets in flight, marks of loss already subtracted.
    pub in_flight: u32,
    /// Next packet to be sent for the first time (`snd_nxt`).
    pub next_to_send: u64,
}
