//! Marks of loss: how they are made, asked for and taken back.

use std::cmp::Reverse;

use jostle_units::Time;

use super::{LOST, RETRANSMITTED, SACKED, Scoreboard, Slot};

/// Segments among which the latest that waits is looked for: a bound, so that no ACK costs more
/// than that. Beyond it the timer comes early, and what waits then is left to the next ACK.
const WAITING_SEARCHED: usize = 32;

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

impl Scoreboard {
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
