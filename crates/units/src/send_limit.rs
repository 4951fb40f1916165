//! Conditions that keep a sender from sending its next packet.

/// Condition that keeps a sender from sending its next packet. At any time after the handshake one
/// of them holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendLimit {
    /// The application has no unsent data, and no lost data waits for its retransmission.
    Application,
    /// cwnd has no room: the sender waits for ACKs, for the detection of losses or for a timeout.
    Cwnd,
    /// The receive window, or flow control of QUIC, has no room (`TCP_CHRONO_RWND_LIMITED`).
    ReceiveWindow,
    /// The send buffer has no room for more data of the application (`TCP_CHRONO_SNDBUF_LIMITED`).
    SendBuffer,
    /// The next packet waits for its departure time, or for space in the host's own queue (TCP
    /// small queues).
    Pacing,
    /// cwnd or pacing. Linux counts them together: busy, but not limited by a window or a buffer.
    CwndOrPacing,
    /// Something other than the application and the receive window. Captures show no more.
    Other,
}

impl SendLimit {
    /// Number of conditions.
    pub const COUNT: usize = Self::Other as usize + 1;
}
