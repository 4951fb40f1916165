//! A drop-tail queue that drops arrivals at random above a threshold. The gateway of a
//! geostationary satellite network drops a quarter of them while it is more than half full
//! (Claypool, Chung, Claypool 2021).

use jostle_registry::{Parameter, QueueLimit, RegistryEntry};
use jostle_units::{RandomStream, Time};

use super::{Fifo, QueueDiscipline};
use crate::packet::{DropReason, Packet, PacketOutcome};
use crate::parameters::{self, size};
use crate::registry::{QueueEntry, unrelated};

const ENTRY: RegistryEntry = RegistryEntry {
    name: "occupancy_drop",
    summary: "drop-tail that also drops arriving packets at random while the queue is long",
    class: "active",
    based_on: &["drop_tail"],
    source: "Claypool, Chung, Claypool: Comparison of TCP Congestion Control Performance over a \
             Satellite Network, PAM 2021",
    parameters: &[
        parameters::limit(None),
        size("threshold", 0)
            .summary("queue length above which arriving packets are dropped at random"),
        Parameter::probability("probability", Some(0.25)).summary("probability of a random drop"),
    ],
};

/// A FIFO queue that drops arrivals at random while its length exceeds a threshold.
#[derive(Debug)]
pub struct OccupancyDrop<B> {
    limit: QueueLimit,
    threshold_bytes: u64,
    probability: f64,
    random: RandomStream,
    fifo: Fifo<B>,
}

impl<B: Copy + Send + 'static> OccupancyDrop<B> {
    pub(crate) const ROW: QueueEntry<B> = QueueEntry {
        entry: ENTRY,
        check: unrelated,
        build: |values, random| {
            let threshold_bytes = values.amount("threshold");
            let probability = values.number("probability");
            Box::new(Self::new(values.limit("limit"), threshold_bytes, probability, random))
        },
    };
}

impl<B> OccupancyDrop<B> {
    fn new(
        limit: QueueLimit,
        threshold_bytes: u64,
        probability: f64,
        random: RandomStream,
    ) -> Self {
        Self { limit, threshold_bytes, probability, random, fifo: Fifo::default() }
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for OccupancyDrop<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        let backlog = self.fifo.backlog();
        if !backlog.fits(packet.size_bytes, self.limit) {
            outcome.dropped(now, &packet, DropReason::Overflow);
        } else if backlog.bytes > self.threshold_bytes && self.random.chance(self.probability) {
            outcome.dropped(now, &packet, DropReason::Occupancy);
        } else {
            self.fifo.push(packet);
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
        self.fifo.pop()
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
    use super::super::test_support::{RecordedOutcomes, packet};
    use super::*;

    #[test]
    fn a_quarter_is_dropped_while_the_queue_is_above_its_threshold_and_none_below() {
        let stream = RandomStream::new(3, "occupancy");
        let mut queue = OccupancyDrop::new(QueueLimit::Bytes(36_000_000), 18_000_000, 0.25, stream);
        let mut fates = RecordedOutcomes::default();
        // 12,000 packets of 1500 bytes are exactly the threshold, which is not above it.
        for _ in 0..12_001 {
            queue.enqueue(Time::ZERO, packet(1500), &mut fates);
        }
        assert!(fates.dropped.is_empty());
        for _ in 0..10_000 {
            queue.enqueue(Time::ZERO, packet(1500), &mut fates);
        }
        let dropped = fates.dropped.len();
        assert!((2_400..2_600).contains(&dropped), "{dropped}");
        assert!(fates.dropped.iter().all(|(_, reason)| *reason == DropReason::Occupancy));
    }

    #[test]
    fn overflow_is_told_as_such() {
        let mut queue =
            OccupancyDrop::new(QueueLimit::Packets(2), 0, 1.0, RandomStream::new(1, "o"));
        let mut fates = RecordedOutcomes::default();
        queue.enqueue(Time::ZERO, packet(1500), &mut fates);
        queue.enqueue(Time::ZERO, packet(1500), &mut fates);
        assert_eq!(fates.dropped.pop().map(|d| d.1), Some(DropReason::Occupancy));
        queue.probability = 0.0;
        queue.enqueue(Time::ZERO, packet(1500), &mut fates);
        queue.enqueue(Time::ZERO, packet(1500), &mut fates);
        assert_eq!(fates.dropped.pop().map(|d| d.1), Some(DropReason::Overflow));
    }
}
