//! What Careful Resume keeps of a path.

use jostle_units::Span;

/// "A set of CC parameters" of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Capacity {
    /// `saved_cwnd`.
    pub bytes: u64,
    /// `saved_rtt`.
    pub min_rtt: Span,
}
