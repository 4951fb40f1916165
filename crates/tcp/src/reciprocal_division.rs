//! Fast division by sizes that a connection divides by for each packet.

/// A divisor with a precomputed reciprocal, so that a division is a multiplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReciprocalDivisor {
    value: u32,
    /// (2⁶⁴ − 1) / `value`, rounded down.
    reciprocal: u64,
}

impl ReciprocalDivisor {
    /// `value` must not be 0.
    pub const fn new(value: u32) -> Self {
        Self { value, reciprocal: u64::MAX / value as u64 }
    }

    /// Returns the divisor.
    #[inline]
    pub const fn get(self) -> u32 {
        self.value
    }

    /// Returns `n` divided by the divisor, rounded down. The result is exact as long as (n + 1) ·
    /// value ≤ 2⁶⁴, that is for all n < 2⁴⁸ with a 16-bit divisor. The reciprocal is too small by
    /// less than 2⁻⁶⁴, which n + 1 compensates.
    #[inline]
    pub const fn divide(self, n: u64) -> u64 {
        (((n as u128 + 1) * self.reciprocal as u128) >> 64) as u64
    }

    /// Returns the remainder of the division.
    #[inline]
    pub const fn remainder(self, n: u32) -> u32 {
        n - self.divide(n as u64) as u32 * self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_division(value in 1u32..65_536, n in 0u64..1 << 48, near in 0u64..1 << 32) {
            let divisor = ReciprocalDivisor::new(value);
            let whole = near.min((1 << 48) / u64::from(value) - 1) * u64::from(value);
            for n in [n, whole, whole.saturating_sub(1), (1 << 48) - 1] {
                prop_assert_eq!(divisor.divide(n), n / u64::from(value));
                prop_assert_eq!(divisor.remainder(n as u32), n as u32 % value);
            }
        }
    }
}
