//! Conversion between virtual time and `Instant`.

use std::time::{Duration, Instant};

use crate::Time;

/// Converter between virtual time and the `Instant` of a protocol stack.
#[derive(Clone, Copy, Debug)]
pub struct VirtualClock {
    epoch: Instant,
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl VirtualClock {
    /// Creates a clock. `Instant` has no other constructor than `now`. Only differences to it are
    /// used, so that its value has no effect.
    #[expect(clippy::disallowed_methods, reason = "see above")]
    pub fn new() -> Self {
        Self { epoch: Instant::now() }
    }

    /// Returns the `Instant` of a time.
    #[inline]
    pub fn instant(self, time: Time) -> Instant {
        self.epoch + Duration::from_nanos(time.as_ns())
    }

    /// Returns the time of an `Instant`; 0 if it is before the start.
    #[inline]
    pub fn time(self, instant: Instant) -> Time {
        Time::from_ns(instant.saturating_duration_since(self.epoch).as_nanos() as u64)
    }
}
