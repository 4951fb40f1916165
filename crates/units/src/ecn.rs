//! The ECN field. Transports set it, queues change it.

/// The ECN field of the IP header (RFC 3168, RFC 9331).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The transport does not support ECN.
    #[default]
    NotCapable,
    /// ECT(0): classic ECN.
    Capable,
    /// ECT(1): L4S.
    L4s,
    /// Congestion experienced.
    Marked,
}
