//! Virtual time as the stack wants it.

use std::time::{Duration, Instant};

use jostle_units::Time;

/// Translates between points of virtual time and the stack's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Instant,
}

impl Clock {
    /// `Instant` has no constructor but this one. Only differences to it are ever used, so that
    /// nothing depends on what it reads.
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
