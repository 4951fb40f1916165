//! A tin of CAKE: the queues of its flows, served by deficit round robin with COBALT in each.

use std::collections::VecDeque;

use jostle_units::{RandomStream, Rate, RingBuffer, Span, Time};

use super::super::Backlog;
use super::cobalt::{CobaltParameters, CobaltState};
use super::diffserv::TinShare;
use super::host_isolation::{HostLoads, Isolation};
use super::set_associative_hash::{QUEUES, SetAssociativeHash};
use crate::packet::Packet;

/// A tin.
#[derive(Debug)]
pub(super) struct Tin<B> {
    pub queues: Vec<Queue<B>>,
    /// Bytes in each queue, stored separately so that the search for the longest queue is fast.
    pub bytes: Vec<u64>,
    pub loads: Option<Box<HostLoads>>,
    pub parameters: CobaltParameters,
    pub backlog: Backlog,
    sets: SetAssociativeHash,
    lists: FlowLists,
    /// Quantum of a flow.
    quantum_bytes: i64,
    /// Rate up to which the tin is served before tins with a lower index.
    rate: Option<Rate>,
    /// Time until which the tin has used its rate (`time_next_packet`).
    pub next: Time,
    /// Bytes that the tin may send per round, if there is no shaper.
    pub tin_quantum_bytes: i64,
    pub tin_deficit_bytes: i64,
    /// Queues in the lists of new and old queues (`sparse_flow_count`, `bulk_flow_count`).
    listed: u32,
}

/// The three lists of queues. An empty queue stays in a list until its COBALT state has decayed.
#[derive(Debug, Default)]
struct FlowLists {
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    /// Queue index and its `rests` when it was added. An entry with an old value is stale, because
    /// the queue has received a packet since.
    decaying: VecDeque<(u32, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlowSet {
    Nowhere,
    New,
    Old,
    Decaying,
}

#[derive(Debug)]
pub(super) struct Queue<B> {
    pub packets: RingBuffer<Packet<B>>,
    pub cobalt: CobaltState,
    pub deficit_bytes: i64,
    set: FlowSet,
    /// Indices of the flow's hosts in [`HostLoads`], and whether the flow is counted there
    /// (`CAKE_SET_BULK`).
    pub host_indices: [u32; 2],
    pub bulk: bool,
    /// Number of times that the queue became idle.
    rests: u32,
}

impl<B> Tin<B> {
    pub fn new(share: TinShare, isolation: Isolation, rtt: Span) -> Self {
        let empty = |_| Queue {
            packets: RingBuffer::default(),
            cobalt: CobaltState::default(),
            deficit_bytes: 0,
            set: FlowSet::Nowhere,
            host_indices: [0; 2],
            bulk: false,
            rests: 0,
        };
        Self {
            queues: (0..QUEUES).map(empty).collect(),
            bytes: vec![0; QUEUES],
            loads: HostLoads::new(isolation),
            parameters: CobaltParameters::new(rtt, share.rate),
            backlog: Backlog::default(),
            sets: SetAssociativeHash::new(),
            lists: FlowLists::default(),
            quantum_bytes: quantum_bytes(share.rate),
            rate: share.rate,
            next: Time::ZERO,
            tin_quantum_bytes: share.quantum_bytes,
            tin_deficit_bytes: 0,
            listed: 0,
        }
    }

    /// Returns whether the tin can be served.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.listed > 0
    }

    /// Returns the queue of a flow.
    pub fn index_of(&mut self, hash: Option<u32>, ends: [u32; 2]) -> usize {
        let Some(hash) = hash else { return 0 };
        let queues = &self.queues;
        let found = self.sets.queue_for_hash(hash, |index| queues[index].set != FlowSet::Nowhere);
        if let (Some(loads), false) = (&mut self.loads, found.known) {
            // The queue is reassigned to another flow, or shared because its set is full.
            let queue = &mut self.queues[found.index];
            if queue.bulk {
                loads.count(queue.host_indices, false);
            }
            queue.host_indices = loads.host_indices(ends);
            if queue.bulk {
                loads.count(queue.host_indices, true);
            }
        }
        found.index
    }

    /// Returns the quantum of a queue.
    #[inline]
    fn quantum_of(&mut self, index: usize, random: &mut RandomStream) -> i64 {
        match &self.loads {
            None => self.quantum_bytes,
            Some(loads) => {
                let host_indices = self.queues[index].host_indices;
                loads.flow_quantum(self.quantum_bytes, host_indices, random)
            }
        }
    }

    /// Adds a bulk flow (one with more to send than its quantum) to the load of its hosts, or
    /// removes it.
    #[inline]
    fn share(&mut self, index: usize, bulk: bool) {
        let queue = &mut self.queues[index];
        if let Some(loads) = &mut self.loads
            && queue.bulk != bulk
        {
            queue.bulk = bulk;
            loads.count(queue.host_indices, bulk);
        }
    }

    /// Puts a packet into a queue. [`list`](Self::list) puts the queue into a list.
    #[inline]
    pub fn push(&mut self, index: usize, packet: Packet<B>)
    where
        B: Copy,
    {
        self.bytes[index] += u64::from(packet.size_bytes);
        self.backlog.add(packet.size_bytes);
        self.queues[index].packets.push_back(packet);
    }

    /// Puts the queue of an arrived packet into a list, unless it is in one.
    #[inline]
    pub fn list(&mut self, index: usize, random: &mut RandomStream) {
        match self.queues[index].set {
            FlowSet::Nowhere | FlowSet::Decaying => {
                let quantum_bytes = self.quantum_of(index, random);
                let queue = &mut self.queues[index];
                queue.set = FlowSet::New;
                queue.deficit_bytes = quantum_bytes;
                self.lists.new.push_back(index as u32);
                self.listed += 1;
            }
            // The queue was empty at the end of its first turn (`CAKE_SET_SPARSE_WAIT`).
            FlowSet::Old => self.share(index, true),
            FlowSet::New => {}
        }
    }

    #[inline]
    pub fn take(&mut self, index: usize) -> Option<Packet<B>>
    where
        B: Copy,
    {
        let packet = self.queues[index].packets.pop_front()?;
        self.remove(index, packet.size_bytes);
        Some(packet)
    }

    /// Counts a packet that left queue `index`.
    #[inline]
    pub fn remove(&mut self, index: usize, size_bytes: u32) {
        self.bytes[index] -= u64::from(size_bytes);
        self.backlog.remove(size_bytes);
    }

    /// Returns the queue whose turn it is. `first` is true for the first attempt per packet, which
    /// checks a decaying queue.
    pub fn current(&mut self, first: bool, random: &mut RandomStream) -> Option<usize> {
        loop {
            let FlowLists { new, old, decaying } = &mut self.lists;
            while let Some((index, rest)) = decaying.front() {
                let queue = &self.queues[*index as usize];
                if queue.set == FlowSet::Decaying && queue.rests == *rest {
                    break;
                }
                decaying.pop_front();
            }
            let decays = decaying.front().map(|(index, _)| *index as usize);
            if first && decays.is_some() {
                return decays;
            }
            let list = if new.is_empty() { old } else { new };
            let Some(index) = list.front().copied() else { return decays };
            let queue = &mut self.queues[index as usize];
            if queue.deficit_bytes > 0 {
                return Some(index as usize);
            }
            list.pop_front();
            if queue.set == FlowSet::New && self.bytes[index as usize] > 0 {
                self.share(index as usize, true);
            }
            let quantum_bytes = self.quantum_of(index as usize, random);
            let queue = &mut self.queues[index as usize];
            queue.deficit_bytes += quantum_bytes;
            queue.set = FlowSet::Old;
            self.lists.old.push_back(index);
        }
    }

    /// Removes an empty queue from its list, and adds it to the decaying queues if its COBALT state
    /// has not decayed.
    pub fn rest(&mut self, index: usize, now: Time) {
        self.share(index, false);
        let queue = &mut self.queues[index];
        match queue.set {
            FlowSet::New => _ = self.lists.new.pop_front(),
            FlowSet::Old => _ = self.lists.old.pop_front(),
            _ => _ = self.lists.decaying.pop_front(),
        }
        self.listed -= u32::from(queue.set != FlowSet::Decaying);
        if queue.cobalt.was_empty(&self.parameters, now) {
            queue.set = FlowSet::Nowhere;
        } else {
            queue.set = FlowSet::Decaying;
            queue.rests = queue.rests.wrapping_add(1);
            self.lists.decaying.push_back((index as u32, queue.rests));
        }
    }

    /// `sch_cake.c::cake_advance_shaper`, the part for the tin.
    #[inline]
    pub fn sent(&mut self, now: Time, counted_bytes: u32) {
        self.tin_deficit_bytes -= i64::from(counted_bytes);
        let Some(rate) = self.rate else { return };
        let takes = rate.time_for(u64::from(counted_bytes));
        self.next = if self.next < now { self.next + takes } else { self.next.max(now + takes) };
    }
}

/// `sch_cake.c::cake_set_rate`: returns the bytes that the tin sends in 1/4096 s at its rate,
/// between 300 and 1514.
fn quantum_bytes(rate: Option<Rate>) -> i64 {
    let bytes = rate.map_or(u64::MAX, |rate| rate.as_bytes_per_s() >> 12);
    bytes.clamp(300, 1_514) as i64
}
