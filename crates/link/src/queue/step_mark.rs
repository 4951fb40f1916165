//! A FIFO queue that marks packets which waited longer than a threshold. This is the queue for
//! which DCTCP is designed (Alizadeh et al. 2010, §3.1: mark if the queue is longer than K;
//! RFC 8257 §3.1), and `ce_threshold` in Linux (`include/net/codel_impl.h`).
//!
//! The threshold is a time, as in Linux, while K is a length. At a constant rate both mark the same
//! packets: a packet that found more than K in the queue has waited longer than K ÷ rate when it
//! leaves.
//!
//! With `l4s_only` it is the step of an L4S queue that other flows share (Linux's
//! `ce_threshold_selector` 0x1/0x3 of fq_codel): only packets of L4S flows, ECT(1), are marked.

use jostle_registry::{Parameter, ParameterValues, QueueLimit, RegistryEntry};
use jostle_units::{Span, Time};

use super::{Fifo, QueueDiscipline, mark};
use crate::packet::{DropReason, Ecn, Packet, PacketOutcome};
use crate::parameters::{self, span};
use crate::registry::{QueueEntry, unrelated};

const ENTRY: RegistryEntry = RegistryEntry {
    name: "step_mark",
    summary: "drop-tail that marks packets whose queueing delay exceeds a threshold, for DCTCP",
    class: "active",
    based_on: &["drop_tail"],
    source: "Alizadeh et al.: Data Center TCP (DCTCP), SIGCOMM 2010; RFC 8257; Linux \
             include/net/codel_impl.h (ce_threshold)",
    parameters: &[
        parameters::limit(Some(1_000)),
        span("threshold", Span::from_ms(1))
            .summary("queueing delay above which ECN-capable packets are marked"),
        Parameter::bool("l4s_only", false).summary("mark only packets of L4S flows, ECT(1)"),
    ],
};

/// A FIFO queue that marks packets which waited longer than a threshold.
#[derive(Debug)]
pub struct StepMark<B> {
    limit: QueueLimit,
    threshold: Span,
    l4s_only: bool,
    fifo: Fifo<B>,
}

impl<B: Copy + Send + 'static> StepMark<B> {
    pub(crate) const ROW: QueueEntry<B> = QueueEntry {
        entry: ENTRY,
        check: unrelated,
        build: |values, _| Box::new(Self::new(values)),
    };
}

impl<B> StepMark<B> {
    fn new(values: &ParameterValues) -> Self {
        Self {
            limit: values.limit("limit"),
            threshold: values.span("threshold"),
            l4s_only: values.bool("l4s_only"),
            fifo: Fifo::default(),
        }
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for StepMark<B> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        self.fifo.push_or_drop(self.limit, now, packet, outcome);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, outcome: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
        let mut packet = self.fifo.pop()?;
        let late = now.since(packet.queued_at) > self.threshold;
        if late && (packet.ecn == Ecn::L4s || !self.l4s_only) && mark(&mut packet) {
            outcome.marked(now, &packet, DropReason::Step);
        }
        Some(packet)
    }

    fn backlog_bytes(&self) -> u64 {
        self.fifo.backlog().bytes
    }

    fn backlog_packets(&self) -> u64 {
        self.fifo.backlog().packets
    }
}

#[cfg(test)]
mod tests {
    use jostle_registry::ParameterValue;

    use super::super::test_support::{RecordedOutcomes, capable, packet};
    use super::*;

    fn us(us: u64) -> Time {
        Time::from_ns(us * 1_000)
    }

    fn step_mark(limit_packets: u64, threshold_us: i64, l4s_only: bool) -> StepMark<()> {
        let given = [
            ("limit", ParameterValue::Limit(QueueLimit::Packets(limit_packets))),
            ("threshold", ParameterValue::Integer(threshold_us * 1_000)),
            ("l4s_only", ParameterValue::Bool(l4s_only)),
        ];
        let given = given.map(|(name, value)| (name.to_owned(), value));
        StepMark::new(&ENTRY.resolve(&given.into()).unwrap())
    }

    #[test]
    fn what_is_not_of_l4s_may_be_left_alone() {
        let mut queue = step_mark(10, 1, true);
        let mut fates = RecordedOutcomes::default();
        for ecn in [Ecn::NotCapable, Ecn::Capable, Ecn::L4s, Ecn::Marked] {
            queue.enqueue(us(0), Packet { ecn, ..packet(1500) }, &mut fates);
        }
        let left = [(); 4].map(|()| queue.dequeue(us(5), &mut fates).unwrap().ecn);
        assert_eq!(left, [Ecn::NotCapable, Ecn::Capable, Ecn::Marked, Ecn::Marked]);
        assert_eq!(fates.marked.len(), 1, "what came in marked is no new mark");
    }

    #[test]
    fn what_waits_longer_than_the_threshold_is_marked_and_nothing_else() {
        let mut queue = step_mark(10, 1_000, false);
        let mut fates = RecordedOutcomes::default();
        for _ in 0..3 {
            queue.enqueue(us(0), capable(us(0), 1500), &mut fates);
        }
        let mut leave = |at| queue.dequeue(at, &mut fates).unwrap().ecn;
        assert_eq!(leave(us(0)), Ecn::Capable);
        assert_eq!(leave(us(1_000)), Ecn::Capable, "not above it");
        assert_eq!(leave(us(1_000) + Span::from_ns(1)), Ecn::Marked);
        assert_eq!(fates.marked, [(us(1_000) + Span::from_ns(1), DropReason::Step)]);
    }

    /// Marks by time and marks by length, K = 100 µs · rate, are the same.
    #[test]
    fn at_a_constant_rate_it_marks_what_found_more_than_k_waiting() {
        let mut queue = step_mark(1_000, 100, false);
        let mut fates = RecordedOutcomes::default();
        let (mut expected, mut marked) = (Vec::new(), Vec::new());
        // One packet per 10 µs leaves; bursts of 1 … 40 arrive, each when the last has drained.
        let mut now = us(0);
        for burst in 1..=40u32 {
            for position in 0..burst {
                expected.push(position > 10);
                queue.enqueue(now, capable(now, 1250), &mut fates);
            }
            for _ in 0..burst {
                marked.push(queue.dequeue(now, &mut fates).unwrap().ecn == Ecn::Marked);
                now += Span::from_us(10);
            }
        }
        assert_eq!(marked, expected);
    }

    #[test]
    fn what_cannot_be_marked_waits_up_to_the_limit() {
        let mut queue = step_mark(2, 1, false);
        let mut fates = RecordedOutcomes::default();
        for _ in 0..3 {
            queue.enqueue(us(0), packet(1500), &mut fates);
        }
        assert_eq!(fates.dropped, [(us(0), DropReason::Overflow)]);
        assert_eq!(queue.dequeue(us(500), &mut fates).unwrap().ecn, Ecn::NotCapable);
        assert!(fates.marked.is_empty());
    }
}
