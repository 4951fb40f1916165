//! What a run leaves behind.

use std::ops::Range;

use jostle_units::Time;

use crate::PhaseSpec;
use crate::flow_meter::{FlowMeter, FlowTotals, bits_per_s};
use crate::link_meter::{LinkMeter, LinkTotals};
use crate::recorder::{FlowIdentity, Recorder};
use crate::summary::{Fairness, FlowPhase, FlowSummary, LinkPhase, LinkSummary, Summary, jain};
use crate::tables::{AckTable, FlowTable, InternalTable, LinkTable, seconds};
use crate::timeline::Timeline;

/// What a run leaves behind: its measures and its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// Measures per phase.
    pub summary: Summary,
    /// Series of the flows.
    pub flows: FlowTable,
    /// Series of the links.
    pub links: LinkTable,
    /// Series of what the controllers keep inside.
    pub internals: InternalTable,
    /// Every ACK, if the spec asks for it.
    pub acks: Option<AckTable>,
}

/// Builds the record of a run whose segments have all ended.
pub(crate) fn of(recorder: Recorder) -> RunRecord {
    let flows: Vec<FlowSummary> = recorder
        .flows
        .iter()
        .zip(&recorder.flow_identities)
        .map(|(meter, identity)| flow_summary(&recorder, meter, identity))
        .collect();
    let fairness = recorder
        .phases
        .iter()
        .map(|phase| (phase.name.clone(), fairness(&recorder, phase, &flows)));
    let summary = Summary {
        fairness: fairness.collect(),
        links: (0..recorder.links.len()).map(|link| link_summary(&recorder, link)).collect(),
        flows,
    };
    RunRecord {
        summary,
        links: link_table(&recorder.timeline, &recorder.links),
        flows: recorder.flow_table,
        internals: recorder.internals,
        acks: recorder.acks,
    }
}

fn flow_summary(recorder: &Recorder, meter: &FlowMeter, identity: &FlowIdentity) -> FlowSummary {
    let phases = recorder.phases.iter().map(|phase| {
        let mut totals = FlowTotals::default();
        for segment in &meter.segments()[recorder.timeline.segments_of(phase)] {
            totals.merge(segment);
        }
        (phase.name.clone(), flow_phase(&totals, phase.to_ns - phase.from_ns))
    });
    FlowSummary {
        name: identity.name.clone(),
        transport: identity.transport,
        controller: identity.controller.clone(),
        completion_s: meter.completion().map(|after| seconds(after.as_ns())),
        phases: phases.collect(),
        pings: meter.pings(),
    }
}

fn flow_phase(totals: &FlowTotals, length_ns: u64) -> FlowPhase {
    let counters = &totals.counters;
    let throughput_bps = bits_per_s(counters.received_bytes, length_ns);
    let rtt_mean_s = totals.rtt_mean_s();
    let quantile_s = |p| totals.rtt_ns.quantile(p).map(|ns| ns / 1e9);
    FlowPhase {
        sending_rate_bps: bits_per_s(counters.sent_bytes, length_ns),
        throughput_bps,
        goodput_bps: bits_per_s(counters.delivered_bytes, length_ns),
        goodput_ratio: ratio(counters.delivered_bytes as f64, counters.sent_bytes as f64),
        rtt_mean_s,
        rtt_min_s: totals.rtt_ns.min().map(seconds),
        rtt_p50_s: quantile_s(0.5),
        rtt_p95_s: quantile_s(0.95),
        rtt_sd_s: totals.rtt_sd_s(),
        cwnd_mean_bytes: totals.cwnd_mean_bytes(),
        sent_packets: counters.sent_packets,
        retransmitted_packets: counters.retransmitted_packets,
        retransmission_ratio: ratio(
            counters.retransmitted_packets as f64,
            counters.sent_packets as f64,
        ),
        power_bits: rtt_mean_s.and_then(|rtt_s| ratio(throughput_bps, rtt_s)),
    }
}

fn fairness(recorder: &Recorder, phase: &PhaseSpec, flows: &[FlowSummary]) -> Fairness {
    let shares: Vec<f64> = recorder
        .flow_identities
        .iter()
        .zip(&recorder.flows)
        .zip(flows)
        .filter(|((identity, meter), _)| identity.competes() && is_there(identity, meter, phase))
        .filter_map(|(_, flow)| flow.phases.get(&phase.name))
        .map(|measures| measures.throughput_bps)
        .collect();
    Fairness { jain: jain(&shares) }
}

/// Whether a flow was there during part of a phase.
fn is_there(identity: &FlowIdentity, meter: &FlowMeter, phase: &PhaseSpec) -> bool {
    let completed = meter.completion().map_or(Time::NEVER, |after| identity.start + after);
    let ended = identity.stop.min(completed);
    identity.start < Time::from_ns(phase.to_ns) && ended > Time::from_ns(phase.from_ns)
}

fn link_summary(recorder: &Recorder, link: usize) -> LinkSummary {
    let phases = recorder.phases.iter().map(|phase| {
        let segments = recorder.timeline.segments_of(phase);
        let mut totals = LinkTotals::default();
        for segment in &recorder.links[link].segments()[segments.clone()] {
            totals.merge(segment);
        }
        let offered_bytes = offered_bytes(recorder, link, &segments);
        let length_ns = phase.to_ns - phase.from_ns;
        (phase.name.clone(), link_phase(&totals, offered_bytes, length_ns))
    });
    LinkSummary { name: recorder.link_names[link].clone(), phases: phases.collect() }
}

/// Bytes that a link could have carried during some segments.
fn offered_bytes(recorder: &Recorder, link: usize, segments: &Range<usize>) -> f64 {
    let until = |segment: usize| match segment {
        0 => 0.0,
        n => recorder.offered_bytes[(n - 1) * recorder.links.len() + link],
    };
    until(segments.end) - until(segments.start)
}

fn link_phase(totals: &LinkTotals, offered_bytes: f64, length_ns: u64) -> LinkPhase {
    let counters = &totals.counters;
    LinkPhase {
        utilisation: ratio(counters.sent_bytes as f64, offered_bytes),
        queue_mean_bytes: counters.queue_bytes_ns as f64 / length_ns as f64,
        queue_p95_bytes: totals.queue_bytes.quantile(0.95).unwrap_or(0.0),
        dropped_packets: counters.dropped.iter().sum(),
        marked_packets: counters.marked.iter().sum(),
    }
}

/// `part` ÷ `whole`; none where there is no whole (or it is unknown: NaN).
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

fn link_table(timeline: &Timeline, links: &[LinkMeter]) -> LinkTable {
    let mut table = LinkTable::default();
    for bin in 0..timeline.bins() {
        for (link, meter) in links.iter().enumerate() {
            // No state: the simulator was not there at the end of this interval.
            let Some(state) = meter.states().get(bin) else { continue };
            let counters = &meter.bins()[bin];
            let offered_before = if bin == 0 { 0.0 } else { meter.states()[bin - 1].offered_bytes };
            let offered_bytes = state.offered_bytes - offered_before;
            let length_ns = timeline.bin_length(bin).as_ns();
            table.time_s.push(seconds(timeline.bin_end(bin).as_ns()));
            table.link.push(link as u32);
            table
                .utilisation
                .push(ratio(counters.sent_bytes as f64, offered_bytes).unwrap_or(f64::NAN));
            table.queue_bytes.push(state.queue_bytes as f64);
            table.queue_mean_bytes.push(counters.queue_bytes_ns as f64 / length_ns as f64);
            table.sent_packets.push(counters.sent_packets as u32);
            for (column, count) in table.dropped.iter_mut().zip(counters.dropped) {
                column.push(count as u32);
            }
            for (column, count) in table.marked.iter_mut().zip(counters.marked) {
                column.push(count as u32);
            }
        }
    }
    table
}
