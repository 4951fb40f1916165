//! Sprout's model of the link: a distribution of its rate.

use alloc::vec;
use alloc::vec::Vec;
use core::f64::consts::SQRT_2;

use super::Parameters;

/// Bins of the rate (§3.1 of the paper).
pub(super) const BINS: usize = 256;
/// Number of standard deviations beyond which a step of the Brownian motion is neglected.
const REACH: f64 = 4.0;
/// Maximum number of arrivals per tick in the likelihood: twice the default's largest.
const MOST_ARRIVALS: u32 = 1_000;

/// Probability of each rate. The rate follows a Brownian motion. A rate of 0, an outage, ends with
/// a separate escape rate. Arrivals are a Poisson process of the rate.
#[derive(Clone, Debug)]
pub(super) struct Model {
    probability: [f64; BINS],
    /// Probability of a step of this many bins in a tick, in either direction.
    steps: Vec<f64>,
    /// `probability` without bin 0, padded with zeros by the range of the steps.
    padded: Vec<f64>,
    /// Logarithm of the mean arrivals per tick for each rate. Bin 0 is not used.
    log_mean: [f64; BINS],
    /// Probability of no arrival in a tick at each rate.
    silence: [f64; BINS],
    /// Probability that an outage continues for a tick.
    stays_out: f64,
    bin_pps: f64,
    tick_s: f64,
    sigma: f64,
}

impl Model {
    pub(super) fn new(p: &Parameters) -> Self {
        let bin_pps = p.max_rate_pps / (BINS - 1) as f64;
        let deviation = p.sigma * libm::sqrt(p.tick_s) / bin_pps;
        let reach = (libm::ceil(REACH * deviation) as usize).min(BINS - 1);
        let below = |bins: f64| 0.5 * libm::erfc(-bins / (deviation.max(1e-9) * SQRT_2));
        let steps = (0..=reach).map(|step| below(step as f64 + 0.5) - below(step as f64 - 0.5));
        Self {
            // "Sprout begins with all values of λ equally probable."
            probability: [1.0 / BINS as f64; BINS],
            steps: steps.collect(),
            padded: vec![0.0; BINS + 2 * reach],
            log_mean: core::array::from_fn(|bin| libm::log(bin as f64 * bin_pps * p.tick_s)),
            silence: core::array::from_fn(|bin| libm::exp(-(bin as f64 * bin_pps * p.tick_s))),
            stays_out: libm::exp(-p.outage_escape * p.tick_s),
            bin_pps,
            tick_s: p.tick_s,
            sigma: p.sigma,
        }
    }

    fn rate(&self, bin: usize) -> f64 {
        bin as f64 * self.bin_pps
    }

    /// Advances the rate by a tick.
    pub(super) fn evolve(&mut self) {
        let reach = self.steps.len() - 1;
        // Bin 0, the outage, is processed below. Probability that leaves the range of bins is lost
        // here, and compensated by the normalisation.
        self.padded[reach + 1..reach + BINS].copy_from_slice(&self.probability[1..]);
        let mut next = [0.0; BINS];
        for (step, &chance) in self.steps.iter().enumerate() {
            let from_below = &self.padded[reach - step..][..BINS];
            let from_above = &self.padded[reach + step..][..BINS];
            // A step of 0 is counted in both directions.
            let chance = if step == 0 { chance / 2.0 } else { chance };
            for ((next, below), above) in next.iter_mut().zip(from_below).zip(from_above) {
                *next += chance * (below + above);
            }
        }
        let out = self.probability[0];
        next[0] += out * self.stays_out;
        let upwards: f64 = self.steps.iter().skip(1).sum();
        if upwards > 0.0 {
            for (step, &chance) in self.steps.iter().enumerate().skip(1) {
                next[step] += out * (1.0 - self.stays_out) * chance / upwards;
            }
        }
        self.probability = next;
        self.normalise();
    }

    /// Observes `arrivals` packets in a tick during which the link always had packets to deliver.
    pub(super) fn observe(&mut self, arrivals: u32) {
        let arrivals = f64::from(arrivals.min(MOST_ARRIVALS));
        // Relative to its peak at mean = arrivals, the likelihood cannot overflow.
        let peak_mean = arrivals.min(self.rate(BINS - 1) * self.tick_s);
        let peak = if peak_mean > 0.0 { arrivals * libm::log(peak_mean) - peak_mean } else { 0.0 };
        if arrivals > 0.0 {
            self.probability[0] = 0.0;
        }
        for bin in 1..BINS {
            if self.probability[bin] > 0.0 {
                let mean = self.rate(bin) * self.tick_s;
                self.probability[bin] *= libm::exp(arrivals * self.log_mean[bin] - mean - peak);
            }
        }
        self.normalise();
    }

    /// Observes that at least `arrivals` packets could have arrived: more packets may not have been
    /// sent.
    pub(super) fn observe_at_least(&mut self, arrivals: u32) {
        let arrivals = arrivals.min(MOST_ARRIVALS);
        for bin in 0..BINS {
            let mean = self.rate(bin) * self.tick_s;
            let mut term = self.silence[bin];
            let mut fewer = 0.0;
            for i in 0..arrivals {
                let sum = fewer + term;
                // Beyond the mean terms only decrease: the others are negligible.
                if sum == fewer && f64::from(i) >= mean {
                    break;
                }
                fewer = sum;
                term *= mean / f64::from(i + 1);
            }
            self.probability[bin] *= (1.0 - fewer).max(0.0);
        }
        self.normalise();
    }

    fn normalise(&mut self) {
        let sum: f64 = self.probability.iter().sum();
        if sum > f64::MIN_POSITIVE {
            for value in &mut self.probability {
                *value /= sum;
            }
        } else {
            // No rate explains the observation: the link is faster than the model.
            self.probability = [0.0; BINS];
            self.probability[BINS - 1] = 1.0;
        }
    }

    pub(super) fn mean_pps(&self) -> f64 {
        (0..BINS).map(|bin| self.probability[bin] * self.rate(bin)).sum()
    }

    /// Returns the packets that arrive within `horizon_s` with probability 1 − `risk`. For the
    /// current rate λ their number is approximated as normal, with mean λt and variance λt + σ²t³/3
    /// of a Poisson process whose rate is a Brownian motion.
    pub(super) fn forecast(&self, horizon_s: f64, risk: f64) -> u32 {
        let drift = self.sigma * self.sigma * horizon_s * horizon_s * horizon_s / 3.0;
        let normals: [(f64, f64); BINS] = core::array::from_fn(|bin| {
            let mean = self.rate(bin) * horizon_s;
            (mean, libm::sqrt(mean + drift) * SQRT_2)
        });
        // Whether at most `count` packets arrive with probability `risk` or more.
        let at_most = |count: f64| -> bool {
            let mut sum = self.probability[0];
            for (&probability, &(mean, spread)) in self.probability.iter().zip(&normals).skip(1) {
                if probability >= NEGLIGIBLE {
                    let below = 0.5 * libm::erfc((mean - count - 0.5) / spread);
                    sum += probability * below;
                    // The faster rates add at most `below`, so that the result is usually known.
                    if sum >= risk || sum + below * ROUNDED_UP < risk {
                        break;
                    }
                }
            }
            sum >= risk
        };
        // Smallest count that is not exceeded with probability `risk`.
        let (mut low, mut high) = (0, libm::ceil(self.rate(BINS - 1) * horizon_s) as u32);
        while low < high {
            let middle = low + (high - low) / 2;
            if at_most(f64::from(middle)) { high = middle } else { low = middle + 1 }
        }
        low
    }
}

/// Probability of a bin that does not affect forecasts.
const NEGLIGIBLE: f64 = 1e-9;
/// Upper bound of rounding errors in a sum over the bins.
const ROUNDED_UP: f64 = 1.0 + 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        Model::new(&Parameters::new(&super::super::ROW.entry.defaults()))
    }

    #[test]
    fn steady_arrivals_are_learnt() {
        let mut model = model();
        for _ in 0..100 {
            model.evolve();
            model.observe(10);
        }
        // 10 in 20 ms are 500 per second.
        assert!((model.mean_pps() - 500.0).abs() < 20.0, "{}", model.mean_pps());
        assert!((model.probability.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn brownian_motion_spreads_by_sigma_and_the_root_of_time() {
        let mut model = model();
        model.probability = [0.0; BINS];
        model.probability[128] = 1.0;
        for _ in 0..10 {
            model.evolve();
        }
        let mean = model.mean_pps();
        let variance: f64 =
            (0..BINS).map(|b| model.probability[b] * (model.rate(b) - mean).powi(2)).sum();
        // 200 · √0.2 s.
        assert!((variance.sqrt() / 89.44 - 1.0).abs() < 0.01, "{}", variance.sqrt());
    }

    #[test]
    fn an_outage_lasts_a_second_on_average() {
        let mut model = model();
        model.probability = [0.0; BINS];
        model.probability[0] = 1.0;
        model.evolve();
        assert!((model.probability[0] - libm::exp(-0.02)).abs() < 1e-9);
        assert_eq!(model.forecast(0.1, 0.05), 0);
    }

    /// A certain rate of 400 per second over 100 ms: mean 40, variance 40 + 200² · 0.1³/3 = 53.3,
    /// and the 5 % quantile is 1.645 deviations below.
    #[test]
    fn the_forecast_is_the_cautious_quantile() {
        let mut model = model();
        model.probability = [0.0; BINS];
        model.probability[102] = 1.0;
        assert!((model.rate(102) - 400.0).abs() < 0.1);
        assert_eq!(model.forecast(0.1, 0.05), 28);
        assert_eq!(model.forecast(0.1, 0.5), 40);
    }

    /// The least count whose probability, summed over all bins, reaches `risk`.
    fn forecast_by_all_bins(model: &Model, horizon_s: f64, risk: f64) -> u32 {
        let drift = model.sigma * model.sigma * horizon_s * horizon_s * horizon_s / 3.0;
        let at_most = |count: u32| -> f64 {
            let bins = (1..BINS).filter(|&bin| model.probability[bin] >= NEGLIGIBLE);
            let below = bins.map(|bin| {
                let mean = model.rate(bin) * horizon_s;
                let spread = libm::sqrt(mean + drift) * SQRT_2;
                let below = 0.5 * libm::erfc((mean - f64::from(count) - 0.5) / spread);
                model.probability[bin] * below
            });
            below.fold(model.probability[0], |sum, below| sum + below)
        };
        let most = libm::ceil(model.rate(BINS - 1) * horizon_s) as u32;
        (0..most).find(|&count| at_most(count) >= risk).unwrap_or(most)
    }

    #[test]
    fn bins_that_do_not_decide_the_forecast_are_left_out() {
        let mut model = model();
        for tick in 0..200u32 {
            for (horizon_s, risk) in [(0.1, 0.05), (0.7, 0.3), (0.02, 0.9)] {
                let expected = forecast_by_all_bins(&model, horizon_s, risk);
                assert_eq!(model.forecast(horizon_s, risk), expected, "after {tick} ticks");
            }
            model.evolve();
            match tick % 7 {
                0 => model.observe_at_least(tick % 23),
                1..=3 => model.observe(tick % 19),
                _ => {}
            }
        }
    }

    #[test]
    fn a_lower_bound_leaves_higher_rates_as_they_were() {
        let mut model = model();
        model.observe_at_least(0);
        assert!((model.mean_pps() - 500.0).abs() < 1e-6);
        model.observe_at_least(10);
        let (few, many) = (model.probability[64], model.probability[230]);
        assert!(few < 0.1 * many, "{few} and {many}");
        assert!((model.probability[250] / model.probability[240] - 1.0).abs() < 0.01);
    }

    #[test]
    fn what_cannot_be_leaves_the_fastest_rate() {
        let mut model = model();
        model.probability = [0.0; BINS];
        model.probability[0] = 1.0;
        model.observe(30);
        assert!((model.mean_pps() - 1000.0).abs() < 1e-9);
    }
}
