//! Bursts of packets, with and without pacing.

use jostle_units::Time;

/// Packets that leave together as one pacing step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    /// Number of packets that can still join the burst.
    pub left: u32,
    /// Bytes in the burst so far; 0 if there is no burst.
    pub bytes: u64,
    /// Departure time of the burst.
    pub departure: Time,
}

/// Packets that were sent at one instant. Without pacing, their number is limited.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnpacedBurst {
    /// Time of the latest send opportunity.
    pub at: Time,
    /// Packets sent then.
    pub packets: u32,
}
