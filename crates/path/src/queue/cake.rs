//! CAKE (Høiland-Jørgensen, Täht and Morton, "Piece of CAKE: A Comprehensive Queue Management Solution
//! for Home Gateways", LANMAN 2018), as Linux `net/sched/sch_cake.c` with `besteffort`: a shaper that
//! needs no bursts, flows in queues of their own that take turns, and COBALT in each.
//!
//! Left out: tins by DSCP, since packets here have none; ATM framing; `ingress` and `autorate-ingress`.
//! Linux bounds memory, here packets are counted.

mod ack_filter;
mod cobalt;
mod isolation;
mod sets;

use std::collections::VecDeque;

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::{LINK_HEADER_BYTES, Rate, Ring, Stream, Time};

use super::{Backlog, QueueDiscipline, mark};
use crate::headers::{Headers, Hosts};
use crate::packet::{Ecn, Fate, Packet, Reason};
use crate::parameters::{FASTEST_BPS, LARGEST_PACKETS, MS, span};
use crate::registry::{QueueRow, unrelated};
use ack_filter::{Filter, superfluous};
use cobalt::{Law, State, Verdict};
use isolation::{Isolation, Loads, MODES, ends_of};
use sets::{QUEUES, Sets};

const ENTRY: Entry = Entry {
    name: "cake",
    summary: "Shaper, queues by flow that take turns, and COBALT in each: for home gateways",
    class: "fair",
    based_on: &["fq_codel"],
    source: "Høiland-Jørgensen et al. 2018; Linux net/sched/sch_cake.c",
    parameters: &[
        Parameter {
            name: "rate",
            summary: "of the shaper; 0: none, the link's own rate decides",
            kind: Kind::Rate { default_bps: 0, min_bps: 0, max_bps: FASTEST_BPS },
        },
        Parameter {
            name: "isolation",
            summary: "what has queues of its own, and who shares",
            kind: Kind::Choice { default: "flows", choices: MODES },
        },
        Parameter {
            name: "ack_filter",
            summary: "whether ACKs go that later ones in the queue make superfluous",
            kind: Kind::Choice { default: "none", choices: &["none", "filter", "aggressive"] },
        },
        Parameter {
            name: "overhead",
            summary: "bytes that the shaper counts beside the IP packet; 14: its Ethernet header",
            kind: Kind::Integer { default: LINK_HEADER_BYTES as i64, min: -64, max: 256 },
        },
        span("rtt", "round trip that is usual: COBALT's interval, 20 times its target", 100 * MS),
        Parameter {
            name: "limit",
            summary: "most that all its queues hold together, in packets",
            kind: Kind::Packets { default: 10_240, min: 1, max: LARGEST_PACKETS },
        },
    ],
};

/// Queues behind a shaper.
#[derive(Debug)]
pub struct Cake<B> {
    limit_packets: u64,
    isolation: Isolation,
    /// By number of the flow, if they are of any matter.
    hosts: Vec<Hosts>,
    loads: Option<Box<Loads>>,
    ack_filter: Option<Filter>,
    law: Law,
    quantum_bytes: i64,
    shaper: Option<Shaper>,
    ready_at: Time,
    queues: Vec<Queue<B>>,
    /// Bytes in each queue, apart from the queues so that the search for the fattest is quick.
    bytes: Vec<u64>,
    sets: Sets,
    total: Backlog,
    lists: Lists,
    random: Stream,
}

/// The three lists of queues. A queue without packets is in one until its COBALT is at rest.
#[derive(Debug, Default)]
struct Lists {
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    /// Each with the number of its rest: a queue that got a packet meanwhile is here no more.
    decaying: VecDeque<(u32, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    New,
    Old,
    Decaying,
}

#[derive(Debug)]
struct Queue<B> {
    packets: Ring<Packet<B>>,
    cobalt: State,
    deficit_bytes: i64,
    place: Place,
    /// Where the hosts of its flow are counted, and whether it is counted there (`CAKE_SET_BULK`).
    host_places: [u32; 2],
    bulk: bool,
    /// How often it came to rest.
    rests: u32,
}

/// `cake_advance_shaper`: the time at which the next packet may leave goes on by what each one takes, and
/// not from when it left, so that a late one is made up for without a bucket.
#[derive(Debug)]
struct Shaper {
    rate: Rate,
    overhead_bytes: i64,
    next: Time,
    /// The same at two thirds of the rate, counted for what is sent alone.
    failsafe: Time,
}

impl Shaper {
    /// What a packet counts for.
    fn counted_bytes(&self, size_bytes: u32) -> u32 {
        let bytes = i64::from(size_bytes) + self.overhead_bytes - i64::from(LINK_HEADER_BYTES);
        u32::try_from(bytes.max(0)).unwrap_or(u32::MAX)
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

impl<B: Headers + Copy + Send + 'static> Cake<B> {
    pub(crate) const ROW: QueueRow<B> = QueueRow {
        entry: ENTRY,
        check: unrelated,
        build: |values, random| Box::new(Self::new(values, random)),
    };
}

impl<B> Cake<B> {
    fn new(values: &Values, random: Stream) -> Self {
        let rate = Some(values.rate("rate")).filter(|rate| rate.as_bps() > 0);
        let overhead_bytes = values.integer("overhead");
        let shaper = |rate| Shaper { rate, overhead_bytes, next: Time::ZERO, failsafe: Time::ZERO };
        let empty = |_| Queue {
            packets: Ring::default(),
            cobalt: State::default(),
            deficit_bytes: 0,
            place: Place::Nowhere,
            host_places: [0; 2],
            bulk: false,
            rests: 0,
        };
        let isolation = Isolation::of(values.choice("isolation"));
        Self {
            limit_packets: values.amount("limit"),
            isolation,
            hosts: Vec::new(),
            loads: Loads::new(isolation),
            ack_filter: match values.choice("ack_filter") {
                "filter" => Some(Filter::Filter),
                "aggressive" => Some(Filter::Aggressive),
                _ => None,
            },
            law: Law::new(values.span("rtt"), rate),
            quantum_bytes: quantum_bytes(rate),
            shaper: rate.map(shaper),
            ready_at: Time::NEVER,
            queues: (0..QUEUES).map(empty).collect(),
            bytes: vec![0; QUEUES],
            sets: Sets::new(),
            total: Backlog::default(),
            lists: Lists::default(),
            random,
        }
    }

    fn index_of(&mut self, packet: &Packet<B>) -> usize
    where
        B: Headers,
    {
        let ends = match self.isolation.knows_hosts() {
            true => ends_of(packet, &self.hosts),
            false => [0; 2],
        };
        let Some(hash) = self.isolation.hash(packet.flow, ends) else { return 0 };
        let queues = &self.queues;
        let found = self.sets.place_of(hash, |index| queues[index].place != Place::Nowhere);
        if let (Some(loads), false) = (&mut self.loads, found.known) {
            // The queue is another flow's from here on, as where a full set is shared.
            let queue = &mut self.queues[found.index];
            if queue.bulk {
                loads.count(queue.host_places, false);
            }
            queue.host_places = loads.places_of(ends);
            if queue.bulk {
                loads.count(queue.host_places, true);
            }
        }
        found.index
    }

    /// What a queue may send in its turn.
    #[inline]
    fn quantum_of(&mut self, index: usize) -> i64 {
        match &self.loads {
            None => self.quantum_bytes,
            Some(loads) => {
                let places = self.queues[index].host_places;
                loads.part_of(self.quantum_bytes, places, &mut self.random)
            }
        }
    }

    /// The queue of a flow that has more to send than its quantum is one of its hosts' now, or no more.
    #[inline]
    fn share(&mut self, index: usize, bulk: bool) {
        let queue = &mut self.queues[index];
        if let Some(loads) = &mut self.loads
            && queue.bulk != bulk
        {
            queue.bulk = bulk;
            loads.count(queue.host_places, bulk);
        }
    }

    /// Drops the ACK that the one which came last into a queue makes superfluous.
    fn filter_acks(&mut self, now: Time, index: usize, filter: Filter, fate: &mut dyn Fate<B>)
    where
        B: Headers + Copy,
    {
        let packets = &mut self.queues[index].packets;
        let Some(position) = superfluous(packets, filter) else { return };
        if let Some(packet) = packets.remove(position) {
            self.bytes[index] -= u64::from(packet.size_bytes);
            self.total.remove(packet.size_bytes);
            fate.dropped(now, &packet, Reason::AckFilter);
        }
    }

    #[inline]
    fn take(&mut self, index: usize) -> Option<Packet<B>>
    where
        B: Copy,
    {
        let packet = self.queues[index].packets.pop_front()?;
        self.bytes[index] -= u64::from(packet.size_bytes);
        self.total.remove(packet.size_bytes);
        Some(packet)
    }

    /// `cake_drop`: the queue with the most bytes gives up the packet that has waited longest in it.
    #[cold]
    fn drop_from_fattest(&mut self, now: Time, fate: &mut dyn Fate<B>)
    where
        B: Copy,
    {
        let mut fattest = 0;
        for (index, bytes) in self.bytes.iter().enumerate() {
            if *bytes > self.bytes[fattest] {
                fattest = index;
            }
        }
        self.queues[fattest].cobalt.overflowed(&self.law, now);
        if let Some(packet) = self.take(fattest) {
            fate.dropped(now, &packet, Reason::Overflow);
        }
    }

    /// The queue whose turn it is. One of those that are only there until their COBALT is at rest is
    /// looked at first, once for each packet.
    fn current(&mut self, first: bool) -> Option<usize> {
        loop {
            let Lists { new, old, decaying } = &mut self.lists;
            while let Some((index, rest)) = decaying.front() {
                let queue = &self.queues[*index as usize];
                if queue.place == Place::Decaying && queue.rests == *rest {
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
            if queue.place == Place::New && self.bytes[index as usize] > 0 {
                self.share(index as usize, true);
            }
            let quantum_bytes = self.quantum_of(index as usize);
            let queue = &mut self.queues[index as usize];
            queue.deficit_bytes += quantum_bytes;
            queue.place = Place::Old;
            self.lists.old.push_back(index);
        }
    }

    /// It was the turn of a queue that had nothing: it waits among the decaying ones, or leaves.
    fn rest(&mut self, index: usize, now: Time) {
        self.share(index, false);
        let queue = &mut self.queues[index];
        match queue.place {
            Place::New => _ = self.lists.new.pop_front(),
            Place::Old => _ = self.lists.old.pop_front(),
            _ => _ = self.lists.decaying.pop_front(),
        }
        if queue.cobalt.was_empty(&self.law, now) {
            queue.place = Place::Nowhere;
        } else {
            queue.place = Place::Decaying;
            queue.rests = queue.rests.wrapping_add(1);
            self.lists.decaying.push_back((index as u32, queue.rests));
        }
    }
}

/// `cake_set_rate`: what the shaper sends in 1/4096 s, between 300 and 1514 bytes.
fn quantum_bytes(rate: Option<Rate>) -> i64 {
    let bytes = rate.map_or(u64::MAX, |rate| rate.as_bytes_per_s() >> 12);
    bytes.clamp(300, 1_514) as i64
}

impl<B: Headers + Copy + Send> QueueDiscipline<B> for Cake<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, fate: &mut dyn Fate<B>) {
        let index = self.index_of(&packet);
        if self.total.packets == 0
            && let Some(shaper) = &mut self.shaper
            && shaper.next < now
        {
            // It saves nothing up while there is nothing to send.
            (shaper.next, shaper.failsafe) = (now, now);
        }
        self.bytes[index] += u64::from(packet.size_bytes);
        self.total.add(packet.size_bytes);
        self.queues[index].packets.push_back(packet);
        if let Some(filter) = self.ack_filter {
            self.filter_acks(now, index, filter, fate);
        }
        match self.queues[index].place {
            Place::Nowhere | Place::Decaying => {
                let quantum_bytes = self.quantum_of(index);
                let queue = &mut self.queues[index];
                queue.place = Place::New;
                queue.deficit_bytes = quantum_bytes;
                self.lists.new.push_back(index as u32);
            }
            // It was empty when its first turn ended (`CAKE_SET_SPARSE_WAIT`).
            Place::Old => self.share(index, true),
            Place::New => {}
        }
        while self.total.packets > self.limit_packets {
            self.drop_from_fattest(now, fate);
        }
    }

    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<B>) -> Option<Packet<B>> {
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
                let verdict = cobalt.judge(&self.law, now, waited, capable, &mut self.random);
                // The last packet of a queue is never dropped.
                if verdict == Verdict::Drop && !packets.is_empty() {
                    fate.dropped(now, &packet, Reason::Cobalt);
                    continue;
                }
                if verdict == Verdict::Mark && mark(&mut packet) {
                    fate.marked(now, &packet, Reason::Cobalt);
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

    fn ready_at(&self) -> Time {
        self.ready_at
    }

    fn know_hosts(&mut self, hosts: &[Hosts]) {
        if self.isolation.knows_hosts() {
            self.hosts = hosts.to_vec();
        }
    }

    fn admit(&mut self, connection: u32, flow: u32) {
        if let Some(hosts) = self.hosts.get(flow as usize).copied() {
            let room = self.hosts.len().max(connection as usize + 1);
            self.hosts.resize(room, Hosts::default());
            self.hosts[connection as usize] = hosts;
        }
    }

    fn bytes(&self) -> u64 {
        self.total.bytes
    }

    fn packets(&self) -> u64 {
        self.total.packets
    }
}

#[cfg(test)]
mod tests;
