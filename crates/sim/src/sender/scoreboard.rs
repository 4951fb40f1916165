//! What the sender knows of every segment it has sent and not yet seen acknowledged.
//!
//! No operation scans the window: SACKed runs are skipped by a union-find, loss detection looks at
//! each segment once per transmission, and segments to be retransmitted wait in a heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use jostle_control::SendStamp;
use jostle_units::Time;

use crate::segment::Block;

/// Segments a table holds at first: as many as an initial window and a little, so that ten thousand
/// flows stay in the cache.
const INITIAL_SLOTS: usize = 16;

/// Segments among which the latest that waits is looked for: a bound, so that no ACK costs more
/// than that. Beyond it the timer comes early, and what waits then is left to the next ACK.
const WAITING_SEARCHED: usize = 32;

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

    /// Marks a segment lost, in whichever transmission is in flight; nothing if it is SACKed or
    /// already waits for retransmission.
    pub fn mark_lost(&mut self, number: u32) {
        let slot = self.slot_mut(number);
        let flags = slot.flags;
        if flags & SACKED != 0 || flags & (LOST | RETRANSMITTED) == LOST {
            return;
        }
        slot.flags = (flags | LOST) & !RETRANSMITTED;
        if flags & LOST == 0 {
            self.lost += 1;
        }
        if flags & RETRANSMITTED != 0 {
            self.retransmitted -= 1;
        }
        self.total_lost += 1;
        self.newly_lost.push(number);
        self.pending.push(Reverse(number));
    }

    /// Segments marked lost since the last call, in the order in which they were. To be given back
    /// empty, so that its memory is used again.
    #[inline]
    pub fn take_newly_lost(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.newly_lost)
    }

    #[inline]
    pub fn return_newly_lost(&mut self, emptied: Vec<u32>) {
        self.newly_lost = emptied;
    }

    /// The lowest segment that is marked lost and not yet retransmitted.
    pub fn next_lost(&mut self) -> Option<u32> {
        while let Some(&Reverse(number)) = self.pending.peek() {
            if number >= self.first && self.slot(number).flags & (LOST | RETRANSMITTED) == LOST {
                return Some(number);
            }
            self.pending.pop();
        }
        None
    }

    /// Takes back every mark of loss (the undo of a spurious recovery).
    pub fn unmark_lost(&mut self) {
        for number in self.first..self.next {
            self.slot_mut(number).flags &= !LOST;
        }
        self.lost = 0;
        self.pending.clear();
        // Originals whose mark was taken back are in flight again.
        self.originals = self.first;
    }

    /// RACK (RFC 8985 §6.2 step 5, `tcp_rack_detect_loss` in Linux): offers the segments in
    /// flight in the order they were sent, originals and retransmissions each for themselves,
    /// until `is_lost` says no. Those it says yes to are marked lost. Returns when the latest of
    /// those was sent that are not yet late enough, if there are any.
    pub fn detect_lost(&mut self, mut is_lost: impl FnMut(u32, &Slot) -> Verdict) -> Option<Time> {
        let mut waiting = None;
        while self.originals < self.next {
            let number = self.originals;
            let slot = self.slot(number);
            if slot.flags & SACKED != 0 {
                self.originals = self.next_unsacked(number, self.next);
                continue;
            }
            if slot.flags & (LOST | RETRANSMITTED) == 0 {
                match is_lost(number, slot) {
                    Verdict::Lost => self.mark_lost(number),
                    Verdict::Wait => {
                        waiting = Some(self.latest_waiting_original(&mut is_lost));
                        break;
                    }
                    Verdict::Later => break,
                }
            }
            self.originals += 1;
        }
        while let Some(&entry) = self.retransmissions.front() {
            if self.is_current(entry) {
                match is_lost(entry.0, self.slot(entry.0)) {
                    Verdict::Lost => self.mark_lost(entry.0),
                    Verdict::Wait => {
                        waiting = waiting.max(Some(self.latest_waiting_repair(&mut is_lost)));
                        break;
                    }
                    Verdict::Later => break,
                }
            }
            self.retransmissions.pop_front();
        }
        waiting
    }

    /// Whether that retransmission is in flight.
    fn is_current(&self, (number, sent_at): (u32, Time)) -> bool {
        number >= self.first && {
            let slot = self.slot(number);
            slot.flags & (RETRANSMITTED | SACKED) == RETRANSMITTED && slot.stamp.sent_at == sent_at
        }
    }

    /// When the last of the originals was sent that wait as the one at `originals` does.
    fn latest_waiting_original(&mut self, is_lost: &mut impl FnMut(u32, &Slot) -> Verdict) -> Time {
        let mut number = self.originals;
        let mut latest = self.slot(number).stamp.sent_at;
        for _ in 0..WAITING_SEARCHED {
            number = self.next_unsacked(number + 1, self.next);
            if number >= self.next {
                break;
            }
            let slot = self.slot(number);
            if slot.flags & (LOST | RETRANSMITTED) != 0 {
                continue;
            }
            if is_lost(number, slot) == Verdict::Later {
                break;
            }
            latest = slot.stamp.sent_at;
        }
        latest
    }

    /// When the last of the retransmissions was sent that wait as the first one does.
    fn latest_waiting_repair(&self, is_lost: &mut impl FnMut(u32, &Slot) -> Verdict) -> Time {
        let entries = self.retransmissions.iter().take(WAITING_SEARCHED);
        entries
            .filter(|entry| self.is_current(**entry))
            .take_while(|entry| is_lost(entry.0, self.slot(entry.0)) != Verdict::Later)
            .last()
            .map_or(Time::ZERO, |entry| entry.1)
    }

    /// Marks lost what `late` says of every outstanding segment (after a timeout).
    pub fn mark_lost_where(&mut self, mut late: impl FnMut(u32, &Slot) -> bool) {
        for number in self.first..self.next {
            if late(number, self.slot(number)) {
                self.mark_lost(number);
            }
        }
    }
}

/// What loss detection says of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is lost.
    Lost,
    /// It may be reordered: look again when the reordering window has passed.
    Wait,
    /// It was sent later than what was delivered: nothing can be said.
    Later,
}

#[cfg(test)]
mod tests;
