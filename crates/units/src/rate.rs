//! Rates in whole bits per second.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::Span;

const NS_PER_S: u64 = 1_000_000_000;

/// A rate in bits per second.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Rate(u64);

impl Rate {
    /// No data is sent.
    pub const ZERO: Self = Self(0);
    /// Faster than any link: sending takes no time.
    pub const MAX: Self = Self(u64::MAX);

    /// `bps` bits per second.
    #[inline]
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// `mbps` million bits per second.
    #[inline]
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps * 1_000_000)
    }

    /// `bytes_per_s` bytes per second (the unit of Linux pacing rates).
    #[inline]
    pub const fn from_bytes_per_s(bytes_per_s: u64) -> Self {
        Self(bytes_per_s.saturating_mul(8))
    }

    /// Bits per second.
    #[inline]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Whole bytes per second, rounded down.
    #[inline]
    pub const fn as_bytes_per_s(self) -> u64 {
        self.0 / 8
    }

    /// Time to send `size_bytes` at this rate, rounded up to a nanosecond; [`Span::MAX`] at rate 0.
    #[inline]
    pub const fn time_for(self, size_bytes: u64) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        // 64 bits hold 8 × 10⁹ × bytes up to 2.3 GB, which is enough for every packet.
        match size_bytes.checked_mul(8 * NS_PER_S) {
            Some(bits_ns) => Span::from_ns(bits_ns.div_ceil(self.0)),
            None => Span::from_ns(
                (size_bytes as u128 * (8 * NS_PER_S) as u128).div_ceil(self.0 as u128) as u64,
            ),
        }
    }

    /// Whole bytes sent at this rate during `span`, rounded down.
    #[inline]
    pub const fn bytes_in(self, span: Span) -> u64 {
        match self.0.checked_mul(span.as_ns()) {
            Some(bits_ns) => bits_ns / (8 * NS_PER_S),
            None => (self.0 as u128 * span.as_ns() as u128 / (8 * NS_PER_S) as u128) as u64,
        }
    }

    /// The rate that carries `size_bytes` in `span`; [`Rate::MAX`] for an empty span.
    #[inline]
    pub const fn of(size_bytes: u64, span: Span) -> Self {
        if span.is_zero() {
            return Self::MAX;
        }
        match size_bytes.checked_mul(8 * NS_PER_S) {
            Some(bits_ns) => Self(bits_ns / span.as_ns()),
            None => {
                let bps = size_bytes as u128 * (8 * NS_PER_S) as u128 / span.as_ns() as u128;
                Self(if bps > u64::MAX as u128 { u64::MAX } else { bps as u64 })
            }
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bps if bps < 1_000_000 => write!(f, "{} kbit/s", bps as f64 / 1e3),
            bps if bps < 1_000_000_000 => write!(f, "{} Mbit/s", bps as f64 / 1e6),
            bps => write!(f, "{} Gbit/s", bps as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_packet_at_100_mbit_takes_121_microseconds() {
        assert_eq!(Rate::from_mbps(100).time_for(1514), Span::from_ns(121_120));
        assert_eq!(Rate::ZERO.time_for(1), Span::MAX);
        assert_eq!(Rate::MAX.time_for(1514), Span::from_ns(1));
    }

    #[test]
    fn a_bandwidth_delay_product_is_exact() {
        assert_eq!(Rate::from_mbps(50).bytes_in(Span::from_ms(40)), 250_000);
        assert_eq!(Rate::of(250_000, Span::from_ms(40)), Rate::from_mbps(50));
    }

    #[test]
    fn large_amounts_are_exact() {
        let (rate, hour) = (Rate::from_mbps(100_000), Span::from_secs(3_600));
        assert_eq!(rate.bytes_in(hour), 45_000_000_000_000);
        assert_eq!(Rate::of(45_000_000_000_000, hour), rate);
        assert_eq!(Rate::of(u64::MAX, Span::from_ns(1)), Rate::MAX);
    }

    proptest! {
        #[test]
        fn sending_time_never_carries_less_than_was_sent(
            bps in 1_000u64..400_000_000_000, size in 1u64..10_000_000_000,
        ) {
            let rate = Rate::from_bps(bps);
            prop_assert!(rate.bytes_in(rate.time_for(size)) >= size);
        }
    }
}
