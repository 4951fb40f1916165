//! Stochastic fairness queueing (McKenney, "Stochastic Fairness Queueing", INFOCOM 1990), as Linux
//! `net/sched/sch_sfq.c`: flows are hashed to queues that take turns in bytes, and a packet too many
//! costs the longest queue one. Left out are the change of the hash (`perturb`, off by default there),
//! and RED in each queue.

use std::collections::VecDeque;

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::Time;

use super::turns::{QUANTUM, bucket_of};
use super::{Backlog, QueueDiscipline};
use crate::packet::{Fate, Packet, Reason};
use crate::registry::{QueueRow, unrelated};

const ENTRY: Entry = Entry {
    name: "sfq",
    summary: "Flows in queues of their own that take turns; the longest one pays for a packet too many",
    class: "fair",
    based_on: &["drop_tail"],
    source: "McKenney 1990; Linux net/sched/sch_sfq.c",
    parameters: &[
        Parameter {
            name: "limit",
            summary: "most that all its queues hold together, in packets",
            kind: Kind::Packets { default: 127, min: 1, max: 127 * MOST_FLOWS },
        },
        Parameter {
            name: "depth",
            summary: "most that one queue holds, in packets",
            kind: Kind::Packets { default: 127, min: 1, max: 127 },
        },
        Parameter {
            name: "flows",
            summary: "most queues that hold something at once",
            kind: Kind::Integer { default: 128, min: 1, max: MOST_FLOWS },
        },
        Parameter {
            name: "divisor",
            summary: "number of buckets that flows are hashed to",
            kind: Kind::Integer { default: 1_024, min: 1, max: 65_536 },
        },
        QUANTUM,
        Parameter {
            name: "headdrop",
            summary: "drop the packet that has waited longest instead of the last one",
            kind: Kind::Bool { default: false },
        },
    ],
};

/// `SFQ_MAX_FLOWS`.
const MOST_FLOWS: i64 = 0x1_0000 - 127 - 1;

/// Queues that take turns.
#[derive(Debug)]
pub struct Sfq<B> {
    limit_packets: u64,
    depth_packets: usize,
    flows: usize,
    quantum_bytes: i64,
    head_drop: bool,
    queues: Vec<Queue<B>>,
    /// Queues that hold something, in the order of their turns.
    active: VecDeque<u32>,
    total: Backlog,
    /// Changes of a queue's length so far.
    changes: u64,
}

#[derive(Debug)]
struct Queue<B> {
    packets: VecDeque<Packet<B>>,
    /// Bytes that it may still send in this round.
    allotment_bytes: i64,
    /// Number of the last change of its length.
    changed: u64,
}

impl<B: Copy + Send + 'static> Sfq<B> {
    pub(crate) const ROW: QueueRow<B> =
        QueueRow { entry: ENTRY, check: unrelated, build: |values, _| Box::new(Self::new(values)) };
}

impl<B> Sfq<B> {
    fn new(values: &Values) -> Self {
        let empty = |_| Queue { packets: VecDeque::new(), allotment_bytes: 0, changed: 0 };
        Self {
            limit_packets: values.amount("limit"),
            depth_packets: values.amount("depth") as usize,
            flows: values.u32("flows") as usize,
            quantum_bytes: i64::from(values.u32("quantum")),
            head_drop: values.bool("headdrop"),
            queues: (0..values.u32("divisor")).map(empty).collect(),
            active: VecDeque::new(),
            total: Backlog::default(),
            changes: 0,
        }
    }

    /// Notes that the length of a queue has changed.
    #[inline]
    fn changed(&mut self, index: usize) {
        self.changes += 1;
        self.queues[index].changed = self.changes;
    }

    /// `sfq_drop`: takes a packet out of the longest queue, of several the one that came to this
    /// length last; if no queue has two, out of the one whose turn it is.
    #[cold]
    fn drop_from_longest(&mut self, now: Time, fate: &mut dyn Fate<B>) {
        let length = |index: &u32| {
            let queue = &self.queues[*index as usize];
            (queue.packets.len(), queue.changed)
        };
        let Some(longest) = self.active.iter().copied().max_by_key(length) else { return };
        let index = if length(&longest).0 > 1 {
            longest
        } else {
            self.active.pop_front().unwrap_or(longest)
        };
        let packets = &mut self.queues[index as usize].packets;
        let dropped = if self.head_drop { packets.pop_front() } else { packets.pop_back() };
        self.changed(index as usize);
        if let Some(packet) = dropped {
            self.total.remove(packet.size_bytes);
            fate.dropped(now, &packet, Reason::Overflow);
        }
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for Sfq<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, fate: &mut dyn Fate<B>) {
        let index = bucket_of(packet.flow, self.queues.len());
        let queue = &mut self.queues[index];
        let waiting = queue.packets.len();
        if waiting == 0 && self.active.len() >= self.flows {
            fate.dropped(now, &packet, Reason::Overflow);
            return;
        }
        if waiting >= self.depth_packets {
            let dropped = if self.head_drop { queue.packets.pop_front() } else { None };
            let Some(head) = dropped else {
                fate.dropped(now, &packet, Reason::Overflow);
                return;
            };
            // One for another: the queue's place among the longest stays as it is.
            queue.packets.push_back(packet);
            self.total.remove(head.size_bytes);
            self.total.add(packet.size_bytes);
            fate.dropped(now, &head, Reason::Overflow);
            return;
        }
        queue.packets.push_back(packet);
        self.total.add(packet.size_bytes);
        if waiting == 0 {
            queue.allotment_bytes = self.quantum_bytes;
            self.active.push_back(index as u32);
        }
        self.changed(index);
        if self.total.packets > self.limit_packets {
            self.drop_from_longest(now, fate);
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut dyn Fate<B>) -> Option<Packet<B>> {
        loop {
            let index = *self.active.front()? as usize;
            let queue = &mut self.queues[index];
            if queue.allotment_bytes <= 0 {
                queue.allotment_bytes += self.quantum_bytes;
                self.active.rotate_left(1);
                continue;
            }
            let packet = queue.packets.pop_front()?;
            if queue.packets.is_empty() {
                self.active.pop_front();
            } else {
                queue.allotment_bytes -= i64::from(packet.size_bytes);
            }
            self.total.remove(packet.size_bytes);
            self.changed(index);
            return Some(packet);
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
mod tests {
    use jostle_catalogue::Value;

    use super::super::testing::{Fates, packet};
    use super::*;

    fn sfq<const N: usize>(given: [(&str, Value); N]) -> Sfq<()> {
        let given = given.map(|(name, value)| (name.to_owned(), value));
        Sfq::new(&ENTRY.resolve(&given.into()).unwrap())
    }

    fn of_flow(flow: u32, size_bytes: u32) -> Packet<()> {
        Packet { flow, ..packet(size_bytes) }
    }

    fn flows(queue: &mut Sfq<()>, n: usize) -> Vec<u32> {
        let mut fates = Fates::default();
        (0..n).map_while(|_| queue.dequeue(Time::ZERO, &mut fates).map(|p| p.flow)).collect()
    }

    #[test]
    fn flows_take_turns_in_bytes_and_new_ones_come_last() {
        let (mut queue, mut fates) = (sfq([]), Fates::default());
        for _ in 0..4 {
            queue.enqueue(Time::ZERO, of_flow(1, 1514), &mut fates);
        }
        for _ in 0..8 {
            queue.enqueue(Time::ZERO, of_flow(2, 757), &mut fates);
        }
        assert_eq!(flows(&mut queue, 9), [1, 2, 2, 1, 2, 2, 1, 2, 2]);
    }

    #[test]
    fn the_longest_queue_pays_for_a_packet_too_many() {
        for (head_drop, left) in [(false, [0, 1, 2, 3]), (true, [1, 2, 3, 4])] {
            let mut queue =
                sfq([("limit", Value::Integer(5)), ("headdrop", Value::Bool(head_drop))]);
            let mut fates = Fates::default();
            for number in 0..5 {
                queue.enqueue(Time::ZERO, of_flow(1, 100 + number), &mut fates);
            }
            queue.enqueue(Time::ZERO, of_flow(2, 99), &mut fates);
            assert_eq!((fates.dropped.len(), queue.packets()), (1, 5));
            let sizes: Vec<u32> = std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut fates))
                .map(|p| p.size_bytes)
                .collect();
            assert_eq!(sizes.iter().filter(|size| **size == 99).count(), 1);
            let of_first: Vec<u32> =
                sizes.iter().filter(|size| **size >= 100).map(|size| size - 100).collect();
            assert_eq!(of_first, left);
        }
    }

    #[test]
    fn where_no_queue_has_two_the_one_in_turn_pays() {
        let (mut queue, mut fates) = (sfq([("limit", Value::Integer(3))]), Fates::default());
        for flow in 1..=4 {
            queue.enqueue(Time::ZERO, of_flow(flow, 1514), &mut fates);
        }
        assert_eq!(flows(&mut queue, 9), [2, 3, 4]);
    }

    #[test]
    fn a_queue_has_a_depth_and_there_are_so_many() {
        let mut queue = sfq([("depth", Value::Integer(2)), ("flows", Value::Integer(2))]);
        let mut fates = Fates::default();
        for flow in [1, 1, 1, 2, 3] {
            queue.enqueue(Time::ZERO, of_flow(flow, 1514), &mut fates);
        }
        assert_eq!((fates.dropped.len(), queue.packets()), (2, 3));
        let mut queue = sfq([("depth", Value::Integer(2)), ("headdrop", Value::Bool(true))]);
        for number in 0..3 {
            queue.enqueue(Time::ZERO, of_flow(1, 100 + number), &mut fates);
        }
        assert_eq!(queue.dequeue(Time::ZERO, &mut fates).map(|p| p.size_bytes), Some(101));
    }
}
