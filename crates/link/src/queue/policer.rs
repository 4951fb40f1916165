//! A token-bucket policer in front of a FIFO queue: arriving packets without tokens are dropped and
//! never wait for tokens. Linux `net/sched/act_police.c` with `conform-exceed drop`.

use jostle_registry::{ParameterValues, QueueLimit, RegistryEntry};
use jostle_units::Time;

use super::token_bucket::{BURST, RATE, TokenBucket};
use super::{Fifo, QueueDiscipline};
use crate::packet::{DropReason, Packet, PacketOutcome};
use crate::parameters;
use crate::registry::{QueueEntry, unrelated};
use crate::service_rate::Shaper;

const ENTRY: RegistryEntry = RegistryEntry {
    name: "policer",
    summary: "token-bucket policer: drops packets that exceed a rate and a burst, without delay",
    class: "shaping",
    based_on: &["drop_tail"],
    source: "Linux net/sched/act_police.c",
    parameters: &[
        RATE,
        BURST,
        parameters::limit(Some(1_000)).summary("largest queue length behind the policer"),
    ],
};

/// A FIFO queue behind a policer.
#[derive(Debug)]
pub struct Policer<B> {
    bucket: TokenBucket,
    limit: QueueLimit,
    fifo: Fifo<B>,
}

impl<B: Copy + Send + 'static> Policer<B> {
    pub(crate) const ROW: QueueEntry<B> = QueueEntry {
        entry: ENTRY,
        check: unrelated,
        build: |values, _| Box::new(Self::new(values)),
    };
}

impl<B> Policer<B> {
    fn new(values: &ParameterValues) -> Self {
        let limit = values.limit("limit");
        Self { bucket: TokenBucket::new(values), limit, fifo: Fifo::default() }
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for Policer<B> {
    /// `act_police.c::tcf_police_act`.
    fn enqueue(&mut self, now: Time, packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        match self.bucket.take(now, packet.size_bytes) {
            Ok(()) => self.fifo.push_or_drop(self.limit, now, packet, outcome),
            Err(_) => outcome.dropped(now, &packet, DropReason::Policer),
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
        self.fifo.pop()
    }

    fn shapers(&self) -> Vec<Shaper> {
        vec![self.bucket.shaper(false)]
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
    use jostle_units::{RandomStream, Span};

    use super::super::test_support::{RecordedOutcomes, packet};
    use super::*;

    fn policer(rate_bps: i64, burst_bytes: i64) -> Policer<()> {
        let given = [("rate", rate_bps), ("burst", burst_bytes)];
        let given = given.map(|(name, value)| (name.to_owned(), ParameterValue::Integer(value)));
        Policer::new(&ENTRY.resolve(&BTreeMap::from(given)).unwrap())
    }

    #[test]
    fn what_exceeds_rate_and_burst_is_dropped_at_once() {
        let (mut queue, mut fates) = (policer(8_000_000, 3 * 1514), RecordedOutcomes::default());
        for _ in 0..5 {
            queue.enqueue(Time::ZERO, packet(1514), &mut fates);
        }
        assert_eq!(queue.backlog_packets(), 3);
        assert_eq!(fates.dropped, [(Time::ZERO, DropReason::Policer); 2]);
        // A smaller one finds tokens earlier.
        let soon = Time::ZERO + Span::from_us(100);
        queue.enqueue(soon, packet(101), &mut fates);
        queue.enqueue(soon, packet(100), &mut fates);
        assert_eq!((queue.backlog_packets(), fates.dropped.len()), (4, 3));
    }

    /// Of any traffic no interval passes more than burst + rate · interval, and what is dropped would
    /// have been more than that.
    #[test]
    fn no_interval_passes_more_than_the_bucket_gives() {
        for seed in 0..50 {
            let mut random = RandomStream::new(seed, "policer");
            let (mut queue, mut fates) = (policer(8_000_000, 20_000), RecordedOutcomes::default());
            let (mut now, mut passed) = (Time::ZERO, Vec::new());
            for _ in 0..500 {
                now += Span::from_us(random.below(800));
                let size_bytes = 60 + random.below(1_455) as u32;
                let before = fates.dropped.len();
                queue.enqueue(now, packet(size_bytes), &mut fates);
                let fits = |passed: &[(Time, u64)], most: u64| {
                    let mut sent = 0;
                    passed.iter().rev().all(|(from, bytes)| {
                        sent += bytes;
                        sent <= most + now.since(*from).as_us()
                    })
                };
                passed.push((now, u64::from(size_bytes)));
                if fates.dropped.len() > before {
                    assert!(!fits(&passed, 20_000), "seed {seed}: dropped without need");
                    passed.pop();
                }
                assert!(fits(&passed, 20_000), "seed {seed}: too much passed");
            }
            assert!(fates.dropped.len() > 10, "seed {seed}");
        }
    }
}
