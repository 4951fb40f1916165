//! The coarse clock of Linux with which some controllers measure round trips.

use jostle_registry::{Parameter, ParameterValues};
use jostle_units::{Span, Time};

/// Parameter of controllers whose behaviour depends on the tick. Its default is the tick of the
/// reference kernel.
pub(crate) const HZ: Parameter = hz(1000);

/// The parameter [`HZ`] with another default.
pub(crate) const fn hz(default: i64) -> Parameter {
    Parameter::integer("hz", default, 100..=1000).summary(
        "ticks per second of the kernel's clock (CONFIG_HZ): 100, 250 or 1000 in distributions",
    )
}

const US_PER_S: u64 = 1_000_000;

/// A clock of [`HZ`] ticks per second. Its first tick begins at time 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jiffies {
    hz: u64,
}

impl Jiffies {
    /// Creates the clock for the parameters of an entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self { hz: u64::from(values.u32(HZ.name)) }
    }

    /// Ticks per second.
    pub const fn hz(self) -> u64 {
        self.hz
    }

    /// Ticks since time 0.
    #[inline]
    pub const fn at(self, now: Time) -> u64 {
        self.parts(now.since(Time::ZERO)) / US_PER_S
    }

    /// Returns a span in ticks, rounded up (`usecs_to_jiffies`), so that no measured RTT is zero.
    #[inline]
    pub const fn rounded_up(self, span: Span) -> u64 {
        self.parts(span).div_ceil(US_PER_S)
    }

    /// Returns a span in millionths of a tick. A tick is at least a millisecond ([`HZ`]), so that
    /// the result is at most the span's nanoseconds and does not overflow.
    #[inline]
    const fn parts(self, span: Span) -> u64 {
        span.as_us() * self.hz
    }

    /// A number of ticks in seconds, for plots.
    pub fn seconds(self, ticks: u64) -> f64 {
        ticks as f64 / self.hz as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_round_down_and_spans_up() {
        for (hz, span_us, whole, up) in
            [(100, 40_001, 4, 5), (100, 9_999, 0, 1), (250, 40_000, 10, 10), (1000, 40_001, 40, 41)]
        {
            let clock = Jiffies { hz };
            let span = Span::from_us(span_us);
            assert_eq!(clock.at(Time::ZERO + span), whole, "{span_us} us at {hz}");
            assert_eq!(clock.rounded_up(span), up, "{span_us} us at {hz}");
        }
    }

    #[test]
    fn no_span_is_too_long() {
        for hz in [100, 1000] {
            let ticks = u128::from(u64::MAX / 1_000) * u128::from(hz) / u128::from(US_PER_S);
            assert_eq!(u128::from(Jiffies { hz }.rounded_up(Span::MAX)), ticks + 1);
        }
    }
}
