//! Components of a link. The most common ones, a drop-tail queue, one rate and one delay, are
//! stored in the link itself, which saves three calls and a copy of the packet. Others are boxed.

use jostle_registry::QueueLimit;
use jostle_units::{RingBuffer, Span, Time};

use crate::delay_queue::Batch;
use crate::queue::Backlog;
use crate::{
    Capacity, Delay, DelayQueue, DropReason, Faults, Framing, Grants, LinkObserver, Packet,
    PacketOutcome, QueueDiscipline, capacity,
};

/// A packet in the pipe.
#[derive(Clone, Copy)]
pub(super) struct PacketInPipe<B> {
    pub exit: Time,
    pub packet: Packet<B>,
}

/// Faults, and habits of netem.
pub(super) struct Impairments {
    pub faults: Faults,
    pub delay_queue: Option<DelayQueue>,
    pub batch: Option<Batch>,
}

/// Capacity on demand, and the packet that has been sent in part.
pub(super) struct GrantedService<B> {
    pub grants: Grants,
    /// Packet in fragments, its bits that have not been sent, and the time at which it left the
    /// queue.
    pub unfinished: Option<(Packet<B>, u64, Time)>,
}

/// Queue of a link.
pub(super) enum InlineQueue<B> {
    /// Drop-tail queue ([`drop_tail_limit`](QueueDiscipline::drop_tail_limit)) whose backlog the
    /// link counts. Waiting packets are stored in the link's pipe, behind the packets that were
    /// sent, and are not moved when they are sent.
    InPipe(QueueLimit),
    /// Drop-tail queue with separate storage, for links in which packets can leave the pipe in
    /// another order.
    DropTail(QueueLimit, RingBuffer<Packet<B>>),
    Other(Box<dyn QueueDiscipline<B>>),
}

/// Adapter that passes a discipline's decisions to the probe and updates the link's backlog.
struct LinkAccounting<'a, P> {
    probe: &'a mut P,
    waiting: &'a mut Backlog,
}

impl<B, P: LinkObserver<B>> PacketOutcome<B> for LinkAccounting<'_, P> {
    fn dropped(&mut self, now: Time, packet: &Packet<B>, reason: DropReason) {
        self.waiting.remove(packet.size_bytes);
        self.probe.dropped(now, packet, reason);
    }

    fn marked(&mut self, now: Time, packet: &Packet<B>, reason: DropReason) {
        self.probe.marked(now, packet, reason);
    }
}

impl<B: Copy> InlineQueue<B> {
    /// Converts `queue`, which must be unused. `in_order` means that packets leave the pipe in the
    /// order in which they are sent, without exception.
    pub fn of(queue: Box<dyn QueueDiscipline<B>>, in_order: bool) -> Self {
        debug_assert_eq!(queue.backlog_packets(), 0, "a queue that was used before");
        match queue.drop_tail_limit() {
            Some(limit) if in_order => Self::InPipe(limit),
            Some(limit) => Self::DropTail(limit, RingBuffer::default()),
            None => Self::Other(queue),
        }
    }

    /// Converts a queue in the pipe to one with separate storage.
    pub fn apart(self) -> Self {
        match self {
            Self::InPipe(limit) => Self::DropTail(limit, RingBuffer::default()),
            other => other,
        }
    }

    /// Handles the arrival of a packet, and updates the backlog `waiting`.
    #[inline(always)]
    pub fn enqueue<P: LinkObserver<B>>(
        &mut self,
        now: Time,
        packet: Packet<B>,
        (waiting, pipe): (&mut Backlog, &mut RingBuffer<PacketInPipe<B>>),
        probe: &mut P,
    ) {
        // Each branch makes its own copy. A copy that is passed by address could not be kept in
        // registers.
        let queued = || Packet { queued_at: now, ..packet };
        match self {
            Self::InPipe(limit) => {
                if waiting.fits(packet.size_bytes, *limit) {
                    waiting.add(packet.size_bytes);
                    pipe.push_back(PacketInPipe { exit: Time::NEVER, packet: queued() });
                } else {
                    probe.dropped(now, &queued(), DropReason::Overflow);
                }
            }
            Self::DropTail(limit, packets) => {
                if waiting.fits(packet.size_bytes, *limit) {
                    waiting.add(packet.size_bytes);
                    packets.push_back(queued());
                } else {
                    probe.dropped(now, &queued(), DropReason::Overflow);
                }
            }
            Self::Other(queue) => {
                waiting.add(packet.size_bytes);
                queue.enqueue(now, queued(), &mut LinkAccounting { probe, waiting });
            }
        }
    }

    /// Returns the next packet to send, from a queue with separate storage. `waiting` still
    /// includes it.
    #[inline]
    pub fn dequeue<P: LinkObserver<B>>(
        &mut self,
        now: Time,
        waiting: &mut Backlog,
        probe: &mut P,
    ) -> Option<Packet<B>> {
        match self {
            Self::InPipe(_) => None,
            Self::DropTail(_, packets) => packets.pop_front(),
            Self::Other(queue) => queue.dequeue(now, &mut LinkAccounting { probe, waiting }),
        }
    }

    /// See [`QueueDiscipline::next_dequeue_time`].
    pub fn ready_at(&self) -> Time {
        match self {
            Self::InPipe(_) | Self::DropTail(..) => Time::NEVER,
            Self::Other(queue) => queue.next_dequeue_time(),
        }
    }

    /// Returns whether the discipline's backlog equals the link's.
    pub fn agrees(&self, waiting: &Backlog) -> bool {
        match self {
            Self::InPipe(_) => true,
            Self::DropTail(_, packets) => packets.len() as u64 == waiting.packets,
            Self::Other(queue) => {
                (queue.backlog_bytes(), queue.backlog_packets()) == (waiting.bytes, waiting.packets)
            }
        }
    }

    /// Returns the discipline, unless it is a drop-tail queue that is stored in the link.
    pub fn boxed_discipline(&mut self) -> Option<&mut dyn QueueDiscipline<B>> {
        match self {
            Self::InPipe(_) | Self::DropTail(..) => None,
            Self::Other(queue) => Some(queue.as_mut()),
        }
    }
}

/// Capacity of a link.
pub(super) enum Transmission {
    Constant(capacity::Constant),
    Other(Box<dyn Capacity>),
    /// Any capacity, for packets that are larger on the wire.
    Framed(Box<dyn Capacity>, Framing),
}

impl Transmission {
    pub fn of(capacity: Box<dyn Capacity>) -> Self {
        match capacity.constant() {
            Some(rate) => Self::Constant(capacity::Constant::new(rate)),
            None => Self::Other(capacity),
        }
    }

    /// Adds the framing of the wire.
    pub fn framed(self, framing: Framing) -> Self {
        match self {
            Self::Constant(capacity) => Self::Framed(Box::new(capacity), framing),
            Self::Other(capacity) | Self::Framed(capacity, _) => Self::Framed(capacity, framing),
        }
    }

    /// See [`Capacity::finish`].
    #[inline]
    pub fn finish(&mut self, start: Time, size_bytes: u32) -> Time {
        match self {
            Self::Constant(capacity) => capacity.finish(start, size_bytes),
            Self::Other(capacity) => capacity.finish(start, size_bytes),
            Self::Framed(capacity, framing) => {
                capacity.finish(start, framing.wire_bytes(size_bytes))
            }
        }
    }

    /// See [`Capacity::offered_bytes`].
    pub fn offered_bytes(&mut self, now: Time) -> f64 {
        match self {
            Self::Constant(capacity) => capacity.offered_bytes(now),
            Self::Other(capacity) | Self::Framed(capacity, _) => capacity.offered_bytes(now),
        }
    }
}

/// Delay of a link.
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
