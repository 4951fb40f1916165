//! First in, first out; what has waited longer than a threshold is marked. This is the queue that
//! DCTCP is for (Alizadeh et al. 2010, §3.1: mark if the queue is longer than K), and what Linux
//! calls `ce_threshold` (`include/net/codel_impl.h`).
//!
//! The threshold is a time, as in Linux, where K is a length. At a constant rate both mark the same
//! packets: one that found more than K waiting has waited for more than K ÷ rate when it leaves.

use jostle_catalogue::{Entry, Limit};
use jostle_units::{Span, Time};

use super::{Fifo, QueueDiscipline, mark};
use crate::packet::{Fate, Packet, Reason};
use crate::parameters::{self, MS, span};
use crate::registry::{QueueRow, unrelated};

const ENTRY: Entry = Entry {
    name: "step_mark",
    summary: "Drop-tail that marks what has waited for longer than a threshold, as DCTCP wants it",
    class: "active",
    based_on: &["drop_tail"],
    source: "Alizadeh et al.: Data Center TCP (DCTCP), SIGCOMM 2010; RFC 8257; Linux \
             include/net/codel_impl.h (ce_threshold)",
    parameters: &[
        parameters::limit(Some(1_000)),
        span("threshold", "ECN-capable packets that have waited longer are marked", MS),
    ],
};

/// A first-in-first-out queue that marks what has waited for longer than a threshold.
#[derive(Debug)]
pub struct StepMark<B> {
    limit: Limit,
    threshold: Span,
    fifo: Fifo<B>,
}

impl<B: Copy + Send + 'static> StepMark<B> {
    pub(crate) const ROW: QueueRow<B> = QueueRow {
        entry: ENTRY,
        check: unrelated,
        build: |values, _| Box::new(Self::new(values.limit("limit"), values.span("threshold"))),
    };
}

impl<B> StepMark<B> {
    fn new(limit: Limit, threshold: Span) -> Self {
        Self { limit, threshold, fifo: Fifo::default() }
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for StepMark<B> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: Packet<B>, fate: &mut dyn Fate<B>) {
        self.fifo.push_within(self.limit, now, packet, fate);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<B>) -> Option<Packet<B>> {
        let mut packet = self.fifo.pop()?;
        if now.since(packet.queued_at) > self.threshold && mark(&mut packet) {
            fate.marked(now, &packet, Reason::Step);
        }
        Some(packet)
    }

    fn bytes(&self) -> u64 {
        self.fifo.backlog().bytes
    }

    fn packets(&self) -> u64 {
        self.fifo.backlog().packets
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Fates, capable, packet};
    use super::*;
    use crate::packet::Ecn;

    fn us(us: u64) -> Time {
        Time::from_ns(us * 1_000)
    }

    #[test]
    fn what_waits_longer_than_the_threshold_is_marked_and_nothing_else() {
        let mut queue = StepMark::new(Limit::Packets(10), Span::from_us(1_000));
        let mut fates = Fates::default();
        for _ in 0..3 {
            queue.enqueue(us(0), capable(us(0), 1500), &mut fates);
        }
        let mut leave = |at| queue.dequeue(at, &mut fates).unwrap().ecn;
        assert_eq!(leave(us(0)), Ecn::Capable);
        assert_eq!(leave(us(1_000)), Ecn::Capable, "not above it");
        assert_eq!(leave(us(1_000) + Span::from_ns(1)), Ecn::Marked);
        assert_eq!(fates.marked, [(us(1_000) + Span::from_ns(1), Reason::Step)]);
    }

    /// Marks by time and marks by length, K = 100 µs · rate, are the same.
    #[test]
    fn at_a_constant_rate_it_marks_what_found_more_than_k_waiting() {
        let mut queue = StepMark::new(Limit::Packets(1_000), Span::from_us(100));
        let mut fates = Fates::default();
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
        let mut queue = StepMark::new(Limit::Packets(2), Span::from_us(1));
        let mut fates = Fates::default();
        for _ in 0..3 {
            queue.enqueue(us(0), packet(1500), &mut fates);
        }
        assert_eq!(fates.dropped, [(us(0), Reason::Overflow)]);
        assert_eq!(queue.dequeue(us(500), &mut fates).unwrap().ecn, Ecn::NotCapable);
        assert!(fates.marked.is_empty());
    }
}
