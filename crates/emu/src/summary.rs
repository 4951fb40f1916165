//! What is left of an emulation when it has ended.

use std::collections::BTreeMap;

use jostle_path::Reason;
use jostle_record::Histogram;
use jostle_units::Time;
use serde::Serialize;

use crate::direction::{Direction, Hop, REASONS};

const NS: f64 = 1e-9;
/// The share of packets that have to leave in time.
const PUNCTUAL: f64 = 0.999;

/// Whether an emulation is a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Packets left when the links said so, within the bound.
    OnTime,
    /// The 99.9th percentile of the lateness is above the bound: what was measured is not the link
    /// alone.
    Late,
    /// Packets were lost for want of memory.
    Overrun,
}

/// By how much packets left later than the links said.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lateness {
    /// What the 99.9th percentile is held to.
    pub bound_s: f64,
    /// Median; null without packets.
    pub p50_s: Option<f64>,
    /// 99th percentile.
    pub p99_s: Option<f64>,
    /// 99.9th percentile.
    pub p999_s: Option<f64>,
    /// Largest.
    pub max_s: Option<f64>,
}

/// What one link did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HopSummary {
    /// Its name.
    pub name: String,
    /// Packets put on the wire, those lost there included.
    pub sent_packets: u64,
    /// Bytes put on the wire, Ethernet headers included.
    pub sent_bytes: u64,
    /// Bytes sent ÷ bytes that the capacity would have carried.
    pub utilisation: f64,
    /// Longest queue.
    pub queue_max_bytes: u64,
    /// Median time in the queue; null if nothing was sent.
    pub queue_delay_p50_s: Option<f64>,
    /// 95th percentile of the time in the queue.
    pub queue_delay_p95_s: Option<f64>,
    /// Dropped packets by reason; reasons that did not occur are left out.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Marked packets by reason.
    pub marked: BTreeMap<&'static str, u64>,
}

/// What happened in one direction. Every packet that arrived was delivered, refused, dropped, or
/// was still on its way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionSummary {
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Their bytes, Ethernet headers included.
    pub arrived_bytes: u64,
    /// Packets that were handed over at the far end.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets that the device at the far end did not take.
    pub refused_packets: u64,
    /// Packets that came when those on their way took all the memory that they may. Beside the
    /// packets that arrived; if there are any, the emulation is no result.
    pub unheld_packets: u64,
    /// Packets that were dropped anywhere.
    pub dropped_packets: u64,
    /// Packets that were on their way when it ended.
    pub left_packets: u64,
    /// Its links in order.
    pub links: Vec<HopSummary>,
}

/// What is left of an emulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How long it ran.
    pub duration_s: f64,
    /// Whether it is a result.
    pub verdict: Verdict,
    /// How late packets left, in both directions together.
    pub lateness: Lateness,
    /// From the first device to the second.
    pub forward: DirectionSummary,
    /// From the second device to the first.
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
                (true, _) => Verdict::Overrun,
                (false, true) => Verdict::Late,
                (false, false) => Verdict::OnTime,
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
        left_packets: direction.on_the_way(),
        links: direction.hops.iter_mut().map(|hop| of_hop(hop, end)).collect(),
    }
}

fn of_hop(hop: &mut Hop, end: Time) -> HopSummary {
    let offered_bytes = hop.link.offered_bytes(end);
    let counts = &hop.counts;
    let waited = |p| counts.waited_ns.quantile(p).map(|ns| ns * NS);
    HopSummary {
        name: hop.name.clone(),
        sent_packets: counts.sent.packets,
        sent_bytes: counts.sent.bytes,
        utilisation: if offered_bytes > 0.0 {
            counts.sent.bytes as f64 / offered_bytes
        } else {
            0.0
        },
        queue_max_bytes: counts.queue_max_bytes,
        queue_delay_p50_s: waited(0.5),
        queue_delay_p95_s: waited(0.95),
        dropped: by_reason(&counts.dropped),
        marked: by_reason(&counts.marked),
    }
}

fn by_reason(counts: &[u64; REASONS]) -> BTreeMap<&'static str, u64> {
    let named = Reason::ALL.iter().map(|reason| reason.name()).zip(counts.iter().copied());
    named.filter(|&(_, count)| count > 0).collect()
}
