//! Measures of a simulation.

use std::ops::Deref;

use jostle_forwarding::{DirectionSummary, LinkSummary};
use jostle_metrics::Histogram;
use jostle_units::{Rate, Span, Time};
use serde::Serialize;

/// Measures of both directions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measures {
    /// Length of the simulation so far.
    pub duration_s: f64,
    /// Packets from the left to the right side.
    pub forward: DirectionMeasures,
    /// Packets from the right to the left side.
    pub reverse: DirectionMeasures,
}

impl Measures {
    /// Returns the measures of a link.
    ///
    /// # Panics
    /// If there is no link of this name.
    pub fn link(&self, name: &str) -> &LinkSummary {
        let links = || self.forward.links.iter().chain(&self.reverse.links);
        links().find(|link| link.name == name).unwrap_or_else(|| {
            let names: Vec<_> = links().map(|link| link.name.as_str()).collect();
            panic!("no link `{name}`: the links are {}", names.join(", "))
        })
    }
}

/// Measures of one direction. It dereferences to the counters of packets, with the queueing delays,
/// drops and marks of its links.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionMeasures {
    /// Delivered bytes per time, in bit/s, including Ethernet headers.
    pub throughput_bps: f64,
    /// One-way delays of the delivered packets; `None` if there were none.
    pub delay: Option<Delays>,
    /// Packets dropped before the first link because they were larger than the MTU.
    pub too_large_packets: u64,
    /// Packets dropped before the first link because no host of the other side has their address.
    pub unroutable_packets: u64,
    /// Counters.
    #[serde(flatten)]
    pub summary: DirectionSummary,
}

impl Deref for DirectionMeasures {
    type Target = DirectionSummary;

    fn deref(&self) -> &DirectionSummary {
        &self.summary
    }
}

impl DirectionMeasures {
    pub(crate) fn new(
        summary: DirectionSummary,
        now: Time,
        delay_ns: &Histogram,
        too_large_packets: u64,
        unroutable_packets: u64,
    ) -> Self {
        let throughput = Rate::of(summary.delivered_bytes, now.since(Time::ZERO));
        Self {
            throughput_bps: throughput.as_bps() as f64,
            delay: Delays::of(delay_ns),
            too_large_packets,
            unroutable_packets,
            summary,
        }
    }
}

/// A distribution of delays. Percentiles have an error below 1.6 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Delays {
    /// Minimum.
    pub min_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

impl Delays {
    fn of(delay_ns: &Histogram) -> Option<Self> {
        let quantile = |p| delay_ns.quantile(p).map(|ns| ns as u64);
        Some(Self {
            min_ns: delay_ns.min()?,
            p50_ns: quantile(0.5)?,
            p95_ns: quantile(0.95)?,
            p99_ns: quantile(0.99)?,
            max_ns: delay_ns.max()?,
        })
    }

    /// Returns the minimum.
    pub const fn min(&self) -> Span {
        Span::from_ns(self.min_ns)
    }

    /// Returns the median.
    pub const fn p50(&self) -> Span {
        Span::from_ns(self.p50_ns)
    }

    /// Returns the 95th percentile.
    pub const fn p95(&self) -> Span {
        Span::from_ns(self.p95_ns)
    }

    /// Returns the maximum.
    pub const fn max(&self) -> Span {
        Span::from_ns(self.max_ns)
    }
}
