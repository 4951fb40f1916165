//! TCP-WISE: the initial window is learnt from how earlier connections fared.

use std::collections::BTreeMap;

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::Time;

use super::layer::{Layer, Layered};
use super::{Occasion, Peer};
use crate::controller::{AckSample, Controller, Established, Observer};
use crate::registry::MemoryRow;

pub(crate) const ROW: MemoryRow = MemoryRow {
    entry: Entry {
        name: "tcp-wise",
        summary: "chooses the initial window that made connections to such peers fastest so far",
        class: "learning",
        based_on: &[],
        source: "Nie et al., TCP WISE: One Initial Congestion Window Is Not Enough, IPCCC 2017; \
                 Auer et al., Finite-time Analysis of the Multiarmed Bandit Problem, 2002 (UCB1)",
        parameters: &[
            Parameter {
                name: "prefix",
                summary: "leading bits of the address that peers of a cluster share",
                kind: Kind::Integer { default: 24, min: 0, max: 32 },
            },
            Parameter {
                name: "exploration",
                summary: "weight of what is uncertain about a window against its mean reward",
                kind: Kind::Number { default: 0.1, min: 0.0, max: 10.0 },
            },
        ],
    },
    build: |values, inner| Box::new(Layered::new(Wise::new(values), inner)),
};

/// Initial windows to choose from: 10 to 80 packets.
const ARMS: usize = 8;
const STEP: u32 = 10;

/// Experience with every cluster of peers.
#[derive(Clone, Debug, Default)]
pub(super) struct Clusters(BTreeMap<Peer, Cluster>);

/// Experience with one cluster.
#[derive(Clone, Copy, Debug, Default)]
struct Cluster {
    arms: [Arm; ARMS],
    /// Largest rate of a connection so far, packets per second.
    fastest_per_s: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Arm {
    tries: u32,
    /// Sum of the rates of its connections, packets per second.
    sum_per_s: f64,
}

impl Cluster {
    /// UCB1: every window once, then the one whose mean reward, with a bonus for what was tried
    /// rarely, is largest. A connection's reward is its mean rate, as a part of the largest.
    fn choose(&self, exploration: f64) -> usize {
        let tries: u32 = self.arms.iter().map(|arm| arm.tries).sum();
        let value = |arm: &Arm| {
            let tried = f64::from(arm.tries);
            let bonus = libm::sqrt(2.0 * libm::log(f64::from(tries)) / tried);
            arm.sum_per_s / tried / self.fastest_per_s + exploration * bonus
        };
        if let Some(untried) = self.arms.iter().position(|arm| arm.tries == 0) {
            return untried;
        }
        let mut best = (0, f64::NEG_INFINITY);
        for (i, arm) in self.arms.iter().enumerate() {
            let value = value(arm);
            if value > best.1 {
                best = (i, value);
            }
        }
        best.0
    }

    fn learn(&mut self, arm: usize, rate_per_s: f64) {
        self.arms[arm].tries += 1;
        self.arms[arm].sum_per_s += rate_per_s;
        self.fastest_per_s = self.fastest_per_s.max(rate_per_s);
    }
}

/// A bandit over initial windows, one per cluster of peers. What a connection is rewarded for is
/// known when it closes: what it delivered, over the time since its handshake was complete.
pub struct Wise {
    prefix: u32,
    exploration: f64,
    arm: usize,
    opened_at: Time,
    delivered: u64,
}

impl Wise {
    fn new(values: &Values) -> Self {
        Self {
            prefix: values.u32("prefix"),
            exploration: values.number("exploration"),
            arm: 0,
            opened_at: Time::ZERO,
            delivered: 0,
        }
    }

    fn cluster_of(&self, peer: Peer) -> Peer {
        peer & u32::MAX.checked_shl(32 - self.prefix).unwrap_or(0)
    }

    fn window(&self) -> u32 {
        STEP * (self.arm as u32 + 1)
    }
}

impl Layer for Wise {
    fn open(&mut self, occasion: &mut Occasion<'_>) {
        let cluster = occasion.memory.clusters.0.entry(self.cluster_of(occasion.peer)).or_default();
        self.arm = cluster.choose(self.exploration);
        self.opened_at = occasion.now;
    }

    fn before_start(&mut self, established: &mut Established) {
        established.initial_window = self.window();
    }

    #[inline]
    fn on_ack(&mut self, _inner: &mut dyn Controller, ack: &AckSample) {
        self.delivered = ack.delivered;
    }

    fn close(&mut self, _inner: &dyn Controller, occasion: &mut Occasion<'_>) {
        let took_s = occasion.now.since(self.opened_at).as_secs_f64();
        if took_s > 0.0 && self.delivered > 0 {
            let cluster = self.cluster_of(occasion.peer);
            let cluster = occasion.memory.clusters.0.entry(cluster).or_default();
            cluster.learn(self.arm, self.delivered as f64 / took_s);
        }
    }

    fn observe(&self, observer: &mut dyn Observer) {
        observer.value("initial_window_packets", f64::from(self.window()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_window_is_tried_and_the_best_one_kept() {
        let mut cluster = Cluster::default();
        let mut chosen = [0; ARMS];
        for _ in 0..200 {
            let arm = cluster.choose(0.1);
            chosen[arm] += 1;
            // The fifth is best, by a quarter over its neighbours.
            cluster.learn(arm, [400.0, 500.0, 600.0, 800.0, 1000.0, 800.0, 500.0, 300.0][arm]);
        }
        assert!(chosen.iter().all(|times| *times > 0), "{chosen:?}");
        assert!(chosen[4] > 120, "{chosen:?}");
    }

    #[test]
    fn peers_of_a_prefix_are_a_cluster() {
        let wise = |prefix| Wise { prefix, ..Wise::new(&ROW.entry.defaults()) };
        assert_eq!(wise(24).cluster_of(0x0a00_0102), 0x0a00_0100);
        assert_eq!(wise(32).cluster_of(0x0a00_0102), 0x0a00_0102);
        assert_eq!(wise(0).cluster_of(0x0a00_0102), 0);
    }
}
