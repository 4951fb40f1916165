//! ACK thinning: of the ACKs of a connection that arrive within a short time, a link sends only the
//! newest. Modems do so if each transmission costs a request and a grant (TCP ACK suppression). It
//! is a form of the ACK filtering of RFC 3449 §5.2.1, with a queue of one ACK per connection and
//! a time limit.
//!
//! As RFC 3449 §5.2.1 requires, ACKs that are not redundant are kept: duplicate ACKs and ACKs with SACK
//! blocks are forwarded immediately, and a change of ECN flags separates earlier from later ACKs.

use std::collections::VecDeque;

use jostle_units::{ConnectionId, FlowId, Span, Time};

use super::{Backlog, QueueDiscipline};
use crate::packet::{DropReason, Packet, PacketOutcome};
use crate::service_rate::Shaper;
use crate::transport_headers::{FlowHosts, PureAck, TransportHeader};

/// Thins ACKs in front of another queue.
pub struct AckThinning<B> {
    queue: Box<dyn QueueDiscipline<B>>,
    most: u32,
    hold: Span,
    /// Slots of ACKs that wait for newer ones, in the order of their deadlines.
    waiting: VecDeque<AckSlot<B>>,
    /// Number of the first slot.
    first: u64,
    /// State by flow number. Short-lived connections each have a number, so the state is small.
    flows: Vec<FlowAckState>,
    backlog: Backlog,
}

struct AckSlot<B> {
    /// Deadline at which the ACK is forwarded.
    until: Time,
    /// `None` after the ACK was forwarded.
    held: Option<WaitingAck<B>>,
}

struct WaitingAck<B> {
    packet: Packet<B>,
    ack: PureAck,
    /// Number of ACKs that it replaces, including itself.
    replaced: u32,
}

/// State of a flow.
#[derive(Clone, Copy)]
struct FlowAckState {
    /// Number of the slot that the latest ACK occupies or occupied.
    slot: u64,
    /// Smallest ACK number that is not a duplicate.
    news: u64,
}

impl FlowAckState {
    const NOTHING: Self = Self { slot: u64::MAX, news: 0 };
}

impl<B: TransportHeader + Copy + Send> AckThinning<B> {
    /// Creates the queue. One ACK replaces at most `most` ACKs, and waits at most for `hold`.
    pub fn new(queue: Box<dyn QueueDiscipline<B>>, most: u32, hold: Span) -> Self {
        let (waiting, flows) = (VecDeque::new(), Vec::new());
        Self { queue, most, hold, waiting, first: 0, flows, backlog: Backlog::default() }
    }

    /// Forwards an ACK to the queue, where it counts from then on.
    fn forward(&mut self, now: Time, packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        self.queue.enqueue(now, Packet { queued_at: now, ..packet }, outcome);
    }

    /// Returns the slot of a flow's latest ACK, if it still exists.
    fn slot(&mut self, seen: FlowAckState) -> Option<&mut AckSlot<B>> {
        self.waiting.get_mut(seen.slot.checked_sub(self.first)? as usize)
    }

    /// Removes and returns the waiting ACK of a flow.
    fn take(&mut self, seen: FlowAckState) -> Option<WaitingAck<B>> {
        let held = self.slot(seen)?.held.take()?;
        self.backlog.remove(held.packet.size_bytes);
        Some(held)
    }

    /// Forwards all ACKs whose deadline has passed, each at its own deadline.
    #[inline]
    fn forward_due(&mut self, now: Time, outcome: &mut dyn PacketOutcome<B>) {
        while let Some(slot) = self.waiting.front_mut() {
            if slot.held.is_some() && slot.until > now {
                return;
            }
            let (until, held) = (slot.until, slot.held.take());
            self.waiting.pop_front();
            self.first += 1;
            if let Some(held) = held {
                self.backlog.remove(held.packet.size_bytes);
                self.forward(until, held.packet, outcome);
            }
        }
    }

    fn thin(
        &mut self,
        now: Time,
        packet: Packet<B>,
        ack: PureAck,
        outcome: &mut dyn PacketOutcome<B>,
    ) {
        let index = packet.connection.index();
        if self.flows.len() <= index {
            self.flows.resize(index + 1, FlowAckState::NOTHING);
        }
        let seen = self.flows[index];
        let number = u64::from(ack.number);
        self.flows[index].news = seen.news.max(number + 1);
        let at_once = ack.block_count > 0 || number < seen.news;
        let (mut replaced, mut replaces) = (1, false);
        if let Some(older) = self.take(seen) {
            replaces = ack.marks == older.ack.marks && ack.supersedes(&older.ack);
            if replaces {
                replaced += older.replaced;
                outcome.dropped(now, &older.packet, DropReason::AckFilter);
            } else {
                self.forward(now, older.packet, outcome);
            }
        }
        if at_once || replaced >= self.most {
            self.forward(now, packet, outcome);
            return;
        }
        self.backlog.add(packet.size_bytes);
        let held = Some(WaitingAck { packet, ack, replaced });
        match self.slot(seen) {
            Some(slot) if replaces => slot.held = held,
            _ => {
                self.flows[index].slot = self.first + self.waiting.len() as u64;
                self.waiting.push_back(AckSlot { until: now + self.hold, held });
            }
        }
    }
}

impl<B: TransportHeader + Copy + Send> QueueDiscipline<B> for AckThinning<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        self.forward_due(now, outcome);
        match packet.transport.pure_ack() {
            Some(ack) => self.thin(now, packet, ack, outcome),
            None => self.queue.enqueue(now, packet, outcome),
        }
    }

    fn dequeue(&mut self, now: Time, outcome: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
        self.forward_due(now, outcome);
        self.queue.dequeue(now, outcome)
    }

    fn next_dequeue_time(&self) -> Time {
        let next = self.waiting.front().map_or(Time::NEVER, |slot| slot.until);
        self.queue.next_dequeue_time().min(next)
    }

    fn shapers(&self) -> Vec<Shaper> {
        self.queue.shapers()
    }

    fn backlog_bytes(&self) -> u64 {
        self.queue.backlog_bytes() + self.backlog.bytes
    }

    fn backlog_packets(&self) -> u64 {
        self.queue.backlog_packets() + self.backlog.packets
    }

    fn set_flow_hosts(&mut self, hosts: &[FlowHosts]) {
        self.queue.set_flow_hosts(hosts);
    }

    fn register_connection(&mut self, connection: ConnectionId, flow: FlowId, is_opposite: bool) {
        self.queue.register_connection(connection, flow, is_opposite);
    }

    fn advance_to(&mut self, now: Time) {
        self.queue.advance_to(now);
    }
}

#[cfg(test)]
mod tests {
    use super::super::DropTail;
    use super::super::test_support::RecordedOutcomes;
    use super::*;
    use crate::packet::Ecn;
    use jostle_registry::QueueLimit;

    impl TransportHeader for (u32, Option<PureAck>) {
        fn pure_ack(&self) -> Option<PureAck> {
            self.1
        }
    }

    type Body = (u32, Option<PureAck>);

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn thinning(most: u32) -> AckThinning<Body> {
        let queue = Box::new(DropTail::new(QueueLimit::Packets(100)));
        AckThinning::new(queue, most, Span::from_ms(5))
    }

    fn packet(flow: u32, now: Time, body: Body) -> Packet<Body> {
        Packet {
            connection: ConnectionId(flow),
            size_bytes: 66,
            queued_at: now,
            ecn: Ecn::NotCapable,
            hop: 0,
            is_corrupted: false,
            dscp: 0,
            transport: body,
        }
    }

    fn ack(number: u32) -> PureAck {
        PureAck { number, ..PureAck::default() }
    }

    /// Numbers of what comes out, with times in ms, if ACKs come at these times and the link asks when it
    /// is told to.
    fn sent(most: u32, arrivals: &[(u64, u32, PureAck)]) -> (Vec<(u64, u32)>, usize) {
        let (mut queue, mut fates) = (thinning(most), RecordedOutcomes::default());
        let mut out = Vec::new();
        let mut ask = |queue: &mut AckThinning<Body>, fates: &mut RecordedOutcomes, now: Time| {
            while let Some(packet) = queue.dequeue(now, fates) {
                out.push((packet.queued_at.as_ns() / 1_000_000, packet.transport.0));
            }
        };
        for (at, flow, ack) in arrivals {
            while queue.next_dequeue_time() <= ms(*at) {
                let due = queue.next_dequeue_time();
                ask(&mut queue, &mut fates, due);
            }
            let body = (ack.number, Some(*ack));
            queue.enqueue(ms(*at), packet(*flow, ms(*at), body), &mut fates);
            ask(&mut queue, &mut fates, ms(*at));
        }
        while queue.next_dequeue_time() < Time::NEVER {
            let due = queue.next_dequeue_time();
            ask(&mut queue, &mut fates, due);
        }
        assert_eq!((queue.backlog_packets(), queue.backlog_bytes()), (0, 0));
        assert!(fates.dropped.iter().all(|(_, reason)| *reason == DropReason::AckFilter));
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
        let (mut queue, mut fates) = (thinning(4), RecordedOutcomes::default());
        queue.enqueue(ms(0), packet(1, ms(0), (1, Some(ack(1)))), &mut fates);
        queue.enqueue(ms(1), packet(1, ms(1), (2, None)), &mut fates);
        assert_eq!((queue.backlog_packets(), queue.backlog_bytes()), (2, 132));
        assert_eq!(queue.dequeue(ms(1), &mut fates).map(|packet| packet.transport.0), Some(2));
        assert!(queue.dequeue(ms(1), &mut fates).is_none());
        assert_eq!((queue.backlog_packets(), queue.next_dequeue_time()), (1, ms(5)));
        // Asked too late, it had left in time.
        assert_eq!(queue.dequeue(ms(9), &mut fates).map(|packet| packet.queued_at), Some(ms(5)));
    }
}
