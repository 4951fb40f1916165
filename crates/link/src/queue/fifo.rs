//! Backlog counter and FIFO storage of the queue disciplines.

use jostle_units::{RingBuffer, Time};

use super::{QueueDiscipline, QueueLimit};
use crate::packet::{DropReason, Packet, PacketOutcome};

/// Waiting bytes and packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    pub bytes: u64,
    pub packets: u64,
}

impl Backlog {
    /// Returns whether a packet of `size_bytes` fits within the limit.
    #[inline]
    pub fn fits(&self, size_bytes: u32, limit: QueueLimit) -> bool {
        match limit {
            QueueLimit::Bytes(limit) => self.bytes + u64::from(size_bytes) <= limit,
            QueueLimit::Packets(limit) => self.packets < limit,
        }
    }

    #[inline]
    pub fn add(&mut self, size_bytes: u32) {
        self.bytes += u64::from(size_bytes);
        self.packets += 1;
    }

    #[inline]
    pub fn remove(&mut self, size_bytes: u32) {
        self.bytes -= u64::from(size_bytes);
        self.packets -= 1;
    }

    /// Returns the backlog of a queue, such as the queue of a class.
    #[inline]
    pub fn of<B>(queue: &dyn QueueDiscipline<B>) -> Self {
        Self { bytes: queue.backlog_bytes(), packets: queue.backlog_packets() }
    }

    /// Replaces the backlog `before` of a class by `now` in the total.
    #[inline]
    pub fn follow(&mut self, before: Self, now: Self) {
        self.bytes = self.bytes - before.bytes + now.bytes;
        self.packets = self.packets - before.packets + now.packets;
    }
}

/// FIFO storage with its backlog.
#[derive(Debug)]
pub(crate) struct Fifo<B> {
    packets: RingBuffer<Packet<B>>,
    backlog: Backlog,
}

impl<B> Default for Fifo<B> {
    fn default() -> Self {
        Self { packets: RingBuffer::default(), backlog: Backlog::default() }
    }
}

impl<B: Copy> Fifo<B> {
    #[inline]
    pub fn push(&mut self, packet: Packet<B>) {
        self.backlog.add(packet.size_bytes);
        self.packets.push_back(packet);
    }

    /// Adds a packet, or drops it if it would exceed `limit`.
    #[inline]
    pub fn push_or_drop(
        &mut self,
        limit: QueueLimit,
        now: Time,
        packet: Packet<B>,
        outcome: &mut dyn PacketOutcome<B>,
    ) {
        if self.backlog.fits(packet.size_bytes, limit) {
            self.push(packet);
        } else {
            outcome.dropped(now, &packet, DropReason::Overflow);
        }
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Packet<B>> {
        let packet = self.packets.pop_front()?;
        self.backlog.remove(packet.size_bytes);
        debug_assert_eq!(self.packets.len() as u64, self.backlog.packets);
        debug_assert!(!self.packets.is_empty() || self.backlog.bytes == 0);
        Some(packet)
    }

    /// Returns the oldest packet.
    #[inline]
    pub fn head(&self) -> Option<&Packet<B>> {
        self.packets.front()
    }

    /// Returns the arrival time of the head.
    #[inline]
    pub fn head_queued_at(&self) -> Option<Time> {
        self.head().map(|packet| packet.queued_at)
    }

    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }
}
