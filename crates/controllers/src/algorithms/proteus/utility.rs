//! Utility functions of Proteus.

use jostle_registry::ParameterValues;

/// Priority of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Proteus-P: a primary flow that competes for its share.
    Primary,
    /// Proteus-S: a scavenger that yields to other flows.
    Scavenger,
    /// Proteus-H: primary up to a rate, scavenger above it.
    Hybrid,
}

/// A utility function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Utility {
    mode: Mode,
    threshold_bps: f64,
    exponent: f64,
    /// Per second of RTT and second.
    rtt_coefficient: f64,
    loss_coefficient: f64,
    /// Per second of deviation.
    deviation_coefficient: f64,
}

/// Statistics of an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IntervalStats {
    /// Sending rate, in bit/s.
    pub(super) sent_bps: f64,
    /// Share of lost packets.
    pub(super) loss: f64,
    /// dRTT/dT, in seconds per second.
    pub(super) gradient: f64,
    /// Standard deviation of the RTTs, in seconds.
    pub(super) deviation_s: f64,
}

impl Utility {
    pub(super) fn from_values(values: &ParameterValues) -> Self {
        Self {
            mode: match values.choice("mode") {
                "scavenger" => Mode::Scavenger,
                "hybrid" => Mode::Hybrid,
                _ => Mode::Primary,
            },
            threshold_bps: values.rate("threshold").as_bps() as f64,
            exponent: values.number("exponent"),
            rtt_coefficient: values.number("rtt_coefficient"),
            loss_coefficient: values.number("loss_coefficient"),
            deviation_coefficient: values.number("deviation_coefficient"),
        }
    }

    /// Returns whether a flow with `rate_bps` yields. A hybrid flow yields above its threshold. The
    /// threshold is in 10⁶ bit/s here and in the utility; the release uses units of 2²⁰ here.
    pub(super) fn yields_above(&self, rate_bps: f64) -> bool {
        match self.mode {
            Mode::Primary => false,
            Mode::Scavenger => true,
            Mode::Hybrid => rate_bps > self.threshold_bps,
        }
    }

    /// Release (`pcc_utility_manager.cpp`), with x the rate in Mbit/s, L the share of packets lost, σ the
    /// deviation of RTTs:
    ///
    /// - primary: u = xᵗ − b x max(0, dRTT/dT) − c x L
    /// - scavenger: that, less d x σ
    /// - hybrid: primary below the threshold, scavenger from there on
    pub(super) fn of(&self, met: &IntervalStats) -> f64 {
        let x = met.sent_bps / 1e6;
        let yields = match self.mode {
            Mode::Primary => false,
            Mode::Scavenger => true,
            Mode::Hybrid => met.sent_bps >= self.threshold_bps,
        };
        let deviation = if yields { self.deviation_coefficient * met.deviation_s } else { 0.0 };
        let cost = self.rtt_coefficient * met.gradient.max(0.0)
            + self.loss_coefficient * met.loss
            + deviation;
        libm::pow(x, self.exponent) - x * cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::PROTEUS;
    use jostle_registry::ParameterValue;

    fn utility(mode: &str) -> Utility {
        let given = [
            ("mode".to_owned(), ParameterValue::Text(mode.to_owned())),
            ("threshold".to_owned(), ParameterValue::Integer(10_000_000)),
        ];
        Utility::from_values(&PROTEUS.entry.resolve(&given.into()).unwrap())
    }

    /// 16 Mbit/s: 16^0.9 = 12.1257. A gradient of 0.001 costs 900 · 0.001 · 16 = 14.4, 2 % of loss
    /// 11.35 · 0.02 · 16 = 3.632, a deviation of 0.5 ms 1500 · 0.0005 · 16 = 12.
    #[test]
    fn each_term_costs_what_it_should() {
        let met = IntervalStats { sent_bps: 16e6, ..IntervalStats::default() };
        let worth = |mode: &str, met: IntervalStats| (utility(mode).of(&met) * 1e4).round() / 1e4;
        assert_eq!(worth("primary", met), 12.1257);
        assert_eq!(worth("primary", IntervalStats { gradient: 0.001, ..met }), -2.2743);
        assert_eq!(worth("primary", IntervalStats { gradient: -0.001, ..met }), 12.1257);
        assert_eq!(worth("primary", IntervalStats { loss: 0.02, ..met }), 8.4937);
        assert_eq!(worth("primary", IntervalStats { deviation_s: 0.0005, ..met }), 12.1257);
        assert_eq!(worth("scavenger", IntervalStats { deviation_s: 0.0005, ..met }), 0.1257);
        assert_eq!(worth("scavenger", IntervalStats { loss: 0.02, ..met }), 8.4937);
    }

    #[test]
    fn a_hybrid_yields_from_its_threshold_on() {
        let hybrid = utility("hybrid");
        let at =
            |sent_bps| IntervalStats { sent_bps, deviation_s: 0.001, ..IntervalStats::default() };
        assert_eq!(hybrid.of(&at(9.9e6)), utility("primary").of(&at(9.9e6)));
        assert_eq!(hybrid.of(&at(10e6)), utility("scavenger").of(&at(10e6)));
        assert!(!hybrid.yields_above(10e6) && hybrid.yields_above(10.1e6));
        assert!(utility("scavenger").yields_above(1.0) && !utility("primary").yields_above(1e9));
    }
}
