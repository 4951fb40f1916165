//! What protects packets: by default nothing, with the sizes of what would.

mod null;
mod tls;

use std::sync::Arc;

pub(crate) use null::{Ids, NullClient, NullHmac, NullServer, NullTokens, VirtualDay};
pub(crate) use tls::{Secrets, TlsClient, TlsServer};

/// How a packet is protected (RFC 9001 §2.1), which says in which space its number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 0-RTT and 1-RTT packets, which share their numbers.
    Data,
}

/// Sees packets in the clear. The stack tells a controller neither of the space of a packet nor of what
/// its frames say.
pub(crate) trait Witness: Send + Sync {
    /// A packet is about to be sealed.
    fn sealing(&self, level: Level, packet: u64, header: &[u8], payload: &[u8]);

    /// A packet was opened. What its ACK brings about follows.
    fn opened(&self, level: Level, packet: u64, header: &[u8], payload: &[u8]);
}

/// Both see packets, the first one first.
pub(crate) struct Both(pub Arc<dyn Witness>, pub Arc<dyn Witness>);

impl Witness for Both {
    fn sealing(&self, level: Level, packet: u64, header: &[u8], payload: &[u8]) {
        self.0.sealing(level, packet, header, payload);
        self.1.sealing(level, packet, header, payload);
    }

    fn opened(&self, level: Level, packet: u64, header: &[u8], payload: &[u8]) {
        self.0.opened(level, packet, header, payload);
        self.1.opened(level, packet, header, payload);
    }
}
