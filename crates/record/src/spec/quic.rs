//! What a QUIC flow is told beyond what every flow is.

use jostle_catalogue::Entry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A QUIC connection (RFC 9000) from the flow's sender to its receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuicSpec {
    /// Whose QUIC both ends speak (absent: noq's, with the flow's controller in it).
    pub implementation: Option<QuicImplementation>,
    /// Largest UDP payload as long as no larger one is known to arrive: 1,200 bytes at least
    /// (RFC 9000 §14).
    pub initial_mtu_bytes: u32,
    /// Whether larger packets are probed for (RFC 8899), up to what the flow's IP packets can carry.
    pub mtu_discovery: bool,
    /// What the sender asks of the receiver's ACKs (absent: they are those of RFC 9000 §13.2).
    pub ack_frequency: Option<AckFrequencySpec>,
    /// How a window-based controller's window comes down after a loss.
    pub recovery: QuicRecovery,
    /// Packets that the sender gives its host at once, at most (generic segmentation offload).
    pub gso_packets: u32,
    /// Whether packets are paced (RFC 9002 §7.7).
    pub pacing: bool,
    /// Streams over which data are spread. A response has a stream of its own.
    pub streams: u32,
    /// Window of every stream; that of the connection is the flow's `receive_window_bytes`.
    pub stream_receive_window_bytes: u64,
    /// What has to be waited for before the first data leave.
    pub handshake: QuicHandshake,
    /// What protects the packets. It changes no size.
    pub crypto: QuicCrypto,
}

/// Another implementation of QUIC than the one that is built in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuicImplementation {
    /// What it is called.
    pub name: String,
    /// How its ends are started.
    pub commands: QuicCommands,
}

impl QuicImplementation {
    /// Whether what has arrived at the application can be seen: in the files that the client writes.
    pub(crate) fn shows_delivery(&self) -> bool {
        self.commands.client.iter().any(|word| word.contains("{downloads}"))
    }

    /// Whether the sender tells of its RTT, its window and its losses: in a qlog.
    pub(crate) fn shows_itself(&self) -> bool {
        self.commands.server.iter().any(|word| word.contains("{qlog}"))
    }
}

/// Programs with their arguments, in which `{address}`, `{port}` and the like stand for values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuicCommands {
    /// The end that waits for a connection.
    pub server: Vec<String>,
    /// The end that opens it.
    pub client: Vec<String>,
}

/// What an `ACK_FREQUENCY` frame asks for (draft-ietf-quic-ack-frequency).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AckFrequencySpec {
    /// An ACK leaves when more ack-eliciting packets than this have come since the last one.
    pub ack_eliciting_threshold: u32,
    /// … or when the first of them has waited so long (absent: the receiver's own 25 ms).
    pub max_ack_delay_ns: Option<u64>,
    /// … or when a packet comes so far out of order; 0: that is no reason.
    pub reordering_threshold: u32,
}

/// How a window-based controller's window comes down after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuicRecovery {
    /// At once (RFC 9002 §7.3.2).
    Rfc9002,
    /// Packet by packet, as TCP's does (RFC 6937).
    Prr,
}

/// What has to be waited for before the first data leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum QuicHandshake {
    /// The server's answer.
    #[serde(rename = "1rtt")]
    OneRtt,
    /// Nothing: the peer is known from an earlier connection (RFC 9001 §4.6).
    #[serde(rename = "0rtt")]
    ZeroRtt,
}

/// What protects packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuicCrypto {
    /// Nothing: packets are as long as if something did.
    None,
    /// TLS 1.3 (RFC 9001).
    Tls,
}

/// What the names of controllers begin with that a QUIC implementation brings along.
const OF_NOQ: &str = "noq:";

/// Whether `name` is that of a controller which is part of the QUIC implementation.
pub(super) fn is_of_stack(name: &str) -> bool {
    name.starts_with(OF_NOQ)
}

/// The controllers that noq brings along: only QUIC flows can have them, to compare an implementation
/// with what it implements.
pub const QUIC_CONTROLLERS: &[Entry] = &[
    Entry {
        name: "noq:cubic",
        summary: "CUBIC as the QUIC implementation noq has it",
        class: "quic",
        based_on: &["cubic"],
        source: "noq-proto 1.4.0, congestion/cubic.rs (RFC 9438)",
        parameters: &[],
    },
    Entry {
        name: "noq:reno",
        summary: "NewReno as the QUIC implementation noq has it",
        class: "quic",
        based_on: &["reno"],
        source: "noq-proto 1.4.0, congestion/new_reno.rs (RFC 9002, section 7)",
        parameters: &[],
    },
    Entry {
        name: "noq:bbr3",
        summary: "BBRv3 as the QUIC implementation noq has it",
        class: "quic",
        based_on: &["bbr3"],
        source: "noq-proto 1.4.0, congestion/bbr3 (draft-ietf-ccwg-bbr)",
        parameters: &[],
    },
];
