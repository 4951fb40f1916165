//! Validation of QUIC flows.

use std::ops::RangeInclusive;

use jostle_congestion::EcnFeedback;
use jostle_controllers::registry;
use jostle_units::{DATAGRAM_HEADER_BYTES, MAX_MTU_BYTES, MIN_QUIC_PAYLOAD_BYTES};

use super::algorithms::{controller, memory};
use super::{MAX_BYTES, MAX_NS, SpecError, SpecPath, within};
use crate::{
    AckFrequencySpec, Algorithm, FlowSpec, LinuxRelease, QUIC_CONTROLLERS, QuicCrypto,
    QuicHandshake, QuicImplementation, QuicSpec,
};

/// Integers in QUIC frames have at most 62 bits (RFC 9000 §16); half the packets of a run are a
/// sufficient threshold.
const MAX_ACK_THRESHOLD: u32 = 1 << 20;
/// Accepted packet thresholds (RFC 9002 §6.1.1: at least 3).
const PACKET_THRESHOLDS: RangeInclusive<u32> = 3..=1 << 20;
/// Maximum number of segments per call of a socket (Linux's `UDP_MAX_SEGMENTS`).
const MAX_GSO_PACKETS: u32 = 64;
/// Maximum number of packets in an unpaced burst; no receive window holds more.
const MAX_BURST_PACKETS: u32 = 1 << 20;
/// Maximum number of open streams that a peer with the built-in implementation allows.
const MAX_STREAMS: u32 = 100;

/// Validates a QUIC flow. `at` is its path.
pub(super) fn check(at: SpecPath<'_>, flow: &FlowSpec) -> Result<(), SpecError> {
    let place = format_args!("{at}.quic");
    let Some(quic) = &flow.quic else {
        return Err(SpecError::unfit(place, "absent", "how the QUIC connection is made"));
    };
    payload(at, flow, quic)?;
    window(format_args!("{place}.stream_receive_window_bytes"), flow, quic)?;
    within(format_args!("{place}.gso_packets"), quic.gso_packets, 1..=MAX_GSO_PACKETS)?;
    within(format_args!("{place}.streams"), quic.streams, 1..=MAX_STREAMS)?;
    if let Some(packets) = quic.packet_threshold {
        within(format_args!("{place}.packet_threshold"), packets, PACKET_THRESHOLDS)?;
    }
    burst_limit(format_args!("{place}.burst_limit_packets"), quic)?;
    if let Some(asked) = &quic.ack_frequency {
        ack_frequency(format_args!("{place}.ack_frequency"), asked)?;
    }
    only_of_tcp(at, flow)?;
    if quic.crypto == QuicCrypto::Tls && quic.handshake == QuicHandshake::ZeroRtt {
        let expected = "`1rtt`: 0-RTT needs a session to resume, which TLS has not here";
        return Err(SpecError::unfit(format_args!("{place}.handshake"), "`0rtt`", expected));
    }
    match &quic.implementation {
        Some(other) => foreign(at, flow, other),
        None if flow.controller.is_of_stack() => of_stack(at, flow),
        None => {
            controller(at, flow)?;
            memory(at, flow)?;
            of_any_transport(at, flow)
        }
    }
}

/// Rejects options that work on TCP headers only. They would silently have another effect.
fn of_any_transport(at: SpecPath<'_>, flow: &FlowSpec) -> Result<(), SpecError> {
    let name = &flow.controller.name;
    if name == "lp" {
        let expected = "another one: without the timestamps of TCP it is Reno";
        return Err(SpecError::unfit(
            format_args!("{at}.controller"),
            format!("\"{name}\""),
            expected,
        ));
    }
    if let Some(start) = flow.slow_start.as_ref().filter(|start| start.name == "quickstart") {
        let expected = "another one: its request goes into the SYN of a TCP (RFC 4782)";
        let place = format_args!("{at}.slow_start");
        return Err(SpecError::unfit(place, format!("\"{}\"", start.name), expected));
    }
    let required_ecn_feedback = registry::controller(name)
        .is_some_and(|row| row.required_ecn_feedback() != EcnFeedback::None);
    if required_ecn_feedback && !flow.ecn {
        let expected = format!("true: over QUIC, `{name}` is not run without ECN");
        return Err(SpecError::unfit(format_args!("{at}.ecn"), "false", expected));
    }
    Ok(())
}

/// Checks packet sizes against the maximum IP packet size.
fn payload(at: SpecPath<'_>, flow: &FlowSpec, quic: &QuicSpec) -> Result<(), SpecError> {
    let smallest = MIN_QUIC_PAYLOAD_BYTES + DATAGRAM_HEADER_BYTES;
    within(format_args!("{at}.mtu_bytes"), flow.mtu_bytes, smallest..=MAX_MTU_BYTES)?;
    let largest = flow.mtu_bytes - DATAGRAM_HEADER_BYTES;
    let name = format_args!("{at}.quic.initial_mtu_bytes");
    within(name, quic.initial_mtu_bytes, MIN_QUIC_PAYLOAD_BYTES..=largest)
}

fn window(at: SpecPath<'_>, flow: &FlowSpec, quic: &QuicSpec) -> Result<(), SpecError> {
    let least = u64::from(quic.initial_mtu_bytes);
    within(at, quic.stream_receive_window_bytes, least..=flow.receive_window_bytes.min(MAX_BYTES))
}

/// Checks the limit of unpaced bursts, which has no effect on paced packets.
fn burst_limit(at: SpecPath<'_>, quic: &QuicSpec) -> Result<(), SpecError> {
    let Some(packets) = quic.burst_limit_packets else { return Ok(()) };
    if quic.pacing {
        return Err(SpecError::unfit(at, packets, "absent: paced packets leave one by one"));
    }
    within(at, packets, 1..=MAX_BURST_PACKETS)
}

fn ack_frequency(at: SpecPath<'_>, asked: &AckFrequencySpec) -> Result<(), SpecError> {
    let most = 0..=MAX_ACK_THRESHOLD;
    let threshold = asked.ack_eliciting_threshold;
    within(format_args!("{at}.ack_eliciting_threshold"), threshold, most.clone())?;
    within(format_args!("{at}.reordering_threshold"), asked.reordering_threshold, most)?;
    within(format_args!("{at}.max_ack_delay_ns"), asked.max_ack_delay_ns.unwrap_or(0), 0..=MAX_NS)
}

/// Checks that keys of Linux TCP have their neutral value in a QUIC flow.
fn only_of_tcp(at: SpecPath<'_>, flow: &FlowSpec) -> Result<(), SpecError> {
    let keys = [
        ("pacing", flow.pacing, "`quic.pacing` says whether QUIC's are paced"),
        ("initial_pacing", flow.initial_pacing, "QUIC's pacing spreads the initial window"),
        ("receive_window_autotuning", flow.receive_window_autotuning, "only TCP's are tuned"),
        ("gro", flow.gro, "only segments of TCP are put together"),
    ];
    for (key, given, why) in keys {
        if given {
            return Err(SpecError::unfit(
                format_args!("{at}.{key}"),
                "true",
                format!("false: {why}"),
            ));
        }
    }
    if flow.linux != LinuxRelease::V6_1 {
        let expected = "\"6.1\": no Linux's TCP is in a QUIC flow";
        return Err(SpecError::unfit(format_args!("{at}.linux"), "\"4.15\"", expected));
    }
    let initial = flow.initial_receive_window_bytes;
    if initial != flow.receive_window_bytes {
        let expected = format!("{}, `receive_window_bytes`", flow.receive_window_bytes);
        let key = format_args!("{at}.initial_receive_window_bytes");
        return Err(SpecError::unfit(key, initial, format!("{expected}: QUIC has one")));
    }
    Ok(())
}

/// Checks that controllers of the QUIC implementation have no parameters and no separate slow
/// start.
fn of_stack(at: SpecPath<'_>, flow: &FlowSpec) -> Result<(), SpecError> {
    let known: Vec<_> = QUIC_CONTROLLERS.iter().map(|entry| entry.name).collect();
    if !known.contains(&flow.controller.name.as_str()) {
        return Err(SpecError::unknown(
            format_args!("{at}.controller"),
            &flow.controller.name,
            &known,
        ));
    }
    bare(at, flow, "it is a part of the QUIC implementation")
}

/// Checks a foreign implementation, whose commands select its controller.
fn foreign(at: SpecPath<'_>, flow: &FlowSpec, other: &QuicImplementation) -> Result<(), SpecError> {
    let place = format_args!("{at}.quic.implementation");
    if other.name.is_empty() {
        return Err(SpecError::unfit(format_args!("{place}.name"), "empty", "a name"));
    }
    let commands = &other.commands;
    for (key, command) in [("server", &commands.server), ("client", &commands.client)] {
        if command.first().is_none_or(String::is_empty) {
            let at = format_args!("{place}.commands.{key}");
            return Err(SpecError::unfit(at, "empty", "a program and its arguments"));
        }
    }
    if flow.controller.name.is_empty() || flow.controller.name.contains(':') {
        let given = format!("\"{}\"", flow.controller.name);
        let expected = format!("the name of a controller that \"{}\" has", other.name);
        return Err(SpecError::unfit(format_args!("{at}.controller"), given, expected));
    }
    bare(at, flow, "it is a part of another QUIC implementation")
}

/// Checks that the flow has no controller parameters, slow start or peer cache of jostle.
fn bare(at: SpecPath<'_>, flow: &FlowSpec, why: &str) -> Result<(), SpecError> {
    let Algorithm { name, parameters } = &flow.controller;
    if let Some(parameter) = parameters.keys().next() {
        let place = format_args!("{at}.controller");
        let given = format!("`{name}` with `{parameter}`");
        return Err(SpecError::unfit(place, given, format!("no parameters: {why}")));
    }
    for (key, given) in [("slow_start", &flow.slow_start), ("memory", &flow.memory)] {
        if let Some(given) = given {
            let expected = format!("absent: the controller `{name}` takes none, {why}");
            let given = format!("`{}`", given.name);
            return Err(SpecError::unfit(format_args!("{at}.{key}"), given, expected));
        }
    }
    Ok(())
}
