//! FQ-PIE, as in Linux `net/sched/sch_fq_pie.c`: flows are hashed to queues with the scheduler of
//! FQ-CoDel, each with PIE on arrivals. Linux's second limit, on kernel memory, is not implemented.

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{RandomStream, RingBuffer, Time};

use super::flow_queue_scheduler::{FlowQueueScheduler, QUANTUM, QUEUES, bucket_of};
use super::pie::{ALPHA, BETA, PieParameters, PieState, TARGET, UPDATE};
use super::{Backlog, QueueDiscipline};
use crate::packet::{DropReason, Packet, PacketOutcome};
use crate::parameters::{self, LARGEST_PACKETS};
use crate::registry::{QueueEntry, unrelated};

const ENTRY: RegistryEntry = RegistryEntry {
    name: "fq_pie",
    summary: "flow queueing with PIE per queue",
    class: "fair",
    based_on: &["pie"],
    source: "Linux net/sched/sch_fq_pie.c; RFC 8033",
    parameters: &[
        Parameter::packets("limit", 10_240, 1..=LARGEST_PACKETS)
            .summary("largest sum of the queue lengths, in packets"),
        QUEUES,
        QUANTUM,
        TARGET,
        UPDATE,
        ALPHA,
        BETA,
        parameters::ecn(false),
    ],
};

/// Flow queues with PIE.
#[derive(Debug)]
pub struct FqPie<B> {
    limit_packets: u64,
    parameters: PieParameters,
    queues: Vec<Queue<B>>,
    total: Backlog,
    turns: FlowQueueScheduler,
    random: RandomStream,
}

#[derive(Debug)]
struct Queue<B> {
    packets: RingBuffer<Packet<B>>,
    bytes: u64,
    control: PieState,
}

impl<B: Copy + Send + 'static> FqPie<B> {
    pub(crate) const ROW: QueueEntry<B> = QueueEntry {
        entry: ENTRY,
        check: unrelated,
        build: |values, random| Box::new(Self::new(values, random)),
    };
}

impl<B> FqPie<B> {
    fn new(values: &ParameterValues, random: RandomStream) -> Self {
        let (parameters, queues) = (PieParameters::new(values), values.u32("queues") as usize);
        let empty = |_| Queue {
            packets: RingBuffer::default(),
            bytes: 0,
            control: PieState::new(&parameters),
        };
        Self {
            limit_packets: values.amount("limit"),
            parameters,
            queues: (0..queues).map(empty).collect(),
            total: Backlog::default(),
            turns: FlowQueueScheduler::new(queues, values.u32("quantum")),
            random,
        }
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for FqPie<B> {
    fn enqueue(&mut self, now: Time, mut packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        let index = bucket_of(packet.connection, self.queues.len());
        let queue = &mut self.queues[index];
        // Linux updates all queues by a timer. The inputs of an update change only when a packet
        // arrives or leaves, so it is sufficient to make the updates then.
        queue.control.catch_up(&self.parameters, now, queue.bytes);
        if self.total.packets >= self.limit_packets {
            queue.control.drops(now, &packet, DropReason::Overflow, outcome);
            return;
        }
        let (parameters, random, bytes) = (&self.parameters, &mut self.random, queue.bytes);
        if queue.control.admits(parameters, now, &mut packet, bytes, random, outcome) {
            queue.bytes += u64::from(packet.size_bytes);
            self.total.add(packet.size_bytes);
            queue.packets.push_back(packet);
            self.turns.on_enqueue(index);
        }
    }

    fn dequeue(&mut self, now: Time, _: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
        loop {
            let Some(index) = self.turns.next_queue() else {
                debug_assert_eq!(self.total, Backlog::default(), "packets without a turn");
                return None;
            };
            let queue = &mut self.queues[index];
            queue.control.catch_up(&self.parameters, now, queue.bytes);
            let Some(packet) = queue.packets.pop_front() else {
                debug_assert_eq!(queue.bytes, 0, "bytes of queue {index}");
                self.turns.on_queue_empty(index);
                continue;
            };
            queue.bytes -= u64::from(packet.size_bytes);
            self.total.remove(packet.size_bytes);
            self.turns.on_dequeue(index, packet.size_bytes);
            queue.control.departure(now, packet.queued_at, queue.bytes);
            return Some(packet);
        }
    }

    fn backlog_bytes(&self) -> u64 {
        self.total.bytes
    }

    fn backlog_packets(&self) -> u64 {
        self.total.packets
    }

    fn advance_to(&mut self, now: Time) {
        for queue in &mut self.queues {
            queue.control.catch_up(&self.parameters, now, queue.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jostle_units::{ConnectionId, Span};

    use super::super::test_support::{RecordedOutcomes, packet};
    use super::*;

    fn fq_pie() -> FqPie<()> {
        FqPie::new(&ENTRY.resolve(&BTreeMap::new()).unwrap(), RandomStream::new(1, "fq_pie"))
    }

    fn of_flow(flow: u32, now: Time) -> Packet<()> {
        Packet { connection: ConnectionId(flow), queued_at: now, ..packet(1514) }
    }

    /// Two flows share 12 Mbit/s, a packet in a millisecond; one sends as much as the link
    /// carries, the other a third: only the first is dropped from, and kept near the target.
    #[test]
    fn each_flow_has_a_probability_of_its_own() {
        let (mut queue, mut fates) = (fq_pie(), RecordedOutcomes::default());
        let (mut sent, mut waited) = ([0u64; 2], [Span::ZERO; 2]);
        for ms in 0..20_000u64 {
            let now = Time::ZERO + Span::from_ms(ms);
            queue.enqueue(now, of_flow(0, now), &mut fates);
            if ms.is_multiple_of(3) {
                queue.enqueue(now, of_flow(1, now), &mut fates);
            }
            if let Some(packet) = queue.dequeue(now, &mut fates) {
                let flow = packet.connection.index();
                sent[flow] += u64::from(ms >= 10_000);
                if ms >= 10_000 {
                    waited[flow] = waited[flow] + now.since(packet.queued_at);
                }
            }
        }
        assert!(sent[1].abs_diff(3_333) <= 1, "{sent:?}");
        assert!(waited[1].as_ns() / sent[1] < 3_000_000, "{waited:?}");
        let mean_ms = waited[0].as_ns() / sent[0] / 1_000_000;
        assert!((5..60).contains(&mean_ms), "{mean_ms} ms");
        assert!(fates.dropped.iter().all(|(_, reason)| *reason == DropReason::Pie));
    }
}
