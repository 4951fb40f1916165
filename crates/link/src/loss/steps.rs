//! Loss with a piecewise constant probability.

use jostle_units::{RandomStream, Time};

use super::Loss;
use crate::error::{self, Error};
use crate::packet::DropReason;

/// Independent loss with a piecewise constant probability.
#[derive(Debug)]
pub struct Steps {
    steps: Vec<(Time, f64)>,
    /// Current step, its probability and its end.
    current: usize,
    probability: f64,
    until: Time,
    random: RandomStream,
}

impl Steps {
    /// Creates the loss from times and the probabilities that apply from then on. The first time
    /// must be 0, and times must increase.
    ///
    /// # Errors
    /// If there is no step, the first is not at 0, they are not in order, or a probability is out
    /// of range.
    pub fn new(steps: Vec<(Time, f64)>, random: RandomStream) -> Result<Self, Error> {
        let (first, probability) = *steps.first().ok_or(Error::Empty("loss steps"))?;
        if first != Time::ZERO {
            return Err(Error::Start("loss steps"));
        }
        if let Some(index) = steps.windows(2).position(|pair| pair[0].0 >= pair[1].0) {
            return Err(Error::Order("loss steps", index + 1));
        }
        for (_, probability) in &steps {
            error::probability("the probability of a step of losses", *probability)?;
        }
        let until = steps.get(1).map_or(Time::NEVER, |step| step.0);
        Ok(Self { steps, current: 0, probability, until, random })
    }

    #[cold]
    fn step(&mut self) {
        self.current += 1;
        self.probability = self.steps[self.current].1;
        self.until = self.steps.get(self.current + 1).map_or(Time::NEVER, |step| step.0);
    }
}

impl Loss for Steps {
    #[inline]
    fn verdict(&mut self, now: Time) -> Option<DropReason> {
        while now >= self.until && self.until != Time::NEVER {
            self.step();
        }
        self.random.chance(self.probability).then_some(DropReason::Loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jostle_units::Span;

    fn steps(list: &[(u64, f64)]) -> Result<Steps, Error> {
        let list = list.iter().map(|(ms, p)| (Time::ZERO + Span::from_ms(*ms), *p)).collect();
        Steps::new(list, RandomStream::new(3, "loss"))
    }

    #[test]
    fn each_step_has_its_own_share() {
        let mut loss = steps(&[(0, 0.0), (100, 0.5), (200, 0.01), (300, 1.0)]).unwrap();
        // 100,000 packets a step, and two that meet its bounds.
        let mut shares = Vec::new();
        for step in 0..4u64 {
            let lost = (0..100_000u64)
                .filter(|us| loss.verdict(Time::from_ns(step * 100_000_000 + us * 1_000)).is_some())
                .count();
            shares.push(lost as f64 / 100_000.0);
        }
        assert_eq!((shares[0], shares[3]), (0.0, 1.0));
        assert!((shares[1] - 0.5).abs() < 0.005 && (shares[2] - 0.01).abs() < 0.001, "{shares:?}");
    }

    #[test]
    fn lists_that_make_no_sense_are_refused() {
        for list in [&[][..], &[(1, 0.5)], &[(0, 0.5), (0, 0.1)], &[(0, 1.5)]] {
            assert!(steps(list).is_err(), "{list:?}");
        }
    }
}
