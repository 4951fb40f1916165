//! Parameters that several link components share, with the names of the scenario format and Linux's
//! defaults, if Linux has any.

use jostle_registry::{Parameter, QueueLimit};
use jostle_units::{FULL_PACKET_BYTES, Rate, Span};

/// Maximum duration: 2⁵³ ns, 104 days. All nanoseconds up to it are exact in an `f64`, and in JSON
/// in any language.
pub const LONGEST: Span = Span::from_ns(1 << 53);
/// Maximum rate: 1 Tbit/s. A full-sized packet takes 12 ns; at higher rates whole nanoseconds would
/// be too coarse.
pub const FASTEST: Rate = Rate::from_mbps(1_000_000);
/// Maximum delay of a link, and maximum time parameter of a queue: longer than the RTT of light to
/// Mars.
pub(crate) const LONGEST_DELAY: Span = Span::from_secs(3_600);
/// Minimum period of updates that a link makes without packets. The updates of an idle second are
/// then a million steps and not a billion.
pub const SHORTEST_PERIOD: Span = Span::from_us(1);
/// Maximum size of a queue: 2⁵⁰ bytes, or the same amount in full-sized packets.
const LARGEST_BYTES: i64 = 1 << 50;
pub(crate) const LARGEST_PACKETS: i64 = LARGEST_BYTES / packets(1);

/// Returns the bytes of `n` full-sized packets.
pub(crate) const fn packets(n: i64) -> i64 {
    n * FULL_PACKET_BYTES as i64
}

/// Returns the queue limit parameter. Defaults are in bytes, so that smaller packets count by their
/// size. A queue without room for a full-sized packet would drop all of them.
pub(crate) const fn limit(default_packets: Option<i64>) -> Parameter {
    let default = match default_packets {
        Some(n) => Some(QueueLimit::Bytes(packets(n) as u64)),
        None => None,
    };
    Parameter::limit("limit", default, packets(1)..=LARGEST_BYTES)
        .summary("largest queue length, in bytes or packets, without the packet being sent")
}

/// Returns a parameter for an amount of data without a default, with a minimum of `min_bytes`.
pub(crate) const fn size(name: &'static str, min_bytes: i64) -> Parameter {
    Parameter::size(name, None, min_bytes..=LARGEST_BYTES)
}

/// Returns a parameter for a time that must not be zero.
pub(crate) const fn span(name: &'static str, default: Span) -> Parameter {
    Parameter::span(name, default, Span::from_ns(1)..=LONGEST_DELAY)
}

/// Returns a parameter for the period of updates, which are made up for one by one after a time
/// without packets.
pub(crate) const fn period(name: &'static str, default: Span) -> Parameter {
    Parameter::span(name, default, SHORTEST_PERIOD..=LONGEST_DELAY)
}

pub(crate) const fn ecn(default: bool) -> Parameter {
    Parameter::bool("ecn", default).summary("mark ECN-capable packets instead of dropping them")
}
