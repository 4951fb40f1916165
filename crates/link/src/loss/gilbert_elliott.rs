//! Bursty loss: two states with one loss probability each (Gilbert 1960, Elliott 1963).

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{RandomStream, Time};

use super::Loss;
use crate::packet::DropReason;
use crate::registry::LossEntry;

/// Registry entry.
pub const ROW: LossEntry = LossEntry {
    entry: RegistryEntry {
        name: "gilbert_elliott",
        summary: "bursty loss: two states with separate loss probabilities",
        class: "per packet",
        based_on: &["independent"],
        source: "Gilbert 1960, Elliott 1963",
        parameters: &[
            Parameter::probability("good_to_bad", None)
                .summary("probability per packet of leaving the good state"),
            Parameter::probability("bad_to_good", None)
                .summary("probability per packet of leaving the bad state"),
            Parameter::probability("loss_good", Some(0.0))
                .summary("loss probability in the good state"),
            Parameter::probability("loss_bad", Some(1.0))
                .summary("loss probability in the bad state"),
        ],
    },
    build: |values, random| Box::new(GilbertElliott::new(Transitions::new(values), random)),
};

/// Parameters of [`GilbertElliott`]: probabilities per packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transitions {
    /// Probability of leaving the good state.
    pub good_to_bad: f64,
    /// Probability of leaving the bad state.
    pub bad_to_good: f64,
    /// Loss probability in the good state.
    pub loss_good: f64,
    /// Loss probability in the bad state.
    pub loss_bad: f64,
}

impl Transitions {
    /// Creates the parameters from the values of the registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            good_to_bad: values.number("good_to_bad"),
            bad_to_good: values.number("bad_to_good"),
            loss_good: values.number("loss_good"),
            loss_bad: values.number("loss_bad"),
        }
    }

    /// Returns the fraction of packets in the bad state; 0 if the state never changes.
    pub fn share_of_bad(&self) -> f64 {
        let leaving = self.good_to_bad + self.bad_to_good;
        if leaving > 0.0 { self.good_to_bad / leaving } else { 0.0 }
    }
}

/// A Markov chain with two states that takes one step per packet. It starts in its stationary
/// distribution, or in the good state if it never changes.
#[derive(Clone, Debug)]
pub struct GilbertElliott {
    transitions: Transitions,
    bad: bool,
    random: RandomStream,
}

impl GilbertElliott {
    /// Creates the chain.
    pub fn new(transitions: Transitions, mut random: RandomStream) -> Self {
        let bad = random.chance(transitions.share_of_bad());
        Self { transitions, bad, random }
    }

    /// Returns whether the chain is in the bad state for the next packet.
    pub fn is_bad(&self) -> bool {
        self.bad
    }
}

impl Loss for GilbertElliott {
    #[inline]
    fn verdict(&mut self, _: Time) -> Option<DropReason> {
        let Transitions { good_to_bad, bad_to_good, loss_good, loss_bad } = self.transitions;
        let (loss, leave) =
            if self.bad { (loss_bad, bad_to_good) } else { (loss_good, good_to_bad) };
        let lost = self.random.chance(loss);
        self.bad ^= self.random.chance(leave);
        lost.then_some(DropReason::Loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BURSTS: Transitions =
        Transitions { good_to_bad: 0.01, bad_to_good: 0.2, loss_good: 0.0, loss_bad: 1.0 };

    #[test]
    fn bursts_have_their_share_and_their_length() {
        let mut loss = GilbertElliott::new(BURSTS, RandomStream::new(4, "loss"));
        let lost: Vec<bool> = (0..400_000).map(|_| loss.verdict(Time::ZERO).is_some()).collect();
        let share = lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64;
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        // 0.01 ÷ 0.21 of all packets, 1 ÷ 0.2 packets per burst.
        assert!((share - 0.01 / 0.21).abs() < 0.002, "{share}");
        assert!((share * lost.len() as f64 / bursts - 5.0).abs() < 0.25);
    }

    #[test]
    fn it_starts_in_its_stationary_distribution() {
        let bad = (0..10_000)
            .filter(|seed| GilbertElliott::new(BURSTS, RandomStream::new(*seed, "loss")).bad)
            .count();
        assert!((400..560).contains(&bad), "{bad} of 10,000, 476 expected");
        let fixed = Transitions { good_to_bad: 0.0, bad_to_good: 0.0, ..BURSTS };
        assert!(!GilbertElliott::new(fixed, RandomStream::new(1, "loss")).bad);
    }
}
