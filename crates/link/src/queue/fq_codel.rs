//! FQ-CoDel (RFC 8290), as in Linux `net/sched/sch_fq_codel.c`: flows are hashed to queues, which
//! are served by deficit round robin with priority for new queues, each with CoDel (RFC 8289 §4.4).
//! Linux's second limit, on kernel memory, is not implemented.

use std::collections::VecDeque;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::Time;

use super::codel::{CodelParameters, CodelState, DequeueSource, INTERVAL, TARGET};
use super::flow_queue_scheduler::{FlowQueueScheduler, QUANTUM, QUEUES, bucket_of};
use super::{Backlog, QueueDiscipline};
use crate::packet::{DropReason, Packet, PacketOutcome};
use crate::parameters::{self, LARGEST_PACKETS};
use crate::registry::{QueueEntry, unrelated};

const ENTRY: RegistryEntry = RegistryEntry {
    name: "fq_codel",
    summary: "flow queueing with CoDel per queue",
    class: "fair",
    based_on: &["codel"],
    source: "RFC 8290; Linux net/sched/sch_fq_codel.c",
    parameters: &[
        Parameter::packets("limit", 10_240, 1..=LARGEST_PACKETS)
            .summary("largest sum of the queue lengths, in packets"),
        QUEUES,
        QUANTUM,
        TARGET,
        INTERVAL,
        parameters::ecn(true),
    ],
};

/// Maximum number of packets that one overflow drops from the longest queue. The search for it
/// visits every queue; a batch spreads that cost.
const DROP_BATCH_PACKETS: u32 = 64;

/// Flow queues with CoDel.
#[derive(Debug)]
pub struct FqCodel<B> {
    limit_packets: u64,
    parameters: CodelParameters,
    queues: Vec<Queue<B>>,
    /// Bytes in each queue, stored separately so that the search for the longest queue is fast.
    bytes: Vec<u64>,
    total: Backlog,
    turns: FlowQueueScheduler,
}

#[derive(Debug)]
struct Queue<B> {
    packets: VecDeque<Packet<B>>,
    codel: CodelState,
}

/// Head of one queue. CoDel's check for remaining packets uses the total of all queues, as in
/// Linux.
struct QueueHead<'a, B> {
    packets: &'a mut VecDeque<Packet<B>>,
    bytes: &'a mut u64,
    total: &'a mut Backlog,
}

impl<B> DequeueSource<B> for QueueHead<'_, B> {
    #[inline]
    fn pop_head(&mut self) -> Option<Packet<B>> {
        let packet = self.packets.pop_front()?;
        *self.bytes -= u64::from(packet.size_bytes);
        self.total.remove(packet.size_bytes);
        Some(packet)
    }

    #[inline]
    fn backlog_bytes(&self) -> u64 {
        self.total.bytes
    }
}

impl<B: Copy + Send + 'static> FqCodel<B> {
    pub(crate) const ROW: QueueEntry<B> = QueueEntry {
        entry: ENTRY,
        check: unrelated,
        build: |values, _| Box::new(Self::new(values)),
    };
}

impl<B> FqCodel<B> {
    fn new(values: &ParameterValues) -> Self {
        let queues = values.u32("queues");
        let empty = |_| Queue { packets: VecDeque::new(), codel: CodelState::default() };
        Self {
            limit_packets: values.amount("limit"),
            parameters: CodelParameters::new(values),
            queues: (0..queues).map(empty).collect(),
            bytes: vec![0; queues as usize],
            total: Backlog::default(),
            turns: FlowQueueScheduler::new(queues as usize, values.u32("quantum")),
        }
    }

    /// RFC 8290 §4.1: on overflow, drops packets at the head of the queue with the most bytes, up
    /// to half of its bytes, but at most one batch.
    /// `sch_fq_codel.c::fq_codel_drop`.
    #[cold]
    fn drop_from_fattest(&mut self, now: Time, outcome: &mut dyn PacketOutcome<B>) {
        let mut fattest = 0;
        for (index, bytes) in self.bytes.iter().enumerate() {
            if *bytes > self.bytes[fattest] {
                fattest = index;
            }
        }
        let stop_bytes = self.bytes[fattest].div_ceil(2);
        let queue = &mut self.queues[fattest];
        let mut head = QueueHead {
            packets: &mut queue.packets,
            bytes: &mut self.bytes[fattest],
            total: &mut self.total,
        };
        let mut drops = 0;
        while drops < DROP_BATCH_PACKETS && (drops == 0 || *head.bytes > stop_bytes) {
            let Some(packet) = head.pop_head() else { break };
            outcome.dropped(now, &packet, DropReason::Overflow);
            drops += 1;
        }
        // As in Linux, the drops increase CoDel's `count`, which strengthens its signal.
        queue.codel.count = queue.codel.count.saturating_add(drops);
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for FqCodel<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        let index = bucket_of(packet.connection, self.queues.len());
        self.bytes[index] += u64::from(packet.size_bytes);
        self.total.add(packet.size_bytes);
        self.queues[index].packets.push_back(packet);
        self.turns.on_enqueue(index);
        if self.total.packets > self.limit_packets {
            self.drop_from_fattest(now, outcome);
        }
    }

    fn dequeue(&mut self, now: Time, outcome: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
        loop {
            let Some(index) = self.turns.next_queue() else {
                debug_assert_eq!(self.total, Backlog::default(), "packets without a turn");
                return None;
            };
            let queue = &mut self.queues[index];
            let mut head = QueueHead {
                packets: &mut queue.packets,
                bytes: &mut self.bytes[index],
                total: &mut self.total,
            };
            if let Some(packet) = queue.codel.dequeue(&self.parameters, now, &mut head, outcome) {
                self.turns.on_dequeue(index, packet.size_bytes);
                return Some(packet);
            }
            debug_assert!(queue.packets.is_empty() && self.bytes[index] == 0, "queue {index}");
            self.turns.on_queue_empty(index);
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

    /// With the defaults of Linux but for the limit, if one is given.
    fn fq_codel(limit_packets: Option<i64>) -> FqCodel<()> {
        let given = limit_packets.map(|n| ("limit".to_owned(), ParameterValue::Integer(n)));
        FqCodel::new(&ENTRY.resolve(&given.into_iter().collect()).unwrap())
    }

    fn of_flow(flow: u32, size_bytes: u32) -> Packet<()> {
        Packet { connection: ConnectionId(flow), ..packet(size_bytes) }
    }

    fn flows(queue: &mut FqCodel<()>, n: usize) -> Vec<u32> {
        let mut fates = RecordedOutcomes::default();
        (0..n)
            .map_while(|_| queue.dequeue(Time::ZERO, &mut fates).map(|p| p.connection.0))
            .collect()
    }

    #[test]
    fn queues_take_turns_by_bytes() {
        let (mut queue, mut fates) = (fq_codel(None), RecordedOutcomes::default());
        for _ in 0..300 {
            queue.enqueue(Time::ZERO, of_flow(1, 1514), &mut fates);
            queue.enqueue(Time::ZERO, of_flow(2, 757), &mut fates);
        }
        let served = flows(&mut queue, 300);
        let first = served.iter().filter(|flow| **flow == 1).count();
        assert_eq!(first, 100, "packets of half the size come twice as often");
    }

    #[test]
    fn a_new_flow_goes_ahead_of_old_ones_once() {
        let (mut queue, mut fates) = (fq_codel(None), RecordedOutcomes::default());
        for _ in 0..10 {
            queue.enqueue(Time::ZERO, of_flow(1, 1514), &mut fates);
        }
        assert_eq!(flows(&mut queue, 2), [1, 1]);
        for _ in 0..3 {
            queue.enqueue(Time::ZERO, of_flow(2, 1514), &mut fates);
        }
        // Flow 2 goes first, then is last of the old ones; flow 1, its quantum spent, gets a new one
        // behind it. From there they take turns.
        assert_eq!(flows(&mut queue, 6), [2, 2, 1, 2, 1, 1]);
    }

    #[test]
    fn overflow_takes_half_of_the_fattest_queue_up_to_64_packets_from_its_head() {
        let (mut queue, mut fates) = (fq_codel(Some(100)), RecordedOutcomes::default());
        for _ in 0..60 {
            queue.enqueue(Time::ZERO, of_flow(1, 1514), &mut fates);
        }
        for _ in 0..41 {
            queue.enqueue(Time::ZERO, of_flow(2, 1514), &mut fates);
        }
        assert_eq!(fates.dropped.len(), 30);
        assert!(fates.dropped.iter().all(|(_, reason)| *reason == DropReason::Overflow));
        assert_eq!(queue.backlog_packets(), 71);

        let (mut queue, mut fates) = (fq_codel(Some(1_000)), RecordedOutcomes::default());
        for _ in 0..1_001 {
            queue.enqueue(Time::ZERO, of_flow(1, 1514), &mut fates);
        }
        assert_eq!((fates.dropped.len(), queue.backlog_packets()), (64, 937));
    }
}
