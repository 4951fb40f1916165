//! State of a sender, of which the log contains the changes.

use jostle_units::{Rate, Span};

/// State of a sender. The defaults mean that a value is unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderState {
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// Minimum RTT; [`Span::MAX`] before the first sample.
    pub min_rtt: Span,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Slow-start threshold; `None` if it is not set.
    pub ssthresh_bytes: Option<u64>,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Pacing rate, if packets are paced.
    pub pacing_rate: Option<Rate>,
    /// Name of the mode for plots.
    pub mode: &'static str,
    /// Current maximum datagram size.
    pub datagram_bytes: u32,
}

impl Default for SenderState {
    fn default() -> Self {
        Self {
            srtt: Span::ZERO,
            min_rtt: Span::MAX,
            cwnd_bytes: 0,
            ssthresh_bytes: None,
            in_flight_bytes: 0,
            pacing_rate: None,
            mode: "",
            datagram_bytes: 0,
        }
    }
}

impl SenderState {
    /// Returns whether everything that `metrics_updated` contains is equal.
    pub(crate) fn has_same_metrics(&self, other: &Self) -> bool {
        Self { mode: other.mode, datagram_bytes: other.datagram_bytes, ..*self } == *other
    }
}
