//! Validation of faults, of netem's habits and of grants.

use jostle_units::LinkId;

use super::{MAX_NS, SpecError, SpecPath, within};
use crate::{
    CapacitySpec, FaultSpec, FaultsSpec, GrantsSpec, LinkSpec, NumberedFaultsSpec, OccurrenceSpec,
    PacketClassSpec, RateBasedSpec, RunSpec, Transport,
};

/// Maximum rate of a link with grants, and of superframe and request interval: the kernel module
/// multiplies bits by 10⁹ in 64 bits.
const MAX_GRANTED_BPS: u64 = 10_000_000_000;
const MAX_INTERVAL_NS: u64 = 1_000_000_000;
/// Minimum length of a superframe and of a request interval. Each is an event of the simulation.
const MIN_INTERVAL_NS: u64 = 1_000_000;
/// Maximum over-estimation factor and gain, per mille.
const MAX_PER_MILLE: u64 = 10_000;
const MAX_LATENCY_NS: u64 = 60_000_000_000;
/// Maximum number of faults by number on a link.
const MAX_FAULTS: usize = 100_000;

pub(super) fn check(at: SpecPath<'_>, link: &LinkSpec) -> Result<(), SpecError> {
    if let Some(faults) = &link.faults {
        check_faults(format_args!("{at}.faults"), faults)?;
    }
    if let Some(limit) = link.netem.and_then(|netem| netem.limit_packets) {
        within(format_args!("{at}.netem.limit_packets"), limit, 1..=u64::from(u32::MAX))?;
    }
    if let Some(grants) = &link.grants {
        let at = format_args!("{at}.grants");
        if link.frames.is_some() {
            return Err(SpecError::unfit(at, "there with `frames`", "one of the two"));
        }
        let CapacitySpec::Constant { rate_bps } = link.capacity else {
            let expected = "a constant capacity, the largest rate that is granted";
            return Err(SpecError::unfit(at, "there without it", expected));
        };
        check_grants(at, grants, rate_bps)?;
    }
    Ok(())
}

fn probability(at: SpecPath<'_>, given: f64) -> Result<(), SpecError> {
    if (0.0..=1.0).contains(&given) {
        return Ok(());
    }
    Err(SpecError::unfit(at, given, "0 to 1"))
}

fn check_occurrence(at: SpecPath<'_>, spec: OccurrenceSpec) -> Result<(), SpecError> {
    probability(format_args!("{at}.probability"), spec.probability)?;
    probability(format_args!("{at}.correlation"), spec.correlation)
}

fn check_faults(at: SpecPath<'_>, spec: &FaultsSpec) -> Result<(), SpecError> {
    if let Some(duplicate) = spec.duplicate {
        check_occurrence(format_args!("{at}.duplicate"), duplicate)?;
    }
    if let Some(corrupt) = spec.corrupt {
        check_occurrence(format_args!("{at}.corrupt"), corrupt)?;
    }
    if let Some(reorder) = spec.reorder {
        check_occurrence(format_args!("{at}.reorder.occurrence"), reorder.occurrence)?;
        within(format_args!("{at}.reorder.gap"), reorder.gap, 1..=u64::from(u32::MAX))?;
        if let Some(late_ns) = reorder.late_ns {
            within(format_args!("{at}.reorder.late_ns"), late_ns, 1..=MAX_NS)?;
        }
    }
    let count: usize = spec.packets.iter().map(|rule| rule.faults.len()).sum();
    within(format_args!("{at}.packets (faults)"), count as u64, 0..=MAX_FAULTS as u64)?;
    for (i, rule) in spec.packets.iter().enumerate() {
        check_numbers(format_args!("{at}.packets[{i}].faults"), rule)?;
    }
    Ok(())
}

fn check_numbers(at: SpecPath<'_>, rule: &NumberedFaultsSpec) -> Result<(), SpecError> {
    let mut before = 0;
    for (i, it) in rule.faults.iter().enumerate() {
        if it.number <= before {
            let at = format_args!("{at}[{i}].number");
            return Err(SpecError::unfit(at, it.number, format!("more than {before}")));
        }
        before = it.number;
        if let FaultSpec::Late { by_ns } = it.fault {
            within(format_args!("{at}[{i}].fault.by_ns"), by_ns, 1..=MAX_NS)?;
        }
    }
    Ok(())
}

/// Checks that flows of faults cross the link, and that TCP's classes are asked of TCP flows.
pub(super) fn check_flows(
    at: SpecPath<'_>,
    position: LinkId,
    spec: &RunSpec,
) -> Result<(), SpecError> {
    let Some(faults) = &spec.links[position.index()].faults else { return Ok(()) };
    for (i, rule) in faults.packets.iter().enumerate() {
        let at = format_args!("{at}.faults.packets[{i}]");
        let Some(number) = rule.flow else { continue };
        let flow = spec.flows.get(number.index());
        let Some(flow) = flow.filter(|flow| flow.crosses(position)) else {
            let expected = "the position of a flow that crosses the link";
            return Err(SpecError::unfit(format_args!("{at}.flow"), number, expected));
        };
        let is_of_tcp =
            matches!(rule.class, Some(PacketClassSpec::Acks | PacketClassSpec::Handshake));
        if is_of_tcp && flow.transport != Transport::Tcp {
            let expected = "`data`, or absent: the flow is not of TCP";
            return Err(SpecError::unfit(format_args!("{at}.class"), "a class of TCP", expected));
        }
    }
    Ok(())
}

fn check_grants(at: SpecPath<'_>, spec: &GrantsSpec, rate_bps: u64) -> Result<(), SpecError> {
    within(format_args!("{at} (rate of the link in bit/s)"), rate_bps, 1..=MAX_GRANTED_BPS)?;
    let intervals = MIN_INTERVAL_NS..=MAX_INTERVAL_NS;
    within(format_args!("{at}.superframe_ns"), spec.superframe_ns, intervals.clone())?;
    within(format_args!("{at}.request_interval_ns"), spec.request_interval_ns, intervals)?;
    within(format_args!("{at}.latency_ns"), spec.latency_ns, 0..=MAX_LATENCY_NS)?;
    within(format_args!("{at}.constant_bps"), spec.constant_bps, 0..=rate_bps)?;
    within(format_args!("{at}.free_bps"), spec.free_bps, 0..=rate_bps)?;
    within(format_args!("{at}.quantum_bps"), spec.quantum_bps, 1..=rate_bps)?;
    if let Some(RateBasedSpec { over_per_mille, gain_per_mille, persistence_ns }) = spec.rate_based
    {
        let at = format_args!("{at}.rate_based");
        within(format_args!("{at}.over_per_mille"), over_per_mille, 0..=MAX_PER_MILLE)?;
        within(format_args!("{at}.gain_per_mille"), gain_per_mille, 0..=MAX_PER_MILLE)?;
        within(format_args!("{at}.persistence_ns"), persistence_ns, 1..=MAX_NS)?;
    }
    if let Some(contention) = spec.contention {
        let at = format_args!("{at}.contention");
        within(format_args!("{at}.bytes"), contention.bytes, 1..=1 << 20)?;
        probability(format_args!("{at}.collision"), contention.collision)?;
        within(format_args!("{at}.backoff_superframes"), contention.backoff_superframes, 1..=1000)?;
    }
    probability(format_args!("{at}.request_loss"), spec.request_loss)?;
    let sends = spec.constant_bps > 0
        || spec.rate_based.is_some()
        || spec.volume_based
        || spec.free_bps > 0
        || spec.contention.is_some();
    if sends {
        return Ok(());
    }
    Err(SpecError::unfit(at, "without any capacity", "at least one class of capacity"))
}
