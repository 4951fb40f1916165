//! Virtual time in whole nanoseconds: exact, ordered and the same on every machine.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// A point in virtual time, in nanoseconds since the start of the run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(u64);

/// A duration of virtual time, in nanoseconds. Never negative: subtraction saturates at zero.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than any event of any run.
    pub const NEVER: Self = Self(u64::MAX);

    /// The point `ns` nanoseconds after the start of the run.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the start of the run.
    #[inline]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Seconds since the start of the run, for output only.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// The span since `earlier`, or zero if `earlier` is later than `self`.
    #[inline]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// A span of zero.
    pub const ZERO: Self = Self(0);
    /// Longer than any run.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ns` nanoseconds.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// A span of `us` microseconds.
    #[inline]
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// A span of `ms` milliseconds.
    #[inline]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// A span of `s` seconds.
    #[inline]
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// The span nearest to `s` seconds; negative values and NaN give zero.
    #[inline]
    pub fn from_secs_f64(s: f64) -> Self {
        // A float-to-integer `as` cast saturates and maps NaN to zero.
        Self((s * 1e9 + 0.5) as u64)
    }

    /// The span in nanoseconds.
    #[inline]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// The span in whole microseconds, rounded down (the resolution of Linux RTT samples).
    #[inline]
    pub const fn as_us(self) -> u64 {
        self.0 / 1_000
    }

    /// The span in seconds.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// `self × numerator ÷ denominator`, rounded down, without overflow on the way.
    #[inline]
    pub const fn mul_div(self, numerator: u64, denominator: u64) -> Self {
        // 64 bits hold an hour times a million, so that the 128-bit division is rarely needed.
        match self.0.checked_mul(numerator) {
            Some(product) => Self(product / denominator),
            None => Self((self.0 as u128 * numerator as u128 / denominator as u128) as u64),
        }
    }

    /// True for a span of zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum, or [`Span::MAX`] where it does not fit.
    #[inline]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Self;
    #[inline]
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Self;
    #[inline]
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl Sub for Span {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} s", self.as_secs_f64())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns if ns < 1_000 => write!(f, "{ns} ns"),
            ns if ns < 1_000_000 => write!(f, "{} us", ns as f64 / 1e3),
            ns if ns < 1_000_000_000 => write!(f, "{} ms", ns as f64 / 1e6),
            ns => write!(f, "{} s", ns as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtraction_stops_at_zero() {
        assert_eq!(Time::from_ns(3).since(Time::from_ns(5)), Span::ZERO);
        assert_eq!(Span::from_us(1) - Span::from_ms(1), Span::ZERO);
        assert_eq!(Time::NEVER + Span::from_secs(1), Time::NEVER);
    }

    #[test]
    fn seconds_round_to_the_nearest_nanosecond() {
        assert_eq!(Span::from_secs_f64(0.6), Span::from_ms(600));
        assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
    }

    #[test]
    fn products_are_exact_however_large() {
        let hour = Span::from_secs(3_600);
        assert_eq!(hour.mul_div(2, 3), Span::from_secs(2_400));
        assert_eq!(hour.mul_div(1 << 40, 1 << 39), Span::from_secs(7_200));
        assert_eq!(Span::MAX.mul_div(u64::MAX, u64::MAX), Span::MAX);
    }

    #[test]
    fn spans_print_in_the_unit_a_person_would_use() {
        assert_eq!(Span::from_us(1500).to_string(), "1.5 ms");
        assert_eq!(Span::from_secs(2).to_string(), "2 s");
    }
}
