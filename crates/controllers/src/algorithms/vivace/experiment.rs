//! Experiments of Vivace: starting, probing, moving.

use jostle_units::Time;

use super::Vivace;
use super::step_size::Confidence;
use crate::pcc::{MonitorInterval, RateTrials, RateUtility};

/// The current phase.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// Multiplies the rate every interval, usually by two, until the utility falls.
    Starting {
        /// The best interval so far, which is the latest one with a known result.
        best: Option<RateUtility>,
    },
    /// Tries a higher and a lower rate, twice, in random order.
    Probing(RateTrials<2>),
    /// Moves in one direction while the utility rises that way.
    Moving { previous: RateUtility, confidence: Confidence },
}

impl Phase {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Starting { .. } => "starting",
            Self::Probing(_) => "probing",
            Self::Moving { .. } => "moving",
        }
    }
}

/// Result of the latest interval, for plots; zeros before the first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastResult {
    pub(super) utility: f64,
    pub(super) gradient: f64,
    pub(super) raw_gradient: f64,
    pub(super) loss: f64,
    pub(super) sent_bps: f64,
}

impl Vivace {
    /// Starts a probe around the current rate.
    pub(super) fn probe(&mut self, now: Time) {
        self.monitor.drop_measurements();
        self.phase = Phase::Probing(RateTrials::new(2, self.random.bits()));
        self.go_on(now);
    }

    /// Chooses the next interval after one was sent.
    pub(super) fn go_on(&mut self, now: Time) {
        match &mut self.phase {
            // An interval's result is known one RTT after its end, when the next interval was sent
            // too. The rate does not double again before that.
            Phase::Starting { .. } if self.monitor.pending() < 2 => return self.speed_up(now),
            Phase::Probing(trials) => {
                if let Some(gain) = trials.begin(self.parameters.epsilon) {
                    let rate_bps = self.monitor.allowed(self.rate_bps * gain);
                    return self.measure(now, self.monitor.total_sent, rate_bps);
                }
            }
            Phase::Starting { .. } | Phase::Moving { .. } => {}
        }
        self.monitor.hold(self.rate_bps);
    }

    fn speed_up(&mut self, now: Time) {
        self.rate_bps = self.monitor.allowed(self.parameters.start_gain * self.rate_bps);
        self.measure(now, self.monitor.total_sent, self.rate_bps);
    }

    /// Evaluates the intervals whose packets are all delivered or lost.
    pub(super) fn take_results(&mut self, now: Time) {
        while let Some(interval) = self.monitor.take_finished_interval() {
            let tried = (interval.rate_bps, self.evaluate(&interval));
            match &mut self.phase {
                Phase::Starting { best } => {
                    let best = *best;
                    self.started(now, best, tried);
                }
                Phase::Probing(trials) => {
                    if let Some(all) = trials.record_result(tried) {
                        self.decide(now, all.results);
                    }
                }
                &mut Phase::Moving { previous, confidence } => {
                    self.moved(now, previous, confidence, tried);
                }
            }
        }
    }

    fn evaluate(&mut self, interval: &MonitorInterval) -> f64 {
        let p = &self.parameters;
        let starting = matches!(self.phase, Phase::Starting { .. });
        let mut loss = interval.loss();
        let mut gradient = interval.trend.filtered(p.gradient_tolerance, p.noise_gain);
        if starting {
            gradient = gradient.max(0.0);
            if loss < p.start_loss_tolerance {
                loss = 0.0;
            }
        }
        let sent_bps = interval.sent_bps(self.monitor.packet_bits);
        let utility = p.utility.of(sent_bps, loss, gradient);
        let raw_gradient = interval.trend.gradient();
        self.last = LastResult { utility, gradient, raw_gradient, loss: interval.loss(), sent_bps };
        utility
    }

    pub(super) fn started(&mut self, now: Time, best: Option<RateUtility>, tried: RateUtility) {
        if best.is_some_and(|best| tried.1 <= best.1) {
            self.fall_back();
            self.probe(now);
            return;
        }
        self.phase = Phase::Starting { best: Some(tried) };
        if !self.monitor.measuring {
            self.speed_up(now);
        }
    }

    /// Returns from the starting phase to the highest rate with a rising utility.
    pub(super) fn fall_back(&mut self) {
        if let Phase::Starting { best } = self.phase {
            let good = best.map_or(self.rate_bps / self.parameters.start_gain, |best| best.0);
            self.rate_bps = self.monitor.allowed(good);
        }
    }

    /// Ends the starting phase before its results are known if the RTT rises.
    pub(super) fn watch_start(&mut self, now: Time) {
        let limit = 1.0 + self.parameters.start_rtt_tolerance;
        if matches!(self.phase, Phase::Starting { .. })
            && self.monitor.srtt.as_secs_f64() > limit * self.srtt_at_start.as_secs_f64()
        {
            self.fall_back();
            self.probe(now);
        }
    }

    /// Returns the utility gain per unit of rate between two results; `None` for equal rates.
    fn slope(&self, a: RateUtility, b: RateUtility) -> Option<f64> {
        let apart = (a.0 - b.0) / self.parameters.utility.unit_bps();
        (apart != 0.0).then(|| (a.1 - b.1) / apart)
    }

    /// Decides after all trials of a probe: moves if both pairs agree, otherwise probes again.
    pub(super) fn decide(&mut self, now: Time, [[a, b], [c, d]]: [[RateUtility; 2]; 2]) {
        let (Some(first), Some(second)) = (self.slope(a, b), self.slope(c, d)) else {
            // Both rates are equal because of the minimum rate: only a higher rate can be tried.
            self.rate_bps = self.monitor.allowed(self.rate_bps * (1.0 + self.parameters.epsilon));
            return self.probe(now);
        };
        if (first > 0.0) != (second > 0.0) {
            return self.probe(now);
        }
        let better = if (second > 0.0) == (c.0 > d.0) { c } else { d };
        self.step(now, better, Confidence::default(), (first + second) / 2.0);
    }

    /// Processes the result of a step: continues in its direction, or returns and probes.
    pub(super) fn moved(
        &mut self,
        now: Time,
        previous: RateUtility,
        confidence: Confidence,
        tried: RateUtility,
    ) {
        let direction = tried.0 - previous.0;
        match self.slope(tried, previous) {
            Some(slope) if slope * direction > 0.0 => self.step(now, tried, confidence, slope),
            _ => {
                self.rate_bps = previous.0;
                self.probe(now);
            }
        }
    }

    /// Takes a step from `from` along `slope` and starts an interval.
    fn step(&mut self, now: Time, from: RateUtility, mut confidence: Confidence, slope: f64) {
        let change = confidence.step(&self.parameters.steps, from.0, slope);
        self.phase = Phase::Moving { previous: from, confidence };
        self.rate_bps = self.monitor.allowed(from.0 + change);
        self.measure(now, self.monitor.total_sent, self.rate_bps);
    }
}
