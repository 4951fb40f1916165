//! Settings converted to the configuration of the QUIC stack.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use jostle_units::{RandomStream, Span};
use noq_proto::coding::Encodable;
use noq_proto::congestion::{
    Bbr3Config, Controller, ControllerFactory, CubicConfig, NewRenoConfig,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{
    AckFrequencyConfig, ClientConfig, ConnectionId, EndpointConfig, IdleTimeout,
    MtuDiscoveryConfig, ServerConfig, Side, TransportConfig, ValidationTokenConfig, VarInt,
};

use super::stream_reader::ArrivedFrames;
use crate::Error;
use crate::congestion::SharedCongestionState;
use crate::crypto::{
    ConnectionIds, InspectorPair, NullClient, NullHmac, NullServer, NullTokens, PacketInspector,
    Secrets, TlsClient, TlsServer, VirtualDay,
};
use crate::noq_controller::NoqControllerFactory;
use crate::qlog::QlogWriter;
use crate::settings::{Crypto, Handshake, Settings, StackController};

/// Addresses for the stack. They are not used for routing.
pub(super) const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 4433);
pub(super) const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 443);

/// Receive buffer for DATAGRAM frames. They are read at once.
const DATAGRAM_BUFFER_BYTES: usize = 1 << 20;

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_ns())
}

fn varint(key: &'static str, value: u64) -> Result<VarInt, Error> {
    VarInt::from_u64(value).map_err(|_| Error::Setting { key, value, accepted: "less than 2^62" })
}

/// Returns the configuration of an endpoint: random seed, connection IDs, maximum payload.
pub(super) fn endpoint(settings: &Settings, seed: u64, side: &'static str) -> Arc<EndpointConfig> {
    let mut config = EndpointConfig::new(Arc::new(NullHmac));
    let mut random = RandomStream::new(seed, side);
    let mut bytes = [0; 32];
    for chunk in bytes.chunks_exact_mut(8) {
        chunk.copy_from_slice(&random.bits().to_be_bytes());
    }
    config.rng_seed(Some(bytes));
    config.cid_generator(Arc::new(move || Box::new(ConnectionIds::new(seed, side))));
    let largest = settings.discover_up_to_bytes.unwrap_or(0).max(settings.datagram_bytes);
    // The stack accepts every size that `Settings::check` accepts.
    let _ = config.max_udp_payload_size(largest.max(1472));
    Arc::new(config)
}

/// Returns the transport configuration. Data flow in one direction only.
fn transport(settings: &Settings) -> Result<TransportConfig, Error> {
    let mut config = TransportConfig::default();
    let discovery = settings.discover_up_to_bytes.map(|bytes| {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(bytes);
        discovery
    });
    let idle_timeout = match settings.idle_timeout {
        None => None,
        Some(span) => Some(IdleTimeout::try_from(duration(span)).map_err(|_| Error::Setting {
            key: "idle_timeout",
            value: span.as_ns(),
            accepted: "less than 2^62 ms",
        })?),
    };
    config
        .initial_mtu(settings.datagram_bytes)
        .mtu_discovery_config(discovery)
        .initial_rtt(duration(settings.initial_rtt))
        .packet_threshold(settings.packet_threshold)
        .max_idle_timeout(idle_timeout)
        .send_window(settings.send_buffer_bytes)
        .stream_receive_window(varint("stream_window_bytes", settings.stream_window_bytes)?)
        .receive_window(varint("connection_window_bytes", settings.connection_window_bytes)?)
        .datagram_receive_buffer_size(settings.datagrams.then_some(DATAGRAM_BUFFER_BYTES));
    if settings.datagrams {
        // Losses do not reduce the size of datagrams, which cannot be fragmented.
        config.min_mtu(settings.datagram_bytes);
    }
    if let Some(frequency) = settings.ack_frequency {
        let mut wanted = AckFrequencyConfig::default();
        wanted
            .ack_eliciting_threshold(VarInt::from_u32(frequency.eliciting_threshold))
            .reordering_threshold(VarInt::from_u32(frequency.reordering_threshold))
            .max_ack_delay(frequency.max_ack_delay.map(duration));
        config.ack_frequency_config(Some(wanted));
    }
    Ok(config)
}

/// Returns the configuration of a client connection.
pub(super) fn client(
    settings: &Settings,
    seed: u64,
    congestion: Arc<SharedCongestionState>,
    stack: Option<StackController>,
    (secrets, log): (&Arc<Secrets>, Option<&Arc<QlogWriter>>),
) -> Result<ClientConfig, Error> {
    let mut transport = transport(settings)?;
    let stack = stack.map(|stack| factory(stack, settings));
    let shim = NoqControllerFactory { congestion: Arc::clone(&congestion), stack };
    let inspector: Arc<dyn PacketInspector> = match log {
        None => congestion,
        Some(log) => {
            Arc::new(InspectorPair(congestion, Arc::clone(log) as Arc<dyn PacketInspector>))
        }
    };
    transport.congestion_controller_factory(Arc::new(shim));
    let remembered = match settings.handshake {
        Handshake::OneRtt => None,
        Handshake::ZeroRtt => Some(remembered(settings)?),
    };
    let mut config = ClientConfig::new(match settings.crypto {
        Crypto::None => Arc::new(NullClient { inspector, remembered }),
        Crypto::Tls => Arc::new(TlsClient::new(inspector, Arc::clone(secrets), seed)?),
    });
    let id = RandomStream::new(seed, "initial").bits().to_be_bytes();
    config.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&id)));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// Returns the configuration of a server.
pub(super) fn server(
    settings: &Settings,
    seed: u64,
    (secrets, arrived): &(Arc<Secrets>, Arc<ArrivedFrames>),
    log: Option<Arc<QlogWriter>>,
) -> Result<ServerConfig, Error> {
    let arrived: Arc<dyn PacketInspector> = Arc::clone(arrived) as _;
    let inspector = match log {
        None => arrived,
        Some(log) => Arc::new(InspectorPair(arrived, log)),
    };
    let mut transport = transport(settings)?;
    transport.congestion_controller_factory(Arc::new(UnlimitedController));
    let crypto: Arc<dyn noq_proto::crypto::ServerConfig> = match settings.crypto {
        Crypto::None => Arc::new(NullServer {
            certificate_bytes: settings.certificate_bytes,
            early: settings.handshake == Handshake::ZeroRtt,
            inspector,
        }),
        Crypto::Tls => Arc::new(TlsServer::new(inspector, Arc::clone(secrets), seed)?),
    };
    let mut config = ServerConfig::new(crypto, Arc::new(NullTokens));
    let mut tokens = ValidationTokenConfig::default();
    tokens.sent(0);
    config
        .transport_config(Arc::new(transport))
        .validation_token_config(tokens)
        .time_source(Arc::new(VirtualDay));
    Ok(config)
}

fn factory(
    stack: StackController,
    settings: &Settings,
) -> Arc<dyn ControllerFactory + Send + Sync> {
    let window = u64::from(settings.initial_window_packets) * u64::from(settings.datagram_bytes);
    match stack {
        StackController::Cubic => {
            let mut config = CubicConfig::default();
            config.initial_window(window);
            Arc::new(config)
        }
        StackController::Reno => {
            let mut config = NewRenoConfig::default();
            config.initial_window(window);
            Arc::new(config)
        }
        StackController::Bbr3 => {
            let mut config = Bbr3Config::default();
            config.initial_window(window);
            Arc::new(config)
        }
    }
}

/// Returns the server's transport parameters that a client remembers for 0-RTT (RFC 9000 §7.4.1):
/// the limits for data to the server.
fn remembered(settings: &Settings) -> Result<TransportParameters, Error> {
    let mut bytes = Vec::new();
    let mut parameter = |id: u8, value: VarInt| {
        let mut encoded = Vec::with_capacity(8);
        value.encode(&mut encoded);
        bytes.extend_from_slice(&[id, encoded.len() as u8]);
        bytes.extend_from_slice(&encoded);
    };
    parameter(0x04, varint("connection_window_bytes", settings.connection_window_bytes)?);
    parameter(0x06, varint("stream_window_bytes", settings.stream_window_bytes)?);
    parameter(0x07, varint("stream_window_bytes", settings.stream_window_bytes)?);
    // `initial_max_streams_uni`: the stack's default.
    parameter(0x09, VarInt::from_u32(100));
    TransportParameters::read(Side::Client, &mut &bytes[..])
        .map_err(|error| Error::Connect(error.to_string()))
}

/// Controller without a limit, for an endpoint that sends only ACKs.
#[derive(Clone, Debug)]
struct UnlimitedController;

impl Controller for UnlimitedController {
    fn on_congestion_event(
        &mut self,
        _: std::time::Instant,
        _: std::time::Instant,
        _: bool,
        _: bool,
        _: u64,
        _: u64,
    ) {
    }

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        1 << 40
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}

impl ControllerFactory for UnlimitedController {
    fn build(self: Arc<Self>, _: std::time::Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Self)
    }
}
