//! Undo of spurious reductions, proven by D-SACKs or timestamps (RFC 2883, RFC 3522).

/// State that detects spurious retransmissions of an episode.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UndoState {
    /// Whether the current reduction may be undone (`prior_ssthresh` in Linux is not zero).
    pub reversible: bool,
    /// `undo_marker`: `snd_una` when the reduction that may be undone began.
    marker: Option<u32>,
    /// `undo_retrans`: retransmissions not yet reported as duplicates; −1: none sent yet.
    unreported: i32,
    /// `retrans_stamp`: timestamp of the first retransmission of the episode, 0 for none.
    stamp_ms: u32,
}

impl UndoState {
    /// Starts an episode at `first`, with `out` retransmissions in flight
    /// (`tcp_input.c::tcp_init_undo`).
    pub const fn begin(&mut self, first: u32, out: i32) {
        self.marker = Some(first);
        // 0 would mean "all retransmissions were reported as duplicates".
        self.unreported = if out == 0 { -1 } else { out };
    }

    /// Ends the episode without undo.
    pub const fn forget(&mut self) {
        self.marker = None;
    }

    /// Returns whether an episode is in progress that may prove to be spurious.
    #[inline]
    pub const fn is_watching(&self) -> bool {
        self.marker.is_some()
    }

    /// Returns whether the episode, if any, began before segment `next`.
    pub fn began_before(&self, next: u32) -> bool {
        self.marker.is_none_or(|marker| marker <= next)
    }

    /// Records a retransmission at `now_ms`.
    pub fn note_retransmission(&mut self, now_ms: u32) {
        if self.stamp_ms == 0 {
            self.stamp_ms = now_ms;
        }
        self.unreported = self.unreported.max(0) + 1;
    }

    /// Clears the timestamp when no retransmission is in flight.
    pub const fn forget_stamp(&mut self) {
        self.stamp_ms = 0;
    }

    /// Records that a segment that ends at `end` was reported as a duplicate
    /// (`tcp_input.c::tcp_check_dsack`).
    pub fn note_duplicate(&mut self, end: u32, retransmitted: bool) {
        let of_this_episode = self.marker.is_some_and(|marker| end > marker);
        if of_this_episode && retransmitted && self.unreported > 0 {
            self.unreported -= 1;
        }
    }

    /// Returns whether an ACK confirms data that arrived before the first retransmission
    /// (`tcp_input.c::tcp_packet_delayed`).
    pub const fn was_only_delayed(&self, echo_ms: u32) -> bool {
        self.stamp_ms == 0 || (echo_ms != 0 && echo_ms < self.stamp_ms)
    }

    /// Returns whether each retransmission was reported as a duplicate.
    pub const fn all_were_duplicates(&self) -> bool {
        self.is_watching() && self.unreported == 0
    }

    /// Returns whether the reduction must be undone (`tcp_input.c::tcp_may_undo`).
    pub const fn is_due(&self, echo_ms: u32) -> bool {
        self.is_watching() && (self.unreported == 0 || self.was_only_delayed(echo_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_of_every_retransmission_prove_it() {
        let mut undo = UndoState::default();
        undo.begin(100, 0);
        undo.note_retransmission(7);
        undo.note_retransmission(9);
        undo.note_duplicate(101, true);
        assert!(!undo.all_were_duplicates());
        undo.note_duplicate(100, true);
        assert!(!undo.all_were_duplicates(), "from before the episode");
        undo.note_duplicate(103, false);
        assert!(!undo.all_were_duplicates(), "the network's own copy");
        undo.note_duplicate(102, true);
        assert!(undo.all_were_duplicates() && undo.is_due(9));
        undo.note_duplicate(102, true);
        assert!(undo.all_were_duplicates(), "another copy");
        undo.forget();
        assert!(!undo.all_were_duplicates() && !undo.is_due(1));
    }

    #[test]
    fn an_echo_from_before_the_first_retransmission_proves_it() {
        let mut undo = UndoState::default();
        undo.begin(100, 0);
        assert!(undo.was_only_delayed(50), "nothing was sent again");
        undo.note_retransmission(70);
        undo.note_retransmission(80);
        assert!(undo.is_due(69));
        assert!(!undo.is_due(70), "it may be the retransmission's");
        assert!(!undo.is_due(0), "no timestamp");
        undo.forget_stamp();
        assert!(undo.is_due(75));
    }

    #[test]
    fn an_episode_without_retransmissions_is_not_proven_by_their_absence() {
        let mut undo = UndoState::default();
        undo.begin(100, 0);
        undo.note_duplicate(105, true);
        assert!(!undo.all_were_duplicates());
        // Retransmissions that were in flight when it began count.
        undo.begin(100, 1);
        undo.note_duplicate(105, true);
        assert!(undo.all_were_duplicates());
    }
}
