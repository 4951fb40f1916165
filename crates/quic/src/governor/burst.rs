//! A burst that pacing lets pass.

use jostle_units::Time;

/// Packets that leave together: one step of pacing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    /// Packets that may still join it.
    pub left: u32,
    /// Bytes in it so far; 0 if none is under way.
    pub bytes: u64,
    /// When it leaves.
    pub departure: Time,
}
