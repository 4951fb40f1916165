//! A token-bucket shaper in front of a FIFO queue: Linux `net/sched/sch_tbf.c`, without its second
//! bucket (`peakrate`). Packets without tokens wait, even while the link is idle.

use jostle_registry::{ParameterValues, QueueLimit, RegistryEntry};
use jostle_units::Time;

use super::token_bucket::{BURST, RATE, TokenBucket};
use super::{Fifo, QueueDiscipline};
use crate::packet::{DropReason, Packet, PacketOutcome};
use crate::parameters;
use crate::registry::{QueueEntry, unrelated};
use crate::service_rate::Shaper;

const ENTRY: RegistryEntry = RegistryEntry {
    name: "tbf",
    summary: "token-bucket shaper: limits the rate, sends bursts at the link's rate",
    class: "shaping",
    based_on: &["drop_tail"],
    source: "Linux net/sched/sch_tbf.c",
    parameters: &[RATE, BURST, parameters::limit(Some(1_000))],
};

/// A FIFO queue that sends packets as the bucket has tokens for them.
#[derive(Debug)]
pub struct Tbf<B> {
    bucket: TokenBucket,
    limit: QueueLimit,
    fifo: Fifo<B>,
    /// Time at which the bucket has enough tokens for the head.
    ready_at: Time,
}

impl<B: Copy + Send + 'static> Tbf<B> {
    pub(crate) const ROW: QueueEntry<B> = QueueEntry {
        entry: ENTRY,
        check: unrelated,
        build: |values, _| Box::new(Self::new(values)),
    };
}

impl<B> Tbf<B> {
    fn new(values: &ParameterValues) -> Self {
        Self {
            bucket: TokenBucket::new(values),
            limit: values.limit("limit"),
            fifo: Fifo::default(),
            ready_at: Time::NEVER,
        }
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for Tbf<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        // `sch_tbf.c::tbf_enqueue`: a packet larger than the bucket would wait for ever.
        if !self.bucket.may_ever_pass(packet.size_bytes) {
            outcome.dropped(now, &packet, DropReason::Overflow);
            return;
        }
        self.fifo.push_or_drop(self.limit, now, packet, outcome);
    }

    /// `sch_tbf.c::tbf_dequeue`.
    fn dequeue(&mut self, now: Time, _: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
        self.ready_at = Time::NEVER;
        let size_bytes = self.fifo.head()?.size_bytes;
        match self.bucket.take(now, size_bytes) {
            Ok(()) => self.fifo.pop(),
            Err(wait) => {
                self.ready_at = now + wait;
                None
            }
        }
    }

    fn next_dequeue_time(&self) -> Time {
        self.ready_at
    }

    fn shapers(&self) -> Vec<Shaper> {
        vec![self.bucket.shaper(true)]
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
    use std::collections::BTreeMap;

    use jostle_registry::ParameterValue;
    use jostle_units::Span;

    use super::super::test_support::{RecordedOutcomes, packet};
    use super::*;
    use crate::Framing;

    /// 8 Mbit/s, a byte in a microsecond; a burst of 4 full packets.
    fn tbf() -> Tbf<()> {
        let given = [("rate", 8_000_000), ("burst", 4 * 1514)];
        let given = given.map(|(name, value)| (name.to_owned(), ParameterValue::Integer(value)));
        Tbf::new(&ENTRY.resolve(&BTreeMap::from(given)).unwrap())
    }

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn a_burst_passes_at_once_and_the_rest_at_the_rate() {
        let (mut queue, mut fates) = (tbf(), RecordedOutcomes::default());
        for _ in 0..6 {
            queue.enqueue(us(0), packet(1514), &mut fates);
        }
        for _ in 0..4 {
            assert!(queue.dequeue(us(0), &mut fates).is_some());
        }
        assert!(queue.dequeue(us(0), &mut fates).is_none());
        assert_eq!((queue.next_dequeue_time(), queue.backlog_packets()), (us(1514), 2));
        assert!(queue.dequeue(us(1513), &mut fates).is_none());
        assert!(queue.dequeue(us(1514), &mut fates).is_some());
        assert!(queue.dequeue(us(1514), &mut fates).is_none());
        assert_eq!(queue.next_dequeue_time(), us(3028));
        // After a long pause there is one burst again, and no more.
        assert!(queue.dequeue(us(100_000), &mut fates).is_some());
        assert!(queue.dequeue(us(100_000), &mut fates).is_none());
        assert_eq!(queue.next_dequeue_time(), Time::NEVER, "nothing waits");
        for _ in 0..6 {
            queue.enqueue(us(100_000), packet(1514), &mut fates);
        }
        let passed = std::iter::from_fn(|| queue.dequeue(us(100_000), &mut fates)).count();
        assert_eq!(passed, 3, "one of four was spent just now");
    }

    #[test]
    fn the_shaper_is_reported_with_rate_and_burst() {
        let [shaper] = tbf().shapers().try_into().unwrap();
        assert_eq!(shaper.rate.as_bps(), 8_000_000);
        assert_eq!((shaper.burst_bytes, shaper.framing), (Some(4 * 1514), Framing::NONE));
        assert!(shaper.delays);
    }

    #[test]
    fn what_exceeds_the_burst_is_dropped() {
        let (mut queue, mut fates) = (tbf(), RecordedOutcomes::default());
        queue.enqueue(us(0), packet(4 * 1514 + 1), &mut fates);
        queue.enqueue(us(0), packet(4 * 1514), &mut fates);
        assert_eq!((fates.dropped.len(), queue.backlog_packets()), (1, 1));
        assert!(queue.dequeue(us(0), &mut fates).is_some());
    }
}
