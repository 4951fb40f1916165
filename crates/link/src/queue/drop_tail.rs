//! Drop-tail FIFO. Linux: `net/sched/sch_fifo.c`.

use jostle_registry::{QueueLimit, RegistryEntry};
use jostle_units::Time;

use super::{Fifo, QueueDiscipline};
use crate::packet::{Packet, PacketOutcome};
use crate::parameters;
use crate::registry::{QueueEntry, unrelated};

const ENTRY: RegistryEntry = RegistryEntry {
    name: "drop_tail",
    summary: "FIFO that drops arriving packets when it is full",
    class: "passive",
    based_on: &[],
    source: "Linux net/sched/sch_fifo.c (bfifo, pfifo)",
    parameters: &[parameters::limit(None)],
};

/// A FIFO queue that drops arriving packets when it is full.
#[derive(Debug)]
pub struct DropTail<B> {
    limit: QueueLimit,
    fifo: Fifo<B>,
}

impl<B: Copy + Send + 'static> DropTail<B> {
    pub(crate) const ROW: QueueEntry<B> = QueueEntry {
        entry: ENTRY,
        check: unrelated,
        build: |values, _| Box::new(Self::new(values.limit("limit"))),
    };
}

impl<B> DropTail<B> {
    pub(crate) fn new(limit: QueueLimit) -> Self {
        Self { limit, fifo: Fifo::default() }
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for DropTail<B> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        self.fifo.push_or_drop(self.limit, now, packet, outcome);
    }

    #[inline]
    fn dequeue(&mut self, _: Time, _: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
        self.fifo.pop()
    }

    fn head_bytes(&self) -> Option<u32> {
        self.fifo.head().map(|packet| packet.size_bytes)
    }

    fn drop_tail_limit(&self) -> Option<QueueLimit> {
        Some(self.limit)
    }

    fn backlog_bytes(&self) -> u64 {
        self.fifo.backlog().bytes
    }

    fn backlog_packets(&self) -> u64 {
        self.fifo.backlog().packets
    }
}
