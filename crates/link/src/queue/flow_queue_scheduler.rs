//! Scheduler of FQ-CoDel (RFC 8290 §4): deficit round robin in bytes, with priority for new
//! queues for one quantum.

use std::collections::VecDeque;

use jostle_registry::Parameter;
use jostle_units::ConnectionId;

use crate::parameters::packets;

/// As Linux notes, a smaller quantum would waste time on rounds without a transmission.
pub(super) const QUANTUM: Parameter = Parameter::size("quantum", Some(packets(1)), 256..=1 << 20)
    .summary("bytes that a queue may send per round");

pub(super) const QUEUES: Parameter = Parameter::integer("queues", 1_024, 1..=65_536)
    .summary("number of queues that flows are hashed to");

/// Hashes the number of a flow or host by the finaliser of MurmurHash3, which maps different numbers
/// to different hashes.
/// Linux perturbs its hashes at random; here only the number counts, so that runs are
/// reproducible.
#[inline]
pub(super) fn hash_of(number: u32) -> u32 {
    let mut hash = number;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

/// Returns the queue of a flow.
#[inline]
pub(super) fn bucket_of(connection: ConnectionId, queues: usize) -> usize {
    ((u64::from(hash_of(connection.0)) * queues as u64) >> 32) as usize
}

/// Scheduler state.
#[derive(Debug)]
pub(super) struct FlowQueueScheduler {
    quantum_bytes: i64,
    queues: Vec<QueueDeficit>,
    /// Queues in their first turn since they were empty.
    new: VecDeque<u32>,
    /// Queues that have had a turn.
    old: VecDeque<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct QueueDeficit {
    /// Bytes that the queue can still send in this round.
    deficit_bytes: i64,
    /// Whether the queue is in one of the lists.
    listed: bool,
}

impl FlowQueueScheduler {
    pub fn new(queues: usize, quantum_bytes: u32) -> Self {
        Self {
            quantum_bytes: i64::from(quantum_bytes),
            queues: vec![QueueDeficit::default(); queues],
            new: VecDeque::new(),
            old: VecDeque::new(),
        }
    }

    /// Handles an arrival in a queue. Returns whether the queue was not listed before.
    #[inline]
    pub fn on_enqueue(&mut self, index: usize) -> bool {
        let turn = &mut self.queues[index];
        let new = !turn.listed;
        if new {
            *turn = QueueDeficit { deficit_bytes: self.quantum_bytes, listed: true };
            self.new.push_back(index as u32);
        }
        new
    }

    /// Returns the queue whose turn it is, or `None` if no queue is listed.
    #[inline]
    pub fn next_queue(&mut self) -> Option<usize> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let turn = &mut self.queues[index as usize];
            if turn.deficit_bytes > 0 {
                return Some(index as usize);
            }
            turn.deficit_bytes += self.quantum_bytes;
            list.pop_front();
            self.old.push_back(index);
        }
    }

    /// Accounts for a packet sent from the current queue.
    #[inline]
    pub fn on_dequeue(&mut self, index: usize, size_bytes: u32) {
        debug_assert!(self.queues[index].listed, "a packet of queue {index}, which is not listed");
        self.queues[index].deficit_bytes -= i64::from(size_bytes);
    }

    /// Handles an empty current queue. RFC 8290 §4.2: an empty new queue moves to the old queues,
    /// so that a sparse flow cannot starve them; an empty old queue is removed.
    #[inline]
    pub fn on_queue_empty(&mut self, index: usize) {
        let from_new = !self.new.is_empty();
        let removed = if from_new { self.new.pop_front() } else { self.old.pop_front() };
        debug_assert_eq!(removed, Some(index as u32), "the turn of another queue");
        if from_new && !self.old.is_empty() {
            self.old.push_back(index as u32);
        } else {
            self.queues[index].listed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_spread_over_the_queues() {
        let mut hits = vec![0u32; 1024];
        (0..10_240).for_each(|flow| hits[bucket_of(ConnectionId(flow), 1024)] += 1);
        // Poisson with mean 10: more than 30 in any of 1024 has a probability below 10⁻⁴.
        assert!(hits.iter().all(|n| *n <= 30));
        assert!(hits.iter().filter(|n| **n == 0).count() < 5);
    }
}
