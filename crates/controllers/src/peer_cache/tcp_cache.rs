//! TCP-Cache: a connection starts with the final window of the previous connection.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::Span;

use crate::registry_rows::PeerCacheEntry;
use jostle_congestion::peer_cache::PeerCacheContext;
use jostle_congestion::peer_cache::{PeerLookup, PeerTableConfig};
use jostle_congestion::{CongestionController, EstablishedEvent, StateObserver};
use jostle_congestion::{ControllerLayer, LayeredController};

const PARAMETERS: &[Parameter] = &[
    Parameter::integer("slots", 1_048_576, 1..=1 << 31).summary(
        "entries of the host's table; the slot of a peer is its address modulo this number",
    ),
    Parameter::span("max_age", Span::ZERO, Span::ZERO..=Span::from_ns(1 << 53))
        .summary("age above which an entry is not used; 0: no limit"),
];

const SOURCE: &str = "baseline of Guo & Lee, Stateful-TCP, IEEE Access 2020; RFC 9040 §6";

pub(crate) const ROW: PeerCacheEntry = PeerCacheEntry {
    entry: RegistryEntry {
        name: "tcp-cache",
        summary: "starts with the cwnd of the last connection to the peer, as a burst",
        class: "window",
        based_on: &[],
        source: SOURCE,
        parameters: PARAMETERS,
    },
    build: |values, inner| {
        Box::new(LayeredController::new(CachedWindow::new(values, false), inner))
    },
};

pub(crate) const PLUS_ROW: PeerCacheEntry = PeerCacheEntry {
    entry: RegistryEntry {
        name: "tcp-cache+",
        summary: "like tcp-cache, and ignores the receive window",
        class: "window",
        based_on: &["tcp-cache"],
        source: SOURCE,
        parameters: PARAMETERS,
    },
    build: |values, inner| Box::new(LayeredController::new(CachedWindow::new(values, true), inner)),
};

/// Uses the window at the end of the last connection as the initial window. "For TCP-Cache and
/// TCP-Cache+ … there is no such pacing at the start, resulting in a significant transmission
/// burst" (Stateful-TCP, the section on its principle).
pub struct CachedWindow {
    usage: PeerTableConfig,
    ignores_receive_window: bool,
    found: PeerLookup<u32>,
}

impl CachedWindow {
    fn new(values: &ParameterValues, ignores_receive_window: bool) -> Self {
        let usage = PeerTableConfig { slots: values.u32("slots"), max_age: values.span("max_age") };
        Self { usage, ignores_receive_window, found: PeerLookup::Miss }
    }
}

impl ControllerLayer for CachedWindow {
    fn on_connection_open(&mut self, occasion: &mut PeerCacheContext<'_>) {
        self.found = occasion.memory.windows.look_up(self.usage, occasion.peer, occasion.now);
    }

    fn on_established(
        &mut self,
        inner: &mut dyn CongestionController,
        established: &EstablishedEvent,
    ) {
        let initial_window = self.found.hit().unwrap_or(established.initial_window);
        inner.on_established(&EstablishedEvent { initial_window, ..*established });
    }

    fn overrides_receive_window(&self) -> bool {
        self.ignores_receive_window
    }

    fn on_connection_close(
        &mut self,
        inner: &dyn CongestionController,
        occasion: &mut PeerCacheContext<'_>,
    ) {
        occasion.memory.windows.save(self.usage, occasion.peer, occasion.now, inner.cwnd());
    }

    fn observe(&self, inner: &dyn CongestionController, observer: &mut dyn StateObserver) {
        inner.observe(observer);
        observer.record_value("remembered_packets", f64::from(self.found.hit().unwrap_or(0)));
        observer.record_value("lookup", self.found.number());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use alloc::collections::BTreeMap;
    use jostle_congestion::peer_cache::PeerCache;
    use jostle_units::{RandomStream, Span, Time};

    fn opened(name: &str, memory: &mut PeerCache) -> Box<dyn CongestionController> {
        let none = BTreeMap::new();
        let start = registry::slow_start("standard").unwrap().create(&none).unwrap();
        let reno = registry::controller("reno").unwrap();
        let inner = reno.create(&none, start, RandomStream::new(1, "test")).unwrap();
        let mut controller = registry::memory(name).unwrap().create(&none, inner).unwrap();
        controller.host_extension().unwrap().on_connection_open(&mut PeerCacheContext {
            now: Time::ZERO,
            peer: 7,
            memory,
        });
        controller.on_established(&EstablishedEvent {
            now: Time::ZERO,
            mss_bytes: 1448,
            initial_window: 10,
            rtt: Some(Span::from_ms(100)),
            prospect: Default::default(),
        });
        controller
    }

    #[test]
    fn the_last_window_is_the_first_one_and_leaves_at_once() {
        for (name, ignores_receive_window) in [("tcp-cache", false), ("tcp-cache+", true)] {
            let mut memory = PeerCache::default();
            let mut first = opened(name, &mut memory);
            assert_eq!((first.cwnd(), first.pacing_rate()), (10, None));
            first.set_cwnd(120);
            first.host_extension().unwrap().on_connection_close(&mut PeerCacheContext {
                now: Time::ZERO,
                peer: 7,
                memory: &mut memory,
            });
            let mut second = opened(name, &mut memory);
            assert_eq!((second.cwnd(), second.pacing_rate()), (120, None), "{name}");
            let overrides = |of: &dyn CongestionController| {
                of.tcp_extension().unwrap().ignores_receive_window()
            };
            assert_eq!(overrides(second.as_ref()), ignores_receive_window, "{name}");
            second.on_ack(&crate::test_support::ack(2));
            assert_eq!((second.cwnd(), second.pacing_rate()), (121, None), "{name}");
            assert_eq!(overrides(second.as_ref()), ignores_receive_window, "{name}");
        }
    }
}
