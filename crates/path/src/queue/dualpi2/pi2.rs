//! The controller: a base probability p' that both queues derive theirs from.

use jostle_units::{Span, Stream, Time};

/// Parameters of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Parameters {
    pub target: Span,
    pub update: Span,
    pub alpha: f64,
    pub beta: f64,
    pub coupling: f64,
}

/// RFC 9332, appendix A.1: a proportional integral controller of the longer delay, without PIE's
/// scaling, since what it controls is linear in p'.
#[derive(Debug)]
pub(super) struct Pi2 {
    parameters: Parameters,
    /// p', between 0 and 1.
    pub probability: f64,
    /// The delay at the last update.
    delay_before: Span,
    next_update: Time,
}

impl Pi2 {
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            probability: 0.0,
            delay_before: Span::ZERO,
            next_update: Time::ZERO + parameters.update,
        }
    }

    /// p_CL = k · p', the probability of marks in the L4S queue; above 1 both are overloaded.
    #[inline]
    pub fn coupled(&self) -> f64 {
        self.parameters.coupling * self.probability
    }

    /// Whether a classic packet is hit: p_C = p'², as the meeting of two chances.
    #[inline]
    pub fn hits_squared(&self, random: &mut Stream) -> bool {
        random.chance(self.probability) && random.chance(self.probability)
    }

    fn update(&mut self, delay: Span) {
        let Parameters { target, alpha, beta, .. } = self.parameters;
        let seconds = Span::as_secs_f64;
        // "p' = p' + alpha * (curq - target) + beta * (curq - prevq)"
        let deviation = seconds(delay) - seconds(target);
        let trend = seconds(delay) - seconds(self.delay_before);
        self.probability = (self.probability + alpha * deviation + beta * trend).clamp(0.0, 1.0);
        self.delay_before = delay;
    }

    /// Makes up for the updates that were due by `now`: there is no timer. Heads do not change
    /// between two events, so that what they had waited by then is known.
    #[inline]
    pub fn catch_up(&mut self, now: Time, heads: [Option<Time>; 2]) {
        while self.next_update <= now {
            let period = self.parameters.update;
            let quiet = heads == [None, None] && self.probability == 0.0;
            if quiet && self.delay_before.is_zero() {
                let periods = now.since(self.next_update).as_ns() / period.as_ns();
                self.next_update += period.mul_div(periods + 1, 1);
                return;
            }
            let at = self.next_update;
            let waited = heads.map(|head| head.map_or(Span::ZERO, |since| at.since(since)));
            self.update(waited[0].max(waited[1]));
            self.next_update += period;
        }
    }
}
