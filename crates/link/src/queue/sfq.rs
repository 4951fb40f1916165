//! Stochastic Fairness Queueing (McKenney, "Stochastic Fairness Queueing", INFOCOM 1990), as in
//! Linux `net/sched/sch_sfq.c`: flows are hashed to queues that are served in turn by bytes, and an
//! overflow drops a packet of the longest queue. Not implemented: the periodic change of the hash
//! (`perturb`, off by default in Linux), and RED in each queue.

use std::collections::VecDeque;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::Time;

use super::flow_queue_scheduler::{QUANTUM, bucket_of};
use super::{Backlog, QueueDiscipline};
use crate::packet::{DropReason, Packet, PacketOutcome};
use crate::registry::{QueueEntry, unrelated};

const ENTRY: RegistryEntry = RegistryEntry {
    name: "sfq",
    summary: "stochastic fairness queueing; the longest queue drops when the limit is reached",
    class: "fair",
    based_on: &["drop_tail"],
    source: "McKenney 1990; Linux net/sched/sch_sfq.c",
    parameters: &[
        Parameter::packets("limit", 127, 1..=127 * MOST_FLOWS)
            .summary("largest sum of the queue lengths, in packets"),
        Parameter::packets("depth", 127, 1..=127).summary("largest length of a queue, in packets"),
        Parameter::integer("flows", 128, 1..=MOST_FLOWS).summary("largest number of active queues"),
        Parameter::integer("divisor", 1_024, 1..=65_536)
            .summary("number of buckets that flows are hashed to"),
        QUANTUM,
        Parameter::bool("headdrop", false)
            .summary("drop the first packet of the queue instead of the last one"),
    ],
};

/// `SFQ_MAX_FLOWS`.
const MOST_FLOWS: i64 = 0x1_0000 - 127 - 1;

/// Queues served in turn.
#[derive(Debug)]
pub struct Sfq<B> {
    limit_packets: u64,
    depth_packets: usize,
    flows: usize,
    quantum_bytes: i64,
    head_drop: bool,
    queues: Vec<Queue<B>>,
    /// Queues with packets, in the order of their turns.
    active: VecDeque<u32>,
    total: Backlog,
    /// Number of changes of a queue's length so far.
    changes: u64,
}

#[derive(Debug)]
struct Queue<B> {
    packets: VecDeque<Packet<B>>,
    /// Bytes that the queue can still send in this round.
    allotment_bytes: i64,
    /// Number of the last change of its length.
    changed: u64,
}

impl<B: Copy + Send + 'static> Sfq<B> {
    pub(crate) const ROW: QueueEntry<B> = QueueEntry {
        entry: ENTRY,
        check: unrelated,
        build: |values, _| Box::new(Self::new(values)),
    };
}

impl<B> Sfq<B> {
    fn new(values: &ParameterValues) -> Self {
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

    /// Checks the invariants that hold after every call.
    #[inline]
    fn check(&self) {
        debug_assert!(
            self.active.len() <= self.flows && self.active.len() <= self.total.packets as usize
        );
        debug_assert_eq!(self.active.is_empty(), self.total.packets == 0);
        debug_assert!(self.total.packets <= self.limit_packets);
    }

    /// Records that the length of a queue has changed.
    #[inline]
    fn changed(&mut self, index: usize) {
        self.changes += 1;
        self.queues[index].changed = self.changes;
    }

    /// `sch_sfq.c::sfq_drop`: drops a packet from the longest queue, in case of a tie from the
    /// queue that reached this length last. If no queue has two packets, drops from the queue whose
    /// turn it is.
    #[cold]
    fn drop_from_longest(&mut self, now: Time, outcome: &mut dyn PacketOutcome<B>) {
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
            outcome.dropped(now, &packet, DropReason::Overflow);
        }
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for Sfq<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        let index = bucket_of(packet.connection, self.queues.len());
        let queue = &mut self.queues[index];
        let waiting = queue.packets.len();
        if waiting == 0 && self.active.len() >= self.flows {
            outcome.dropped(now, &packet, DropReason::Overflow);
            return;
        }
        if waiting >= self.depth_packets {
            let dropped = if self.head_drop { queue.packets.pop_front() } else { None };
            let Some(head) = dropped else {
                outcome.dropped(now, &packet, DropReason::Overflow);
                return;
            };
            // One packet replaces another, so the rank of the queue by length does not change.
            queue.packets.push_back(packet);
            self.total.remove(head.size_bytes);
            self.total.add(packet.size_bytes);
            outcome.dropped(now, &head, DropReason::Overflow);
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
            self.drop_from_longest(now, outcome);
        }
        self.check();
    }

    fn dequeue(&mut self, _: Time, _: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
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
            self.check();
            return Some(packet);
        }
    }

    fn backlog_bytes(&self) -> u64 {
        self.total.bytes
    }

    fn backlog_packets(&self) -> u64 {
        self.total.packets
    }
}

#[cfg(test)]
mod tests {
    use jostle_registry::ParameterValue;

    use super::super::test_support::{RecordedOutcomes, packet};
    use jostle_units::ConnectionId;

    use super::*;

    fn sfq<const N: usize>(given: [(&str, ParameterValue); N]) -> Sfq<()> {
        let given = given.map(|(name, value)| (name.to_owned(), value));
        Sfq::new(&ENTRY.resolve(&given.into()).unwrap())
    }

    fn of_flow(flow: u32, size_bytes: u32) -> Packet<()> {
        Packet { connection: ConnectionId(flow), ..packet(size_bytes) }
    }

    fn flows(queue: &mut Sfq<()>, n: usize) -> Vec<u32> {
        let mut fates = RecordedOutcomes::default();
        (0..n)
            .map_while(|_| queue.dequeue(Time::ZERO, &mut fates).map(|p| p.connection.0))
            .collect()
    }

    #[test]
    fn flows_take_turns_in_bytes_and_new_ones_come_last() {
        let (mut queue, mut fates) = (sfq([]), RecordedOutcomes::default());
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
            let mut queue = sfq([
                ("limit", ParameterValue::Integer(5)),
                ("headdrop", ParameterValue::Bool(head_drop)),
            ]);
            let mut fates = RecordedOutcomes::default();
            for number in 0..5 {
                queue.enqueue(Time::ZERO, of_flow(1, 100 + number), &mut fates);
            }
            queue.enqueue(Time::ZERO, of_flow(2, 99), &mut fates);
            assert_eq!((fates.dropped.len(), queue.backlog_packets()), (1, 5));
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
        let (mut queue, mut fates) =
            (sfq([("limit", ParameterValue::Integer(3))]), RecordedOutcomes::default());
        for flow in 1..=4 {
            queue.enqueue(Time::ZERO, of_flow(flow, 1514), &mut fates);
        }
        assert_eq!(flows(&mut queue, 9), [2, 3, 4]);
    }

    #[test]
    fn a_queue_has_a_depth_and_there_are_so_many() {
        let mut queue =
            sfq([("depth", ParameterValue::Integer(2)), ("flows", ParameterValue::Integer(2))]);
        let mut fates = RecordedOutcomes::default();
        for flow in [1, 1, 1, 2, 3] {
            queue.enqueue(Time::ZERO, of_flow(flow, 1514), &mut fates);
        }
        assert_eq!((fates.dropped.len(), queue.backlog_packets()), (2, 3));
        let mut queue =
            sfq([("depth", ParameterValue::Integer(2)), ("headdrop", ParameterValue::Bool(true))]);
        for number in 0..3 {
            queue.enqueue(Time::ZERO, of_flow(1, 100 + number), &mut fates);
        }
        assert_eq!(queue.dequeue(Time::ZERO, &mut fates).map(|p| p.size_bytes), Some(101));
    }
}
