//! Summary of an emulation.

use std::collections::BTreeMap;

use jostle_link::DropReason;
use jostle_metrics::Histogram;
use jostle_units::Time;
use serde::Serialize;

use crate::direction::{Direction, Hop, REASONS};

const NS: f64 = 1e-9;
/// Quantile of the lateness that must not exceed the bound.
const PUNCTUAL: f64 = 0.999;

/// Whether the result of an emulation is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Validity {
    /// Valid: the p99.9 lateness is within the bound.
    OnTime,
    /// Invalid: the p99.9 lateness exceeds the bound, so the measures include delays of the host.
    Late,
    /// Invalid: packets were lost because the memory limit was reached.
    Overrun,
}

/// Lateness: delay of departures relative to the links' logical time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lateness {
    /// Bound on the p99.9 lateness.
    pub bound_s: f64,
    /// Median; null if there were no packets.
    pub p50_s: Option<f64>,
    /// 99th percentile.
    pub p99_s: Option<f64>,
    /// 99.9th percentile.
    pub p999_s: Option<f64>,
    /// Maximum.
    pub max_s: Option<f64>,
}

/// Measures of one link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkSummary {
    /// Name of the link.
    pub name: String,
    /// Packets sent, including those lost on the wire.
    pub sent_packets: u64,
    /// Bytes sent, including Ethernet headers.
    pub sent_bytes: u64,
    /// Bytes sent ÷ bytes that the service rate allowed.
    pub utilisation: f64,
    /// Maximum queue length.
    pub queue_max_bytes: u64,
    /// Median queueing delay; null if nothing was sent.
    pub queue_delay_p50_s: Option<f64>,
    /// 95th percentile of the queueing delay.
    pub queue_delay_p95_s: Option<f64>,
    /// Dropped packets by reason, without reasons that did not occur.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Marked packets by reason, without reasons that did not occur.
    pub marked: BTreeMap<&'static str, u64>,
    /// Packets that the link corrupted. They were delivered.
    pub corrupted_packets: u64,
    /// Copies of packets that the link made.
    pub duplicated_packets: u64,
}

/// Measures of one direction. Every packet that arrived, and every copy of one, was delivered,
/// refused or dropped, or is still in transit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionSummary {
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Bytes that arrived, including Ethernet headers.
    pub arrived_bytes: u64,
    /// Packets delivered to the device at the far end.
    pub delivered_packets: u64,
    /// Bytes delivered, including Ethernet headers.
    pub delivered_bytes: u64,
    /// Packets that the device at the far end rejected.
    pub refused_packets: u64,
    /// Packets discarded because the memory limit was reached. They are not included in the arrived
    /// packets. If there are any, the result is invalid.
    pub unheld_packets: u64,
    /// Packets dropped by any link.
    pub dropped_packets: u64,
    /// Packets still in transit at the end.
    pub left_packets: u64,
    /// Measures of the links, in order.
    pub links: Vec<LinkSummary>,
}

/// Summary of an emulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Duration of the emulation.
    pub duration_s: f64,
    /// Whether the result is valid.
    pub verdict: Validity,
    /// Lateness of both directions together.
    pub lateness: Lateness,
    /// Direction from the first device to the second.
    pub forward: DirectionSummary,
    /// Direction from the second device to the first.
    pub reverse: DirectionSummary,
}

impl Summary {
    pub(crate) fn of(
        end: Time,
        directions: &mut [Direction; 2],
        lateness_ns: &Histogram,
        bound_ns: u64,
    ) -> Self {
        let late = lateness_ns.quantile(PUNCTUAL).is_some_and(|p999| p999 > bound_ns as f64);
        let overrun = directions.iter().any(|direction| direction.unheld > 0);
        let quantile = |p| lateness_ns.quantile(p).map(|ns| ns * NS);
        let [forward, reverse] =
            directions.each_mut().map(|direction| of_direction(direction, end));
        Self {
            duration_s: end.as_secs_f64(),
            verdict: match (overrun, late) {
                (true, _) => Validity::Overrun,
                (false, true) => Validity::Late,
                (false, false) => Validity::OnTime,
            },
            lateness: Lateness {
                bound_s: bound_ns as f64 * NS,
                p50_s: quantile(0.5),
                p99_s: quantile(0.99),
                p999_s: quantile(PUNCTUAL),
                max_s: lateness_ns.max().map(|ns| ns as f64 * NS),
            },
            forward,
            reverse,
        }
    }
}

fn of_direction(direction: &mut Direction, end: Time) -> DirectionSummary {
    let dropped = direction.hops.iter().flat_map(|hop| hop.counts.dropped);
    DirectionSummary {
        arrived_packets: direction.arrived.packets,
        arrived_bytes: direction.arrived.bytes,
        delivered_packets: direction.delivered.packets,
        delivered_bytes: direction.delivered.bytes,
        refused_packets: direction.refused,
        unheld_packets: direction.unheld,
        dropped_packets: dropped.sum(),
        left_packets: direction.packets_in_transit(),
        links: direction.hops.iter_mut().map(|hop| of_hop(hop, end)).collect(),
    }
}

fn of_hop(hop: &mut Hop, end: Time) -> LinkSummary {
    let service_bytes = hop.link.service(end).throughput_bytes;
    let counts = &hop.counts;
    let waited = |p| counts.waited_ns.quantile(p).map(|ns| ns * NS);
    LinkSummary {
        name: hop.name.clone(),
        sent_packets: counts.sent.packets,
        sent_bytes: counts.sent.bytes,
        utilisation: if service_bytes > 0.0 {
            counts.sent.bytes as f64 / service_bytes
        } else {
            0.0
        },
        queue_max_bytes: counts.queue_max_bytes,
        queue_delay_p50_s: waited(0.5),
        queue_delay_p95_s: waited(0.95),
        dropped: by_reason(&counts.dropped),
        marked: by_reason(&counts.marked),
        corrupted_packets: counts.corrupted,
        duplicated_packets: counts.duplicated,
    }
}

fn by_reason(counts: &[u64; REASONS]) -> BTreeMap<&'static str, u64> {
    let named = DropReason::ALL.iter().map(|reason| reason.name()).zip(counts.iter().copied());
    named.filter(|&(_, count)| count > 0).collect()
}
