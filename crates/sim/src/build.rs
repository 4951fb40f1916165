//! Builds links and endpoints from a run specification.

mod controller_factory;
mod host_timers;
mod receivers;
mod tcp;

use std::collections::BTreeMap;
use std::sync::Arc;

use jostle_congestion::CongestionController;
use jostle_link::{FlowHosts, Link};
use jostle_pcap::log_title;
use jostle_quic::{
    AckFrequency, Congestion, Crypto, Handshake, QuicEndpoint, Recovery, Settings, StackController,
};
use jostle_run_spec::{
    FlowRandomStreams, FlowSpec, LinkSpec, Quantity, QuantitySampler, QuicCrypto, QuicHandshake,
    QuicRecovery, RunSpec, SourceSpec, Transport, listed_bytes, nth_connection, requests_of,
};
use jostle_units::{ConnectionId, DATAGRAM_HEADER_BYTES, FlowId, RandomStream, Span, Time};

use self::controller_factory::{ControllerFactories, ControllerFactory};
use self::host_timers::host_timers;
use self::tcp::TcpPlan;
use crate::Error;
use crate::cbr_sender::Datagrams;
use crate::endpoints::EndpointKind;
use crate::packet::Body;
use crate::ping::Pinger;
use crate::proxy::ProxyLeg;
use crate::quic_connection::{QuicConnection, QuicEndpoints};
use crate::slow_reader::SlowReader;
use crate::tcp_connection::{SharedConnection, TcpConnection};
use crate::transport::FlowTimes;
use crate::tunnel::{TunnelDatagrams, TunnelStream, UdpTunnel};
use jostle_traffic::ApplicationModel;

/// Creates controllers that are not in the registry
/// ([`jostle_run_spec::Algorithm::is_user_defined`]) from the flow and a random stream.
/// Returns an error message on failure.
pub type UserControllers<'a> =
    &'a dyn Fn(&FlowSpec, RandomStream) -> Result<Box<dyn CongestionController>, String>;

/// The endpoints and times of a flow.
pub(crate) struct BuiltFlow {
    pub endpoints: EndpointKind,
    pub times: FlowTimes,
    /// Flows that start when this one is complete.
    pub followers: Vec<FlowId>,
}

pub(crate) fn link(spec: &LinkSpec, seed: u64, hosts: &[FlowHosts]) -> Result<Link<Body>, Error> {
    let mut link = spec.build(seed).map_err(|error| Error::unbuildable(&spec.name, error))?;
    link.know_hosts(hosts);
    Ok(link)
}

fn from_user(
    spec: &FlowSpec,
    user_controllers: UserControllers<'_>,
) -> impl FnOnce(RandomStream) -> Result<Box<dyn CongestionController>, Error> {
    |random| user_controllers(spec, random).map_err(|e| Error::unbuildable(&spec.name, e))
}

/// Recipe for the connections of a multi-connection flow.
pub(crate) enum ConnectionPlan {
    /// Built from shared settings.
    Tcp(Box<TcpPlan>, ApplicationModel),
    /// Each connection is built from its own specification: QUIC connections, and those with a
    /// user's controllers.
    Each,
    /// Connections of a browser.
    Browser(Box<BrowserPlan>),
}

/// Recipe for the connections of a browser.
pub(crate) struct BrowserPlan {
    requests: ConnectionPlan,
    responses: ConnectionPlan,
    /// Flow of the requests.
    request_flow: FlowSpec,
    request_bytes: u16,
}

impl ConnectionPlan {
    /// Returns the recipe for a flow of `run`.
    pub(crate) fn of(spec: &FlowSpec, run: &RunSpec) -> Result<Self, Error> {
        let SourceSpec::Web(web) = &spec.source else { return Self::of_direction(spec, run) };
        let request_flow = requests_of(spec);
        Ok(Self::Browser(Box::new(BrowserPlan {
            requests: Self::of_direction(&request_flow, run)?,
            responses: Self::of_direction(spec, run)?,
            request_flow,
            request_bytes: web.request_bytes as u16,
        })))
    }

    fn of_direction(spec: &FlowSpec, run: &RunSpec) -> Result<Self, Error> {
        if spec.transport != Transport::Tcp || spec.controller.is_user_defined() {
            return Ok(Self::Each);
        }
        let plan = TcpPlan::of(spec, Arc::new(ControllerFactory::of(spec)?), run)?;
        Ok(Self::Tcp(Box::new(plan), ApplicationModel::new(&spec.source)))
    }

    /// Builds both endpoints of the `number`-th connection of `flow`, which gets the number `id`. A
    /// browser's requests are the second value, and get the number after it.
    pub(crate) fn endpoints(
        &self,
        (number, id): (u32, ConnectionId),
        flow: &FlowSpec,
        run: &RunSpec,
        user_controllers: UserControllers<'_>,
    ) -> Result<(EndpointKind, Option<EndpointKind>), Error> {
        let Self::Browser(plan) = self else {
            return Ok((self.direction(number, flow, run, user_controllers)?, None));
        };
        let BrowserPlan { requests, responses, request_flow, request_bytes } = &**plan;
        let requests = requests.direction(number, request_flow, run, user_controllers)?;
        let responses = responses.direction(number, flow, run, user_controllers)?;
        let (EndpointKind::Connection(requests), EndpointKind::Connection(responses)) =
            (requests, responses)
        else {
            return Err(Error::unbuildable(&flow.name, "pages are loaded over TCP only"));
        };
        let ids = [ConnectionId(id.0 + 1), id];
        let [requests, responses] =
            SharedConnection::of_browser([requests, responses], ids, *request_bytes);
        Ok((EndpointKind::Shared(responses), Some(EndpointKind::Shared(requests))))
    }

    fn direction(
        &self,
        number: u32,
        flow: &FlowSpec,
        run: &RunSpec,
        user_controllers: UserControllers<'_>,
    ) -> Result<EndpointKind, Error> {
        match self {
            Self::Tcp(plan, application) => {
                let application = match listed_bytes(flow, number) {
                    Some(bytes) => {
                        ApplicationModel::Fixed(QuantitySampler::new(Quantity::Constant(bytes)))
                    }
                    None => application.clone(),
                };
                plan.nth(number, application).map(EndpointKind::Connection)
            }
            Self::Each | Self::Browser(_) => {
                let connection = nth_connection(flow, number);
                endpoints(&connection, run, &mut ControllerFactories::default(), user_controllers)
            }
        }
    }
}

/// Builds all flows of `run`.
pub(crate) fn flows(
    run: &RunSpec,
    user_controllers: UserControllers<'_>,
) -> Result<Vec<BuiltFlow>, Error> {
    // Allocated once, because growing would copy the endpoints, about 1 kB each.
    let mut flows = Vec::with_capacity(run.flows.len());
    let mut recipes = ControllerFactories::default();
    let mut shares = BTreeMap::new();
    for (position, (spec, opposite)) in run.flows.iter().zip(run.opposites()).enumerate() {
        let endpoints = match (shares.remove(&position), opposite) {
            (Some(share), _) => EndpointKind::Shared(share),
            (None, Some(opposite)) => {
                let other = &run.flows[opposite.index()];
                let mut build = |spec| tcp(spec, run, &mut recipes, user_controllers);
                let connections = [build(spec)?, build(other)?];
                let ids = [FlowId::at(position).into(), opposite.into()];
                let [own, others] = SharedConnection::join(connections, ids);
                shares.insert(opposite.index(), others);
                EndpointKind::Shared(own)
            }
            (None, None) => endpoints(spec, run, &mut recipes, user_controllers)?,
        };
        flows.push(BuiltFlow { endpoints, times: times(spec), followers: Vec::new() });
    }
    // One pass over all flows, instead of a search per flow.
    for (follower, spec) in (0..).map(FlowId).zip(&run.flows) {
        if let Some(leader) = spec.after.and_then(|leader| flows.get_mut(leader.index())) {
            leader.followers.push(follower);
        }
    }
    split(&mut flows, run);
    set_tunnels(&mut flows, run);
    Ok(flows)
}

/// Sets the proxy legs of split flows.
fn split(flows: &mut [BuiltFlow], run: &RunSpec) {
    let continuations = run.continuations();
    let mut origins: Vec<FlowId> = Vec::new();
    for (at, (flow, spec)) in (0..).map(FlowId).zip(flows.iter_mut().zip(&run.flows)) {
        let before = spec.source.relays();
        let origin = before.map_or(at, |before| origins[before.index()]);
        origins.push(origin);
        let next = continuations[at.index()];
        if let (EndpointKind::Connection(connection), true) =
            (&mut flow.endpoints, before.is_some() || next.is_some())
        {
            let mut leg =
                ProxyLeg::new(origin.into(), before.map(Into::into), next.map(Into::into));
            if let SourceSpec::Relay { buffer_bytes, .. } = spec.source {
                leg.buffer_bytes = buffer_bytes;
            }
            connection.set_proxy_leg(leg);
        }
    }
}

/// Makes the connections of tunnels carry packets.
fn set_tunnels(flows: &mut [BuiltFlow], run: &RunSpec) {
    for (at, (flow, spec)) in (0..).map(FlowId).zip(flows.iter_mut().zip(&run.flows)) {
        let Some(tunnel) = spec.source.tunnel() else { continue };
        match &mut flow.endpoints {
            EndpointKind::Connection(connection) => {
                let mut leg = ProxyLeg::new(at.into(), None, None);
                leg.buffer_bytes = tunnel.send_buffer_bytes;
                leg.tunnel = Some(TunnelStream::new(tunnel));
                connection.set_proxy_leg(leg);
            }
            EndpointKind::Quic(connection) => {
                connection.set_tunnel(TunnelDatagrams::new(tunnel));
            }
            _ => {}
        }
    }
}

fn times(spec: &FlowSpec) -> FlowTimes {
    let waits = spec.after.is_some() || spec.source.relays().is_some();
    FlowTimes {
        start: if waits { Time::NEVER } else { Time::from_ns(spec.start_ns) },
        wait: Span::from_ns(spec.start_ns),
        stop: spec.stop_ns.map_or(Time::NEVER, Time::from_ns),
    }
}

fn endpoints<'a>(
    spec: &'a FlowSpec,
    run: &RunSpec,
    recipes: &mut ControllerFactories<'a>,
    user_controllers: UserControllers<'_>,
) -> Result<EndpointKind, Error> {
    match (spec.transport, &spec.source) {
        (Transport::Tcp, _) => {
            tcp(spec, run, recipes, user_controllers).map(EndpointKind::Connection)
        }
        (Transport::Udp, &SourceSpec::Ping { bytes, every_ns, timeout_ns }) => {
            let (every, timeout) = (Span::from_ns(every_ns), Span::from_ns(timeout_ns));
            Ok(EndpointKind::Pings(Pinger::new(bytes as u16, every, timeout)))
        }
        (Transport::Quic, _) => {
            let ends = quic_ends(spec, run, user_controllers)?;
            let reader = spec.reader.as_ref().map(SlowReader::new);
            Ok(EndpointKind::Quic(Box::new(QuicConnection::new(ends, reader))))
        }
        (Transport::Udp, SourceSpec::Cbr(source)) => {
            Ok(EndpointKind::Datagrams(Datagrams::new(source)))
        }
        (Transport::Udp, SourceSpec::Tunnel(tunnel)) => {
            Ok(EndpointKind::UdpTunnel(UdpTunnel::new(tunnel, spec.ecn)))
        }
        (Transport::Udp, _) => Err(Error::unbuildable(&spec.name, "it is not sent in datagrams")),
    }
}

fn tcp<'a>(
    spec: &'a FlowSpec,
    run: &RunSpec,
    recipes: &mut ControllerFactories<'a>,
    user_controllers: UserControllers<'_>,
) -> Result<TcpConnection, Error> {
    let application = ApplicationModel::new(&spec.source);
    let own = from_user(spec, user_controllers);
    TcpPlan::of(spec, recipes.of(spec)?, run)?.only(application, own)
}

/// Builds the QUIC endpoints of a flow of `run`, also for use outside the simulator.
///
/// # Errors
/// Returns an error if it is not a QUIC flow, or if its controller cannot be created.
pub fn quic_ends(
    spec: &FlowSpec,
    run: &RunSpec,
    user_controllers: UserControllers<'_>,
) -> Result<QuicEndpoints, Error> {
    let streams = FlowRandomStreams::of(run.seed, &spec.name);
    let source = ApplicationModel::new(&spec.source)
        .source(streams)
        .with_request_delay(run.reverse_propagation(spec));
    let settings = quic_settings(spec, run, source.measures_messages())?;
    let congestion = if spec.controller.is_of_stack() {
        let stack = match spec.controller.name.as_str() {
            "noq:cubic" => StackController::Cubic,
            "noq:reno" => StackController::Reno,
            "noq:bbr3" => StackController::Bbr3,
            other => {
                return Err(Error::unbuildable(
                    &spec.name,
                    format_args!("there is no controller `{other}`"),
                ));
            }
        };
        Congestion::Stack(stack)
    } else {
        let own = from_user(spec, user_controllers);
        Congestion::Ours(ControllerFactory::of(spec)?.make(streams, own)?)
    };
    let client = QuicEndpoint::client(&settings, streams.stream("quic/client").bits(), congestion)
        .map_err(|e| Error::unbuildable(&spec.name, e))?;
    let server = QuicEndpoint::server(&settings, streams.stream("quic/server").bits())
        .map_err(|e| Error::unbuildable(&spec.name, e))?;
    let early = settings.handshake == Handshake::ZeroRtt;
    Ok(QuicEndpoints { client, server, source, early })
}

/// `has_messages` is true if the application waits for its messages.
fn quic_settings(spec: &FlowSpec, run: &RunSpec, has_messages: bool) -> Result<Settings, Error> {
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
    let default = Settings::default();
    Ok(Settings {
        datagram_bytes: bytes(quic.initial_mtu_bytes)?,
        discover_up_to_bytes: quic.mtu_discovery.then_some(largest),
        ack_frequency: quic.ack_frequency.map(|asked| AckFrequency {
            eliciting_threshold: asked.ack_eliciting_threshold,
            max_ack_delay: asked.max_ack_delay_ns.map(Span::from_ns),
            reordering_threshold: asked.reordering_threshold,
        }),
        packet_threshold: quic.packet_threshold.unwrap_or(default.packet_threshold),
        recovery: match quic.recovery {
            QuicRecovery::Rfc9002 => Recovery::Rfc9002,
            QuicRecovery::Prr => Recovery::Prr,
        },
        pacing: quic.pacing,
        unpaced_burst_packets: quic.burst_limit_packets,
        burst_datagrams: quic.gso_packets as u8,
        initial_window_packets: spec.initial_window_packets,
        // RFC 9114 §4.1: each response uses a separate stream.
        streams: if has_messages { 1 } else { quic.streams },
        stream_window_bytes: quic.stream_receive_window_bytes,
        connection_window_bytes: spec.receive_window_bytes,
        // As for TCP, the receive window limits a flow and not the send buffer.
        send_buffer_bytes: spec.receive_window_bytes.max(default.send_buffer_bytes),
        slow_reader: spec.reader.is_some(),
        timers: host_timers(spec),
        handshake: match quic.handshake {
            QuicHandshake::OneRtt => Handshake::OneRtt,
            QuicHandshake::ZeroRtt => Handshake::ZeroRtt,
        },
        crypto: match quic.crypto {
            QuicCrypto::None => Crypto::None,
            QuicCrypto::Tls => Crypto::Tls,
        },
        ecn: spec.ecn,
        datagrams: spec.source.tunnel().is_some(),
        log: log_title(run, spec),
        peer: spec.peer,
        ..default
    })
}
