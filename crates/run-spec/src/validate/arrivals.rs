//! Validation of multi-connection flows and their arrivals.

use super::{MAX_BYTES, MAX_NS, SpecError, SpecPath, within};
use crate::arrivals::rate_per_s;
use crate::{ArrivalsSpec, FlowSpec, Quantity, RunSpec, SourceSpec, Transport};
use jostle_units::LinkId;

/// Maximum number of connections of a run, and of a list: their numbers have 20 bits.
pub(super) const MAX_CONNECTIONS: u64 = 1_000_000;
/// Maximum load of a link: ten times its rate.
const MAX_SHARE: f64 = 10.0;
/// Maximum arrival rate, in connections per second.
const MAX_RATE_PER_S: f64 = 1e9;

pub(super) fn check(at: SpecPath<'_>, flow: &FlowSpec, spec: &RunSpec) -> Result<(), SpecError> {
    let Some(arrivals) = &flow.arrivals else { return Ok(()) };
    fits(at, flow, spec)?;
    let at = format_args!("{at}.arrivals");
    match arrivals {
        ArrivalsSpec::Poisson { rate_per_s } => {
            if !(*rate_per_s > 0.0 && *rate_per_s <= MAX_RATE_PER_S) {
                let expected = format!("more than 0, at most {MAX_RATE_PER_S:e} per second");
                return Err(SpecError::unfit(
                    format_args!("{at}.rate_per_s"),
                    rate_per_s,
                    expected,
                ));
            }
            Ok(())
        }
        ArrivalsSpec::Load { share, link } => load(at, *share, *link, flow, spec),
        ArrivalsSpec::Listed { at_ns, bytes } => listed(at, at_ns, bytes.as_deref()),
    }
}

/// Checks the other properties of the flow.
fn fits(at: SpecPath<'_>, flow: &FlowSpec, spec: &RunSpec) -> Result<(), SpecError> {
    let place = format_args!("{at}.arrivals");
    let there = |expected: &str| Err(SpecError::unfit(place, "there", expected));
    let ends = match &flow.source {
        SourceSpec::Fixed { .. } => true,
        SourceSpec::RequestResponse { count, .. } => count.is_some(),
        _ => false,
    };
    if !ends {
        return there("absent: connections that come have to end, by a size or a count");
    }
    if flow.transport == Transport::Udp {
        return there("absent: only connections come and go");
    }
    if flow.after.is_some() {
        return there("absent if `after` is set");
    }
    if flow.nic_rate_bps.is_some() {
        return there(
            "absent if the sender has a `nic_rate`: each connection would have a separate network card",
        );
    }
    if spec.capture.is_some() {
        return there("absent where packets are captured");
    }
    Ok(())
}

fn load(
    at: SpecPath<'_>,
    share: f64,
    link: LinkId,
    flow: &FlowSpec,
    spec: &RunSpec,
) -> Result<(), SpecError> {
    if !(share > 0.0 && share <= MAX_SHARE) {
        let expected = format!("more than 0, at most {MAX_SHARE}");
        return Err(SpecError::unfit(format_args!("{at}.share"), share, expected));
    }
    let place = format_args!("{at}.link");
    if !flow.path.contains(&link) {
        return Err(SpecError::unfit(place, link, "a link of the flow's path"));
    }
    if spec.links[link.index()].constant_service().is_none() {
        let expected = "a link of a constant rate: a load is a share of it";
        return Err(SpecError::unfit(place, link, expected));
    }
    if rate_per_s(flow, spec).is_none() {
        let expected = "a rate of arrivals, or sizes and counts with a finite mean (a Pareto \
                        distribution with a shape above 1, or a max)";
        return Err(SpecError::unfit(at, "a load", expected));
    }
    Ok(())
}

fn listed(at: SpecPath<'_>, at_ns: &[u64], bytes: Option<&[u64]>) -> Result<(), SpecError> {
    let place = format_args!("{at}.at_ns");
    within(place, at_ns.len() as u64, 1..=MAX_CONNECTIONS)?;
    for (i, pair) in at_ns.windows(2).enumerate() {
        if pair[1] < pair[0] {
            let expected = "times that never decrease";
            return Err(SpecError::unfit(format_args!("{place}[{}]", i + 1), pair[1], expected));
        }
    }
    within(place, at_ns[at_ns.len() - 1], 0..=MAX_NS)?;
    let Some(bytes) = bytes else { return Ok(()) };
    if bytes.len() != at_ns.len() {
        let expected = format!("as many as there are times, {}", at_ns.len());
        return Err(SpecError::unfit(
            format_args!("{at}.bytes"),
            format!("{} sizes", bytes.len()),
            expected,
        ));
    }
    for (i, size) in bytes.iter().enumerate() {
        within(format_args!("{at}.bytes[{i}]"), *size, 1..=MAX_BYTES)?;
    }
    Ok(())
}

/// Checks the expected number of connections of a run and of their transfers.
pub(super) fn check_number(spec: &RunSpec) -> Result<(), SpecError> {
    let (mut connections, mut transfers) = (0.0, 0.0);
    for (i, flow) in spec.flows.iter().enumerate() {
        let until_ns = flow.stop_ns.unwrap_or(spec.duration_ns).min(spec.duration_ns);
        let lasting_s = until_ns.saturating_sub(flow.start_ns) as f64 / 1e9;
        let come = match &flow.arrivals {
            None => continue,
            Some(ArrivalsSpec::Listed { at_ns, .. }) => at_ns.len() as f64,
            Some(_) => rate_per_s(flow, spec).unwrap_or(0.0) * lasting_s,
        };
        let each = match &flow.source {
            SourceSpec::RequestResponse { count, .. } => {
                count.as_ref().and_then(Quantity::mean).unwrap_or(f64::INFINITY)
            }
            _ => 1.0,
        };
        connections += come;
        transfers += come * each;
        let most = MAX_CONNECTIONS as f64;
        if connections > most || transfers > 5.0 * most {
            let given = format!("{connections:.0} connections with {transfers:.0} transfers");
            let expected = format!(
                "fewer: at most {MAX_CONNECTIONS} connections in a run, and five times as many \
                 transfers"
            );
            return Err(SpecError::unfit(format_args!("flows[{i}].arrivals"), given, expected));
        }
    }
    Ok(())
}
