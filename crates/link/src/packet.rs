//! Packets on links.

pub use jostle_units::Ecn;
use jostle_units::{ConnectionId, Time};

/// A packet: the fields that a link uses, and a small transport header `B` without payload.
#[derive(Clone, Copy, Debug)]
pub struct Packet<B> {
    /// Connection of the packet, by which queues distinguish flows.
    pub connection: ConnectionId,
    /// Size on the wire, including the link header.
    pub size_bytes: u32,
    /// Time at which the packet entered its current queue; set by the link.
    pub queued_at: Time,
    /// ECN field.
    pub ecn: Ecn,
    /// Index of the current link in the packet's path; used by the network only.
    pub hop: u8,
    /// Whether a link has corrupted the packet. Its receiver drops it.
    pub is_corrupted: bool,
    /// Differentiated services codepoint: six bits of the IP header, next to the ECN field.
    pub dscp: u8,
    /// Transport header.
    pub transport: B,
}

/// Reason for which a packet was dropped or marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// The queue was full.
    Overflow,
    /// Occupancy drop: the queue length exceeded the threshold.
    Occupancy,
    /// RED: the average queue length exceeded the lower threshold.
    Red,
    /// CoDel: the queueing delay exceeded the target.
    Codel,
    /// CAKE: decision of COBALT.
    Cobalt,
    /// PIE: decision by the drop probability.
    Pie,
    /// Step marking: the queueing delay exceeded the threshold.
    Step,
    /// DualPI2: decision by the probability of the controller.
    Pi2,
    /// A policer had not enough tokens.
    Policer,
    /// Random loss after the transmission.
    Loss,
    /// Outage of the link.
    Outage,
    /// ACK filter: a later ACK confirms the same data and more.
    AckFilter,
    /// A link has corrupted the packet: the checksum at its receiver is wrong.
    Corruption,
    /// Netem's delay held as many packets as its limit allows.
    DelayQueue,
    /// The packet's number is in the list of packets to mark.
    Fault,
}

impl DropReason {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 15] = [
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
        Self::Corruption,
        Self::DelayQueue,
        Self::Fault,
    ];

    /// Returns whether it applies after the transmission, and not in the queue.
    #[inline]
    pub const fn is_after_queue(self) -> bool {
        matches!(
            self,
            Self::Loss | Self::Outage | Self::Corruption | Self::DelayQueue | Self::Fault
        )
    }

    /// Returns the name in results.
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
            Self::Corruption => "corruption",
            Self::DelayQueue => "delay_queue",
            Self::Fault => "fault",
        }
    }
}

/// Receiver of a queue's decisions on packets. Called rarely, therefore through dynamic dispatch.
pub trait PacketOutcome<B> {
    /// The packet was dropped.
    fn dropped(&mut self, now: Time, packet: &Packet<B>, reason: DropReason);
    /// The packet was marked with CE.
    fn marked(&mut self, now: Time, packet: &Packet<B>, reason: DropReason);
}
