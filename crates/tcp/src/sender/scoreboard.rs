//! The scoreboard: the state of all outstanding segments.
//!
//! No operation scans the window. A union-find skips runs of SACKed segments, loss detection
//! examines each segment once per transmission, and a heap contains the segments to retransmit.

mod lost_segments;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use jostle_congestion::PacketDeliveryState;
use jostle_units::Time;

pub(crate) use self::lost_segments::LossDecision;
use crate::segment::SackBlock;

/// Initial number of slots: an initial window and a little more, so that the state of ten thousand
/// flows fits into the cache.
const INITIAL_SLOTS: usize = 16;

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// The retransmission of the segment is in flight (`TCPCB_SACKED_RETRANS` in Linux).
const RETRANSMITTED: u8 = 4;
const EVER_RETRANSMITTED: u8 = 8;
/// RACK has marked the latest transmission lost. Linux removes it from `tsorted_sent_queue`, and an
/// undo does not insert it again: only a timeout or a loss probe finds it if it is lost.
const DECIDED: u8 = 16;

/// A sent segment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SentSegment {
    /// State of the delivery-rate sampler at the latest transmission.
    pub stamp: PacketDeliveryState,
    /// Payload bytes.
    pub payload: u16,
    flags: u8,
    /// Valid for SACKed segments: the next segment that may not be SACKed.
    skip: u32,
}

impl SentSegment {
    /// Returns whether the segment was ever retransmitted, so that its RTT is ambiguous.
    #[inline]
    pub const fn ever_retransmitted(&self) -> bool {
        self.flags & EVER_RETRANSMITTED != 0
    }

    /// Returns whether the segment is selectively acknowledged.
    #[inline]
    pub const fn is_sacked(&self) -> bool {
        self.flags & SACKED != 0
    }
}

/// Segments from `first` (`snd_una`) to `next` (`snd_nxt`).
#[derive(Debug)]
pub(crate) struct Scoreboard {
    slots: Box<[SentSegment]>,
    first: u32,
    next: u32,
    sacked: u32,
    lost: u32,
    retransmitted: u32,
    /// Segments marked lost since the connection began, retransmissions included.
    total_lost: u64,
    /// End of the highest SACKed segment; at least `first`.
    highest_sacked: u32,
    /// No segment below this number is in flight in its original transmission.
    originals: u32,
    /// Retransmissions in order of transmission. Entries are stale once acknowledged or lost.
    retransmissions: VecDeque<(u32, Time)>,
    /// Segments marked lost since the last query.
    newly_lost: Vec<u32>,
    /// Segments marked lost and not yet retransmitted, including stale entries.
    pending: BinaryHeap<Reverse<u32>>,
}

impl Default for Scoreboard {
    fn default() -> Self {
        Self {
            slots: vec![SentSegment::default(); INITIAL_SLOTS].into_boxed_slice(),
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
    /// Returns the first segment that is not cumulatively acknowledged (`snd_una`).
    #[inline]
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Returns the next segment to be sent for the first time (`snd_nxt`).
    #[inline]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Returns the number of segments that are not cumulatively acknowledged (`packets_out`).
    #[inline]
    pub fn outstanding(&self) -> u32 {
        self.next - self.first
    }

    /// Returns the estimated number of segments in the network (`tcp.h::tcp_packets_in_flight`).
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.outstanding() + self.retransmitted - self.sacked - self.lost
    }

    /// Returns the first and the next segment, and the numbers of SACKed, lost and retransmitted
    /// segments, for error messages.
    pub fn counts(&self) -> [u32; 5] {
        [self.first, self.next, self.sacked, self.lost, self.retransmitted]
    }

    /// Returns whether the counts are possible: no segment is both SACKed and lost, and no more
    /// segments are retransmitted than are outstanding.
    pub fn is_consistent(&self) -> bool {
        self.first <= self.next
            && self.sacked + self.lost <= self.outstanding()
            && self.retransmitted <= self.outstanding()
    }

    /// Returns whether the counts match the segments (`tcp_verify_left_out`), so that the segments
    /// in flight are those that were sent and neither arrived nor are lost. Scans all segments, so
    /// do not call it for every ACK.
    pub fn adds_up(&self) -> bool {
        let count = |flag| {
            let segments = (self.first..self.next).map(|number| self.slot(number).flags);
            segments.filter(|flags| flags & flag != 0).count() as u32
        };
        [self.sacked, self.lost, self.retransmitted]
            == [count(SACKED), count(LOST), count(RETRANSMITTED)]
            && count(SACKED | LOST) == self.sacked + self.lost
    }

    /// Returns the number of SACKed segments (`sacked_out`).
    #[inline]
    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Returns the number of segments marked lost (`lost_out`).
    #[inline]
    pub fn lost(&self) -> u32 {
        self.lost
    }

    /// Returns the number of segments whose retransmission is in flight (`retrans_out`).
    #[inline]
    pub fn retransmitted(&self) -> u32 {
        self.retransmitted
    }

    /// Returns the number of segments marked lost since the connection began.
    #[inline]
    pub fn total_lost(&self) -> u64 {
        self.total_lost
    }

    /// Returns the end of the highest SACKed segment (`tcp.h::tcp_highest_sack_seq`).
    #[inline]
    pub fn highest_sacked(&self) -> u32 {
        self.highest_sacked.max(self.first)
    }

    #[inline]
    fn index(&self, number: u32) -> usize {
        // The table's length is a power of two.
        number as usize & (self.slots.len() - 1)
    }

    /// Returns segment `number`, which must be outstanding.
    #[inline]
    pub fn slot(&self, number: u32) -> &SentSegment {
        debug_assert!((self.first..self.next).contains(&number));
        &self.slots[self.index(number)]
    }

    #[inline]
    fn slot_mut(&mut self, number: u32) -> &mut SentSegment {
        debug_assert!((self.first..self.next).contains(&number));
        let index = self.index(number);
        &mut self.slots[index]
    }

    /// Appends a segment that is sent for the first time.
    #[inline]
    pub fn push(&mut self, stamp: PacketDeliveryState, payload: u16) {
        if self.outstanding() as usize == self.slots.len() {
            self.grow();
        }
        let index = self.index(self.next);
        self.slots[index] = SentSegment { stamp, payload, flags: 0, skip: 0 };
        self.next += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![SentSegment::default(); self.slots.len() * 2].into_boxed_slice();
        let mask = slots.len() - 1;
        for number in self.first..self.next {
            slots[number as usize & mask] = *self.slot(number);
        }
        self.slots = slots;
    }

    /// Records a retransmission.
    pub fn retransmit(&mut self, number: u32, stamp: PacketDeliveryState) {
        let slot = self.slot_mut(number);
        slot.stamp = stamp;
        let newly = slot.flags & RETRANSMITTED == 0;
        slot.flags = (slot.flags | RETRANSMITTED | EVER_RETRANSMITTED) & !DECIDED;
        self.retransmitted += u32::from(newly);
        self.retransmissions.push_back((number, stamp.sent_at));
    }

    /// Records the retransmission of a segment as a loss probe. Its state does not change, but its
    /// RTT becomes ambiguous.
    pub fn probe(&mut self, number: u32, stamp: PacketDeliveryState) {
        let slot = self.slot_mut(number);
        slot.stamp = stamp;
        slot.flags |= EVER_RETRANSMITTED;
    }

    /// Removes all segments before `end`. Calls `each` with the number and the slot of each removed
    /// segment.
    #[inline]
    pub fn acknowledge(&mut self, end: u32, mut each: impl FnMut(u32, &SentSegment)) {
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

    /// Returns the first segment from `number` on that is not SACKed, or a number not below
    /// `limit`.
    fn next_unsacked(&mut self, number: u32, limit: u32) -> u32 {
        let mut end = number;
        while end < limit && self.slot(end).is_sacked() {
            end = self.slot(end).skip;
        }
        // Path compression: later look-ups from `number` and the following segments skip to `end`.
        let mut at = number;
        while at < end {
            let slot = self.slot_mut(at);
            at = slot.skip;
            slot.skip = end;
        }
        end
    }

    /// Marks the segments of `block` as SACKed. Calls `each` for each newly SACKed segment, with
    /// its number and its slot before the change.
    pub fn sack(&mut self, block: SackBlock, mut each: impl FnMut(u32, &SentSegment)) {
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

    /// Records the arrival of another copy of a SACKed segment: its retransmission, if one was in
    /// flight.
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
