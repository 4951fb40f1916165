//! What a run may ask of the machine: memory for what it records and for packets on their way, and
//! work that nobody can interrupt. A few bytes of specification can ask for more than there is.
//!
//! Each bound is far beyond what has been simulated with sense, and each estimate is from above: a
//! run may turn out to need less, never much more.

use std::collections::BTreeMap;

use jostle_catalogue::{Kind, Values};
use jostle_path::registry;
use jostle_units::{FULL_PACKET_BYTES, LINK_HEADER_BYTES, mss_of};

use super::{MAX_NS, Place, SpecError, link, within};
use crate::room::MAX_ACK_ROWS;
use crate::{
    CapacitySpec, FlowSpec, JitterSpec, LinkPart, LinkSpec, OutageSpec, ReceiverSpec, RunSpec,
    SourceSpec, TraceLevel,
};

/// Most phases, links and flows: what a run of them leaves behind is looked at by people.
const MAX_PHASES: usize = 1_000;
const MAX_LINKS: usize = 100_000;
const MAX_FLOWS: usize = 100_000;
/// Most rows of the series. A flow's row has 132 bytes, a link's 400 while the run lasts.
const MAX_ROWS: u64 = 10_000_000;
/// Most distributions that are put together from segments to phases when a run has ended.
const MAX_MERGES: u64 = 2_000_000;
/// Most packets that are on their way, wait or are kept by a sender at the same time; one takes
/// some 200 bytes.
const MAX_PACKETS: u64 = 10_000_000;
/// Most outages of a link in a run. The simulator draws them in portions and looks up in between;
/// the kernel has them all beforehand, drawn in half a second.
const MAX_OUTAGES: u64 = 10_000_000;
/// Most points of a link's jitter in a run. The simulator draws them in portions and looks up in
/// between; a run that has all of them takes minutes for it.
const MAX_JITTER_POINTS: u64 = 10_000_000_000;
/// Points of jitter in a correlation time.
const JITTER_GRID: u64 = 16;
/// Most random steps of a link's rate in a run: after a time without packets they are drawn at once,
/// in half a second.
const MAX_RATE_STEPS: u64 = 10_000_000;
/// Most updates of a queue's probability in a run. On a link that stands still they are made up for
/// in portions, too; all of them take some seconds.
const MAX_UPDATES: u64 = 1_000_000_000;

/// Checks lengths of lists, before anything goes through them.
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

/// Checks what a spec asks for whose values are sound one by one.
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

fn parts(spec: &RunSpec) -> u64 {
    (spec.flows.len() + spec.links.len()) as u64
}

fn check_series(spec: &RunSpec) -> Result<(), SpecError> {
    let (bins, parts) = (spec.duration_ns.div_ceil(spec.interval_ns), parts(spec));
    if bins.saturating_mul(parts) <= MAX_ROWS {
        return Ok(());
    }
    let expected = format!(
        "longer bins: at most {MAX_ROWS} rows, one per bin and each of {parts} flows and links"
    );
    Err(SpecError::unfit("interval_ns", spec.interval_ns, expected))
}

/// A phase's distributions are put together from those of the segments between all boundaries.
fn check_phases(spec: &RunSpec) -> Result<(), SpecError> {
    let mut cuts: Vec<_> = spec.phases.iter().flat_map(|p| [p.from_ns, p.to_ns]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let position = |ns| cuts.partition_point(|cut| *cut < ns) as u64;
    let segments: u64 = spec.phases.iter().map(|p| position(p.to_ns) - position(p.from_ns)).sum();
    let merges = segments.saturating_mul(parts(spec));
    if merges <= MAX_MERGES {
        return Ok(());
    }
    let given = format!("{} that overlap in {segments} segments", spec.phases.len());
    let most = MAX_MERGES / parts(spec);
    Err(SpecError::unfit("phases", given, format!("at most {most} segments in all phases")))
}

fn check_link(at: Place<'_>, link: &LinkSpec, duration_ns: u64) -> Result<(), SpecError> {
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
    let updates = |row: &registry::QueueRow<()>| {
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

/// Checks that what happens `times` in each `period_ns` happens at most `most` times in a run.
fn rarely(
    at: Place<'_>,
    period_ns: u64,
    times: u64,
    duration_ns: u64,
    most: u64,
) -> Result<(), SpecError> {
    let least_ns = u128::from(duration_ns) * u128::from(times) / u128::from(most);
    within(at, period_ns, u64::try_from(least_ns).unwrap_or(MAX_NS)..=MAX_NS)
}

/// A sender of pings remembers those that it waits for.
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

/// An ACK tells of a packet at least, and packets come no faster than the slowest link of the way
/// carries full ones. (Of smaller ones there may be more: the recorder counts, too.)
fn check_acks(spec: &RunSpec) -> Result<(), SpecError> {
    if spec.trace == TraceLevel::None {
        return Ok(());
    }
    let mut slowest = BTreeMap::new();
    for flow in spec.flows.iter().filter(|flow| !sends_datagrams(flow)) {
        let rates = flow.path.iter().map(|link| (peak_bps(spec, *link), *link));
        if let Some((rate_bps, link)) = rates.min() {
            slowest.insert(link, rate_bps);
        }
    }
    let bits_per_s: u128 = slowest.values().map(|bps| u128::from(*bps)).sum();
    let bits = bits_per_s * u128::from(spec.duration_ns) / 1_000_000_000;
    let rows = bits / (8 * smallest_packet_bytes(spec)) * acks_of_one(spec);
    if rows <= u128::from(MAX_ACK_ROWS) {
        return Ok(());
    }
    let expected =
        format!("`none` where there may be {rows} ACKs: at most {MAX_ACK_ROWS} are kept");
    Err(SpecError::unfit("trace", "`acks`", expected))
}

/// Packets that exist at once: no more than windows let out, than queues and delays hold, or than
/// can be sent.
fn check_packets(spec: &RunSpec) -> Result<(), SpecError> {
    let senders = || spec.flows.iter().filter(|flow| !sends_datagrams(flow));
    let windows = senders()
        .map(|flow| match (&flow.arrivals, &flow.receiver) {
            // Nobody knows how many there are at once; a window of what is acknowledged before it
            // comes bounds nothing.
            (Some(_), _) | (_, Some(ReceiverSpec::OptimisticAcks { .. })) => u128::MAX,
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
    let longest_way_ns = spec.flows.iter().map(|flow| flow.access_delay_ns).max().unwrap_or(0);
    let mut held = 0u128;
    let mut sent: u128 =
        senders().map(|flow| u128::from(flow.initial_window_packets)).sum::<u128>();
    for link in &spec.links {
        let bytes_in =
            |ns: u64| u128::from(link::peak_bps(&link.capacity)) * u128::from(ns) / 8_000_000_000;
        let delay_ns = longest_delay_ns(link).saturating_add(longest_way_ns);
        held += packets(limit_bytes(link, spec.flows.len()) + bytes_in(delay_ns));
        // A sender doubles its window for what arrives; those that pace by a rate find it so.
        sent += packets(3 * bytes_in(spec.duration_ns));
    }
    // Nothing but its window holds back what leaves a sender that has its proxy beside it.
    let beside = senders().filter(|flow| flow.path.is_empty());
    let bursts: u128 = beside.map(|flow| packets(u128::from(flow.receive_window_bytes))).sum();
    (held, sent) = (held + bursts, sent + bursts);
    let most = windows.min(held).min(sent).saturating_mul(acks_of_one(spec));
    if most <= u128::from(MAX_PACKETS) {
        return Ok(());
    }
    let expected = format!("links and flows that hold at most {MAX_PACKETS} packets at once");
    Err(SpecError::unfit("links", format!("such that there may be {most} packets"), expected))
}

/// Size on the wire of the smallest of the flows' full packets.
fn smallest_packet_bytes(spec: &RunSpec) -> u128 {
    let senders = spec.flows.iter().filter(|flow| !sends_datagrams(flow));
    let sizes = senders.map(|flow| u128::from(flow.mtu_bytes + LINK_HEADER_BYTES));
    sizes.min().unwrap_or_else(|| u128::from(FULL_PACKET_BYTES))
}

/// Most ACKs that a receiver sends in place of one.
fn acks_of_one(spec: &RunSpec) -> u128 {
    let acks = spec.flows.iter().map(|flow| match flow.receiver {
        Some(ReceiverSpec::DividedAcks { pieces }) => u128::from(pieces),
        Some(ReceiverSpec::RepeatedAcks { copies }) => u128::from(copies) + 1,
        _ => 1,
    });
    acks.max().unwrap_or(1)
}

fn sends_datagrams(flow: &FlowSpec) -> bool {
    matches!(flow.source, SourceSpec::Ping { .. } | SourceSpec::Cbr(_))
}

fn peak_bps(spec: &RunSpec, link: u32) -> u64 {
    spec.links.get(link as usize).map_or(0, |link| link::peak_bps(&link.capacity))
}

fn longest_delay_ns(link: &LinkSpec) -> u64 {
    let base_ns = link.delay.steps.iter().map(|step| step.delay_ns).max().unwrap_or(0);
    let jitter = link.delay.jitter.as_ref().and_then(|jitter| jitter.quantiles.last());
    base_ns.saturating_add(jitter.map_or(0, |last| last.value_ns))
}

fn row_of(queue: &LinkPart) -> Option<(&'static registry::QueueRow<()>, Values)> {
    let row = registry::queue::<()>(&queue.kind).ok()?;
    Some((row, row.resolve(&queue.parameters).ok()?))
}

/// All queues in which packets of a link wait, and where they stand in it.
fn queues(link: &LinkSpec) -> Vec<(String, &LinkPart)> {
    let Some(classes) = &link.classes else { return vec![("queue".to_owned(), &link.queue)] };
    let place = |i| format!("classes[{i}].queue");
    classes.iter().enumerate().map(|(i, class)| (place(i), &class.queue)).collect()
}

/// Most that a link's queues hold.
fn limit_bytes(link: &LinkSpec, flows: usize) -> u128 {
    let all: u128 = queues(link).iter().map(|(_, queue)| queue_limit_bytes(queue)).sum();
    // Without classes every flow has a queue of its own.
    let classful = row_of(&link.queue).is_some_and(|(row, _)| row.entry.class == "classful");
    if classful && link.classes.is_none() { all * flows as u128 } else { all }
}

fn queue_limit_bytes(queue: &LinkPart) -> u128 {
    let Some((row, values)) = row_of(queue) else { return 0 };
    let limit = row.entry.parameters.iter().find(|parameter| parameter.name == "limit");
    match limit.map(|parameter| parameter.kind) {
        Some(Kind::Limit { .. }) => u128::from(values.limit("limit").full_bytes()),
        Some(Kind::Packets { .. } | Kind::Integer { .. }) => {
            // Each may be a socket buffer of many packets.
            let buffers = row.entry.parameters.iter().any(|one| one.name == "gro_max_size");
            let each = if buffers { values.u32("gro_max_size") } else { FULL_PACKET_BYTES };
            u128::from(values.amount("limit")) * u128::from(each)
        }
        _ => 0,
    }
}
