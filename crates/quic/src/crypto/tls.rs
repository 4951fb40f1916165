//! TLS 1.3 (RFC 9001) by rustls. All random numbers come from the connection's random stream, so
//! that the same seed gives the same bytes. Unencrypted packets are passed to an inspector, as
//! without cryptography, and the secrets are logged.
//!
//! Session resumption is not supported, so there is no 0-RTT.

mod deterministic_random;

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use jostle_units::RandomStream;
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey,
    ServerConfig, Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, PathId, Side, TransportError};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::time_provider::TimeProvider;
use rustls::{
    CertificateError, DigitallySignedStruct, Error as TlsError, KeyLog, SignatureScheme, version,
};

use super::{EncryptionLevel, PacketInspector};
use crate::Error;

/// Self-signed certificate; its private key is public. Ed25519 (RFC 8410) signatures need no random
/// numbers and have a fixed length.
const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.der");
const KEY: &[u8] = include_bytes!("tls/key.der");
/// Unregistered ALPN protocol: the streams contain zeros.
const PROTOCOL: &[u8] = b"jo";

/// Secrets of connections in the format of `SSLKEYLOGFILE` (draft-ietf-tls-keylogfile).
#[derive(Debug, Default)]
pub(crate) struct Secrets(Mutex<String>);

impl Secrets {
    /// Returns the complete lines that were logged since the last call.
    pub fn take(&self) -> Option<String> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!lines.is_empty()).then(|| std::mem::take(&mut *lines))
    }
}

impl KeyLog for Secrets {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        use std::fmt::Write;

        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hexadecimal = |lines: &mut String, bytes: &[u8]| {
            // Writing to a string does not fail.
            let _ = bytes.iter().try_for_each(|byte| write!(lines, "{byte:02x}"));
        };
        lines.push_str(label);
        for bytes in [client_random, secret] {
            lines.push(' ');
            hexadecimal(&mut lines, bytes);
        }
        lines.push('\n');
    }
}

/// Fixed time of all handshakes. Certificates are not checked for expiry.
#[derive(Debug)]
struct VirtualMoment;

impl TimeProvider for VirtualMoment {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::ZERO))
    }
}

/// Verifier that accepts only the built-in certificate.
#[derive(Debug)]
struct PinnedCertVerifier(Arc<CryptoProvider>);

impl ServerCertVerifier for PinnedCertVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        if certificate.as_ref() == CERTIFICATE {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(TlsError::InvalidCertificate(CertificateError::UnknownIssuer))
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        // RFC 9001 §4.2: "Clients MUST NOT offer TLS versions older than 1.3."
        Err(TlsError::General("TLS 1.2 is not offered".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn refused(error: impl std::fmt::Display) -> Error {
    Error::Connect(format!("TLS: {error}"))
}

/// Client configuration.
pub(crate) struct TlsClient {
    config: QuicClientConfig,
    inspector: Arc<dyn PacketInspector>,
    seed: u64,
}

impl TlsClient {
    /// Creates the configuration. `inspector` inspects all packets.
    pub fn new(
        inspector: Arc<dyn PacketInspector>,
        secrets: Arc<Secrets>,
        seed: u64,
    ) -> Result<Self, Error> {
        let provider = Arc::new(deterministic_random::provider());
        let verifier = Arc::new(PinnedCertVerifier(Arc::clone(&provider)));
        let time = Arc::new(VirtualMoment);
        let mut config = rustls::ClientConfig::builder_with_details(provider, time)
            .with_protocol_versions(&[&version::TLS13])
            .map_err(refused)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.resumption = rustls::client::Resumption::disabled();
        config.key_log = secrets;
        let config = QuicClientConfig::try_from(config).map_err(refused)?;
        Ok(Self { config, inspector, seed })
    }
}

impl ClientConfig for TlsClient {
    fn start_session(
        &self,
        version: u32,
        name: &str,
        mine: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let mut random = RandomStream::new(self.seed, "tls/client");
        let started = deterministic_random::with(&mut random, || {
            self.config.start_session(version, name, mine)
        });
        let inspector = Arc::clone(&self.inspector);
        Ok(Box::new(SeededSession { inner: started?, random, inspector, keys_given: 0 }))
    }
}

/// Server configuration.
pub(crate) struct TlsServer {
    config: QuicServerConfig,
    inspector: Arc<dyn PacketInspector>,
    seed: u64,
}

impl TlsServer {
    /// Creates the configuration. `inspector` inspects all packets.
    pub fn new(
        inspector: Arc<dyn PacketInspector>,
        secrets: Arc<Secrets>,
        seed: u64,
    ) -> Result<Self, Error> {
        let (provider, time) =
            (Arc::new(deterministic_random::provider()), Arc::new(VirtualMoment));
        let mut config = rustls::ServerConfig::builder_with_details(provider, time)
            .with_protocol_versions(&[&version::TLS13])
            .map_err(refused)?
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from(CERTIFICATE)],
                PrivatePkcs8KeyDer::from(KEY).into(),
            )
            .map_err(refused)?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.key_log = secrets;
        let config = QuicServerConfig::try_from(config).map_err(refused)?;
        Ok(Self { config, inspector, seed })
    }
}

impl ServerConfig for TlsServer {
    fn initial_keys(&self, version: u32, peer: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        let Keys { header, packet } = self.config.initial_keys(version, peer)?;
        Ok(Keys { header, packet: shown_pair(&self.inspector, EncryptionLevel::Initial, packet) })
    }

    fn retry_tag(&self, version: u32, peer: ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.config.retry_tag(version, peer, packet)
    }

    fn start_session(&self, version: u32, mine: &TransportParameters) -> Box<dyn Session> {
        let mut random = RandomStream::new(self.seed, "tls/server");
        let inner =
            deterministic_random::with(&mut random, || self.config.start_session(version, mine));
        Box::new(SeededSession {
            inner,
            random,
            inspector: Arc::clone(&self.inspector),
            keys_given: 0,
        })
    }
}

/// TLS session with a separate random stream.
struct SeededSession {
    inner: Box<dyn Session>,
    random: RandomStream,
    inspector: Arc<dyn PacketInspector>,
    /// Number of key pairs returned so far: first handshake keys, then 1-RTT keys.
    keys_given: u8,
}

/// Wraps the keys of a level so that `inspector` inspects their packets.
fn shown_pair(
    inspector: &Arc<dyn PacketInspector>,
    level: EncryptionLevel,
    KeyPair { local, remote }: KeyPair<Box<dyn PacketKey>>,
) -> KeyPair<Box<dyn PacketKey>> {
    let shown = |key| -> Box<dyn PacketKey> {
        Box::new(InspectedKey { key, level, inspector: Arc::clone(inspector) })
    };
    KeyPair { local: shown(local), remote: shown(remote) }
}

impl Session for SeededSession {
    fn initial_keys(&self, peer: ConnectionId, side: Side) -> Keys {
        let Keys { header, packet } = self.inner.initial_keys(peer, side);
        Keys { header, packet: shown_pair(&self.inspector, EncryptionLevel::Initial, packet) }
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        deterministic_random::with(&mut self.random, || self.inner.read_handshake(bytes))
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let Keys { header, packet } =
            deterministic_random::with(&mut self.random, || self.inner.write_handshake(out))?;
        let level =
            if self.keys_given == 0 { EncryptionLevel::Handshake } else { EncryptionLevel::Data };
        self.keys_given += 1;
        Some(Keys { header, packet: shown_pair(&self.inspector, level, packet) })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        Some(shown_pair(&self.inspector, EncryptionLevel::Data, keys))
    }

    fn is_valid_retry(&self, original: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(original, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

/// Packet key that passes unencrypted packets to an inspector.
struct InspectedKey {
    key: Box<dyn PacketKey>,
    level: EncryptionLevel,
    inspector: Arc<dyn PacketInspector>,
}

impl PacketKey for InspectedKey {
    fn encrypt(&self, path: PathId, number: u64, packet: &mut [u8], header_bytes: usize) {
        let end = packet.len().saturating_sub(self.key.tag_len());
        if let Some((header, payload)) =
            packet.get(..end).and_then(|clear| clear.split_at_checked(header_bytes))
        {
            self.inspector.sealing(self.level, number, header, payload);
        }
        self.key.encrypt(path, number, packet, header_bytes);
    }

    fn decrypt(
        &self,
        path: PathId,
        number: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        self.key.decrypt(path, number, header, payload)?;
        self.inspector.opened(self.level, number, header, payload);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.key.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.key.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.key.integrity_limit()
    }
}
