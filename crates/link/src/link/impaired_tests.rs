use super::tests::{packet, us};
use super::*;
use crate::capacity::Constant as Rated;
use crate::delay::{Constant, Jitter, Quantiles, Steps};
use crate::packet::Ecn;
use crate::queue::{DropTail, QueueLimit};
use crate::{DelayQueue, Faults, NumberedFaults, Occurrence, PacketFault, Reordering, Shift};
use jostle_units::{RandomStream, Rate, Span};
use proptest::prelude::*;

/// What became of the packets, by kind.
#[derive(Default)]
struct Books {
    dropped: Vec<(u32, DropReason)>,
    corrupted: Vec<u32>,
    duplicated: Vec<u32>,
    marked: Vec<u32>,
}

impl LinkObserver<u32> for Books {
    fn dropped(&mut self, _: Time, packet: &Packet<u32>, reason: DropReason) {
        self.dropped.push((packet.transport, reason));
    }
    fn corrupted(&mut self, _: Time, packet: &Packet<u32>) {
        self.corrupted.push(packet.transport);
    }
    fn duplicated(&mut self, _: Time, copy: &mut Packet<u32>) {
        self.duplicated.push(copy.transport);
    }
    fn marked(&mut self, _: Time, packet: &Packet<u32>, reason: DropReason) {
        assert_eq!(reason, DropReason::Fault);
        self.marked.push(packet.transport);
    }
}

fn link(faults: Faults, delay_queue: Option<DelayQueue>) -> Link<u32> {
    Link::new(
        Box::new(DropTail::new(QueueLimit::Packets(100_000))),
        Box::new(Rated::new(Rate::from_mbps(100))),
        Box::new(Constant::new(Span::from_ms(10))),
        vec![],
    )
    .with_impairments(faults, delay_queue, false)
}

fn drain(link: &mut Link<u32>, books: &mut Books) -> Vec<(u64, Packet<u32>)> {
    let mut arrived = Vec::new();
    while link.next_time() != Time::NEVER {
        let at = link.next_time();
        arrived.extend(link.pop(at, books).map(|packet| (at.as_ns() / 1_000, packet)));
    }
    arrived
}

fn numbered(faults: Vec<(u64, PacketFault)>) -> Faults {
    let rule = NumberedFaults { flow: None, class: None, faults, count: 0, next: 0 };
    Faults { numbered: vec![rule], ..Faults::default() }
}

#[test]
fn packets_with_a_number_meet_their_faults() {
    let faults = vec![
        (1, PacketFault::Lose),
        (2, PacketFault::Duplicate),
        (3, PacketFault::Corrupt),
        (4, PacketFault::Mark),
        (5, PacketFault::Mark),
        (6, PacketFault::Late(Span::from_us(150))),
    ];
    let (mut link, mut books) = (link(numbered(faults), None), Books::default());
    for body in 1..=8 {
        let ecn = if body == 5 { Ecn::NotCapable } else { Ecn::Capable };
        link.push(us(0), Packet { ecn, ..packet(body) }, &mut books);
    }
    let arrived: Vec<_> = drain(&mut link, &mut books)
        .into_iter()
        .map(|(at_us, packet)| (at_us, packet.transport, packet.is_corrupted, packet.ecn))
        .collect();
    let (plain, marked) = (Ecn::Capable, Ecn::Marked);
    assert_eq!(
        arrived,
        [
            (10_200, 2, false, plain),
            (10_200, 2, false, plain),
            (10_300, 3, true, plain),
            (10_400, 4, false, marked),
            (10_500, 5, false, Ecn::NotCapable),
            (10_700, 7, false, plain),
            (10_750, 6, false, plain),
            (10_800, 8, false, plain),
        ]
    );
    assert_eq!(books.dropped, [(1, DropReason::Loss)]);
    assert_eq!((books.duplicated, books.corrupted, books.marked), (vec![2], vec![3], vec![4]));
}

fn certain(shift: Shift, gap: u64) -> Faults {
    let occurrence = Occurrence::new(1.0, 0.0, RandomStream::new(1, "reorder"));
    Faults { reorder: Some(Reordering { occurrence, gap, shift, count: 0 }), ..Faults::default() }
}

#[test]
fn reordering_by_gap_lets_every_fifth_packet_skip_the_delay() {
    let (mut link, mut books) = (link(certain(Shift::Early, 5), None), Books::default());
    for body in 1..=10 {
        link.push(us(0), packet(body), &mut books);
    }
    let arrived = drain(&mut link, &mut books);
    let order: Vec<_> = arrived.iter().map(|(at_us, packet)| (*at_us, packet.transport)).collect();
    assert_eq!(order[..3], [(500, 5), (1_000, 10), (10_100, 1)]);
    let rest: Vec<_> = order[2..].iter().map(|(_, body)| *body).collect();
    assert_eq!(rest, [1, 2, 3, 4, 6, 7, 8, 9]);
}

/// 10 ms at 100 us per packet: 100 packets are in the delay. A limit of 60 drops what finds them.
#[test]
fn netems_limit_drops_what_the_delay_cannot_hold() {
    let limit = |includes_queue| Some(DelayQueue { limit_packets: 60, includes_queue });
    let (mut link_of_delay, mut books) = (link(Faults::default(), limit(false)), Books::default());
    for body in 0..200 {
        link_of_delay.push(us(0), packet(body), &mut books);
    }
    let arrived = drain(&mut link_of_delay, &mut books);
    // Packets 0 to 59 fill the delay until the first exits at 10.1 ms, when packet 100 is sent.
    let lost: Vec<_> = books.dropped.iter().map(|(body, _)| *body).collect();
    assert_eq!(lost[..40], (60..100).collect::<Vec<_>>());
    assert!(books.dropped.iter().all(|(_, reason)| *reason == DropReason::DelayQueue));
    assert_eq!(arrived.len() + lost.len(), 200);
    // With the queue, the burst finds room for 60 at once.
    let (mut link_of_both, mut books) = (link(Faults::default(), limit(true)), Books::default());
    for body in 0..200 {
        link_of_both.push(us(0), packet(body), &mut books);
    }
    assert_eq!(books.dropped.len(), 140);
    assert!(books.dropped.iter().all(|(_, reason)| *reason == DropReason::Overflow));
    assert_eq!(drain(&mut link_of_both, &mut books).len(), 60);
}

#[test]
fn a_batch_of_packets_has_one_random_delay() {
    let delays = |per_batch| {
        let base = Steps::new(vec![(Time::ZERO, Span::ZERO)]).unwrap();
        let points = vec![(0.0, Span::ZERO), (1.0, Span::from_ms(100))];
        let quantiles = Quantiles::new(points).unwrap();
        let random = RandomStream::new(5, "jitter");
        let mut link = Link::<u32>::new(
            Box::new(DropTail::new(QueueLimit::Packets(1_000))),
            Box::new(Rated::new(Rate::from_mbps(100))),
            Box::new(Jitter::new(base, quantiles, Span::ZERO, true, random)),
            vec![],
        )
        .with_impairments(Faults::default(), None, per_batch);
        // 60 packets are 75,000 bytes: two batches of at most 65,536, and a later one.
        for body in 0..60 {
            link.push(us(0), packet(body), &mut ());
        }
        link.push(us(1_000_000), packet(60), &mut ());
        let mut delays = vec![0; 61];
        for (at_us, packet) in drain(&mut link, &mut Books::default()) {
            let body = packet.transport;
            let sent_us = if body == 60 { 1_000_100 } else { 100 * (u64::from(body) + 1) };
            delays[body as usize] = at_us - sent_us;
        }
        delays.dedup();
        delays.len()
    };
    assert_eq!((delays(true), delays(false)), (3, 61));
}

proptest! {
    /// Sent + duplicated = delivered + dropped + in flight, and packets without a fault keep their
    /// order. Corrupted packets exit, and are counted apart.
    #[test]
    fn every_packet_and_every_copy_has_one_fate(
        gaps_us in prop::collection::vec(0u64..400, 1..300),
        (duplicate, corrupt, reorder) in (0.0f64..0.5, 0.0f64..0.5, 0.0f64..0.5),
        (correlation, gap, limit, includes_queue) in (0.0f64..1.0, 1u64..8, 1u64..200, any::<bool>()),
        late_us in prop::option::of(1u64..30_000),
        end_us in 1u64..60_000,
    ) {
        let event = |p, name| Occurrence::new(p, correlation, RandomStream::new(9, name));
        let shift = late_us.map_or(Shift::Early, |us| Shift::Late(Span::from_us(us)));
        let faults = Faults {
            duplicate: Some(event(duplicate, "duplicate")),
            corrupt: Some(event(corrupt, "corrupt")),
            reorder: Some(Reordering { occurrence: event(reorder, "reorder"), gap, shift, count: 0 }),
            ..numbered(vec![(3, PacketFault::Lose), (5, PacketFault::Duplicate)])
        };
        let may_overtake = reorder > 0.0;
        let delay_queue = Some(DelayQueue { limit_packets: limit, includes_queue });
        let (mut link, mut books) = (link(faults, delay_queue), Books::default());
        let (mut now_us, mut arrived) = (0, Vec::new());
        for (body, gap_us) in (0..).zip(&gaps_us) {
            now_us += gap_us;
            while link.next_time() <= us(now_us) {
                arrived.extend(link.pop(link.next_time(), &mut books));
            }
            link.push(us(now_us), packet(body), &mut books);
        }
        let end = us(now_us + end_us);
        while let Some(packet) = link.pop(end, &mut books) {
            arrived.push(packet);
        }
        let sent = gaps_us.len() + books.duplicated.len();
        let inside = (link.in_flight() + link.queue_packets()) as usize;
        prop_assert_eq!(sent, arrived.len() + books.dropped.len() + inside);
        let bad = arrived.iter().filter(|packet| packet.is_corrupted).count();
        prop_assert!(bad <= books.corrupted.len());
        if inside == 0 {
            prop_assert_eq!(bad, books.corrupted.len());
        }
        let bodies: Vec<_> = arrived.iter().map(|packet| packet.transport).collect();
        prop_assert!(may_overtake || bodies.is_sorted());
    }
}
