//! What the sender knows of every segment it has sent and not yet seen acknowledged.
//!
//! No operation scans the window: SACKed runs are skipped by a union-find, loss detection looks at
//! each segment once per transmission, and segments to be retransmitted wait in a heap.

mod losses;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use jostle_control::SendStamp;
use jostle_units::Time;

pub(crate) use self::losses::Verdict;
use crate::segment::Block;

/// Segments a table holds at first: as many as an initial window and a little, so that ten thousand
/// flows stay in the cache.
const INITIAL_SLOTS: usize = 16;

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// A retransmission is in flight (`TCPCB_SACKED_RETRANS` in Linux).
const RETRANSMITTED: u8 = 4;
const EVER_RETRANSMITTED: u8 = 8;

/// A segment that was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    /// State of the delivery-rate sampler at its latest transmission.
    pub stamp: SendStamp,
    /// Payload bytes.
    pub payload: u16,
    flags: u8,
    /// Meaningful once SACKed: the next segment that may not be.
    skip: u32,
}

impl Slot {
    /// Whether it was ever retransmitted, so that its RTT is ambiguous.
    #[inline]
    pub const fn ever_retransmitted(&self) -> bool {
        self.flags & EVER_RETRANSMITTED != 0
    }

    /// Whether it has been selectively acknowledged.
    #[inline]
    pub const fn is_sacked(&self) -> bool {
        self.flags & SACKED != 0
    }
}

/// Segments from `first` (`snd_una`) to `next` (`snd_nxt`).
#[derive(Debug)]
pub(crate) struct Scoreboard {
    slots: Box<[Slot]>,
    first: u32,
    next: u32,
    sacked: u32,
    lost: u32,
    retransmitted: u32,
    /// Segments marked lost since the connection began, retransmissions included.
    total_lost: u64,
    /// End of the highest SACKed segment; at least `first`.
    highest_sacked: u32,
    /// Below it, no segment is in flight in its original transmission.
    originals: u32,
    /// Retransmissions in the order of sending; stale once acknowledged or lost.
    retransmissions: VecDeque<(u32, Time)>,
    /// Segments marked lost since they were last asked for.
    newly_lost: Vec<u32>,
    /// Segments marked lost and not yet retransmitted, some of them stale.
    pending: BinaryHeap<Reverse<u32>>,
}

impl Default for Scoreboard {
    fn default() -> Self {
        Self {
            slots: vec![Slot::default(); INITIAL_SLOTS].into_boxed_slice(),
            first: 0,
            next: 0,
            sacked: 0,
            lost: 0,
            retransmitted: 0,
            total_lost: 0,
            highest_sacked: 0,
            originals: 0,
            retransmissions: VecDeque::new(),
            newly_lost: Vec::new(),
            pending: BinaryHeap::new(),
        }
    }
}

impl Scoreboard {
    /// First segment that is not cumulatively acknowledged (`snd_una`).
    #[inline]
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Next segment to be sent for the first time (`snd_nxt`).
    #[inline]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Segments that are not cumulatively acknowledged (`packets_out`).
    #[inline]
    pub fn outstanding(&self) -> u32 {
        self.next - self.first
    }

    /// Segments believed to be in the network (`tcp_packets_in_flight`).
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.outstanding() + self.retransmitted - self.sacked - self.lost
    }

    /// First and next segment, and how many are SACKed, lost and sent again: for a message.
    pub fn counts(&self) -> [u32; 5] {
        [self.first, self.next, self.sacked, self.lost, self.retransmitted]
    }

    /// Whether its counts can be those of segments: none is both SACKed and marked lost, and no more
    /// are repaired than are outstanding.
    pub fn is_consistent(&self) -> bool {
        self.first <= self.next
            && self.sacked + self.lost <= self.outstanding()
            && self.retransmitted <= self.outstanding()
    }

    /// Whether its counts are those of its segments (`tcp_verify_left_out`), so that what is in flight
    /// is what was sent and neither arrived nor is lost. Looks at every segment: not for every ACK.
    pub fn adds_up(&self) -> bool {
        let count = |flag| {
            let segments = (self.first..self.next).map(|number| self.slot(number).flags);
            segments.filter(|flags| flags & flag != 0).count() as u32
        };
        [self.sacked, self.lost, self.retransmitted]
            == [count(SACKED), count(LOST), count(RETRANSMITTED)]
            && count(SACKED | LOST) == self.sacked + self.lost
    }

    /// Segments SACKed (`sacked_out`).
    #[inline]
    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Segments marked lost (`lost_out`).
    #[inline]
    pub fn lost(&self) -> u32 {
        self.lost
    }

    /// Segments whose retransmission is in flight (`retrans_out`).
    #[inline]
    pub fn retransmitted(&self) -> u32 {
        self.retransmitted
    }

    /// Segments marked lost since the connection began.
    #[inline]
    pub fn total_lost(&self) -> u64 {
        self.total_lost
    }

    /// End of the highest SACKed segment (`tcp_highest_sack_seq`).
    #[inline]
    pub fn highest_sacked(&self) -> u32 {
        self.highest_sacked.max(self.first)
    }

    #[inline]
    fn index(&self, number: u32) -> usize {
        // The table's length is a power of two.
        number as usize & (self.slots.len() - 1)
    }

    /// The segment `number`, which must be outstanding.
    #[inline]
    pub fn slot(&self, number: u32) -> &Slot {
        debug_assert!((self.first..self.next).contains(&number));
        &self.slots[self.index(number)]
    }

    #[inline]
    fn slot_mut(&mut self, number: u32) -> &mut Slot {
        debug_assert!((self.first..self.next).contains(&number));
        let index = self.index(number);
        &mut self.slots[index]
    }

    /// Appends a segment that is sent for the first time.
    #[inline]
    pub fn push(&mut self, stamp: SendStamp, payload: u16) {
        if self.outstanding() as usize == self.slots.len() {
            self.grow();
        }
        let index = self.index(self.next);
        self.slots[index] = Slot { stamp, payload, flags: 0, skip: 0 };
        self.next += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![Slot::default(); self.slots.len() * 2].into_boxed_slice();
        let mask = slots.len() - 1;
        for number in self.first..self.next {
            slots[number as usize & mask] = *self.slot(number);
        }
        self.slots = slots;
    }

    /// A segment is sent again.
    pub fn retransmit(&mut self, number: u32, stamp: SendStamp) {
        let slot = self.slot_mut(number);
        slot.stamp = stamp;
        let newly = slot.flags & RETRANSMITTED == 0;
        slot.flags |= RETRANSMITTED | EVER_RETRANSMITTED;
        self.retransmitted += u32::from(newly);
        self.retransmissions.push_back((number, stamp.sent_at));
    }

    /// A segment is sent again as a loss probe: it stays what it was, but its RTT is ambiguous.
    pub fn probe(&mut self, number: u32, stamp: SendStamp) {
        let slot = self.slot_mut(number);
        slot.stamp = stamp;
        slot.flags |= EVER_RETRANSMITTED;
    }

    /// Everything before `end` is acknowledged. `each` sees every segment that leaves: its
    /// number and its slot.
    #[inline]
    pub fn acknowledge(&mut self, end: u32, mut each: impl FnMut(u32, &Slot)) {
        debug_assert!(end <= self.next);
        while self.first < end {
            let number = self.first;
            let slot = &self.slots[self.index(number)];
            each(number, slot);
            let flags = slot.flags;
            if flags != 0 {
                self.sacked -= u32::from(flags & SACKED != 0);
                self.lost -= u32::from(flags & LOST != 0);
                self.retransmitted -= u32::from(flags & RETRANSMITTED != 0);
            }
            self.first += 1;
        }
        self.originals = self.originals.max(self.first);
        if self.first == self.next {
            self.pending.clear();
            self.retransmissions.clear();
        }
    }

    /// The first segment at or after `number` that is not SACKed, or the end of `limit`.
    fn next_unsacked(&mut self, number: u32, limit: u32) -> u32 {
        let mut end = number;
        while end < limit && self.slot(end).is_sacked() {
            end = self.slot(end).skip;
        }
        // Path compression: later look-ups from `number` and what lies between go there directly.
        let mut at = number;
        while at < end {
            let slot = self.slot_mut(at);
            at = slot.skip;
            slot.skip = end;
        }
        end
    }

    /// The segments of `block` have arrived. `each` sees those of which it is news: the number and
    /// the slot as it was.
    pub fn sack(&mut self, block: Block, mut each: impl FnMut(u32, &Slot)) {
        let end = block.end.min(self.next);
        let mut number = self.next_unsacked(block.start.max(self.first), end);
        while number < end {
            each(number, self.slot(number));
            self.mark_sacked(number);
            number = self.next_unsacked(number + 1, end);
        }
        self.highest_sacked = self.highest_sacked.max(end);
    }

    fn mark_sacked(&mut self, number: u32) {
        let slot = self.slot_mut(number);
        let flags = slot.flags;
        slot.skip = number + 1;
        slot.flags |= SACKED;
        // Linux keeps the retransmission of a segment that was not marked lost in flight
        // ("believing that retransmission is still in flight").
        let forget_retransmission = flags & RETRANSMITTED != 0 && flags & LOST != 0;
        slot.flags &= !LOST;
        if forget_retransmission {
            slot.flags &= !RETRANSMITTED;
            self.retransmitted -= 1;
        }
        self.lost -= u32::from(flags & LOST != 0);
        self.sacked += 1;
    }

    /// A copy of a SACKed segment has arrived, too: its retransmission, if one was in flight.
    pub fn retransmission_arrived(&mut self, number: u32) {
        let slot = self.slot_mut(number);
        if slot.flags & (SACKED | RETRANSMITTED) == SACKED | RETRANSMITTED {
            slot.flags &= !RETRANSMITTED;
            self.retransmitted -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
