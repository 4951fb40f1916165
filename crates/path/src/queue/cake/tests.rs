use jostle_catalogue::Value;
use jostle_units::Span;

use super::super::testing::{Fates, capable, packet};
use super::*;

fn cake<const N: usize>(given: [(&str, Value); N]) -> Cake<()> {
    let given = given.map(|(name, value)| (name.to_owned(), value));
    Cake::new(&ENTRY.resolve(&given.into()).unwrap(), Stream::new(1, "cake"))
}

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn of_flow(flow: u32, now: Time, size_bytes: u32) -> Packet<()> {
    Packet { flow, queued_at: now, ..packet(size_bytes) }
}

/// 8 Mbit/s: a byte in a microsecond.
const RATE: (&str, Value) = ("rate", Value::Integer(8_000_000));

#[test]
fn the_shaper_spaces_packets_by_its_rate_and_lets_no_burst_through() {
    let (mut queue, mut fates) = (cake([RATE]), Fates::default());
    for _ in 0..4 {
        queue.enqueue(us(100), of_flow(1, us(100), 1514), &mut fates);
    }
    let mut now = us(100);
    for number in 0..4 {
        assert!(queue.dequeue(now, &mut fates).is_some());
        assert!(queue.dequeue(now, &mut fates).is_none());
        if number < 3 {
            assert_eq!(queue.ready_at(), now + Span::from_us(1514));
            now = queue.ready_at();
        }
    }
    assert_eq!(queue.ready_at(), Time::NEVER, "nothing waits");
    // After a pause the first packet goes at once, and the next one waits for it.
    for _ in 0..2 {
        queue.enqueue(us(50_000), of_flow(1, us(50_000), 1514), &mut fates);
    }
    assert!(queue.dequeue(us(50_000), &mut fates).is_some());
    assert!(queue.dequeue(us(50_000), &mut fates).is_none());
    assert_eq!(queue.ready_at(), us(51_514));
}

#[test]
fn a_late_packet_is_made_up_for() {
    let (mut queue, mut fates) = (cake([RATE]), Fates::default());
    for _ in 0..3 {
        queue.enqueue(us(0), of_flow(1, us(0), 1000), &mut fates);
    }
    assert!(queue.dequeue(us(0), &mut fates).is_some());
    // Asked 400 us too late; the third is due 1000 us after the second should have left.
    assert!(queue.dequeue(us(1_400), &mut fates).is_some());
    assert!(queue.dequeue(us(1_400), &mut fates).is_none());
    assert_eq!(queue.ready_at(), us(2_000));
}

#[test]
fn the_shaper_counts_overhead() {
    let (mut queue, mut fates) = (cake([RATE, ("overhead", Value::Integer(44))]), Fates::default());
    for _ in 0..2 {
        queue.enqueue(us(0), of_flow(1, us(0), 1014), &mut fates);
    }
    assert!(queue.dequeue(us(0), &mut fates).is_some());
    assert!(queue.dequeue(us(0), &mut fates).is_none());
    assert_eq!(queue.ready_at(), us(1_044));
}

#[test]
fn flows_take_turns_and_one_queue_does_not() {
    for (isolation, most) in [("flows", 3), ("none", 8)] {
        let mut queue = cake([("isolation", Value::Text(isolation.to_owned()))]);
        let mut fates = Fates::default();
        for flow in [1; 8].into_iter().chain([2; 8]) {
            queue.enqueue(us(0), of_flow(flow, us(0), 1514), &mut fates);
        }
        let served: Vec<u32> =
            std::iter::from_fn(|| queue.dequeue(us(0), &mut fates)).map(|p| p.flow).collect();
        let longest = served.chunk_by(|a, b| a == b).map(<[u32]>::len).max();
        assert_eq!(served.len(), 16);
        assert!(longest.is_some_and(|n| n <= most && (most == 3 || n == 8)), "{served:?}");
    }
}

#[test]
fn overflow_takes_the_head_of_the_fattest_queue() {
    let (mut queue, mut fates) = (cake([("limit", Value::Integer(10))]), Fates::default());
    for number in 0..9 {
        queue.enqueue(us(0), of_flow(1, us(0), 1000 + number), &mut fates);
    }
    for _ in 0..4 {
        queue.enqueue(us(0), of_flow(2, us(0), 500), &mut fates);
    }
    assert_eq!((queue.packets(), fates.dropped.len()), (10, 3));
    let sizes: Vec<u32> =
        std::iter::from_fn(|| queue.dequeue(us(0), &mut fates)).map(|p| p.size_bytes).collect();
    assert_eq!(sizes.iter().filter(|size| **size == 500).count(), 4);
    assert_eq!(sizes.iter().find(|size| **size >= 1000), Some(&1003));
}

#[test]
fn a_standing_queue_is_marked_and_one_that_cannot_be_is_dropped_from() {
    for able in [false, true] {
        let (mut queue, mut fates) = (cake([RATE]), Fates::default());
        let mut left = 0;
        for step in 0..4_000u64 {
            let now = us(step * 1_000);
            let arrived = if able { capable(now, 1514) } else { of_flow(0, now, 1514) };
            queue.enqueue(now, arrived, &mut fates);
            left += u64::from(queue.dequeue(now, &mut fates).is_some());
        }
        assert_eq!(fates.marked.is_empty(), !able);
        assert_eq!(fates.dropped.is_empty(), able);
        assert_eq!(queue.packets() + left + fates.dropped.len() as u64, 4_000);
    }
}
