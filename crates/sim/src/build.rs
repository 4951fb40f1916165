//! From a RunSpec to links and endpoints.

use jostle_control::registry::{self, Start};
use jostle_control::slow_start::Standard;
use jostle_control::{Controller, EcnFeedback, SlowStart};
use jostle_path::{Hosts, Link};
use jostle_quic::{AckFrequency, Congestion, Crypto, End, Handshake, Recovery, Settings, Stack};
use jostle_record::capture::log_title;
use jostle_record::{
    Algorithm, FlowSpec, LinkSpec, Linux, QuicCrypto, QuicHandshake, QuicRecovery, ReceiverSpec,
    RunSpec, SourceSpec, Transport,
};
use jostle_tcp::{Conduct, Options, Receiver, Sender};
use jostle_units::{DATAGRAM_HEADER_BYTES, Span, Stream, Time, mss_of};

use crate::Error;
use crate::connection::Connection;
use crate::datagrams::Datagrams;
use crate::endpoints::Endpoints;
use crate::host::Times;
use crate::packet::Body;
use crate::pings::Pinger;
use crate::quic::{QuicConnection, QuicEnds};
use crate::relay::Part;
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

pub(crate) fn link(spec: &LinkSpec, seed: u64, hosts: &[Hosts]) -> Result<Link<Body>, Error> {
    let mut link = spec.build(seed).map_err(|error| invalid(&spec.name, error))?;
    link.know_hosts(hosts);
    Ok(link)
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
    split(&mut flows, run);
    Ok(flows)
}

/// Tells connections of the proxies at their ends.
fn split(flows: &mut [Flow], run: &RunSpec) {
    let continuations = run.continuations();
    let mut origins: Vec<u32> = Vec::new();
    for (at, (flow, spec)) in (0u32..).zip(flows.iter_mut().zip(&run.flows)) {
        let before = spec.source.relays();
        let origin = before.map_or(at, |before| origins[before as usize]);
        origins.push(origin);
        let next = continuations[at as usize];
        if let (Endpoints::Connection(connection), true) =
            (&mut flow.endpoints, before.is_some() || next.is_some())
        {
            let mut part = Part::new(origin, before, next);
            if let SourceSpec::Relay { buffer_bytes, .. } = spec.source {
                part.buffer_bytes = buffer_bytes;
            }
            connection.split(part);
        }
    }
}

fn times(spec: &FlowSpec) -> Times {
    let waits = spec.after.is_some() || spec.source.relays().is_some();
    Times {
        start: if waits { Time::NEVER } else { Time::from_ns(spec.start_ns) },
        wait: Span::from_ns(spec.start_ns),
        stop: spec.stop_ns.map_or(Time::NEVER, Time::from_ns),
    }
}

pub(crate) fn endpoints(
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
        (Transport::Quic, _) => {
            let ends = quic_ends_with(spec, run, python_controllers)?;
            Ok(Endpoints::Quic(Box::new(QuicConnection::new(ends))))
        }
        (Transport::Udp, SourceSpec::Cbr(source)) => {
            Ok(Endpoints::Datagrams(Datagrams::new(source)))
        }
        (Transport::Udp, _) => Err(invalid(&spec.name, "it is not sent in datagrams")),
    }
}

/// The ends of a flow of `run` for whoever drives them over other links than the simulator's.
///
/// # Errors
/// When the flow has none, or its controller is written in Python.
pub fn quic_ends(spec: &FlowSpec, run: &RunSpec) -> Result<QuicEnds, Error> {
    quic_ends_with(spec, run, &|_, _| Err("it is written in Python".to_owned()))
}

fn quic_ends_with(
    spec: &FlowSpec,
    run: &RunSpec,
    python_controllers: PythonControllers<'_>,
) -> Result<QuicEnds, Error> {
    let settings = quic_settings(spec, run)?;
    let congestion = if spec.controller.is_of_stack() {
        let stack = match spec.controller.name.as_str() {
            "noq:cubic" => Stack::Cubic,
            "noq:reno" => Stack::Reno,
            "noq:bbr3" => Stack::Bbr3,
            other => {
                return Err(invalid(&spec.name, format_args!("there is no controller `{other}`")));
            }
        };
        Congestion::Stack(stack)
    } else {
        Congestion::Ours(controller(spec, run.seed, python_controllers)?)
    };
    let stream = |part: &str| Stream::new(run.seed, &format!("flow/{}/{part}", spec.name));
    let client = End::client(&settings, stream("quic/client").bits(), congestion)
        .map_err(|e| invalid(&spec.name, e))?;
    let server =
        End::server(&settings, stream("quic/server").bits()).map_err(|e| invalid(&spec.name, e))?;
    let source = Source::new(&spec.source, run.seed, &spec.name).asked_over(way_back(spec, run));
    let early = settings.handshake == Handshake::ZeroRtt;
    Ok(QuicEnds { client, server, source, early })
}

fn quic_settings(spec: &FlowSpec, run: &RunSpec) -> Result<Settings, Error> {
    let missing = || invalid(&spec.name, "a QUIC flow says how its connection is made");
    let quic = spec.quic.as_ref().ok_or_else(missing)?;
    if let Some(other) = &quic.implementation {
        return Err(invalid(&spec.name, format_args!("`{}` is not simulated", other.name)));
    }
    let bytes = |bytes: u32| u16::try_from(bytes).map_err(|e| invalid(&spec.name, e));
    let largest = bytes(spec.mtu_bytes - DATAGRAM_HEADER_BYTES)?;
    Ok(Settings {
        datagram_bytes: bytes(quic.initial_mtu_bytes)?,
        discover_up_to_bytes: quic.mtu_discovery.then_some(largest),
        ack_frequency: quic.ack_frequency.map(|asked| AckFrequency {
            eliciting_threshold: asked.ack_eliciting_threshold,
            max_ack_delay: asked.max_ack_delay_ns.map(Span::from_ns),
            reordering_threshold: asked.reordering_threshold,
        }),
        recovery: match quic.recovery {
            QuicRecovery::Rfc9002 => Recovery::Rfc9002,
            QuicRecovery::Prr => Recovery::Prr,
        },
        pacing: quic.pacing,
        burst_datagrams: quic.gso_packets as u8,
        initial_window_packets: spec.initial_window_packets,
        // RFC 9114 §4.1: a response has a stream of its own.
        streams: match spec.source {
            SourceSpec::RequestResponse { .. }
            | SourceSpec::Media(_)
            | SourceSpec::Trace(_)
            | SourceSpec::Video(_) => 1,
            _ => quic.streams,
        },
        stream_window_bytes: quic.stream_receive_window_bytes,
        connection_window_bytes: spec.receive_window_bytes,
        send_buffer_bytes: spec.receive_window_bytes,
        handshake: match quic.handshake {
            QuicHandshake::OneRtt => Handshake::OneRtt,
            QuicHandshake::ZeroRtt => Handshake::ZeroRtt,
        },
        crypto: match quic.crypto {
            QuicCrypto::None => Crypto::None,
            QuicCrypto::Tls => Crypto::Tls,
        },
        ecn: spec.ecn,
        log: log_title(run, spec),
        peer: spec.peer,
        ..Settings::default()
    })
}

/// What propagation over some links takes, as the run begins.
fn propagation(links: &[u32], run: &RunSpec) -> Span {
    let ns = |&link: &u32| run.links[link as usize].delay.steps[0].delay_ns;
    Span::from_ns(links.iter().map(ns).sum())
}

/// What propagation from the receiver to the sender takes.
fn way_back(spec: &FlowSpec, run: &RunSpec) -> Span {
    propagation(&spec.reverse_path, run) + Span::from_ns(spec.access_delay_ns)
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
    let rtt = propagation(&spec.path, run) + way_back(spec, run);
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
    let source = Source::new(&spec.source, run.seed, &spec.name).asked_over(way_back(spec, run));
    let conduct = conduct(run, spec, rtt, mss_bytes)?;
    Ok(Connection::new(Sender::new(options, controller), receiver, source).conducted(conduct))
}

/// What a flow's receiver does otherwise than Linux's, if it does.
fn conduct(run: &RunSpec, spec: &FlowSpec, rtt: Span, mss: u16) -> Result<Option<Conduct>, Error> {
    let Some(receiver) = &spec.receiver else { return Ok(None) };
    let most_bytes = spec.receive_window_bytes;
    Ok(Some(match *receiver {
        ReceiverSpec::DividedAcks { pieces } => Conduct::divided(pieces),
        ReceiverSpec::RepeatedAcks { copies } => Conduct::repeated(copies),
        ReceiverSpec::HiddenMarks => Conduct::unmarked(),
        ReceiverSpec::OptimisticAcks { lead } => Conduct::optimistic(lead, rtt, most_bytes, mss),
        ReceiverSpec::Rledbat { .. } => {
            Conduct::rledbat(receivers_controller(receiver, spec, run.seed)?, mss, most_bytes)
        }
    }))
}

/// The controller that a receiver runs.
fn receivers_controller(
    receiver: &ReceiverSpec,
    spec: &FlowSpec,
    seed: u64,
) -> Result<Box<dyn Controller>, Error> {
    let unknown = || invalid(&spec.name, "its receiver runs no controller");
    let Algorithm { name, parameters } = receiver.controller().ok_or_else(unknown)?;
    let row = registry::controller(&name).ok_or_else(unknown)?;
    let random = Stream::new(seed, &format!("flow/{}/receiver", spec.name));
    row.create(&parameters, Box::new(Standard), random).map_err(|e| invalid(&spec.name, e))
}
