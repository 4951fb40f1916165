//! Measures of a direction and of its links.

use std::collections::BTreeMap;

use jostle_link::{DropReason, Service};
use jostle_units::Time;
use serde::Serialize;

use crate::direction::{Direction, Hop, REASONS};

const NS: f64 = 1e-9;

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

impl LinkSummary {
    /// Returns the packets dropped for any reason.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// Returns the packets marked for any reason.
    pub fn marked_packets(&self) -> u64 {
        self.marked.values().sum()
    }
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

impl Direction {
    /// Returns the measures from 0 to `end`. [`advance`](Self::advance) must have been called.
    pub fn summary(&mut self, end: Time) -> DirectionSummary {
        let dropped = self.hops.iter().flat_map(|hop| hop.counts.dropped);
        DirectionSummary {
            arrived_packets: self.arrived.packets,
            arrived_bytes: self.arrived.bytes,
            delivered_packets: self.delivered.packets,
            delivered_bytes: self.delivered.bytes,
            refused_packets: self.refused,
            unheld_packets: self.unheld,
            dropped_packets: dropped.sum(),
            left_packets: self.packets_in_transit(),
            links: self.hops.iter_mut().map(|hop| of_hop(hop, end)).collect(),
        }
    }
}

fn of_hop(hop: &mut Hop, end: Time) -> LinkSummary {
    let service_bytes = hop.link.service(end).since(Service::default()).throughput_bytes;
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
