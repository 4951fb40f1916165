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
    /// The ACK that waits for a newer one, by number of the flow.
    held: Vec<Option<Held<B>>>,
    /// When those that wait go on at the latest, in order of time: of which flow, and its number.
    due: VecDeque<(Time, u32, u64)>,
    /// So many have begun to wait.
    begun: u64,
    backlog: Backlog,
}

struct Held<B> {
    packet: Packet<B>,
    ack: PureAck,
    /// ACKs that it stands for, itself included.
    stands_for: u32,
    number: u64,
}

impl<B: Headers + Copy + Send> AckThinning<B> {
    /// One ACK stands for `most` at most, and waits for `hold` at most.
    pub fn new(queue: Box<dyn QueueDiscipline<B>>, most: u32, hold: Span) -> Self {
        let (held, due) = (Vec::new(), VecDeque::new());
        Self { queue, most, hold, held, due, begun: 0, backlog: Backlog::default() }
    }

    /// What waits no longer enters the queue, and counts there from then on.
    fn go_on(&mut self, now: Time, packet: Packet<B>, fate: &mut dyn Fate<B>) {
        self.queue.enqueue(now, Packet { queued_at: now, ..packet }, fate);
    }

    /// Takes the ACK of a flow that waits.
    fn take(&mut self, flow: u32) -> Option<Held<B>> {
        let held = self.held.get_mut(flow as usize)?.take()?;
        self.backlog.remove(held.packet.size_bytes);
        Some(held)
    }

    /// Lets go what has waited for long enough by `now`, each at its own time.
    #[inline]
    fn let_go(&mut self, now: Time, fate: &mut dyn Fate<B>) {
        while let Some((at, flow, number)) = self.due.front().copied() {
            let waits = self.waits(flow, number);
            if waits && at > now {
                return;
            }
            self.due.pop_front();
            if waits && let Some(held) = self.take(flow) {
                self.go_on(at, held.packet, fate);
            }
        }
    }

    fn waits(&self, flow: u32, number: u64) -> bool {
        let held = self.held.get(flow as usize).and_then(Option::as_ref);
        held.is_some_and(|held| held.number == number)
    }

    fn thin(&mut self, now: Time, packet: Packet<B>, ack: PureAck, fate: &mut dyn Fate<B>) {
        let mut at_once = ack.block_count > 0;
        let (mut stands_for, mut waiting) = (1, None);
        if let Some(older) = self.take(packet.flow) {
            if ack.marks == older.ack.marks && ack.says_more_than(&older.ack) {
                stands_for += older.stands_for;
                waiting = Some(older.number);
                fate.dropped(now, &older.packet, Reason::AckFilter);
            } else {
                self.go_on(now, older.packet, fate);
                at_once |= ack.number <= older.ack.number;
            }
        }
        if at_once || stands_for >= self.most {
            self.go_on(now, packet, fate);
            return;
        }
        let number = waiting.unwrap_or(self.begun);
        if waiting.is_none() {
            self.begun += 1;
            self.due.push_back((now + self.hold, packet.flow, number));
        }
        let index = packet.flow as usize;
        if self.held.len() <= index {
            self.held.resize_with(index + 1, || None);
        }
        self.backlog.add(packet.size_bytes);
        self.held[index] = Some(Held { packet, ack, stands_for, number });
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
        let next = self.due.front().map_or(Time::NEVER, |(at, ..)| *at);
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
    }

    #[test]
    fn what_says_something_of_its_own_goes_on_at_once() {
        let blocks = [(5, 6), (0, 0), (0, 0)];
        let selective = PureAck { blocks, block_count: 1, ..ack(3) };
        assert_eq!(sent(9, &[(0, 1, ack(3)), (1, 1, selective)]), (vec![(1, 3)], 1));
        assert_eq!(sent(9, &[(0, 1, ack(3)), (1, 1, ack(3))]), (vec![(1, 3), (1, 3)], 0));
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
