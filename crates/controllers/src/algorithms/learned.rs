//! A learned policy from a file: at the end of each monitor interval a small neural network
//! computes an action from the observations. The file also defines the observations and the meaning
//! of actions. The choices of Aurora (Jay et al., ICML 2019) and Orca (Abbasloo et al., SIGCOMM
//! 2020) are available.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use jostle_registry::{Parameter, RegistryEntry};
use jostle_units::RandomStream;

use super::cubic;
use crate::learning::{learned, parse_policy};
use crate::registry_rows::{ControllerEntry, ControllerInputs, SlowStartChoice};
use crate::slow_start::HYSTART;
use jostle_congestion::CongestionController;

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "learned",
        summary: "evaluates a trained neural network at the end of every monitor interval",
        class: "hybrid",
        based_on: &["cubic"],
        source: "Jay et al., \"A Deep Reinforcement Learning Perspective on Internet Congestion \
                 Control\", ICML 2019; Abbasloo et al., \"Classic Meets Modern: A Pragmatic \
                 Learning-Based Congestion Control for the Internet\", SIGCOMM 2020",
        parameters: &[Parameter::file("policy", BY_HAND, "a policy of jostle.gym", |file| {
            parse_policy(file).map(drop)
        })
        .summary("file with the policy; default: a small one written by hand")],
    },
    start: SlowStartChoice::BuiltIn,
    build,
};

const BY_HAND: &[u8] = include_bytes!("learned/by-hand.policy");

fn build(parts: ControllerInputs) -> Box<dyn CongestionController> {
    // The registry rejects a file without a valid policy.
    let policy = parse_policy(&parts.values.file("policy")).or_else(|_| parse_policy(BY_HAND));
    match policy {
        Ok((design, network)) => learned(design, network, || cubic_below(parts.random)),
        Err(_) => cubic_below(parts.random),
    }
}

/// Returns Cubic with default parameters, for learners whose actions correct it.
pub fn cubic_below(random: RandomStream) -> Box<dyn CongestionController> {
    let defaults = BTreeMap::new();
    HYSTART
        .create(&defaults)
        .and_then(|slow_start| cubic::ROW.create(&defaults, slow_start, random))
        .unwrap_or_else(|error| unreachable!("defaults fit: {error}"))
}
