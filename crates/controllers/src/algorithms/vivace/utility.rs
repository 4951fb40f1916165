//! Utility of a sending rate, computed from the rate, the loss and the RTT gradient of an interval.
//!
//! The paper and the authors' releases differ in coefficients, in the unit of the rate, and in
//! whether the reward of the rate is concave. Each variant is a [`Form`].

use jostle_registry::ParameterValues;

/// A family of utility functions of the rate x, the loss share L and the RTT gradient g = dRTT/dT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// t·x^p − b·x·max(0, g) − c·x·L, x in Mbit/s (NSDI 2018, §4.1).
    Paper,
    /// t·x^p − b·x·g − c·x·L, x in Mbit/s: Linux port and satellite studies.
    Linear,
    /// t·x^(p+1) − b·x²·max(−0.1, g) − c·x²·L, x in bit/s (WebRTC): the gradient, and with it
    /// the step, grows with the rate.
    Scaled,
}

/// A utility function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Utility {
    pub(super) form: Form,
    pub(super) throughput_coefficient: f64,
    pub(super) exponent: f64,
    pub(super) rtt_coefficient: f64,
    pub(super) loss_coefficient: f64,
}

/// Largest reward for a falling RTT in WebRTC (`kDelayGradientNegativeBound`).
const SCALED_GRADIENT_FLOOR: f64 = -0.1;

impl Utility {
    const fn new(form: Form, throughput: f64, exponent: f64, rtt: f64, loss: f64) -> Self {
        Self {
            form,
            throughput_coefficient: throughput,
            exponent,
            rtt_coefficient: rtt,
            loss_coefficient: loss,
        }
    }

    /// Returns the function named by `form`. Coefficients of `values` that are not negative replace
    /// the defaults of the form.
    pub(super) fn from_values(values: &ParameterValues) -> Self {
        let own = match values.choice("form") {
            // "Throughput, loss, and round-trip time coefficients set to 1, 10, and 2" of a closed
            // implementation (the satellite studies): the form of the Linux port is plausible.
            "satellite" => Self::new(Form::Linear, 1.0, 1.0, 2.0, 10.0),
            "linear" => Self::new(Form::Linear, 1.0, 1.0, 900.0, 11.0),
            "scaled" => Self::new(Form::Scaled, 0.001, 0.9, 0.005, 10.0),
            _ => Self::new(Form::Paper, 1.0, 0.9, 900.0, 11.35),
        };
        let given = |name, own| {
            let value = values.number(name);
            if value < 0.0 { own } else { value }
        };
        let own_rtt = match values.choice("utility") {
            "loss" => 0.0,
            _ => own.rtt_coefficient,
        };
        Self {
            form: own.form,
            throughput_coefficient: given("throughput_coefficient", own.throughput_coefficient),
            exponent: given("exponent", own.exponent),
            rtt_coefficient: given("rtt_coefficient", own_rtt),
            loss_coefficient: given("loss_coefficient", own.loss_coefficient),
        }
    }

    /// Returns the unit of the rate in bits per second.
    pub(super) const fn unit_bps(&self) -> f64 {
        match self.form {
            Form::Paper | Form::Linear => 1e6,
            Form::Scaled => 1.0,
        }
    }

    /// Returns the utility of `rate_bps` with a loss share of `loss` and an RTT gradient of
    /// `gradient` seconds per second.
    pub(super) fn of(&self, rate_bps: f64, loss: f64, gradient: f64) -> f64 {
        let x = rate_bps / self.unit_bps();
        let reward = self.throughput_coefficient * libm::pow(x, self.exponent);
        let (loss_cost, rtt_cost) = (self.loss_coefficient * loss, self.rtt_coefficient);
        match self.form {
            Form::Paper => reward - x * (rtt_cost * gradient.max(0.0) + loss_cost),
            Form::Linear => reward - x * (rtt_cost * gradient + loss_cost),
            Form::Scaled => {
                let gradient = gradient.max(SCALED_GRADIENT_FLOOR);
                x * (reward - x * (rtt_cost * gradient + loss_cost))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::VIVACE;
    use alloc::collections::BTreeMap;
    use jostle_registry::ParameterValue;

    fn utility(given: &[(&str, ParameterValue)]) -> Utility {
        let given: BTreeMap<_, _> = given.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
        Utility::from_values(&VIVACE.entry.resolve(&given).unwrap())
    }

    fn form(name: &str) -> Utility {
        utility(&[("form", ParameterValue::Text(name.to_owned()))])
    }

    /// Slope of the utility in the rate, in utility per unit of the rate.
    fn slope(utility: &Utility, rate_bps: f64, loss: f64, gradient: f64) -> f64 {
        let step = rate_bps * 1e-6;
        let rise = utility.of(rate_bps + step, loss, gradient)
            - utility.of(rate_bps - step, loss, gradient);
        rise * utility.unit_bps() / (2.0 * step)
    }

    /// The argument at which `slope` turns from plus to minus.
    fn limit(mut slope: impl FnMut(f64) -> f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        assert!(slope(low) > 0.0 && slope(high) < 0.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if slope(middle) > 0.0 { low = middle } else { high = middle }
        }
        low
    }

    fn loss_limit(utility: &Utility, rate_bps: f64) -> f64 {
        limit(|loss| slope(utility, rate_bps, loss, 0.0))
    }

    /// NSDI 2018, §4.1, and the constants of the authors' user-space release.
    #[test]
    fn the_default_is_the_published_function() {
        let u = utility(&[]);
        assert_eq!((u.form, u.throughput_coefficient, u.exponent), (Form::Paper, 1.0, 0.9));
        assert_eq!((u.rtt_coefficient, u.loss_coefficient), (900.0, 11.35));
    }

    #[test]
    fn the_paper_tolerates_5_percent_of_loss_at_100_mbit_and_7_9_at_1_mbit() {
        assert!((loss_limit(&form("paper"), 100e6) - 0.050).abs() < 0.0005);
        assert!((loss_limit(&form("paper"), 1e6) - 0.079).abs() < 0.0005);
    }

    #[test]
    fn linear_forms_tolerate_the_inverse_of_their_coefficient() {
        for rate in [1e6, 100e6] {
            assert!((loss_limit(&form("satellite"), rate) - 0.1).abs() < 1e-6);
            assert!((loss_limit(&form("linear"), rate) - 1.0 / 11.0).abs() < 1e-6);
        }
    }

    /// At 100 Mbit/s the paper bears 0.9 · 100^−0.1 / 900 = 6.3·10⁻⁴ seconds per second, the
    /// satellite form a half.
    #[test]
    fn rtt_gradients_are_borne_as_the_coefficient_says() {
        let bears = |utility: &Utility| limit(|g| slope(utility, 100e6, 0.0, g));
        assert!((bears(&form("paper")) / 6.3e-4 - 1.0).abs() < 0.01);
        assert!((bears(&form("satellite")) - 0.5).abs() < 1e-6);
        // WebRTC at 1 Mbit/s: 1.9 · 0.001 · 10^5.4 / (2 · 0.005 · 10^6).
        let scaled = limit(|g| slope(&form("scaled"), 1e6, 0.0, g));
        assert!((scaled - 0.0477).abs() < 1e-4, "{scaled}");
    }

    #[test]
    fn a_falling_rtt_is_worth_something_in_the_linear_forms_only() {
        for (name, rewarded) in [("paper", false), ("linear", true), ("satellite", true)] {
            let u = form(name);
            assert_eq!(u.of(50e6, 0.0, -0.1) > u.of(50e6, 0.0, 0.0), rewarded, "{name}");
        }
        let scaled = form("scaled");
        assert_eq!(scaled.of(50e6, 0.0, -0.5), scaled.of(50e6, 0.0, -0.1));
    }

    /// NSDI 2018, §4.1: with b = 0 only losses count; what is borne of them stays the same.
    #[test]
    fn the_loss_utility_does_not_see_the_rtt() {
        for name in ["paper", "linear", "scaled", "satellite"] {
            let u = utility(&[
                ("form", ParameterValue::Text(name.into())),
                ("utility", ParameterValue::Text("loss".into())),
            ]);
            assert_eq!(u.of(50e6, 0.01, 0.5), u.of(50e6, 0.01, 0.0), "{name}");
            assert_eq!(u.of(50e6, 0.02, 0.0), form(name).of(50e6, 0.02, 0.0), "{name}");
        }
    }

    #[test]
    fn given_coefficients_replace_those_of_the_form() {
        let u = utility(&[
            ("form", ParameterValue::Text("paper".into())),
            ("loss_coefficient", ParameterValue::Number(0.0)),
        ]);
        assert_eq!((u.loss_coefficient, u.rtt_coefficient, u.exponent), (0.0, 900.0, 0.9));
    }
}
