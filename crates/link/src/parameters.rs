//! Parameters that several link components share, with the names of the scenario format and Linux's
//! defaults, if Linux has any.

use jostle_registry::{Parameter, ParameterType, QueueLimit};
use jostle_units::FULL_PACKET_BYTES;

pub(crate) const MS: i64 = 1_000_000;

/// Maximum duration: 2⁵³ ns, 104 days. All nanoseconds up to it are exact in an `f64`, and in JSON
/// in any language.
pub const LONGEST_NS: i64 = 1 << 53;
/// Maximum rate: 1 Tbit/s. A full-sized packet takes 12 ns; at higher rates whole nanoseconds would
/// be too coarse.
pub const FASTEST_BPS: i64 = 1_000_000_000_000;
/// Maximum delay of a link, and maximum time parameter of a queue: longer than the RTT of light to
/// Mars.
pub(crate) const LONGEST_DELAY_NS: i64 = 3_600_000 * MS;
/// Minimum period of updates that a link makes without packets. The updates of an idle second are
/// then a million steps and not a billion.
pub const SHORTEST_PERIOD_NS: i64 = 1_000;
/// Maximum size of a queue: 2⁵⁰ bytes, or the same amount in full-sized packets.
const LARGEST_BYTES: i64 = 1 << 50;
pub(crate) const LARGEST_PACKETS: i64 = LARGEST_BYTES / packets(1);

/// Returns the bytes of `n` full-sized packets.
pub(crate) const fn packets(n: i64) -> i64 {
    n * FULL_PACKET_BYTES as i64
}

/// Returns the queue limit parameter. Defaults are in bytes, so that smaller packets count by their
/// size.
pub(crate) const fn limit(default_packets: Option<i64>) -> Parameter {
    let summary = "largest queue length, in bytes or packets, without the packet being sent";
    limit_of(summary, default_packets)
}

pub(crate) const fn limit_of(summary: &'static str, default_packets: Option<i64>) -> Parameter {
    let default = match default_packets {
        Some(n) => Some(QueueLimit::Bytes(packets(n) as u64)),
        None => None,
    };
    // A queue without room for a full-sized packet would drop all of them.
    let kind = ParameterType::Limit { default, min_bytes: packets(1), max_bytes: LARGEST_BYTES };
    Parameter { name: "limit", summary, kind }
}

/// Returns a parameter for an amount of data without a default, with a minimum of `min_bytes`.
pub(crate) const fn size(name: &'static str, summary: &'static str, min_bytes: i64) -> Parameter {
    let kind = ParameterType::Size { default_bytes: None, min_bytes, max_bytes: LARGEST_BYTES };
    Parameter { name, summary, kind }
}

pub(crate) const fn span(name: &'static str, summary: &'static str, default_ns: i64) -> Parameter {
    let kind = ParameterType::Span { default_ns, min_ns: 1, max_ns: LONGEST_DELAY_NS };
    Parameter { name, summary, kind }
}

/// Returns a parameter for the period of updates, which are made up for one by one after a time
/// without packets.
pub(crate) const fn period(
    name: &'static str,
    summary: &'static str,
    default_ns: i64,
) -> Parameter {
    let kind =
        ParameterType::Span { default_ns, min_ns: SHORTEST_PERIOD_NS, max_ns: LONGEST_DELAY_NS };
    Parameter { name, summary, kind }
}

pub(crate) const fn number(
    name: &'static str,
    summary: &'static str,
    default: f64,
    (min, max): (f64, f64),
) -> Parameter {
    Parameter { name, summary, kind: ParameterType::Number { default, min, max } }
}

pub(crate) const fn probability(
    name: &'static str,
    summary: &'static str,
    default: Option<f64>,
) -> Parameter {
    Parameter { name, summary, kind: ParameterType::Probability { default } }
}

pub(crate) const fn ecn(default: bool) -> Parameter {
    Parameter {
        name: "ecn",
        summary: "mark ECN-capable packets instead of dropping them",
        kind: ParameterType::Bool { default },
    }
}
