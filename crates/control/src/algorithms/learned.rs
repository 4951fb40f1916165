//! A policy that was learnt, read from a file: at the end of every monitor interval a small network
//! says from what was observed how to go on. What is observed and what its answers mean is written in
//! the file, too; Aurora's (Jay et al., ICML 2019) and Orca's (Abbasloo et al., SIGCOMM 2020) are
//! among what there is to choose from.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jostle_catalogue::{Entry, Kind, Parameter};
use jostle_units::Stream;

use super::cubic;
use crate::controller::Controller;
use crate::learning::{learned, parse_policy};
use crate::row::{ControllerRow, Parts, Start};
use crate::slow_start::HYSTART;

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "learned",
        summary: "asks a network that was trained, at the end of every monitor interval",
        class: "hybrid",
        based_on: &["cubic"],
        source: "Jay et al., \"A Deep Reinforcement Learning Perspective on Internet Congestion \
                 Control\", ICML 2019; Abbasloo et al., \"Classic Meets Modern: A Pragmatic \
                 Learning-Based Congestion Control for the Internet\", SIGCOMM 2020",
        parameters: &[Parameter {
            name: "policy",
            summary: "file with the policy; a small one written by hand if there is none",
            kind: Kind::File {
                default: BY_HAND,
                content: "a policy of jostle.gym",
                check: |file| parse_policy(file).map(drop),
            },
        }],
    },
    start: Start::Own,
    build,
};

const BY_HAND: &[u8] = include_bytes!("learned/by-hand.policy");

fn build(parts: Parts) -> Box<dyn Controller> {
    // A file that is no policy is refused by the registry.
    let policy = parse_policy(&parts.values.file("policy")).or_else(|_| parse_policy(BY_HAND));
    match policy {
        Ok((design, network)) => learned(design, network, || cubic_below(parts.random)),
        Err(_) => cubic_below(parts.random),
    }
}

/// Cubic as a scenario has it that says no more, for learners whose actions correct it.
pub fn cubic_below(random: Stream) -> Box<dyn Controller> {
    let defaults = BTreeMap::new();
    HYSTART
        .create(&defaults)
        .and_then(|slow_start| cubic::ROW.create(&defaults, slow_start, random))
        .unwrap_or_else(|error| unreachable!("defaults fit: {error}"))
}
