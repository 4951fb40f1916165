//! What queues that look into headers see of a packet. Most look at its flow and size alone.

use std::cmp::Ordering;

/// The header that a packet's body stands for.
pub trait Headers {
    /// Whether it goes from its flow's receiver to the sender.
    fn is_backward(&self) -> bool {
        false
    }

    /// The ACK of TCP that it is, without data.
    fn pure_ack(&self) -> Option<PureAck> {
        None
    }
}

/// Packets of which nothing more is known.
impl Headers for () {}

/// An ACK of TCP without data, as far as it matters for whether a later one says the same and more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PureAck {
    /// The first segment that has not arrived.
    pub number: u32,
    /// TSecr.
    pub tsecr_ms: u32,
    /// What its flags say of marks: ECE, or a count (RFC 9768).
    pub marks: (bool, u16),
    /// Ranges of segments that arrived out of order, ends excluded, most recent first.
    pub blocks: [(u32, u32); 3],
    /// Number of them.
    pub block_count: u8,
}

impl PureAck {
    /// The ranges.
    #[inline]
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.block_count)]
    }

    /// Whether it tells all that an `older` one does, and more: `cake_ack_filter` of Linux's
    /// `net/sched/sch_cake.c`, but for flags.
    pub fn says_more_than(&self, older: &Self) -> bool {
        if older.tsecr_ms > self.tsecr_ms || older.number > self.number {
            return false;
        }
        match older.compare_blocks(self) {
            Ordering::Less => true,
            Ordering::Equal => older.number < self.number,
            Ordering::Greater => false,
        }
    }

    /// `cake_tcph_sack_compare`, of segments and not of bytes: who has selectively acknowledged more. One
    /// that has a block which the other does not cover is the greater; so is one with a duplicate
    /// (RFC 2883).
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

/// The hosts at the ends of a flow, as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// Where its data come from.
    pub sender: u32,
    /// Where they go to.
    pub receiver: u32,
}

impl Hosts {
    /// Those of a flow that shares them with no other one.
    #[inline]
    pub const fn of_its_own(flow: u32) -> Self {
        let sender = flow.wrapping_mul(2);
        Self { sender, receiver: sender.wrapping_add(1) }
    }
}
