use jostle_run_spec::{CapacitySpec, ClassSpec, DelaySpec, DelayStep, LinkPart, LinkSpec};
use serde_json::json;

use super::*;
use crate::ip_header::tests::ipv4_packet;

const MS: u64 = 1_000_000;
/// 1236 bytes of IP and the Ethernet header take 1 ms at 10 Mbit/s.
const PACKET_BYTES: usize = 1236;

fn link(name: &str, delay_ms: u64, queue: LinkPart) -> LinkSpec {
    LinkSpec {
        name: name.to_owned(),
        capacity: CapacitySpec::Constant { rate_bps: 10_000_000 },
        queue,
        classes: None,
        delay: DelaySpec {
            steps: vec![DelayStep { at_ns: 0, delay_ns: delay_ms * MS }],
            jitter: None,
        },
        loss: None,
        outages: None,
        faults: None,
        netem: None,
        grants: None,
        framing: None,
        ack_thinning: None,
        frames: None,
        loss_steps: Vec::new(),
        quick_start: None,
    }
}

fn queue(kind: &str, parameters: serde_json::Value) -> LinkPart {
    let parameters = serde_json::from_value(parameters).unwrap();
    LinkPart { kind: kind.to_owned(), parameters }
}

fn drop_tail(packets: u64) -> LinkPart {
    queue("drop_tail", json!({"limit": {"packets": packets}}))
}

fn shared() -> Shared {
    Shared { slots: PacketPool::new(1500, 1 << 20), journal: Some(EventLog::default()) }
}

fn packet(shared: &mut Shared, tos: u8) -> PacketId {
    let mut bytes = ipv4_packet(tos, 0, 0);
    bytes.resize(PACKET_BYTES, 0);
    let copy = |buffer: &mut [u8]| {
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok::<_, ()>(bytes.len())
    };
    shared.slots.fill(copy).unwrap()
}

fn ms(ms: u64) -> Time {
    Time::from_ns(ms * MS)
}

/// Everything that is due by `now`.
fn exits(direction: &mut Direction, now: Time, shared: &mut Shared) -> Vec<Time> {
    std::iter::from_fn(|| direction.due(now, shared)).map(|departure| departure.at).collect()
}

#[test]
fn exits_follow_from_arrivals_however_late_the_caller_is() {
    let (mut shared, spec) = (shared(), [link("one", 10, drop_tail(10))]);
    let mut direction = Direction::new(0, &spec, 1).unwrap();
    for _ in 0..3 {
        let slot = packet(&mut shared, 0);
        direction.arrive(ms(5), slot, &mut shared);
    }
    assert_eq!(direction.next_time(), ms(16));
    assert_eq!(exits(&mut direction, ms(1000), &mut shared), [ms(16), ms(17), ms(18)]);
    assert_eq!((direction.next_time(), direction.packets_in_transit()), (Time::NEVER, 0));
}

#[test]
fn links_in_a_row_pass_packets_on_in_logical_time() {
    let spec = [link("one", 10, drop_tail(10)), link("two", 20, drop_tail(10))];
    let expected = [ms(32), ms(33), ms(37)];
    // Looked after at every millisecond, or not at all until the end.
    for watchful in [true, false] {
        let mut shared = shared();
        let mut direction = Direction::new(0, &spec, 1).unwrap();
        let mut found = Vec::new();
        for now in 0..50 {
            if watchful {
                found.extend(exits(&mut direction, ms(now), &mut shared));
            }
            for _ in 0..[2, 0, 0, 0, 0, 1].get(now as usize).copied().unwrap_or(0) {
                let slot = packet(&mut shared, 0);
                direction.arrive(ms(now), slot, &mut shared);
            }
        }
        found.extend(exits(&mut direction, ms(50), &mut shared));
        assert_eq!(found, expected, "watchful: {watchful}");
        assert_eq!(direction.hops[1].counts.sent.packets, 3);
    }
}

#[test]
fn drops_give_their_slots_back_and_are_kept_with_their_flow() {
    let (mut shared, spec) = (shared(), [link("one", 10, drop_tail(2))]);
    let mut direction = Direction::new(1, &spec, 1).unwrap();
    for _ in 0..5 {
        let slot = packet(&mut shared, 0);
        direction.arrive(ms(3), slot, &mut shared);
    }
    // One is being sent and two wait.
    assert_eq!(shared.slots.slots_in_use(), 3);
    assert_eq!(direction.hops[0].counts.dropped[DropReason::Overflow as usize], 2);
    let journal = shared.journal.as_ref().unwrap();
    let expected = Event {
        at: ms(3),
        direction: 1,
        hop: 0,
        what: PacketEventKind::Dropped,
        reason: DropReason::Overflow,
        size_bytes: 1250,
        flow: Some(0),
    };
    assert_eq!(journal.events, [expected, expected]);
    let flow = journal.flows[0];
    assert_eq!(journal.flows.len(), 1);
    assert_eq!((flow.source_port, flow.destination_port), (1000, 2000));
}

#[test]
fn marks_are_written_into_the_packet() {
    let codel = queue("codel", json!({"limit": {"packets": 1000}, "ecn": true}));
    for (tos, capable) in [(0b10, true), (0b00, false)] {
        let (mut shared, spec) = (shared(), [link("one", 0, codel.clone())]);
        let mut direction = Direction::new(0, &spec, 1).unwrap();
        // 200 ms of standing queue, twice CoDel's interval.
        for _ in 0..200 {
            let slot = packet(&mut shared, tos);
            direction.arrive(ms(0), slot, &mut shared);
        }
        let mut marked = 0;
        while let Some(Departure { packet: slot, .. }) = direction.due(ms(300), &mut shared) {
            let header = Header::read(shared.slots.get(slot)).unwrap();
            marked += u64::from(header.ecn == Ecn::Marked);
            shared.slots.give_back(slot);
        }
        let counts = &direction.hops[0].counts;
        let hit = if capable { counts.marked } else { counts.dropped };
        assert!(hit[DropReason::Codel as usize] > 0);
        assert_eq!(marked, if capable { counts.marked[DropReason::Codel as usize] } else { 0 });
        assert_eq!(shared.slots.slots_in_use(), 0);
    }
}

#[test]
fn what_is_no_ip_packet_is_carried_all_the_same() {
    let (mut shared, spec) = (shared(), [link("one", 10, drop_tail(1))]);
    let mut direction = Direction::new(0, &spec, 1).unwrap();
    for _ in 0..3 {
        let slot = shared.slots.fill(|_| Ok::<_, ()>(100)).unwrap();
        direction.arrive(ms(0), slot, &mut shared);
    }
    assert_eq!(exits(&mut direction, ms(100), &mut shared).len(), 2);
    assert_eq!(shared.journal.unwrap().events[0].flow, None);
}

/// A TCP segment with a payload, and one without.
fn tcp_packet(shared: &mut Shared, flags: u8, payload_bytes: usize) -> PacketId {
    let mut bytes = ipv4_packet(0, 0, 0);
    bytes.truncate(20);
    // The protocol.
    bytes[9] = 6;
    bytes.extend([0; 20]);
    bytes[32] = 5 << 4;
    bytes[33] = flags;
    bytes.resize(40 + payload_bytes, 0);
    let copy = |buffer: &mut [u8]| {
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok::<_, ()>(bytes.len())
    };
    shared.slots.fill(copy).unwrap()
}

#[test]
fn faults_by_number_count_segments_with_data_and_copies_have_their_own_slots() {
    let faults = serde_json::from_value(json!({"packets": [{"class": "data", "faults": [
        {"number": 1, "fault": {"kind": "duplicate"}},
        {"number": 2, "fault": {"kind": "corrupt"}},
        {"number": 3, "fault": {"kind": "lose"}},
    ]}]}));
    let spec = [LinkSpec { faults: faults.unwrap(), ..link("one", 10, drop_tail(100)) }];
    let (mut shared, mut direction) = (shared(), Direction::new(0, &spec, 1).unwrap());
    const SYN: u8 = 0b10;
    const ACK: u8 = 0b1_0000;
    for (flags, payload_bytes) in [(SYN, 0), (ACK, 0), (ACK, 9), (ACK, 0), (ACK, 9), (ACK, 9)] {
        let slot = tcp_packet(&mut shared, flags, payload_bytes);
        direction.arrive(ms(0), slot, &mut shared);
    }
    let (mut last_bytes, mut slots) = (Vec::new(), Vec::new());
    while let Some(Departure { packet: slot, .. }) = direction.due(ms(100), &mut shared) {
        last_bytes.push(*shared.slots.get(slot).last().unwrap());
        slots.push(slot);
    }
    // SYN, ACK, data and its copy, ACK, corrupted data.
    assert_eq!(last_bytes, [0, 0, 0, 0, 0, 1]);
    assert_ne!(slots[2], slots[3]);
    let counts = &direction.hops[0].counts;
    assert_eq!((counts.duplicated, counts.corrupted), (1, 1));
    assert_eq!(counts.dropped[DropReason::Loss as usize], 1);
    slots.into_iter().for_each(|slot| shared.slots.give_back(slot));
    assert_eq!((shared.slots.slots_in_use(), direction.packets_in_transit()), (0, 0));
}

/// Programs mark their packets themselves: classes without flows go by codepoint, and by default to
/// the class without any.
#[test]
fn priority_follows_the_codepoint_of_the_packet() {
    let mut spec = link("one", 0, queue("prio", json!({"limit": {"packets": 10}})));
    let class = |name: &str, dscp: &[u8]| ClassSpec {
        name: name.to_owned(),
        quantum_bytes: 1_514,
        flows: Vec::new(),
        dscp: dscp.to_vec(),
        queue: drop_tail(10),
    };
    spec.classes = Some(vec![class("voice", &[46]), class("rest", &[]), class("bulk", &[1, 8])]);
    let (mut shared, mut direction) = (shared(), Direction::new(0, &[spec], 1).unwrap());
    let (best_effort, bulk, voice) = (0, 8 << 2, 46 << 2);
    let slots = [best_effort, bulk, best_effort, voice, voice | 2].map(|tos| {
        let slot = packet(&mut shared, tos);
        direction.arrive(ms(5), slot, &mut shared);
        slot
    });
    let order: Vec<_> = std::iter::from_fn(|| direction.due(ms(1000), &mut shared))
        .map(|left| slots.iter().position(|slot| *slot == left.packet).unwrap())
        .collect();
    assert_eq!(order, [0, 3, 4, 2, 1]);
}
