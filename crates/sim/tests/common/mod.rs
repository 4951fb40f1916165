//! RunSpecs to test and to measure with.

#![allow(dead_code, reason = "every user takes another part")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;

use jostle_controllers::registry::{self, SlowStartChoice};
use jostle_metrics::*;
use jostle_run_spec::*;
use jostle_units::LinkId;
pub use serde_json::json;

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000 * MS;
pub const MBPS: u64 = 1_000_000;
pub const GBPS: u64 = 1_000 * MBPS;

/// An algorithm with the parameters it has if nobody says anything.
pub fn algorithm(name: &str) -> Algorithm {
    Algorithm { name: name.to_owned(), parameters: BTreeMap::new() }
}

/// A run with the phases `overall` and `second half`.
pub fn run(duration_ns: u64, links: Vec<LinkSpec>, flows: Vec<FlowSpec>) -> RunSpec {
    let phase =
        |name: &str, from_ns| PhaseSpec { name: name.to_owned(), from_ns, to_ns: duration_ns };
    RunSpec {
        seed: 1,
        duration_ns,
        interval_ns: 100 * MS,
        record: TraceLevel::None,
        capture: None,
        measured: None,
        phases: vec![phase("overall", 0), phase("second half", duration_ns / 2)],
        links,
        flows,
    }
}

/// What a run records, which has to be one that may be run.
pub fn record(spec: &RunSpec) -> RunRecord {
    spec.validate().unwrap();
    let mut recorder = Recorder::new(spec);
    jostle_sim::run(spec, &mut recorder, &|| false).unwrap();
    recorder.finish()
}

/// Its measures.
pub fn measure(spec: &RunSpec) -> Summary {
    record(spec).summary
}

/// Measures of a flow in the second half of a run.
pub fn settled(summary: &Summary, flow: usize) -> &FlowPhase {
    summary.flows[flow].phases.get("second half").unwrap()
}

/// A queue or losses with parameters as in a run's specification.
pub fn part(kind: &str, parameters: serde_json::Value) -> LinkPart {
    let parameters = serde_json::from_value(parameters).unwrap();
    LinkPart { kind: kind.to_owned(), parameters }
}

/// Independent losses.
pub fn lost(probability: f64) -> Option<LinkPart> {
    Some(part("independent", json!({"probability": probability})))
}

/// A drop-tail link without delay of its own.
pub fn link(name: &str, rate_bps: u64, limit_bytes: u64) -> LinkSpec {
    LinkSpec {
        name: name.to_owned(),
        capacity: CapacitySpec::Constant { rate_bps },
        queue: part("drop_tail", json!({"limit": {"bytes": limit_bytes}})),
        classes: None,
        delay: constant_delay(0),
        loss: None,
        outages: None,
        faults: None,
        netem: None,
        grants: None,
        framing: None,
        ack_thinning: None,
        frames: None,
        loss_steps: Vec::new(),
        quick_start: None,
    }
}

pub fn constant_delay(delay_ns: u64) -> DelaySpec {
    DelaySpec { steps: vec![DelayStep { at_ns: 0, delay_ns }], jitter: None }
}

/// A bulk flow over the first link and an uncongested way back.
pub fn flow(name: &str, controller: &str, rtt_ns: u64) -> FlowSpec {
    FlowSpec {
        name: name.to_owned(),
        group: None,
        transport: Transport::Tcp,
        tcp: None,
        quic: None,
        controller: algorithm(controller),
        slow_start: slow_start(controller),
        memory: None,
        peer: 0,
        sender_host: None,
        receiver_host: None,
        dscp: None,
        path: vec![LinkId(0)],
        reverse_path: vec![],
        routes: Vec::new(),
        base_delay_ns: rtt_ns,
        connection_of: None,
        after: None,
        start_ns: 0,
        stop_ns: None,
        source: SourceSpec::Bulk,
        arrivals: None,
        pacing: false,
        ecn: false,
        mtu_bytes: 1_500,
        initial_window_packets: 10,
        initial_pacing: false,
        linux: LinuxRelease::V6_1,
        receive_window_bytes: 60_000_000,
        initial_receive_window_bytes: 65_535,
        receive_window_autotuning: false,
        receiver: None,
        reader: None,
        timers: None,
        gro: false,
        nic_rate_bps: None,
    }
}

/// The same over QUIC, as a scenario has it that says no more.
pub fn over_quic(flow: FlowSpec) -> FlowSpec {
    FlowSpec {
        transport: Transport::Quic,
        quic: Some(QuicSpec {
            implementation: None,
            initial_mtu_bytes: 1_200,
            mtu_discovery: true,
            ack_frequency: None,
            recovery: QuicRecovery::Rfc9002,
            gso_packets: 10,
            pacing: true,
            packet_threshold: None,
            burst_limit_packets: None,
            streams: 1,
            stream_receive_window_bytes: flow.receive_window_bytes,
            handshake: QuicHandshake::OneRtt,
            crypto: QuicCrypto::None,
        }),
        pacing: false,
        initial_pacing: false,
        initial_receive_window_bytes: flow.receive_window_bytes,
        receive_window_autotuning: false,
        gro: false,
        linux: LinuxRelease::V6_1,
        timers: flow.timers.map(|timers| TimersSpec { hz: None, ..timers }),
        ..flow
    }
}

/// The slow start of a controller that is composed with one.
pub fn slow_start(controller: &str) -> Option<Algorithm> {
    match registry::controller(controller)?.start {
        SlowStartChoice::Composed(name) => Some(algorithm(name)),
        SlowStartChoice::BuiltIn => None,
    }
}

/// Bytes that fill a path once.
pub fn bdp_bytes(rate_bps: u64, rtt_ns: u64) -> u64 {
    (u128::from(rate_bps) * u128::from(rtt_ns) / (8 * u128::from(S))) as u64
}
