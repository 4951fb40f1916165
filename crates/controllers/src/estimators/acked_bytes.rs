//! Count of acknowledged bytes.

/// Bytes that each ACK reports, including duplicates (`AckedCount` of TCP Westwood,
/// `tcp_westwood.c::westwood_acked_count` in Linux). A duplicate ACK immediately counts as one
/// packet, so that the cumulative ACK that covers the packet counts less. Short packets at message
/// ends count as full packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckedBytes {
    mss_bytes: u64,
    /// End of the counted bytes; [`u64::MAX`] before the first ACK, which only sets it.
    counted_to: u64,
    /// Bytes counted by duplicate ACKs and not yet by a cumulative ACK (`accounted`).
    accounted_bytes: u64,
}

impl Default for AckedBytes {
    fn default() -> Self {
        Self { mss_bytes: 1, counted_to: u64::MAX, accounted_bytes: 0 }
    }
}

impl AckedBytes {
    /// Changes the payload of a packet.
    pub fn resize(&mut self, mss_bytes: u32) {
        self.mss_bytes = u64::from(mss_bytes.max(1));
    }

    /// Payload of a packet.
    pub const fn mss_bytes(&self) -> u64 {
        self.mss_bytes
    }

    /// Counts an ACK up to packet `first_unacked`. An ACK that matches header prediction is no
    /// duplicate and counts with all packets that it acknowledges.
    #[inline]
    pub fn count(&mut self, first_unacked: u64, predicted: bool) -> u64 {
        let advanced_bytes = first_unacked.saturating_sub(self.counted_to) * self.mss_bytes;
        self.counted_to = first_unacked;
        if predicted { advanced_bytes } else { self.count_unpredicted(advanced_bytes) }
    }

    fn count_unpredicted(&mut self, advanced_bytes: u64) -> u64 {
        if advanced_bytes == 0 {
            self.accounted_bytes += self.mss_bytes;
            return self.mss_bytes;
        }
        if advanced_bytes <= self.mss_bytes {
            return advanced_bytes;
        }
        if self.accounted_bytes >= advanced_bytes {
            self.accounted_bytes -= advanced_bytes;
            return self.mss_bytes;
        }
        advanced_bytes - core::mem::take(&mut self.accounted_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    fn after(first_unacked: u64, duplicates: u64) -> AckedBytes {
        let mut acked = AckedBytes::default();
        acked.resize(1448);
        acked.count(first_unacked, true);
        (0..duplicates).for_each(|_| assert_eq!(acked.count(first_unacked, false), MSS));
        acked
    }

    /// Nothing is counted twice off the predicted path: 9 duplicates and the ACK that covers them and
    /// the hole are 10 packets.
    #[test]
    fn a_cumulative_ack_leaves_out_what_duplicates_counted() {
        assert_eq!(after(10, 9).count(20, false), MSS);
        assert_eq!(after(10, 9).count(20, true), 10 * MSS, "as Linux does on the predicted path");
    }

    #[test]
    fn the_first_ack_counts_nothing_unless_it_leaves_the_predicted_path() {
        for (predicted, bytes) in [(true, 0), (false, MSS)] {
            let mut acked = AckedBytes::default();
            acked.resize(1448);
            assert_eq!(acked.count(10, predicted), bytes);
        }
    }

    #[test]
    fn a_partial_ack_below_what_duplicates_counted_is_one_packet() {
        let mut acked = after(10, 5);
        assert_eq!((acked.count(13, false), acked.accounted_bytes), (MSS, 2 * MSS));
        assert_eq!((acked.count(14, false), acked.accounted_bytes), (MSS, 2 * MSS), "not compared");
        assert_eq!((acked.count(17, false), acked.accounted_bytes), (MSS, 0));
    }
}
