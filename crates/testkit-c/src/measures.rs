//! Measures as a structure.

use crate::arguments::Structure;

/// Measures of one direction, from 0 to now. Bytes include Ethernet headers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Direction {
    /// Delivered bytes per time, in bit/s.
    pub throughput_bps: f64,
    /// Packets delivered to hosts.
    pub delivered_packets: u64,
    /// Bytes of these packets.
    pub delivered_bytes: u64,
    /// Packets that links dropped, lost in queues or on the way.
    pub dropped_packets: u64,
    /// Packets that queues marked with ECN.
    pub marked_packets: u64,
    /// Packets larger than the MTU.
    pub too_large_packets: u64,
    /// Packets to an address that no host has.
    pub unroutable_packets: u64,
    /// Minimum one-way delay. All delays are 0 if no packet was delivered.
    pub delay_min_ns: u64,
    /// Median of the one-way delay.
    pub delay_p50_ns: u64,
    /// 95th percentile of the one-way delay.
    pub delay_p95_ns: u64,
    /// Maximum one-way delay.
    pub delay_max_ns: u64,
}

/// Measures of both directions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Measures {
    /// sizeof(jtk_measures).
    pub size: usize,
    /// Length of the simulation so far.
    pub duration_s: f64,
    /// From the left to the right side.
    pub forward: Direction,
    /// From the right to the left side.
    pub reverse: Direction,
}

// SAFETY: it is `repr(C)`, begins with its size, and consists of numbers.
unsafe impl Structure for Measures {}

impl From<&kit::Measures> for Measures {
    fn from(measures: &kit::Measures) -> Self {
        Self {
            size: size_of::<Self>(),
            duration_s: measures.duration_s,
            forward: (&measures.forward).into(),
            reverse: (&measures.reverse).into(),
        }
    }
}

impl From<&kit::DirectionMeasures> for Direction {
    fn from(measures: &kit::DirectionMeasures) -> Self {
        let delay = measures.delay.as_ref();
        Self {
            throughput_bps: measures.throughput_bps,
            delivered_packets: measures.delivered_packets,
            delivered_bytes: measures.delivered_bytes,
            dropped_packets: measures.dropped_packets,
            marked_packets: measures.links.iter().map(kit::LinkSummary::marked_packets).sum(),
            too_large_packets: measures.too_large_packets,
            unroutable_packets: measures.unroutable_packets,
            delay_min_ns: delay.map_or(0, |it| it.min_ns),
            delay_p50_ns: delay.map_or(0, |it| it.p50_ns),
            delay_p95_ns: delay.map_or(0, |it| it.p95_ns),
            delay_max_ns: delay.map_or(0, |it| it.max_ns),
        }
    }
}
