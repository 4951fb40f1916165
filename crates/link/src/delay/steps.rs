//! Piecewise constant delay.

use jostle_registry::RegistryEntry;
use jostle_units::{Span, Time};

use super::Delay;
use crate::error::Error;

/// Registry entry.
pub const ENTRY: RegistryEntry = RegistryEntry {
    name: "steps",
    summary: "list of times and the delays from then on",
    class: "synthetic",
    based_on: &["constant"],
    source: "",
    parameters: &[],
};

/// A piecewise constant delay. After a decrease, packets wait until those sent before it have
/// arrived.
#[derive(Clone, Debug)]
pub struct Steps {
    steps: Vec<(Time, Span)>,
    /// Current step, its delay and its end.
    current: usize,
    delay: Span,
    until: Time,
}

impl Steps {
    /// Creates a delay from times and the delays that apply from then on. The first time must be 0,
    /// and times must increase.
    ///
    /// # Errors
    /// If there is no step, the first is not at 0, or they are not in order.
    pub fn new(steps: Vec<(Time, Span)>) -> Result<Self, Error> {
        let (first, delay) = *steps.first().ok_or(Error::Empty("delay steps"))?;
        if first != Time::ZERO {
            return Err(Error::Start("delay steps"));
        }
        if let Some(index) = steps.windows(2).position(|pair| pair[0].0 >= pair[1].0) {
            return Err(Error::Order("delay steps", index + 1));
        }
        let until = steps.get(1).map_or(Time::NEVER, |step| step.0);
        Ok(Self { steps, current: 0, delay, until })
    }

    #[cold]
    fn step(&mut self) {
        self.current += 1;
        self.delay = self.steps[self.current].1;
        self.until = self.steps.get(self.current + 1).map_or(Time::NEVER, |step| step.0);
    }
}

impl Delay for Steps {
    #[inline]
    fn delay(&mut self, now: Time) -> Span {
        while now >= self.until && self.until != Time::NEVER {
            self.step();
        }
        self.delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_holds_from_its_time_on() {
        let at = |ms| Time::ZERO + Span::from_ms(ms);
        let list = vec![
            (at(0), Span::from_ms(20)),
            (at(10), Span::from_ms(5)),
            (at(11), Span::from_ms(6)),
        ];
        let mut delay = Steps::new(list).unwrap();
        assert_eq!(delay.delay(Time::from_ns(9_999_999)), Span::from_ms(20));
        assert_eq!(delay.delay(at(10)), Span::from_ms(5));
        assert_eq!(delay.delay(at(500)), Span::from_ms(6));
        assert!(Steps::new(vec![]).is_err());
        assert!(Steps::new(vec![(at(1), Span::ZERO)]).is_err());
    }
}
