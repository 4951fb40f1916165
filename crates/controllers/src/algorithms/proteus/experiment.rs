//! Experiments of Proteus (`PccVivaceSender` of the release): starting, probing, moving.

use jostle_units::Time;

use super::Proteus;
use super::utility::IntervalStats;
use crate::pcc::{MonitorInterval, RateTrials, RateUtility};

/// Pairs of trials in a probe of a primary flow (`kNumIntervalGroupsInProbing…`).
const PAIRS: usize = 3;
/// Pairs of trials in a probe of a scavenger.
const PAIRS_YIELDING: usize = 2;
/// The release computes gradients per Mbit/s and rate changes in megabits of 2²⁰ bits, but the
/// rates in its utilities in megabits of 10⁶ bits: a change is Δu/Δx times the square of 2²⁰.
const MEBIBIT: f64 = 1_048_576.0;
/// Exponent of the number of moves in one direction that amplifies a move
/// (`kRateChangeAmplifyExponent`).
const AMPLIFIER: f64 = 1.2;
/// While starting, RTT increases below this value within an interval are ignored, in seconds.
const STARTING_GROWTH_S: f64 = 1e-3;

/// The current phase.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// Doubles the rate while the utility rises.
    Starting,
    /// Tries a higher and a lower rate several times, each pair in random order.
    Probing(RateTrials<PAIRS>),
    /// Moves in one direction while the utility rises that way (`DECISION_MADE`).
    Moving,
}

impl Phase {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Probing(_) => "probing",
            Self::Moving => "moving",
        }
    }
}

/// Result of the latest interval, for plots; zeros before the first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastResult {
    pub(super) utility: f64,
    /// Filtered and raw values of gradient and deviation.
    pub(super) gradient: f64,
    pub(super) raw_gradient: f64,
    pub(super) deviation_s: f64,
    pub(super) raw_deviation_s: f64,
    pub(super) loss: f64,
    pub(super) sent_bps: f64,
}

impl Proteus {
    /// Chooses the next interval after one was sent. The rate stays the same until its result is
    /// known (a "non-useful" interval of the release), except during the trials of a probe.
    pub(super) fn go_on(&mut self, now: Time) {
        if let Phase::Probing(trials) = &mut self.phase
            && let Some(factor) = trials.begin(self.parameters.epsilon)
        {
            let rate_bps = self.monitor.allowed(self.rate_bps * factor);
            self.measure(now, self.monitor.total_sent, rate_bps);
        } else {
            self.monitor.hold(self.rate_bps);
        }
    }

    /// Starts a probe around the current rate.
    fn probe(&mut self, now: Time) {
        self.monitor.drop_measurements();
        let pairs = if self.yields { PAIRS_YIELDING } else { PAIRS };
        self.phase = Phase::Probing(RateTrials::new(pairs, self.random.bits()));
        self.go_on(now);
    }

    /// Changes to a probe from another phase. A hybrid flow decides at this time whether it yields.
    fn leave_for_probe(&mut self, now: Time) {
        self.rounds = 1;
        self.yields =
            self.parameters.utility.yields_above(self.rate_bps * (1.0 + self.parameters.epsilon));
        self.probe(now);
    }

    /// Ends the current phase and probes around the last good rate.
    pub(super) fn leave(&mut self, now: Time) {
        match self.phase {
            Phase::Starting => {
                self.rate_bps = self.monitor.allowed(0.5 * self.rate_bps);
                self.leave_for_probe(now);
            }
            Phase::Moving => self.leave_for_probe(now),
            Phase::Probing(_) => self.probe(now),
        }
    }

    /// Evaluates the intervals whose packets are all delivered or lost.
    pub(super) fn take_results(&mut self, now: Time) {
        while let Some(interval) = self.monitor.take_finished_interval() {
            let tried = (interval.rate_bps, self.evaluate(&interval));
            match &mut self.phase {
                Phase::Starting => self.started(now, tried),
                Phase::Probing(trials) => {
                    if let Some(all) = trials.record_result(tried) {
                        self.decide(now, all.pairs());
                    }
                }
                Phase::Moving => self.moved(now, tried),
            }
        }
    }

    pub(super) fn evaluate(&mut self, interval: &MonitorInterval) -> f64 {
        let counts = self.tolerance.judge(&interval.trend);
        let (raw_gradient, raw_deviation_s) =
            (interval.trend.gradient(), interval.trend.deviation_s());
        let mut gradient = if counts.gradient { raw_gradient } else { 0.0 };
        let mut deviation_s = if counts.deviation { raw_deviation_s } else { 0.0 };
        if matches!(self.phase, Phase::Starting) {
            let length = interval.end.unwrap_or(interval.start).since(interval.start);
            if gradient.abs() * length.as_secs_f64() < STARTING_GROWTH_S {
                gradient = 0.0;
            }
            deviation_s = 0.0;
        }
        let (sent_bps, loss) = (interval.sent_bps(self.monitor.packet_bits), interval.loss());
        let utility =
            self.parameters.utility.of(&IntervalStats { sent_bps, loss, gradient, deviation_s });
        self.last = LastResult {
            utility,
            gradient,
            raw_gradient,
            deviation_s,
            raw_deviation_s,
            loss,
            sent_bps,
        };
        utility
    }

    pub(super) fn started(&mut self, now: Time, tried: RateUtility) {
        if tried.1 > self.latest.1 {
            self.latest = tried;
            self.start_at(now, 2.0 * self.rate_bps);
        } else {
            self.leave(now);
        }
    }

    fn start_at(&mut self, now: Time, rate_bps: f64) {
        self.monitor.drop_measurements();
        self.phase = Phase::Starting;
        self.rate_bps = self.monitor.allowed(rate_bps);
        self.measure(now, self.monitor.total_sent, self.rate_bps);
    }

    /// Decides after all trials of a probe (`CanMakeDecision`). A primary flow increases its rate
    /// if most pairs agree on it, and reduces it if all do. A scavenger moves if both pairs agree.
    pub(super) fn decide(&mut self, now: Time, pairs: &[[RateUtility; 2]]) {
        let ups = pairs.iter().filter(|pair| says_up(pair)).count();
        let upwards = if self.yields { ups == pairs.len() } else { 2 * ups > pairs.len() };
        if !upwards && ups > 0 {
            if self.rate_bps <= self.monitor.allowed(0.0) {
                return self.start_again(now);
            }
            return self.probe(now);
        }
        if upwards && self.is_unused() {
            return self.probe(now);
        }
        self.upwards = upwards;
        let sign = if upwards { 1.0 } else { -1.0 };
        self.rate_bps *= 1.0 + sign * self.parameters.epsilon;
        (self.rounds, self.widened) = (1, 0);
        let slope = self.slope_of_probe(pairs);
        let change = self.change(slope);
        self.step(now, sign * change);
        if matches!(self.phase, Phase::Moving) && self.rate_bps <= self.monitor.allowed(0.0) {
            self.start_again(now);
        }
    }

    /// Returns the gain of utility per bit/s of the pairs that agree with the decision, averaged
    /// over all pairs (`ComputeRateChange`). The better result of the last of these pairs becomes
    /// the reference of the next comparison.
    fn slope_of_probe(&mut self, pairs: &[[RateUtility; 2]]) -> f64 {
        let mut gain = 0.0;
        for pair in pairs.iter().filter(|pair| says_up(pair) == self.upwards) {
            gain += (pair[0].1 - pair[1].1).abs();
            self.latest = if pair[0].1 > pair[1].1 { pair[0] } else { pair[1] };
        }
        let apart = pairs.first().map_or(0.0, |[a, b]| (a.0 - b.0).abs());
        if apart > 0.0 { gain / pairs.len() as f64 / apart } else { 0.0 }
    }

    /// At the minimum rate no decision is possible: increase the rate as in the starting phase.
    fn start_again(&mut self, now: Time) {
        (self.rounds, self.widened) = (1, 0);
        self.start_at(now, 0.0);
    }

    /// Processes the result of a move: continues in its direction, or returns and probes.
    pub(super) fn moved(&mut self, now: Time, tried: RateUtility) {
        let (apart, gain) = (tried.0 - self.latest.0, tried.1 - self.latest.1);
        let slope = if apart != 0.0 { gain / apart } else { 0.0 };
        let sign = if self.upwards { 1.0 } else { -1.0 };
        if self.upwards && self.is_unused() {
            self.leave_for_probe(now);
        } else if sign * slope > 0.0 {
            self.rounds += 1;
            let change = self.change(slope.abs());
            self.latest = tried;
            self.step(now, sign * change);
        } else {
            self.rounds = 1;
            let change = self.change(slope.abs());
            self.go(-sign * change);
            self.leave_for_probe(now);
        }
    }

    /// Returns whether less than half of the rate was sent in the last interval. Then the
    /// application limits it, and a utility says nothing for a higher rate (RFC 9002 §7.8).
    fn is_unused(&self) -> bool {
        self.last.sent_bps < 0.5 * self.rate_bps
    }

    /// Changes the rate and starts an interval, unless the minimum rate is reached.
    fn step(&mut self, now: Time, change_bps: f64) {
        if self.go(change_bps) {
            self.phase = Phase::Moving;
            self.monitor.drop_measurements();
            self.measure(now, self.monitor.total_sent, self.rate_bps);
        } else {
            self.rounds = 1;
            self.probe(now);
        }
    }

    /// Changes the rate. Returns false if it would fall below the minimum, which is then set.
    fn go(&mut self, change_bps: f64) -> bool {
        let wanted = self.rate_bps + change_bps;
        self.rate_bps = self.monitor.allowed(wanted);
        let above = wanted >= self.monitor.allowed(0.0);
        if !above {
            self.widened = 0;
        }
        above
    }

    /// Returns the change of the rate in bit/s for a gain of `slope` per bit/s.
    pub(super) fn change(&mut self, slope: f64) -> f64 {
        let p = &self.parameters;
        // `rounds` is halved as an integer.
        let amplifier = libm::pow(f64::from(self.rounds.div_ceil(2)), AMPLIFIER);
        let wanted = amplifier * slope * MEBIBIT * MEBIBIT;
        let bound = (p.bound + p.bound_step * f64::from(self.widened)) * self.rate_bps;
        let bounded = if wanted > bound {
            self.widened = self.widened.saturating_add(1);
            bound
        } else {
            self.widened = self.widened.saturating_sub(1);
            wanted
        };
        bounded.max(p.min_change_bps)
    }
}

/// Returns whether the higher of two rates had the higher utility.
fn says_up([a, b]: &[RateUtility; 2]) -> bool {
    (a.1 > b.1) == (a.0 > b.0)
}
