//! What all disciplines keep: an account of what waits, and a first-in-first-out store.

use jostle_units::{Ring, Time};

use super::Limit;
use crate::packet::{Fate, Packet, Reason};

/// How much waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    pub bytes: u64,
    pub packets: u64,
}

impl Backlog {
    /// Whether a packet of `size_bytes` fits beside what waits.
    #[inline]
    pub fn has_room(&self, size_bytes: u32, limit: Limit) -> bool {
        match limit {
            Limit::Bytes(limit) => self.bytes + u64::from(size_bytes) <= limit,
            Limit::Packets(limit) => self.packets < limit,
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
}

/// A first-in-first-out store with its account.
#[derive(Debug)]
pub(crate) struct Fifo<B> {
    packets: Ring<Packet<B>>,
    backlog: Backlog,
}

impl<B> Default for Fifo<B> {
    fn default() -> Self {
        Self { packets: Ring::default(), backlog: Backlog::default() }
    }
}

impl<B: Copy> Fifo<B> {
    #[inline]
    pub fn push(&mut self, packet: Packet<B>) {
        self.backlog.add(packet.size_bytes);
        self.packets.push_back(packet);
    }

    /// Takes a packet in, or drops it where it would exceed `limit`.
    #[inline]
    pub fn push_within(
        &mut self,
        limit: Limit,
        now: Time,
        packet: Packet<B>,
        fate: &mut dyn Fate<B>,
    ) {
        if self.backlog.has_room(packet.size_bytes, limit) {
            self.push(packet);
        } else {
            fate.dropped(now, &packet, Reason::Overflow);
        }
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Packet<B>> {
        let packet = self.packets.pop_front()?;
        self.backlog.remove(packet.size_bytes);
        Some(packet)
    }

    /// The packet that has waited longest.
    #[inline]
    pub fn head(&self) -> Option<&Packet<B>> {
        self.packets.front()
    }

    /// When the head was queued.
    #[inline]
    pub fn head_queued_at(&self) -> Option<Time> {
        self.head().map(|packet| packet.queued_at)
    }

    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }
}
