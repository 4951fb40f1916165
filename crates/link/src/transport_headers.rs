//! Header fields that some queues read. Most queues use only the flow and the size of a packet.

use std::cmp::Ordering;

use jostle_units::ConnectionId;

/// Transport header of a packet.
pub trait TransportHeader {
    /// Returns whether the packet is sent from its flow's receiver to the sender.
    fn is_backward(&self) -> bool {
        false
    }

    /// Returns the TCP ACK, if the packet is one without data.
    fn pure_ack(&self) -> Option<PureAck> {
        None
    }

    /// Returns the class by which faults count packets.
    fn class(&self) -> PacketClass {
        PacketClass::Data
    }
}

/// Class of packets, by which faults count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketClass {
    /// TCP segments with data, and all packets of other protocols.
    #[default]
    Data,
    /// TCP segments without data and without SYN.
    Ack,
    /// SYN and SYN-ACK.
    Handshake,
}

/// Packets without header fields.
impl TransportHeader for () {}

/// A TCP ACK without data, with the fields that determine whether a later ACK makes it redundant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PureAck {
    /// First segment that has not arrived.
    pub number: u32,
    /// TSecr.
    pub tsecr_ms: u32,
    /// ECN feedback in the flags: ECE, or a count (RFC 9768).
    pub marks: (bool, u16),
    /// SACK blocks in segments as half-open ranges, most recent first.
    pub blocks: [(u32, u32); 3],
    /// Number of SACK blocks.
    pub block_count: u8,
}

impl PureAck {
    /// Returns the SACK blocks.
    #[inline]
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.block_count)]
    }

    /// Returns whether this ACK confirms the same as `older` and more:
    /// `sch_cake.c::cake_ack_filter` of Linux's `net/sched/sch_cake.c`, without the comparison of
    /// flags.
    pub fn supersedes(&self, older: &Self) -> bool {
        if older.tsecr_ms > self.tsecr_ms || older.number > self.number {
            return false;
        }
        match older.compare_blocks(self) {
            Ordering::Less => true,
            Ordering::Equal => older.number < self.number,
            Ordering::Greater => false,
        }
    }

    /// `sch_cake.c::cake_tcph_sack_compare`, in segments instead of bytes: compares the selectively
    /// acknowledged data. An ACK with a block that the other does not cover is greater; so is one
    /// with a duplicate (RFC 2883).
    fn compare_blocks(&self, other: &Self) -> Ordering {
        match (self.blocks(), other.blocks()) {
            ([], []) => return Ordering::Equal,
            (_, []) => return Ordering::Greater,
            ([], _) => return Ordering::Less,
            _ => {}
        }
        for (start, end) in self.blocks() {
            let covered = other.blocks().iter().any(|block| block.0 <= *start && *end <= block.1);
            if *start < self.number || !covered {
                return Ordering::Greater;
            }
        }
        let count = |ack: &Self| ack.blocks().iter().map(|(start, end)| end - start).sum::<u32>();
        if count(other) > count(self) { Ordering::Less } else { Ordering::Equal }
    }
}

/// Hosts at both ends of a flow, as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowHosts {
    /// Host that sends the data.
    pub sender: u32,
    /// Host that receives the data.
    pub receiver: u32,
}

impl FlowHosts {
    /// Returns hosts that only this connection uses.
    #[inline]
    pub const fn dedicated(connection: ConnectionId) -> Self {
        let sender = connection.0.wrapping_mul(2);
        Self { sender, receiver: sender.wrapping_add(1) }
    }
}
