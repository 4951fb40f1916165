//! Frame aggregation: a link sends several packets together after it has gained access to the
//! medium.
//!
//! In Wi-Fi (A-MPDUs, IEEE 802.11-2016 §9.7) and with the grants of cable and satellite networks, a
//! station waits for the medium, then sends many waiting packets at once, and the receiver forwards
//! them at once. Data and ACKs that arrived one by one therefore leave in bursts, and a single
//! packet waits for the medium alone.

use jostle_units::{RandomStream, Span};

use crate::delay::Quantiles;
use crate::{Framing, Packet};

/// Limits of a frame, and waiting time for the medium before each frame.
pub struct FrameAggregation<B> {
    most_packets: usize,
    most_bytes: u64,
    contention: Quantiles,
    random: RandomStream,
    framing: Framing,
    /// The link has gained the medium for the next service.
    has_won: bool,
    /// Frame under construction; empty between two services.
    pub(crate) packets: Vec<Packet<B>>,
    bytes: u64,
}

impl<B: Copy> FrameAggregation<B> {
    /// Creates the aggregation of frames of up to `most_packets` and `most_bytes`, but of at least
    /// one packet. Each frame waits for a random time from `contention`.
    pub fn new(
        most_packets: u32,
        most_bytes: u64,
        contention: Quantiles,
        random: RandomStream,
    ) -> Self {
        let most_packets = most_packets as usize;
        let packets = Vec::with_capacity(most_packets);
        Self {
            most_packets,
            most_bytes,
            contention,
            random,
            framing: Framing::NONE,
            has_won: false,
            packets,
            bytes: 0,
        }
    }

    /// Sets the framing of the packets in a frame, which counts towards its size.
    #[must_use]
    pub fn with_framing(self, framing: Framing) -> Self {
        Self { framing, ..self }
    }

    /// Starts to wait for the medium and returns the waiting time, or `None` if the link has gained
    /// the medium already.
    pub(crate) fn contend(&mut self) -> Option<Span> {
        self.has_won = !self.has_won;
        self.has_won.then(|| self.contention.value(self.random.uniform()))
    }

    /// Releases the medium, because the link has nothing to send.
    pub(crate) fn give_up(&mut self) {
        self.has_won = false;
    }

    /// Returns whether the frame has room for another packet of the size of the last one. The size
    /// of the next packet is unknown until the queue returns it.
    pub(crate) fn can_add_packet(&self) -> bool {
        match self.packets.last() {
            None => true,
            Some(last) => {
                let larger = self.bytes + u64::from(self.framing.wire_bytes(last.size_bytes));
                self.packets.len() < self.most_packets && larger <= self.most_bytes
            }
        }
    }

    /// Adds a packet to the frame.
    pub(crate) fn add(&mut self, packet: Packet<B>) {
        self.bytes += u64::from(self.framing.wire_bytes(packet.size_bytes));
        self.packets.push(packet);
    }

    /// Starts a new, empty frame.
    pub(crate) fn begin(&mut self) {
        self.packets.clear();
        self.bytes = 0;
    }
}
