//! Types that all crates share: points and spans of virtual time, rates, random streams that depend
//! only on a seed and a name, numbers of flows, connections and links, the ECN field of a packet, the
//! queue in which packets wait, and what limits a sender.
//!
//! Amounts of data are plain integers with the unit at the end of their name (`size_bytes`).

#![cfg_attr(not(any(feature = "std", test)), no_std)]

extern crate alloc;

mod ecn;
mod float_math;
mod identifiers;
mod random_stream;
mod rate;
mod ring_buffer;
mod send_limit;
mod time;
#[cfg(feature = "std")]
mod virtual_clock;

pub use ecn::Ecn;
pub use float_math::FloatMath;
pub use identifiers::{ConnectionId, FlowId, LinkId};
pub use random_stream::{RandomStream, RandomStreamName};
pub use rate::Rate;
pub use ring_buffer::RingBuffer;
pub use send_limit::SendLimit;
pub use time::{Span, Time};
#[cfg(feature = "std")]
pub use virtual_clock::VirtualClock;

/// Ethernet header. `tc` counts it, an MTU does not.
pub const LINK_HEADER_BYTES: u32 = 14;

/// Headers within the MTU: 20 (IPv4) + 20 (TCP) + 12 (timestamps option).
const IN_MTU_BYTES: u32 = 20 + 20 + 12;

/// Link, network and transport headers of a segment that carries the timestamps option.
pub const HEADER_BYTES: u32 = LINK_HEADER_BYTES + IN_MTU_BYTES;

/// MTU of Ethernet, and the default MTU of a flow.
pub const MTU_BYTES: u32 = 1500;

/// MTU that every IPv4 host supports (RFC 791: "576 octets").
pub const MIN_MTU_BYTES: u32 = 576;

/// Headers of a datagram within the MTU: IPv4 and UDP.
pub const DATAGRAM_HEADER_BYTES: u32 = 20 + 8;

/// Most bytes of a UDP payload that are not data of the only DATAGRAM frame in it: first byte,
/// connection ID, packet number, frame (RFC 9221 §4), and the tag of packet protection.
pub const QUIC_DATAGRAM_OVERHEAD_BYTES: u32 = 1 + 8 + 4 + 9 + 16;

/// UDP payload that every path must support for QUIC (RFC 9000 §14).
pub const MIN_QUIC_PAYLOAD_BYTES: u32 = 1_200;

/// Largest IPv4 packet: the length field has 16 bits.
pub const MAX_MTU_BYTES: u32 = 65_535;

/// Bytes of a full-sized segment on an Ethernet link, as counted by `tc`. Queue lengths and sizes
/// in packets refer to this size.
pub const FULL_PACKET_BYTES: u32 = MTU_BYTES + LINK_HEADER_BYTES;

/// Payload of a full-sized TCP segment with the timestamps option over a 1500-byte MTU.
pub const FULL_PAYLOAD_BYTES: u32 = mss_of(MTU_BYTES);

/// Returns the payload of a full-sized TCP segment with the timestamps option. `mtu_bytes` is at
/// least [`MIN_MTU_BYTES`].
pub const fn mss_of(mtu_bytes: u32) -> u32 {
    mtu_bytes - IN_MTU_BYTES
}
