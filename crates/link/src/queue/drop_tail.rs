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

#[cfg(test)]
mod tests {
    use super::super::test_support::{RecordedOutcomes, packet};
    use super::*;
    use crate::packet::DropReason;

    /// bfifo: "backlog + size <= limit"; the packet in transmission does not count.
    #[test]
    fn bytes_fill_a_queue_to_its_limit() {
        let mut fates = RecordedOutcomes::default();
        let mut queue = DropTail::new(QueueLimit::Bytes(3_000));
        let mut is_accepted = |queue: &mut DropTail<()>, size_bytes| {
            let before = fates.dropped.len();
            queue.enqueue(Time::ZERO, packet(size_bytes), &mut fates);
            fates.dropped.len() == before
        };
        assert_eq!(
            [1_500, 1_501, 1_500, 1].map(|b| is_accepted(&mut queue, b)),
            [true, false, true, false]
        );
        assert_eq!((queue.backlog_bytes(), queue.backlog_packets()), (3_000, 2));
        assert_eq!(
            queue.dequeue(Time::ZERO, &mut RecordedOutcomes::default()).unwrap().size_bytes,
            1_500
        );
        assert_eq!((queue.backlog_bytes(), queue.backlog_packets()), (1_500, 1));
        assert_eq!([1_501, 1_500, 1].map(|b| is_accepted(&mut queue, b)), [false, true, false]);
        assert_eq!(fates.dropped, [(Time::ZERO, DropReason::Overflow); 4]);
    }

    /// pfifo: the size of a packet does not matter.
    #[test]
    fn packets_fill_a_queue_to_its_limit() {
        let (mut queue, mut fates) =
            (DropTail::new(QueueLimit::Packets(2)), RecordedOutcomes::default());
        assert_eq!(queue.head_bytes(), None);
        for size_bytes in [9_000, 60, 1] {
            queue.enqueue(Time::ZERO, packet(size_bytes), &mut fates);
        }
        assert_eq!((queue.backlog_bytes(), fates.dropped.len()), (9_060, 1));
        assert_eq!(queue.head_bytes(), Some(9_000), "the head is the oldest");
        assert_eq!(queue.drop_tail_limit(), Some(QueueLimit::Packets(2)));
    }
}
