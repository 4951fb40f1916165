//! FQ-PIE, as Linux `net/sched/sch_fq_pie.c`: flows are hashed to queues that take turns as in FQ-CoDel,
//! each under PIE's control of what comes in. Linux's second limit, on kernel memory, does not exist here.

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::{Ring, Stream, Time};

use super::pie::{ALPHA, BETA, Control, Law, TARGET, UPDATE};
use super::turns::{QUANTUM, QUEUES, Turns, bucket_of};
use super::{Backlog, QueueDiscipline};
use crate::packet::{Fate, Packet, Reason};
use crate::parameters::{self, LARGEST_PACKETS};
use crate::registry::{QueueRow, unrelated};

const ENTRY: Entry = Entry {
    name: "fq_pie",
    summary: "Flows in queues of their own that take turns, each under PIE",
    class: "fair",
    based_on: &["pie"],
    source: "Linux net/sched/sch_fq_pie.c; RFC 8033",
    parameters: &[
        Parameter {
            name: "limit",
            summary: "most that all its queues hold together, in packets",
            kind: Kind::Packets { default: 10_240, min: 1, max: LARGEST_PACKETS },
        },
        QUEUES,
        QUANTUM,
        TARGET,
        UPDATE,
        ALPHA,
        BETA,
        parameters::ecn(false),
    ],
};

/// Queues that take turns, each under PIE's control.
#[derive(Debug)]
pub struct FqPie<B> {
    limit_packets: u64,
    law: Law,
    queues: Vec<Queue<B>>,
    total: Backlog,
    turns: Turns,
    random: Stream,
}

#[derive(Debug)]
struct Queue<B> {
    packets: Ring<Packet<B>>,
    bytes: u64,
    control: Control,
}

impl<B: Copy + Send + 'static> FqPie<B> {
    pub(crate) const ROW: QueueRow<B> = QueueRow {
        entry: ENTRY,
        check: unrelated,
        build: |values, random| Box::new(Self::new(values, random)),
    };
}

impl<B> FqPie<B> {
    fn new(values: &Values, random: Stream) -> Self {
        let (law, queues) = (Law::new(values), values.u32("queues") as usize);
        let empty = |_| Queue { packets: Ring::default(), bytes: 0, control: Control::new(&law) };
        Self {
            limit_packets: values.amount("limit"),
            law,
            queues: (0..queues).map(empty).collect(),
            total: Backlog::default(),
            turns: Turns::new(queues, values.u32("quantum")),
            random,
        }
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for FqPie<B> {
    fn enqueue(&mut self, now: Time, mut packet: Packet<B>, fate: &mut dyn Fate<B>) {
        let index = bucket_of(packet.flow, self.queues.len());
        let queue = &mut self.queues[index];
        // Linux's timer goes through all queues. What it looks at of one changes only when a packet
        // comes or goes, so that it is enough to make up for it then.
        queue.control.catch_up(&self.law, now, queue.bytes);
        if self.total.packets >= self.limit_packets {
            queue.control.drops(now, &packet, Reason::Overflow, fate);
            return;
        }
        let (law, random, bytes) = (&self.law, &mut self.random, queue.bytes);
        if queue.control.admits(law, now, &mut packet, bytes, random, fate) {
            queue.bytes += u64::from(packet.size_bytes);
            self.total.add(packet.size_bytes);
            queue.packets.push_back(packet);
            self.turns.arrived(index);
        }
    }

    fn dequeue(&mut self, now: Time, _: &mut dyn Fate<B>) -> Option<Packet<B>> {
        loop {
            let index = self.turns.current()?;
            let queue = &mut self.queues[index];
            queue.control.catch_up(&self.law, now, queue.bytes);
            let Some(packet) = queue.packets.pop_front() else {
                self.turns.was_empty(index);
                continue;
            };
            queue.bytes -= u64::from(packet.size_bytes);
            self.total.remove(packet.size_bytes);
            self.turns.sent(index, packet.size_bytes);
            queue.control.departure(now, packet.queued_at, queue.bytes);
            return Some(packet);
        }
    }

    fn bytes(&self) -> u64 {
        self.total.bytes
    }

    fn packets(&self) -> u64 {
        self.total.packets
    }

    fn pass(&mut self, now: Time) {
        for queue in &mut self.queues {
            queue.control.catch_up(&self.law, now, queue.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jostle_units::Span;

    use super::super::testing::{Fates, packet};
    use super::*;

    fn fq_pie() -> FqPie<()> {
        FqPie::new(&ENTRY.resolve(&BTreeMap::new()).unwrap(), Stream::new(1, "fq_pie"))
    }

    fn of_flow(flow: u32, now: Time) -> Packet<()> {
        Packet { flow, queued_at: now, ..packet(1514) }
    }

    /// Two flows share 12 Mbit/s, a packet in a millisecond; one sends as much as the link
    /// carries, the other a third: only the first is dropped from, and kept near the target.
    #[test]
    fn each_flow_has_a_probability_of_its_own() {
        let (mut queue, mut fates) = (fq_pie(), Fates::default());
        let (mut sent, mut waited) = ([0u64; 2], [Span::ZERO; 2]);
        for ms in 0..20_000u64 {
            let now = Time::ZERO + Span::from_ms(ms);
            queue.enqueue(now, of_flow(0, now), &mut fates);
            if ms.is_multiple_of(3) {
                queue.enqueue(now, of_flow(1, now), &mut fates);
            }
            if let Some(packet) = queue.dequeue(now, &mut fates) {
                let flow = packet.flow as usize;
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
        assert!(fates.dropped.iter().all(|(_, reason)| *reason == Reason::Pie));
    }
}
