//! noq-proto as an endpoint.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use jostle_testkit::SenderState;
pub use noq_proto as quic;
use noq_proto::{
    Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, FourTuple,
    Incoming, ServerConfig, Transmit,
};

#[path = "quic_host/host.rs"]
pub mod host;

const SEGMENTS: NonZeroUsize = NonZeroUsize::new(10).unwrap();

fn new_endpoint(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Endpoint {
    Endpoint::new(config, server, true)
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    (from, to): (SocketAddr, IpAddr),
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    buffer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, FourTuple::new(from, Some(to)), ecn, data, buffer)
}

fn accept(
    endpoint: &mut Endpoint,
    incoming: Incoming,
    now: Instant,
    buffer: &mut Vec<u8>,
) -> Option<(ConnectionHandle, Connection)> {
    endpoint.accept(incoming, now, buffer, None).ok()
}

fn poll_transmit(
    connection: &mut Connection,
    now: Instant,
    payload: &mut Vec<u8>,
) -> Option<Transmit> {
    connection.poll_transmit(now, SEGMENTS, payload)
}

/// noq has a state for each of several paths.
fn sender_state(_: &Connection) -> SenderState {
    SenderState::default()
}
