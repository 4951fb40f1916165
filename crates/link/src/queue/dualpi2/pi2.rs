//! Controller of the base probability p', from which both queues derive their probabilities.

use jostle_units::{RandomStream, Span, Time};

/// Parameters of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Parameters {
    pub target: Span,
    pub update: Span,
    pub alpha: f64,
    pub beta: f64,
    pub coupling: f64,
}

/// Proportional-integral controller of the longer delay (RFC 9332 §A.1). It does not need
/// the scaling of PIE, because the controlled quantity is linear in p'.
#[derive(Debug)]
pub(super) struct Pi2 {
    parameters: Parameters,
    /// p', between 0 and 1.
    pub probability: f64,
    /// Delay at the previous update.
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

    /// Returns p_CL = k · p', the marking probability of the L4S queue; above 1 both queues are
    /// overloaded.
    #[inline]
    pub fn coupled(&self) -> f64 {
        self.parameters.coupling * self.probability
    }

    /// Decides on a classic packet with p_C = p'², as two independent decisions with p'.
    #[inline]
    pub fn hits_squared(&self, random: &mut RandomStream) -> bool {
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

    /// Makes the updates that were due by `now`, because there is no timer. The heads do not change
    /// between two events, so their delay at each update is known.
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
