//! CAKE (Høiland-Jørgensen, Täht and Morton, "Piece of CAKE: A Comprehensive Queue Management Solution
//! for Home Gateways", LANMAN 2018), as Linux `net/sched/sch_cake.c` with `besteffort`: a shaper that
//! needs no bursts, flows in queues of their own that take turns, and COBALT in each.
//!
//! Left out: tins by DSCP, since packets here have none; fairness between hosts (`dual-srchost`,
//! `triple-isolate` …), since every flow has its own here; `ack-filter`, for which a link does not know
//! what is in a packet; ATM framing; `ingress` and `autorate-ingress`. Linux bounds memory, here
//! packets are counted.

mod cobalt;
mod sets;

use std::collections::VecDeque;

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::{LINK_HEADER_BYTES, Rate, Ring, Stream, Time};

use super::{Backlog, QueueDiscipline, mark};
use crate::packet::{Ecn, Fate, Packet, Reason};
use crate::parameters::{FASTEST_BPS, LARGEST_PACKETS, MS, span};
use crate::registry::{QueueRow, unrelated};
use cobalt::{Law, State, Verdict};
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
            summary: "a queue for each flow, or one for all",
            kind: Kind::Choice { default: "flows", choices: &["flows", "none"] },
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
    by_flow: bool,
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

impl<B: Copy + Send + 'static> Cake<B> {
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
            rests: 0,
        };
        Self {
            limit_packets: values.amount("limit"),
            by_flow: values.choice("isolation") == "flows",
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

    fn index_of(&mut self, flow: u32) -> usize {
        if !self.by_flow {
            return 0;
        }
        let queues = &self.queues;
        self.sets.queue_of(flow, |index| queues[index].place != Place::Nowhere)
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
            queue.deficit_bytes += self.quantum_bytes;
            queue.place = Place::Old;
            self.lists.old.push_back(index);
        }
    }

    /// It was the turn of a queue that had nothing: it waits among the decaying ones, or leaves.
    fn rest(&mut self, index: usize, now: Time) {
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

impl<B: Copy + Send> QueueDiscipline<B> for Cake<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, fate: &mut dyn Fate<B>) {
        let index = self.index_of(packet.flow);
        if self.total.packets == 0
            && let Some(shaper) = &mut self.shaper
            && shaper.next < now
        {
            // It saves nothing up while there is nothing to send.
            (shaper.next, shaper.failsafe) = (now, now);
        }
        self.bytes[index] += u64::from(packet.size_bytes);
        self.total.add(packet.size_bytes);
        let queue = &mut self.queues[index];
        queue.packets.push_back(packet);
        if matches!(queue.place, Place::Nowhere | Place::Decaying) {
            queue.place = Place::New;
            queue.deficit_bytes = self.quantum_bytes;
            self.lists.new.push_back(index as u32);
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

    fn bytes(&self) -> u64 {
        self.total.bytes
    }

    fn packets(&self) -> u64 {
        self.total.packets
    }
}

#[cfg(test)]
mod tests;
