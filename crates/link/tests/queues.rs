//! What every queue discipline must keep, whatever is done to it, and a checker that notices when
//! one does not.

use std::collections::VecDeque;

use crate::support::{Operation, Serial, build, check_queue, operations};
use jostle_link::queue::QueueLimit;
use jostle_link::registry::queues;
use jostle_link::{DropReason, Ecn, Packet, PacketOutcome, QueueDiscipline};
use jostle_units::{ConnectionId, Span, Time};
use proptest::prelude::*;

fn limit() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        (1u64..60).prop_map(QueueLimit::Packets),
        (1_514u64..90_000).prop_map(QueueLimit::Bytes)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn queues_keep_their_packets_their_order_their_account_and_their_limit(
        row in 0..queues::<Serial>().len(), limit in limit(), ecn: bool, seed: u64, list in operations(),
    ) {
        let (mut queue, limit) = build::queue(row, limit, ecn, seed);
        let two_lanes = queues::<Serial>()[row].entry.name == "dualpi2";
        let account = check_queue(queue.as_mut(), limit, two_lanes, &list).map_err(TestCaseError::fail)?;
        let arrived = list.iter().filter(|o| matches!(o, Operation::Arrive { .. })).count() as u64;
        prop_assert_eq!(account.taken + account.dropped, arrived);
    }
}

/// Sequences must reach what the disciplines are there for.
#[test]
fn the_parameters_of_these_tests_make_every_discipline_act() {
    #[derive(Default)]
    struct Count(u64, u64);
    impl PacketOutcome<Serial> for Count {
        fn dropped(&mut self, _: Time, _: &Packet<Serial>, reason: DropReason) {
            self.0 += u64::from(reason != DropReason::Overflow);
        }
        fn marked(&mut self, _: Time, _: &Packet<Serial>, _: DropReason) {
            self.1 += 1;
        }
    }
    for (row, discipline) in queues::<Serial>().iter().enumerate() {
        let (kind, class) = (discipline.entry.name, discipline.entry.class);
        if matches!(class, "passive" | "classful" | "shaping") || kind == "sfq" {
            continue;
        }
        // A step, a pair of queues and CAKE mark whatever can be marked.
        let always_marks = matches!(kind, "step_mark" | "dualpi2" | "cake");
        for ecn in [false, true] {
            let (mut queue, _) = build::queue(row, QueueLimit::Packets(60), ecn, 1);
            let mut count = Count::default();
            for n in 0..3_000u64 {
                let now = Time::ZERO + Span::from_us(n * 100);
                for ecn in [Ecn::NotCapable, Ecn::Capable] {
                    let packet = Packet {
                        connection: ConnectionId(1),
                        size_bytes: 1514,
                        queued_at: now,
                        ecn,
                        hop: 0,
                        is_corrupted: false,
                        dscp: 0,
                        transport: Serial(0),
                    };
                    queue.enqueue(now, packet, &mut count);
                }
                queue.dequeue(now, &mut count);
                // PIE marks only while its probability is low, so the overload must not be large.
                if n % 8 != 0 {
                    queue.dequeue(now, &mut count);
                }
            }
            // Occupancy drop knows no marks, and a step nothing else.
            assert_eq!(count.0 > 0, kind != "step_mark", "early drops of queue {kind}");
            let marks = (ecn && kind != "occupancy_drop") || always_marks;
            assert_eq!(count.1 > 0, marks, "marks of queue {kind}");
        }
    }
}

/// What a broken queue does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Loses a packet without telling.
    Forgets,
    /// Hands out the last packet first.
    Reorders,
    /// Hands a packet out and keeps it.
    Doubles,
    /// Tells of a drop and keeps the packet.
    DropsTwice,
    /// Counts a packet's bytes wrongly.
    Miscounts,
    /// Says that it is empty when it is not.
    Hoards,
    /// Takes in more than its limit.
    Overfills,
    /// Hands out the mark of a transport that knows none.
    Marks,
}

/// A drop-tail queue of ten packets that goes wrong at every seventh packet.
struct Broken {
    fault: Fault,
    packets: VecDeque<Packet<Serial>>,
    bytes: u64,
    calls: u64,
}

impl Broken {
    fn strikes(&mut self, fault: Fault) -> bool {
        self.calls += u64::from(self.fault == fault);
        self.fault == fault && self.calls.is_multiple_of(7)
    }
}

impl QueueDiscipline<Serial> for Broken {
    fn enqueue(&mut self, now: Time, packet: Packet<Serial>, fate: &mut dyn PacketOutcome<Serial>) {
        if self.strikes(Fault::Forgets) {
            return;
        }
        if self.strikes(Fault::DropsTwice) {
            fate.dropped(now, &packet, DropReason::Overflow);
        }
        if self.packets.len() < 10 || self.fault == Fault::Overfills {
            self.bytes += u64::from(packet.size_bytes);
            self.bytes += u64::from(self.strikes(Fault::Miscounts));
            self.packets.push_back(packet);
        } else {
            fate.dropped(now, &packet, DropReason::Overflow);
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut dyn PacketOutcome<Serial>) -> Option<Packet<Serial>> {
        if self.strikes(Fault::Hoards) {
            return None;
        }
        if self.strikes(Fault::Doubles) {
            return self.packets.front().copied();
        }
        let last_first = self.strikes(Fault::Reorders);
        let mut packet =
            if last_first { self.packets.pop_back() } else { self.packets.pop_front() }?;
        self.bytes -= u64::from(packet.size_bytes).min(self.bytes);
        if self.strikes(Fault::Marks) {
            packet.ecn = Ecn::Marked;
        }
        Some(packet)
    }

    fn backlog_bytes(&self) -> u64 {
        self.bytes
    }

    fn backlog_packets(&self) -> u64 {
        self.packets.len() as u64
    }
}

#[test]
fn the_checker_rejects_queues_that_are_broken() {
    let mut list = Vec::new();
    for round in 0..30 {
        for flow in 0..4 {
            list.push(Operation::Arrive { flow: flow % 2, size_bytes: 900, ecn: Ecn::NotCapable });
        }
        list.push(Operation::Wait(Span::from_us(round)));
        list.extend([Operation::Take; 3]);
    }
    let check = |fault| {
        let (packets, bytes, calls) = (VecDeque::new(), 0, 0);
        let mut queue = Broken { fault, packets, bytes, calls };
        check_queue(&mut queue, QueueLimit::Packets(10), false, &list).map(|_| ())
    };
    assert_eq!(check(Fault::None), Ok(()));
    for (fault, complaint) in [
        (Fault::Forgets, "claims"),
        (Fault::Reorders, "came after"),
        (Fault::Doubles, "claims"),
        (Fault::DropsTwice, "claims"),
        (Fault::Miscounts, "claims"),
        (Fault::Hoards, "none handed over"),
        (Fault::Overfills, "exceed"),
        (Fault::Marks, "is marked"),
    ] {
        let found = check(fault).unwrap_err();
        assert!(found.contains(complaint), "{fault:?}: {found}");
    }
}
