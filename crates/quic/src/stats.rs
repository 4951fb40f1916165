//! Datagrams to send and counters of an endpoint.

use jostle_units::Ecn;

/// Datagrams that are sent together. They are contiguous in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// ECN codepoint of their IP headers.
    pub ecn: Ecn,
    /// Total size of the UDP payloads.
    pub bytes: usize,
    /// Size of each datagram. The last one may be smaller.
    pub datagram_bytes: usize,
    /// Retransmitted stream bytes in the datagrams.
    pub retransmitted_bytes: u32,
}

impl Transmission {
    /// Returns the datagrams.
    pub fn datagrams<'a>(&self, buffer: &'a [u8]) -> std::slice::Chunks<'a, u8> {
        buffer[..self.bytes].chunks(self.datagram_bytes)
    }
}

/// Counters of a sender since the start of the connection. Only ack-eliciting packets of the
/// application data space count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes of these packets.
    pub sent_bytes: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Bytes of these packets.
    pub lost_bytes: u64,
    /// Stream bytes sent for the first time.
    pub new_bytes: u64,
    /// Stream bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Stream bytes acknowledged.
    pub acked_bytes: u64,
    /// Spurious reductions of cwnd that were undone.
    pub spurious: u64,
    /// Packets reported as CE-marked.
    pub marked_packets: u64,
}
