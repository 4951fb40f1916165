//! Validation of links.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use jostle_link::queue::{MAX_QUANTUM_BYTES, MIN_QUANTUM_BYTES, MOST_BANDS};
use jostle_link::{Error, capacity, delay, loss, registry};
use jostle_registry::RegistryEntry;
use jostle_units::LinkId;

use super::algorithms::parameters;
use super::{
    MAX_BPS, MAX_BYTES, MAX_DSCP, MAX_NS, SpecError, SpecPath, distinct, faults, steps, within,
};
use crate::link_builder::PRIO;
use crate::{
    AckThinningSpec, AutoregressiveSpec, CapacitySpec, ClassSpec, DelaySpec, FlowSpec, FramesSpec,
    FramingSpec, LinkPart, LinkSpec, LossStep, OutageSpec, Quantile, QuickStartSpec, RunSpec,
};

/// Values that `tc` accepts for CAKE's overhead and smallest size.
const OVERHEADS_BYTES: RangeInclusive<i32> = -64..=256;
const MAX_MPU_BYTES: u32 = 256;
/// Maximum number of packets in a frame: the size of a Block Ack of 802.11be.
const MAX_FRAME_PACKETS: u32 = 1024;
/// Maximum number of ACKs that one ACK replaces: a window of a million packets needs a thousand
/// ACKs.
const MAX_THINNED_ACKS: u32 = 1024;
/// Maximum delay of an ACK. With more, the sender's timer would expire.
const MAX_HOLD_NS: u64 = 200_000_000;
/// Minimum correlation time of jitter, other than 0.
const MIN_CORRELATION_NS: u64 = registry::SHORTEST_PERIOD.as_ns();

pub(super) fn check(at: SpecPath<'_>, link: &LinkSpec) -> Result<(), SpecError> {
    check_capacity(format_args!("{at}.capacity"), &link.capacity)?;
    check_queue(format_args!("{at}.queue"), &link.queue)?;
    if let Some(classes) = &link.classes {
        check_classes(at, &link.queue, classes)?;
    }
    if let Some(framing) = &link.framing {
        check_framing(format_args!("{at}.framing"), link, framing)?;
    }
    check_delay(format_args!("{at}.delay"), &link.delay)?;
    if let Some(part) = &link.loss {
        check_loss(format_args!("{at}.loss"), part)?;
    }
    if !link.loss_steps.is_empty() {
        check_loss_steps(format_args!("{at}.loss_steps"), &link.loss_steps)?;
    }
    if let Some(AckThinningSpec { most, hold_ns }) = link.ack_thinning {
        within(format_args!("{at}.ack_thinning.most"), most, 1..=MAX_THINNED_ACKS)?;
        within(format_args!("{at}.ack_thinning.hold_ns"), hold_ns, 1..=MAX_HOLD_NS)?;
    }
    faults::check(at, link)?;
    if let Some(frames) = &link.frames {
        check_frames(format_args!("{at}.frames"), frames)?;
    }
    if let Some(outages) = &link.outages {
        check_outages(format_args!("{at}.outages"), outages)?;
    }
    if let Some(QuickStartSpec { allowance_bps, interval_ns }) = link.quick_start {
        within(format_args!("{at}.quick_start.allowance_bps"), allowance_bps, 1..=MAX_BPS)?;
        within(format_args!("{at}.quick_start.interval_ns"), interval_ns, 1..=MAX_NS)?;
    }
    Ok(())
}

fn check_queue(at: SpecPath<'_>, part: &LinkPart) -> Result<(), SpecError> {
    let row = registry::queue::<()>(&part.kind).map_err(|error| unknown(at, error))?;
    let resolved = row.resolve(&part.parameters);
    resolved.map(|_| ()).map_err(|source| SpecError::Parameter { at: at.to_string(), source })
}

/// Validates the classes without their flows.
fn check_classes(
    at: SpecPath<'_>,
    queue: &LinkPart,
    classes: &[ClassSpec],
) -> Result<(), SpecError> {
    let list = format_args!("{at}.classes");
    if !is_classful(queue) {
        let given = format!("set for the queue `{}`", queue.kind);
        return Err(SpecError::unfit(list, given, "a classful queue, such as drr, or no classes"));
    }
    if classes.is_empty() {
        return Err(SpecError::unfit(list, "empty", "at least one class, or no classes"));
    }
    if queue.kind == PRIO {
        let bands = classes.len() as u64;
        within(format_args!("{list} (number)"), bands, 2..=MOST_BANDS as u64)?;
    }
    distinct(list, classes.iter().map(|class| class.name.as_str()))?;
    let mut codepoints = BTreeSet::new();
    for (i, class) in classes.iter().enumerate() {
        let at = format_args!("{list}[{i}]");
        let quanta = MIN_QUANTUM_BYTES..=MAX_QUANTUM_BYTES;
        within(format_args!("{at}.quantum_bytes"), class.quantum_bytes, quanta)?;
        for dscp in &class.dscp {
            let at = format_args!("{at}.dscp");
            within(at, *dscp, 0..=MAX_DSCP)?;
            if !codepoints.insert(*dscp) {
                return Err(SpecError::unfit(at, dscp, "codepoints that are of no other class"));
            }
        }
        check_queue(format_args!("{at}.queue"), &class.queue)?;
        if is_classful(&class.queue) {
            let given = format!("`{}`", class.queue.kind);
            let expected = "a queue without classes";
            return Err(SpecError::unfit(format_args!("{at}.queue.kind"), given, expected));
        }
    }
    Ok(())
}

fn is_classful(queue: &LinkPart) -> bool {
    registry::queue::<()>(&queue.kind).is_ok_and(|row| row.entry.class == "classful")
}

/// Checks that every flow that crosses the link belongs to a class, and that no flow belongs to two.
pub(super) fn check_members(
    at: SpecPath<'_>,
    position: LinkId,
    spec: &RunSpec,
) -> Result<(), SpecError> {
    let Some(classes) = &spec.links[position.index()].classes else { return Ok(()) };
    let mut class_of = vec![None; spec.flows.len()];
    for (i, class) in classes.iter().enumerate() {
        let at = format_args!("{at}.classes[{i}].flows");
        for flow in &class.flows {
            let Some(place) = class_of.get_mut(flow.index()) else {
                let expected = format!("positions of {} flows", spec.flows.len());
                return Err(SpecError::unfit(at, flow, expected));
            };
            if place.replace(i).is_some() {
                return Err(SpecError::unfit(at, flow, "flows that are of no other class"));
            }
        }
    }
    let stray =
        |(flow, class): &(&FlowSpec, &Option<usize>)| class.is_none() && flow.crosses(position);
    match spec.flows.iter().zip(&class_of).find(stray) {
        None => Ok(()),
        Some((flow, _)) => Err(SpecError::unfit(
            format_args!("{at}.classes"),
            format!("without the flow `{}`", flow.name),
            "a class for every flow that crosses the link",
        )),
    }
}

fn check_framing(
    at: SpecPath<'_>,
    link: &LinkSpec,
    framing: &FramingSpec,
) -> Result<(), SpecError> {
    if !OVERHEADS_BYTES.contains(&framing.overhead_bytes) {
        let at = format_args!("{at}.overhead_bytes");
        return Err(SpecError::unfit(at, framing.overhead_bytes, "-64 to 256"));
    }
    within(format_args!("{at}.mpu_bytes"), framing.mpu_bytes, 0..=MAX_MPU_BYTES)?;
    if link.grants.is_some() {
        return Err(SpecError::unfit(at, "there with `grants`", "one of the two"));
    }
    Ok(())
}

fn check_loss(at: SpecPath<'_>, part: &LinkPart) -> Result<(), SpecError> {
    let row = registry::loss(&part.kind).map_err(|error| unknown(at, error))?;
    parameters(at, &row.entry, &part.parameters)
}

fn check_loss_steps(at: SpecPath<'_>, list: &[LossStep]) -> Result<(), SpecError> {
    steps(at, list.iter().map(|step| step.at_ns))?;
    for (i, step) in list.iter().enumerate() {
        if !(0.0..=1.0).contains(&step.probability) {
            let at = format_args!("{at}[{i}].probability");
            return Err(SpecError::unfit(at, step.probability, "0 to 1"));
        }
    }
    Ok(())
}

fn check_frames(at: SpecPath<'_>, spec: &FramesSpec) -> Result<(), SpecError> {
    within(format_args!("{at}.packets"), spec.packets, 1..=MAX_FRAME_PACKETS)?;
    within(format_args!("{at}.bytes"), spec.bytes, 1..=MAX_BYTES)?;
    quantiles(format_args!("{at}.contention"), &spec.contention)
}

fn unknown(at: SpecPath<'_>, error: Error) -> SpecError {
    match error {
        Error::Unknown { given, known, .. } => {
            SpecError::unknown(format_args!("{at}.kind"), &given, &known)
        }
        other => SpecError::unfit(at, "this", other.to_string()),
    }
}

/// Checks a field that is a parameter of a registry entry.
fn parameter(
    at: SpecPath<'_>,
    row: &RegistryEntry,
    name: &str,
    given: u64,
) -> Result<(), SpecError> {
    let (min, max) = row.range(name).unwrap_or((0, i64::MAX));
    within(at, given, min.unsigned_abs()..=max.unsigned_abs())
}

fn check_capacity(at: SpecPath<'_>, spec: &CapacitySpec) -> Result<(), SpecError> {
    match spec {
        CapacitySpec::Constant { rate_bps } => {
            parameter(format_args!("{at}.rate_bps"), &capacity::CONSTANT, "rate", *rate_bps)
        }
        CapacitySpec::Steps { steps: list } => {
            let at = format_args!("{at}.steps");
            steps(at, list.iter().map(|step| step.at_ns))?;
            for (i, step) in list.iter().enumerate() {
                within(format_args!("{at}[{i}].rate_bps"), step.rate_bps, 0..=MAX_BPS)?;
            }
            if list.iter().all(|step| step.rate_bps == 0) {
                return Err(SpecError::unfit(at, "0 bit/s throughout", "a step that sends"));
            }
            Ok(())
        }
        CapacitySpec::Trace { opportunities_ms, opportunity_bytes } => {
            let (row, size) = (&capacity::TRACE, u64::from(*opportunity_bytes));
            parameter(format_args!("{at}.opportunity_bytes"), row, "opportunity", size)?;
            trace(format_args!("{at}.opportunities_ms"), opportunities_ms)?;
            within(format_args!("{at} (mean rate in bit/s)"), spec.bounds_bps().1, 1..=MAX_BPS)
        }
        CapacitySpec::Autoregressive(spec) => check_autoregressive(at, spec),
        // See `tunnels::check_links`.
        CapacitySpec::Tunnel { .. } => Ok(()),
    }
}

fn check_autoregressive(at: SpecPath<'_>, spec: &AutoregressiveSpec) -> Result<(), SpecError> {
    let row = &capacity::AUTOREGRESSIVE;
    parameter(format_args!("{at}.mean_bps"), row, "mean", spec.mean_bps)?;
    parameter(format_args!("{at}.deviation_bps"), row, "deviation", spec.deviation_bps)?;
    parameter(format_args!("{at}.correlation_ns"), row, "correlation", spec.correlation_ns)?;
    parameter(format_args!("{at}.step_ns"), row, "step", spec.step_ns)?;
    parameter(format_args!("{at}.min_bps"), row, "min", spec.min_bps)?;
    parameter(format_args!("{at}.max_bps"), row, "max", spec.max_bps)?;
    within(format_args!("{at}.min_bps"), spec.min_bps, 0..=spec.max_bps)
}

fn trace(at: SpecPath<'_>, opportunities_ms: &[u32]) -> Result<(), SpecError> {
    // In Mahimahi the last line is the period after which the trace repeats.
    if opportunities_ms.last().is_none_or(|last| *last == 0) {
        let expected = "at least one opportunity after 0 ms, the end of the trace's period";
        return Err(SpecError::unfit(at, "without length", expected));
    }
    match opportunities_ms.iter().zip(&opportunities_ms[1..]).position(|(a, b)| a > b) {
        None => Ok(()),
        Some(i) => Err(SpecError::unfit(
            format_args!("{at}[{}]", i + 1),
            opportunities_ms[i + 1],
            format!("at least {}, the time of the opportunity before it", opportunities_ms[i]),
        )),
    }
}

fn check_delay(at: SpecPath<'_>, spec: &DelaySpec) -> Result<(), SpecError> {
    let list = format_args!("{at}.steps");
    steps(list, spec.steps.iter().map(|step| step.at_ns))?;
    for (i, step) in spec.steps.iter().enumerate() {
        parameter(format_args!("{list}[{i}].delay_ns"), &delay::CONSTANT, "delay", step.delay_ns)?;
    }
    let Some(jitter) = &spec.jitter else { return Ok(()) };
    quantiles(format_args!("{at}.jitter.quantiles"), &jitter.quantiles)?;
    let at = format_args!("{at}.jitter.correlation_ns");
    parameter(at, &delay::JITTER, "correlation", jitter.correlation_ns)?;
    match jitter.correlation_ns {
        0 => Ok(()),
        correlation_ns => within(at, correlation_ns, MIN_CORRELATION_NS..=MAX_NS),
    }
}

/// Checks that a quantile function covers all probabilities.
fn quantiles(at: SpecPath<'_>, points: &[Quantile]) -> Result<(), SpecError> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Err(SpecError::unfit(at, "empty", "points from probability 0 to 1"));
    };
    if first.probability != 0.0 || last.probability != 1.0 {
        let given =
            format!("points from probability {} to {}", first.probability, last.probability);
        return Err(SpecError::unfit(at, given, "points from probability 0 to 1"));
    }
    for (i, pair) in points.windows(2).enumerate() {
        let rises = pair[0].probability < pair[1].probability;
        if !rises || pair[0].value_ns > pair[1].value_ns {
            return Err(SpecError::unfit(
                format_args!("{at}[{}]", i + 1),
                format!("{} ns at probability {}", pair[1].value_ns, pair[1].probability),
                format!(
                    "at least {} ns at a probability above {}, after the point before it",
                    pair[0].value_ns, pair[0].probability
                ),
            ));
        }
    }
    within(format_args!("{at}[{}].value_ns", points.len() - 1), last.value_ns, 0..=MAX_NS)
}

fn check_outages(at: SpecPath<'_>, spec: &OutageSpec) -> Result<(), SpecError> {
    let interval_at = format_args!("{at}.mean_interval_ns");
    parameter(interval_at, &loss::OUTAGES, "mean_interval", spec.mean_interval_ns)?;
    quantiles(format_args!("{at}.durations"), &spec.durations)
}
