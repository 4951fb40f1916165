//! The parts of a link. What most links have, a drop-tail queue, one rate and one delay, is a part of the
//! link itself: three calls and a copy of the packet less. All else is behind a pointer.

use jostle_catalogue::Limit;
use jostle_units::{Ring, Span, Time};

use crate::queue::Backlog;
use crate::{Capacity, Delay, Fate, Packet, Probe, QueueDiscipline, Reason, capacity};

/// A packet in the pipe.
#[derive(Clone, Copy)]
pub(super) struct Travelling<B> {
    pub exit: Time,
    pub packet: Packet<B>,
}

/// What waits in front of the link.
pub(super) enum Queue<B> {
    /// [`drop_tail`](QueueDiscipline::drop_tail_limit), whose account is the link's. What waits lies in the
    /// link's pipe already, behind what was sent: it is not moved when it is sent.
    InPipe(Limit),
    /// The same where a packet may leave the pipe other than in the order in which it came.
    DropTail(Limit, Ring<Packet<B>>),
    Other(Box<dyn QueueDiscipline<B>>),
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

impl<B: Copy> Queue<B> {
    /// `queue` has not been given anything. `in_order`: what is sent leaves the pipe in that order, all of it.
    pub fn of(queue: Box<dyn QueueDiscipline<B>>, in_order: bool) -> Self {
        debug_assert_eq!(queue.packets(), 0, "a queue that was used before");
        match queue.drop_tail_limit() {
            Some(limit) if in_order => Self::InPipe(limit),
            Some(limit) => Self::DropTail(limit, Ring::default()),
            None => Self::Other(queue),
        }
    }

    /// The same, out of the pipe.
    pub fn apart(self) -> Self {
        match self {
            Self::InPipe(limit) => Self::DropTail(limit, Ring::default()),
            other => other,
        }
    }

    /// A packet arrives. `waiting` is the account of what waits, which it keeps.
    #[inline(always)]
    pub fn enqueue<P: Probe<B>>(
        &mut self,
        now: Time,
        packet: Packet<B>,
        (waiting, pipe): (&mut Backlog, &mut Ring<Travelling<B>>),
        probe: &mut P,
    ) {
        // Each way takes a copy of its own: of one that is given away by its address no part would be kept in
        // a register before.
        let queued = || Packet { queued_at: now, ..packet };
        match self {
            Self::InPipe(limit) => {
                if waiting.has_room(packet.size_bytes, *limit) {
                    waiting.add(packet.size_bytes);
                    pipe.push_back(Travelling { exit: Time::NEVER, packet: queued() });
                } else {
                    probe.dropped(now, &queued(), Reason::Overflow);
                }
            }
            Self::DropTail(limit, packets) => {
                if waiting.has_room(packet.size_bytes, *limit) {
                    waiting.add(packet.size_bytes);
                    packets.push_back(queued());
                } else {
                    probe.dropped(now, &queued(), Reason::Overflow);
                }
            }
            Self::Other(queue) => {
                waiting.add(packet.size_bytes);
                queue.enqueue(now, queued(), &mut Account { probe, waiting });
            }
        }
    }

    /// The packet to send next, from a queue apart. `waiting` counts it still.
    #[inline]
    pub fn dequeue<P: Probe<B>>(
        &mut self,
        now: Time,
        waiting: &mut Backlog,
        probe: &mut P,
    ) -> Option<Packet<B>> {
        match self {
            Self::InPipe(_) => None,
            Self::DropTail(_, packets) => packets.pop_front(),
            Self::Other(queue) => queue.dequeue(now, &mut Account { probe, waiting }),
        }
    }

    /// See [`QueueDiscipline::ready_at`].
    pub fn ready_at(&self) -> Time {
        match self {
            Self::InPipe(_) | Self::DropTail(..) => Time::NEVER,
            Self::Other(queue) => queue.ready_at(),
        }
    }

    /// Whether the discipline's own account says so, too.
    pub fn agrees(&self, waiting: &Backlog) -> bool {
        match self {
            Self::InPipe(_) => true,
            Self::DropTail(_, packets) => packets.len() as u64 == waiting.packets,
            Self::Other(queue) => {
                (queue.bytes(), queue.packets()) == (waiting.bytes, waiting.packets)
            }
        }
    }

    /// The discipline, where it is one that has anything to be told.
    pub fn other(&mut self) -> Option<&mut dyn QueueDiscipline<B>> {
        match self {
            Self::InPipe(_) | Self::DropTail(..) => None,
            Self::Other(queue) => Some(queue.as_mut()),
        }
    }
}

/// How fast it sends.
pub(super) enum Sending {
    Constant(capacity::Constant),
    Other(Box<dyn Capacity>),
}

impl Sending {
    pub fn of(capacity: Box<dyn Capacity>) -> Self {
        match capacity.constant() {
            Some(rate) => Self::Constant(capacity::Constant::new(rate)),
            None => Self::Other(capacity),
        }
    }

    /// See [`Capacity::finish`].
    #[inline]
    pub fn finish(&mut self, start: Time, size_bytes: u32) -> Time {
        match self {
            Self::Constant(capacity) => capacity.finish(start, size_bytes),
            Self::Other(capacity) => capacity.finish(start, size_bytes),
        }
    }

    /// See [`Capacity::offered_bytes`].
    pub fn offered_bytes(&mut self, now: Time) -> f64 {
        match self {
            Self::Constant(capacity) => capacity.offered_bytes(now),
            Self::Other(capacity) => capacity.offered_bytes(now),
        }
    }
}

/// How long packets take once they are sent.
pub(super) enum Propagation {
    Constant(Span),
    Other(Box<dyn Delay>),
}

impl Propagation {
    pub fn of(delay: Box<dyn Delay>) -> Self {
        match delay.constant() {
            Some(span) => Self::Constant(span),
            None => Self::Other(delay),
        }
    }

    /// See [`Delay::delay`].
    #[inline]
    pub fn delay(&mut self, now: Time) -> Span {
        match self {
            Self::Constant(span) => *span,
            Self::Other(delay) => delay.delay(now),
        }
    }
}
