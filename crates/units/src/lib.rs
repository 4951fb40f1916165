//! The words every other crate measures in: points and spans of virtual time, rates, and random
//! streams that depend on a seed and a name and on nothing else; and the one field of a packet that
//! both transports and queues write, ECN; and the queue in which packets wait.
//!
//! Amounts of data are plain integers with the unit at the end of their name (`size_bytes`).

mod ecn;
mod rate;
mod ring;
mod stream;
mod time;

pub use ecn::Ecn;
pub use rate::Rate;
pub use ring::Ring;
pub use stream::{Stream, StreamName};
pub use time::{Span, Time};

/// Header of Ethernet, which `tc` counts and an MTU does not.
pub const LINK_HEADER_BYTES: u32 = 14;

/// Headers that an MTU counts: 20 (IPv4) + 20 (TCP) + 12 (timestamps option).
const IN_MTU_BYTES: u32 = 20 + 20 + 12;

/// Link, network and transport headers of a segment that carries the timestamps option.
pub const HEADER_BYTES: u32 = LINK_HEADER_BYTES + IN_MTU_BYTES;

/// MTU of Ethernet, and of a flow that says nothing else.
pub const MTU_BYTES: u32 = 1500;

/// MTU that every IPv4 host can take (RFC 791: "576 octets").
pub const MIN_MTU_BYTES: u32 = 576;

/// Headers of a datagram that an MTU counts: IPv4 and UDP.
pub const DATAGRAM_HEADER_BYTES: u32 = 20 + 8;

/// UDP payload that every path of QUIC has to carry (RFC 9000, section 14).
pub const MIN_QUIC_PAYLOAD_BYTES: u32 = 1_200;

/// Largest packet of IPv4: its length has 16 bits.
pub const MAX_MTU_BYTES: u32 = 65_535;

/// Bytes that a full-sized segment occupies on an Ethernet link: what `tc` counts for it. Where a
/// queue counts in packets, or a size is given in packets, this one is meant.
pub const FULL_PACKET_BYTES: u32 = MTU_BYTES + LINK_HEADER_BYTES;

/// Payload of a full-sized TCP segment with the timestamps option over a 1500-byte MTU.
pub const FULL_PAYLOAD_BYTES: u32 = mss_of(MTU_BYTES);

/// Payload of a full-sized TCP segment with the timestamps option over this MTU, which is
/// [`MIN_MTU_BYTES`] at least.
pub const fn mss_of(mtu_bytes: u32) -> u32 {
    mtu_bytes - IN_MTU_BYTES
}
