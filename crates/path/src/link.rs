//! A link: a queue in front of a capacity, then a delay, then losses.

use jostle_units::{Ring, Time};

use crate::queue::Backlog;
use crate::{Capacity, Delay, Fate, Loss, Packet, Probe, QueueDiscipline, Reason};

/// One direction of a link.
///
/// # One event per packet
/// When a packet starts to be sent, the end of sending and the exit at the far end follow from
/// capacity and delay, so it goes straight into the pipe with its exit time. Departures from the
/// queue need no events of their own: every call first catches up on the services that were due
/// by then ([`advance`](Self::advance)), each at its own logical time, so that the discipline
/// decides on what it would have seen then. [`next_time`](Self::next_time) is the exit of the
/// pipe's head.
///
/// # Order of things at one instant
/// A service due at the instant of an arrival starts before that arrival is queued. An arrival that
/// finds the link free and nothing waiting starts at once, through the discipline's `enqueue` and
/// `dequeue`. When the link gets free and nothing waits, the discipline is asked all the same: RED
/// and CoDel learn from it that the queue ran empty, as under Linux.
///
/// # What counts
/// The packet being sent is not in the queue, as Linux's disciplines do not count what the card
/// holds. Lost packets take their time on the wire, are judged in order of departure, and never
/// surface. Without reordering, an exit is held back to the one before it.
pub struct Link<B> {
    queue: Box<dyn QueueDiscipline<B>>,
    capacity: Box<dyn Capacity>,
    delay: Box<dyn Delay>,
    losses: Vec<Box<dyn Loss>>,
    may_reorder: bool,
    /// Being sent or propagating, in order of exit.
    pipe: Ring<Travelling<B>>,
    /// Latest exit so far.
    last_exit: Time,
    /// When the next service starts; [`Time::NEVER`] while nothing waits or stopped for good.
    free_at: Time,
    /// The discipline had nothing to send when it was last asked.
    idle: bool,
    /// What the discipline was given and has neither handed over nor dropped.
    waiting: Backlog,
}

#[derive(Clone, Copy)]
struct Travelling<B> {
    exit: Time,
    packet: Packet<B>,
}

/// Passes a discipline's decisions on to the probe and keeps the link's own account.
struct Account<'a, P> {
    probe: &'a mut P,
    waiting: &'a mut Backlog,
}

impl<B, P: Probe<B>> Fate<B> for Account<'_, P> {
    fn dropped(&mut self, now: Time, packet: &Packet<B>, reason: Reason) {
        self.waiting.remove(packet.size_bytes);
        self.probe.dropped(now, packet, reason);
    }

    fn marked(&mut self, now: Time, packet: &Packet<B>, reason: Reason) {
        self.probe.marked(now, packet, reason);
    }
}

impl<B: Copy> Link<B> {
    /// A link from its parts. All of `losses` see every packet that was sent; the first verdict
    /// counts.
    pub fn new(
        queue: Box<dyn QueueDiscipline<B>>,
        capacity: Box<dyn Capacity>,
        delay: Box<dyn Delay>,
        losses: Vec<Box<dyn Loss>>,
    ) -> Self {
        Self {
            may_reorder: delay.may_reorder(),
            queue,
            capacity,
            delay,
            losses,
            pipe: Ring::default(),
            last_exit: Time::ZERO,
            free_at: Time::NEVER,
            idle: true,
            waiting: Backlog::default(),
        }
    }

    /// A packet arrives. Calls to `push`, `pop` and `advance` come in order of time.
    #[inline]
    pub fn push<P: Probe<B>>(&mut self, now: Time, mut packet: Packet<B>, probe: &mut P) {
        self.advance(now, probe);
        packet.queued_at = now;
        self.waiting.add(packet.size_bytes);
        self.queue.enqueue(now, packet, &mut Account { probe, waiting: &mut self.waiting });
        probe.queue_changed(now, self.waiting.bytes, self.waiting.packets);
        if self.idle {
            self.idle = false;
            self.free_at = now;
            self.advance(now, probe);
        }
    }

    /// The next packet that has arrived at the far end by `now`.
    #[inline]
    pub fn pop<P: Probe<B>>(&mut self, now: Time, probe: &mut P) -> Option<Packet<B>> {
        self.advance(now, probe);
        let head = self.pipe.front()?;
        if head.exit > now || head.exit == Time::NEVER {
            return None;
        }
        self.pipe.pop_front().map(|travelling| travelling.packet)
    }

    /// When to call [`pop`](Self::pop) next; [`Time::NEVER`] if nothing is on its way. To be asked
    /// again after every other call.
    ///
    /// It is the exit of the pipe's head, except where a service that has not started yet may come
    /// before it: when packets wait while everything sent so far was lost, and when packets may
    /// overtake each other. Then it may be the start of that service, and `pop` returns nothing but
    /// moves on.
    #[inline]
    pub fn next_time(&self) -> Time {
        let exit = self.pipe.front().map_or(Time::NEVER, |head| head.exit);
        let service_matters = self.may_reorder || self.pipe.is_empty();
        if service_matters && self.waiting.packets > 0 { exit.min(self.free_at) } else { exit }
    }

    /// Starts every service that is due by `now`.
    #[inline]
    pub fn advance<P: Probe<B>>(&mut self, now: Time, probe: &mut P) {
        while self.free_at <= now && self.free_at != Time::NEVER {
            self.serve(probe);
        }
    }

    /// Starts every service that is due by `now`, and draws and updates what depends on time alone.
    /// Nothing that happens later is another for it; without it, all that was put off is done at
    /// once when the next packet comes.
    pub fn pass<P: Probe<B>>(&mut self, now: Time, probe: &mut P) {
        self.advance(now, probe);
        self.queue.pass(now);
        // What is sent from here on is judged at `now` or later.
        for loss in &mut self.losses {
            loss.pass(now);
        }
    }

    /// Bytes waiting as of the last call.
    #[inline]
    pub fn queue_bytes(&self) -> u64 {
        self.waiting.bytes
    }

    /// Packets waiting as of the last call.
    #[inline]
    pub fn queue_packets(&self) -> u64 {
        self.waiting.packets
    }

    /// Packets that are being sent or propagate, and will arrive unless the link stops for good.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.pipe.len() as u64
    }

    /// Bytes that could have been sent until `now`: what utilisation is measured against.
    /// Not to be asked for a time before that of any other call.
    pub fn offered_bytes(&mut self, now: Time) -> f64 {
        self.capacity.offered_bytes(now)
    }

    /// Starts the service that is due at `free_at`.
    fn serve<P: Probe<B>>(&mut self, probe: &mut P) {
        let start = self.free_at;
        let before = self.waiting.packets;
        let next = self.queue.dequeue(start, &mut Account { probe, waiting: &mut self.waiting });
        let Some(mut packet) = next else {
            // The next arrival starts the link, or what a shaper holds back when it says so.
            self.idle = true;
            self.free_at = self.queue.ready_at();
            debug_assert!(self.free_at > start, "a time to ask again that has passed");
            if self.waiting.packets != before {
                probe.queue_changed(start, self.waiting.bytes, self.waiting.packets);
            }
            return;
        };
        self.idle = false;
        self.waiting.remove(packet.size_bytes);
        debug_assert_eq!(
            (self.queue.bytes(), self.queue.packets()),
            (self.waiting.bytes, self.waiting.packets),
            "the discipline's account differs from what it was given, handed over and dropped"
        );
        probe.queue_changed(start, self.waiting.bytes, self.waiting.packets);

        let finish = self.capacity.finish(start, packet.size_bytes);
        self.free_at = finish;
        probe.sent(start, finish, &mut packet);
        if finish == Time::NEVER {
            self.pipe.push_back(Travelling { exit: Time::NEVER, packet });
            return;
        }
        let exit = finish + self.delay.delay(finish);
        if let Some(reason) = self.verdict(finish) {
            probe.dropped(finish, &packet, reason);
            return;
        }
        if self.may_reorder && exit < self.last_exit {
            self.pipe.push_before(Travelling { exit, packet }, |other| other.exit > exit);
        } else {
            self.last_exit = exit.max(self.last_exit);
            self.pipe.push_back(Travelling { exit: self.last_exit, packet });
        }
    }

    /// Every process sees every departure: none depends on what another one does.
    #[inline]
    fn verdict(&mut self, finish: Time) -> Option<Reason> {
        let mut verdict = None;
        for loss in &mut self.losses {
            verdict = verdict.or(loss.verdict(finish));
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::{Constant as Rated, Steps};
    use crate::delay::Constant;
    use crate::packet::Ecn;
    use crate::queue::{DropTail, Limit};
    use jostle_units::{Rate, Span};

    /// 1250 bytes take 100 µs at 100 Mbit/s.
    const SIZE_BYTES: u32 = 1250;

    fn packet(body: u32) -> Packet<u32> {
        Packet {
            flow: 0,
            size_bytes: SIZE_BYTES,
            queued_at: Time::ZERO,
            ecn: Ecn::NotCapable,
            hop: 0,
            body,
        }
    }

    fn us(us: u64) -> Time {
        Time::from_ns(us * 1_000)
    }

    fn link(limit_packets: u64, losses: Vec<Box<dyn Loss>>) -> Link<u32> {
        Link::new(
            Box::new(DropTail::new(Limit::Packets(limit_packets))),
            Box::new(Rated::new(Rate::from_mbps(100))),
            Box::new(Constant::new(Span::from_ms(10))),
            losses,
        )
    }

    #[derive(Default)]
    struct Notes {
        sent: Vec<(u64, u64, u32)>,
        dropped: Vec<(u64, u32, Reason)>,
        longest: u64,
    }

    impl Probe<u32> for Notes {
        fn queue_changed(&mut self, _: Time, _: u64, packets: u64) {
            self.longest = self.longest.max(packets);
        }
        fn sent(&mut self, start: Time, finish: Time, packet: &mut Packet<u32>) {
            self.sent.push((start.as_ns() / 1000, finish.as_ns() / 1000, packet.body));
        }
        fn dropped(&mut self, now: Time, packet: &Packet<u32>, reason: Reason) {
            self.dropped.push((now.as_ns() / 1000, packet.body, reason));
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
            assert_eq!(link.pop(us(exit), &mut notes).map(|p| p.body), Some(body));
        }
        assert_eq!(link.next_time(), Time::NEVER);
        assert_eq!(notes.sent, [(5, 105, 0), (105, 205, 1), (205, 305, 2)]);
    }

    #[test]
    fn one_event_per_packet_even_without_delay() {
        let mut link = Link::new(
            Box::new(DropTail::new(Limit::Packets(10))),
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
        assert_eq!(notes.dropped, [(0, 3, Reason::Overflow)]);
        // At 100 µs the service starts first, and so makes room for an arrival at that instant.
        link.push(us(100), packet(4), &mut notes);
        assert_eq!(notes.dropped.len(), 1);
        assert_eq!(notes.longest, 2);
    }

    /// Loses the packets whose turn the list names.
    struct Listed(u32, Vec<u32>);

    impl Loss for Listed {
        fn verdict(&mut self, _: Time) -> Option<Reason> {
            self.0 += 1;
            self.1.contains(&self.0).then_some(Reason::Loss)
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
            arrived.extend(link.pop(link.next_time(), &mut notes).map(|p| p.body));
        }
        assert_eq!(arrived, [2, 3]);
        assert_eq!(notes.dropped, [(100, 0, Reason::Loss), (200, 1, Reason::Loss)]);
        assert_eq!(notes.sent.len(), 4, "lost packets take their time on the wire");
    }

    /// A shaper holds packets back while the link is free, and the link gets on without an arrival.
    #[test]
    fn what_a_shaper_holds_back_leaves_when_it_may() {
        use jostle_catalogue::Value;
        let given = [("rate", 10_000_000), ("burst", 1514)];
        let given = given.map(|(name, value)| (name.to_owned(), Value::Integer(value)));
        let shaper = crate::registry::queue::<u32>("tbf").unwrap();
        let random = jostle_units::Stream::new(1, "tbf");
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
            arrived.extend(link.pop(link.next_time(), &mut notes).map(|p| p.body));
        }
        assert_eq!(arrived, [0, 1, 2]);
        // Of the burst of 1514 bytes 264 are left over; 986 take 789 us at 10 Mbit/s, 1250 a millisecond.
        assert_eq!(notes.sent.iter().map(|sent| sent.0).collect::<Vec<_>>(), [0, 788, 1788]);
        assert_eq!(notes.sent[1].1 - notes.sent[1].0, 100, "and leave at the link's rate");
    }

    #[test]
    fn a_link_that_stops_for_good_fills_its_queue_and_stays_quiet() {
        let steps = vec![(Time::ZERO, Rate::from_mbps(100)), (us(150), Rate::ZERO)];
        let (mut link, mut notes) = (
            Link::new(
                Box::new(DropTail::new(Limit::Packets(3))),
                Box::new(Steps::new(steps).unwrap()),
                Box::new(Constant::new(Span::ZERO)),
                vec![],
            ),
            Notes::default(),
        );
        for body in 0..8 {
            link.push(us(u64::from(body) * 100), packet(body), &mut notes);
        }
        assert_eq!(link.pop(us(700), &mut notes).map(|p| p.body), Some(0));
        assert_eq!(link.next_time(), Time::NEVER);
        assert!(link.pop(Time::NEVER, &mut notes).is_none());
        assert_eq!((link.queue_packets(), link.in_flight()), (3, 1));
        assert_eq!(notes.dropped.len(), 3);
    }

    /// Notes until when time has passed.
    struct Clocked(std::sync::Arc<std::sync::Mutex<Vec<Time>>>);

    impl Loss for Clocked {
        fn verdict(&mut self, _: Time) -> Option<Reason> {
            None
        }
        fn pass(&mut self, now: Time) {
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
            Box::new(DropTail::new(Limit::Packets(10))),
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
            exits.extend(link.pop(now, &mut ()).map(|p| (now.as_ns() / 1000, p.body)));
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
}
