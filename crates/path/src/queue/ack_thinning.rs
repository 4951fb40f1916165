//! ACKs that a link thins out before they wait in its queue: of those of a connection that come within a
//! while only the newest is sent. Modems do so where sending costs a request and a grant (TCP ACK
//! suppression), and it is a form of RFC 3449's ACK filtering (§5.2.1), with a queue of one ACK per
//! connection, and a time.
//!
//! As §5.2.1 asks, what is not redundant stays: duplicates and ACKs with blocks of SACK go on at once, and
//! flags of ECN separate what comes before a change from what comes after it.

use std::collections::VecDeque;

use jostle_units::{Span, Time};

use super::{Backlog, QueueDiscipline};
use crate::headers::{Headers, Hosts, PureAck};
use crate::packet::{Fate, Packet, Reason};

/// In front of another queue.
pub struct AckThinning<B> {
    queue: Box<dyn QueueDiscipline<B>>,
    most: u32,
    hold: Span,
    /// Places of ACKs that wait for newer ones, in the order in which they go on at the latest.
    waiting: VecDeque<Place<B>>,
    /// Number of the first of these places.
    first: u64,
    /// By number of the flow. Connections that come and go have a number each, so that little is kept.
    flows: Vec<Seen>,
    backlog: Backlog,
}

struct Place<B> {
    /// What has it goes on at the latest then.
    until: Time,
    /// None once it has gone on.
    held: Option<Held<B>>,
}

struct Held<B> {
    packet: Packet<B>,
    ack: PureAck,
    /// ACKs that it stands for, itself included.
    stands_for: u32,
}

/// What is known of a flow.
#[derive(Clone, Copy)]
struct Seen {
    /// Number of the place that its latest ACK has or had.
    place: u64,
    /// The least number that an ACK has to have to be no duplicate.
    news: u64,
}

impl Seen {
    const NOTHING: Self = Self { place: u64::MAX, news: 0 };
}

impl<B: Headers + Copy + Send> AckThinning<B> {
    /// One ACK stands for `most` at most, and waits for `hold` at most.
    pub fn new(queue: Box<dyn QueueDiscipline<B>>, most: u32, hold: Span) -> Self {
        let (waiting, flows) = (VecDeque::new(), Vec::new());
        Self { queue, most, hold, waiting, first: 0, flows, backlog: Backlog::default() }
    }

    /// What waits no longer enters the queue, and counts there from then on.
    fn go_on(&mut self, now: Time, packet: Packet<B>, fate: &mut dyn Fate<B>) {
        self.queue.enqueue(now, Packet { queued_at: now, ..packet }, fate);
    }

    /// The place that the latest ACK of a flow has, if it is there still.
    fn place(&mut self, seen: Seen) -> Option<&mut Place<B>> {
        self.waiting.get_mut(seen.place.checked_sub(self.first)? as usize)
    }

    /// Takes the ACK of a flow that waits.
    fn take(&mut self, seen: Seen) -> Option<Held<B>> {
        let held = self.place(seen)?.held.take()?;
        self.backlog.remove(held.packet.size_bytes);
        Some(held)
    }

    /// Lets go what has waited for long enough by `now`, each at its own time.
    #[inline]
    fn let_go(&mut self, now: Time, fate: &mut dyn Fate<B>) {
        while let Some(place) = self.waiting.front_mut() {
            if place.held.is_some() && place.until > now {
                return;
            }
            let (until, held) = (place.until, place.held.take());
            self.waiting.pop_front();
            self.first += 1;
            if let Some(held) = held {
                self.backlog.remove(held.packet.size_bytes);
                self.go_on(until, held.packet, fate);
            }
        }
    }

    fn thin(&mut self, now: Time, packet: Packet<B>, ack: PureAck, fate: &mut dyn Fate<B>) {
        let index = packet.flow as usize;
        if self.flows.len() <= index {
            self.flows.resize(index + 1, Seen::NOTHING);
        }
        let seen = self.flows[index];
        let number = u64::from(ack.number);
        self.flows[index].news = seen.news.max(number + 1);
        let at_once = ack.block_count > 0 || number < seen.news;
        let (mut stands_for, mut replaces) = (1, false);
        if let Some(older) = self.take(seen) {
            replaces = ack.marks == older.ack.marks && ack.says_more_than(&older.ack);
            if replaces {
                stands_for += older.stands_for;
                fate.dropped(now, &older.packet, Reason::AckFilter);
            } else {
                self.go_on(now, older.packet, fate);
            }
        }
        if at_once || stands_for >= self.most {
            self.go_on(now, packet, fate);
            return;
        }
        self.backlog.add(packet.size_bytes);
        let held = Some(Held { packet, ack, stands_for });
        match self.place(seen) {
            Some(place) if replaces => place.held = held,
            _ => {
                self.flows[index].place = self.first + self.waiting.len() as u64;
                self.waiting.push_back(Place { until: now + self.hold, held });
            }
        }
    }
}

impl<B: Headers + Copy + Send> QueueDiscipline<B> for AckThinning<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, fate: &mut dyn Fate<B>) {
        self.let_go(now, fate);
        match packet.body.pure_ack() {
            Some(ack) => self.thin(now, packet, ack, fate),
            None => self.queue.enqueue(now, packet, fate),
        }
    }

    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<B>) -> Option<Packet<B>> {
        self.let_go(now, fate);
        self.queue.dequeue(now, fate)
    }

    fn ready_at(&self) -> Time {
        let next = self.waiting.front().map_or(Time::NEVER, |place| place.until);
        self.queue.ready_at().min(next)
    }

    fn bytes(&self) -> u64 {
        self.queue.bytes() + self.backlog.bytes
    }

    fn packets(&self) -> u64 {
        self.queue.packets() + self.backlog.packets
    }

    fn know_hosts(&mut self, hosts: &[Hosts]) {
        self.queue.know_hosts(hosts);
    }

    fn admit(&mut self, connection: u32, flow: u32) {
        self.queue.admit(connection, flow);
    }

    fn pass(&mut self, now: Time) {
        self.queue.pass(now);
    }
}

#[cfg(test)]
mod tests {
    use super::super::DropTail;
    use super::super::testing::Fates;
    use super::*;
    use crate::packet::Ecn;
    use jostle_catalogue::Limit;

    impl Headers for (u32, Option<PureAck>) {
        fn pure_ack(&self) -> Option<PureAck> {
            self.1
        }
    }

    type Body = (u32, Option<PureAck>);

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn thinning(most: u32) -> AckThinning<Body> {
        let queue = Box::new(DropTail::new(Limit::Packets(100)));
        AckThinning::new(queue, most, Span::from_ms(5))
    }

    fn packet(flow: u32, now: Time, body: Body) -> Packet<Body> {
        Packet { flow, size_bytes: 66, queued_at: now, ecn: Ecn::NotCapable, hop: 0, body }
    }

    fn ack(number: u32) -> PureAck {
        PureAck { number, ..PureAck::default() }
    }

    /// Numbers of what comes out, with times in ms, if ACKs come at these times and the link asks when it
    /// is told to.
    fn sent(most: u32, arrivals: &[(u64, u32, PureAck)]) -> (Vec<(u64, u32)>, usize) {
        let (mut queue, mut fates) = (thinning(most), Fates::default());
        let mut out = Vec::new();
        let mut ask = |queue: &mut AckThinning<Body>, fates: &mut Fates, now: Time| {
            while let Some(packet) = queue.dequeue(now, fates) {
                out.push((packet.queued_at.as_ns() / 1_000_000, packet.body.0));
            }
        };
        for (at, flow, ack) in arrivals {
            while queue.ready_at() <= ms(*at) {
                let due = queue.ready_at();
                ask(&mut queue, &mut fates, due);
            }
            let body = (ack.number, Some(*ack));
            queue.enqueue(ms(*at), packet(*flow, ms(*at), body), &mut fates);
            ask(&mut queue, &mut fates, ms(*at));
        }
        while queue.ready_at() < Time::NEVER {
            let due = queue.ready_at();
            ask(&mut queue, &mut fates, due);
        }
        assert_eq!((queue.packets(), queue.bytes()), (0, 0));
        assert!(fates.dropped.iter().all(|(_, reason)| *reason == Reason::AckFilter));
        let dropped = fates.dropped.len();
        assert_eq!(out.len() + dropped, arrivals.len());
        (out, dropped)
    }

    #[test]
    fn one_of_so_many_goes_on_and_the_last_when_its_time_is_over() {
        let arrivals: Vec<_> = (0..10).map(|n| (n, 1, ack(n as u32))).collect();
        // 0 waits from 0 on and would go at 5; 3 is the fourth, 7 the eighth; 8 and 9 end at 8 + 5.
        assert_eq!(sent(4, &arrivals), (vec![(3, 3), (7, 7), (13, 9)], 7));
        // The time of the first decides.
        assert_eq!(sent(100, &arrivals).0, [(5, 4), (10, 9)]);
        assert_eq!(sent(1, &arrivals).1, 0);
    }

    #[test]
    fn connections_are_thinned_each_by_itself() {
        let arrivals = [(0, 1, ack(1)), (1, 2, ack(1)), (2, 1, ack(2)), (3, 2, ack(2))];
        assert_eq!(sent(2, &arrivals).0, [(2, 2), (3, 2)]);
        assert_eq!(sent(3, &arrivals).0, [(5, 2), (6, 2)]);
        // Whatever the order of their numbers, and beside those that nobody has.
        let arrivals = [(0, 9, ack(1)), (1, 2, ack(1)), (2, 9, ack(2)), (3, 2, ack(2))];
        assert_eq!(sent(2, &arrivals).0, [(2, 2), (3, 2)]);
    }

    #[test]
    fn what_says_something_of_its_own_goes_on_at_once() {
        let blocks = [(5, 6), (0, 0), (0, 0)];
        let selective = PureAck { blocks, block_count: 1, ..ack(3) };
        assert_eq!(sent(9, &[(0, 1, ack(3)), (1, 1, selective)]), (vec![(1, 3)], 1));
        assert_eq!(sent(9, &[(0, 1, ack(3)), (1, 1, ack(3))]), (vec![(1, 3), (1, 3)], 0));
        // However many they are: a third one goes on beside the two.
        let copies: Vec<_> = (0..3).map(|at| (at, 1, ack(3))).collect();
        assert_eq!(sent(9, &copies), (vec![(1, 3), (1, 3), (2, 3)], 0));
        // What was sent as the last of two is repeated when nothing waits.
        let repeated = [(0, 1, ack(1)), (1, 1, ack(3)), (2, 1, ack(3)), (3, 1, ack(5))];
        assert_eq!(sent(2, &repeated), (vec![(1, 3), (2, 3), (8, 5)], 1));
        // The change goes on in time, and what comes after it may wait.
        let marked = PureAck { marks: (true, 0), ..ack(5) };
        assert_eq!(sent(9, &[(0, 1, ack(3)), (1, 1, marked)]), (vec![(1, 3), (6, 5)], 0));
    }

    #[test]
    fn data_do_not_wait() {
        let (mut queue, mut fates) = (thinning(4), Fates::default());
        queue.enqueue(ms(0), packet(1, ms(0), (1, Some(ack(1)))), &mut fates);
        queue.enqueue(ms(1), packet(1, ms(1), (2, None)), &mut fates);
        assert_eq!((queue.packets(), queue.bytes()), (2, 132));
        assert_eq!(queue.dequeue(ms(1), &mut fates).map(|packet| packet.body.0), Some(2));
        assert!(queue.dequeue(ms(1), &mut fates).is_none());
        assert_eq!((queue.packets(), queue.ready_at()), (1, ms(5)));
        // Asked too late, it had left in time.
        assert_eq!(queue.dequeue(ms(9), &mut fates).map(|packet| packet.queued_at), Some(ms(5)));
    }
}
