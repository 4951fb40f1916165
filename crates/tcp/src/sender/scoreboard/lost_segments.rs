//! Loss marks: setting, querying and removing them.

use std::cmp::Reverse;

use jostle_units::Time;

use super::{DECIDED, LOST, RETRANSMITTED, SACKED, Scoreboard, SentSegment};

/// Maximum number of segments examined to find the latest waiting segment, which bounds the cost
/// per ACK. If more segments wait, the timer expires early and the next ACK examines the others.
const WAITING_SEARCHED: usize = 32;

/// Result of loss detection for a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossDecision {
    /// The segment is lost.
    Lost,
    /// The segment may be reordered: check again after the reordering window.
    Wait,
    /// The segment was sent after the delivered one, so no decision is possible.
    Later,
}

impl Scoreboard {
    /// Marks the current transmission of a segment lost. Does nothing if the segment is SACKed or
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

    /// Returns the segments marked lost since the last call, in the order of marking. The caller
    /// returns the emptied vector with [`return_newly_lost`](Self::return_newly_lost), so that its
    /// memory is reused.
    #[inline]
    pub fn take_newly_lost(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.newly_lost)
    }

    #[inline]
    pub fn return_newly_lost(&mut self, emptied: Vec<u32>) {
        self.newly_lost = emptied;
    }

    /// Returns the lowest segment that is marked lost and not yet retransmitted.
    pub fn next_lost(&mut self) -> Option<u32> {
        while let Some(&Reverse(number)) = self.pending.peek() {
            if number >= self.first && self.slot(number).flags & (LOST | RETRANSMITTED) == LOST {
                return Some(number);
            }
            self.pending.pop();
        }
        None
    }

    /// Removes all loss marks (undo of a spurious recovery).
    pub fn unmark_lost(&mut self) {
        for number in self.first..self.next {
            self.slot_mut(number).flags &= !LOST;
        }
        self.lost = 0;
        self.pending.clear();
        // Originals that a timeout marked are examined again.
        self.originals = self.first;
    }

    /// RACK (RFC 8985 §6.2 step 5, `tcp_recovery.c::tcp_rack_detect_loss` in Linux): calls
    /// `is_lost` for the segments in flight in order of transmission, separately for originals and
    /// retransmissions, until it returns [`LossDecision::Wait`] or [`LossDecision::Later`]. Marks
    /// the segments lost for which it returns [`LossDecision::Lost`]. Returns the send time of the
    /// latest segment that waits, if any.
    pub fn detect_lost(
        &mut self,
        mut is_lost: impl FnMut(u32, &SentSegment) -> LossDecision,
    ) -> Option<Time> {
        let mut waiting = None;
        while self.originals < self.next {
            let number = self.originals;
            let slot = self.slot(number);
            if slot.flags & SACKED != 0 {
                self.originals = self.next_unsacked(number, self.next);
                continue;
            }
            if slot.flags & (LOST | RETRANSMITTED | DECIDED) == 0 {
                match is_lost(number, slot) {
                    LossDecision::Lost => self.decide_lost(number),
                    LossDecision::Wait => {
                        waiting = Some(self.latest_waiting_original(&mut is_lost));
                        break;
                    }
                    LossDecision::Later => break,
                }
            }
            self.originals += 1;
        }
        while let Some(&entry) = self.retransmissions.front() {
            if self.is_current(entry) {
                match is_lost(entry.0, self.slot(entry.0)) {
                    LossDecision::Lost => self.decide_lost(entry.0),
                    LossDecision::Wait => {
                        waiting = waiting.max(Some(self.latest_waiting_repair(&mut is_lost)));
                        break;
                    }
                    LossDecision::Later => break,
                }
            }
            self.retransmissions.pop_front();
        }
        waiting
    }

    /// Marks a transmission lost that RACK considers lost (`tcp_recovery.c::tcp_rack_detect_loss`).
    fn decide_lost(&mut self, number: u32) {
        self.mark_lost(number);
        self.slot_mut(number).flags |= DECIDED;
    }

    /// Returns whether this retransmission is in flight.
    fn is_current(&self, (number, sent_at): (u32, Time)) -> bool {
        number >= self.first && {
            let slot = self.slot(number);
            slot.flags & (RETRANSMITTED | SACKED) == RETRANSMITTED && slot.stamp.sent_at == sent_at
        }
    }

    /// Returns the send time of the last original that waits like the one at `originals`.
    fn latest_waiting_original(
        &mut self,
        is_lost: &mut impl FnMut(u32, &SentSegment) -> LossDecision,
    ) -> Time {
        let mut number = self.originals;
        let mut latest = self.slot(number).stamp.sent_at;
        for _ in 0..WAITING_SEARCHED {
            number = self.next_unsacked(number + 1, self.next);
            if number >= self.next {
                break;
            }
            let slot = self.slot(number);
            if slot.flags & (LOST | RETRANSMITTED | DECIDED) != 0 {
                continue;
            }
            if is_lost(number, slot) == LossDecision::Later {
                break;
            }
            latest = slot.stamp.sent_at;
        }
        latest
    }

    /// Returns the send time of the last retransmission that waits like the first one.
    fn latest_waiting_repair(
        &self,
        is_lost: &mut impl FnMut(u32, &SentSegment) -> LossDecision,
    ) -> Time {
        let entries = self.retransmissions.iter().take(WAITING_SEARCHED);
        entries
            .filter(|entry| self.is_current(**entry))
            .take_while(|entry| is_lost(entry.0, self.slot(entry.0)) != LossDecision::Later)
            .last()
            .map_or(Time::ZERO, |entry| entry.1)
    }

    /// Marks each outstanding segment lost for which `late` returns true (after a timeout).
    pub fn mark_lost_where(&mut self, mut late: impl FnMut(u32, &SentSegment) -> bool) {
        for number in self.first..self.next {
            if late(number, self.slot(number)) {
                self.mark_lost(number);
            }
        }
    }
}
