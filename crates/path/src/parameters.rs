//! Parameters that parts of links have in common, with the names that a person writes and Linux's
//! defaults where Linux has one.

use jostle_catalogue::{Kind, Limit, Parameter};
use jostle_units::FULL_PACKET_BYTES;

pub(crate) const MS: i64 = 1_000_000;

/// Longest span of time: 2⁵³ ns, 104 days. Every nanosecond up to it is exact in an `f64`, and in
/// the JSON of any language.
pub const LONGEST_NS: i64 = 1 << 53;
/// Fastest rate: 1 Tbit/s. A full packet takes 12 ns there; beyond, whole nanoseconds are too
/// coarse.
pub const FASTEST_BPS: i64 = 1_000_000_000_000;
/// Longest delay of a link, and of anything that a queue waits for: light to Mars and back takes
/// less.
pub(crate) const LONGEST_DELAY_NS: i64 = 3_600_000 * MS;
/// Shortest time between two things that a link does whether packets come or not: a catch-up after
/// an idle second is then a million steps, not a thousand million.
pub const SHORTEST_PERIOD_NS: i64 = 1_000;
/// Largest queue: 2⁵⁰ bytes, or as many full packets.
const LARGEST_BYTES: i64 = 1 << 50;
pub(crate) const LARGEST_PACKETS: i64 = LARGEST_BYTES / packets(1);

/// So many full packets, in bytes.
pub(crate) const fn packets(n: i64) -> i64 {
    n * FULL_PACKET_BYTES as i64
}

/// What a queue holds at most. Defaults are given in bytes: packets smaller than a full one take
/// no more of them than they are long.
pub(crate) const fn limit(default_packets: Option<i64>) -> Parameter {
    let summary = "most that it holds, in bytes or packets; the packet being sent does not count";
    limit_of(summary, default_packets)
}

pub(crate) const fn limit_of(summary: &'static str, default_packets: Option<i64>) -> Parameter {
    let default = match default_packets {
        Some(n) => Some(Limit::Bytes(packets(n) as u64)),
        None => None,
    };
    // A queue that cannot hold one full packet lets nothing through.
    let kind = Kind::Limit { default, min_bytes: packets(1), max_bytes: LARGEST_BYTES };
    Parameter { name: "limit", summary, kind }
}

/// An amount of data that has no default, from `min_bytes` on.
pub(crate) const fn size(name: &'static str, summary: &'static str, min_bytes: i64) -> Parameter {
    let kind = Kind::Size { default_bytes: None, min_bytes, max_bytes: LARGEST_BYTES };
    Parameter { name, summary, kind }
}

pub(crate) const fn span(name: &'static str, summary: &'static str, default_ns: i64) -> Parameter {
    let kind = Kind::Span { default_ns, min_ns: 1, max_ns: LONGEST_DELAY_NS };
    Parameter { name, summary, kind }
}

/// The period of something that is made up for, period by period, after a time without packets.
pub(crate) const fn period(
    name: &'static str,
    summary: &'static str,
    default_ns: i64,
) -> Parameter {
    let kind = Kind::Span { default_ns, min_ns: SHORTEST_PERIOD_NS, max_ns: LONGEST_DELAY_NS };
    Parameter { name, summary, kind }
}

pub(crate) const fn number(
    name: &'static str,
    summary: &'static str,
    default: f64,
    (min, max): (f64, f64),
) -> Parameter {
    Parameter { name, summary, kind: Kind::Number { default, min, max } }
}

pub(crate) const fn probability(
    name: &'static str,
    summary: &'static str,
    default: Option<f64>,
) -> Parameter {
    Parameter { name, summary, kind: Kind::Probability { default } }
}

pub(crate) const fn ecn(default: bool) -> Parameter {
    Parameter {
        name: "ecn",
        summary: "mark ECN-capable packets instead of dropping them",
        kind: Kind::Bool { default },
    }
}
