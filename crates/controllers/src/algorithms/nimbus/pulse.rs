//! The pulses.

use core::f64::consts::PI;

/// Share of a period in which the rate is above its mean (release, `elasticity_est_pulse`).
const UP: f64 = 0.25;

/// Asymmetric sinusoidal pulse of amplitude 1 at a `phase` from 0 to 1 of its period. It is half a
/// sine for a quarter of the period, and a negative half sine of a third of the amplitude for the
/// rest, so that both contain the same number of bits. A sender with little spare capacity can thus
/// compensate slowly.
pub(super) fn pulse(phase: f64) -> f64 {
    if phase < UP {
        libm::sin(PI * phase / UP)
    } else {
        -UP / (1.0 - UP) * libm::sin(PI * (phase - UP) / (1.0 - UP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_up_by_one_and_down_by_a_third() {
        assert_eq!(pulse(0.0), 0.0);
        assert!((pulse(0.125) - 1.0).abs() < 1e-12);
        assert!(pulse(0.25).abs() < 1e-12);
        assert!((pulse(0.625) + 1.0 / 3.0).abs() < 1e-12);
        assert!(pulse(1.0 - 1e-12).abs() < 1e-11);
    }

    #[test]
    fn what_it_takes_it_gives_back() {
        let sum: f64 = (0..10_000).map(|i| pulse((f64::from(i) + 0.5) / 10_000.0)).sum();
        assert!(sum.abs() < 1e-3, "{sum} of {}", 10_000.0 * UP * 2.0 / PI);
    }
}
