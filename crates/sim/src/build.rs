//! From a RunSpec to links and endpoints.

mod receivers;
mod recipe;
mod tcp;

use std::sync::Arc;

use jostle_control::Controller;
use jostle_path::{Hosts, Link};
use jostle_quic::{AckFrequency, Congestion, Crypto, End, Handshake, Recovery, Settings, Stack};
use jostle_record::capture::log_title;
use jostle_record::{
    FlowSpec, FlowStreams, LinkSpec, Quantity, QuicCrypto, QuicHandshake, QuicRecovery, RunSpec,
    Sampler, SourceSpec, Transport, listed_bytes, nth_connection,
};
use jostle_units::{DATAGRAM_HEADER_BYTES, Span, Stream, Time};

use self::recipe::{Recipe, Recipes};
use self::tcp::{TcpPlan, way_back};
use crate::Error;
use crate::datagrams::Datagrams;
use crate::endpoints::Endpoints;
use crate::host::Times;
use crate::packet::Body;
use crate::pings::Pinger;
use crate::quic::{QuicConnection, QuicEnds};
use crate::relay::Part;
use crate::source::Application;

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

pub(crate) fn link(spec: &LinkSpec, seed: u64, hosts: &[Hosts]) -> Result<Link<Body>, Error> {
    let mut link = spec.build(seed).map_err(|error| Error::unbuildable(&spec.name, error))?;
    link.know_hosts(hosts);
    Ok(link)
}

fn from_python(
    spec: &FlowSpec,
    python_controllers: PythonControllers<'_>,
) -> impl FnOnce(Stream) -> Result<Box<dyn Controller>, Error> {
    |random| python_controllers(spec, random).map_err(|e| Error::unbuildable(&spec.name, e))
}

/// How the connections of a flow that is many are made.
pub(crate) enum Plan {
    /// From what they have in common.
    Tcp(Box<TcpPlan>, Application),
    /// Each from a specification of its own: those over QUIC, and those whose controllers are asked of
    /// somebody who is shown one.
    Each,
}

impl Plan {
    /// That of a flow of `run`.
    pub(crate) fn of(spec: &FlowSpec, run: &RunSpec) -> Result<Self, Error> {
        if spec.transport != Transport::Tcp || spec.controller.is_python_controller() {
            return Ok(Self::Each);
        }
        let plan = TcpPlan::of(spec, Arc::new(Recipe::of(spec)?), run)?;
        Ok(Self::Tcp(Box::new(plan), Application::new(&spec.source)))
    }

    /// Both ends of the `number`-th connection of `flow`.
    pub(crate) fn endpoints(
        &self,
        number: u32,
        flow: &FlowSpec,
        run: &RunSpec,
        python_controllers: PythonControllers<'_>,
    ) -> Result<Endpoints, Error> {
        match self {
            Self::Tcp(plan, application) => {
                let application = match listed_bytes(flow, number) {
                    Some(bytes) => Application::Fixed(Sampler::new(Quantity::Constant(bytes))),
                    None => application.clone(),
                };
                plan.nth(number, application).map(Endpoints::Connection)
            }
            Self::Each => {
                let connection = nth_connection(flow, number);
                endpoints(&connection, run, &mut Recipes::default(), python_controllers)
            }
        }
    }
}

/// Every flow of `run`.
pub(crate) fn flows(
    run: &RunSpec,
    python_controllers: PythonControllers<'_>,
) -> Result<Vec<Flow>, Error> {
    // A vector that grows would move what was made, a kilobyte each, again and again.
    let mut flows = Vec::with_capacity(run.flows.len());
    let mut recipes = Recipes::default();
    for spec in &run.flows {
        let endpoints = endpoints(spec, run, &mut recipes, python_controllers)?;
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

fn endpoints<'a>(
    spec: &'a FlowSpec,
    run: &RunSpec,
    recipes: &mut Recipes<'a>,
    python_controllers: PythonControllers<'_>,
) -> Result<Endpoints, Error> {
    match (spec.transport, &spec.source) {
        (Transport::Tcp, _) => {
            let application = Application::new(&spec.source);
            let python = from_python(spec, python_controllers);
            let plan = TcpPlan::of(spec, recipes.of(spec)?, run)?;
            plan.only(application, python).map(Endpoints::Connection)
        }
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
        (Transport::Udp, _) => Err(Error::unbuildable(&spec.name, "it is not sent in datagrams")),
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
    let streams = FlowStreams::of(run.seed, &spec.name);
    let congestion = if spec.controller.is_of_stack() {
        let stack = match spec.controller.name.as_str() {
            "noq:cubic" => Stack::Cubic,
            "noq:reno" => Stack::Reno,
            "noq:bbr3" => Stack::Bbr3,
            other => {
                return Err(Error::unbuildable(
                    &spec.name,
                    format_args!("there is no controller `{other}`"),
                ));
            }
        };
        Congestion::Stack(stack)
    } else {
        let python = from_python(spec, python_controllers);
        Congestion::Ours(Recipe::of(spec)?.make(streams, python)?)
    };
    let client = End::client(&settings, streams.stream("quic/client").bits(), congestion)
        .map_err(|e| Error::unbuildable(&spec.name, e))?;
    let server = End::server(&settings, streams.stream("quic/server").bits())
        .map_err(|e| Error::unbuildable(&spec.name, e))?;
    let source = Application::new(&spec.source).source(streams).asked_over(way_back(spec, run));
    let early = settings.handshake == Handshake::ZeroRtt;
    Ok(QuicEnds { client, server, source, early })
}

fn quic_settings(spec: &FlowSpec, run: &RunSpec) -> Result<Settings, Error> {
    let missing = || Error::unbuildable(&spec.name, "a QUIC flow says how its connection is made");
    let quic = spec.quic.as_ref().ok_or_else(missing)?;
    if let Some(other) = &quic.implementation {
        return Err(Error::unbuildable(
            &spec.name,
            format_args!("`{}` is not simulated", other.name),
        ));
    }
    let bytes = |bytes: u32| u16::try_from(bytes).map_err(|e| Error::unbuildable(&spec.name, e));
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
