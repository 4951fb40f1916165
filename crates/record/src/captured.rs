//! What a capture shows of a flow beside what is measured of every run.

/// Counts and times of one flow of a capture, over all of it. What the place of the capture does not
/// show is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Captured {
    /// From the first SYN until the ACK that ends the handshake.
    pub handshake_s: Option<f64>,
    /// The shortest round trip of full packets of data.
    pub full_rtt_min_s: Option<f64>,
    /// Packets of data that were sent before the first ACK of data came.
    pub initial_window_packets: Option<u64>,
    /// Packets sent again when SACKs or three duplicate ACKs had told of a hole.
    pub fast: Option<u64>,
    /// Packets sent again after a timeout.
    pub timeout: Option<u64>,
    /// Last packets sent again before any timeout, to learn of a loss.
    pub probe: Option<u64>,
    /// Packets sent again though they had arrived.
    pub spurious: Option<u64>,
    /// Packets that came later than one that was sent after them.
    pub out_of_order: Option<u64>,
    /// Runs of neighbouring packets that were lost.
    pub loss_bursts: Option<u64>,
    /// Packets in all of them.
    pub lost_packets: u64,
    /// Packets of data whose sender understands marks.
    pub capable: u64,
    /// Packets of data that the network had marked.
    pub marked: u64,
    /// ACKs that echo a mark.
    pub echoes: u64,
    /// For how long the application gave the sender nothing to send.
    pub application_limited_s: Option<f64>,
    /// For how long the receiver's window stood in the way.
    pub receiver_limited_s: Option<f64>,
    /// From the first packet of data to the last one.
    pub lived_s: f64,
    /// Times that the receiver closed its window.
    pub zero_windows: u64,
    /// Packets of data at both ends: sent and received.
    pub both_ends: Option<(u64, u64)>,
}
