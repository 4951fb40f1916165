//! First in, first out; what does not fit is dropped. Linux: `net/sched/sch_fifo.c`.

use jostle_units::Time;

use super::{Fifo, Limit, QueueDiscipline};
use crate::packet::{Fate, Packet};

/// A first-in-first-out queue that drops arrivals which do not fit.
#[derive(Debug)]
pub struct DropTail<B> {
    limit: Limit,
    fifo: Fifo<B>,
}

impl<B> DropTail<B> {
    /// An empty queue that holds up to `limit`.
    pub fn new(limit: Limit) -> Self {
        Self { limit, fifo: Fifo::default() }
    }
}

impl<B: Send> QueueDiscipline<B> for DropTail<B> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: Packet<B>, fate: &mut dyn Fate<B>) {
        self.fifo.push_within(self.limit, now, packet, fate);
    }

    #[inline]
    fn dequeue(&mut self, _: Time, _: &mut dyn Fate<B>) -> Option<Packet<B>> {
        self.fifo.pop()
    }

    fn bytes(&self) -> u64 {
        self.fifo.backlog().bytes
    }

    fn packets(&self) -> u64 {
        self.fifo.backlog().packets
    }
}
