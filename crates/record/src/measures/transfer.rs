//! Measures of a flow's transfer, over the whole run.

use super::{Compute, Measure, NUMBER, Place, RATE, Scope, TIME};
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
    fn completion_s(&self) -> f64 {
        1.5 * self.rtt_s + self.bytes * 8.0 / self.capacity_bps + 0.5 * self.rtt_s
    }
}

pub(super) const ROWS: &[Measure] = &[
    Measure {
        name: "completion",
        title: "completion",
        key: "completion_s",
        unit: TIME,
        scope: Scope::Flow,
        place: Place::Flow,
        any_window: false,
        column: None,
        definition: "Time from the flow's start until all its data were acknowledged; absent if
            that never was.",
        compute: Compute::Transfer(completion),
    },
    Measure {
        name: "efficiency",
        title: "efficiency",
        key: "efficiency",
        unit: NUMBER,
        scope: Scope::Flow,
        place: Place::Flow,
        any_window: false,
        column: None,
        definition:
            "Least completion time, 1.5 d + S ÷ C + 0.5 d for S bytes over a capacity C with
            the two-way propagation delay d (Guo and Lee 2020), ÷ the one that was measured; at most
            1. Absent of flows without a size, and where a capacity of the path varies.",
        compute: Compute::Transfer(efficiency),
    },
    Measure {
        name: "estimate",
        title: "estimate",
        key: "estimate_bps",
        unit: RATE,
        scope: Scope::Flow,
        place: Place::Flow,
        any_window: false,
        column: None,
        definition: "What the bandwidth estimator of the flow's memory says in the end; without
            one, what BBR's does.",
        compute: Compute::Transfer(estimate),
    },
    Measure {
        name: "mean_completion",
        title: "mean completion",
        key: "",
        unit: TIME,
        scope: Scope::Flow,
        place: Place::Asked,
        any_window: false,
        column: None,
        definition: "Mean of the completion times of all flows whose name begins so: `user` stands
            for `user-1` and `user-2`.",
        compute: Compute::MeanCompletion,
    },
    Measure {
        name: "download_time",
        title: "download time",
        key: "",
        unit: TIME,
        scope: Scope::Flow,
        place: Place::Asked,
        any_window: false,
        column: None,
        definition: "Time from the flow's start until a given size had been delivered, between ends
            of intervals of the series on the line that joins them; absent if it never was.",
        compute: Compute::Download,
    },
];

pub(crate) fn completion(transfer: &Transfer) -> Option<f64> {
    transfer.completion_s
}

/// A transfer ends with the last ACK's arrival, half a round trip after the last byte's. That makes
/// up for the client's request, which takes as long and which it does not have.
pub(crate) fn efficiency(transfer: &Transfer) -> Option<f64> {
    Some((transfer.ideal?.completion_s() / transfer.completion_s?).min(1.0))
}

pub(crate) fn estimate(transfer: &Transfer) -> Option<f64> {
    transfer.estimate_bps
}

/// The arithmetic mean; none of nothing.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0u32);
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn efficiency_is_the_least_time_over_the_time_taken() {
        // 1 MB over 8 Mbit/s and 100 ms: 0.15 + 1 + 0.05 s.
        let ideal = Ideal { bytes: 1e6, capacity_bps: 8e6, rtt_s: 0.1 };
        let transfer =
            |took_s| Transfer { completion_s: took_s, ideal: Some(ideal), estimate_bps: None };
        assert!((efficiency(&transfer(Some(2.4))).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(efficiency(&transfer(Some(1.0))), Some(1.0));
        assert_eq!(efficiency(&transfer(None)), None);
    }
}
