//! What is known of a flow's transfer of an object, in the end.

use crate::{CapacitySpec, FlowSpec, Quantity, RunSpec, Sizes, SourceSpec};

/// What is known of a flow's transfer in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transfer {
    /// From its start until all its data were acknowledged.
    pub completion_s: Option<f64>,
    /// All the payload it ever sends; none of a flow that does not end by itself.
    pub bytes: Option<u64>,
    /// What it would take on an empty path, if that is known.
    pub ideal: Option<Ideal>,
    /// What its memory's estimator of bandwidth said in the end; without one, what BBR's did.
    pub estimate_bps: Option<f64>,
}

/// The transfers of a group of flows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transfers {
    /// Completion times, in rising order.
    pub completions_s: Vec<f64>,
    /// Payload ÷ completion time of each that was complete, added up.
    pub rates_bps: f64,
    /// Flows that should have ended by themselves and did not.
    pub unfinished: u64,
}

impl Transfers {
    /// Those of flows that end by themselves.
    pub(crate) fn of<'a>(transfers: impl Iterator<Item = &'a Transfer>) -> Self {
        let mut all = Self::default();
        for transfer in transfers {
            let Some(bytes) = transfer.bytes else { continue };
            match transfer.completion_s {
                Some(completion_s) => {
                    all.completions_s.push(completion_s);
                    all.rates_bps += bytes as f64 * 8.0 / completion_s;
                }
                None => all.unfinished += 1,
            }
        }
        all.completions_s.sort_by(f64::total_cmp);
        all
    }
}

/// Responses of a drawn size that are added up beforehand, at most.
const ADDED_UP: u64 = 1 << 20;

/// All the payload that a flow's source ever sends in a run with `seed`; none if it does not end by
/// itself.
pub(crate) fn bytes_of(flow: &FlowSpec, seed: u64) -> Option<u64> {
    let (bytes, count) = match &flow.source {
        SourceSpec::Fixed { bytes } => (bytes, 1),
        SourceSpec::RequestResponse { bytes, count, .. } => (bytes, (*count)?),
        SourceSpec::Trace(trace) => return Some(trace.writes.iter().map(|it| it.bytes).sum()),
        SourceSpec::Bulk
        | SourceSpec::OnOff { .. }
        | SourceSpec::Ping { .. }
        | SourceSpec::Cbr(_)
        | SourceSpec::Media(_)
        | SourceSpec::Video(_)
        | SourceSpec::Relay { .. } => return None,
    };
    if let Quantity::Constant(bytes) = bytes {
        return Some(bytes.saturating_mul(count));
    }
    let mut sizes = Sizes::new(bytes, seed, &flow.name);
    (count <= ADDED_UP).then(|| (0..count).fold(0u64, |sum, _| sum.saturating_add(sizes.draw())))
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
    /// That of a flow with a size, over links of constant capacity: those of all its connections.
    pub fn of(spec: &RunSpec, flow: usize, continuations: &[Option<u32>]) -> Option<Self> {
        let SourceSpec::Fixed { .. } = spec.flows[flow].source else { return None };
        let bytes = bytes_of(&spec.flows[flow], spec.seed)?;
        let (mut capacity_bps, mut delay_ns) = (u64::MAX, 0);
        let next = |at: &usize| continuations[*at].map(|next| next as usize);
        for at in std::iter::successors(Some(flow), next) {
            let flow = &spec.flows[at];
            delay_ns += flow.access_delay_ns;
            for link in flow.path.iter().chain(&flow.reverse_path) {
                let link = &spec.links[*link as usize];
                let CapacitySpec::Constant { rate_bps } = link.capacity else { return None };
                capacity_bps = capacity_bps.min(rate_bps);
                delay_ns += link.delay.steps.first()?.delay_ns;
            }
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
