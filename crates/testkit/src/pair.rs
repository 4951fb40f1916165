//! A test in one call: a client, a server, and a condition.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use jostle_qlog::SenderState;
use jostle_units::{Span, Time};

use crate::{Datagram, Endpoint, Link, Measures, Network, Side, Simulation, Transmit, UdpHost};
use crate::{HostCounts, HostId, Unfinished};

/// Address of the client in [`simulate`].
pub const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 40_000);
/// Address of the server in [`simulate`].
pub const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 1, 1)), 443);

/// Result of [`simulate`].
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome<C, S> {
    /// Time at which the condition was met.
    pub end: Time,
    /// Client.
    pub client: C,
    /// Server.
    pub server: S,
    /// Packets that the client sent and received.
    pub client_counts: HostCounts,
    /// Packets that the server sent and received.
    pub server_counts: HostCounts,
    /// Measures from 0 to the end.
    pub measures: Measures,
}

/// Connects a client at [`CLIENT`] and a server at [`SERVER`], and runs until a condition of both is
/// met.
///
/// The client is on the left side: its packets cross the forward links. A [`Link`] as the network is
/// in both directions.
///
/// # Errors
/// If the condition is not met by `limit`, or can no longer be met.
///
/// # Panics
/// If the network is invalid.
pub fn simulate<C: Endpoint, S: Endpoint>(
    network: impl Into<Network>,
    seed: u64,
    (client, server): (C, S),
    limit: Span,
    mut is_met: impl FnMut(&C, &S) -> bool,
) -> Result<Outcome<C, S>, Unfinished> {
    let simulation = Simulation::new(&network.into(), seed);
    let mut simulation = simulation.unwrap_or_else(|error| panic!("{error}"));
    let client = simulation.add(Side::Left, UdpHost::new(CLIENT, Either::Client(client)));
    let server = simulation.add(Side::Right, UdpHost::new(SERVER, Either::Server(server)));
    let end = simulation.run_until(Time::ZERO + limit, |simulation| {
        match (&simulation[client].endpoint, &simulation[server].endpoint) {
            (Either::Client(client), Either::Server(server)) => is_met(client, server),
            _ => unreachable!("each host has the kind with which it was added"),
        }
    })?;
    let measures = simulation.measures();
    let counts = |host: HostId| simulation.counts(host);
    let (client_counts, server_counts) = (counts(client), counts(server));
    let mut endpoints = simulation.into_hosts().map(|host| host.endpoint);
    match (endpoints.next(), endpoints.next()) {
        (Some(Either::Client(client)), Some(Either::Server(server))) => {
            Ok(Outcome { end, client, server, client_counts, server_counts, measures })
        }
        _ => unreachable!("hosts are returned in the order in which they were added"),
    }
}

/// Hosts of a simulation have one type.
enum Either<C, S> {
    Client(C),
    Server(S),
}

macro_rules! both {
    ($value:expr, $endpoint:ident => $call:expr) => {
        match $value {
            Either::Client($endpoint) => $call,
            Either::Server($endpoint) => $call,
        }
    };
}

impl<C: Endpoint, S: Endpoint> Endpoint for Either<C, S> {
    fn handle(&mut self, now: Time, datagram: &Datagram<'_>) {
        both!(self, endpoint => endpoint.handle(now, datagram));
    }

    fn poll_transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Transmit> {
        both!(self, endpoint => endpoint.poll_transmit(now, payload))
    }

    fn deadline(&mut self) -> Option<Time> {
        both!(self, endpoint => endpoint.deadline())
    }

    fn on_deadline(&mut self, now: Time) {
        both!(self, endpoint => endpoint.on_deadline(now));
    }

    fn sender_state(&mut self) -> Option<SenderState> {
        both!(self, endpoint => endpoint.sender_state())
    }
}

impl From<&Link> for Network {
    fn from(link: &Link) -> Self {
        Self::symmetric(link)
    }
}

impl From<Link> for Network {
    fn from(link: Link) -> Self {
        Self::symmetric(&link)
    }
}

impl From<&Network> for Network {
    fn from(network: &Network) -> Self {
        network.clone()
    }
}
