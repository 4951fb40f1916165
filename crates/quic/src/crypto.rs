//! What protects packets: by default nothing, with the sizes of what would.

mod null;

use std::sync::Arc;

use crate::governor::{Governor, Shared};

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

/// Shows packets in the clear to the governor of a sender. The stack tells a controller neither of the
/// space of a packet nor of what its frames say.
#[derive(Clone)]
pub(crate) struct Tap {
    level: Level,
    governor: Arc<Shared>,
}

impl Tap {
    pub const fn new(level: Level, governor: Arc<Shared>) -> Self {
        Self { level, governor }
    }

    /// A packet is about to be sealed.
    #[inline]
    pub fn sealing(&self, number: u64, payload: &[u8]) {
        self.with(|governor| governor.on_sealing(self.level, number, payload));
    }

    /// A packet was opened.
    #[inline]
    pub fn opened(&self, payload: &[u8]) {
        self.with(|governor| governor.on_opened(self.level, payload));
    }

    #[inline]
    fn with(&self, action: impl FnOnce(&mut Governor)) {
        action(&mut self.governor.lock());
    }
}
