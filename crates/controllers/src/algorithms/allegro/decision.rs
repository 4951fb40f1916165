//! The three states of Allegro (NSDI 2015, §3.2): starting, decision making, rate adjusting.

use jostle_units::Time;

use super::Allegro;
use crate::pcc::{RateTrials, RateUtility};

/// The current state.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// Doubles the rate every interval until the utility falls.
    Starting { best: Option<RateUtility> },
    /// Randomised controlled trials: two intervals at r(1 + ε), two at r(1 − ε).
    Deciding { epsilon: f64, trials: RateTrials<2> },
    /// Steps of n · ε_min in one direction while the utility rises.
    Adjusting { previous: RateUtility, upwards: bool, steps: u32 },
}

impl Phase {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Starting { .. } => "starting",
            Self::Deciding { .. } => "deciding",
            Self::Adjusting { .. } => "adjusting",
        }
    }
}

impl Allegro {
    /// Starts trials around the current rate.
    pub(super) fn decide(&mut self, now: Time, epsilon: f64) {
        self.monitor.drop_measurements();
        let epsilon = epsilon.min(self.parameters.epsilon_max);
        self.phase = Phase::Deciding { epsilon, trials: RateTrials::new(2, self.random.bits()) };
        self.go_on(now);
    }

    /// Chooses the next interval after one was sent.
    pub(super) fn go_on(&mut self, now: Time) {
        match &mut self.phase {
            // The result of an interval arrives while the next one is sent. Do not start a third
            // without it.
            Phase::Starting { .. } if self.monitor.pending() < 2 => return self.double(now),
            Phase::Deciding { epsilon, trials } => {
                if let Some(gain) = trials.begin(*epsilon) {
                    let rate_bps = self.monitor.allowed(self.rate_bps * gain);
                    return self.measure(now, self.monitor.total_sent, rate_bps);
                }
            }
            Phase::Starting { .. } | Phase::Adjusting { .. } => {}
        }
        self.monitor.hold(self.rate_bps);
    }

    fn double(&mut self, now: Time) {
        self.rate_bps = self.monitor.allowed(2.0 * self.rate_bps);
        self.measure(now, self.monitor.total_sent, self.rate_bps);
    }

    /// Processes the result of the oldest interval.
    pub(super) fn take(&mut self, now: Time, tried: RateUtility) {
        match &mut self.phase {
            Phase::Starting { best } => {
                let best = *best;
                self.started(now, best, tried);
            }
            Phase::Deciding { epsilon, trials } => {
                let epsilon = *epsilon;
                if let Some(all) = trials.record_result(tried) {
                    self.conclude(now, epsilon, all.results);
                }
            }
            &mut Phase::Adjusting { previous, upwards, steps } => {
                if tried.1 > previous.1 {
                    self.adjust(now, tried, upwards, steps);
                } else {
                    self.rate_bps = previous.0;
                    self.decide(now, self.parameters.epsilon);
                }
            }
        }
    }

    pub(super) fn started(&mut self, now: Time, best: Option<RateUtility>, tried: RateUtility) {
        if best.is_some_and(|best| tried.1 <= best.1) {
            self.fall_back();
            self.decide(now, self.parameters.epsilon);
            return;
        }
        self.phase = Phase::Starting { best: Some(tried) };
        if !self.monitor.measuring {
            self.double(now);
        }
    }

    /// Returns from the starting state to the highest rate with a rising utility.
    pub(super) fn fall_back(&mut self) {
        if let Phase::Starting { best } = self.phase {
            self.rate_bps = self.monitor.allowed(best.map_or(self.rate_bps / 2.0, |best| best.0));
        }
    }

    /// Decides when all trials are known: a direction if both pairs agree, otherwise new trials
    /// with a larger ε.
    pub(super) fn conclude(&mut self, now: Time, epsilon: f64, results: [[RateUtility; 2]; 2]) {
        // Whether the higher rate of a pair won; `None` if the minimum rate made both rates equal.
        let won = |[a, b]: [RateUtility; 2]| match a.0.total_cmp(&b.0) {
            core::cmp::Ordering::Equal => None,
            core::cmp::Ordering::Greater => Some(a.1 > b.1),
            core::cmp::Ordering::Less => Some(b.1 > a.1),
        };
        let [first, last] = results;
        let (Some(first), Some(second)) = (won(first), won(last)) else {
            self.rate_bps =
                self.monitor.allowed(self.rate_bps * (1.0 + self.parameters.epsilon_max));
            return self.decide(now, self.parameters.epsilon);
        };
        if first != second {
            return self.decide(now, epsilon + self.parameters.epsilon);
        }
        // The first step starts from the winner of the last pair.
        let [a, b] = last;
        let base = if (a.0 > b.0) == second { a } else { b };
        self.adjust(now, base, second, 0);
    }

    /// r_n = r_(n−1) · (1 ± n · ε_min).
    fn adjust(&mut self, now: Time, from: RateUtility, upwards: bool, steps: u32) {
        let steps = steps.saturating_add(1);
        let change = (f64::from(steps) * self.parameters.epsilon).min(MAX_CHANGE);
        self.phase = Phase::Adjusting { previous: from, upwards, steps };
        self.rate_bps =
            self.monitor.allowed(from.0 * if upwards { 1.0 + change } else { 1.0 - change });
        self.measure(now, self.monitor.total_sent, self.rate_bps);
    }
}

/// Limits a step to between half and 1½ of the rate.
const MAX_CHANGE: f64 = 0.5;
