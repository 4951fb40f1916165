//! Queues that take turns as in FQ-CoDel (RFC 8290, section 4): deficit round robin in bytes, with
//! queues that were empty ahead of the others for one quantum.

use std::collections::VecDeque;

use jostle_catalogue::{Kind, Parameter};

use crate::parameters::packets;

pub(super) const QUANTUM: Parameter = Parameter {
    name: "quantum",
    summary: "bytes that a queue may send per round",
    // With less, as Linux says, it would spend its time turning rounds.
    kind: Kind::Size { default_bytes: Some(packets(1)), min_bytes: 256, max_bytes: 1 << 20 },
};

pub(super) const QUEUES: Parameter = Parameter {
    name: "queues",
    summary: "number of queues that flows are hashed to",
    // Linux takes as many.
    kind: Kind::Integer { default: 1_024, min: 1, max: 65_536 },
};

/// The hash of a flow: the finaliser of MurmurHash3, which gives no two flows the same. Linux perturbs
/// its hashes at random; here a flow's number alone decides, so that runs repeat.
#[inline]
pub(super) fn hash_of(flow: u32) -> u32 {
    let mut hash = flow;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

/// The one of `queues` that a flow is hashed to.
#[inline]
pub(super) fn bucket_of(flow: u32, queues: usize) -> usize {
    ((u64::from(hash_of(flow)) * queues as u64) >> 32) as usize
}

/// Whose turn it is.
#[derive(Debug)]
pub(super) struct Turns {
    quantum_bytes: i64,
    queues: Vec<Turn>,
    /// Queues that have their first turn since they were empty.
    new: VecDeque<u32>,
    /// Queues that had one.
    old: VecDeque<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// Bytes that the queue may still send in this round.
    deficit_bytes: i64,
    /// Whether it is in one of the lists.
    listed: bool,
}

impl Turns {
    pub fn new(queues: usize, quantum_bytes: u32) -> Self {
        Self {
            quantum_bytes: i64::from(quantum_bytes),
            queues: vec![Turn::default(); queues],
            new: VecDeque::new(),
            old: VecDeque::new(),
        }
    }

    /// A packet came into the queue. Says whether the queue is a new one.
    #[inline]
    pub fn arrived(&mut self, index: usize) -> bool {
        let turn = &mut self.queues[index];
        let new = !turn.listed;
        if new {
            *turn = Turn { deficit_bytes: self.quantum_bytes, listed: true };
            self.new.push_back(index as u32);
        }
        new
    }

    /// The queue whose turn it is; none if no queue is listed.
    #[inline]
    pub fn current(&mut self) -> Option<usize> {
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

    /// The current queue sent a packet.
    #[inline]
    pub fn sent(&mut self, index: usize, size_bytes: u32) {
        self.queues[index].deficit_bytes -= i64::from(size_bytes);
    }

    /// The current queue had nothing. RFC 8290, 4.2: an empty new queue moves to the old ones, lest
    /// a flow that sends now and then starves them; an empty old one leaves.
    #[inline]
    pub fn was_empty(&mut self, index: usize) {
        let from_new = !self.new.is_empty();
        if from_new {
            self.new.pop_front()
        } else {
            self.old.pop_front()
        };
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
        (0..10_240).for_each(|flow| hits[bucket_of(flow, 1024)] += 1);
        // Poisson with mean 10: more than 30 in any of 1024 has a probability below 10⁻⁴.
        assert!(hits.iter().all(|n| *n <= 30));
        assert!(hits.iter().filter(|n| **n == 0).count() < 5);
    }
}
