//! Validation of flows that share a connection, each of which sends data in one direction.

use jostle_controllers::registry;

use super::{SpecError, SpecPath};
use crate::{FlowSpec, RouteSpec, RunSpec, SourceSpec, Transport};

/// Validates the connection that the flow at `position` shares with an earlier one. `at` is its path.
pub(super) fn check(at: SpecPath<'_>, position: usize, spec: &RunSpec) -> Result<(), SpecError> {
    let flow = &spec.flows[position];
    let Some(of) = flow.connection_of else { return Ok(()) };
    let place = format_args!("{at}.connection_of");
    let other = spec.flows.iter().take(position).nth(of.index());
    let Some(other) = other.filter(|other| other.connection_of.is_none()) else {
        let expected = "the position of a flow before this one that has its own connection";
        return Err(SpecError::unfit(place, of, expected));
    };
    let shares = |it: &FlowSpec| it.connection_of == Some(of);
    if spec.flows[..position].iter().any(shares) {
        let expected = "the position of a flow whose connection no other flow shares";
        return Err(SpecError::unfit(place, of, expected));
    }
    for (position, end) in [(of.index(), other), (position, flow)] {
        supported(position, end, spec)?;
    }
    feedback(format_args!("{at}.controller"), flow, other)?;
    mirrored(at, flow, other)
}

/// Checks that a flow has none of the properties that only connections with data in one direction have.
fn supported(position: usize, flow: &FlowSpec, spec: &RunSpec) -> Result<(), SpecError> {
    let FlowSpec { transport, source, .. } = flow;
    let relayed = spec.continuations()[position].is_some() || source.relays().is_some();
    let refusals = [
        ("transport", *transport != Transport::Tcp, "`tcp`: only TCP connections are shared"),
        ("source", relayed, "another one: a proxy forwards the data of one direction"),
        (
            "source",
            matches!(source, SourceSpec::Web(_) | SourceSpec::Video(_)),
            "another one: the receiver sends requests over the same connection",
        ),
        ("arrivals", flow.arrivals.is_some(), "absent: the flow has many connections"),
        ("receiver", flow.receiver.is_some(), "absent: its ACKs are sent with data"),
        ("gro", flow.gro, "false: segments with data and ACKs are not merged"),
        ("nic_rate_bps", flow.nic_rate_bps.is_some(), "absent: ACKs do not pass the network card"),
        ("memory", flow.memory.is_some(), "absent: a peer cache learns from senders that connect"),
    ];
    match refusals.iter().find(|(_, applies, _)| *applies) {
        None => Ok(()),
        Some((key, _, expected)) => {
            let at = format_args!("flows[{position}].{key}");
            Err(SpecError::unfit(at, "what it is in a shared connection", *expected))
        }
    }
}

/// Checks that a flow has the route of the other in the opposite direction, and the properties of
/// their connection and hosts.
fn mirrored(at: SpecPath<'_>, flow: &FlowSpec, other: &FlowSpec) -> Result<(), SpecError> {
    let swapped = |it: &RouteSpec| RouteSpec {
        at_ns: it.at_ns,
        path: it.reverse_path.clone(),
        reverse_path: it.path.clone(),
    };
    let routes: Vec<_> = other.routes.iter().map(swapped).collect();
    let differences = [
        ("path", flow.path != other.reverse_path),
        ("reverse_path", flow.reverse_path != other.path),
        ("routes", flow.routes != routes),
        ("base_delay_ns", flow.base_delay_ns != other.base_delay_ns),
        ("sender_host", flow.sender_host != other.receiver_host),
        ("receiver_host", flow.receiver_host != other.sender_host),
        ("mtu_bytes", flow.mtu_bytes != other.mtu_bytes),
        ("dscp", flow.dscp != other.dscp),
        ("ecn", flow.ecn != other.ecn),
        ("linux", flow.linux != other.linux),
        ("timers", flow.timers != other.timers),
    ];
    match differences.iter().find(|(_, differs)| *differs) {
        None => Ok(()),
        Some((key, _)) => {
            let expected = format!("as that of `{}`, in the opposite direction", other.name);
            Err(SpecError::unfit(format_args!("{at}.{key}"), "another one", expected))
        }
    }
}

/// Checks that both ends give the same ECN feedback, which the controller of each end determines.
fn feedback(at: SpecPath<'_>, flow: &FlowSpec, other: &FlowSpec) -> Result<(), SpecError> {
    let (own, others) = (&flow.controller.name, &other.controller.name);
    let needed = |name: &str| registry::controller(name).map(|row| row.required_ecn_feedback());
    let (Some(one), Some(another)) = (needed(own), needed(others)) else { return Ok(()) };
    if one == another {
        return Ok(());
    }
    let expected = format!("`{others}`, or one that needs the same ECN feedback");
    Err(SpecError::unfit(at, format_args!("\"{own}\""), expected))
}
