//! Conversion between virtual time and the stack's `Instant`.

use std::time::{Duration, Instant};

use jostle_units::Time;

/// Converter between virtual time and the stack's `Instant`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Instant,
}

impl Clock {
    /// Creates a clock. `Instant` has no other constructor than `now`. Only differences to it are
    /// used, so that its value has no effect.
    #[expect(clippy::disallowed_methods, reason = "see above")]
    pub fn new() -> Self {
        Self { epoch: Instant::now() }
    }

    #[inline]
    pub fn instant(self, time: Time) -> Instant {
        self.epoch + Duration::from_nanos(time.as_ns())
    }

    #[inline]
    pub fn time(self, instant: Instant) -> Time {
        Time::from_ns(instant.saturating_duration_since(self.epoch).as_nanos() as u64)
    }
}
