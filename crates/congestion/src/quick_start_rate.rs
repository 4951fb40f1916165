//! Rates that Quick-Start requests and grants.

use jostle_units::Rate;

/// A rate in the encoding of the options of RFC 4782: a 4-bit number N encodes 40 kbit/s · 2ᴺ, and
/// 0 encodes no rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuickStartRate(u8);

impl QuickStartRate {
    /// No rate.
    pub const NONE: Self = Self(0);
    const UNIT_BPS: u64 = 40_000;
    const LARGEST: u8 = 15;

    /// Returns the largest encodable rate that does not exceed `rate`.
    pub fn not_above(rate: Rate) -> Self {
        let units = rate.as_bps() / Self::UNIT_BPS;
        Self(units.checked_ilog2().map_or(0, |log| log.min(u32::from(Self::LARGEST)) as u8))
    }

    /// Decodes the option field. Only the lower four bits are used.
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::LARGEST)
    }

    /// Encodes the rate for the option.
    #[inline]
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// Returns whether no rate is requested or granted.
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns the rate, or `None` for code 0.
    pub fn rate(self) -> Option<Rate> {
        (self.0 > 0).then(|| Rate::from_bps(Self::UNIT_BPS << self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4782 §3.1: 1 is 80 kbit/s, 8 is 10.24 Mbit/s, 15 is 1.31 Gbit/s.
    #[test]
    fn codes_are_powers_of_two() {
        let bps = |bps| QuickStartRate::not_above(Rate::from_bps(bps));
        for (code, rate_bps) in [(1, 80_000), (8, 10_240_000), (15, 1_310_720_000)] {
            assert_eq!(bps(rate_bps), QuickStartRate(code));
            assert_eq!(QuickStartRate(code).rate(), Some(Rate::from_bps(rate_bps)));
            assert_eq!(bps(rate_bps - 1), QuickStartRate(code - 1));
        }
        assert_eq!(bps(u64::MAX), QuickStartRate(15));
        assert_eq!(QuickStartRate::from_bits(0xf3), QuickStartRate(3), "the lower four bits");
        assert_eq!(QuickStartRate(3).to_bits(), 3);
        assert!(QuickStartRate::NONE.is_none() && !QuickStartRate(3).is_none());
        for too_slow in [0, 39_999, 40_000, 79_999] {
            assert_eq!(bps(too_slow).rate(), None);
        }
    }
}
