//! What protects packets: by default nothing, with the sizes of what would.

mod null;

pub(crate) use null::{Ids, NullClient, NullHmac, NullServer, NullTokens, VirtualDay};

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
    fn sealing(&self, level: Level, packet: u64, payload: &[u8]);

    /// A packet was opened. What its ACK brings about follows.
    fn opened(&self, level: Level, payload: &[u8]);
}
