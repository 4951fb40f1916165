//! An endpoint of the kit from a QUIC stack of the family of quinn. The module above names the stack
//! as `quic`, and defines the functions in which the stacks differ.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use jostle_testkit::{Datagram, Ecn, Endpoint, SenderState, Time, Transmit, VirtualClock};
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::time_provider::TimeProvider;

use super::quic::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use super::quic::{
    self, ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir,
    EcnCodepoint, EndpointConfig, Event, ServerConfig, StreamEvent, StreamId, TransportConfig,
};
use super::{accept, handle, new_endpoint, poll_transmit};

const CERTIFICATE: &[u8] = include_bytes!("../certificate/certificate.der");
const KEY: &[u8] = include_bytes!("../certificate/key.der");
const CHUNK: [u8; 16_384] = [7; 16_384];

/// Certificates are valid on every day of the machine that runs the tests.
#[derive(Debug)]
struct FixedDay;

impl TimeProvider for FixedDay {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(1_900_000_000)))
    }
}

/// A client or server with one connection. It sends messages, each on a stream of its own, and
/// counts what it receives.
pub struct QuicEndpoint {
    clock: VirtualClock,
    endpoint: quic::Endpoint,
    pub connection: Option<(ConnectionHandle, Connection)>,
    /// Bytes of messages that are not yet written.
    unwritten: Vec<(Option<StreamId>, u64)>,
    is_connected: bool,
    /// Time of the end of the handshake.
    pub connected_at: Option<Time>,
    pub lost: Option<ConnectionError>,
    /// Bytes that the application has read.
    pub received_bytes: u64,
    /// Messages received completely, with their times.
    pub received: Vec<Time>,
    /// Answers of the endpoint without a connection.
    responses: Vec<(quic::Transmit, Vec<u8>)>,
}

/// A transport configuration for high BDPs.
pub fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window((64u32 << 20).into())
        .receive_window((256u32 << 20).into())
        .send_window(64 << 20)
        .max_concurrent_uni_streams(10_000u32.into());
    transport
}

impl QuicEndpoint {
    fn new(seed: u64, server: Option<ServerConfig>) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8] = u8::from(server.is_some());
        let mut config = EndpointConfig::default();
        config.rng_seed(Some(bytes));
        Self {
            clock: VirtualClock::new(),
            endpoint: new_endpoint(Arc::new(config), server.map(Arc::new)),
            connection: None,
            unwritten: Vec::new(),
            is_connected: false,
            connected_at: None,
            lost: None,
            received_bytes: 0,
            received: Vec::new(),
            responses: Vec::new(),
        }
    }

    pub fn server(seed: u64, transport: TransportConfig) -> Self {
        let builder = rustls::ServerConfig::builder_with_details(
            default_provider().into(),
            Arc::new(FixedDay),
        );
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY.to_vec()));
        let tls = builder
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key)
            .unwrap();
        let tls = QuicServerConfig::try_from(tls).unwrap();
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(Arc::new(transport));
        Self::new(seed, Some(config))
    }

    /// Creates a client that connects at time 0.
    pub fn client(seed: u64, transport: TransportConfig, server: SocketAddr) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(CERTIFICATE)).unwrap();
        let builder = rustls::ClientConfig::builder_with_details(
            default_provider().into(),
            Arc::new(FixedDay),
        );
        let tls = builder
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
        config.transport_config(Arc::new(transport));
        let mut this = Self::new(seed, None);
        let start = this.clock.instant(Time::ZERO);
        this.connection = Some(this.endpoint.connect(start, config, server, "localhost").unwrap());
        this
    }

    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().expect("no connection").1
    }

    /// Sends a message when the connection is established.
    pub fn send(&mut self, bytes: u64) {
        self.unwritten.push((None, bytes));
        self.write();
    }

    /// Ends the current messages with what is already written.
    #[allow(dead_code, reason = "not every stack has a test that stops")]
    pub fn stop(&mut self) {
        if let Some((_, connection)) = &mut self.connection {
            for (stream, _) in self.unwritten.drain(..) {
                let _ = stream.map(|id| connection.send_stream(id).finish());
            }
        }
    }

    fn write(&mut self) {
        let Some((_, connection)) = &mut self.connection else { return };
        if !self.is_connected {
            return;
        }
        self.unwritten.retain_mut(|(stream, left)| {
            let id = match *stream {
                Some(id) => id,
                None => {
                    let Some(id) = connection.streams().open(Dir::Uni) else { return true };
                    *stream.insert(id)
                }
            };
            let mut stream = connection.send_stream(id);
            while *left > 0 {
                let chunk = &CHUNK[..CHUNK.len().min(*left as usize)];
                match stream.write(chunk) {
                    Ok(written) => *left -= written as u64,
                    Err(_) => return true,
                }
            }
            stream.finish().is_err()
        });
    }

    /// Reads all data of a stream.
    fn read(&mut self, now: Time, id: StreamId) {
        let Some((_, connection)) = &mut self.connection else { return };
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.received_bytes += chunk.bytes.len() as u64,
                Ok(None) => {
                    self.received.push(now);
                    break;
                }
                Err(_) => break,
            }
        }
        let _ = chunks.finalize();
    }

    /// Moves events between endpoint, connection and application.
    fn drive(&mut self, now: Time) {
        let Self { endpoint, connection, .. } = self;
        let Some((handle, connection)) = connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = self.connection.as_mut().and_then(|(_, it)| it.poll()) {
            match event {
                Event::Connected => {
                    self.is_connected = true;
                    self.connected_at = Some(now);
                }
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = self.connection().streams().accept(dir) {
                        self.read(now, id);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => self.read(now, id),
                _ => {}
            }
        }
        self.write();
    }
}

fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    EcnCodepoint::from_bits(ecn.bits())
}

impl Endpoint for QuicEndpoint {
    fn handle(&mut self, now: Time, datagram: &Datagram<'_>) {
        let instant = self.clock.instant(now);
        let data = BytesMut::from(datagram.payload);
        let mut buffer = Vec::new();
        let ecn = codepoint(datagram.ecn);
        let (from, to) = (datagram.source, datagram.destination.ip());
        match handle(&mut self.endpoint, instant, (from, to), ecn, data, &mut buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                self.connection = accept(&mut self.endpoint, incoming, instant, &mut buffer);
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(transmit)) => self.responses.push((transmit, buffer)),
            None => {}
        }
        self.drive(now);
    }

    fn poll_transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Transmit> {
        let transmit = if let Some((transmit, response)) = self.responses.pop() {
            payload.extend_from_slice(&response[..transmit.size]);
            transmit
        } else {
            self.drive(now);
            let (_, connection) = self.connection.as_mut()?;
            poll_transmit(connection, self.clock.instant(now), payload)?
        };
        payload.truncate(transmit.size);
        Some(Transmit {
            destination: transmit.destination,
            source: None,
            ecn: transmit.ecn.map_or(Ecn::NotCapable, |ecn| Ecn::from_bits(ecn as u8)),
            segment_bytes: transmit.segment_size,
        })
    }

    fn deadline(&mut self) -> Option<Time> {
        let (_, connection) = self.connection.as_mut()?;
        connection.poll_timeout().map(|instant| self.clock.time(instant))
    }

    fn on_deadline(&mut self, now: Time) {
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(self.clock.instant(now));
        }
        self.drive(now);
    }

    fn sender_state(&mut self) -> Option<SenderState> {
        let (_, connection) = self.connection.as_ref()?;
        Some(super::sender_state(connection))
    }
}
