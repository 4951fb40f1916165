//! Transport settings of an endpoint.

use std::fmt;

use jostle_congestion::CongestionController;
use jostle_congestion::peer_cache::PeerAddress;
use jostle_congestion::transport::HostTimers;
use jostle_units::Span;

use crate::Error;

/// Smallest maximum datagram size of a path (RFC 9000 §14: "at least 1200 bytes").
pub(crate) const MIN_DATAGRAM_BYTES: u16 = 1200;
/// Minimum cwnd (`kMinimumWindow`, RFC 9002 §7.2: "2 * max_datagram_size").
pub(crate) const MIN_WINDOW_PACKETS: u32 = 2;
/// Largest UDP payload over IPv4.
const MAX_DATAGRAM_BYTES: u16 = 65_527;

/// Congestion controller of a connection.
pub enum Congestion {
    /// A controller of jostle or a user-defined one.
    Ours(Box<dyn CongestionController>),
    /// A controller of the QUIC stack.
    Stack(StackController),
}

impl fmt::Debug for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(controller) => write!(f, "Ours({})", controller.mode()),
            Self::Stack(stack) => write!(f, "Stack({stack:?})"),
        }
    }
}

/// Controllers of the QUIC stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackController {
    /// CUBIC (RFC 9438).
    Cubic,
    /// NewReno (RFC 9002 §7).
    Reno,
    /// BBRv3 (draft-ietf-ccwg-bbr-06). Its random numbers cannot be seeded, so runs are not
    /// reproducible.
    Bbr3,
}

/// Method by which a window-based controller's cwnd is reduced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// Immediately, as in the pseudocode of RFC 9002 (B.6), with one additional packet to speed up
    /// recovery.
    #[default]
    Rfc9002,
    /// By Proportional Rate Reduction (RFC 9937), like Linux TCP. RFC 9002 §7.3.2: "MAY reduce the
    /// congestion window immediately ... or use other mechanisms, such as Proportional Rate
    /// Reduction".
    Prr,
}

/// Handshake of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handshake {
    /// Data follow the handshake after one RTT.
    #[default]
    OneRtt,
    /// Data are sent with the first packet. The client has the server's transport parameters from
    /// an earlier connection (RFC 9001 §4.6).
    ZeroRtt,
}

/// Packet protection. It does not change packet sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Crypto {
    /// No encryption.
    #[default]
    None,
    /// TLS 1.3 (RFC 9001). Both endpoints log their secrets.
    Tls,
}

/// ACK frequency that the sender requests (draft-ietf-quic-ack-frequency).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// Number of ack-eliciting packets that the receiver may receive without sending an ACK. One
    /// more packet triggers an ACK.
    pub eliciting_threshold: u32,
    /// Maximum ACK delay; `None` for the receiver's default.
    pub max_ack_delay: Option<Span>,
    /// Reordering in packets that triggers an immediate ACK.
    pub reordering_threshold: u32,
}

/// Transport settings. Both endpoints of a connection use the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Initial maximum UDP payload, before a larger one is confirmed (`max_datagram_size` of RFC
    /// 9002, `initial_mtu` of the stack).
    pub datagram_bytes: u16,
    /// Upper limit of path MTU discovery (RFC 8899); `None` disables discovery.
    pub discover_up_to_bytes: Option<u16>,
    /// ACK frequency that the sender requests. `None`: an ACK for every second packet, within 25 ms
    /// (RFC 9000 §13.2.1).
    pub ack_frequency: Option<AckFrequency>,
    /// Method by which cwnd is reduced. Only for [`Congestion::Ours`].
    pub recovery: Recovery,
    /// Whether packets of window-based controllers are paced (RFC 9002 §7.7: "SHOULD pace"). Only
    /// for [`Congestion::Ours`], because the stack always paces its own controllers.
    pub pacing: bool,
    /// Maximum number of packets that are sent at once without pacing. `None`: the initial window
    /// (RFC 9002 §7.7: "Senders SHOULD limit bursts to the initial congestion window").
    pub unpaced_burst_packets: Option<u32>,
    /// Maximum number of datagrams in a burst: the datagrams that a host passes on in one call
    /// (GSO) and that pacing sends together.
    pub burst_datagrams: u8,
    /// Initial window. RFC 9002 §7.2 recommends ten packets.
    pub initial_window_packets: u32,
    /// Number of streams for unlimited data.
    pub streams: u32,
    /// Flow control window of a stream (RFC 9000 §4).
    pub stream_window_bytes: u64,
    /// Flow control window of the connection.
    pub connection_window_bytes: u64,
    /// Whether the server's application reads later than data arrive, with
    /// [`QuicEndpoint::read`](crate::QuicEndpoint::read). Unread data occupy the window of the
    /// connection.
    pub slow_reader: bool,
    /// Timers of both hosts.
    pub timers: HostTimers,
    /// Maximum data that the sender stores for retransmission.
    pub send_buffer_bytes: u64,
    /// Handshake of the connection.
    pub handshake: Handshake,
    /// Packet protection.
    pub crypto: Crypto,
    /// Size of the server's certificates without TLS.
    pub certificate_bytes: u16,
    /// Whether ECN is also used for controllers that do not require it.
    pub ecn: bool,
    /// RTT before the first sample. RFC 9002 §6.2.2: "333 milliseconds".
    pub initial_rtt: Span,
    /// `kPacketThreshold` (RFC 9002 §6.1.1).
    pub packet_threshold: u32,
    /// Time without received packets after which a connection is closed; `None` disables the
    /// timeout.
    pub idle_timeout: Option<Span>,
    /// Whether the peers exchange DATAGRAM frames (RFC 9221), with
    /// [`QuicEndpoint::send_datagram`](crate::QuicEndpoint::send_datagram).
    pub datagrams: bool,
    /// Title of a qlog of the endpoint; `None` disables the log.
    pub log: Option<String>,
    /// Address of the receiver in the peer cache.
    pub peer: PeerAddress,
}

impl Default for Settings {
    /// Returns the stack's defaults, which are the values of RFC 9000 and RFC 9002 if these define
    /// any. Flow control windows are so large that they do not limit a simulated flow.
    fn default() -> Self {
        Self {
            datagram_bytes: MIN_DATAGRAM_BYTES,
            discover_up_to_bytes: Some(1452),
            ack_frequency: None,
            recovery: Recovery::default(),
            pacing: true,
            unpaced_burst_packets: None,
            burst_datagrams: 10,
            initial_window_packets: 10,
            streams: 1,
            stream_window_bytes: 64 << 20,
            connection_window_bytes: 256 << 20,
            slow_reader: false,
            timers: HostTimers::EXACT,
            send_buffer_bytes: 64 << 20,
            handshake: Handshake::default(),
            crypto: Crypto::default(),
            certificate_bytes: 600,
            ecn: false,
            initial_rtt: Span::from_ms(333),
            packet_threshold: 3,
            idle_timeout: None,
            datagrams: false,
            log: None,
            peer: PeerAddress::default(),
        }
    }
}

impl Settings {
    /// Returns the maximum ACK delay of the receiver (`max_ack_delay`, RFC 9000 §18.2: "a default
    /// of 25 milliseconds is assumed"). If the sender sets no limit, the stack derives one from the
    /// RTT.
    pub(crate) fn max_ack_delay(&self) -> Span {
        match self.ack_frequency {
            None => Span::from_ms(25),
            Some(frequency) => frequency.max_ack_delay.unwrap_or(Span::MAX),
        }
    }

    /// Checks all settings.
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
        if self.unpaced_burst_packets == Some(0) {
            return refuse("unpaced_burst_packets", 0, "at least 1");
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
