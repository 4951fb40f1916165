//! quinn-proto of the package registry as an endpoint.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use jostle_testkit::{SenderState, Span};
pub use quinn_proto as quic;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, Incoming,
    ServerConfig, Transmit,
};

#[path = "quic_host/host.rs"]
pub mod host;

fn new_endpoint(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Endpoint {
    Endpoint::new(config, server, true, None)
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    (from, to): (SocketAddr, IpAddr),
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    buffer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, from, Some(to), ecn, data, buffer)
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
    connection.poll_transmit(now, 10, payload)
}

fn sender_state(connection: &Connection) -> SenderState {
    let path = connection.stats().path;
    let metrics = connection.congestion_state().metrics();
    SenderState {
        srtt: Span::from_ns(path.rtt.as_nanos() as u64),
        cwnd_bytes: path.cwnd,
        ssthresh_bytes: metrics.ssthresh.filter(|bytes| *bytes < u64::MAX),
        datagram_bytes: path.current_mtu.into(),
        ..SenderState::default()
    }
}
