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
use jostle_metrics::EndpointRole;
use jostle_run_spec::{FlowSpec, RunSpec};
use jostle_units::FlowId;
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

/// Creates the capture of one end of the flow at `position`. `system` names the system that
/// processed the packets.
fn begin<W: Write>(
    out: W,
    spec: &RunSpec,
    position: FlowId,
    end: EndpointRole,
    system: &str,
) -> io::Result<Pcapng<W>> {
    let flow = &spec.flows[position.index()];
    let name = host_name(&flow.name, end);
    let scenario = spec.capture.as_ref().map_or("", |capture| &capture.scenario);
    let comment = format!(
        "scenario: {scenario}\nflow: {}\ncontroller: {}\nend: {}\nseed: {}\n\
         time 0 is the start of the run",
        flow.name,
        flow.controller.name,
        if end == EndpointRole::Sender { "sender" } else { "receiver" },
        spec.seed,
    );
    let section = Section { comment: &comment, system, program: PROGRAM };
    let interface = Interface {
        name: &name,
        address: address(position, end).into(),
        snap_bytes: snap_bytes(flow),
    };
    Pcapng::begin(out, &section, &interface)
}
