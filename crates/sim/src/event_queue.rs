//! The event queue, in virtual time.

use std::cmp::Reverse;

use dary_heap::QuaternaryHeap;
use jostle_units::{ConnectionId, LinkId, Time};

/// Timers of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deadline {
    /// Retransmission timeout, loss probe or reordering timer.
    Retransmission,
    /// Departure of the next paced packet.
    Pacing,
    /// A delayed or compressed ACK.
    Acknowledgement,
    /// Wake-up requested by a controller.
    Wakeup,
    /// The next read of the receiving application.
    Reading,
}

/// A scheduled event, with its link, the index of its delay line, or its connection. The kinds have the
/// same order as in a packed entry, so that unpacking needs no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A packet leaves a link at its far end.
    Link(LinkId),
    /// A packet reaches the end of a delay line.
    DelayLine(u32),
    /// A flow's network card has sent a packet.
    Nic(ConnectionId),
    /// A flow's [`Deadline::Retransmission`].
    Retransmission(ConnectionId),
    /// A flow's [`Deadline::Pacing`].
    Pacing(ConnectionId),
    /// A flow's [`Deadline::Acknowledgement`].
    Acknowledgement(ConnectionId),
    /// A flow's [`Deadline::Wakeup`].
    Wakeup(ConnectionId),
    /// A flow's [`Deadline::Reading`].
    Reading(ConnectionId),
    /// Start, action or stop of a flow's application.
    Source(ConnectionId),
    /// Arrival of packets whose path has no link.
    ZeroLinkPath,
    /// Change of routes.
    RouteChange,
    /// Packets wait at the entrance of a tunnel with this connection.
    Tunnel(ConnectionId),
    /// End of a sampling interval, or phase boundary.
    Observe,
}

/// Maximum number of flows or links, limited by the bits of an entry.
pub(crate) const POSITIONS: u32 = 1 << POSITION_BITS;

const POSITION_BITS: u32 = 20;
const KIND_BITS: u32 = 4;
const SEQUENCE_BITS: u32 = 64 - KIND_BITS - POSITION_BITS;

impl Event {
    /// Returns whether the event moves a packet.
    #[inline]
    const fn moves_a_packet(self) -> bool {
        matches!(self, Self::Link(_) | Self::DelayLine(_) | Self::Nic(_) | Self::ZeroLinkPath)
    }

    #[inline]
    fn pack(self) -> u64 {
        let (kind, position) = match self {
            Self::Link(link) => (0, link.0),
            Self::DelayLine(position) => (1, position),
            Self::Nic(connection) => (2, connection.0),
            Self::Retransmission(connection) => (3, connection.0),
            Self::Pacing(connection) => (4, connection.0),
            Self::Acknowledgement(connection) => (5, connection.0),
            Self::Wakeup(connection) => (6, connection.0),
            Self::Reading(connection) => (7, connection.0),
            Self::Source(connection) => (8, connection.0),
            Self::ZeroLinkPath => (9, 0),
            Self::RouteChange => (10, 0),
            Self::Observe => (11, 0),
            Self::Tunnel(connection) => (12, connection.0),
        };
        debug_assert!(position < POSITIONS);
        kind << POSITION_BITS | u64::from(position)
    }

    #[inline]
    fn unpack(bits: u64) -> Self {
        let position = bits as u32 & (POSITIONS - 1);
        match bits as u32 >> POSITION_BITS & ((1 << KIND_BITS) - 1) {
            0 => Self::Link(LinkId(position)),
            1 => Self::DelayLine(position),
            2 => Self::Nic(ConnectionId(position)),
            3 => Self::Retransmission(ConnectionId(position)),
            4 => Self::Pacing(ConnectionId(position)),
            5 => Self::Acknowledgement(ConnectionId(position)),
            6 => Self::Wakeup(ConnectionId(position)),
            7 => Self::Reading(ConnectionId(position)),
            8 => Self::Source(ConnectionId(position)),
            9 => Self::ZeroLinkPath,
            10 => Self::RouteChange,
            12 => Self::Tunnel(ConnectionId(position)),
            _ => Self::Observe,
        }
    }
}

/// Priority queue of events. An entry is one 128-bit number: the time in the upper half, then a
/// sequence number that keeps the order of events at the same time, then the event. The four
/// children of a heap node fill a cache line.
///
/// Packet events have few sources, each with one event in the queue. Timers are many, one or two
/// per flow, and rarely expire. Two heaps avoid that every packet pays for the depth of the timer
/// heap. Most runs have so few packet sources that the small queue replaces their heap.
#[derive(Debug)]
pub(crate) struct EventQueue {
    few: SmallEventQueue,
    /// Earliest entry of both heaps. Cached, because nearly every event reads it and few change it.
    rest: u128,
    /// Packet events that did not fit into `few`.
    packets: QuaternaryHeap<Reverse<u128>>,
    timers: QuaternaryHeap<Reverse<u128>>,
    scheduled: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            few: SmallEventQueue::default(),
            rest: NONE,
            packets: QuaternaryHeap::new(),
            timers: QuaternaryHeap::new(),
            scheduled: 0,
        }
    }
}

/// Capacity of the small queue. Most networks have at most two links, a return link and a delay
/// line. A power of two, so that no bounds check is needed.
const SMALL_QUEUE_CAPACITY: usize = 8;

/// No entry: larger than every entry.
const NONE: u128 = u128::MAX;

/// Sorted queue of a few entries, the earliest last. The first element is a sentinel.
#[derive(Debug)]
struct SmallEventQueue {
    entries: [u128; SMALL_QUEUE_CAPACITY],
    /// Index of the earliest entry.
    last: usize,
}

impl Default for SmallEventQueue {
    fn default() -> Self {
        Self { entries: [NONE; SMALL_QUEUE_CAPACITY], last: 0 }
    }
}

impl SmallEventQueue {
    #[inline]
    fn at(&mut self, place: usize) -> &mut u128 {
        &mut self.entries[place % SMALL_QUEUE_CAPACITY]
    }

    #[inline]
    fn first(&self) -> u128 {
        self.entries[self.last % SMALL_QUEUE_CAPACITY]
    }

    #[inline]
    const fn is_full(&self) -> bool {
        self.last == SMALL_QUEUE_CAPACITY - 1
    }

    /// Inserts an entry. The queue must not be full.
    #[inline]
    fn insert(&mut self, entry: u128) {
        let mut place = self.last;
        while *self.at(place) < entry {
            *self.at(place + 1) = *self.at(place);
            place -= 1;
        }
        *self.at(place + 1) = entry;
        self.last += 1;
        debug_assert!(self.entries[..=self.last].is_sorted_by(|later, entry| later > entry));
    }

    #[inline]
    fn remove_first(&mut self) {
        self.last -= 1;
    }
}

impl EventQueue {
    /// Schedules `event` at `at`, after everything already scheduled for that time.
    #[inline]
    pub fn schedule(&mut self, at: Time, event: Event) {
        self.scheduled += 1;
        debug_assert!(self.scheduled < 1 << SEQUENCE_BITS);
        let order = self.scheduled << (KIND_BITS + POSITION_BITS) | event.pack();
        let entry = u128::from(at.as_ns()) << 64 | u128::from(order);
        if event.moves_a_packet() && !self.few.is_full() {
            self.few.insert(entry);
        } else {
            self.push(entry, event);
        }
    }

    /// Schedules the next observation, before every other event at that time, also those scheduled
    /// earlier: phases and sampling intervals include their start and exclude their end.
    #[cold]
    pub fn schedule_observation(&mut self, at: Time) {
        self.insert_first(at, Event::Observe);
    }

    /// Returns the event of the last [`pop`](Self::pop) to the head of the queue. No event may have
    /// been scheduled since.
    #[cold]
    pub fn put_back(&mut self, at: Time, event: Event) {
        self.insert_first(at, event);
    }

    /// Schedules `event` before every other event at `at`.
    fn insert_first(&mut self, at: Time, event: Event) {
        // Sequence numbers start at 1, so 0 comes first.
        let entry = u128::from(at.as_ns()) << 64 | u128::from(event.pack());
        if event.moves_a_packet() && !self.few.is_full() {
            self.few.insert(entry);
        } else {
            self.push(entry, event);
        }
    }

    /// Pushes an entry onto the heap for its kind.
    #[inline(never)]
    fn push(&mut self, entry: u128, event: Event) {
        self.rest = self.rest.min(entry);
        let heap = if event.moves_a_packet() { &mut self.packets } else { &mut self.timers };
        heap.push(Reverse(entry));
    }

    /// Removes and returns the next event. Always inlined into the event loop: a call costs 2 %
    /// more.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<(Time, Event)> {
        let few = self.few.first();
        // Entries are distinct, except `NONE`.
        let entry = if few < self.rest {
            self.few.remove_first();
            few
        } else if self.rest < NONE {
            self.pop_rest()
        } else {
            return None;
        };
        Some((Time::from_ns((entry >> 64) as u64), Event::unpack(entry as u64)))
    }

    /// Removes the earliest entry of the heaps.
    #[inline(never)]
    fn pop_rest(&mut self) -> u128 {
        let entry = self.rest;
        debug_assert_eq!(entry, first_of(&self.packets).min(first_of(&self.timers)), "the cache");
        let heap =
            if first_of(&self.packets) == entry { &mut self.packets } else { &mut self.timers };
        heap.pop();
        self.rest = first_of(&self.packets).min(first_of(&self.timers));
        entry
    }
}

#[inline]
fn first_of(heap: &QuaternaryHeap<Reverse<u128>>) -> u128 {
    heap.peek().map_or(NONE, |&Reverse(entry)| entry)
}

/// A timer with lazy rescheduling. Most packets move a deadline back. The event then stays in the
/// queue and is scheduled anew when it expires too early.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    due: Time,
}

impl Default for Timer {
    fn default() -> Self {
        Self { due: Time::NEVER }
    }
}

impl Timer {
    /// Schedules an event if `deadline` is before the scheduled one.
    #[inline]
    pub fn arm(&mut self, deadline: Time, agenda: &mut EventQueue, event: Event) {
        if deadline < self.due {
            self.due = deadline;
            agenda.schedule(deadline, event);
        }
    }

    /// Handles an event of this timer. Returns whether the caller must check the deadline and arm
    /// the timer again. If not, an earlier event replaced this one and was handled.
    #[inline]
    pub fn expires(&mut self, now: Time) -> bool {
        let expires = now >= self.due;
        if expires {
            self.due = Time::NEVER;
        }
        expires
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_times_keep_their_order() {
        let mut agenda = EventQueue::default();
        let event =
            |i| if i % 3 == 0 { Event::Pacing(ConnectionId(i)) } else { Event::Link(LinkId(i)) };
        for i in 0..100 {
            agenda.schedule(Time::from_ns(7), event(i));
        }
        agenda.schedule(Time::from_ns(3), Event::Observe);
        assert_eq!(agenda.pop(), Some((Time::from_ns(3), Event::Observe)));
        for i in 0..100 {
            assert_eq!(agenda.pop(), Some((Time::from_ns(7), event(i))));
        }
        assert_eq!(agenda.pop(), None);
    }

    #[test]
    fn an_observation_is_before_all_other_events_at_its_time() {
        let at = Time::from_ns;
        for interval_ns in [2, 3, 6] {
            let mut agenda = EventQueue::default();
            agenda.schedule(at(0), Event::Source(ConnectionId(1)));
            agenda.schedule(at(6), Event::Source(ConnectionId(0)));
            agenda.schedule_observation(at(0));
            agenda.schedule(at(4), Event::Wakeup(ConnectionId(0)));
            agenda.schedule(at(6), Event::Link(LinkId(0)));
            let mut order = Vec::new();
            while let Some((now, event)) = agenda.pop() {
                match event {
                    Event::Wakeup(_) => agenda.schedule(at(6), Event::Pacing(ConnectionId(0))),
                    Event::Observe if now < at(6) => {
                        agenda.schedule_observation(at(now.as_ns() + interval_ns));
                        if now == at(0) {
                            order.push(event);
                        }
                    }
                    event => order.push(event),
                }
            }
            let expected = [
                Event::Observe,
                Event::Source(ConnectionId(1)),
                Event::Observe,
                Event::Source(ConnectionId(0)),
                Event::Link(LinkId(0)),
                Event::Pacing(ConnectionId(0)),
            ];
            assert_eq!(order, expected, "{interval_ns}");
        }
    }

    #[test]
    fn what_is_put_back_comes_first() {
        let mut agenda = EventQueue::default();
        for i in 0..10 {
            agenda.schedule(
                Time::from_ns(7),
                if i % 2 == 0 { Event::Wakeup(ConnectionId(i)) } else { Event::Link(LinkId(i)) },
            );
        }
        for i in 0..10 {
            let popped = agenda.pop();
            if let Some((at, event)) = popped {
                agenda.put_back(at, event);
            }
            assert_eq!(agenda.pop(), popped, "{i}");
        }
        assert_eq!(agenda.pop(), None);
    }

    #[test]
    fn every_event_survives_packing() {
        for position in [0, 1, 77, POSITIONS - 1] {
            for event in [
                Event::Link(LinkId(position)),
                Event::DelayLine(position),
                Event::Nic(ConnectionId(position)),
                Event::Retransmission(ConnectionId(position)),
                Event::Pacing(ConnectionId(position)),
                Event::Acknowledgement(ConnectionId(position)),
                Event::Wakeup(ConnectionId(position)),
                Event::Source(ConnectionId(position)),
                Event::Tunnel(ConnectionId(position)),
                Event::ZeroLinkPath,
                Event::RouteChange,
                Event::Observe,
            ] {
                assert_eq!(Event::unpack(event.pack()), event);
            }
        }
    }

    proptest! {
        #[test]
        fn events_come_in_order_of_time(times in prop::collection::vec(0u64..1000, 0..200)) {
            let mut agenda = EventQueue::default();
            for (i, &at) in (0..).zip(&times) {
                let event = if i % 2 == 0 { Event::Link(LinkId(i)) } else { Event::Wakeup(ConnectionId(i)) };
                agenda.schedule(Time::from_ns(at), event);
            }
            let mut sorted = times;
            sorted.sort_unstable();
            let popped: Vec<_> = std::iter::from_fn(|| agenda.pop()).map(|(t, _)| t.as_ns()).collect();
            prop_assert_eq!(popped, sorted);
        }

        /// A deadline that is moved at random is met once unless it is moved away, in time.
        #[test]
        fn timers_expire_at_the_last_deadline(moves in prop::collection::vec((0u64..50, 0u64..60), 1..60)) {
            let mut agenda = EventQueue::default();
            let mut timer = Timer::default();
            let mut now = 0;
            let mut deadline = Time::NEVER;
            for (step, delay) in moves {
                let until = now + step;
                // Serve what is due before the next move, as the simulator's loop does.
                let mut later = Vec::new();
                while let Some((at, event)) = agenda.pop() {
                    if at.as_ns() > until {
                        later.push((at, event));
                        break;
                    }
                    if timer.expires(at) && at >= deadline {
                        prop_assert_eq!(at, deadline);
                        deadline = Time::NEVER;
                    }
                    timer.arm(deadline, &mut agenda, Event::Observe);
                }
                for (at, event) in later {
                    agenda.schedule(at, event);
                }
                prop_assert!(deadline.as_ns() > until, "missed {deadline}");
                now = until;
                deadline = Time::from_ns(now + delay + 1);
                timer.arm(deadline, &mut agenda, Event::Observe);
            }
        }
    }
}
