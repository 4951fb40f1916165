//! What an end hands over, how it stands, what it has counted.

use jostle_units::{Ecn, Rate, Span};

/// Datagrams that leave together: they lie one after the other in the buffer that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// Goes into their IP headers.
    pub ecn: Ecn,
    /// Bytes of all of them: payloads of UDP.
    pub bytes: usize,
    /// Bytes of each but the last, which may be smaller.
    pub datagram_bytes: usize,
    /// Bytes of streams in them that had been sent before.
    pub repeated_bytes: u32,
}

impl Transmission {
    /// The datagrams.
    pub fn datagrams<'a>(&self, buffer: &'a [u8]) -> std::slice::Chunks<'a, u8> {
        buffer[..self.bytes].chunks(self.datagram_bytes)
    }
}

/// How a sender stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// Least RTT; [`Span::MAX`] before the first sample.
    pub min_rtt: Span,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Slow-start threshold; none while there is none.
    pub ssthresh_bytes: Option<u64>,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Rate at which packets leave, if they are paced.
    pub pacing_rate: Option<Rate>,
    /// Name of the mode for plots.
    pub mode: &'static str,
    /// Largest datagram that is sent at present.
    pub datagram_bytes: u32,
}

/// What a sender has counted since its connection began. Packets are those of the application's
/// space that elicit ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes of these packets.
    pub sent_bytes: u64,
    /// Packets found to be lost.
    pub lost_packets: u64,
    /// Bytes of these packets.
    pub lost_bytes: u64,
    /// Bytes of streams sent for the first time.
    pub new_bytes: u64,
    /// Bytes of streams sent again.
    pub repeated_bytes: u64,
    /// Bytes of streams acknowledged.
    pub acked_bytes: u64,
    /// Reductions of the window that were taken back.
    pub spurious: u64,
    /// Packets that were reported as marked.
    pub marked_packets: u64,
}
