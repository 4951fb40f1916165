//! Queue disciplines, one file per kind.

mod ack_thinning;
mod cake;
mod classes;
mod codel;
mod drop_tail;
mod drr;
mod dualpi2;
mod fifo;
mod flow_queue_scheduler;
mod fq_codel;
mod fq_pie;
mod occupancy_drop;
mod pfifo_gro;
mod pie;
mod policer;
mod prio;
mod red;
mod sfq;
mod step_mark;
mod tbf;
#[cfg(test)]
mod test_support;
mod token_bucket;

pub use ack_thinning::AckThinning;
pub use classes::{CODEPOINTS, Class, ClassMap};
pub use drr::{Drr, MAX_QUANTUM_BYTES, MIN_QUANTUM_BYTES};
pub use jostle_registry::QueueLimit;

pub use cake::CAKE_MEMORY_MAX_BYTES;
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
pub use prio::{MOST_BANDS, Prio};
pub(crate) use red::Red;
pub(crate) use sfq::Sfq;
pub(crate) use step_mark::StepMark;
pub(crate) use tbf::Tbf;

pub(crate) use fifo::{Backlog, Fifo};

use jostle_units::{ConnectionId, FlowId, Time};

use crate::packet::{Ecn, Packet, PacketOutcome};
use crate::service_rate::Shaper;
use crate::transport_headers::FlowHosts;

/// A queue in front of a link. It contains the waiting packets, without the one in transmission.
pub trait QueueDiscipline<B>: Send {
    /// Handles an arriving packet. The discipline accepts it, or reports it and all packets dropped
    /// in its place to `outcome`. The link has set `packet.queued_at` to `now`.
    fn enqueue(&mut self, now: Time, packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>);

    /// Returns the next packet to send, after the drops that the discipline decides on. The link
    /// calls this whenever it becomes idle, even if no packet waits. After it got a packet, it
    /// calls again when that packet has been sent.
    fn dequeue(&mut self, now: Time, outcome: &mut dyn PacketOutcome<B>) -> Option<Packet<B>>;

    /// Returns the time for the next call of `dequeue`, if it returned `None` although packets
    /// wait, because a shaper delays them. Later than that call; [`Time::NEVER`] if nothing waits
    /// or nothing is delayed.
    fn next_dequeue_time(&self) -> Time {
        Time::NEVER
    }

    /// Returns the size of the next packet, if the discipline knows it without a decision, as a
    /// FIFO does. Linux calls this `peek`.
    fn head_bytes(&self) -> Option<u32> {
        None
    }

    /// Returns the limit if the discipline is a plain drop-tail queue. A link implements such a
    /// queue itself.
    fn drop_tail_limit(&self) -> Option<QueueLimit> {
        None
    }

    /// Returns the shapers and policers of the discipline, or of its classes if it has any. Empty if packets can leave at the rate of the link.
    fn shapers(&self) -> Vec<Shaper> {
        Vec::new()
    }

    /// Returns the bytes in the queue.
    fn backlog_bytes(&self) -> u64;

    /// Returns the packets in the queue.
    fn backlog_packets(&self) -> u64;

    /// Sets the hosts of each flow, by flow number, for disciplines with host isolation. Called
    /// before the first packet. A flow that is not in the list has dedicated hosts.
    fn set_flow_hosts(&mut self, _hosts: &[FlowHosts]) {}

    /// Registers that packets of `flow` can also have the number of a connection. `is_opposite`: the
    /// receiver of the flow is the sender of the connection.
    fn register_connection(
        &mut self,
        _connection: ConnectionId,
        _flow: FlowId,
        _is_opposite: bool,
    ) {
    }

    /// Advances the state to `now`. This allows the discipline to make periodic updates early,
    /// instead of all at once at the next packet. Decisions do not change.
    fn advance_to(&mut self, _now: Time) {}
}

/// Marks a packet if it is ECN-capable, and returns whether it is. A packet that arrived with a CE
/// mark counts as marked again, as in Linux's `inet_ecn.h::INET_ECN_set_ce`: its sender will reduce
/// its rate without a drop.
#[inline]
fn mark<B>(packet: &mut Packet<B>) -> bool {
    let capable = packet.ecn != Ecn::NotCapable;
    if capable {
        packet.ecn = Ecn::Marked;
    }
    capable
}
