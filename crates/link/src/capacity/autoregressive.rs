//! Random rate with correlation in time: steps of an AR(1) process.
//!
//! The rate of step k is mean + deviation × z(k), limited to the bounds. z(0) is standard normal,
//! and z(k + 1) = φ z(k) + √(1 − φ²) × (a new standard normal number) with φ =
//! e^(−step/correlation). This is an Ornstein–Uhlenbeck process, sampled once per step. z is
//! standard normal at every step and has the correlation e^(−Δt/correlation). The rate has the same
//! correlation, and the given mean and deviation except for the effect of the bounds. If the
//! correlation time is much longer than a run, the rate is constant within a run.
//!
//! Steps are drawn in order when they are needed, and removed when they have passed: the rate is a
//! function of time and seed, independent of the traffic.

use std::collections::VecDeque;

use jostle_registry::{Parameter, RegistryEntry};
use jostle_units::{RandomStream, Rate, Span, Time};

use super::Capacity;
use super::serialiser::{Serialiser, finish_across};
use crate::error::Error;
use crate::parameters::{FASTEST, LONGEST};

/// Minimum rate: a packet of 65,535 bytes takes 66 s, which is 66,000 of the shortest steps.
const SLOWEST: Rate = Rate::from_bps(8_000);

const fn rate(name: &'static str, default: Rate, min: Rate) -> Parameter {
    Parameter::rate(name, default, min..=FASTEST)
}

const fn span(name: &'static str, default: Span) -> Parameter {
    Parameter::span(name, default, Span::from_ms(1)..=LONGEST)
}

/// Registry entry.
pub const ENTRY: RegistryEntry = RegistryEntry {
    name: "autoregressive",
    summary: "normally distributed steps, each correlated with the previous one (AR(1))",
    class: "stochastic",
    based_on: &["steps"],
    source: "an Ornstein-Uhlenbeck process, sampled once per step",
    parameters: &[
        rate("mean", Rate::from_mbps(100), SLOWEST).summary("mean of the rate"),
        rate("deviation", Rate::from_mbps(10), Rate::ZERO)
            .summary("standard deviation of the rate"),
        span("correlation", Span::from_secs(10))
            .summary("time after which the rate is nearly independent of its earlier value"),
        span("step", Span::from_ms(625))
            .summary("time between rate changes; default: a 16th of the correlation"),
        rate("min", Rate::from_mbps(70), SLOWEST).summary(
            "lower bound; default: the mean minus 3 deviations, at least a tenth of the mean",
        ),
        rate("max", Rate::from_mbps(130), SLOWEST)
            .summary("upper bound; default: the mean plus 3 deviations"),
    ],
};

/// Parameters of the process: rates in bit/s, positive times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoregressiveParameters {
    /// Mean of the rate, before the bounds are applied.
    pub mean: Rate,
    /// Standard deviation of the rate.
    pub deviation: Rate,
    /// Time constant of the correlation.
    pub correlation: Span,
    /// Duration of a step.
    pub step: Span,
    /// Lower bound, above 0.
    pub min: Rate,
    /// Upper bound.
    pub max: Rate,
}

/// Random rates of successive steps.
#[derive(Clone, Debug)]
struct AutoregressiveDraws {
    process: AutoregressiveParameters,
    /// Correlation of adjacent steps, and standard deviation of the innovation.
    kept: f64,
    new: f64,
    /// z of the step that is drawn next.
    z: f64,
    random: RandomStream,
}

impl AutoregressiveDraws {
    fn new(process: AutoregressiveParameters, mut random: RandomStream) -> Result<Self, Error> {
        for (name, span) in [
            ("the correlation of a rate", process.correlation),
            ("the step of a rate", process.step),
        ] {
            if span.is_zero() {
                return Err(Error::Zero(name));
            }
        }
        if process.min == Rate::ZERO {
            return Err(Error::Zero("the lower bound of a rate"));
        }
        if process.max < process.min {
            return Err(Error::Order("the bounds of a rate", 1));
        }
        let kept = libm::exp(-(process.step.as_ns() as f64) / process.correlation.as_ns() as f64);
        let z = random.normal();
        Ok(Self { process, kept, new: libm::sqrt(1.0 - kept * kept), z, random })
    }

    fn next(&mut self) -> Rate {
        let AutoregressiveParameters { mean, deviation, min, max, .. } = self.process;
        let wanted_bps = mean.as_bps() as f64 + deviation.as_bps() as f64 * self.z;
        self.z = self.kept * self.z + self.new * self.random.normal();
        Rate::from_bps((wanted_bps.max(0.0) as u64).clamp(min.as_bps(), max.as_bps()))
    }
}

/// Capacity with random steps.
#[derive(Clone, Debug)]
pub struct Autoregressive {
    draws: AutoregressiveDraws,
    step: Span,
    /// Current step: start, end, and bytes offered before it.
    from: Time,
    until: Time,
    offered_bytes: f64,
    sender: Serialiser,
    /// Rates of later steps, as far as the transmission of a packet has needed them.
    ahead: VecDeque<Rate>,
}

impl Autoregressive {
    /// Creates the capacity from `process`.
    ///
    /// # Errors
    /// If a time or the lower bound is zero, or the upper bound is below it.
    pub fn new(process: AutoregressiveParameters, random: RandomStream) -> Result<Self, Error> {
        let mut draws = AutoregressiveDraws::new(process, random)?;
        let sender = Serialiser::new(draws.next());
        Ok(Self {
            draws,
            step: process.step,
            from: Time::ZERO,
            until: Time::ZERO + process.step,
            offered_bytes: 0.0,
            sender,
            ahead: VecDeque::new(),
        })
    }

    /// Returns start and rate of every step that begins before `until`, starting at 0.
    pub fn before(mut self, until: Time) -> Vec<(Time, Rate)> {
        let mut steps = Vec::new();
        while self.from < until {
            steps.push((self.from, Rate::from_bps(self.sender.rate_bps())));
            self.advance(self.until);
        }
        steps
    }

    /// Advances to the step that contains `now`.
    #[cold]
    fn advance(&mut self, now: Time) {
        while now >= self.until && self.until != Time::NEVER {
            self.offered_bytes += self.bytes_until(self.until);
            let rate = self.ahead.pop_front().unwrap_or_else(|| self.draws.next());
            self.sender = Serialiser::new(rate);
            self.from = self.until;
            self.until += self.step;
        }
    }

    /// Returns the bytes that the current step offers until `now`.
    fn bytes_until(&self, now: Time) -> f64 {
        self.sender.rate_bps() as f64 / 8.0 * now.since(self.from).as_secs_f64()
    }

    /// Returns the finish time of a packet that is not sent completely within the current step.
    #[cold]
    fn finish_later(&mut self, start: Time, size_bytes: u32) -> Time {
        let first = (Rate::from_bps(self.sender.rate_bps()), self.until);
        let mut until = self.until;
        let mut reached = 0;
        finish_across(start, size_bytes, first, || {
            if reached == self.ahead.len() {
                self.ahead.push_back(self.draws.next());
            }
            reached += 1;
            until += self.step;
            (self.ahead[reached - 1], until)
        })
    }
}

impl Capacity for Autoregressive {
    #[inline]
    fn finish(&mut self, start: Time, size_bytes: u32) -> Time {
        if start >= self.until {
            self.advance(start);
        }
        let finish = self.sender.finish(start, size_bytes);
        if finish <= self.until { finish } else { self.finish_later(start, size_bytes) }
    }

    fn offered_bytes(&mut self, now: Time) -> f64 {
        self.advance(now);
        self.offered_bytes + self.bytes_until(now)
    }

    fn next_change(&mut self, now: Time) -> Time {
        self.advance(now);
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN_MBPS: f64 = 100.0;
    const DEVIATION_MBPS: f64 = 20.0;

    /// 100 ± 20 Mbit/s, between `min` and `max`.
    fn process(
        correlation_ms: u64,
        step_ms: u64,
        (min, max): (u64, u64),
    ) -> AutoregressiveParameters {
        AutoregressiveParameters {
            mean: Rate::from_mbps(MEAN_MBPS as u64),
            deviation: Rate::from_mbps(DEVIATION_MBPS as u64),
            correlation: Span::from_ms(correlation_ms),
            step: Span::from_ms(step_ms),
            min: Rate::from_mbps(min),
            max: Rate::from_mbps(max),
        }
    }

    fn capacity(process: AutoregressiveParameters, seed: u64) -> Autoregressive {
        Autoregressive::new(process, RandomStream::new(seed, "capacity")).unwrap()
    }

    fn mbps(process: AutoregressiveParameters, seed: u64, steps: u64) -> Vec<f64> {
        let end = Time::ZERO + process.step.mul_div(steps, 1);
        let steps = capacity(process, seed).before(end);
        steps.iter().map(|(_, rate)| rate.as_bps() as f64 / 1e6).collect()
    }

    fn moments(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        (mean, libm::sqrt(squares / values.len() as f64))
    }

    /// Bounds that are never met: 5 deviations away.
    const FAR: (u64, u64) = (1, 1_000);

    #[test]
    fn mean_and_deviation_are_those_of_the_process() {
        // 400,000 steps of 1/4 correlation: Σρ = coth(1/8) = 8.04, so as many as 49,700 independent
        // ones. Standard errors: 20 / √49,700 = 0.09 of the mean; of the deviation, whose
        // correlations are squared (Σρ² = coth(1/4) = 4.1), 20 / √(2 × 97,800) = 0.045.
        let (mean, deviation) = moments(&mbps(process(1_000, 250, FAR), 1, 400_000));
        assert!((mean - MEAN_MBPS).abs() < 0.36, "{mean}");
        assert!((deviation - DEVIATION_MBPS).abs() < 0.18, "{deviation}");
    }

    #[test]
    fn the_first_step_has_the_same_distribution() {
        let first: Vec<f64> =
            (0..20_000).map(|seed| mbps(process(1_000, 250, FAR), seed, 1)[0]).collect();
        let (mean, deviation) = moments(&first);
        // Standard errors 0.14 and 0.1.
        assert!((mean - MEAN_MBPS).abs() < 0.57, "{mean}");
        assert!((deviation - DEVIATION_MBPS).abs() < 0.4, "{deviation}");
    }

    #[test]
    fn the_correlation_decays_exponentially() {
        for (correlation_ms, step_ms) in [(1_000, 50), (1_000, 2_000), (37, 5)] {
            let seen = mbps(process(correlation_ms, step_ms, FAR), 3, 1_000_000);
            let (mean, deviation) = moments(&seen);
            for lag in [1usize, 3, 10, 60] {
                let pairs = seen.iter().zip(&seen[lag..]);
                let products = pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
                let measured = products / (seen.len() - lag) as f64 / deviation.powi(2);
                let expected = libm::exp(-((lag as u64 * step_ms) as f64) / correlation_ms as f64);
                // At most √(Σρ² / n) = √(20 / 10⁶) = 0.0045 of standard error.
                assert!((measured - expected).abs() < 0.018, "lag {lag}: {measured}, {expected}");
            }
        }
    }

    #[test]
    fn bounds_take_what_lies_beyond_them_and_nothing_else() {
        // One deviation below the mean and two above it.
        let seen = mbps(process(1_000, 1_000, (80, 140)), 4, 200_000);
        let share = |bound: f64| {
            seen.iter().filter(|mbps| **mbps == bound).count() as f64 / seen.len() as f64
        };
        assert!((share(80.0) - 0.158_655).abs() < 0.005, "{}", share(80.0));
        assert!((share(140.0) - 0.022_750).abs() < 0.002, "{}", share(140.0));
        // A normal variable censored at a = −1 and b = 2: a Φ(a) + b (1 − Φ(b)) + φ(a) − φ(b) = 0.0748.
        let (mean, _) = moments(&seen);
        assert!((mean - (MEAN_MBPS + 0.074_8 * DEVIATION_MBPS)).abs() < 0.2, "{mean}");
        let free = mbps(process(1_000, 1_000, FAR), 4, 200_000);
        assert!(free.iter().zip(&seen).all(|(free, kept)| free.clamp(80.0, 140.0) == *kept));
    }

    #[test]
    fn a_correlation_far_beyond_the_run_is_a_rate_per_run() {
        let seen = mbps(process(1_000_000_000, 1_000, FAR), 5, 100);
        assert!(seen.iter().all(|mbps| (mbps - seen[0]).abs() < 1.0), "{seen:?}");
    }

    /// As steps that are known beforehand, whatever is sent and asked for in between.
    #[test]
    fn packets_meet_the_steps_that_are_drawn_beforehand() {
        for seed in 0..20 {
            let process =
                AutoregressiveParameters { min: Rate::from_bps(8_000), ..process(30, 1, FAR) };
            let process = AutoregressiveParameters { deviation: Rate::from_mbps(80), ..process };
            let list = capacity(process, seed).before(Time::ZERO + Span::from_secs(400));
            let mut known = super::super::Steps::new(list).unwrap();
            let mut drawn = capacity(process, seed);
            let mut random = RandomStream::new(seed, "packets");
            let mut now = Time::ZERO;
            for _ in 0..20_000 {
                let size_bytes = 1 + random.below(9_000) as u32;
                let finish = drawn.finish(now, size_bytes);
                assert_eq!(finish, known.finish(now, size_bytes), "seed {seed} at {now}");
                if random.chance(0.1) {
                    let (ours, theirs) = (drawn.offered_bytes(now), known.offered_bytes(now));
                    assert!((ours - theirs).abs() < 1e-9 * theirs + 1e-6, "{ours}, {theirs}");
                }
                let pause_ns = if random.chance(0.2) { random.below(30_000_000) } else { 0 };
                now = finish + Span::from_ns(pause_ns);
            }
            assert!(now > Time::ZERO + Span::from_secs(10), "{now}");
        }
    }

    #[test]
    fn an_impossible_process_is_refused() {
        let sound = process(1_000, 100, FAR);
        let refused =
            |process| Autoregressive::new(process, RandomStream::new(1, "capacity")).unwrap_err();
        assert_eq!(
            refused(AutoregressiveParameters { step: Span::ZERO, ..sound }),
            Error::Zero("the step of a rate")
        );
        assert_eq!(
            refused(AutoregressiveParameters { correlation: Span::ZERO, ..sound }),
            Error::Zero("the correlation of a rate")
        );
        assert_eq!(
            refused(AutoregressiveParameters { min: Rate::ZERO, ..sound }),
            Error::Zero("the lower bound of a rate")
        );
        assert_eq!(
            refused(AutoregressiveParameters { max: Rate::from_bps(1), ..sound }),
            Error::Order("the bounds of a rate", 1)
        );
    }
}
