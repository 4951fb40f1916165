//! First in, first out; what does not fit is dropped. Linux: `net/sched/sch_fifo.c`.

use jostle_catalogue::{Entry, Limit};
use jostle_units::Time;

use super::{Fifo, QueueDiscipline};
use crate::packet::{Fate, Packet};
use crate::parameters;
use crate::registry::{QueueRow, unrelated};

const ENTRY: Entry = Entry {
    name: "drop_tail",
    summary: "First in, first out; arrivals that do not fit are dropped",
    class: "passive",
    based_on: &[],
    source: "Linux net/sched/sch_fifo.c (bfifo, pfifo)",
    parameters: &[parameters::limit(None)],
};

/// A first-in-first-out queue that drops arrivals which do not fit.
#[derive(Debug)]
pub struct DropTail<B> {
    limit: Limit,
    fifo: Fifo<B>,
}

impl<B: Copy + Send + 'static> DropTail<B> {
    pub(crate) const ROW: QueueRow<B> = QueueRow {
        entry: ENTRY,
        check: unrelated,
        build: |values, _| Box::new(Self::new(values.limit("limit"))),
    };
}

impl<B> DropTail<B> {
    pub(crate) fn new(limit: Limit) -> Self {
        Self { limit, fifo: Fifo::default() }
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for DropTail<B> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: Packet<B>, fate: &mut dyn Fate<B>) {
        self.fifo.push_within(self.limit, now, packet, fate);
    }

    #[inline]
    fn dequeue(&mut self, _: Time, _: &mut dyn Fate<B>) -> Option<Packet<B>> {
        self.fifo.pop()
    }

    fn head_bytes(&self) -> Option<u32> {
        self.fifo.head().map(|packet| packet.size_bytes)
    }

    fn drop_tail_limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn bytes(&self) -> u64 {
        self.fifo.backlog().bytes
    }

    fn packets(&self) -> u64 {
        self.fifo.backlog().packets
    }
}
