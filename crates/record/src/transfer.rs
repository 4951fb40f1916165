//! What is known of a flow's transfer of an object, in the end.

use crate::tables::TransferTable;
use crate::{
    CapacitySpec, FlowSpec, FlowStreams, Quantity, RunSpec, Sampler, Sizes, SourceSpec, responses,
};

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
    /// Those of flows that are many connections, if there are any.
    pub arrived: Option<Arrived>,
}

/// The transfers of flows that are many connections, by size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrived {
    /// All of them, then those of each class of sizes.
    pub classes: [ArrivedClass; 1 + SIZES_BYTES.len()],
    /// Length of the run.
    pub duration_s: f64,
}

/// Some of the transfers that began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArrivedClass {
    /// How many.
    pub began: u64,
    /// Payload of all of them.
    pub bytes: u64,
    /// Completion times of those that were over, in rising order.
    pub completions_s: Vec<f64>,
    /// Their slowdowns, where those are known, in rising order.
    pub slowdowns: Vec<f64>,
}

/// Sizes above which a class begins and up to which it goes: small, medium and large, as evaluations of
/// data center transports divide them since pFabric (Alizadeh et al., SIGCOMM 2013, section 5.3).
const SIZES_BYTES: [(u64, u64); 3] = [(0, 100_000), (100_000, 10_000_000), (10_000_000, u64::MAX)];

impl Arrived {
    /// Those of some flows.
    fn of(table: &TransferTable, flows: &[usize], duration_s: f64) -> Self {
        let mut all = Self { duration_s, ..Self::default() };
        let rows = 0..table.start_s.len();
        for row in rows.filter(|row| flows.contains(&(table.flow[*row] as usize))) {
            let bytes = table.bytes[row];
            let sizes = SIZES_BYTES.iter().map(|(above, up_to)| *above < bytes && bytes <= *up_to);
            for (class, _) in
                all.classes.iter_mut().zip([true].into_iter().chain(sizes)).filter(|(_, is)| *is)
            {
                class.add(bytes, table.completion_s[row], table.slowdown[row]);
            }
        }
        for class in &mut all.classes {
            class.completions_s.sort_unstable_by(f64::total_cmp);
            class.slowdowns.sort_unstable_by(f64::total_cmp);
        }
        all
    }
}

impl ArrivedClass {
    fn add(&mut self, bytes: u64, completion_s: f64, slowdown: f64) {
        self.began += 1;
        self.bytes += bytes;
        if !completion_s.is_nan() {
            self.completions_s.push(completion_s);
        }
        if !slowdown.is_nan() {
            self.slowdowns.push(slowdown);
        }
    }

    /// Those that were not over at the end of the run.
    pub fn unfinished(&self) -> u64 {
        self.began - self.completions_s.len() as u64
    }
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

    /// The same, with those of members that are many connections.
    pub(crate) fn with_arrived(
        mut self,
        table: &TransferTable,
        flows: &[usize],
        duration_s: f64,
    ) -> Self {
        let arrived = Arrived::of(table, flows, duration_s);
        let [all, ..] = &arrived.classes;
        let rows = (0..table.start_s.len()).filter(|row| {
            flows.contains(&(table.flow[*row] as usize)) && !table.completion_s[*row].is_nan()
        });
        self.rates_bps +=
            rows.map(|row| table.bytes[row] as f64 * 8.0 / table.completion_s[row]).sum::<f64>();
        self.completions_s.extend_from_slice(&all.completions_s);
        self.completions_s.sort_by(f64::total_cmp);
        self.unfinished += all.unfinished();
        self.arrived = Some(arrived);
        self
    }
}

/// Responses of a drawn size that are added up beforehand, at most.
const ADDED_UP: u64 = 1 << 20;

/// All the payload that a flow's source ever sends in a run with `seed`; none if it does not end by
/// itself.
pub(crate) fn bytes_of(flow: &FlowSpec, seed: u64) -> Option<u64> {
    let (bytes, count) = match &flow.source {
        SourceSpec::Fixed { bytes } => (bytes, 1),
        SourceSpec::RequestResponse { bytes, count, .. } => {
            let count = Sampler::new(count.clone()?);
            (bytes, responses(&count, FlowStreams::of(seed, &flow.name)))
        }
        SourceSpec::Trace(trace) => return Some(trace.writes.iter().map(|it| it.bytes).sum()),
        SourceSpec::Bulk
        | SourceSpec::OnOff { .. }
        | SourceSpec::Ping { .. }
        | SourceSpec::Cbr(_)
        | SourceSpec::Media(_)
        | SourceSpec::Video(_)
        | SourceSpec::Web(_)
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
        if spec.links.is_empty() {
            return None;
        }
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
