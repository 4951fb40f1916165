//! e⁻ˣ in integers.

/// 2¹⁶ · exp(−0.000256 · 2ᵏ).
const FACTORS: [u32; 16] = [
    65_519, 65_502, 65_469, 65_402, 65_268, 65_002, 64_471, 63_423, 61_379, 57_485, 50_424, 38_796,
    22_966, 8_048, 988, 15,
];

/// Returns (2³² − 1) · exp(−`micro` · 10⁻⁶) with the precision of Linux (`tcp_cdg.c::nexp_u32`):
/// the lowest eight bits are linear, each higher bit is a factor. Zero from 2²⁴ on.
pub(super) fn exp_of_minus(micro: u32) -> u32 {
    if micro >= 1 << 24 {
        return 0;
    }
    let linear = u32::MAX - (micro & 0xff) * (u32::MAX / 1_000_000);
    FACTORS.into_iter().enumerate().fold(linear, |product, (k, factor)| {
        if (micro >> (8 + k)) & 1 == 0 {
            return product;
        }
        ((u64::from(product) * u64::from(factor)) >> 16) as u32
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_powers_of_e() {
        for (k, factor) in FACTORS.into_iter().enumerate() {
            let exact = 65_536.0 * libm::exp(-0.000256 * libm::exp2(k as f64));
            assert!((f64::from(factor) - exact).abs() < 1.0, "{factor} for {exact}");
        }
    }

    #[test]
    fn the_product_is_the_exponential() {
        for micro in [0, 1, 255, 256, 1_000, 100_000, 693_147, 1_000_000, 5_000_000, 16_000_000] {
            let exact = libm::exp(-f64::from(micro) * 1e-6);
            let share = f64::from(exp_of_minus(micro)) / f64::from(u32::MAX);
            assert!((share - exact).abs() < 5e-5, "{share} for {exact}");
        }
        assert_eq!(exp_of_minus(u32::MAX), 0);
    }
}
