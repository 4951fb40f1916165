//! What travels on links.

pub use jostle_units::Ecn;
use jostle_units::Time;

/// A packet: what a link needs to know, and a small transport header `B` without payload.
#[derive(Clone, Copy, Debug)]
pub struct Packet<B> {
    /// Flow that the packet belongs to; queues tell flows apart by it.
    pub flow: u32,
    /// Size on the wire, link header included.
    pub size_bytes: u32,
    /// When the packet entered the queue it is in; set by the link.
    pub queued_at: Time,
    /// ECN field.
    pub ecn: Ecn,
    /// Position on the packet's way; the network's own use.
    pub hop: u8,
    /// Transport header.
    pub body: B,
}

/// Why a packet was dropped or marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Reason {
    /// It did not fit into the queue.
    Overflow,
    /// Occupancy drop: the queue was above its threshold.
    Occupancy,
    /// RED: the average queue was above its lower threshold.
    Red,
    /// CoDel: the standing delay was above its target.
    Codel,
    /// CAKE: COBALT decided on it.
    Cobalt,
    /// PIE: the drop probability hit it.
    Pie,
    /// A step: it waited for longer than the threshold.
    Step,
    /// DualPI2: the probability of its controller hit it.
    Pi2,
    /// A policer had no tokens for it.
    Policer,
    /// Random loss after sending.
    Loss,
    /// An outage of the link.
    Outage,
    /// An ACK filter: a later ACK says the same and more.
    AckFilter,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::Overflow,
        Self::Occupancy,
        Self::Red,
        Self::Codel,
        Self::Cobalt,
        Self::Pie,
        Self::Step,
        Self::Pi2,
        Self::Policer,
        Self::Loss,
        Self::Outage,
        Self::AckFilter,
    ];

    /// Name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::Occupancy => "occupancy",
            Self::Red => "red",
            Self::Codel => "codel",
            Self::Cobalt => "cobalt",
            Self::Pie => "pie",
            Self::Step => "step",
            Self::Pi2 => "pi2",
            Self::Policer => "policer",
            Self::Loss => "loss",
            Self::Outage => "outage",
            Self::AckFilter => "ack_filter",
        }
    }
}

/// What happens to packets in a queue beside coming and going. Called rarely, so dynamically.
pub trait Fate<B> {
    /// The packet is gone.
    fn dropped(&mut self, now: Time, packet: &Packet<B>, reason: Reason);
    /// The packet carries a congestion-experienced mark from here on.
    fn marked(&mut self, now: Time, packet: &Packet<B>, reason: Reason);
}
