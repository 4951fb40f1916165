//! The event queue: what happens next, in virtual time.

use std::cmp::Reverse;

use dary_heap::QuaternaryHeap;
use jostle_units::Time;

/// What the endpoints of a flow wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deadline {
    /// Retransmission, a loss probe, reordering.
    Retransmission,
    /// Pacing lets the next packet leave.
    Pacing,
    /// A delayed or compressed ACK.
    Acknowledgement,
    /// A controller's own wake-up.
    Wakeup,
}

/// Something that is due. The number says whose: a link's, a delay line's or a flow's position. They
/// stand in the order of their kinds in an entry, so that what is read of one needs no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A packet leaves a link at its far end.
    Link(u32),
    /// A packet reaches the end of a delay line.
    Access(u32),
    /// A flow's network card has sent a packet.
    Nic(u32),
    /// A flow's [`Deadline::Retransmission`].
    Retransmission(u32),
    /// A flow's [`Deadline::Pacing`].
    Pacing(u32),
    /// A flow's [`Deadline::Acknowledgement`].
    Acknowledgement(u32),
    /// A flow's [`Deadline::Wakeup`].
    Wakeup(u32),
    /// A flow's application.
    Source(u32),
    /// Packets have crossed a way without links.
    Wire,
    /// The end of an interval, or a phase boundary.
    Observe,
}

/// Most flows or links that an entry can name.
pub(crate) const POSITIONS: u32 = 1 << POSITION_BITS;

const POSITION_BITS: u32 = 20;
const KIND_BITS: u32 = 4;
const SEQUENCE_BITS: u32 = 64 - KIND_BITS - POSITION_BITS;

impl Event {
    /// Whether it moves a packet on.
    #[inline]
    const fn moves_a_packet(self) -> bool {
        matches!(self, Self::Link(_) | Self::Access(_) | Self::Nic(_) | Self::Wire)
    }

    #[inline]
    fn pack(self) -> u64 {
        let (kind, position) = match self {
            Self::Link(position) => (0, position),
            Self::Access(position) => (1, position),
            Self::Nic(position) => (2, position),
            Self::Retransmission(position) => (3, position),
            Self::Pacing(position) => (4, position),
            Self::Acknowledgement(position) => (5, position),
            Self::Wakeup(position) => (6, position),
            Self::Source(position) => (7, position),
            Self::Wire => (8, 0),
            Self::Observe => (9, 0),
        };
        debug_assert!(position < POSITIONS);
        kind << POSITION_BITS | u64::from(position)
    }

    #[inline]
    fn unpack(bits: u64) -> Self {
        let position = bits as u32 & (POSITIONS - 1);
        match bits as u32 >> POSITION_BITS & ((1 << KIND_BITS) - 1) {
            0 => Self::Link(position),
            1 => Self::Access(position),
            2 => Self::Nic(position),
            3 => Self::Retransmission(position),
            4 => Self::Pacing(position),
            5 => Self::Acknowledgement(position),
            6 => Self::Wakeup(position),
            7 => Self::Source(position),
            8 => Self::Wire,
            _ => Self::Observe,
        }
    }
}

/// The events to come. An entry is one number: time in the upper half, then a sequence number that
/// keeps events at the same time in the order they were scheduled, then the event itself. Four of
/// them, the children of a node, fill a cache line.
///
/// Packets are moved on by a few sources of events, each with one event in the queue; timers are
/// many, one or two for every flow, and rarely come up. Two heaps keep every packet from paying for
/// the depth that the timers would give to a common one, and most runs have so few sources that
/// their events need no heap.
#[derive(Debug)]
pub(crate) struct Agenda {
    few: Few,
    /// The earliest of both heaps: nearly every event asks for it, and few change it.
    rest: u128,
    /// What moves packets and found no place among the few.
    packets: QuaternaryHeap<Reverse<u128>>,
    timers: QuaternaryHeap<Reverse<u128>>,
    scheduled: u64,
}

impl Default for Agenda {
    fn default() -> Self {
        Self {
            few: Few::default(),
            rest: NONE,
            packets: QuaternaryHeap::new(),
            timers: QuaternaryHeap::new(),
            scheduled: 0,
        }
    }
}

/// Places of the few. Two links there, one back and a delay line are what most paths come to, or
/// fewer. A power of two, so that no place needs to be checked.
const PLACES: usize = 8;

/// No entry: later than any.
const NONE: u128 = u128::MAX;

/// A few entries, the earliest last. The first place holds none, behind which nothing is inserted.
#[derive(Debug)]
struct Few {
    entries: [u128; PLACES],
    /// Place of the earliest.
    last: usize,
}

impl Default for Few {
    fn default() -> Self {
        Self { entries: [NONE; PLACES], last: 0 }
    }
}

impl Few {
    #[inline]
    fn at(&mut self, place: usize) -> &mut u128 {
        &mut self.entries[place % PLACES]
    }

    #[inline]
    fn first(&self) -> u128 {
        self.entries[self.last % PLACES]
    }

    #[inline]
    const fn is_full(&self) -> bool {
        self.last == PLACES - 1
    }

    /// Adds an entry, for which there must be room.
    #[inline]
    fn insert(&mut self, entry: u128) {
        let mut place = self.last;
        while *self.at(place) < entry {
            *self.at(place + 1) = *self.at(place);
            place -= 1;
        }
        *self.at(place + 1) = entry;
        self.last += 1;
    }

    #[inline]
    fn remove_first(&mut self) {
        self.last -= 1;
    }
}

impl Agenda {
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

    /// Takes back what [`pop`](Self::pop) gave last, before anything else was scheduled: it is the
    /// next event again.
    #[cold]
    pub fn put_back(&mut self, at: Time, event: Event) {
        // Sequence numbers begin at 1.
        let entry = u128::from(at.as_ns()) << 64 | u128::from(event.pack());
        if event.moves_a_packet() && !self.few.is_full() {
            self.few.insert(entry);
        } else {
            self.push(entry, event);
        }
    }

    /// Puts an entry into the heap of its kind.
    #[inline(never)]
    fn push(&mut self, entry: u128, event: Event) {
        self.rest = self.rest.min(entry);
        let heap = if event.moves_a_packet() { &mut self.packets } else { &mut self.timers };
        heap.push(Reverse(entry));
    }

    /// The next event. Always a part of the loop that asks for it: as a function it costs 2 % more.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<(Time, Event)> {
        let few = self.few.first();
        // No two entries are equal but for none at all.
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

    /// Takes the earliest entry of the heaps.
    #[inline(never)]
    fn pop_rest(&mut self) -> u128 {
        let entry = self.rest;
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

/// When the earliest event that was scheduled for a deadline is due. A deadline that is moved with
/// nearly every packet costs no heap operation each time: the event in the queue stays where it is
/// and is moved on when it turns out to be early.
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
    /// Schedules an event if `deadline` lies before the one that is due.
    #[inline]
    pub fn arm(&mut self, deadline: Time, agenda: &mut Agenda, event: Event) {
        if deadline < self.due {
            self.due = deadline;
            agenda.schedule(deadline, event);
        }
    }

    /// An event of this timer came up: whether to look at the deadline, and to arm it anew.
    /// Otherwise an earlier event, which has been served, took this one's place.
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
        let mut agenda = Agenda::default();
        let event = |i| if i % 3 == 0 { Event::Pacing(i) } else { Event::Link(i) };
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
    fn what_is_put_back_comes_first() {
        let mut agenda = Agenda::default();
        for i in 0..10 {
            agenda.schedule(
                Time::from_ns(7),
                if i % 2 == 0 { Event::Wakeup(i) } else { Event::Link(i) },
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
                Event::Link(position),
                Event::Access(position),
                Event::Nic(position),
                Event::Retransmission(position),
                Event::Pacing(position),
                Event::Acknowledgement(position),
                Event::Wakeup(position),
                Event::Source(position),
                Event::Wire,
                Event::Observe,
            ] {
                assert_eq!(Event::unpack(event.pack()), event);
            }
        }
    }

    proptest! {
        #[test]
        fn events_come_in_order_of_time(times in prop::collection::vec(0u64..1000, 0..200)) {
            let mut agenda = Agenda::default();
            for (i, &at) in (0..).zip(&times) {
                let event = if i % 2 == 0 { Event::Link(i) } else { Event::Wakeup(i) };
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
            let mut agenda = Agenda::default();
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
