//! Settings as the stack has them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use jostle_units::{Span, Stream};
use noq_proto::coding::Encodable;
use noq_proto::congestion::{
    Bbr3Config, Controller, ControllerFactory, CubicConfig, NewRenoConfig,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{
    AckFrequencyConfig, ClientConfig, ConnectionId, EndpointConfig, IdleTimeout,
    MtuDiscoveryConfig, ServerConfig, Side, TransportConfig, ValidationTokenConfig, VarInt,
};

use crate::Error;
use crate::crypto::{
    Both, Ids, NullClient, NullHmac, NullServer, NullTokens, Secrets, TlsClient, TlsServer,
    VirtualDay, Witness,
};
use crate::governor::Shared;
use crate::qlog::Log;
use crate::settings::{Crypto, Handshake, Settings, Stack};
use crate::shim::ShimFactory;

/// Both ends have an address for the stack; packets are not routed by it.
pub(super) const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 4433);
pub(super) const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 443);

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_ns())
}

fn varint(key: &'static str, value: u64) -> Result<VarInt, Error> {
    VarInt::from_u64(value).map_err(|_| Error::Setting { key, value, accepted: "less than 2^62" })
}

/// What an endpoint draws and how it identifies connections.
pub(super) fn endpoint(settings: &Settings, seed: u64, side: &'static str) -> Arc<EndpointConfig> {
    let mut config = EndpointConfig::new(Arc::new(NullHmac));
    let mut random = Stream::new(seed, side);
    let mut bytes = [0; 32];
    for chunk in bytes.chunks_exact_mut(8) {
        chunk.copy_from_slice(&random.bits().to_be_bytes());
    }
    config.rng_seed(Some(bytes));
    config.cid_generator(Arc::new(move || Box::new(Ids::new(seed, side))));
    let largest = settings.discover_up_to_bytes.unwrap_or(0).max(settings.datagram_bytes);
    // A size that `Settings::check` has let pass is one that the stack takes.
    let _ = config.max_udp_payload_size(largest.max(1472));
    Arc::new(config)
}

/// The transport's own settings; the data go one way.
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
        .datagram_receive_buffer_size(None);
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

/// What the client connects with.
pub(super) fn client(
    settings: &Settings,
    seed: u64,
    governor: Arc<Shared>,
    stack: Option<Stack>,
    (secrets, log): (&Arc<Secrets>, Option<&Arc<Log>>),
) -> Result<ClientConfig, Error> {
    let mut transport = transport(settings)?;
    let stack = stack.map(|stack| factory(stack, settings));
    let shim = ShimFactory { governor: Arc::clone(&governor), stack };
    let witness: Arc<dyn Witness> = match log {
        None => governor,
        Some(log) => Arc::new(Both(governor, Arc::clone(log) as Arc<dyn Witness>)),
    };
    transport.congestion_controller_factory(Arc::new(shim));
    let remembered = match settings.handshake {
        Handshake::OneRtt => None,
        Handshake::ZeroRtt => Some(remembered(settings)?),
    };
    let mut config = ClientConfig::new(match settings.crypto {
        Crypto::None => Arc::new(NullClient { witness, remembered }),
        Crypto::Tls => Arc::new(TlsClient::new(witness, Arc::clone(secrets), seed)?),
    });
    let id = Stream::new(seed, "initial").bits().to_be_bytes();
    config.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&id)));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// What the server accepts with.
pub(super) fn server(
    settings: &Settings,
    seed: u64,
    secrets: &Arc<Secrets>,
    log: Option<Arc<Log>>,
) -> Result<ServerConfig, Error> {
    let witness = log.map(|log| log as Arc<dyn Witness>);
    let mut transport = transport(settings)?;
    transport.congestion_controller_factory(Arc::new(Free));
    let crypto: Arc<dyn noq_proto::crypto::ServerConfig> = match settings.crypto {
        Crypto::None => Arc::new(NullServer {
            certificate_bytes: settings.certificate_bytes,
            early: settings.handshake == Handshake::ZeroRtt,
            witness,
        }),
        Crypto::Tls => Arc::new(TlsServer::new(witness, Arc::clone(secrets), seed)?),
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

fn factory(stack: Stack, settings: &Settings) -> Arc<dyn ControllerFactory + Send + Sync> {
    let window = u64::from(settings.initial_window_packets) * u64::from(settings.datagram_bytes);
    match stack {
        Stack::Cubic => {
            let mut config = CubicConfig::default();
            config.initial_window(window);
            Arc::new(config)
        }
        Stack::Reno => {
            let mut config = NewRenoConfig::default();
            config.initial_window(window);
            Arc::new(config)
        }
        Stack::Bbr3 => {
            let mut config = Bbr3Config::default();
            config.initial_window(window);
            Arc::new(config)
        }
    }
}

/// The parameters of the server as a client remembers them for 0-RTT (RFC 9000 §7.4.1): what limits
/// data that go to the server.
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

/// What limits an end that sends only ACKs: nothing.
#[derive(Clone, Debug)]
struct Free;

impl Controller for Free {
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

impl ControllerFactory for Free {
    fn build(self: Arc<Self>, _: std::time::Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Self)
    }
}
