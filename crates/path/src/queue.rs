//! Queue disciplines, one file per kind.

mod ack_thinning;
mod cake;
mod codel;
mod drop_tail;
mod drr;
mod dualpi2;
mod fifo;
mod fq_codel;
mod fq_pie;
mod occupancy_drop;
mod pfifo_gro;
mod pie;
mod policer;
mod red;
mod sfq;
mod step_mark;
mod tbf;
#[cfg(test)]
mod testing;
mod token_bucket;
mod turns;

pub use ack_thinning::AckThinning;
pub use drr::{Class, Drr, MAX_QUANTUM_BYTES, MIN_QUANTUM_BYTES};
pub use jostle_catalogue::Limit;

pub(crate) use cake::Cake;
pub(crate) use codel::Codel;
pub(crate) use drop_tail::DropTail;
pub(crate) use dualpi2::DualPi2;
pub(crate) use fq_codel::FqCodel;
pub(crate) use fq_pie::FqPie;
pub(crate) use occupancy_drop::OccupancyDrop;
pub(crate) use pfifo_gro::PfifoGro;
pub(crate) use pie::Pie;
pub(crate) use policer::Policer;
pub(crate) use red::Red;
pub(crate) use sfq::Sfq;
pub(crate) use step_mark::StepMark;
pub(crate) use tbf::Tbf;

pub(crate) use fifo::{Backlog, Fifo};

use jostle_units::Time;

use crate::headers::Hosts;
use crate::packet::{Ecn, Fate, Packet};

/// A queue in front of a link. It holds packets that wait, not the one being sent.
pub trait QueueDiscipline<B>: Send {
    /// A packet arrives. It is taken in, or its fate is told; so is that of any packet that has to
    /// leave for it. The link has set `packet.queued_at` to `now`.
    fn enqueue(&mut self, now: Time, packet: Packet<B>, fate: &mut dyn Fate<B>);

    /// The link is free: the packet to send next, after any drops that the discipline decides on.
    /// The link asks whenever it gets free, also when nothing waits; having got a packet, it asks
    /// again as soon as that packet has been sent.
    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<B>) -> Option<Packet<B>>;

    /// When to ask again after `dequeue` gave nothing although packets wait: a shaper holds them back.
    /// Later than that call; [`Time::NEVER`] if nothing waits, or nothing is held back.
    fn ready_at(&self) -> Time {
        Time::NEVER
    }

    /// The size of the packet that `dequeue` is going to give, if the discipline knows that without deciding
    /// on any packet: first in, first out. Linux calls this `peek`.
    fn head_bytes(&self) -> Option<u32> {
        None
    }

    /// The limit of a drop-tail queue that does nothing else: a link keeps such a one itself.
    fn drop_tail_limit(&self) -> Option<Limit> {
        None
    }

    /// Bytes waiting.
    fn bytes(&self) -> u64;

    /// Packets waiting.
    fn packets(&self) -> u64;

    /// Between which hosts flows are, by their numbers; before any packet, for disciplines that share
    /// between hosts. Those of a flow that is not among them are its own.
    fn know_hosts(&mut self, _hosts: &[Hosts]) {}

    /// From here on packets of `flow` come with the number of a connection as well.
    fn admit(&mut self, _connection: u32, _flow: u32) {}

    /// Time has passed until `now`: a chance to make up for updates that would otherwise all be made
    /// up for at the next packet. Decisions are the same with and without.
    fn pass(&mut self, _now: Time) {}
}

/// Marks a packet if its transport understands marks. A packet that came in marked counts as
/// marked again, as in Linux's `INET_ECN_set_ce`: its sender will slow down without a drop.
#[inline]
fn mark<B>(packet: &mut Packet<B>) -> bool {
    let capable = packet.ecn != Ecn::NotCapable;
    if capable {
        packet.ecn = Ecn::Marked;
    }
    capable
}
