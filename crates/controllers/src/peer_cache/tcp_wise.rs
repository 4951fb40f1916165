//! TCP-WISE: learns the initial window from earlier connections.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::Time;

use crate::registry_rows::PeerCacheEntry;
use jostle_congestion::peer_cache::PeerAddress;
use jostle_congestion::peer_cache::PeerCacheContext;
use jostle_congestion::peer_cache::STEP;
use jostle_congestion::{AckSample, CongestionController, EstablishedEvent, StateObserver};
use jostle_congestion::{ControllerLayer, LayeredController};

pub(crate) const ROW: PeerCacheEntry = PeerCacheEntry {
    entry: RegistryEntry {
        name: "tcp-wise",
        summary: "chooses the initial window that gave the highest rate to peers of the same \
            prefix",
        class: "learning",
        based_on: &[],
        source: "Nie et al., TCP WISE: One Initial Congestion Window Is Not Enough, IPCCC 2017; \
                 Auer et al., Finite-time Analysis of the Multiarmed Bandit Problem, 2002 (UCB1)",
        parameters: &[
            Parameter::integer("prefix", 24, 0..=32)
                .summary("leading bits of the address that peers of a cluster share"),
            Parameter::number("exploration", 0.1, 0.0..=10.0)
                .summary("weight of the uncertainty of a window's mean reward"),
        ],
    },
    build: |values, inner| Box::new(LayeredController::new(TcpWise::new(values), inner)),
};

/// A multi-armed bandit over initial windows, one per cluster of peers. The reward of a connection
/// is known when it closes: the data delivered divided by the time since its handshake.
pub struct TcpWise {
    prefix: u32,
    exploration: f64,
    arm: usize,
    opened_at: Time,
    delivered: u64,
}

impl TcpWise {
    fn new(values: &ParameterValues) -> Self {
        Self {
            prefix: values.u32("prefix"),
            exploration: values.number("exploration"),
            arm: 0,
            opened_at: Time::ZERO,
            delivered: 0,
        }
    }

    fn cluster_of(&self, peer: PeerAddress) -> PeerAddress {
        peer & u32::MAX.checked_shl(32 - self.prefix).unwrap_or(0)
    }

    fn window(&self) -> u32 {
        STEP * (self.arm as u32 + 1)
    }
}

impl ControllerLayer for TcpWise {
    fn on_connection_open(&mut self, occasion: &mut PeerCacheContext<'_>) {
        let cluster = occasion.memory.clusters.0.entry(self.cluster_of(occasion.peer)).or_default();
        self.arm = cluster.choose(self.exploration);
        self.opened_at = occasion.now;
    }

    fn on_established(
        &mut self,
        inner: &mut dyn CongestionController,
        established: &EstablishedEvent,
    ) {
        inner.on_established(&EstablishedEvent { initial_window: self.window(), ..*established });
    }

    #[inline]
    fn on_ack(&mut self, inner: &mut dyn CongestionController, ack: &AckSample) {
        self.delivered = ack.delivered;
        inner.on_ack(ack);
    }

    fn on_connection_close(
        &mut self,
        _inner: &dyn CongestionController,
        occasion: &mut PeerCacheContext<'_>,
    ) {
        let took_s = occasion.now.since(self.opened_at).as_secs_f64();
        if took_s > 0.0 && self.delivered > 0 {
            let cluster = self.cluster_of(occasion.peer);
            let cluster = occasion.memory.clusters.0.entry(cluster).or_default();
            cluster.learn(self.arm, self.delivered as f64 / took_s);
        }
    }

    fn observe(&self, inner: &dyn CongestionController, observer: &mut dyn StateObserver) {
        inner.observe(observer);
        observer.record_value("initial_window_packets", f64::from(self.window()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_of_a_prefix_are_a_cluster() {
        let wise = |prefix| TcpWise { prefix, ..TcpWise::new(&ROW.entry.defaults()) };
        assert_eq!(wise(24).cluster_of(0x0a00_0102), 0x0a00_0100);
        assert_eq!(wise(32).cluster_of(0x0a00_0102), 0x0a00_0102);
        assert_eq!(wise(0).cluster_of(0x0a00_0102), 0);
    }
}
