//! The methods of `f64` that exist only in the standard library.

/// The methods of `f64` that `core` lacks, with the results of the standard library to the last
/// bit. Import it for builds without the standard library only, where a method call finds it:
///
/// ```
/// #[cfg(not(feature = "std"))]
/// use jostle_units::FloatMath;
/// ```
///
/// Other functions (`exp`, `ln`, …) have no exact result, so that all builds call `libm`.
pub trait FloatMath {
    /// Returns the square root.
    #[must_use]
    fn sqrt(self) -> Self;
    /// Returns the largest integer that is not above `self`.
    #[must_use]
    fn floor(self) -> Self;
    /// Returns the smallest integer that is not below `self`.
    #[must_use]
    fn ceil(self) -> Self;
    /// Returns the nearest integer, and of two the one further from 0.
    #[must_use]
    fn round(self) -> Self;
    /// Returns the integer part.
    #[must_use]
    fn trunc(self) -> Self;
    /// Returns the fractional part.
    #[must_use]
    fn fract(self) -> Self;
    /// Returns `self` to the power of `exponent`.
    #[must_use]
    fn powi(self, exponent: i32) -> Self;
    /// Returns `self * factor + summand`, rounded once.
    #[must_use]
    fn mul_add(self, factor: Self, summand: Self) -> Self;
    /// Returns the remainder that is not negative.
    #[must_use]
    fn rem_euclid(self, divisor: Self) -> Self;
}

impl FloatMath for f64 {
    #[inline]
    fn sqrt(self) -> Self {
        libm::sqrt(self)
    }

    #[inline]
    fn floor(self) -> Self {
        libm::floor(self)
    }

    #[inline]
    fn ceil(self) -> Self {
        libm::ceil(self)
    }

    #[inline]
    fn round(self) -> Self {
        libm::round(self)
    }

    #[inline]
    fn trunc(self) -> Self {
        libm::trunc(self)
    }

    #[inline]
    fn fract(self) -> Self {
        self - libm::trunc(self)
    }

    // The result depends on the order of the multiplications: this is the order of `__powidf2` in
    // LLVM's compiler-rt, which the standard library calls.
    fn powi(self, exponent: i32) -> Self {
        let mut power = self;
        let mut rest = exponent;
        let mut product = 1.0;
        loop {
            if rest & 1 != 0 {
                product *= power;
            }
            rest /= 2;
            if rest == 0 {
                break;
            }
            power *= power;
        }
        if exponent < 0 { 1.0 / product } else { product }
    }

    #[inline]
    fn mul_add(self, factor: Self, summand: Self) -> Self {
        libm::fma(self, factor, summand)
    }

    #[inline]
    fn rem_euclid(self, divisor: Self) -> Self {
        let remainder = self % divisor;
        if remainder < 0.0 { remainder + divisor.abs() } else { remainder }
    }
}

#[cfg(test)]
mod tests {
    use core::hint::black_box;

    use super::*;
    use crate::RandomStream;

    /// Values on both sides of every binade, of integers and halves, special values, and random
    /// bits.
    fn grid() -> Vec<f64> {
        let mut values = vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        values.extend([f64::MAX, f64::MIN, f64::MIN_POSITIVE, f64::EPSILON, 5e-324]);
        for exponent in 0..2046_u64 {
            let binade = f64::from_bits(exponent << 52);
            values.extend([binade, binade.next_up(), -binade.next_down()]);
        }
        for number in -600..600 {
            let half = f64::from(number) / 2.0;
            values.extend([half, half.next_up(), half.next_down(), half / 3.0]);
        }
        let mut stream = RandomStream::new(1, "float");
        values.extend((0..20_000).map(|_| f64::from_bits(stream.bits())));
        values.extend((0..20_000).map(|_| (stream.uniform() - 0.5) * 1e6));
        values
    }

    #[track_caller]
    fn check(what: &str, x: f64, ours: f64, std: f64) {
        let equal = ours.to_bits() == std.to_bits() || ours.is_nan() && std.is_nan();
        assert!(equal, "{what} of {x:e}: {ours:e} instead of {std:e}");
    }

    #[test]
    fn functions_of_one_number_have_the_bits_of_the_standard_library() {
        for x in grid().into_iter().map(black_box) {
            check("sqrt", x, FloatMath::sqrt(x), x.sqrt());
            check("floor", x, FloatMath::floor(x), x.floor());
            check("ceil", x, FloatMath::ceil(x), x.ceil());
            check("round", x, FloatMath::round(x), x.round());
            check("trunc", x, FloatMath::trunc(x), x.trunc());
            check("fract", x, FloatMath::fract(x), x.fract());
        }
    }

    #[test]
    fn functions_of_several_numbers_have_the_bits_of_the_standard_library() {
        let values = grid();
        let mut stream = RandomStream::new(2, "float");
        let mut any = || values[(stream.bits() % values.len() as u64) as usize];
        for _ in 0..200_000 {
            let (x, y, z) = (black_box(any()), black_box(any()), black_box(any()));
            check("mul_add", x, FloatMath::mul_add(x, y, z), x.mul_add(y, z));
            check("rem_euclid", x, FloatMath::rem_euclid(x, y), x.rem_euclid(y));
        }
    }

    #[test]
    fn powers_have_the_bits_of_the_standard_library() {
        let exponents: Vec<i32> = (-70..=70).chain([i32::MIN, -1_000, 1_000, i32::MAX]).collect();
        for x in grid().into_iter().step_by(7) {
            for &exponent in &exponents {
                let (x, n) = (black_box(x), black_box(exponent));
                check(&format!("power {n}"), x, FloatMath::powi(x, n), x.powi(n));
            }
        }
    }
}
