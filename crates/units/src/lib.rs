//! The words every other crate measures in: points and spans of virtual time, rates, and random
//! streams that depend on a seed and a name and on nothing else; and the one field of a packet that
//! both transports and queues write, ECN.
//!
//! Amounts of data are plain integers with the unit at the end of their name (`size_bytes`).

mod ecn;
mod rate;
mod stream;
mod time;

pub use ecn::Ecn;
pub use rate::Rate;
pub use stream::Stream;
pub use time::{Span, Time};

/// Bytes that a full-sized segment occupies on an Ethernet link: what `tc` counts for it.
///
/// 14 (Ethernet) + 20 (IPv4) + 20 (TCP) + 12 (timestamps option) + 1448 (payload).
pub const FULL_PACKET_BYTES: u32 = 1514;

/// Payload of a full-sized TCP segment with the timestamps option over a 1500-byte MTU.
pub const FULL_PAYLOAD_BYTES: u32 = 1448;

/// Link, network and transport headers of a segment that carries the timestamps option.
pub const HEADER_BYTES: u32 = FULL_PACKET_BYTES - FULL_PAYLOAD_BYTES;
