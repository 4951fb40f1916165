//! What an end can be told about its transport.

use std::fmt;

use jostle_control::Controller;
use jostle_control::memory::Peer;
use jostle_units::Span;

use crate::Error;

/// Smallest datagram that every path must take (RFC 9000 §14: "at least 1200 bytes").
pub(crate) const MIN_DATAGRAM_BYTES: u16 = 1200;
/// Smallest window (`kMinimumWindow`, RFC 9002 §7.2: "2 * max_datagram_size").
pub(crate) const MIN_WINDOW_PACKETS: u32 = 2;
/// Largest payload of UDP over IPv4.
const MAX_DATAGRAM_BYTES: u16 = 65_527;

/// Who decides on the window.
pub enum Congestion {
    /// A controller of this project, or one written by somebody else for it.
    Ours(Box<dyn Controller>),
    /// A controller of the stack.
    Stack(Stack),
}

impl fmt::Debug for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(controller) => write!(f, "Ours({})", controller.mode()),
            Self::Stack(stack) => write!(f, "Stack({stack:?})"),
        }
    }
}

/// The stack's own controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// CUBIC (RFC 9438).
    Cubic,
    /// NewReno (RFC 9002 §7).
    Reno,
    /// BBRv3 (draft-ietf-ccwg-bbr-06). Draws random numbers that no seed reaches: runs with it differ.
    Bbr3,
}

/// How the window of a window-based controller comes down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// At once, as the pseudocode of RFC 9002 (B.6) has it, with one packet to speed up repair.
    #[default]
    Rfc9002,
    /// By Proportional Rate Reduction (RFC 6937), as Linux's TCP. RFC 9002 §7.3.2: "MAY reduce the
    /// congestion window immediately ... or use other mechanisms, such as Proportional Rate
    /// Reduction".
    Prr,
}

/// How a connection opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handshake {
    /// Data follow the handshake, one round trip after its first packet.
    #[default]
    OneRtt,
    /// Data leave with the first packet: the client has been here before, and has the server's
    /// parameters (RFC 9001 §4.6).
    ZeroRtt,
}

/// What protects packets. It changes no size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Crypto {
    /// Nothing.
    #[default]
    None,
    /// TLS 1.3 (RFC 9001). Both ends write their secrets down.
    Tls,
}

/// What the sender asks of the receiver's ACKs (draft-ietf-quic-ack-frequency).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// Packets that may go without an ACK: one is sent when there are more.
    pub eliciting_threshold: u32,
    /// Longest that an ACK may be held back; none for the receiver's own choice.
    pub max_ack_delay: Option<Span>,
    /// Packets by which another may be late before an ACK is sent for it at once.
    pub reordering_threshold: u32,
}

/// What an end is told about its transport. Both ends of a connection have the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Largest payload of UDP that is sent before larger ones are known to pass
    /// (`max_datagram_size` of RFC 9002, `initial_mtu` of the stack).
    pub datagram_bytes: u16,
    /// Largest that path MTU discovery (RFC 8899) tries; none: there is no discovery.
    pub discover_up_to_bytes: Option<u16>,
    /// What the sender asks of ACKs; none: an ACK for every second packet, within 25 ms (RFC 9000
    /// §13.2.1).
    pub ack_frequency: Option<AckFrequency>,
    /// How the window comes down. Only for [`Congestion::Ours`].
    pub recovery: Recovery,
    /// Packets of window-based controllers are paced (RFC 9002 §7.7: "SHOULD pace"). Only for
    /// [`Congestion::Ours`]: the stack's own are always paced.
    pub pacing: bool,
    /// Datagrams that leave together at most: what a host hands over in one call (GSO), and what
    /// pacing lets pass at once.
    pub burst_datagrams: u8,
    /// Initial window. RFC 9002 §7.2: ten packets.
    pub initial_window_packets: u32,
    /// Streams over which endless data are spread.
    pub streams: u32,
    /// Flow-control window of a stream (RFC 9000 §4).
    pub stream_window_bytes: u64,
    /// Flow-control window of the connection.
    pub connection_window_bytes: u64,
    /// Data that the sender keeps for retransmission at most.
    pub send_buffer_bytes: u64,
    /// How a connection opens.
    pub handshake: Handshake,
    /// What protects packets.
    pub crypto: Crypto,
    /// The server's certificates, where there is no TLS.
    pub certificate_bytes: u16,
    /// ECN is offered to controllers that do not need it, too.
    pub ecn: bool,
    /// RTT before one was measured. RFC 9002 §6.2.2: "333 milliseconds".
    pub initial_rtt: Span,
    /// `kPacketThreshold` (RFC 9002 §6.1.1).
    pub packet_threshold: u32,
    /// A connection on which nothing is heard for so long ends; none: it never does.
    pub idle_timeout: Option<Span>,
    /// Title of a log of what the end does (qlog); none: it keeps none.
    pub log: Option<String>,
    /// Address of the receiver, for what the host remembers of its peers.
    pub peer: Peer,
}

impl Default for Settings {
    /// The stack's defaults, which are those of RFC 9000 and RFC 9002 where they name any; windows of
    /// flow control that do not limit a simulated flow.
    fn default() -> Self {
        Self {
            datagram_bytes: MIN_DATAGRAM_BYTES,
            discover_up_to_bytes: Some(1452),
            ack_frequency: None,
            recovery: Recovery::default(),
            pacing: true,
            burst_datagrams: 10,
            initial_window_packets: 10,
            streams: 1,
            stream_window_bytes: 64 << 20,
            connection_window_bytes: 256 << 20,
            send_buffer_bytes: 64 << 20,
            handshake: Handshake::default(),
            crypto: Crypto::default(),
            certificate_bytes: 600,
            ecn: false,
            initial_rtt: Span::from_ms(333),
            packet_threshold: 3,
            idle_timeout: None,
            log: None,
            peer: Peer::default(),
        }
    }
}

impl Settings {
    /// Longest that the receiver holds an ACK back (`max_ack_delay`, RFC 9000 §18.2: "a default of 25
    /// milliseconds is assumed"). Where the sender asks for ACKs without a bound the stack takes one
    /// from the RTT.
    pub(crate) fn max_ack_delay(&self) -> Span {
        match self.ack_frequency {
            None => Span::from_ms(25),
            Some(frequency) => frequency.max_ack_delay.unwrap_or(Span::MAX),
        }
    }

    /// What QUIC cannot have.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |key, value, accepted| Err(Error::Setting { key, value, accepted });
        if !(MIN_DATAGRAM_BYTES..=MAX_DATAGRAM_BYTES).contains(&self.datagram_bytes) {
            let value = u64::from(self.datagram_bytes);
            return refuse("datagram_bytes", value, "1200 to 65527 bytes (RFC 9000 §14)");
        }
        if let Some(bytes) = self.discover_up_to_bytes
            && !(self.datagram_bytes..=MAX_DATAGRAM_BYTES).contains(&bytes)
        {
            let value = u64::from(bytes);
            return refuse("discover_up_to_bytes", value, "`datagram_bytes` to 65527 bytes");
        }
        if self.crypto == Crypto::Tls && self.handshake == Handshake::ZeroRtt {
            return Err(Error::Connect(
                "0-RTT needs a session to resume, which TLS has not".to_owned(),
            ));
        }
        if self.burst_datagrams == 0 {
            return refuse("burst_datagrams", 0, "at least 1");
        }
        if self.initial_window_packets == 0 {
            return refuse("initial_window_packets", 0, "at least 1");
        }
        if !(1..=100).contains(&self.streams) {
            return refuse("streams", u64::from(self.streams), "1 to 100");
        }
        // RFC 9002 §6.1.1: "SHOULD NOT use a packet threshold less than 3".
        if self.packet_threshold < 3 {
            return refuse("packet_threshold", u64::from(self.packet_threshold), "at least 3");
        }
        Ok(())
    }
}
