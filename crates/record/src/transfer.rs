//! What is known of a flow's transfer of an object, in the end.

use crate::{CapacitySpec, FlowSpec, RunSpec, SourceSpec};

/// What is known of a flow's transfer in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transfer {
    /// From its start until all its data were acknowledged.
    pub completion_s: Option<f64>,
    /// What it would take on an empty path, if that is known.
    pub ideal: Option<Ideal>,
    /// What its memory's estimator of bandwidth said in the end; without one, what BBR's did.
    pub estimate_bps: Option<f64>,
}

/// A transfer over a path of constant capacity that is empty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ideal {
    /// Size S of the object.
    pub bytes: f64,
    /// Capacity C of the bottleneck.
    pub capacity_bps: f64,
    /// Two-way propagation delay d.
    pub rtt_s: f64,
}

impl Ideal {
    /// That of a flow with a size, over links of constant capacity.
    pub fn of(spec: &RunSpec, flow: &FlowSpec) -> Option<Self> {
        let SourceSpec::Fixed { bytes } = flow.source else { return None };
        let (mut capacity_bps, mut delay_ns) = (u64::MAX, flow.access_delay_ns);
        for link in flow.path.iter().chain(&flow.reverse_path) {
            let link = &spec.links[*link as usize];
            let CapacitySpec::Constant { rate_bps } = link.capacity else { return None };
            capacity_bps = capacity_bps.min(rate_bps);
            delay_ns += link.delay.steps.first()?.delay_ns;
        }
        let (bytes, capacity_bps) = (bytes as f64, capacity_bps as f64);
        Some(Self { bytes, capacity_bps, rtt_s: delay_ns as f64 / 1e9 })
    }

    /// Least time from a client's SYN to the last byte: one and a half round trips until the request
    /// has arrived, half a one until the last byte has (Guo and Lee, IEEE Access 2020).
    pub(crate) fn completion_s(&self) -> f64 {
        1.5 * self.rtt_s + self.bytes * 8.0 / self.capacity_bps + 0.5 * self.rtt_s
    }
}
