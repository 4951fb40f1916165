//! Saved path parameters for Careful Resume.

use jostle_units::Span;

/// "A set of CC parameters" of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedCapacity {
    /// `saved_cwnd`.
    pub bytes: u64,
    /// `saved_rtt`.
    pub min_rtt: Span,
}
