//! Counters of a captured flow that runs do not have.

/// Counts and times of one flow over a complete capture. A value is absent if it cannot be observed
/// at the capture point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CaptureCounters {
    /// Time from the first SYN until the ACK that completes the handshake.
    pub handshake_s: Option<f64>,
    /// RTT between the capture point and the sender, in the handshake.
    pub sender_side_s: Option<f64>,
    /// Smallest RTT of full-sized data packets.
    pub full_rtt_min_s: Option<f64>,
    /// Data packets sent before the first ACK of data arrived.
    pub initial_window_packets: Option<u64>,
    /// Fast retransmissions: packets retransmitted after SACK blocks or three duplicate ACKs.
    pub fast: Option<u64>,
    /// Packets retransmitted after a timeout.
    pub timeout: Option<u64>,
    /// Tail loss probes: retransmissions of the last packet before a timeout.
    pub probe: Option<u64>,
    /// Packets retransmitted although the original had arrived.
    pub spurious: Option<u64>,
    /// Packets that arrived after a packet that was sent later.
    pub out_of_order: Option<u64>,
    /// Loss bursts: groups of consecutive lost packets.
    pub loss_bursts: Option<u64>,
    /// Lost packets in all loss bursts.
    pub lost_packets: u64,
    /// ECN-capable data packets.
    pub capable: u64,
    /// Data packets with a CE mark.
    pub marked: u64,
    /// ACKs with ECN-Echo.
    pub echoes: u64,
    /// Number of times that the receiver closed its window.
    pub zero_windows: u64,
    /// Segments of both directions after the handshake.
    pub segments: u64,
    /// Segments whose TCP options the snap length cut.
    pub cut_segments: u64,
    /// Segments with time stamps.
    pub stamped_segments: u64,
    /// ACKs with SACK blocks.
    pub sack_acks: u64,
    /// Data packets counted at both ends: sent, received.
    pub both_ends: Option<(u64, u64)>,
}
