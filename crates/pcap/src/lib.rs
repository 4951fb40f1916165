//! Packet captures: one pcapng file for each end of each flow, with the headers of all packets, and
//! complete packets if they are encrypted.
//!
//! A file contains the packets that `tcpdump` would see on that host. Time 0 is the start of the
//! run, so that a packet's time equals `time_s` of the time series.

mod capture_sink;
mod frame_builder;
mod host_capture;
mod packet_ring;
mod pcapng_writer;

use std::io::{self, Write};

pub use capture_sink::CaptureSink;
use frame_builder::{address, snap_bytes};
pub use host_capture::HostCapture;
use jostle_metrics::{EndpointRole, contest_names};
use jostle_run_spec::{FlowSpec, RunSpec};
use jostle_units::{FlowId, RandomStreamName};
pub use packet_ring::{HostRing, PacketRing, from_host_ring, from_ring};
use pcapng_writer::{Interface, Pcapng, Section};

const PROGRAM: &str = concat!("jostle ", env!("CARGO_PKG_VERSION"));

/// Returns the name of the capture file of one end of a flow.
pub fn file_name(flow: &str, end: EndpointRole) -> String {
    format!("{}.pcapng", host_name(flow, end))
}

/// Returns the name of the qlog file of one end of a flow.
pub fn log_name(flow: &str, end: EndpointRole) -> String {
    format!("{}.sqlog", host_name(flow, end))
}

/// Returns the title of a flow's qlog files. `None` if qlog is not requested.
pub fn log_title(spec: &RunSpec, flow: &FlowSpec) -> Option<String> {
    let capture = spec.capture.as_ref().filter(|capture| capture.qlog)?;
    Some(format!(
        "{}: {}, {}, seed {}",
        capture.scenario, flow.name, flow.controller.name, spec.seed
    ))
}

fn host_name(flow: &str, end: EndpointRole) -> String {
    match end {
        EndpointRole::Sender => format!("{flow}.sender"),
        EndpointRole::Receiver => format!("{flow}.receiver"),
    }
}

/// A run as its captures describe it.
struct CapturedRun<'a> {
    spec: &'a RunSpec,
    /// Name of the system that processed the packets.
    system: &'a str,
    /// Digest of specification and system: files with the same digest are of one run.
    digest: String,
    /// A link for which each flow competes. Flows in opposite directions have different ones.
    contests: Vec<Option<&'a str>>,
}

impl<'a> CapturedRun<'a> {
    fn new(spec: &'a RunSpec, system: &'a str) -> io::Result<Self> {
        let digest = RandomStreamName::of(system).and(&serde_json::to_string(spec)?);
        let digest = format!("{:016x}", digest.hash());
        Ok(Self { spec, system, digest, contests: contest_names(spec) })
    }
}

/// Creates the capture of one end of the flow at `position`.
fn begin<W: Write>(
    out: W,
    run: &CapturedRun<'_>,
    position: FlowId,
    end: EndpointRole,
) -> io::Result<Pcapng<W>> {
    let spec = run.spec;
    let flow = &spec.flows[position.index()];
    let name = host_name(&flow.name, end);
    let scenario = spec.capture.as_ref().map_or("", |capture| &capture.scenario);
    let contest = run.contests[position.index()];
    let contest = contest.map_or_else(String::new, |link| format!("competes on: {link}\n"));
    let comment = format!(
        "scenario: {scenario}\nflow: {}\ncontroller: {}\nend: {}\nseed: {}\nrun: {}\n{contest}\
         time 0 is the start of the run",
        flow.name,
        flow.controller.name,
        if end == EndpointRole::Sender { "sender" } else { "receiver" },
        spec.seed,
        run.digest,
    );
    let section = Section { comment: &comment, system: run.system, program: PROGRAM };
    let interface = Interface {
        name: &name,
        address: address(position, end).into(),
        snap_bytes: snap_bytes(flow),
    };
    Pcapng::begin(out, &section, &interface)
}
