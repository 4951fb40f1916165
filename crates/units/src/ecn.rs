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

impl Ecn {
    /// Decodes the ECN field: the two lowest bits of a traffic class.
    #[inline]
    pub const fn from_bits(traffic_class: u8) -> Self {
        match traffic_class & 0b11 {
            0b00 => Self::NotCapable,
            0b01 => Self::L4s,
            0b10 => Self::Capable,
            _ => Self::Marked,
        }
    }

    /// Returns the two bits of the ECN field.
    #[inline]
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotCapable => 0b00,
            Self::L4s => 0b01,
            Self::Capable => 0b10,
            Self::Marked => 0b11,
        }
    }
}
