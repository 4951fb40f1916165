use jostle_registry::ParameterValue;
use jostle_units::{ConnectionId, FlowId, Span};

use super::super::test_support::{RecordedOutcomes, capable, packet};
use super::*;
use crate::transport_headers::PureAck;

fn cake<const N: usize>(given: [(&str, ParameterValue); N]) -> Cake<()> {
    let given = given.map(|(name, value)| (name.to_owned(), value));
    Cake::new(&ENTRY.resolve(&given.into()).unwrap(), RandomStream::new(1, "cake"))
}

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn of_flow(flow: u32, now: Time, size_bytes: u32) -> Packet<()> {
    Packet { connection: ConnectionId(flow), queued_at: now, ..packet(size_bytes) }
}

/// 8 Mbit/s: a byte in a microsecond.
const RATE: (&str, ParameterValue) = ("rate", ParameterValue::Integer(8_000_000));

#[test]
fn the_shaper_spaces_packets_by_its_rate_and_lets_no_burst_through() {
    let (mut queue, mut fates) = (cake([RATE]), RecordedOutcomes::default());
    for _ in 0..4 {
        queue.enqueue(us(100), of_flow(1, us(100), 1514), &mut fates);
    }
    let mut now = us(100);
    for number in 0..4 {
        assert!(queue.dequeue(now, &mut fates).is_some());
        assert!(queue.dequeue(now, &mut fates).is_none());
        if number < 3 {
            assert_eq!(queue.next_dequeue_time(), now + Span::from_us(1514));
            now = queue.next_dequeue_time();
        }
    }
    assert_eq!(queue.next_dequeue_time(), Time::NEVER, "nothing waits");
    // After a pause the first packet goes at once, and the next one waits for it.
    for _ in 0..2 {
        queue.enqueue(us(50_000), of_flow(1, us(50_000), 1514), &mut fates);
    }
    assert!(queue.dequeue(us(50_000), &mut fates).is_some());
    assert!(queue.dequeue(us(50_000), &mut fates).is_none());
    assert_eq!(queue.next_dequeue_time(), us(51_514));
}

#[test]
fn a_late_packet_is_made_up_for() {
    let (mut queue, mut fates) = (cake([RATE]), RecordedOutcomes::default());
    for _ in 0..3 {
        queue.enqueue(us(0), of_flow(1, us(0), 1000), &mut fates);
    }
    assert!(queue.dequeue(us(0), &mut fates).is_some());
    // Asked 400 us too late; the third is due 1000 us after the second should have left.
    assert!(queue.dequeue(us(1_400), &mut fates).is_some());
    assert!(queue.dequeue(us(1_400), &mut fates).is_none());
    assert_eq!(queue.next_dequeue_time(), us(2_000));
}

#[test]
fn the_shaper_counts_overhead() {
    let (mut queue, mut fates) =
        (cake([RATE, ("overhead", ParameterValue::Integer(44))]), RecordedOutcomes::default());
    for _ in 0..2 {
        queue.enqueue(us(0), of_flow(1, us(0), 1014), &mut fates);
    }
    assert!(queue.dequeue(us(0), &mut fates).is_some());
    assert!(queue.dequeue(us(0), &mut fates).is_none());
    assert_eq!(queue.next_dequeue_time(), us(1_044));
}

#[test]
fn flows_take_turns_and_one_queue_does_not() {
    for (isolation, most) in [("flows", 3), ("none", 8)] {
        let mut queue = cake([("isolation", ParameterValue::Text(isolation.to_owned()))]);
        let mut fates = RecordedOutcomes::default();
        for flow in [1; 8].into_iter().chain([2; 8]) {
            queue.enqueue(us(0), of_flow(flow, us(0), 1514), &mut fates);
        }
        let served: Vec<u32> = std::iter::from_fn(|| queue.dequeue(us(0), &mut fates))
            .map(|p| p.connection.0)
            .collect();
        let longest = served.chunk_by(|a, b| a == b).map(<[u32]>::len).max();
        assert_eq!(served.len(), 16);
        assert!(longest.is_some_and(|n| n <= most && (most == 3 || n == 8)), "{served:?}");
    }
}

#[test]
fn overflow_takes_the_head_of_the_fattest_queue() {
    // Packets of 1000 bytes occupy 2304 bytes, those of 500 bytes 1280.
    let limit = ("memory_limit", ParameterValue::Integer(6 * 2_304 + 4 * 1_280));
    let (mut queue, mut fates) = (cake([limit]), RecordedOutcomes::default());
    for number in 0..9 {
        queue.enqueue(us(0), of_flow(1, us(0), 1000 + number), &mut fates);
    }
    for _ in 0..4 {
        queue.enqueue(us(0), of_flow(2, us(0), 500), &mut fates);
    }
    assert_eq!((queue.backlog_packets(), fates.dropped.len()), (10, 3));
    let sizes: Vec<u32> =
        std::iter::from_fn(|| queue.dequeue(us(0), &mut fates)).map(|p| p.size_bytes).collect();
    assert_eq!(sizes.iter().filter(|size| **size == 500).count(), 4);
    assert_eq!(sizes.iter().find(|size| **size >= 1000), Some(&1003));
    assert_eq!(queue.memory_used_bytes, 0);
}

/// `sch_cake.c::cake_reconfigure`: four times `rtt` at the rate of the shaper, at least 4 MiB;
/// 10,240 packets without a shaper, and at most. `tc` replaces all of it by `memlimit`.
#[test]
fn the_default_memory_limit_is_that_of_tc() {
    let given = |name: &'static str, value| (name, ParameterValue::Integer(value));
    let limit = |given: &[_]| {
        let given = given
            .iter()
            .map(|(name, value): &(&str, ParameterValue)| ((*name).to_owned(), value.clone()));
        let values = ENTRY.resolve(&given.collect()).unwrap();
        Cake::<()>::new(&values, RandomStream::new(1, "cake")).memory_limit_bytes
    };
    assert_eq!(limit(&[given("rate", 100_000_000)]), 5_000_000);
    assert_eq!(limit(&[given("rate", 10_000_000)]), 4 << 20);
    assert_eq!(limit(&[given("rate", 1_000_000_000)]), 10_240 * 1_514);
    assert_eq!(limit(&[given("rate", 50_000_000), given("rtt", 300_000_000)]), 7_500_000);
    assert_eq!(limit(&[]), 10_240 * 1_514);
    assert_eq!(limit(&[given("memory_limit", 60_000)]), 60_000);
}

/// `truesize` in Linux 6.1 of UDP datagrams with these payloads, from the length of a full queue.
#[test]
fn packets_occupy_the_memory_that_they_have_in_the_kernel() {
    for (payload_bytes, memory_bytes) in [(160, 1_280), (400, 1_280), (800, 2_304), (1_400, 2_304)]
    {
        assert_eq!(memory::of_packet(payload_bytes + 42), memory_bytes, "{payload_bytes}");
    }
    assert_eq!(memory::of_packet(66), 768, "an ACK");
    assert_eq!(memory::of_packet(1_514), 2_304);
}

/// `tc`'s `mpu`: a packet takes the time of so many bytes at least, with its overhead.
#[test]
fn small_packets_count_as_the_minimum() {
    for (size_bytes, mpu, overhead, counted) in
        [(66, 84, 14, 84), (66, 0, 14, 66), (66, 84, 44, 96), (1_014, 84, 14, 1_014)]
    {
        let mut queue = cake([
            RATE,
            ("mpu", ParameterValue::Integer(mpu)),
            ("overhead", ParameterValue::Integer(overhead)),
        ]);
        let mut fates = RecordedOutcomes::default();
        for _ in 0..2 {
            queue.enqueue(us(0), of_flow(1, us(0), size_bytes), &mut fates);
        }
        assert!(queue.dequeue(us(0), &mut fates).is_some());
        assert!(queue.dequeue(us(0), &mut fates).is_none());
        assert_eq!(queue.next_dequeue_time(), us(counted));
    }
}

#[test]
fn a_standing_queue_is_marked_and_one_that_cannot_be_is_dropped_from() {
    for able in [false, true] {
        let (mut queue, mut fates) = (cake([RATE]), RecordedOutcomes::default());
        let mut left = 0;
        for step in 0..4_000u64 {
            let now = us(step * 1_000);
            let arrived = if able { capable(now, 1514) } else { of_flow(0, now, 1514) };
            queue.enqueue(now, arrived, &mut fates);
            left += u64::from(queue.dequeue(now, &mut fates).is_some());
        }
        assert_eq!(fates.marked.is_empty(), !able);
        assert_eq!(fates.dropped.is_empty(), able);
        assert_eq!(queue.backlog_packets() + left + fates.dropped.len() as u64, 4_000);
    }
}

/// A packet with a header of its own: whether it goes back, and what it acknowledges.
#[derive(Clone, Copy)]
struct Sent {
    backward: bool,
    ack: Option<u32>,
}

impl TransportHeader for Sent {
    fn is_backward(&self) -> bool {
        self.backward
    }

    fn pure_ack(&self) -> Option<PureAck> {
        self.ack.map(|number| PureAck { number, ..PureAck::default() })
    }
}

fn with_headers<const N: usize>(given: [(&str, &str); N]) -> Cake<Sent> {
    let given =
        given.map(|(name, value)| (name.to_owned(), ParameterValue::Text(value.to_owned())));
    Cake::new(&ENTRY.resolve(&given.into()).unwrap(), RandomStream::new(1, "cake"))
}

fn sent(flow: u32, size_bytes: u32, body: Sent) -> Packet<Sent> {
    Packet {
        connection: ConnectionId(flow),
        size_bytes,
        queued_at: us(0),
        ecn: Ecn::NotCapable,
        hop: 0,
        is_corrupted: false,
        dscp: 0,
        transport: body,
    }
}

/// Flow 0 has receiver 100, flows 1 to 8 have receiver 200, all of them sender 300.
fn two_receivers() -> Vec<FlowHosts> {
    (0..9)
        .map(|flow| FlowHosts { sender: 300, receiver: if flow == 0 { 100 } else { 200 } })
        .collect()
}

/// Share of flow 0 while it and flows 1 to 8 always have packets waiting.
fn share_of_the_single_flow(isolation: &str, backward: bool) -> f64 {
    let (mut queue, mut fates) =
        (with_headers([("isolation", isolation)]), RecordedOutcomes::default());
    queue.set_flow_hosts(&two_receivers());
    let body = Sent { backward, ack: None };
    for flow in (0..9).cycle().take(90) {
        queue.enqueue(us(0), sent(flow, 1_514, body), &mut fates);
    }
    let mut of_flow = [0u32; 9];
    for _ in 0..18_000 {
        let packet = queue.dequeue(us(0), &mut fates).unwrap();
        of_flow[packet.connection.index()] += 1;
        queue.enqueue(us(0), packet, &mut fates);
    }
    f64::from(of_flow[0]) / 18_000.0
}

#[test]
fn hosts_share_whatever_the_number_of_their_flows() {
    for (isolation, backward, expected) in [
        ("flows", false, 1.0 / 9.0),
        // The receiver is the destination of what goes there, and the source of what comes back.
        ("dual-dsthost", false, 1.0 / 2.0),
        ("dual-dsthost", true, 1.0 / 9.0),
        ("dual-srchost", true, 1.0 / 2.0),
        ("dual-srchost", false, 1.0 / 9.0),
        // The common sender has nine flows, more than either receiver: its load is everybody's.
        ("triple-isolate", false, 1.0 / 9.0),
        ("dsthost", false, 1.0 / 2.0),
        ("hosts", true, 1.0 / 2.0),
    ] {
        let share = share_of_the_single_flow(isolation, backward);
        assert!((share - expected).abs() < 0.01, "{isolation} {backward}: {share}");
    }
}

#[test]
fn connections_are_their_flows_hosts() {
    let (mut queue, mut fates) =
        (with_headers([("isolation", "dsthost")]), RecordedOutcomes::default());
    queue.set_flow_hosts(&two_receivers());
    queue.register_connection(ConnectionId(20), FlowId(0), false);
    let body = Sent { backward: false, ack: None };
    for flow in [0, 20, 1] {
        queue.enqueue(us(0), sent(flow, 1_000, body), &mut fates);
    }
    let mut waiting: Vec<u64> =
        queue.tins[0].bytes.iter().copied().filter(|bytes| *bytes > 0).collect();
    waiting.sort_unstable();
    assert_eq!(waiting, [1_000, 2_000]);
}

/// The source of a browser's requests is the receiver of its flow.
#[test]
fn connections_in_the_opposite_direction_have_swapped_hosts() {
    let mut queue = with_headers([("isolation", "srchost")]);
    queue.set_flow_hosts(&two_receivers());
    queue.register_connection(ConnectionId(20), FlowId(0), true);
    let [own, opposite] = [0, 20].map(|at: usize| queue.hosts[at]);
    assert_eq!((opposite.sender, opposite.receiver), (own.receiver, own.sender));
}

#[test]
fn who_has_nothing_to_send_is_no_part_of_its_hosts_load() {
    let mut queue = with_headers([("isolation", "dual-dsthost")]);
    let mut fates = RecordedOutcomes::default();
    queue.set_flow_hosts(&two_receivers());
    let body = Sent { backward: false, ack: None };
    let part_of_the_first = |queue: &Cake<Sent>| {
        let of = queue.tins[0].queues.iter().find(|queue| queue.bulk).unwrap().host_indices;
        let loads = queue.tins[0].loads.as_ref().unwrap();
        loads.flow_quantum(1_514, of, &mut RandomStream::new(1, "part"))
    };
    for flow in (1..9).cycle().take(40) {
        queue.enqueue(us(0), sent(flow, 1_514, body), &mut fates);
    }
    for _ in 0..24 {
        assert!(queue.dequeue(us(0), &mut fates).is_some());
    }
    assert!(part_of_the_first(&queue) <= 190);
    while queue.dequeue(us(0), &mut fates).is_some() {}
    // One goes on alone. The others leave when it would be their turn.
    for _ in 0..40 {
        queue.enqueue(us(0), sent(1, 1_514, body), &mut fates);
        assert!(queue.dequeue(us(0), &mut fates).is_some());
    }
    assert_eq!(queue.tins[0].queues.iter().filter(|queue| queue.bulk).count(), 1);
    assert!(part_of_the_first(&queue) >= 1_513);
}

#[test]
fn the_filter_keeps_what_it_drops_in_the_account() {
    for (filter, left, lost) in [("none", 6, 0), ("filter", 3, 3), ("aggressive", 2, 4)] {
        let (mut queue, mut fates) =
            (with_headers([("ack_filter", filter)]), RecordedOutcomes::default());
        for number in 0..5 {
            let body = Sent { backward: true, ack: Some(number) };
            queue.enqueue(us(0), sent(1, 66, body), &mut fates);
        }
        queue.enqueue(us(0), sent(1, 1_514, Sent { backward: false, ack: None }), &mut fates);
        assert_eq!((queue.backlog_packets(), fates.dropped.len()), (left, lost), "{filter}");
        assert_eq!(queue.backlog_bytes(), 1_514 + 66 * (left - 1), "{filter}");
        assert!(fates.dropped.iter().all(|(_, reason)| *reason == DropReason::AckFilter));
        let served: Vec<Option<u32>> = std::iter::from_fn(|| queue.dequeue(us(0), &mut fates))
            .map(|p| p.transport.ack)
            .collect();
        assert_eq!(served[served.len() - 2..], [Some(4), None]);
    }
}
