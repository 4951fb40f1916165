//! Captures: the headers of all packets, of what is encrypted the whole of it, as a pcapng file for each
//! end of each flow.
//!
//! A file holds what `tcpdump` on that host would have seen. Its clock is that of the run: time 0 is
//! its start, so that a packet's time is the `time_s` of the series.

mod frames;
mod pcapng;
mod ring;
mod segments;

use std::io::{self, Write};

use crate::{End, FlowSpec, RunSpec};
use frames::{address, snap_bytes};
use pcapng::{Interface, Pcapng, Section};
pub use ring::{Ring, from_ring};
pub use segments::Capture;

/// Most flows of a run whose packets are captured: each keeps two files open.
pub const CAPTURED_FLOWS_MAX: usize = 100;

/// Name of the file of one end of a flow.
pub fn file_name(flow: &str, end: End) -> String {
    format!("{}.pcapng", host_name(flow, end))
}

/// Name of the file of what one end of a flow wrote down.
pub fn log_name(flow: &str, end: End) -> String {
    format!("{}.sqlog", host_name(flow, end))
}

/// Title of the log of a flow's end.
pub fn log_title(spec: &RunSpec, flow: &FlowSpec) -> Option<String> {
    let capture = spec.capture.as_ref().filter(|capture| capture.qlog)?;
    Some(format!(
        "{}: {}, {}, seed {}",
        capture.scenario, flow.name, flow.controller.name, spec.seed
    ))
}

fn host_name(flow: &str, end: End) -> String {
    match end {
        End::Sender => format!("{flow}.sender"),
        End::Receiver => format!("{flow}.receiver"),
    }
}

/// Begins the file of one end of the flow at `position`; `system` is what its packets went through.
fn begin<W: Write>(
    out: W,
    spec: &RunSpec,
    position: usize,
    end: End,
    system: &str,
) -> io::Result<Pcapng<W>> {
    let flow = &spec.flows[position];
    let name = host_name(&flow.name, end);
    let scenario = spec.capture.as_ref().map_or("", |capture| &capture.scenario);
    let comment = format!(
        "scenario: {scenario}\nflow: {}\ncontroller: {}\nend: {}\nseed: {}\n\
         time 0 is the start of the run",
        flow.name,
        flow.controller.name,
        if end == End::Sender { "sender" } else { "receiver" },
        spec.seed,
    );
    let program = concat!("jostle ", env!("CARGO_PKG_VERSION"));
    let section = Section { comment: &comment, system, program };
    let interface =
        Interface { name: &name, address: address(position, end), snap_bytes: snap_bytes(flow) };
    Pcapng::begin(out, &section, &interface)
}
