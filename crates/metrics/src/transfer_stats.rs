//! Outcome of a flow's transfer.

use crate::tables::TransferTable;
use jostle_run_spec::{ConstantService, FlowRandomStreams, FlowSpec, RunSpec, SourceSpec};
use jostle_traffic::MessageSizes;
use jostle_units::FlowId;

/// Outcome of a flow's transfer at the end of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TransferOutcome {
    /// Time from the flow's start until all its data were acknowledged.
    pub completion_time_s: Option<f64>,
    /// The flow ends by itself.
    pub has_end: bool,
    /// Total payload, if it is known before the flow ends.
    pub bytes: Option<u64>,
    /// Minimum transfer on the empty path, if it is known.
    pub ideal: Option<IdealTransfer>,
    /// Final bandwidth estimate of the peer cache's estimator, else of BBR's model.
    pub bandwidth_estimate_bps: Option<f64>,
}

/// The transfers of a group of flows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupTransfers {
    /// Completion times, in increasing order.
    pub completions_s: Vec<f64>,
    /// Sum of payload ÷ completion time over all complete transfers; NaN if a payload is unknown.
    pub rates_bps: f64,
    /// Flows that have an end and did not reach it.
    pub unfinished: u64,
    /// Transfers of multi-connection flows, if there are any.
    pub arrived: Option<TransfersBySize>,
}

/// Transfers of multi-connection flows, by size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransfersBySize {
    /// All transfers, then the transfers of each size class.
    pub classes: [SizeClass; 1 + SIZES_BYTES.len()],
    /// Length of the run.
    pub duration_s: f64,
}

/// Transfers of one size class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SizeClass {
    /// Transfers that began.
    pub began: u64,
    /// Payload of all of them.
    pub bytes: u64,
    /// Completion times of the complete transfers, in increasing order.
    pub completions_s: Vec<f64>,
    /// Slowdowns that are known, in increasing order.
    pub slowdowns: Vec<f64>,
}

/// Bounds of the size classes, lower bound excluded: small, medium and large, as in evaluations of
/// data center transports since pFabric (Alizadeh et al., SIGCOMM 2013, section 5.3).
const SIZES_BYTES: [(u64, u64); 3] = [(0, 100_000), (100_000, 10_000_000), (10_000_000, u64::MAX)];

impl TransfersBySize {
    /// Collects the transfers of these flows.
    fn of(table: &TransferTable, flows: &[usize], duration_s: f64) -> Self {
        let mut all = Self { duration_s, ..Self::default() };
        let rows = 0..table.start_s.len();
        for row in rows.filter(|row| flows.contains(&(table.flow[*row] as usize))) {
            let bytes = table.bytes[row];
            let sizes = SIZES_BYTES.iter().map(|(above, up_to)| *above < bytes && bytes <= *up_to);
            for (class, _) in
                all.classes.iter_mut().zip([true].into_iter().chain(sizes)).filter(|(_, is)| *is)
            {
                class.add(bytes, table.completion_time_s[row], table.slowdown[row]);
            }
        }
        for class in &mut all.classes {
            class.completions_s.sort_unstable_by(f64::total_cmp);
            class.slowdowns.sort_unstable_by(f64::total_cmp);
        }
        all
    }
}

impl SizeClass {
    fn add(&mut self, bytes: u64, completion_time_s: f64, slowdown: f64) {
        self.began += 1;
        self.bytes += bytes;
        if !completion_time_s.is_nan() {
            self.completions_s.push(completion_time_s);
        }
        if !slowdown.is_nan() {
            self.slowdowns.push(slowdown);
        }
    }

    /// Returns the number of transfers that were incomplete at the end of the run.
    pub fn unfinished(&self) -> u64 {
        self.began - self.completions_s.len() as u64
    }
}

impl GroupTransfers {
    /// Collects the transfers of flows that end by themselves.
    pub(crate) fn of<'a>(transfers: impl Iterator<Item = &'a TransferOutcome>) -> Self {
        let mut all = Self::default();
        for transfer in transfers {
            match transfer.completion_time_s {
                Some(completion_time_s) if transfer.has_end => {
                    let bytes = transfer.bytes.map_or(f64::NAN, |bytes| bytes as f64);
                    all.completions_s.push(completion_time_s);
                    all.rates_bps += bytes * 8.0 / completion_time_s;
                }
                None if transfer.has_end => all.unfinished += 1,
                _ => {}
            }
        }
        all.completions_s.sort_by(f64::total_cmp);
        all
    }

    /// Adds the transfers of multi-connection members.
    pub(crate) fn with_arrived(
        mut self,
        table: &TransferTable,
        flows: &[usize],
        duration_s: f64,
    ) -> Self {
        let arrived = TransfersBySize::of(table, flows, duration_s);
        let [all, ..] = &arrived.classes;
        let rows = (0..table.start_s.len()).filter(|row| {
            flows.contains(&(table.flow[*row] as usize)) && !table.completion_time_s[*row].is_nan()
        });
        self.rates_bps += rows
            .map(|row| table.bytes[row] as f64 * 8.0 / table.completion_time_s[row])
            .sum::<f64>();
        self.completions_s.extend_from_slice(&all.completions_s);
        self.completions_s.sort_by(f64::total_cmp);
        self.unfinished += all.unfinished();
        self.arrived = Some(arrived);
        self
    }
}

/// Returns the total payload of a flow's source in a run with `seed`, or `None` if the flow does
/// not end by itself, or if the payload depends on the run.
pub(crate) fn bytes_of(flow: &FlowSpec, seed: u64) -> Option<u64> {
    MessageSizes::of(&flow.source, FlowRandomStreams::of(seed, &flow.name)).total_bytes()
}

/// Transfer over an empty path of constant service rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdealTransfer {
    /// Time in which the bottleneck sends the object: S ÷ C without a token bucket.
    pub sending_s: f64,
    /// Base RTT d.
    pub rtt_s: f64,
    /// Time of the handshake: d, or 0 with 0-RTT.
    pub handshake_s: f64,
}

impl IdealTransfer {
    /// Returns the ideal transfer of a fixed-size flow over links of constant service rate
    /// (`services`), summed over all proxy legs.
    pub fn of(
        spec: &RunSpec,
        flow: usize,
        continuations: &[Option<FlowId>],
        services: &[Option<ConstantService>],
    ) -> Option<Self> {
        let SourceSpec::Fixed { .. } = spec.flows[flow].source else { return None };
        if spec.links.is_empty() {
            return None;
        }
        let bytes = bytes_of(&spec.flows[flow], spec.seed)? as f64;
        let (mut sending_s, mut delay_ns) = (0.0_f64, 0);
        let next = |at: &usize| continuations[*at].map(FlowId::index);
        for at in std::iter::successors(Some(flow), next) {
            let flow = &spec.flows[at];
            if !flow.routes.is_empty() {
                return None;
            }
            delay_ns += flow.base_delay_ns;
            for link in &flow.path {
                sending_s = sending_s.max(services[link.index()]?.shortest_time_s(bytes));
            }
            for link in flow.path.iter().chain(&flow.reverse_path) {
                delay_ns += spec.links[link.index()].delay.steps.first()?.delay_ns;
            }
        }
        let rtt_s = delay_ns as f64 / 1e9;
        let handshake_s = if spec.flows[flow].skips_handshake() { 0.0 } else { rtt_s };
        Some(Self { sending_s, rtt_s, handshake_s })
    }

    /// Returns the minimum time from the client's SYN to the last byte: the handshake, half an RTT
    /// until the request has arrived, half an RTT for the last byte (Guo and Lee, IEEE Access 2020).
    pub(crate) fn completion_time_s(&self) -> f64 {
        self.handshake_s + 0.5 * self.rtt_s + self.sending_s + 0.5 * self.rtt_s
    }
}
