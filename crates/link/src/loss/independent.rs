//! Independent loss: every packet is lost with the same probability.

use jostle_registry::{Parameter, RegistryEntry};
use jostle_units::{RandomStream, Time};

use super::Loss;
use crate::packet::DropReason;
use crate::registry::LossEntry;

/// Registry entry.
pub const ROW: LossEntry = LossEntry {
    entry: RegistryEntry {
        name: "independent",
        summary: "loses every packet with the same probability",
        class: "per packet",
        based_on: &[],
        source: "",
        parameters: &[Parameter::probability("probability", None).summary("probability of loss")],
    },
    build: |values, random| Box::new(Independent::new(values.number("probability"), random)),
};

/// Independent loss.
#[derive(Clone, Debug)]
struct Independent {
    probability: f64,
    random: RandomStream,
}

impl Independent {
    fn new(probability: f64, random: RandomStream) -> Self {
        Self { probability, random }
    }
}

impl Loss for Independent {
    #[inline]
    fn verdict(&mut self, _: Time) -> Option<DropReason> {
        self.random.chance(self.probability).then_some(DropReason::Loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_come_at_their_rate_and_without_memory() {
        let mut loss = Independent::new(0.1, RandomStream::new(2, "loss"));
        let lost: Vec<bool> = (0..200_000).map(|_| loss.verdict(Time::ZERO).is_some()).collect();
        let count = lost.iter().filter(|lost| **lost).count();
        let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count();
        assert!((19_400..20_600).contains(&count), "{count}");
        assert!((1_850..2_150).contains(&pairs), "{pairs}");
    }
}
