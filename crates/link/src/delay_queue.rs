//! Habits of netem's delay: packets in it count towards a limit, and all packets of a GSO batch
//! have one random delay.

use jostle_units::{ConnectionId, Span, Time};

use crate::Packet;

/// Largest GSO batch (`include/linux/netdevice.h`: `GSO_LEGACY_MAX_SIZE`).
const BATCH_BYTES: u64 = 65_536;

/// Limit of the packets in a link's delay (Linux net/sched/sch_netem.c: the
/// limit of `netem_enqueue`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayQueue {
    /// Largest number of packets.
    pub limit_packets: u64,
    /// Whether packets that wait for the rate count as well, as with netem's `rate`.
    pub includes_queue: bool,
}

/// Delay of the packets that a host passed to the link at one instant, as one GSO batch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Batch {
    /// Connection and arrival of the batch; `None` before the first one.
    head: Option<(ConnectionId, Time)>,
    bytes: u64,
    delay: Span,
}

impl Batch {
    /// Returns the delay of a packet: its batch has one, or `draw` returns a new one.
    pub fn delay<B>(&mut self, packet: &Packet<B>, draw: impl FnOnce() -> Span) -> Span {
        let size_bytes = u64::from(packet.size_bytes);
        let head = Some((packet.connection, packet.queued_at));
        let continues = self.head == head && self.bytes + size_bytes <= BATCH_BYTES;
        if continues {
            self.bytes += size_bytes;
        } else {
            *self = Self { head, bytes: size_bytes, delay: draw() };
        }
        self.delay
    }
}
