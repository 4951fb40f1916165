//! Deficit Round Robin (Shreedhar and Varghese, "Efficient Fair Queueing using Deficit Round
//! Robin", SIGCOMM 1995, Transactions on Networking 4(3), 1996), as in Linux `net/sched/sch_drr.c`:
//! classes, each with its own queue, take turns. In its turn a class can send its quantum and the
//! deficit left over from earlier turns.
//!
//! The flow of a packet determines its class, or its DSCP if the flow is unknown. Linux uses filters
//! and drops packets that match none; here every packet belongs to a class.

use std::collections::VecDeque;

use jostle_registry::{Parameter, ParameterValues, QueueLimit, RegistryEntry};
use jostle_units::{ConnectionId, FlowId, Time};

use super::classes::{Class, ClassMap};
use super::{Backlog, DropTail, QueueDiscipline};
use crate::packet::{Packet, PacketOutcome};
use crate::parameters::{self, packets};
use crate::registry::{QueueEntry, unrelated};
use crate::service_rate::Shaper;
use crate::transport_headers::FlowHosts;

const ENTRY: RegistryEntry = RegistryEntry {
    name: "drr",
    summary: "deficit round robin: classes of flows with weights and separate queues",
    class: "classful",
    based_on: &["drop_tail"],
    source: "Shreedhar and Varghese 1996; Linux net/sched/sch_drr.c",
    parameters: &[
        Parameter::size(
            "quantum",
            Some(packets(1)),
            MIN_QUANTUM_BYTES as i64..=MAX_QUANTUM_BYTES as i64,
        )
        .summary("bytes that a class of weight 1 may send per round"),
        parameters::limit(Some(1_000))
            .summary("largest length of the drop-tail queue of each class"),
    ],
};

/// Minimum quantum. With less, a full-sized packet waits for many rounds without a transmission.
pub const MIN_QUANTUM_BYTES: u32 = 256;
/// Maximum quantum.
pub const MAX_QUANTUM_BYTES: u32 = 1 << 24;
/// Number of flows that have a class each. Larger flow numbers, such as the hashes of an emulator,
/// are mapped to these.
const FLOWS: u32 = 1 << 14;

/// Deficit Round Robin over classes.
pub struct Drr<B> {
    classes: Vec<Slot<B>>,
    assignment: Assignment,
    total: Backlog,
    /// Classes with packets, in the order of their turns.
    active: VecDeque<u32>,
    /// Time at which a shaper of a class releases a packet, if no class can send.
    ready_at: Time,
}

/// Mapping from flows to classes.
enum Assignment {
    /// By flow or DSCP.
    Classes(ClassMap),
    /// One class per flow, created when its first packet arrives.
    Flows { quantum_bytes: u32, limit: QueueLimit },
}

struct Slot<B> {
    quantum_bytes: u32,
    queue: Box<dyn QueueDiscipline<B>>,
    /// Packet that was taken from the queue but exceeds the deficit; it counts as waiting. `None`
    /// if the queue can tell the size of its head: the packet then stays in the queue and counts
    /// for its limit.
    head: Option<Packet<B>>,
    /// Bytes that the class can still send in its turn.
    deficit_bytes: u32,
    listed: bool,
}

impl<B: Copy + Send + 'static> Drr<B> {
    pub(crate) const ROW: QueueEntry<B> = QueueEntry {
        entry: ENTRY,
        check: unrelated,
        build: |values, _| Box::new(Self::of_flows(values)),
    };

    /// Creates one class of equal weight per flow.
    fn of_flows(values: &ParameterValues) -> Self {
        let quantum_bytes = values.u32("quantum");
        Self::new(Vec::new(), Assignment::Flows { quantum_bytes, limit: values.limit("limit") })
    }

    /// Creates the queue from `classes`, to whose indices `map` refers.
    pub fn of_classes(classes: Vec<Class<B>>, map: ClassMap) -> Self {
        debug_assert!(map.by_flow.iter().all(|class| (*class as usize) < classes.len()));
        let classes = classes.into_iter().map(|class| Slot::new(class.quantum_bytes, class.queue));
        Self::new(classes.collect(), Assignment::Classes(map))
    }

    fn new(classes: Vec<Slot<B>>, assignment: Assignment) -> Self {
        Self {
            classes,
            assignment,
            total: Backlog::default(),
            active: VecDeque::new(),
            ready_at: Time::NEVER,
        }
    }

    #[inline]
    fn class_of(&mut self, packet: &Packet<B>) -> usize {
        match &self.assignment {
            Assignment::Classes(map) => map.class_of(packet),
            Assignment::Flows { quantum_bytes, limit } => {
                let (quantum_bytes, limit) = (*quantum_bytes, *limit);
                let index = (packet.connection.0 % FLOWS) as usize;
                while self.classes.len() <= index {
                    self.classes.push(Slot::new(quantum_bytes, Box::new(DropTail::new(limit))));
                }
                index
            }
        }
    }
}

impl<B> Slot<B> {
    fn new(quantum_bytes: u32, queue: Box<dyn QueueDiscipline<B>>) -> Self {
        Self { quantum_bytes, queue, head: None, deficit_bytes: 0, listed: false }
    }
}

impl<B: Copy + Send + 'static> QueueDiscipline<B> for Drr<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        let index = self.class_of(&packet);
        let slot = &mut self.classes[index];
        let before = Backlog::of(slot.queue.as_ref());
        slot.queue.enqueue(now, packet, outcome);
        self.total.follow(before, Backlog::of(slot.queue.as_ref()));
        if !slot.listed && slot.queue.backlog_packets() > 0 {
            // `sch_drr.c::drr_enqueue`: a class that was empty starts with one quantum at the end of
            // the list.
            slot.listed = true;
            slot.deficit_bytes = slot.quantum_bytes;
            self.active.push_back(index as u32);
        }
    }

    fn dequeue(&mut self, now: Time, outcome: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
        self.ready_at = Time::NEVER;
        // Number of successive classes delayed by a shaper, and the earliest time at which one of
        // them can send.
        let (mut held_back, mut ready_at) = (0, Time::NEVER);
        loop {
            let slot = &mut self.classes[*self.active.front()? as usize];
            if slot.head.is_none() && slot.queue.head_bytes().is_none() {
                // As in Linux (`sch_generic.h::qdisc_peek_dequeued`), a queue that makes decisions on
                // dequeue decides on the head when its class looks at it, which can be several turns
                // before the head is sent.
                let before = Backlog::of(slot.queue.as_ref());
                slot.head = slot.queue.dequeue(now, outcome);
                self.total.follow(before, Backlog::of(slot.queue.as_ref()));
                if let Some(head) = &slot.head {
                    self.total.add(head.size_bytes);
                }
            }
            let head_bytes = match &slot.head {
                Some(head) => Some(head.size_bytes),
                None => slot.queue.head_bytes(),
            };
            let Some(head_bytes) = head_bytes else {
                if slot.queue.backlog_packets() > 0 {
                    (held_back, ready_at) =
                        (held_back + 1, ready_at.min(slot.queue.next_dequeue_time()));
                    if held_back >= self.active.len() {
                        self.ready_at = ready_at;
                        return None;
                    }
                    self.active.rotate_left(1);
                    continue;
                }
                slot.listed = false;
                self.active.pop_front();
                continue;
            };
            held_back = 0;
            if head_bytes > slot.deficit_bytes {
                slot.deficit_bytes += slot.quantum_bytes;
                self.active.rotate_left(1);
                continue;
            }
            slot.deficit_bytes -= head_bytes;
            let sent = if let Some(head) = slot.head.take() {
                self.total.remove(head.size_bytes);
                Some(head)
            } else {
                let before = Backlog::of(slot.queue.as_ref());
                let sent = slot.queue.dequeue(now, outcome);
                self.total.follow(before, Backlog::of(slot.queue.as_ref()));
                sent
            };
            if slot.queue.backlog_packets() == 0 {
                slot.listed = false;
                self.active.pop_front();
            }
            debug_assert!(!self.active.is_empty() || self.total == Backlog::default());
            return sent;
        }
    }

    fn next_dequeue_time(&self) -> Time {
        self.ready_at
    }

    fn shapers(&self) -> Vec<Shaper> {
        super::classes::shapers(self.classes.iter().map(|slot| slot.queue.shapers()))
    }

    fn backlog_bytes(&self) -> u64 {
        self.total.bytes
    }

    fn backlog_packets(&self) -> u64 {
        self.total.packets
    }

    fn set_flow_hosts(&mut self, hosts: &[FlowHosts]) {
        self.classes.iter_mut().for_each(|slot| slot.queue.set_flow_hosts(hosts));
    }

    fn register_connection(&mut self, connection: ConnectionId, flow: FlowId, is_opposite: bool) {
        if let Assignment::Classes(map) = &mut self.assignment {
            map.admit(connection, flow);
        }
        self.classes
            .iter_mut()
            .for_each(|slot| slot.queue.register_connection(connection, flow, is_opposite));
    }

    fn advance_to(&mut self, now: Time) {
        for slot in &mut self.classes {
            slot.queue.advance_to(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::RandomStream;

    use super::super::classes::CODEPOINTS;
    use super::super::test_support::{RecordedOutcomes, packet};
    use super::*;
    use crate::registry;

    fn of_flow(flow: u32, size_bytes: u32) -> Packet<()> {
        Packet { connection: ConnectionId(flow), ..packet(size_bytes) }
    }

    /// Linux asks a fifo for the size of its head and leaves it there
    /// (`sch_generic.h::qdisc_peek_head`), so that it counts towards the limit while its class saves
    /// up for it.
    #[test]
    fn a_head_that_waits_for_its_deficit_is_within_the_limit() {
        let mut queue = classes(&[2_000, 256], 2);
        let mut fates = RecordedOutcomes::default();
        for _ in 0..2 {
            queue.enqueue(Time::ZERO, of_flow(0, 1_500), &mut fates);
            queue.enqueue(Time::ZERO, of_flow(1, 1_500), &mut fates);
        }
        // The second class looked at its head and could not send it.
        for _ in 0..2 {
            assert_eq!(queue.dequeue(Time::ZERO, &mut fates).map(|it| it.connection.0), Some(0));
        }
        assert_eq!(queue.backlog_packets(), 2);
        queue.enqueue(Time::ZERO, of_flow(1, 1_500), &mut fates);
        assert_eq!(queue.backlog_packets(), 2);
    }

    fn per_flow() -> Drr<()> {
        Drr::of_flows(&ENTRY.resolve(&std::collections::BTreeMap::new()).unwrap())
    }

    /// Classes of the given quanta, each with a drop-tail queue; flow i is of class i.
    fn classes(quanta_bytes: &[u32], limit_packets: u64) -> Drr<()> {
        let class = |quantum_bytes: &u32| Class {
            quantum_bytes: *quantum_bytes,
            queue: Box::new(DropTail::new(QueueLimit::Packets(limit_packets))) as Box<_>,
        };
        Drr::of_classes(quanta_bytes.iter().map(class).collect(), by_flow(quanta_bytes.len()))
    }

    /// Flow i is of class i.
    fn by_flow(classes: usize) -> ClassMap {
        ClassMap { by_flow: (0..classes as u32).collect(), by_dscp: [0; CODEPOINTS] }
    }

    fn served_bytes(queue: &mut Drr<()>, packets: usize, flows: usize) -> Vec<u64> {
        let mut bytes = vec![0; flows];
        for _ in 0..packets {
            let packet = queue.dequeue(Time::ZERO, &mut RecordedOutcomes::default()).unwrap();
            bytes[packet.connection.index()] += u64::from(packet.size_bytes);
        }
        bytes
    }

    /// With a quantum of 500, 300 are left over when 750 does not fit behind 200.
    #[test]
    fn what_a_turn_leaves_over_is_kept_for_the_next() {
        let mut queue = classes(&[500, 500], 100);
        for size_bytes in [200, 750, 20] {
            queue.enqueue(Time::ZERO, of_flow(0, size_bytes), &mut RecordedOutcomes::default());
        }
        for size_bytes in [500, 500] {
            queue.enqueue(Time::ZERO, of_flow(1, size_bytes), &mut RecordedOutcomes::default());
        }
        let order: Vec<_> = (0..5)
            .map(|_| queue.dequeue(Time::ZERO, &mut RecordedOutcomes::default()).unwrap())
            .map(|packet| (packet.connection.0, packet.size_bytes))
            .collect();
        // 300 + 500 suffice for 750 in the second turn, and the 50 that are left for 20.
        assert_eq!(order, [(0, 200), (1, 500), (0, 750), (0, 20), (1, 500)]);
    }

    #[test]
    fn without_classes_flows_share_by_bytes() {
        let mut queue = per_flow();
        for _ in 0..600 {
            queue.enqueue(Time::ZERO, of_flow(0, 1514), &mut RecordedOutcomes::default());
            queue.enqueue(Time::ZERO, of_flow(1, 757), &mut RecordedOutcomes::default());
        }
        let bytes = served_bytes(&mut queue, 300, 2);
        assert!(bytes[0].abs_diff(bytes[1]) <= 1514, "{bytes:?}");
    }

    /// Busy classes have had equally many turns but for one, and sent a quantum in each but for what
    /// they saved up, which is less than their next packet: the paper's bound on unfairness.
    #[test]
    fn busy_classes_get_shares_by_weight_whatever_their_packets() {
        for seed in 0..100 {
            let mut random = RandomStream::new(seed, "drr");
            let quanta: Vec<u32> = (0..4).map(|_| 256 + random.below(6_000) as u32).collect();
            let mut queue = classes(&quanta, 1_000_000);
            for flow in 0..4 {
                for _ in 0..4_000 {
                    let size_bytes = 60 + random.below(1_455) as u32;
                    queue.enqueue(
                        Time::ZERO,
                        of_flow(flow, size_bytes),
                        &mut RecordedOutcomes::default(),
                    );
                }
            }
            let mut bytes = [0f64; 4];
            for n in 0..2_000 {
                let packet = queue.dequeue(Time::ZERO, &mut RecordedOutcomes::default()).unwrap();
                bytes[packet.connection.index()] += f64::from(packet.size_bytes);
                if n < 200 {
                    continue;
                }
                let rounds: Vec<f64> =
                    bytes.iter().zip(&quanta).map(|(b, q)| b / f64::from(*q)).collect();
                for a in 0..4 {
                    for b in 0..4 {
                        let slack =
                            1.0 + 1514.0 / f64::from(quanta[a]) + 1514.0 / f64::from(quanta[b]);
                        assert!((rounds[a] - rounds[b]).abs() <= slack, "seed {seed}: {rounds:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_full_class_takes_no_room_from_another() {
        let mut queue = classes(&[1514, 1514], 10);
        let mut fates = RecordedOutcomes::default();
        for _ in 0..100 {
            queue.enqueue(Time::ZERO, of_flow(0, 1514), &mut fates);
        }
        assert_eq!((fates.dropped.len(), queue.backlog_packets()), (90, 10));
        queue.enqueue(Time::ZERO, of_flow(1, 1514), &mut fates);
        assert_eq!((fates.dropped.len(), queue.backlog_packets()), (90, 11));
        let served = served_bytes(&mut queue, 2, 2);
        assert_eq!(served, [1514, 1514], "and waits for one turn of the other at most");
    }

    /// A class that may not send leaves the link to the others, and says when it may.
    #[test]
    fn a_shaper_in_a_class_holds_back_that_class_alone() {
        let tail = registry::queue::<()>("drop_tail").unwrap();
        let tbf = registry::queue::<()>("tbf").unwrap();
        let limit = (
            "limit".to_owned(),
            jostle_registry::ParameterValue::Limit(QueueLimit::Packets(1_000)),
        );
        let shaped = [("rate", 8_000_000), ("burst", 1514)].map(|(name, value)| {
            (name.to_owned(), jostle_registry::ParameterValue::Integer(value))
        });
        let queues = [
            tbf.create(&shaped.into(), RandomStream::new(1, "q")).unwrap(),
            tail.create(&[limit].into(), RandomStream::new(1, "q")).unwrap(),
        ];
        let classes = queues.map(|queue| Class { quantum_bytes: 1514, queue });
        let mut queue = Drr::of_classes(classes.into(), by_flow(2));
        let mut fates = RecordedOutcomes::default();
        for flow in [0, 0, 1, 1, 1] {
            queue.enqueue(Time::ZERO, of_flow(flow, 1514), &mut fates);
        }
        let mut taken = || queue.dequeue(Time::ZERO, &mut fates).map(|packet| packet.connection.0);
        let order: Vec<_> = (0..4).map_while(|_| taken()).collect();
        assert_eq!(order, [0, 1, 1, 1]);
        assert_eq!(taken(), None);
        let later = Time::ZERO + jostle_units::Span::from_us(1514);
        assert_eq!((queue.next_dequeue_time(), queue.backlog_packets()), (later, 1));
        assert!(queue.dequeue(later, &mut fates).is_some());
        assert!(queue.dequeue(later, &mut fates).is_none());
        assert_eq!(queue.next_dequeue_time(), Time::NEVER);
    }

    /// CoDel in one class drops what has waited too long there, and the account stays right.
    #[test]
    fn each_class_has_a_discipline_of_its_own() {
        let codel = registry::queue::<()>("codel").unwrap();
        let tail = registry::queue::<()>("drop_tail").unwrap();
        let build = |row: &registry::QueueEntry<()>| {
            let limit = jostle_registry::ParameterValue::Limit(QueueLimit::Packets(1_000));
            row.create(&[("limit".to_owned(), limit)].into(), RandomStream::new(1, "q")).unwrap()
        };
        let classes = [codel, tail].map(|row| Class { quantum_bytes: 1514, queue: build(row) });
        let mut queue = Drr::of_classes(classes.into(), by_flow(2));
        let mut fates = RecordedOutcomes::default();
        for _ in 0..500 {
            queue.enqueue(Time::ZERO, of_flow(0, 1514), &mut fates);
            queue.enqueue(Time::ZERO, of_flow(1, 1514), &mut fates);
        }
        let mut sent = [0; 2];
        for n in 0u64.. {
            let now = Time::ZERO + jostle_units::Span::from_ms(n);
            let Some(packet) = queue.dequeue(now, &mut fates) else { break };
            sent[packet.connection.index()] += 1;
            assert_eq!(
                queue.backlog_packets(),
                1_000 - sent[0] - sent[1] - fates.dropped.len() as u64
            );
        }
        assert_eq!(sent[1], 500);
        assert!(fates.dropped.len() as u64 == 500 - sent[0] && sent[0] < 480, "{sent:?}");
        assert_eq!((queue.backlog_packets(), queue.backlog_bytes()), (0, 0));
    }
}
