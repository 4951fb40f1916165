//! Saved rewards of initial windows for TCP-WISE.

use alloc::collections::BTreeMap;

use super::peer_table::PeerAddress;

/// Number of initial windows to choose from: 10 to 80 packets.
const ARMS: usize = 8;
/// Difference between two initial windows, in packets.
pub const STEP: u32 = 10;

/// Rewards for each cluster of peers.
#[derive(Clone, Debug, Default)]
pub struct PeerClusters(pub BTreeMap<PeerAddress, Cluster>);

/// Rewards of the initial windows for one cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cluster {
    arms: [BanditArm; ARMS],
    /// Largest rate of a connection so far, packets per second.
    fastest_per_s: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct BanditArm {
    tries: u32,
    /// Sum of the rates of the connections that used this window, packets per second.
    sum_per_s: f64,
}

impl Cluster {
    /// Chooses an initial window with UCB1: each window once, then the window with the largest sum
    /// of mean reward and a bonus for rarely tried windows. The reward of a connection is its mean
    /// rate divided by the largest rate so far.
    pub fn choose(&self, exploration: f64) -> usize {
        let tries: u32 = self.arms.iter().map(|arm| arm.tries).sum();
        let value = |arm: &BanditArm| {
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

    /// Adds the rate of a connection that used the initial window of index `arm`.
    pub fn learn(&mut self, arm: usize, rate_per_s: f64) {
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

    /// UCB1 after 17 connections: 10 of the third window at the largest rate, 1 of each other window at
    /// 5/6 of it. 1 + x √(2 ln 17 / 10) is less than 5/6 + x √(2 ln 17) from x = 0.1024 on.
    #[test]
    fn the_exploration_weight_decides_when_a_rare_window_is_tried() {
        let mut cluster = Cluster::default();
        for arm in 0..ARMS {
            cluster.learn(arm, if arm == 2 { 120.0 } else { 100.0 });
        }
        for _ in 0..9 {
            cluster.learn(2, 120.0);
        }
        assert_eq!([0.0, 0.102, 0.103, 1.0].map(|x| cluster.choose(x)), [2, 2, 0, 0]);
    }
}
