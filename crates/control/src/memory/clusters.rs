//! What TCP-WISE remembers.

use std::collections::BTreeMap;

use super::table::Peer;

/// Initial windows to choose from: 10 to 80 packets.
pub(super) const ARMS: usize = 8;
pub(super) const STEP: u32 = 10;

/// Experience with every cluster of peers.
#[derive(Clone, Debug, Default)]
pub(super) struct Clusters(pub(super) BTreeMap<Peer, Cluster>);

/// Experience with one cluster.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cluster {
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
    pub(super) fn choose(&self, exploration: f64) -> usize {
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

    pub(super) fn learn(&mut self, arm: usize, rate_per_s: f64) {
        self.arms[arm].tries += 1;
        self.arms[arm].sum_per_s += rate_per_s;
        self.fastest_per_s = self.fastest_per_s.max(rate_per_s);
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
}
