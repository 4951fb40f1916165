//! Additional properties of a QUIC flow.

use jostle_registry::RegistryEntry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A QUIC connection (RFC 9000) from the flow's sender to its receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuicSpec {
    /// QUIC implementation of both ends (absent: noq with the flow's controller).
    pub implementation: Option<QuicImplementation>,
    /// Maximum UDP payload until a larger one is confirmed: at least 1,200 bytes (RFC 9000 §14).
    pub initial_mtu_bytes: u32,
    /// Whether larger packets are probed (RFC 8899), up to the flow's maximum IP packet size.
    pub mtu_discovery: bool,
    /// ACK frequency that the sender requests (absent: ACKs follow RFC 9000 §13.2).
    pub ack_frequency: Option<AckFrequencySpec>,
    /// Number of later packets whose ACK declares an earlier packet lost (RFC 9002 §6.1.1,
    /// kPacketThreshold; absent: 3).
    pub packet_threshold: Option<u32>,
    /// Method by which the cwnd of a window-based controller is reduced after a loss.
    pub recovery: QuicRecovery,
    /// Maximum number of packets that the sender passes to its host in one call (generic
    /// segmentation offload).
    pub gso_packets: u32,
    /// Whether packets are paced (RFC 9002 §7.7).
    pub pacing: bool,
    /// Maximum number of packets sent at one instant if packets are not paced (absent: the flow's
    /// initial window).
    pub burst_limit_packets: Option<u32>,
    /// Number of streams for unlimited data. Each response has a separate stream.
    pub streams: u32,
    /// Flow control window of each stream; the connection's window is the flow's
    /// `receive_window_bytes`.
    pub stream_receive_window_bytes: u64,
    /// Handshake before the first data.
    pub handshake: QuicHandshake,
    /// Packet protection. It does not change packet sizes.
    pub crypto: QuicCrypto,
}

/// A QUIC implementation other than the built-in one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuicImplementation {
    /// Name of the implementation.
    pub name: String,
    /// Commands that start both ends.
    pub commands: QuicCommands,
}

impl QuicImplementation {
    /// Returns whether the delivered data can be observed, in the files that the client writes.
    pub fn shows_delivery(&self) -> bool {
        self.commands.client.iter().any(|word| word.contains("{downloads}"))
    }

    /// Returns whether the sender reports its RTT, cwnd and losses, in a qlog.
    pub fn shows_itself(&self) -> bool {
        self.commands.server.iter().any(|word| word.contains("{qlog}"))
    }
}

/// Commands with arguments, in which `{address}`, `{port}` and other placeholders are replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuicCommands {
    /// The end that accepts the connection.
    pub server: Vec<String>,
    /// The end that opens the connection.
    pub client: Vec<String>,
}

/// Request of an `ACK_FREQUENCY` frame (draft-ietf-quic-ack-frequency).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AckFrequencySpec {
    /// Number of ack-eliciting packets without an ACK; one more triggers an ACK.
    pub ack_eliciting_threshold: u32,
    /// Maximum ACK delay of the first of these packets (absent: the receiver's default of 25 ms).
    pub max_ack_delay_ns: Option<u64>,
    /// Reordering in packets that triggers an immediate ACK; 0: none.
    pub reordering_threshold: u32,
}

/// Method by which the cwnd of a window-based controller is reduced after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuicRecovery {
    /// Immediately (RFC 9002 §7.3.2).
    Rfc9002,
    /// Packet by packet, as in TCP (RFC 9937).
    Prr,
}

/// Handshake before the first data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum QuicHandshake {
    /// The client waits for the server's response.
    #[serde(rename = "1rtt")]
    OneRtt,
    /// The client sends immediately. It knows the server from an earlier connection (RFC 9001
    /// §4.6).
    #[serde(rename = "0rtt")]
    ZeroRtt,
}

/// Packet protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuicCrypto {
    /// No encryption; packets have the same sizes as with encryption.
    None,
    /// TLS 1.3 (RFC 9001).
    Tls,
}

/// Prefix of the names of controllers that are part of a QUIC implementation.
const OF_NOQ: &str = "noq:";

/// Returns whether `name` is a controller of the QUIC implementation.
pub(super) fn is_of_stack(name: &str) -> bool {
    name.starts_with(OF_NOQ)
}

/// Controllers of noq. Only QUIC flows can use them, to compare an implementation with jostle's
/// model of the same algorithm.
pub const QUIC_CONTROLLERS: &[RegistryEntry] = &[
    RegistryEntry {
        name: "noq:cubic",
        summary: "CUBIC of the QUIC implementation noq",
        class: "quic",
        based_on: &["cubic"],
        source: "noq-proto 1.4.0, congestion/cubic.rs (RFC 9438)",
        parameters: &[],
    },
    RegistryEntry {
        name: "noq:reno",
        summary: "NewReno of the QUIC implementation noq",
        class: "quic",
        based_on: &["reno"],
        source: "noq-proto 1.4.0, congestion/new_reno.rs (RFC 9002 §7)",
        parameters: &[],
    },
    RegistryEntry {
        name: "noq:bbr3",
        summary: "BBRv3 of the QUIC implementation noq",
        class: "quic",
        based_on: &["bbr3"],
        source: "noq-proto 1.4.0, congestion/bbr3 (draft-ietf-ccwg-bbr)",
        parameters: &[],
    },
];
