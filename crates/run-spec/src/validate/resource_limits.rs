//! Limits of the memory of a run for records and packets, and of its work that cannot be
//! interrupted. A few bytes of specification can request more than a machine has.
//!
//! Each limit is far above sensible simulations, and each estimate is an upper bound: a run may
//! need less, but never much more.

use std::collections::BTreeMap;

use jostle_link::registry;
use jostle_registry::{ParameterType, ParameterValues};
use jostle_units::{FULL_PACKET_BYTES, LINK_HEADER_BYTES, LinkId, mss_of};

use super::{MAX_NS, SpecError, SpecPath, within};
use crate::MAX_ACK_ROWS;
use crate::{
    CapacitySpec, FlowSpec, JitterSpec, LinkPart, LinkSpec, OutageSpec, ReceiverSpec, RunSpec,
    SourceSpec, TraceLevel,
};

/// Maximum numbers of phases, links and flows.
const MAX_PHASES: usize = 1_000;
const MAX_LINKS: usize = 100_000;
const MAX_FLOWS: usize = 100_000;
/// Maximum number of rows of the series. A flow's row needs 132 bytes, a link's 400 during the run.
const MAX_ROWS: u64 = 10_000_000;
/// Maximum number of distributions that are merged from segments to phases after a run.
const MAX_MERGES: u64 = 2_000_000;
/// Maximum number of packets that are in flight, queued or stored by senders at the same time; each
/// needs about 200 bytes.
const MAX_PACKETS: u64 = 10_000_000;
/// Maximum number of outages of a link in a run. The simulator draws them in chunks and checks for
/// cancellation in between. The kernel backend needs all of them in advance, which takes half a
/// second.
const MAX_OUTAGES: u64 = 10_000_000;
/// Maximum number of jitter points of a link in a run. The simulator draws them in chunks and
/// checks for cancellation in between; all of them take minutes.
const MAX_JITTER_POINTS: u64 = 10_000_000_000;
/// Points of jitter per correlation time.
const JITTER_GRID: u64 = 16;
/// Maximum number of random steps of a link's rate in a run. After a time without packets they are
/// drawn at once, which takes half a second.
const MAX_RATE_STEPS: u64 = 10_000_000;
/// Maximum number of updates of a queue's drop probability in a run. On an idle link they are made
/// in chunks; all of them take some seconds.
const MAX_UPDATES: u64 = 1_000_000_000;

/// Checks the lengths of lists before any of them is processed.
pub(super) fn check_counts(spec: &RunSpec) -> Result<(), SpecError> {
    let counts = [
        ("phases", spec.phases.len(), MAX_PHASES),
        ("links", spec.links.len(), MAX_LINKS),
        ("flows", spec.flows.len(), MAX_FLOWS),
    ];
    match counts.iter().find(|(_, given, most)| given > most) {
        None => Ok(()),
        Some((at, given, most)) => {
            Err(SpecError::unfit(at, format!("{given} of them"), format!("at most {most}")))
        }
    }
}

/// Checks the resources of a spec whose values are valid one by one.
pub(super) fn check(spec: &RunSpec) -> Result<(), SpecError> {
    check_series(spec)?;
    check_phases(spec)?;
    for (i, link) in spec.links.iter().enumerate() {
        check_link(format_args!("links[{i}]"), link, spec.duration_ns)?;
    }
    check_pings(spec)?;
    super::arrivals::check_number(spec)?;
    check_acks(spec)?;
    check_packets(spec)
}

fn series_count(spec: &RunSpec) -> u64 {
    (spec.flows.len() + spec.links.len()) as u64
}

fn check_series(spec: &RunSpec) -> Result<(), SpecError> {
    let (bins, series) = (spec.duration_ns.div_ceil(spec.interval_ns), series_count(spec));
    if bins.saturating_mul(series) <= MAX_ROWS {
        return Ok(());
    }
    let expected = format!(
        "longer bins: at most {MAX_ROWS} rows, one per bin and each of {series} flows and links"
    );
    Err(SpecError::unfit("interval_ns", spec.interval_ns, expected))
}

/// Limits the number of merges: the distributions of a phase are merged from the segments between
/// all boundaries.
fn check_phases(spec: &RunSpec) -> Result<(), SpecError> {
    let mut cuts: Vec<_> = spec.phases.iter().flat_map(|p| [p.from_ns, p.to_ns]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let position = |ns| cuts.partition_point(|cut| *cut < ns) as u64;
    let segments: u64 = spec.phases.iter().map(|p| position(p.to_ns) - position(p.from_ns)).sum();
    let merges = segments.saturating_mul(series_count(spec));
    if merges <= MAX_MERGES {
        return Ok(());
    }
    let given = format!("{} that overlap in {segments} segments", spec.phases.len());
    let most = MAX_MERGES / series_count(spec);
    Err(SpecError::unfit("phases", given, format!("at most {most} segments in all phases")))
}

fn check_link(at: SpecPath<'_>, link: &LinkSpec, duration_ns: u64) -> Result<(), SpecError> {
    if let Some(OutageSpec { mean_interval_ns, .. }) = link.outages {
        let at = format_args!("{at}.outages.mean_interval_ns");
        rarely(at, mean_interval_ns, 1, duration_ns, MAX_OUTAGES)?;
    }
    if let CapacitySpec::Autoregressive(spec) = &link.capacity {
        rarely(
            format_args!("{at}.capacity.step_ns"),
            spec.step_ns,
            1,
            duration_ns,
            MAX_RATE_STEPS,
        )?;
    }
    let jitter = link.delay.jitter.as_ref();
    if let Some(JitterSpec { correlation_ns: correlation_ns @ 1.., .. }) = jitter {
        let at = format_args!("{at}.delay.jitter.correlation_ns");
        rarely(at, *correlation_ns, JITTER_GRID, duration_ns, MAX_JITTER_POINTS)?;
    }
    let updates = |row: &registry::QueueEntry<()>| {
        row.entry.parameters.iter().any(|parameter| parameter.name == "update")
    };
    for (place, part) in queues(link) {
        if let Some((_, values)) = row_of(part).filter(|(row, _)| updates(row)) {
            let at = format_args!("{at}.{place}.parameters.update");
            rarely(at, values.span("update").as_ns(), 1, duration_ns, MAX_UPDATES)?;
        }
    }
    Ok(())
}

/// Checks that an event that occurs `times` per `period_ns` occurs at most `most` times in a run.
fn rarely(
    at: SpecPath<'_>,
    period_ns: u64,
    times: u64,
    duration_ns: u64,
    most: u64,
) -> Result<(), SpecError> {
    let least_ns = u128::from(duration_ns) * u128::from(times) / u128::from(most);
    within(at, period_ns, u64::try_from(least_ns).unwrap_or(MAX_NS)..=MAX_NS)
}

/// Limits the number of outstanding pings, which a sender stores.
fn check_pings(spec: &RunSpec) -> Result<(), SpecError> {
    let mut all = 0u64;
    for (i, flow) in spec.flows.iter().enumerate() {
        let SourceSpec::Ping { every_ns, timeout_ns, .. } = flow.source else { continue };
        all = all.saturating_add(timeout_ns.min(spec.duration_ns) / every_ns);
        if all > MAX_PACKETS {
            let expected =
                format!("longer pauses: at most {MAX_PACKETS} pings are waited for at once");
            let at = format_args!("flows[{i}].source.every_ns");
            return Err(SpecError::unfit(at, every_ns, expected));
        }
    }
    Ok(())
}

/// Limits the number of ACK rows. An ACK confirms at least one packet, and full-sized packets
/// arrive at most at the rate of the slowest link. (With smaller packets there can be more, so the
/// recorder counts as well.)
fn check_acks(spec: &RunSpec) -> Result<(), SpecError> {
    if spec.record == TraceLevel::None {
        return Ok(());
    }
    let mut slowest = BTreeMap::new();
    for flow in spec.flows.iter().filter(|flow| !sends_datagrams(flow)) {
        for path in flow.paths() {
            let rates = path.iter().map(|link| (peak_bps(spec, *link), *link));
            if let Some((rate_bps, link)) = rates.min() {
                slowest.insert(link, rate_bps);
            }
        }
    }
    let bits_per_s: u128 = slowest.values().map(|bps| u128::from(*bps)).sum();
    let bits = bits_per_s * u128::from(spec.duration_ns) / 1_000_000_000;
    let rows = bits / (8 * smallest_packet_bytes(spec)) * max_acks_per_ack(spec);
    if rows <= u128::from(MAX_ACK_ROWS) {
        return Ok(());
    }
    let expected =
        format!("`none` where there may be {rows} ACKs: at most {MAX_ACK_ROWS} are kept");
    Err(SpecError::unfit("record", "`acks`", expected))
}

/// Limits the number of packets that exist at once: at most what windows allow, what queues and
/// delays hold, and what can be sent.
fn check_packets(spec: &RunSpec) -> Result<(), SpecError> {
    let senders = || spec.flows.iter().filter(|flow| !sends_datagrams(flow));
    let windows = senders()
        .map(|flow| match (&flow.arrivals, &flow.receiver) {
            // The number of simultaneous connections is unknown. A window does not limit data that
            // are acknowledged before they arrive.
            (Some(_), _) | (_, Some(ReceiverSpec::OptimisticAcking { .. })) => u128::MAX,
            _ => {
                let connections = match &flow.source {
                    SourceSpec::Web(web) => web.connections,
                    _ => 1,
                };
                let window = flow.receive_window_bytes.div_ceil(u64::from(mss_of(flow.mtu_bytes)));
                u128::from(window) * u128::from(connections)
            }
        })
        .fold(0u128, u128::saturating_add);
    let packet_bytes = smallest_packet_bytes(spec);
    let packets = |bytes: u128| bytes / packet_bytes;
    let longest_way_ns = spec.flows.iter().map(|flow| flow.base_delay_ns).max().unwrap_or(0);
    let mut held = 0u128;
    let mut sent: u128 =
        senders().map(|flow| u128::from(flow.initial_window_packets)).sum::<u128>();
    for (at, link) in spec.links.iter().enumerate() {
        let rate_bps = u128::from(peak_bps(spec, LinkId::at(at)));
        let bytes_in = |ns: u64| rate_bps * u128::from(ns) / 8_000_000_000;
        let delay_ns = longest_delay_ns(link).saturating_add(longest_way_ns);
        held += packets(limit_bytes(link, spec.flows.len()) + bytes_in(delay_ns));
        // A sender may send twice the data that arrive while it doubles cwnd, and so may a paced
        // sender.
        sent += packets(3 * bytes_in(spec.duration_ns));
    }
    // Only its window limits the data of a sender on the host of its proxy.
    let beside = senders().filter(|flow| flow.path.is_empty());
    let bursts: u128 = beside.map(|flow| packets(u128::from(flow.receive_window_bytes))).sum();
    (held, sent) = (held + bursts, sent + bursts);
    let most = windows.min(held).min(sent).saturating_mul(max_acks_per_ack(spec));
    if most <= u128::from(MAX_PACKETS) {
        return Ok(());
    }
    let expected = format!("links and flows that hold at most {MAX_PACKETS} packets at once");
    Err(SpecError::unfit("links", format!("such that there may be {most} packets"), expected))
}

/// Returns the size on the wire of the smallest full-sized packet of all flows.
fn smallest_packet_bytes(spec: &RunSpec) -> u128 {
    let senders = spec.flows.iter().filter(|flow| !sends_datagrams(flow));
    let sizes = senders.map(|flow| u128::from(flow.mtu_bytes + LINK_HEADER_BYTES));
    sizes.min().unwrap_or_else(|| u128::from(FULL_PACKET_BYTES))
}

/// Returns the maximum number of ACKs that a receiver sends in place of one.
fn max_acks_per_ack(spec: &RunSpec) -> u128 {
    let acks = spec.flows.iter().map(|flow| match flow.receiver {
        Some(ReceiverSpec::AckDivision { pieces }) => u128::from(pieces),
        Some(ReceiverSpec::DupackSpoofing { copies }) => u128::from(copies) + 1,
        _ => 1,
    });
    acks.max().unwrap_or(1)
}

fn sends_datagrams(flow: &FlowSpec) -> bool {
    matches!(flow.source, SourceSpec::Ping { .. } | SourceSpec::Cbr(_))
}

fn peak_bps(spec: &RunSpec, link: LinkId) -> u64 {
    spec.bounds_bps(link).1
}

fn longest_delay_ns(link: &LinkSpec) -> u64 {
    let base_ns = link.delay.steps.iter().map(|step| step.delay_ns).max().unwrap_or(0);
    let jitter = link.delay.jitter.as_ref().and_then(|jitter| jitter.quantiles.last());
    base_ns.saturating_add(jitter.map_or(0, |last| last.value_ns))
}

fn row_of(queue: &LinkPart) -> Option<(&'static registry::QueueEntry<()>, ParameterValues)> {
    let row = registry::queue::<()>(&queue.kind).ok()?;
    Some((row, row.resolve(&queue.parameters).ok()?))
}

/// Returns all queues of a link, with their paths in it.
fn queues(link: &LinkSpec) -> Vec<(String, &LinkPart)> {
    let Some(classes) = &link.classes else { return vec![("queue".to_owned(), &link.queue)] };
    let place = |i| format!("classes[{i}].queue");
    classes.iter().enumerate().map(|(i, class)| (place(i), &class.queue)).collect()
}

/// Returns the maximum number of bytes in a link's queues.
fn limit_bytes(link: &LinkSpec, flows: usize) -> u128 {
    let all: u128 = queues(link).iter().map(|(_, queue)| queue_limit_bytes(queue)).sum();
    // Without classes every flow has a separate queue.
    let classful = row_of(&link.queue).is_some_and(|(row, _)| row.entry.class == "classful");
    if classful && link.classes.is_none() { all * flows as u128 } else { all }
}

fn queue_limit_bytes(queue: &LinkPart) -> u128 {
    let Some((row, values)) = row_of(queue) else { return 0 };
    let limit = row.entry.parameters.iter().find(|parameter| parameter.name == "limit");
    let memory = row.entry.parameters.iter().any(|parameter| parameter.name == "memory_limit");
    if memory {
        // The bytes of packets are less than the memory that they occupy.
        return u128::from(match values.amount("memory_limit") {
            0 => jostle_link::queue::CAKE_MEMORY_MAX_BYTES,
            limit => limit,
        });
    }
    match limit.map(|parameter| parameter.kind) {
        Some(ParameterType::Limit { .. }) => u128::from(values.limit("limit").full_bytes()),
        Some(ParameterType::Packets { .. } | ParameterType::Integer { .. }) => {
            // Each one may be a socket buffer of many packets.
            let buffers = row.entry.parameters.iter().any(|one| one.name == "gro_max_size");
            let each = if buffers { values.u32("gro_max_size") } else { FULL_PACKET_BYTES };
            u128::from(values.amount("limit")) * u128::from(each)
        }
        _ => 0,
    }
}
