//! Saved path properties for Stateful-TCP.

use jostle_units::{Rate, Span};

/// Saved properties of the path to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathEstimate {
    /// Bandwidth available for payload.
    pub bandwidth: Rate,
    /// Minimum RTT of the path.
    pub min_rtt: Span,
}

impl PathEstimate {
    /// Returns the bandwidth-delay product in packets.
    pub fn bdp(self, mss_bytes: u32) -> u32 {
        let packets = self.bandwidth.bytes_in(self.min_rtt) / u64::from(mss_bytes.max(1));
        u32::try_from(packets).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bdp_is_rate_times_rtt_in_full_packets() {
        let estimate =
            PathEstimate { bandwidth: Rate::from_bps(12_000_000), min_rtt: Span::from_ms(100) };
        assert_eq!(estimate.bdp(1_500), 100);
        assert_eq!(estimate.bdp(1_501), 99);
    }
}
