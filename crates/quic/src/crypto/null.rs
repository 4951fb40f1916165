//! A handshake without cryptography. Packets have the sizes that TLS 1.3 with AES-GCM produces, at
//! no computing cost. The same seed gives the same bytes.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::BytesMut;
use jostle_units::RandomStream;
use noq_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey,
    KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{
    ConnectError, ConnectionId, ConnectionIdGenerator, PathId, Side, TimeSource, TransportError,
    TransportErrorCode,
};

use super::{EncryptionLevel, PacketInspector};

/// AES-GCM tag (RFC 9001 §5.3: "16 bytes larger").
const TAG_BYTES: usize = 16;
// Sizes of the messages of rustls 0.23.46 with ring (X25519, an ECDSA P-256 certificate,
// TLS_AES_256_GCM_SHA384, ALPN "h3", server name "localhost"), measured once without transport
// parameters.
/// ClientHello without transport parameters.
const CLIENT_HELLO_BYTES: usize = 192;
/// ServerHello.
const SERVER_HELLO_BYTES: usize = 90;
/// Messages of the server after ServerHello, without transport parameters and certificate:
/// EncryptedExtensions (23), Certificate framing (13), CertificateVerify (78), Finished (52).
const SERVER_FLIGHT_BYTES: usize = 23 + 13 + 78 + 52;
/// Finished with SHA-384 (RFC 8446 §4.4.4): a header of 4 bytes and a hash of 48.
const CLIENT_FINISHED_BYTES: usize = 52;

/// Message types (RFC 8446 §4).
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const ENCRYPTED_EXTENSIONS: u8 = 8;
const FINISHED: u8 = 20;

/// Length of a connection ID, as in the stack's own generators.
const ID_BYTES: usize = 8;

struct NullKey {
    level: EncryptionLevel,
    /// Number of key updates before this key.
    generation: u64,
    inspector: Arc<dyn PacketInspector>,
}

impl NullKey {
    /// Returns the tag of a packet. As with a cipher, it differs for other keys and other packet
    /// numbers: a late packet of an earlier key would look like a key update of the peer, and the
    /// truncated number of a late packet may be expanded to a wrong one (RFC 9000 §17.1).
    fn tag(&self, number: u64) -> [u8; TAG_BYTES] {
        (u128::from(self.generation) << 64 | u128::from(number)).to_be_bytes()
    }
}

impl PacketKey for NullKey {
    fn encrypt(&self, _: PathId, number: u64, packet: &mut [u8], header_bytes: usize) {
        if let Some((header, rest)) = packet.split_at_mut_checked(header_bytes)
            && let Some((payload, tag)) = rest.split_last_chunk_mut::<TAG_BYTES>()
        {
            *tag = self.tag(number);
            self.inspector.sealing(self.level, number, header, payload);
        }
    }

    fn decrypt(
        &self,
        _: PathId,
        number: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let Some((data, tag)) = payload.split_last_chunk::<TAG_BYTES>() else {
            return Err(CryptoError);
        };
        if *tag != self.tag(number) {
            return Err(CryptoError);
        }
        payload.truncate(data.len());
        self.inspector.opened(self.level, number, header, payload);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for NullKey {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG_BYTES
    }
}

/// HMAC key without security: a hash distinguishes tokens and resets.
pub(crate) struct NullHmac;

impl HmacKey for NullHmac {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        // FNV-1a.
        let hash = data.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        for (i, byte) in (0..).zip(signature) {
            *byte = (hash.rotate_left(i * 7) >> 13) as u8;
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }
}

/// Token key without encryption.
pub(crate) struct NullTokens;

impl HandshakeTokenKey for NullTokens {
    fn seal(&self, _: u128, _: &mut Vec<u8>) -> Result<(), CryptoError> {
        Ok(())
    }

    fn open<'a>(&self, _: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        Ok(data)
    }
}

/// Fixed date of all runs. Tokens contain a date.
pub(crate) struct VirtualDay;

impl TimeSource for VirtualDay {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// Generator of connection IDs with a separate random stream.
pub(crate) struct ConnectionIds {
    random: RandomStream,
}

impl ConnectionIds {
    pub fn new(seed: u64, side: &str) -> Self {
        Self { random: RandomStream::new(seed, side) }
    }
}

impl ConnectionIdGenerator for ConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.random.bits().to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// State of a handshake: the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    ClientHello,
    ServerHello,
    ServerFlight,
    ClientFinished,
    Done,
}

struct NullSession {
    side: Side,
    step: Step,
    /// Size of the server's EncryptedExtensions, certificates and Finished.
    flight_bytes: usize,
    mine: Vec<u8>,
    peer: Option<TransportParameters>,
    /// Incomplete message received so far.
    partial: Vec<u8>,
    inspector: Arc<dyn PacketInspector>,
    has_handshake_keys: bool,
    /// Number of key updates.
    generation: u64,
    /// 0-RTT is possible: the client has the server's parameters from an earlier connection.
    early: bool,
}

impl NullSession {
    fn key(&self, level: EncryptionLevel) -> NullKey {
        NullKey { level, generation: self.generation, inspector: Arc::clone(&self.inspector) }
    }

    fn keys(&self, level: EncryptionLevel) -> Keys {
        Keys {
            header: KeyPair { local: Box::new(self.key(level)), remote: Box::new(self.key(level)) },
            packet: KeyPair { local: Box::new(self.key(level)), remote: Box::new(self.key(level)) },
        }
    }

    /// Appends a message of at least `bytes`.
    fn write(&self, kind: u8, bytes: usize, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&[kind, 0, 0, 0]);
        let mut end = begin + bytes;
        if matches!(kind, CLIENT_HELLO | ENCRYPTED_EXTENSIONS) {
            out.extend_from_slice(&(self.mine.len() as u16).to_be_bytes());
            out.extend_from_slice(&self.mine);
            end += self.mine.len();
        }
        out.resize(end, 0);
        let length = ((out.len() - begin - 4) as u32).to_be_bytes();
        out[begin + 1..begin + 4].copy_from_slice(&length[1..]);
    }

    /// Processes a complete message.
    fn take(&mut self, kind: u8, body: &[u8]) -> Result<bool, TransportError> {
        self.step = match (self.side, self.step, kind) {
            (Side::Server, Step::ClientHello, CLIENT_HELLO) => Step::ServerHello,
            (Side::Client, Step::ServerHello, SERVER_HELLO) => Step::ServerFlight,
            (Side::Client, Step::ServerFlight, ENCRYPTED_EXTENSIONS) => Step::ClientFinished,
            (Side::Server, Step::ClientFinished, FINISHED) => Step::Done,
            _ => return Err(unexpected()),
        };
        if !matches!(kind, CLIENT_HELLO | ENCRYPTED_EXTENSIONS) {
            return Ok(false);
        }
        let (length, rest) = body.split_at_checked(2).ok_or_else(unexpected)?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        let mut parameters = rest.get(..length).ok_or_else(unexpected)?;
        self.peer = Some(TransportParameters::read(self.side, &mut parameters)?);
        Ok(true)
    }
}

fn unexpected() -> TransportError {
    TransportError::new(TransportErrorCode::PROTOCOL_VIOLATION, "unexpected message".to_owned())
}

impl Session for NullSession {
    fn initial_keys(&self, _: ConnectionId, _: Side) -> Keys {
        self.keys(EncryptionLevel::Initial)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let key = || NullKey { generation: 0, ..self.key(EncryptionLevel::Data) };
        self.early.then(|| -> (Box<dyn HeaderKey>, Box<dyn PacketKey>) {
            (Box::new(key()), Box::new(key()))
        })
    }

    fn early_data_accepted(&self) -> Option<bool> {
        Some(self.early)
    }

    fn is_handshaking(&self) -> bool {
        self.step != Step::Done
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.partial.extend_from_slice(bytes);
        let mut news = false;
        while let [kind, high, middle, low, ..] = self.partial[..] {
            let length = u32::from_be_bytes([0, high, middle, low]) as usize;
            if self.partial.len() < 4 + length {
                break;
            }
            let rest = self.partial.split_off(4 + length);
            let message = std::mem::replace(&mut self.partial, rest);
            news |= self.take(kind, &message[4..])?;
        }
        Ok(news)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        match (self.side, self.step) {
            (Side::Client, Step::ClientHello) => {
                self.write(CLIENT_HELLO, CLIENT_HELLO_BYTES, out);
                self.step = Step::ServerHello;
                None
            }
            (Side::Server, Step::ServerHello) => {
                self.write(SERVER_HELLO, SERVER_HELLO_BYTES, out);
                self.step = Step::ServerFlight;
                Some(self.keys(EncryptionLevel::Handshake))
            }
            (Side::Server, Step::ServerFlight) => {
                self.write(ENCRYPTED_EXTENSIONS, self.flight_bytes, out);
                self.step = Step::ClientFinished;
                Some(self.keys(EncryptionLevel::Data))
            }
            (Side::Client, Step::ServerFlight) if !self.has_handshake_keys => {
                self.has_handshake_keys = true;
                Some(self.keys(EncryptionLevel::Handshake))
            }
            (Side::Client, Step::ClientFinished) => {
                self.write(FINISHED, CLIENT_FINISHED_BYTES, out);
                self.step = Step::Done;
                Some(self.keys(EncryptionLevel::Data))
            }
            _ => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.generation += 1;
        Some(KeyPair {
            local: Box::new(self.key(EncryptionLevel::Data)),
            remote: Box::new(self.key(EncryptionLevel::Data)),
        })
    }

    fn is_valid_retry(&self, _: ConnectionId, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

/// Client configuration.
pub(crate) struct NullClient {
    /// Inspector of all packets.
    pub inspector: Arc<dyn PacketInspector>,
    /// Parameters of the server from an earlier connection; they enable 0-RTT.
    pub remembered: Option<TransportParameters>,
}

impl ClientConfig for NullClient {
    fn start_session(
        &self,
        _: u32,
        _: &str,
        mine: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(NullSession {
            side: Side::Client,
            step: Step::ClientHello,
            flight_bytes: 0,
            mine: encoded(mine),
            peer: self.remembered,
            partial: Vec::new(),
            inspector: Arc::clone(&self.inspector),
            has_handshake_keys: false,
            generation: 0,
            early: self.remembered.is_some(),
        }))
    }
}

/// Server configuration.
pub(crate) struct NullServer {
    /// Size of the server's certificates.
    pub certificate_bytes: u16,
    /// Whether the server accepts 0-RTT.
    pub early: bool,
    /// Inspector of all packets.
    pub inspector: Arc<dyn PacketInspector>,
}

impl ServerConfig for NullServer {
    fn initial_keys(&self, _: u32, _: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        let key = || NullKey {
            level: EncryptionLevel::Initial,
            generation: 0,
            inspector: Arc::clone(&self.inspector),
        };
        Ok(Keys {
            header: KeyPair { local: Box::new(key()), remote: Box::new(key()) },
            packet: KeyPair { local: Box::new(key()), remote: Box::new(key()) },
        })
    }

    fn retry_tag(&self, _: u32, _: ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(&self, _: u32, mine: &TransportParameters) -> Box<dyn Session> {
        Box::new(NullSession {
            side: Side::Server,
            step: Step::ClientHello,
            flight_bytes: SERVER_FLIGHT_BYTES + usize::from(self.certificate_bytes),
            mine: encoded(mine),
            peer: None,
            partial: Vec::new(),
            inspector: Arc::clone(&self.inspector),
            has_handshake_keys: false,
            generation: 0,
            early: self.early,
        })
    }
}

fn encoded(parameters: &TransportParameters) -> Vec<u8> {
    let mut bytes = Vec::new();
    parameters.write(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Blind;

    impl PacketInspector for Blind {
        fn sealing(&self, _: EncryptionLevel, _: u64, _: &[u8], _: &[u8]) {}
        fn opened(&self, _: EncryptionLevel, _: u64, _: &[u8], _: &[u8]) {}
    }

    #[test]
    fn a_packet_of_another_key_or_number_is_not_opened() {
        let key = |generation| NullKey {
            level: EncryptionLevel::Data,
            generation,
            inspector: Arc::new(Blind),
        };
        let mut packet = *b"header, data, and a tag of 16...";
        PacketKey::encrypt(&key(3), PathId::ZERO, 1, &mut packet, 6);
        for (generation, number) in [(2, 1), (3, 0), (3, 1), (3, 257), (4, 1)] {
            let mut payload = BytesMut::from(&packet[6..]);
            let (key, header) = (key(generation), &packet[..6]);
            let opened = PacketKey::decrypt(&key, PathId::ZERO, number, header, &mut payload);
            let is_same = (generation, number) == (3, 1);
            assert_eq!(opened.is_ok(), is_same);
            assert_eq!(payload.len(), if is_same { 10 } else { 26 });
        }
    }
}
