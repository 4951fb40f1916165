//! Validation of flows.

use jostle_link::delay::CONSTANT as DELAY;
use jostle_units::{
    DATAGRAM_HEADER_BYTES, FlowId, LINK_HEADER_BYTES, LinkId, MAX_MTU_BYTES, MIN_MTU_BYTES, mss_of,
};

use super::algorithms::{controller, memory};
use super::{
    MAX_BPS, MAX_BYTES, MAX_DSCP, MAX_NS, MIN_EVERY_NS, SpecError, SpecPath, arrivals, datagrams,
    media, quantity, quic, reader, receivers, routes, tunnels, video, web, within,
};
use crate::{Algorithm, CapacitySpec, FlowSpec, RunSpec, SourceSpec, TimersSpec, Transport};

/// Maximum initial window, above any useful bandwidth-delay product.
const MAX_INITIAL_WINDOW_PACKETS: u32 = 1 << 20;

/// Maximum slack and resolution of timers: six times the coarsest clock in use (15.6 ms).
const MAX_TIMER_DELAY_NS: u64 = 100_000_000;

/// Validates a flow. `is_relayed` means that a proxy forwards its data; the proxy may be on the
/// sender's host.
pub(super) fn check(
    position: usize,
    flow: &FlowSpec,
    is_relayed: bool,
    spec: &RunSpec,
) -> Result<(), SpecError> {
    let at = format_args!("flows[{position}]");
    let may_have_no_links = is_relayed || flow.source.tunnel().is_some();
    if flow.path.is_empty() && !may_have_no_links {
        return Err(SpecError::unfit(format_args!("{at}.path"), "empty", "at least one link"));
    }
    routes::check(at, flow, is_relayed || flow.source.relays().is_some(), spec)?;
    let longest_ns = DELAY.range("delay").map_or(MAX_NS, |(_, max)| max.unsigned_abs());
    within(format_args!("{at}.base_delay_ns"), flow.base_delay_ns, 0..=longest_ns)?;
    within(format_args!("{at}.start_ns"), flow.start_ns, 0..=spec.duration_ns - 1)?;
    if let Some(stop_ns) = flow.stop_ns {
        let earliest_ns = if flow.after.is_some() { 0 } else { flow.start_ns };
        within(format_args!("{at}.stop_ns"), stop_ns, earliest_ns + 1..=MAX_NS)?;
    }
    after(format_args!("{at}.after"), position, flow.after, &spec.flows)?;
    for (key, name) in [("sender_host", &flow.sender_host), ("receiver_host", &flow.receiver_host)]
    {
        if name.as_ref().is_some_and(String::is_empty) {
            return Err(SpecError::unfit(
                format_args!("{at}.{key}"),
                "empty",
                "a name, or nothing",
            ));
        }
    }
    within(format_args!("{at}.mtu_bytes"), flow.mtu_bytes, MIN_MTU_BYTES..=MAX_MTU_BYTES)?;
    within(format_args!("{at}.dscp"), flow.dscp.unwrap_or(0), 0..=MAX_DSCP)?;
    source(format_args!("{at}.source"), &flow.source, flow.mtu_bytes - DATAGRAM_HEADER_BYTES)?;
    transport(at, flow)?;
    arrivals::check(at, flow, spec)?;
    web::fits(at, flow, spec)?;
    relay(at, position, flow, spec)?;
    receivers::check(at, flow, is_relayed || flow.source.relays().is_some())?;
    reader::check(at, flow, is_relayed, spec.duration_ns)?;
    timers(at, flow)?;
    let window = flow.initial_window_packets;
    within(format_args!("{at}.initial_window_packets"), window, 1..=MAX_INITIAL_WINDOW_PACKETS)?;
    let smallest = u64::from(mss_of(flow.mtu_bytes));
    within(
        format_args!("{at}.receive_window_bytes"),
        flow.receive_window_bytes,
        smallest..=MAX_BYTES,
    )?;
    let window_bytes = flow.initial_receive_window_bytes;
    let name = format_args!("{at}.initial_receive_window_bytes");
    within(name, window_bytes, smallest..=flow.receive_window_bytes)?;
    if let Some(rate_bps) = flow.nic_rate_bps {
        within(format_args!("{at}.nic_rate_bps"), rate_bps, 1..=MAX_BPS)?;
    }
    match flow.transport {
        Transport::Tcp => {
            controller(at, flow)?;
            memory(at, flow)?;
        }
        Transport::Udp => ungoverned(at, flow)?,
        Transport::Quic => quic::check(at, flow)?,
    }
    tunnels::check(at, flow, FlowId::at(position), spec)?;
    packets(flow, spec)
}

/// Validates the timers of a flow's hosts.
fn timers(at: SpecPath<'_>, flow: &FlowSpec) -> Result<(), SpecError> {
    let Some(TimersSpec { hz, slack_ns, resolution_ns }) = flow.timers else { return Ok(()) };
    let at = format_args!("{at}.timers");
    let is_program = flow.quic.as_ref().is_some_and(|quic| quic.implementation.is_some());
    if flow.transport == Transport::Udp || is_program {
        let expected = "absent: only senders of the simulator's TCP and QUIC have timers";
        return Err(SpecError::unfit(at, "there", expected));
    }
    if let Some(hz) = hz {
        if flow.transport != Transport::Tcp {
            let expected = "absent: QUIC does not use the kernel's ticks";
            return Err(SpecError::unfit(format_args!("{at}.hz"), hz, expected));
        }
        within(format_args!("{at}.hz"), hz, 100..=1_000)?;
    }
    within(format_args!("{at}.slack_ns"), slack_ns, 0..=MAX_TIMER_DELAY_NS)?;
    within(format_args!("{at}.resolution_ns"), resolution_ns, 0..=MAX_TIMER_DELAY_NS)
}

/// Checks that datagrams have no congestion controller and none of its options.
fn ungoverned(at: SpecPath<'_>, flow: &FlowSpec) -> Result<(), SpecError> {
    let Algorithm { name, parameters } = &flow.controller;
    if name != Algorithm::NONE || !parameters.is_empty() {
        let given = format!("`{name}` with {} parameters", parameters.len());
        let expected = format!("`{}`: datagrams have no controller", Algorithm::NONE);
        return Err(SpecError::unfit(format_args!("{at}.controller"), given, expected));
    }
    for (key, given) in [("slow_start", &flow.slow_start), ("memory", &flow.memory)] {
        if let Some(given) = given {
            let given = format!("`{}`", given.name);
            let expected = "absent: datagrams have no controller".to_owned();
            return Err(SpecError::unfit(format_args!("{at}.{key}"), given, expected));
        }
    }
    Ok(())
}

/// Checks that pings and constant bit rate sources use datagrams and no others do, and that only
/// QUIC flows have QUIC options, and TCP flows TCP options.
fn transport(at: SpecPath<'_>, flow: &FlowSpec) -> Result<(), SpecError> {
    let place = format_args!("{at}.transport");
    let datagrams = match flow.source {
        SourceSpec::Ping { .. } => Some("`udp` for pings"),
        SourceSpec::Cbr(_) => Some("`udp` for a constant rate"),
        _ => None,
    };
    match (flow.transport, datagrams) {
        (Transport::Tcp, Some(expected)) => return Err(SpecError::unfit(place, "`tcp`", expected)),
        (Transport::Quic, Some(expected)) => {
            return Err(SpecError::unfit(place, "`quic`", expected));
        }
        (Transport::Udp, None) if flow.source.tunnel().is_none() => {
            let expected = "`tcp`: only pings, constant rates and tunnels have it";
            return Err(SpecError::unfit(place, "`udp`", expected));
        }
        _ => {}
    }
    let expected = "absent: the transport is another one";
    if flow.quic.is_some() && flow.transport != Transport::Quic {
        return Err(SpecError::unfit(format_args!("{at}.quic"), "there", expected));
    }
    if flow.tcp.is_some() && flow.transport != Transport::Tcp {
        return Err(SpecError::unfit(format_args!("{at}.tcp"), "there", expected));
    }
    Ok(())
}

/// Validates a source. `most_bytes` is the maximum payload of a datagram.
fn source(at: SpecPath<'_>, source: &SourceSpec, most_bytes: u32) -> Result<(), SpecError> {
    match source {
        SourceSpec::Video(spec) => video::check(at, spec),
        SourceSpec::Web(spec) => web::check(at, spec),
        SourceSpec::Bulk => Ok(()),
        SourceSpec::Cbr(spec) => datagrams::check(at, spec, most_bytes),
        SourceSpec::Media(spec) => media::check(at, spec),
        SourceSpec::Trace(spec) => media::check_trace(at, spec),
        SourceSpec::Fixed { bytes } => {
            quantity::check(format_args!("{at}.bytes"), bytes, 1..=MAX_BYTES)
        }
        SourceSpec::OnOff { on_ns, off_ns } => {
            quantity::check(format_args!("{at}.on_ns"), on_ns, 1..=MAX_NS)?;
            quantity::check(format_args!("{at}.off_ns"), off_ns, 1..=MAX_NS)
        }
        SourceSpec::RequestResponse { bytes, think_ns, count } => {
            quantity::check(format_args!("{at}.bytes"), bytes, 1..=MAX_BYTES)?;
            quantity::check(format_args!("{at}.think_ns"), think_ns, 0..=MAX_NS)?;
            match count {
                Some(count) => quantity::check(format_args!("{at}.count"), count, 1..=u64::MAX),
                None => Ok(()),
            }
        }
        &SourceSpec::Ping { bytes, every_ns, timeout_ns } => {
            within(format_args!("{at}.bytes"), bytes, 1..=most_bytes)?;
            within(format_args!("{at}.every_ns"), every_ns, MIN_EVERY_NS..=MAX_NS)?;
            within(format_args!("{at}.timeout_ns"), timeout_ns, 1..=MAX_NS)
        }
        SourceSpec::Tunnel(_) => Ok(()),
        SourceSpec::Relay { from: _, buffer_bytes } => {
            let segment_bytes = u64::from(mss_of(most_bytes + DATAGRAM_HEADER_BYTES));
            within(format_args!("{at}.buffer_bytes"), *buffer_bytes, segment_bytes..=MAX_BYTES)
        }
    }
}

/// Checks that a relay forwards an earlier, single TCP connection over TCP, and has neither `after`
/// nor `stop_ns`.
fn relay(
    at: SpecPath<'_>,
    position: usize,
    flow: &FlowSpec,
    spec: &RunSpec,
) -> Result<(), SpecError> {
    let Some(from) = flow.source.relays() else { return Ok(()) };
    let place = format_args!("{at}.source.from");
    let Some(before) = spec.flows.iter().take(position).nth(from.index()) else {
        return Err(SpecError::unfit(place, from, "the position of a flow before this one"));
    };
    if flow.transport != Transport::Tcp || before.transport != Transport::Tcp {
        // RFC 9000 §17: "Packets … are protected"; a proxy cannot acknowledge them.
        return Err(SpecError::unfit(place, from, "a flow over TCP, to be passed on over TCP"));
    }
    if flow.mtu_bytes != before.mtu_bytes {
        let expected = format!("{}, like the flow whose data it passes on", before.mtu_bytes);
        return Err(SpecError::unfit(format_args!("{at}.mtu_bytes"), flow.mtu_bytes, expected));
    }
    let in_tunnel =
        |link: &LinkId| matches!(spec.links[link.index()].capacity, CapacitySpec::Tunnel { .. });
    if before.source.tunnel().is_some() || flow.path.iter().chain(&before.path).any(in_tunnel) {
        let expected = "a flow that no tunnel carries: what it sends is encrypted there";
        return Err(SpecError::unfit(place, from, expected));
    }
    if matches!(before.source, SourceSpec::Video(_)) {
        let expected =
            "a flow that its sender alone drives: a player asks its server from end to end";
        return Err(SpecError::unfit(place, from, expected));
    }
    if before.is_many() {
        let expected = "a flow that is one connection, not many that come";
        return Err(SpecError::unfit(place, from, expected));
    }
    let expected = "absent: it begins and ends with the flow whose data it passes on";
    let keys = [("after", flow.after.is_some()), ("stop_ns", flow.stop_ns.is_some())];
    match keys.iter().find(|(_, there)| *there) {
        None => Ok(()),
        Some((key, _)) => Err(SpecError::unfit(format_args!("{at}.{key}"), "there", expected)),
    }
}

/// Checks that `after` refers to an earlier flow, so that there is no cycle, and to a flow with an
/// end.
fn after(
    at: SpecPath<'_>,
    position: usize,
    after: Option<FlowId>,
    flows: &[FlowSpec],
) -> Result<(), SpecError> {
    let Some(after) = after else { return Ok(()) };
    let before = flows.iter().take(position).nth(after.index());
    let Some(before) = before else {
        return Err(SpecError::unfit(at, after, "the position of a flow before this one"));
    };
    if before.arrivals.is_some() {
        return Err(SpecError::unfit(at, after, "the position of a flow that is one connection"));
    }
    if !before.has_end() {
        return Err(SpecError::unfit(at, after, "the position of a flow that has an end"));
    }
    Ok(())
}

/// Checks that the number of packets fits into 32 bits.
fn packets(flow: &FlowSpec, spec: &RunSpec) -> Result<(), SpecError> {
    let every_ns = match flow.source {
        SourceSpec::Ping { every_ns, .. } => Some(every_ns),
        SourceSpec::Cbr(ref spec) => Some(datagrams::least_gap_ns(spec)),
        _ => None,
    };
    if let Some(every_ns) = every_ns {
        let longest_ns = every_ns.saturating_mul(u64::from(u32::MAX));
        return within("duration_ns", spec.duration_ns, 1..=longest_ns);
    }
    let fastest_bps =
        flow.paths().flatten().map(|link| spec.bounds_bps(*link).1).max().unwrap_or(0);
    let bits = u128::from(fastest_bps) * u128::from(spec.duration_ns) / 1_000_000_000;
    let packet_bits = u128::from(8 * (flow.mtu_bytes + LINK_HEADER_BYTES));
    let packets = bits / packet_bits;
    if packets < 1 << 32 {
        return Ok(());
    }
    let longest_s = (1u128 << 32) * packet_bits / u128::from(fastest_bps);
    Err(SpecError::unfit(
        "duration_ns",
        spec.duration_ns,
        format!(
            "at most {longest_s} s, in which `{}` can send 2³² packets at {fastest_bps} bit/s",
            flow.name
        ),
    ))
}
