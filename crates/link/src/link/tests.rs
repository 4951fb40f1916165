use super::*;
use crate::capacity::{Constant as Rated, Steps};
use crate::delay::Constant;
use crate::packet::Ecn;
use crate::queue::{DropTail, QueueLimit};
use jostle_units::{ConnectionId, Rate, Span};

/// 1250 bytes take 100 µs at 100 Mbit/s.
const SIZE_BYTES: u32 = 1250;

impl crate::TransportHeader for u32 {}

pub(super) fn packet(body: u32) -> Packet<u32> {
    Packet {
        connection: ConnectionId(0),
        size_bytes: SIZE_BYTES,
        queued_at: Time::ZERO,
        ecn: Ecn::NotCapable,
        hop: 0,
        is_corrupted: false,
        dscp: 0,
        transport: body,
    }
}

pub(super) fn us(us: u64) -> Time {
    Time::from_ns(us * 1_000)
}

fn link(limit_packets: u64, losses: Vec<Box<dyn Loss>>) -> Link<u32> {
    Link::new(
        Box::new(DropTail::new(QueueLimit::Packets(limit_packets))),
        Box::new(Rated::new(Rate::from_mbps(100))),
        Box::new(Constant::new(Span::from_ms(10))),
        losses,
    )
}

#[derive(Default)]
pub(super) struct Notes {
    sent: Vec<(u64, u64, u32)>,
    dropped: Vec<(u64, u32, DropReason)>,
    longest: u64,
}

impl LinkObserver<u32> for Notes {
    fn queue_changed(&mut self, _: Time, _: u64, packets: u64) {
        self.longest = self.longest.max(packets);
    }
    fn sent(&mut self, _: Time, start: Time, finish: Time, packet: &mut Packet<u32>) {
        self.sent.push((start.as_ns() / 1000, finish.as_ns() / 1000, packet.transport));
    }
    fn dropped(&mut self, now: Time, packet: &Packet<u32>, reason: DropReason) {
        self.dropped.push((now.as_ns() / 1000, packet.transport, reason));
    }
}

#[test]
fn packets_leave_one_after_another_and_arrive_a_delay_later() {
    let (mut link, mut notes) = (link(10, vec![]), Notes::default());
    for body in 0..3 {
        link.push(us(5), packet(body), &mut notes);
    }
    assert_eq!((link.queue_packets(), link.in_flight()), (2, 1));
    for (body, exit) in [(0, 10_105), (1, 10_205), (2, 10_305)] {
        assert_eq!(link.next_time(), us(exit));
        assert!(link.pop(us(exit - 1), &mut notes).is_none());
        assert_eq!(link.pop(us(exit), &mut notes).map(|p| p.transport), Some(body));
    }
    assert_eq!(link.next_time(), Time::NEVER);
    assert_eq!(notes.sent, [(5, 105, 0), (105, 205, 1), (205, 305, 2)]);
}

#[test]
fn one_event_per_packet_even_without_delay() {
    let mut link = Link::new(
        Box::new(DropTail::new(QueueLimit::Packets(10))),
        Box::new(Rated::new(Rate::from_mbps(100))),
        Box::new(Constant::new(Span::ZERO)),
        vec![],
    );
    for body in 0..5 {
        link.push(us(0), packet(body), &mut ());
    }
    let mut events = 0;
    while link.next_time() != Time::NEVER {
        assert!(link.pop(link.next_time(), &mut ()).is_some());
        events += 1;
    }
    assert_eq!(events, 5);
}

#[test]
fn the_packet_being_sent_does_not_count_against_the_limit() {
    let (mut link, mut notes) = (link(2, vec![]), Notes::default());
    for body in 0..4 {
        link.push(us(0), packet(body), &mut notes);
    }
    assert_eq!(notes.dropped, [(0, 3, DropReason::Overflow)]);
    // At 100 µs the service starts first, and so makes room for an arrival at that instant.
    link.push(us(100), packet(4), &mut notes);
    assert_eq!(notes.dropped.len(), 1);
    assert_eq!(notes.longest, 2);
}

/// Loses the packets whose turn the list names.
struct Listed(u32, Vec<u32>);

impl Loss for Listed {
    fn verdict(&mut self, _: Time) -> Option<DropReason> {
        self.0 += 1;
        self.1.contains(&self.0).then_some(DropReason::Loss)
    }
}

#[test]
fn what_waits_behind_lost_packets_still_gets_out() {
    let lossy = || -> Box<dyn Loss> { Box::new(Listed(0, vec![1, 2])) };
    let (mut link, mut notes) = (link(10, vec![lossy(), lossy()]), Notes::default());
    for body in 0..4 {
        link.push(us(0), packet(body), &mut notes);
    }
    assert_eq!(link.next_time(), us(100), "the pipe is empty, the queue is not");
    let mut arrived = Vec::new();
    while link.next_time() != Time::NEVER {
        arrived.extend(link.pop(link.next_time(), &mut notes).map(|p| p.transport));
    }
    assert_eq!(arrived, [2, 3]);
    assert_eq!(notes.dropped, [(100, 0, DropReason::Loss), (200, 1, DropReason::Loss)]);
    assert_eq!(notes.sent.len(), 4, "lost packets take their time on the wire");
}

/// A shaper holds packets back while the link is free, and the link gets on without an arrival.
#[test]
fn what_a_shaper_holds_back_leaves_when_it_may() {
    use jostle_registry::ParameterValue;
    let given = [("rate", 10_000_000), ("burst", 1514)];
    let given = given.map(|(name, value)| (name.to_owned(), ParameterValue::Integer(value)));
    let shaper = crate::registry::queue::<u32>("tbf").unwrap();
    let random = jostle_units::RandomStream::new(1, "tbf");
    let mut link = Link::new(
        shaper.create(&given.into(), random).unwrap(),
        Box::new(Rated::new(Rate::from_mbps(100))),
        Box::new(Constant::new(Span::from_us(10))),
        vec![],
    );
    let mut notes = Notes::default();
    for body in 0..3 {
        link.push(us(0), packet(body), &mut notes);
    }
    let mut arrived = Vec::new();
    while link.next_time() != Time::NEVER {
        arrived.extend(link.pop(link.next_time(), &mut notes).map(|p| p.transport));
    }
    assert_eq!(arrived, [0, 1, 2]);
    // Of the burst of 1514 bytes 264 are left over; 986 take 789 us at 10 Mbit/s, 1250 a millisecond.
    assert_eq!(notes.sent.iter().map(|sent| sent.0).collect::<Vec<_>>(), [0, 788, 1788]);
    assert_eq!(notes.sent[1].1 - notes.sent[1].0, 100, "and leave at the link's rate");
}

fn framed(most_packets: u32, most_bytes: u64, losses: Vec<Box<dyn Loss>>) -> Link<u32> {
    let contention = crate::delay::Quantiles::new(vec![(0.0, Span::from_us(50))]).unwrap();
    let random = jostle_units::RandomStream::new(1, "frames");
    link(5, losses).with_frames(FrameAggregation::new(most_packets, most_bytes, contention, random))
}

fn arrivals(link: &mut Link<u32>, notes: &mut Notes) -> Vec<(u64, u32)> {
    let mut arrived = Vec::new();
    while link.next_time() != Time::NEVER {
        let at = link.next_time();
        arrived.extend(link.pop(at, notes).map(|packet| (at.as_ns() / 1_000, packet.transport)));
    }
    arrived
}

#[test]
fn a_frame_waits_for_the_medium_and_arrives_at_once() {
    let (mut link, mut notes) = (framed(3, 1 << 20, vec![]), Notes::default());
    for body in 0..4 {
        link.push(us(5), packet(body), &mut notes);
    }
    // What comes while the medium is waited for goes with the frame; what comes after does not.
    link.push(us(50), packet(4), &mut notes);
    link.push(us(56), packet(5), &mut notes);
    assert_eq!(link.queue_packets(), 3);
    let arrived = arrivals(&mut link, &mut notes);
    assert_eq!(
        arrived,
        [(10_355, 0), (10_355, 1), (10_355, 2), (10_705, 3), (10_705, 4), (10_705, 5)]
    );
    let starts: Vec<_> = notes.sent.iter().map(|sent| (sent.0, sent.1)).collect();
    assert_eq!(starts, [(55, 155), (155, 255), (255, 355), (405, 505), (505, 605), (605, 705)]);
    // A packet that comes to an idle link pays for the wait by itself.
    link.push(us(20_000), packet(6), &mut notes);
    assert_eq!(arrivals(&mut link, &mut notes), [(30_150, 6)]);
}

#[test]
fn a_frame_has_as_many_bytes_as_it_may_and_one_packet_at_least() {
    for (most_bytes, sizes) in [(1, vec![1, 1, 1, 1]), (2_500, vec![2, 2]), (2_499, vec![1; 4])] {
        let (mut link, mut notes) = (framed(64, most_bytes, vec![]), Notes::default());
        for body in 0..4 {
            link.push(us(0), packet(body), &mut notes);
        }
        let arrived = arrivals(&mut link, &mut notes);
        let frames: Vec<_> = arrived.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).collect();
        assert_eq!(frames, sizes, "{most_bytes} bytes");
    }
}

#[test]
fn every_packet_of_a_frame_is_judged_by_itself() {
    let lossy: Vec<Box<dyn Loss>> = vec![Box::new(Listed(0, vec![2]))];
    let (mut link, mut notes) = (framed(3, 1 << 20, lossy), Notes::default());
    for body in 0..3 {
        link.push(us(0), packet(body), &mut notes);
    }
    assert_eq!(arrivals(&mut link, &mut notes), [(10_350, 0), (10_350, 2)]);
    assert_eq!(notes.dropped, [(350, 1, DropReason::Loss)]);
}

#[test]
fn a_link_that_stops_for_good_fills_its_queue_and_stays_quiet() {
    let steps = vec![(Time::ZERO, Rate::from_mbps(100)), (us(150), Rate::ZERO)];
    let (mut link, mut notes) = (
        Link::new(
            Box::new(DropTail::new(QueueLimit::Packets(3))),
            Box::new(Steps::new(steps).unwrap()),
            Box::new(Constant::new(Span::ZERO)),
            vec![],
        ),
        Notes::default(),
    );
    for body in 0..8 {
        link.push(us(u64::from(body) * 100), packet(body), &mut notes);
    }
    assert_eq!(link.pop(us(700), &mut notes).map(|p| p.transport), Some(0));
    assert_eq!(link.next_time(), Time::NEVER);
    assert!(link.pop(Time::NEVER, &mut notes).is_none());
    assert_eq!((link.queue_packets(), link.in_flight()), (3, 1));
    assert_eq!(notes.dropped.len(), 3);
}

/// Notes until when time has passed.
struct Clocked(std::sync::Arc<std::sync::Mutex<Vec<Time>>>);

impl Loss for Clocked {
    fn verdict(&mut self, _: Time) -> Option<DropReason> {
        None
    }
    fn advance_to(&mut self, now: Time) {
        self.0.lock().unwrap().push(now);
    }
}

#[test]
fn time_passes_for_losses_after_all_that_was_sent_before() {
    let passed = std::sync::Arc::default();
    let mut link = link(10, vec![Box::new(Clocked(std::sync::Arc::clone(&passed)))]);
    let mut notes = Notes::default();
    link.push(us(5), packet(0), &mut notes);
    link.push(us(6), packet(1), &mut notes);
    link.pass(us(500), &mut notes);
    assert_eq!(notes.sent.len(), 2);
    assert_eq!(*passed.lock().unwrap(), [us(500)]);
}

/// One delay per packet, in turn.
struct Scripted(Vec<u64>, bool);

impl Delay for Scripted {
    fn delay(&mut self, _: Time) -> Span {
        Span::from_us(self.0.remove(0))
    }
    fn may_reorder(&self) -> bool {
        self.1
    }
}

fn exits(delays: &[u64], may_reorder: bool) -> Vec<(u64, u32)> {
    let mut link = Link::new(
        Box::new(DropTail::new(QueueLimit::Packets(10))),
        Box::new(Rated::new(Rate::from_mbps(100))),
        Box::new(Scripted(delays.to_vec(), may_reorder)),
        vec![],
    );
    for body in 0..delays.len() as u32 {
        link.push(us(0), packet(body), &mut ());
    }
    let mut exits = Vec::new();
    while link.next_time() != Time::NEVER {
        let now = link.next_time();
        exits.extend(link.pop(now, &mut ()).map(|p| (now.as_ns() / 1000, p.transport)));
    }
    exits
}

#[test]
fn packets_overtake_only_where_they_may() {
    let delays = [5_000, 1_000, 900, 6_000];
    assert_eq!(exits(&delays, false), [(5_100, 0), (5_100, 1), (5_100, 2), (6_400, 3)]);
    // Packets 1 and 2 exit at the same time, in the order in which they were sent.
    assert_eq!(exits(&delays, true), [(1_200, 1), (1_200, 2), (5_100, 0), (6_400, 3)]);
}

/// Whether a packet can be lost decides where those that wait lie, and nothing else.
#[test]
fn a_queue_in_the_pipe_is_the_same_as_one_apart() {
    let run = |losses: Vec<Box<dyn Loss>>| {
        let (mut link, mut notes) = (link(6, losses), Notes::default());
        let mut seen = Vec::new();
        // Bursts and silences: the queue fills and runs empty, and the pipe grows and comes round.
        for body in 0..2_000u32 {
            let now = us(u64::from(body / 50 * 3_000 + body % 50 * (body / 200 * 17)));
            link.push(now, packet(body), &mut notes);
            let left = link.pop(now, &mut notes).map(|packet| (packet.transport, packet.queued_at));
            seen.push((left, link.next_time(), link.queue_packets(), link.in_flight()));
        }
        (seen, notes.sent, notes.dropped)
    };
    let none_lost = run(vec![Box::new(Listed(0, vec![]))]);
    assert!(none_lost.2.len() > 100 && none_lost.1.len() > 100);
    assert_eq!(run(vec![]), none_lost);
}
