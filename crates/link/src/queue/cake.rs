//! CAKE (Høiland-Jørgensen, Täht and Morton, "Piece of CAKE: A Comprehensive Queue Management
//! Solution for Home Gateways", LANMAN 2018), as in Linux `net/sched/sch_cake.c` with `besteffort`:
//! a shaper without bursts, flow isolation, and COBALT in each queue.
//!
//! Not implemented: tins by DSCP, because packets here have none; ATM framing; `ingress` and
//! `autorate-ingress`.

mod ack_filter;
mod cobalt;
mod host_isolation;
mod memory;
mod set_associative_hash;

use std::collections::VecDeque;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{
    ConnectionId, FlowId, LINK_HEADER_BYTES, RandomStream, Rate, RingBuffer, Span, Time,
};

use super::{Backlog, QueueDiscipline, mark};
use crate::packet::{DropReason, Ecn, Packet, PacketOutcome};
use crate::parameters::{FASTEST, span};
use crate::registry::{QueueEntry, unrelated};
use crate::service_rate;
use crate::transport_headers::{FlowHosts, TransportHeader};
pub use memory::CAKE_MEMORY_MAX_BYTES;

use ack_filter::{Filter, superfluous};
use cobalt::{CobaltAction, CobaltParameters, CobaltState};
use host_isolation::{HostLoads, Isolation, MODES, ends_of};
use set_associative_hash::{QUEUES, SetAssociativeHash};

const ENTRY: RegistryEntry = RegistryEntry {
    name: "cake",
    summary: "shaper and flow queueing with COBALT per queue, for home gateways",
    class: "fair",
    based_on: &["fq_codel"],
    source: "Høiland-Jørgensen et al. 2018; Linux net/sched/sch_cake.c",
    parameters: &[
        Parameter::rate("rate", Rate::ZERO, Rate::ZERO..=FASTEST)
            .summary("rate of the shaper; 0: no shaper"),
        Parameter::choice("isolation", "flows", MODES).summary("flow and host isolation"),
        Parameter::choice("ack_filter", "none", &["none", "filter", "aggressive"])
            .summary("drop queued ACKs that later ones make redundant"),
        Parameter::integer("overhead", LINK_HEADER_BYTES as i64, -64..=256)
            .summary("bytes that the shaper adds to the IP packet; 14: the Ethernet header"),
        Parameter::integer("mpu", 0, 0..=256)
            .summary("smallest packet size that the shaper counts, including the overhead"),
        span("rtt", Span::from_ms(100))
            .summary("typical RTT: COBALT's interval, 20 times its target"),
        Parameter::size("memory_limit", Some(0), 0..=memory::LARGEST_BYTES).summary(
            "largest kernel memory of all queues, more than the bytes of their packets; 0: the \
             default of tc, four `rtt` at `rate`, from 4 MiB to 15.5 MB",
        ),
    ],
};

/// Queues behind a shaper.
#[derive(Debug)]
pub struct Cake<B> {
    /// `buffer_limit` and `buffer_used`.
    memory_limit_bytes: u64,
    memory_used_bytes: u64,
    isolation: Isolation,
    /// Hosts by flow number, if the isolation uses hosts.
    hosts: Vec<FlowHosts>,
    loads: Option<Box<HostLoads>>,
    ack_filter: Option<Filter>,
    parameters: CobaltParameters,
    quantum_bytes: i64,
    shaper: Option<Shaper>,
    ready_at: Time,
    queues: Vec<Queue<B>>,
    /// Bytes in each queue, stored separately so that the search for the longest queue is fast.
    bytes: Vec<u64>,
    sets: SetAssociativeHash,
    total: Backlog,
    lists: FlowLists,
    random: RandomStream,
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
struct Queue<B> {
    packets: RingBuffer<Packet<B>>,
    cobalt: CobaltState,
    deficit_bytes: i64,
    set: FlowSet,
    /// Indices of the flow's hosts in [`HostLoads`], and whether the flow is counted there
    /// (`CAKE_SET_BULK`).
    host_indices: [u32; 2],
    bulk: bool,
    /// Number of times that the queue became idle.
    rests: u32,
}

/// `sch_cake.c::cake_advance_shaper`: the time of the next departure advances by the duration of
/// each packet, not from its actual departure, so that delays are compensated without a token
/// bucket.
#[derive(Debug)]
struct Shaper {
    rate: Rate,
    overhead_bytes: i64,
    min_bytes: i64,
    next: Time,
    /// Like `next` at two thirds of the rate, counted only for packets that are sent.
    failsafe: Time,
}

impl Shaper {
    /// Returns the size of a packet including the overhead, at least `mpu`.
    fn counted_bytes(&self, size_bytes: u32) -> u32 {
        let bytes = i64::from(size_bytes) + self.overhead_bytes - i64::from(LINK_HEADER_BYTES);
        u32::try_from(bytes.max(self.min_bytes)).unwrap_or(u32::MAX)
    }

    #[inline]
    fn ready_at(&self) -> Time {
        self.next.min(self.failsafe)
    }

    fn sent(&mut self, counted_bytes: u32) {
        let takes = self.rate.time_for(u64::from(counted_bytes));
        self.next += takes;
        self.failsafe += takes.mul_div(3, 2);
    }
}

impl<B: TransportHeader + Copy + Send + 'static> Cake<B> {
    pub(crate) const ROW: QueueEntry<B> = QueueEntry {
        entry: ENTRY,
        check: unrelated,
        build: |values, random| Box::new(Self::new(values, random)),
    };
}

impl<B> Cake<B> {
    fn new(values: &ParameterValues, random: RandomStream) -> Self {
        let rate = Some(values.rate("rate")).filter(|rate| rate.as_bps() > 0);
        let overhead_bytes = values.integer("overhead");
        let min_bytes = values.integer("mpu");
        let shaper = |rate| Shaper {
            rate,
            overhead_bytes,
            min_bytes,
            next: Time::ZERO,
            failsafe: Time::ZERO,
        };
        let empty = |_| Queue {
            packets: RingBuffer::default(),
            cobalt: CobaltState::default(),
            deficit_bytes: 0,
            set: FlowSet::Nowhere,
            host_indices: [0; 2],
            bulk: false,
            rests: 0,
        };
        let isolation = Isolation::of(values.choice("isolation"));
        Self {
            memory_limit_bytes: memory::limit_bytes(
                values.amount("memory_limit"),
                rate,
                values.span("rtt"),
            ),
            memory_used_bytes: 0,
            isolation,
            hosts: Vec::new(),
            loads: HostLoads::new(isolation),
            ack_filter: match values.choice("ack_filter") {
                "filter" => Some(Filter::Filter),
                "aggressive" => Some(Filter::Aggressive),
                _ => None,
            },
            parameters: CobaltParameters::new(values.span("rtt"), rate),
            quantum_bytes: quantum_bytes(rate),
            shaper: rate.map(shaper),
            ready_at: Time::NEVER,
            queues: (0..QUEUES).map(empty).collect(),
            bytes: vec![0; QUEUES],
            sets: SetAssociativeHash::new(),
            total: Backlog::default(),
            lists: FlowLists::default(),
            random,
        }
    }

    fn index_of(&mut self, packet: &Packet<B>) -> usize
    where
        B: TransportHeader,
    {
        let ends = match self.isolation.knows_hosts() {
            true => ends_of(packet, &self.hosts),
            false => [0; 2],
        };
        let Some(hash) = self.isolation.hash(packet.connection, ends) else { return 0 };
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
    fn quantum_of(&mut self, index: usize) -> i64 {
        match &self.loads {
            None => self.quantum_bytes,
            Some(loads) => {
                let host_indices = self.queues[index].host_indices;
                loads.flow_quantum(self.quantum_bytes, host_indices, &mut self.random)
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

    /// Drops the ACK that the newest ACK of a queue makes redundant.
    fn filter_acks(
        &mut self,
        now: Time,
        index: usize,
        filter: Filter,
        outcome: &mut dyn PacketOutcome<B>,
    ) where
        B: TransportHeader + Copy,
    {
        let packets = &mut self.queues[index].packets;
        let Some(position) = superfluous(packets, filter) else { return };
        if let Some(packet) = packets.remove(position) {
            self.remove(index, packet.size_bytes);
            outcome.dropped(now, &packet, DropReason::AckFilter);
        }
    }

    #[inline]
    fn take(&mut self, index: usize) -> Option<Packet<B>>
    where
        B: Copy,
    {
        let packet = self.queues[index].packets.pop_front()?;
        self.remove(index, packet.size_bytes);
        Some(packet)
    }

    /// Counts a packet that left queue `index`.
    #[inline]
    fn remove(&mut self, index: usize, size_bytes: u32) {
        self.bytes[index] -= u64::from(size_bytes);
        self.total.remove(size_bytes);
        self.memory_used_bytes -= memory::of_packet(size_bytes);
    }

    /// `sch_cake.c::cake_drop`: drops the oldest packet of the queue with the most bytes.
    #[cold]
    fn drop_from_fattest(&mut self, now: Time, outcome: &mut dyn PacketOutcome<B>)
    where
        B: Copy,
    {
        let mut fattest = 0;
        for (index, bytes) in self.bytes.iter().enumerate() {
            if *bytes > self.bytes[fattest] {
                fattest = index;
            }
        }
        self.queues[fattest].cobalt.overflowed(&self.parameters, now);
        if let Some(packet) = self.take(fattest) {
            outcome.dropped(now, &packet, DropReason::Overflow);
        }
    }

    /// Returns the queue whose turn it is. `first` is true for the first attempt per packet, which
    /// checks a decaying queue.
    fn current(&mut self, first: bool) -> Option<usize> {
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
            let quantum_bytes = self.quantum_of(index as usize);
            let queue = &mut self.queues[index as usize];
            queue.deficit_bytes += quantum_bytes;
            queue.set = FlowSet::Old;
            self.lists.old.push_back(index);
        }
    }

    /// Removes an empty queue from its list, and adds it to the decaying queues if its COBALT state
    /// has not decayed.
    fn rest(&mut self, index: usize, now: Time) {
        self.share(index, false);
        let queue = &mut self.queues[index];
        match queue.set {
            FlowSet::New => _ = self.lists.new.pop_front(),
            FlowSet::Old => _ = self.lists.old.pop_front(),
            _ => _ = self.lists.decaying.pop_front(),
        }
        if queue.cobalt.was_empty(&self.parameters, now) {
            queue.set = FlowSet::Nowhere;
        } else {
            queue.set = FlowSet::Decaying;
            queue.rests = queue.rests.wrapping_add(1);
            self.lists.decaying.push_back((index as u32, queue.rests));
        }
    }
}

/// `sch_cake.c::cake_set_rate`: returns the bytes that the shaper sends in 1/4096 s, between 300
/// and 1514.
fn quantum_bytes(rate: Option<Rate>) -> i64 {
    let bytes = rate.map_or(u64::MAX, |rate| rate.as_bytes_per_s() >> 12);
    bytes.clamp(300, 1_514) as i64
}

impl<B: TransportHeader + Copy + Send> QueueDiscipline<B> for Cake<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        let index = self.index_of(&packet);
        if self.total.packets == 0
            && let Some(shaper) = &mut self.shaper
            && shaper.next < now
        {
            // An idle shaper does not accumulate credit.
            (shaper.next, shaper.failsafe) = (now, now);
        }
        self.bytes[index] += u64::from(packet.size_bytes);
        self.total.add(packet.size_bytes);
        self.memory_used_bytes += memory::of_packet(packet.size_bytes);
        self.queues[index].packets.push_back(packet);
        if let Some(filter) = self.ack_filter {
            self.filter_acks(now, index, filter, outcome);
        }
        match self.queues[index].set {
            FlowSet::Nowhere | FlowSet::Decaying => {
                let quantum_bytes = self.quantum_of(index);
                let queue = &mut self.queues[index];
                queue.set = FlowSet::New;
                queue.deficit_bytes = quantum_bytes;
                self.lists.new.push_back(index as u32);
            }
            // The queue was empty at the end of its first turn (`CAKE_SET_SPARSE_WAIT`).
            FlowSet::Old => self.share(index, true),
            FlowSet::New => {}
        }
        while self.memory_used_bytes > self.memory_limit_bytes {
            self.drop_from_fattest(now, outcome);
        }
    }

    fn dequeue(&mut self, now: Time, outcome: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
        self.ready_at = Time::NEVER;
        if self.total.packets == 0 {
            return None;
        }
        if let Some(shaper) = &self.shaper
            && shaper.ready_at() > now
        {
            self.ready_at = shaper.ready_at();
            return None;
        }
        let mut first = true;
        while self.total.packets > 0 {
            let index = self.current(first)?;
            first = false;
            while let Some(mut packet) = self.take(index) {
                let Queue { cobalt, packets, .. } = &mut self.queues[index];
                let waited = now.since(packet.queued_at);
                let capable = packet.ecn != Ecn::NotCapable;
                let verdict =
                    cobalt.judge(&self.parameters, now, waited, capable, &mut self.random);
                // The last packet of a queue is never dropped.
                if verdict == CobaltAction::Drop && !packets.is_empty() {
                    outcome.dropped(now, &packet, DropReason::Cobalt);
                    continue;
                }
                if verdict == CobaltAction::Mark && mark(&mut packet) {
                    outcome.marked(now, &packet, DropReason::Cobalt);
                }
                let mut counted_bytes = packet.size_bytes;
                if let Some(shaper) = &mut self.shaper {
                    counted_bytes = shaper.counted_bytes(packet.size_bytes);
                    shaper.sent(counted_bytes);
                }
                self.queues[index].deficit_bytes -= i64::from(counted_bytes);
                return Some(packet);
            }
            self.rest(index, now);
        }
        None
    }

    fn next_dequeue_time(&self) -> Time {
        self.ready_at
    }

    fn set_flow_hosts(&mut self, hosts: &[FlowHosts]) {
        if self.isolation.knows_hosts() {
            self.hosts = hosts.to_vec();
        }
    }

    fn register_connection(&mut self, connection: ConnectionId, flow: FlowId) {
        if let Some(hosts) = self.hosts.get(flow.index()).copied() {
            let room = self.hosts.len().max(connection.index() + 1);
            self.hosts.resize(room, FlowHosts::default());
            self.hosts[connection.index()] = hosts;
        }
    }

    fn shapers(&self) -> Vec<service_rate::Shaper> {
        let limit = |shaper: &Shaper| service_rate::Shaper {
            rate: shaper.rate,
            // The time of the next departure is behind while the link is slower.
            burst_bytes: None,
            overhead_bytes: shaper.overhead_bytes - i64::from(LINK_HEADER_BYTES),
            delays: true,
        };
        self.shaper.iter().map(limit).collect()
    }

    fn backlog_bytes(&self) -> u64 {
        self.total.bytes
    }

    fn backlog_packets(&self) -> u64 {
        self.total.packets
    }
}

#[cfg(test)]
mod tests;
