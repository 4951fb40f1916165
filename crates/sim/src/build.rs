//! From a RunSpec to links and endpoints.

use jostle_control::registry::{self, Start};
use jostle_control::slow_start::Standard;
use jostle_control::{Controller, EcnFeedback, SlowStart};
use jostle_path::Link;
use jostle_record::{Algorithm, FlowSpec, LinkSpec, Linux, RunSpec, SourceSpec, Transport};
use jostle_tcp::{Options, Receiver, Sender};
use jostle_units::{Span, Stream, Time, mss_of};

use crate::Error;
use crate::connection::Connection;
use crate::endpoints::Endpoints;
use crate::host::Times;
use crate::packet::Body;
use crate::pings::Pinger;
use crate::source::Source;

/// Makes the controllers that no registry has ([`jostle_record::Algorithm::is_python_controller`]): given
/// the flow and the controller's own random numbers, a controller or what is wrong.
pub type PythonControllers<'a> =
    &'a dyn Fn(&FlowSpec, Stream) -> Result<Box<dyn Controller>, String>;

/// A flow.
pub(crate) struct Flow {
    pub endpoints: Endpoints,
    pub times: Times,
    /// Flows that open when this one is complete.
    pub followers: Vec<u32>,
}

fn invalid(what: &str, error: impl std::fmt::Display) -> Error {
    Error::Unbuildable { what: what.to_owned(), why: error.to_string() }
}

pub(crate) fn link(spec: &LinkSpec, seed: u64) -> Result<Link<Body>, Error> {
    spec.build(seed).map_err(|error| invalid(&spec.name, error))
}

fn slow_start(spec: Option<&Algorithm>, flow: &str) -> Result<Box<dyn SlowStart>, Error> {
    let Some(spec) = spec else { return Ok(Box::new(Standard)) };
    let row = registry::slow_start(&spec.name).ok_or_else(|| {
        invalid(flow, format_args!("there is no slow-start method `{}`", spec.name))
    })?;
    row.create(&spec.parameters).map_err(|e| invalid(flow, e))
}

fn controller(
    spec: &FlowSpec,
    seed: u64,
    python_controllers: PythonControllers<'_>,
) -> Result<Box<dyn Controller>, Error> {
    let controller = if spec.controller.is_python_controller() {
        let random = Stream::new(seed, &format!("flow/{}/controller", spec.name));
        python_controllers(spec, random).map_err(|e| invalid(&spec.name, e))?
    } else {
        from_registry(spec, seed)?
    };
    let Some(memory) = &spec.memory else { return Ok(controller) };
    let row = registry::memory(&memory.name)
        .ok_or_else(|| invalid(&spec.name, format_args!("there is no memory `{}`", memory.name)))?;
    row.create(&memory.parameters, controller).map_err(|e| invalid(&spec.name, e))
}

fn from_registry(spec: &FlowSpec, seed: u64) -> Result<Box<dyn Controller>, Error> {
    let name = &spec.controller.name;
    let row = registry::controller(name)
        .ok_or_else(|| invalid(&spec.name, format_args!("there is no controller `{name}`")))?;
    if row.start == Start::Own && spec.slow_start.is_some() {
        return Err(invalid(&spec.name, format_args!("`{name}` has a slow start of its own")));
    }
    let start = slow_start(spec.slow_start.as_ref(), &spec.name)?;
    let random = Stream::new(seed, &format!("flow/{}/controller", spec.name));
    row.create(&spec.controller.parameters, start, random).map_err(|e| invalid(&spec.name, e))
}

/// Every flow of `run`.
pub(crate) fn flows(
    run: &RunSpec,
    python_controllers: PythonControllers<'_>,
) -> Result<Vec<Flow>, Error> {
    // A vector that grows would move what was made, a kilobyte each, again and again.
    let mut flows = Vec::with_capacity(run.flows.len());
    for spec in &run.flows {
        let endpoints = endpoints(spec, run, python_controllers)?;
        flows.push(Flow { endpoints, times: times(spec), followers: Vec::new() });
    }
    // Here, and not where a flow is made: each would have to look at all of them.
    for (follower, spec) in (0..).zip(&run.flows) {
        if let Some(leader) = spec.after.and_then(|leader| flows.get_mut(leader as usize)) {
            leader.followers.push(follower);
        }
    }
    Ok(flows)
}

fn times(spec: &FlowSpec) -> Times {
    Times {
        start: if spec.after.is_some() { Time::NEVER } else { Time::from_ns(spec.start_ns) },
        wait: Span::from_ns(spec.start_ns),
        stop: spec.stop_ns.map_or(Time::NEVER, Time::from_ns),
    }
}

fn endpoints(
    spec: &FlowSpec,
    run: &RunSpec,
    python_controllers: PythonControllers<'_>,
) -> Result<Endpoints, Error> {
    match (spec.transport, &spec.source) {
        (Transport::Tcp, _) => connection(spec, run, python_controllers).map(Endpoints::Connection),
        (Transport::Udp, &SourceSpec::Ping { bytes, every_ns, timeout_ns }) => {
            let (every, timeout) = (Span::from_ns(every_ns), Span::from_ns(timeout_ns));
            Ok(Endpoints::Pings(Pinger::new(bytes as u16, every, timeout)))
        }
        (Transport::Quic, _) => Err(invalid(&spec.name, "QUIC is not simulated")),
        (Transport::Udp, _) => Err(invalid(&spec.name, "nothing but pings is sent in datagrams")),
    }
}

fn connection(
    spec: &FlowSpec,
    run: &RunSpec,
    python_controllers: PythonControllers<'_>,
) -> Result<Connection, Error> {
    let mss_bytes = u16::try_from(mss_of(spec.mtu_bytes)).map_err(|e| invalid(&spec.name, e))?;
    let options = Options {
        pacing: spec.pacing,
        ecn: spec.ecn,
        initial_window: spec.initial_window_packets,
        timestamp_offset: Stream::new(run.seed, &format!("flow/{}/timestamps", spec.name)).bits()
            as u32,
        initial_pacing: spec.initial_pacing,
        short_path_bursts: spec.linux == Linux::V6_1,
        peer: spec.peer,
        mss_bytes,
    };
    let base_ns: u64 = spec
        .path
        .iter()
        .chain(&spec.reverse_path)
        .map(|&link| run.links[link as usize].delay.steps[0].delay_ns)
        .sum();
    let rtt = Span::from_ns(spec.access_delay_ns + base_ns);
    let controller = controller(spec, run.seed, python_controllers)?;
    // In Linux a receiver echoes marks as its own controller needs it: both ends have the same.
    let feedback = match (spec.ecn, controller.needs_ecn()) {
        (false, _) => EcnFeedback::None,
        (true, EcnFeedback::None) => EcnFeedback::Classic,
        (true, needed) => needed,
    };
    let mut receiver = Receiver::new(mss_bytes, spec.receive_window_bytes, rtt, feedback)
        .offering(spec.initial_receive_window_bytes);
    if spec.receive_window_autotuning {
        receiver = receiver.autotuned();
    }
    if spec.linux == Linux::V4_15 {
        receiver = receiver.uncompressed();
    }
    let random = Stream::new(run.seed, &format!("flow/{}/source", spec.name));
    let source = Source::new(spec.source, random);
    Ok(Connection::new(Sender::new(options, controller), receiver, source))
}
