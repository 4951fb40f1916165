//! Events and measurements that a transport reports to a controller.

use jostle_units::{Rate, Span, Time};

/// State of the transport's loss recovery (`tcp_ca_state` in Linux).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryState {
    /// No loss is suspected.
    #[default]
    Open,
    /// Packets arrived out of order and are not yet considered lost.
    Disorder,
    /// cwnd is being reduced after a congestion signal without loss (ECN).
    Cwr,
    /// Fast recovery.
    Recovery,
    /// Recovery after a retransmission timeout.
    Loss,
}

/// The side that reduces cwnd after a congestion signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CwndReductionBy {
    /// The transport reduces cwnd to the controller's ssthresh with Proportional Rate Reduction
    /// (RFC 9937), as Linux does for window-based controllers.
    Transport,
    /// The controller sets cwnd on every ACK (`cong_control` in Linux).
    Controller,
}

/// The feedback by which a receiver reports ECN marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnFeedback {
    /// No feedback: packets are not ECN-capable.
    #[default]
    None,
    /// RFC 3168: the receiver sets ECE from the first mark until the sender sends CWR. The sender
    /// sees at most one mark per window of data.
    Classic,
    /// RFC 8257: ECE on each ACK reports whether the acknowledged packets were marked
    /// (`TCP_CONG_NEEDS_ECN` in Linux). All packets are ECT(0), including those without data.
    DctcpEcho,
    /// RFC 9768 (AccECN): ACKs carry the number of packets that arrived with a mark. All packets
    /// are ECT(1), the codepoint of L4S (RFC 9331).
    AccEcn,
}

/// Properties of a connection at the end of its handshake.
#[derive(Clone, Copy, Debug)]
pub struct EstablishedEvent {
    /// Time of the first ACK.
    pub now: Time,
    /// Payload of a full-sized packet.
    pub mss_bytes: u32,
    /// Initial window.
    pub initial_window: u32,
    /// RTT of the handshake, if it could be measured.
    pub rtt: Option<Span>,
    /// Limits of the data sent before the first ACK.
    pub prospect: FirstFlightLimits,
}

/// Limits that the endpoints and the path set for the first flight, for start-ups that send more
/// than an initial window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstFlightLimits {
    /// Packets that the application has written so far; `None` for an endless stream.
    pub send_backlog_packets: Option<u64>,
    /// Receive window in packets.
    pub receive_window: u32,
    /// Rate that all routers of the path have granted
    /// ([`TcpExtension::quick_start_request`](super::TcpExtension::quick_start_request)).
    pub quick_start_rate: Option<Rate>,
}

impl Default for FirstFlightLimits {
    /// Returns limits that leave the choice to the controller.
    fn default() -> Self {
        Self { send_backlog_packets: None, receive_window: u32::MAX, quick_start_rate: None }
    }
}

impl FirstFlightLimits {
    /// Returns the number of packets that could be sent now without congestion control: the smaller
    /// of the application's data and the receive window.
    pub fn sendable(&self) -> u32 {
        let backlog =
            self.send_backlog_packets.map_or(u32::MAX, |it| u32::try_from(it).unwrap_or(u32::MAX));
        backlog.min(self.receive_window)
    }
}

/// A burst of packets that was just handed to the network.
#[derive(Clone, Copy, Debug)]
pub struct SendEvent {
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
    /// The connection was idle because the application had no data to send: nothing was in flight,
    /// and samples are application-limited
    /// ([`DeliveryRateSampler::is_app_limited`](crate::DeliveryRateSampler::is_app_limited)).
    pub after_idle: bool,
}

/// The timestamps option of an ACK (RFC 7323) in milliseconds, the tick of Linux (`TCP_TS_HZ`).
/// Each clock starts at an arbitrary value and wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// The receiver's clock when it sent the ACK (TSval).
    pub value_ms: u32,
    /// The sender's clock when it sent the packet that the ACK echoes (TSecr).
    pub echo_ms: u32,
    /// The sender's clock now.
    pub now_ms: u32,
}

/// Measurements of an ACK before loss detection processes it (`pkts_acked` in Linux).
#[derive(Clone, Copy, Debug, Default)]
pub struct RawAckSample {
    /// Time at which the ACK arrived.
    pub now: Time,
    /// RTT of the most recently sent packet among those newly acknowledged; `None` if only
    /// retransmissions were acknowledged.
    pub rtt: Option<Span>,
    /// Packets newly acknowledged cumulatively.
    pub packets: u32,
    /// Packets delivered since the most recently sent of the newly delivered packets was sent
    /// (`ack_sample.in_flight` in Linux, there in bytes); 0 if the ACK delivered none.
    pub delivered: u32,
    /// Packets beyond `first_unacked` that are selectively acknowledged (`sacked_out`).
    pub sacked: u32,
    /// Timestamps option of the ACK; `None` for a transport without this option.
    pub timestamps: Option<Timestamps>,
    /// First packet that is not acknowledged (`snd_una`), counted from the connection's start. The
    /// packets from here to `next_to_send` are FlightSize (RFC 5681 §2): also those that the ACK is
    /// about to mark lost.
    pub first_unacked: u64,
    /// Next packet to be sent for the first time (`snd_nxt`).
    pub next_to_send: u64,
    /// Recovery state when the ACK arrived.
    pub state: RecoveryState,
    /// Current pacing rate; `None` if packets are not paced.
    pub pacing_rate: Option<Rate>,
}

/// ECN marks that an ACK reports, on a connection that negotiated ECN.
#[derive(Clone, Copy, Debug)]
pub struct EcnMarks {
    /// Time at which the ACK arrived.
    pub now: Time,
    /// Packets delivered since the connection began, including this ACK.
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
    /// The longer of the send phase and the ACK phase. Samples shorter than the minimum RTT are
    /// discarded.
    pub interval: Span,
}

/// A packet that was just marked lost (`skb_marked_lost` in Linux's BBR v3, "per-packet (P) state"
/// in draft-ietf-ccwg-bbr).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// Time at which the packet was marked lost.
    pub now: Time,
    /// Packet number. Packets that were first sent one after another have consecutive numbers.
    pub number: u64,
    /// Packets in flight just after the packet was sent, including itself (`P.tx_in_flight`).
    pub in_flight_at_send: u32,
    /// Packets marked lost since the packet was sent, including itself.
    pub lost_since_send: u32,
    /// Whether sending was application-limited when the packet was sent.
    pub app_limited: bool,
    /// Packets delivered since the connection began.
    pub delivered: u64,
}

/// Measurements and state that an ACK provides to a controller.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSample {
    /// Time at which the ACK arrived.
    pub now: Time,
    /// Packets newly known to be delivered, cumulatively or selectively acknowledged.
    pub acked: u32,
    /// Packets newly marked lost.
    pub lost: u32,
    /// RTT of the most recently sent packet among those newly acknowledged.
    pub rtt: Option<Span>,
    /// Smoothed RTT (RFC 6298).
    pub srtt: Span,
    /// Windowed minimum of the RTT, over 300 s.
    pub min_rtt: Span,
    /// Delivery-rate sample, if the ACK provides a valid one.
    pub rate: Option<RateSample>,
    /// Value of `delivered` when the most recently sent of the newly acknowledged packets was sent.
    pub prior_delivered: u64,
    /// Time at which that packet was sent.
    pub sent_at: Time,
    /// Packets in flight just after that packet was sent, including itself; 0 if nothing was newly
    /// acknowledged.
    pub in_flight_at_send: u32,
    /// Packets marked lost since that packet was sent; 0 if nothing was newly acknowledged.
    pub lost_since_send: u32,
    /// Whether the rate sample is application-limited.
    pub app_limited: bool,
    /// The ACK acknowledges a single packet, so that a delayed-ACK timer may have delayed it.
    pub ack_delayed: bool,
    /// Packets delivered since the connection began.
    pub delivered: u64,
    /// Packets marked lost since the connection began.
    pub total_lost: u64,
    /// Packets sent since the connection began, retransmissions included.
    pub total_sent: u64,
    /// Packets in flight before the ACK.
    pub prior_in_flight: u32,
    /// Packets in flight after the ACK, without the packets that it marked lost.
    pub in_flight: u32,
    /// First packet that is not acknowledged (`snd_una`).
    pub first_unacked: u64,
    /// Next packet to be sent for the first time (`snd_nxt`).
    pub next_to_send: u64,
    /// Earliest departure time of the next packet under pacing (`tcp_wstamp_ns` in Linux).
    pub next_departure: Time,
    /// Recovery state after the ACK.
    pub state: RecoveryState,
    /// Whether the sender was cwnd-limited, so that cwnd may grow (RFC 9293's successor to RFC
    /// 2861, `tcp.h::tcp_is_cwnd_limited` in Linux). In slow start, half of the window is
    /// sufficient for a controller that leaves its recovery to the transport.
    pub cwnd_limited: bool,
    /// Whether the sender waited for pacing when the ACK arrived. RFC 9002 §7.8 counts a window that
    /// pacing leaves unused as used; Linux does not, so it is false over TCP.
    pub pacing_limited: bool,
    /// Whether cwnd may grow: the transport is not reducing it at the moment.
    pub can_increase_cwnd: bool,
    /// The ACK ended an episode of fast recovery or timeout recovery.
    pub recovery_ended: bool,
    /// Packets newly reported as marked with congestion experienced.
    pub ce_marked: u32,
}

impl AckSample {
    /// Returns `rtt`, or the RTT of the retransmission that the ACK acknowledges. Karn's algorithm
    /// excludes it from `rtt`, and SACKs of retransmissions alone can arrive for as long as a rate
    /// is too high, so that a controller that only used `rtt` would wait for ever. As in RACK (RFC
    /// 8985 §6.2, step 2), an RTT below the minimum belongs to an earlier transmission.
    #[inline]
    pub fn transmission_rtt(&self) -> Option<Span> {
        self.rtt.or_else(|| {
            let rtt = self.now.since(self.sent_at);
            // A duplicate (D-SACK) counts as delivered, but it has no packet with a send time.
            let delivered = self.acked > 0 && self.in_flight_at_send > 0;
            (delivered && rtt >= self.min_rtt).then_some(rtt)
        })
    }
}

/// Reason for a reduction of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionSignal {
    /// Loss found by acknowledgements: fast recovery starts.
    Loss,
    /// The receiver echoed a congestion-experienced mark.
    Ecn,
    /// The controller requested the reduction
    /// ([`take_cwr_request`](super::CongestionController::take_cwr_request)).
    Request,
    /// The retransmission timer expired.
    Timeout,
}

/// A congestion signal: at most one per window of data.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    /// Time of the signal.
    pub now: Time,
    /// Kind of the signal.
    pub signal: CongestionSignal,
    /// Packets in flight, without those marked lost.
    pub in_flight: u32,
    /// Next packet to be sent for the first time (`snd_nxt`).
    pub next_to_send: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(rtt: Option<Span>, sent_ms: u64, in_flight_at_send: u32) -> AckSample {
        let zero = Span::ZERO;
        AckSample {
            now: Time::ZERO + Span::from_ms(1_000),
            acked: in_flight_at_send.min(1),
            lost: 0,
            rtt,
            srtt: zero,
            min_rtt: Span::from_ms(40),
            rate: None,
            prior_delivered: 0,
            sent_at: Time::ZERO + Span::from_ms(sent_ms),
            in_flight_at_send,
            lost_since_send: 0,
            app_limited: false,
            ack_delayed: false,
            delivered: 1,
            total_lost: 0,
            total_sent: 1,
            prior_in_flight: 1,
            in_flight: 0,
            first_unacked: 0,
            next_to_send: 1,
            next_departure: Time::ZERO,
            state: RecoveryState::Recovery,
            cwnd_limited: true,
            pacing_limited: false,
            can_increase_cwnd: true,
            recovery_ended: false,
            ce_marked: 0,
        }
    }

    /// RFC 8985 §6.2: 39 ms are less than the minimum RTT of 40 ms, so that the ACK is one of the
    /// original.
    #[test]
    fn a_retransmission_gives_an_rtt_unless_the_original_was_delivered() {
        let ms = |ms| Some(Span::from_ms(ms));
        assert_eq!(ack(ms(50), 900, 5).transmission_rtt(), ms(50), "the transport knows it");
        assert_eq!(ack(None, 900, 5).transmission_rtt(), ms(100));
        assert_eq!(ack(None, 961, 5).transmission_rtt(), None);
        assert_eq!(ack(None, 900, 0).transmission_rtt(), None, "nothing was delivered");
    }
}
