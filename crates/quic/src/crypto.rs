//! Packet protection: no encryption by default, but with the packet sizes of TLS.

mod null;
mod tls;

use std::sync::Arc;

pub(crate) use null::{ConnectionIds, NullClient, NullHmac, NullServer, NullTokens, VirtualDay};
pub(crate) use tls::{Secrets, TlsClient, TlsServer};

/// Encryption level of a packet (RFC 9001 §2.1), which determines its packet number space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EncryptionLevel {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 0-RTT and 1-RTT packets, which share a packet number space.
    Data,
}

/// Inspector of unencrypted packets. It is needed because the stack reports neither the packet
/// number space nor the frames of a packet to a controller.
pub(crate) trait PacketInspector: Send + Sync {
    /// Inspects a packet that is about to be sealed.
    fn sealing(&self, level: EncryptionLevel, packet: u64, header: &[u8], payload: &[u8]);

    /// Inspects a packet that was opened. The effects of its ACK are reported later.
    fn opened(&self, level: EncryptionLevel, packet: u64, header: &[u8], payload: &[u8]);
}

/// Two inspectors; the first one is called first.
pub(crate) struct InspectorPair(pub Arc<dyn PacketInspector>, pub Arc<dyn PacketInspector>);

impl PacketInspector for InspectorPair {
    fn sealing(&self, level: EncryptionLevel, packet: u64, header: &[u8], payload: &[u8]) {
        self.0.sealing(level, packet, header, payload);
        self.1.sealing(level, packet, header, payload);
    }

    fn opened(&self, level: EncryptionLevel, packet: u64, header: &[u8], payload: &[u8]) {
        self.0.opened(level, packet, header, payload);
        self.1.opened(level, packet, header, payload);
    }
}
