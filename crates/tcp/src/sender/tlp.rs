//! The tail loss probe in flight (RFC 8985 §7).

/// State of a probe until its outcome is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TailProbe {
    /// `tlp_high_seq`: `snd_nxt` when the probe was sent.
    high: Option<u32>,
    /// `tlp_retrans`: whether the probe was a retransmission.
    retransmitted: bool,
}

impl TailProbe {
    /// Records a probe.
    pub const fn sent(next: u32, retransmitted: bool) -> Self {
        Self { high: Some(next), retransmitted }
    }

    /// Discards the probe.
    pub const fn forget(&mut self) {
        self.high = None;
    }

    pub const fn is_out(&self) -> bool {
        self.high.is_some()
    }

    /// Returns whether the probe is a retransmission, which the scoreboard does not count.
    pub const fn is_retransmission(&self) -> bool {
        self.is_out() && self.retransmitted
    }

    /// Returns whether the probe caused a duplicate that ends at `end`.
    pub fn is_duplicate_of_probe(&self, end: u32) -> bool {
        self.high == Some(end)
    }

    /// Processes an ACK of all data before `ack` (`tcp_input.c::tcp_process_tlp_ack`,
    /// RFC 8985 §7.4). Returns whether the probe repaired a loss. `duplicate`: the ACK reports a
    /// duplicate caused by the probe. `repeated`: the ACK contains no news.
    #[inline]
    pub const fn repaired(&mut self, ack: u32, duplicate: bool, repeated: bool) -> bool {
        let Some(high) = self.high else { return false };
        if ack < high {
            return false;
        }
        // Both the original and the probe have arrived, or the probe was new data.
        if !self.retransmitted || duplicate || (ack == high && repeated) {
            self.high = None;
            return false;
        }
        ack > high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_that_is_acknowledged_without_a_duplicate_has_repaired_a_loss() {
        let mut probe = TailProbe::sent(10, true);
        assert!(!probe.repaired(9, false, true), "an ACK of less");
        assert!(!probe.repaired(10, false, false), "it may be the original's");
        assert!(probe.is_out() && probe.is_retransmission());
        assert!(probe.repaired(11, false, false));
    }

    #[test]
    fn a_needless_probe_is_forgotten() {
        for (ack, duplicate, repeated) in [(10, true, false), (11, true, false), (10, false, true)]
        {
            let mut probe = TailProbe::sent(10, true);
            assert!(!probe.repaired(ack, duplicate, repeated));
            assert!(!probe.is_out());
        }
        assert!(
            TailProbe::sent(10, true).is_duplicate_of_probe(10)
                && !TailProbe::sent(10, true).is_duplicate_of_probe(9)
        );
    }

    #[test]
    fn new_data_repair_nothing() {
        let mut probe = TailProbe::sent(10, false);
        assert!(!probe.is_retransmission());
        assert!(!probe.repaired(12, false, false) && !probe.is_out());
    }
}
