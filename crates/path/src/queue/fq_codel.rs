//! FQ-CoDel (RFC 8290), as Linux `net/sched/sch_fq_codel.c`: flows are hashed to queues that take
//! turns by deficit round robin, new ones first, each under CoDel's control. Linux's second limit,
//! on kernel memory, does not exist here.

use std::collections::VecDeque;

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::Time;

use super::codel::{Head, INTERVAL, Law, State, TARGET};
use super::turns::{QUANTUM, QUEUES, Turns, bucket_of};
use super::{Backlog, QueueDiscipline};
use crate::packet::{Fate, Packet, Reason};
use crate::parameters::{self, LARGEST_PACKETS};
use crate::registry::{QueueRow, unrelated};

const ENTRY: Entry = Entry {
    name: "fq_codel",
    summary: "Flows in queues of their own that take turns, each under CoDel",
    class: "fair",
    based_on: &["codel"],
    source: "RFC 8290; Linux net/sched/sch_fq_codel.c",
    parameters: &[
        Parameter {
            name: "limit",
            summary: "most that all its queues hold together, in packets",
            kind: Kind::Packets { default: 10_240, min: 1, max: LARGEST_PACKETS },
        },
        QUEUES,
        QUANTUM,
        TARGET,
        INTERVAL,
        parameters::ecn(true),
    ],
};

/// Most packets that one overflow drops from the fattest queue. Finding it costs a look at every
/// queue; a batch spreads that cost.
const DROP_BATCH_PACKETS: u32 = 64;

/// Queues that take turns, each under CoDel's control.
#[derive(Debug)]
pub struct FqCodel<B> {
    limit_packets: u64,
    law: Law,
    queues: Vec<Queue<B>>,
    /// Bytes in each queue, apart from the queues so that the search for the fattest is quick.
    bytes: Vec<u64>,
    total: Backlog,
    turns: Turns,
}

#[derive(Debug)]
struct Queue<B> {
    packets: VecDeque<Packet<B>>,
    codel: State,
}

/// One queue's head. The guard of CoDel looks at what is left in all queues, as in Linux.
struct QueueHead<'a, B> {
    packets: &'a mut VecDeque<Packet<B>>,
    bytes: &'a mut u64,
    total: &'a mut Backlog,
}

impl<B> Head<B> for QueueHead<'_, B> {
    #[inline]
    fn take(&mut self) -> Option<Packet<B>> {
        let packet = self.packets.pop_front()?;
        *self.bytes -= u64::from(packet.size_bytes);
        self.total.remove(packet.size_bytes);
        Some(packet)
    }

    #[inline]
    fn left_bytes(&self) -> u64 {
        self.total.bytes
    }
}

impl<B: Copy + Send + 'static> FqCodel<B> {
    pub(crate) const ROW: QueueRow<B> =
        QueueRow { entry: ENTRY, check: unrelated, build: |values, _| Box::new(Self::new(values)) };
}

impl<B> FqCodel<B> {
    fn new(values: &Values) -> Self {
        let queues = values.u32("queues");
        let empty = |_| Queue { packets: VecDeque::new(), codel: State::default() };
        Self {
            limit_packets: values.amount("limit"),
            law: Law::new(values),
            queues: (0..queues).map(empty).collect(),
            bytes: vec![0; queues as usize],
            total: Backlog::default(),
            turns: Turns::new(queues as usize, values.u32("quantum")),
        }
    }

    /// RFC 8290, 4.1: on overflow, the queue with the most bytes gives up packets at its head:
    /// up to half of its bytes, but no more than a batch.
    #[cold]
    fn drop_from_fattest(&mut self, now: Time, fate: &mut dyn Fate<B>) {
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
            let Some(packet) = head.take() else { break };
            fate.dropped(now, &packet, Reason::Overflow);
            drops += 1;
        }
        // CoDel goes on from a stronger signal, as in Linux.
        queue.codel.count = queue.codel.count.saturating_add(drops);
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for FqCodel<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, fate: &mut dyn Fate<B>) {
        let index = bucket_of(packet.flow, self.queues.len());
        self.bytes[index] += u64::from(packet.size_bytes);
        self.total.add(packet.size_bytes);
        self.queues[index].packets.push_back(packet);
        self.turns.arrived(index);
        if self.total.packets > self.limit_packets {
            self.drop_from_fattest(now, fate);
        }
    }

    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<B>) -> Option<Packet<B>> {
        loop {
            let index = self.turns.current()?;
            let queue = &mut self.queues[index];
            let mut head = QueueHead {
                packets: &mut queue.packets,
                bytes: &mut self.bytes[index],
                total: &mut self.total,
            };
            if let Some(packet) = queue.codel.dequeue(&self.law, now, &mut head, fate) {
                self.turns.sent(index, packet.size_bytes);
                return Some(packet);
            }
            self.turns.was_empty(index);
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

    /// With the defaults of Linux but for the limit, if one is given.
    fn fq_codel(limit_packets: Option<i64>) -> FqCodel<()> {
        let given = limit_packets.map(|n| ("limit".to_owned(), Value::Integer(n)));
        FqCodel::new(&ENTRY.resolve(&given.into_iter().collect()).unwrap())
    }

    fn of_flow(flow: u32, size_bytes: u32) -> Packet<()> {
        Packet { flow, ..packet(size_bytes) }
    }

    fn flows(queue: &mut FqCodel<()>, n: usize) -> Vec<u32> {
        let mut fates = Fates::default();
        (0..n).map_while(|_| queue.dequeue(Time::ZERO, &mut fates).map(|p| p.flow)).collect()
    }

    #[test]
    fn queues_take_turns_by_bytes() {
        let (mut queue, mut fates) = (fq_codel(None), Fates::default());
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
        let (mut queue, mut fates) = (fq_codel(None), Fates::default());
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
        let (mut queue, mut fates) = (fq_codel(Some(100)), Fates::default());
        for _ in 0..60 {
            queue.enqueue(Time::ZERO, of_flow(1, 1514), &mut fates);
        }
        for _ in 0..41 {
            queue.enqueue(Time::ZERO, of_flow(2, 1514), &mut fates);
        }
        assert_eq!(fates.dropped.len(), 30);
        assert!(fates.dropped.iter().all(|(_, reason)| *reason == Reason::Overflow));
        assert_eq!(queue.packets(), 71);

        let (mut queue, mut fates) = (fq_codel(Some(1_000)), Fates::default());
        for _ in 0..1_001 {
            queue.enqueue(Time::ZERO, of_flow(1, 1514), &mut fates);
        }
        assert_eq!((fates.dropped.len(), queue.packets()), (64, 937));
    }
}
