//! The rates that Quick-Start asks for and grants.

use jostle_units::Rate;

/// A rate as the options of RFC 4782 carry it: four bits N that stand for
/// 40 kbit/s · 2ᴺ, and 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RateCode(u8);

impl RateCode {
    /// No rate.
    pub const NONE: Self = Self(0);
    const UNIT_BPS: u64 = 40_000;
    const LARGEST: u8 = 15;

    /// The largest rate that is not above `rate`.
    pub fn not_above(rate: Rate) -> Self {
        let units = rate.as_bps() / Self::UNIT_BPS;
        Self(units.checked_ilog2().map_or(0, |log| log.min(u32::from(Self::LARGEST)) as u8))
    }

    /// What the option says; of its bits four count.
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::LARGEST)
    }

    /// What it says in the option.
    #[inline]
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// Whether this stands for no rate.
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The rate; none for code 0.
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
        let bps = |bps| RateCode::not_above(Rate::from_bps(bps));
        for (code, rate_bps) in [(1, 80_000), (8, 10_240_000), (15, 1_310_720_000)] {
            assert_eq!(bps(rate_bps), RateCode(code));
            assert_eq!(RateCode(code).rate(), Some(Rate::from_bps(rate_bps)));
            assert_eq!(bps(rate_bps - 1), RateCode(code - 1));
        }
        assert_eq!(bps(u64::MAX), RateCode(15));
        for too_slow in [0, 39_999, 40_000, 79_999] {
            assert_eq!(bps(too_slow).rate(), None);
        }
    }
}
