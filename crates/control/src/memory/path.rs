//! What Stateful-TCP remembers.

use jostle_units::{Rate, Span};

/// What is remembered of the path to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path {
    /// Payload that it carries.
    pub(super) bandwidth: Rate,
    pub(super) min_rtt: Span,
}

impl Path {
    /// Packets that it holds.
    pub(super) fn bdp(self, mss_bytes: u32) -> u32 {
        let packets = self.bandwidth.bytes_in(self.min_rtt) / u64::from(mss_bytes.max(1));
        u32::try_from(packets).unwrap_or(u32::MAX)
    }
}
