//! What Proteus tries, and what it makes of the results (`PccVivaceSender` of the release): starting,
//! probing, moving.

use jostle_units::Time;

use super::Proteus;
use super::utility::Met;
use crate::pcc::{Interval, Trials, Tried};

/// Pairs of a probe (`kNumIntervalGroupsInProbing…`): of those who take their share, …
const PAIRS: usize = 3;
/// … and of those who yield.
const PAIRS_YIELDING: usize = 2;
/// The release counts utility per Mbit/s and changes of the rate by megabits of 2²⁰ bits, but the rates of
/// its utilities by those of 10⁶: a change is Δu/Δx times the square of the former.
const MEBIBIT: f64 = 1_048_576.0;
/// Power of the number of moves in one direction that amplifies a move (`kRateChangeAmplifyExponent`).
const AMPLIFIER: f64 = 1.2;
/// While starting, RTTs do not count that grow by less within an interval, in seconds.
const STARTING_GROWTH_S: f64 = 1e-3;

/// The present phase.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// Doubles the rate while the utility rises.
    Starting,
    /// Tries a higher and a lower rate some times, each pair in random order.
    Probing(Trials<PAIRS>),
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

/// What the latest interval came to, for plots; zeros before the first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastResult {
    pub(super) utility: f64,
    /// Gradient and deviation as they counted, and as they were.
    pub(super) gradient: f64,
    pub(super) raw_gradient: f64,
    pub(super) deviation_s: f64,
    pub(super) raw_deviation_s: f64,
    pub(super) loss: f64,
    pub(super) sent_bps: f64,
}

impl Proteus {
    /// An interval was sent: what comes next. Until its result is known the rate stays (a "non-useful"
    /// interval of the release), but for the trials of a probe.
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

    /// Begins a probe around the present rate.
    fn probe(&mut self, now: Time) {
        self.monitor.drop_measurements();
        let pairs = if self.yields { PAIRS_YIELDING } else { PAIRS };
        self.phase = Phase::Probing(Trials::new(pairs, self.random.bits()));
        self.go_on(now);
    }

    /// Leaves another phase for a probe. A hybrid flow decides now what it is until the next time.
    fn leave_for_probe(&mut self, now: Time) {
        self.rounds = 1;
        self.yields =
            self.parameters.utility.yields_above(self.rate_bps * (1.0 + self.parameters.epsilon));
        self.probe(now);
    }

    /// What the present phase was about is over: probes around a rate that was good.
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

    /// Evaluates the intervals all of whose packets are delivered or lost.
    pub(super) fn take_results(&mut self, now: Time) {
        while let Some(interval) = self.monitor.take_result() {
            let tried = (interval.rate_bps, self.evaluate(&interval));
            match &mut self.phase {
                Phase::Starting => self.started(now, tried),
                Phase::Probing(trials) => {
                    if let Some(all) = trials.take(tried) {
                        self.decide(now, all.pairs());
                    }
                }
                Phase::Moving => self.moved(now, tried),
            }
        }
    }

    pub(super) fn evaluate(&mut self, interval: &Interval) -> f64 {
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
        let utility = self.parameters.utility.of(&Met { sent_bps, loss, gradient, deviation_s });
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

    pub(super) fn started(&mut self, now: Time, tried: Tried) {
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

    /// All of a probe is known (`CanMakeDecision`). Who takes its share moves up if most pairs say so
    /// and down if all do; who yields moves if both pairs agree.
    pub(super) fn decide(&mut self, now: Time, pairs: &[[Tried; 2]]) {
        let ups = pairs.iter().filter(|pair| says_up(pair)).count();
        let upwards = if self.yields { ups == pairs.len() } else { 2 * ups > pairs.len() };
        if !upwards && ups > 0 {
            if self.rate_bps <= self.monitor.allowed(0.0) {
                return self.start_again(now);
            }
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

    /// What the utility gains per bit/s, as the pairs have it that agree with the decision, shared out
    /// over all of them (`ComputeRateChange`). The better result of the last of them is what the next is
    /// compared with.
    fn slope_of_probe(&mut self, pairs: &[[Tried; 2]]) -> f64 {
        let mut gain = 0.0;
        for pair in pairs.iter().filter(|pair| says_up(pair) == self.upwards) {
            gain += (pair[0].1 - pair[1].1).abs();
            self.latest = if pair[0].1 > pair[1].1 { pair[0] } else { pair[1] };
        }
        let apart = pairs.first().map_or(0.0, |[a, b]| (a.0 - b.0).abs());
        if apart > 0.0 { gain / pairs.len() as f64 / apart } else { 0.0 }
    }

    /// At the lowest rate nothing is left to decide: up is tried as in the beginning.
    fn start_again(&mut self, now: Time) {
        (self.rounds, self.widened) = (1, 0);
        self.start_at(now, 0.0);
    }

    /// A move was evaluated: go on in its direction, or go back and probe.
    pub(super) fn moved(&mut self, now: Time, tried: Tried) {
        let (apart, gain) = (tried.0 - self.latest.0, tried.1 - self.latest.1);
        let slope = if apart != 0.0 { gain / apart } else { 0.0 };
        let sign = if self.upwards { 1.0 } else { -1.0 };
        if sign * slope > 0.0 {
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

    /// Takes the rate further, and measures there unless that is the end of the way.
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

    /// Changes the rate. Returns false where it would fall below the lowest, which it has then.
    fn go(&mut self, change_bps: f64) -> bool {
        let wanted = self.rate_bps + change_bps;
        self.rate_bps = self.monitor.allowed(wanted);
        let above = wanted >= self.monitor.allowed(0.0);
        if !above {
            self.widened = 0;
        }
        above
    }

    /// By how many bit/s the rate changes where the utility gains `slope` per bit/s.
    pub(super) fn change(&mut self, slope: f64) -> f64 {
        let p = &self.parameters;
        // `rounds` are halved as whole numbers.
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

/// Whether the higher of two rates had the higher utility.
fn says_up([a, b]: &[Tried; 2]) -> bool {
    (a.1 > b.1) == (a.0 > b.0)
}
