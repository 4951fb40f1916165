//! TCP-Cache: a connection begins with the window with which the last one ended.

use jostle_catalogue::{Entry, Kind, Parameter, Values};

use super::host::Occasion;
use super::layer::{Layer, Layered};
use super::table::{Found, Use};
use crate::controller::{Controller, Established, Observer};
use crate::row::MemoryRow;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "slots",
        summary: "entries of the host's table; a peer's is its address modulo their number",
        kind: Kind::Integer { default: 1_048_576, min: 1, max: 1 << 31 },
    },
    Parameter {
        name: "max_age",
        summary: "age beyond which an entry does not count; 0 for no limit",
        kind: Kind::Span { default_ns: 0, min_ns: 0, max_ns: 1 << 53 },
    },
];

const SOURCE: &str = "baseline of Guo & Lee, Stateful-TCP, IEEE Access 2020; RFC 9040 §6";

pub(crate) const ROW: MemoryRow = MemoryRow {
    entry: Entry {
        name: "tcp-cache",
        summary: "starts with the window of the last connection to the peer, all at once",
        class: "window",
        based_on: &[],
        source: SOURCE,
        parameters: PARAMETERS,
    },
    build: |values, inner| Box::new(Layered::new(CachedWindow::new(values, false), inner)),
};

pub(crate) const PLUS_ROW: MemoryRow = MemoryRow {
    entry: Entry {
        name: "tcp-cache+",
        summary: "the same, whatever the receiver's window says",
        class: "window",
        based_on: &["tcp-cache"],
        source: SOURCE,
        parameters: PARAMETERS,
    },
    build: |values, inner| Box::new(Layered::new(CachedWindow::new(values, true), inner)),
};

/// The window at the end of the last connection, as an initial window. "For TCP-Cache and TCP-Cache+
/// … there is no such pacing at the start, resulting in a significant transmission burst"
/// (Stateful-TCP, the section on its principle).
pub struct CachedWindow {
    usage: Use,
    ignores_receive_window: bool,
    found: Found<u32>,
}

impl CachedWindow {
    fn new(values: &Values, ignores_receive_window: bool) -> Self {
        let usage = Use { slots: values.u32("slots"), max_age: values.span("max_age") };
        Self { usage, ignores_receive_window, found: Found::Miss }
    }
}

impl Layer for CachedWindow {
    fn open(&mut self, occasion: &mut Occasion<'_>) {
        self.found = occasion.memory.windows.look_up(self.usage, occasion.peer, occasion.now);
    }

    fn on_established(&mut self, inner: &mut dyn Controller, established: &Established) {
        let initial_window = self.found.hit().unwrap_or(established.initial_window);
        inner.on_established(&Established { initial_window, ..*established });
    }

    fn overrides_receive_window(&self) -> bool {
        self.ignores_receive_window
    }

    fn close(&mut self, inner: &dyn Controller, occasion: &mut Occasion<'_>) {
        occasion.memory.windows.save(self.usage, occasion.peer, occasion.now, inner.cwnd());
    }

    fn observe(&self, inner: &dyn Controller, observer: &mut dyn Observer) {
        inner.observe(observer);
        observer.value("remembered_packets", f64::from(self.found.hit().unwrap_or(0)));
        observer.value("lookup", self.found.number());
    }
}

#[cfg(test)]
mod tests {
    use super::super::host::HostMemory;
    use super::*;
    use crate::registry;
    use jostle_units::{Span, Stream, Time};
    use std::collections::BTreeMap;

    fn opened(name: &str, memory: &mut HostMemory) -> Box<dyn Controller> {
        let none = BTreeMap::new();
        let start = registry::slow_start("standard").unwrap().create(&none).unwrap();
        let reno = registry::controller("reno").unwrap();
        let inner = reno.create(&none, start, Stream::new(1, "test")).unwrap();
        let mut controller = registry::memory(name).unwrap().create(&none, inner).unwrap();
        controller.host().unwrap().on_open(&mut Occasion { now: Time::ZERO, peer: 7, memory });
        controller.on_established(&Established {
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
            let mut memory = HostMemory::default();
            let mut first = opened(name, &mut memory);
            assert_eq!((first.cwnd(), first.pacing_rate()), (10, None));
            first.set_cwnd(120);
            first.host().unwrap().on_close(&mut Occasion {
                now: Time::ZERO,
                peer: 7,
                memory: &mut memory,
            });
            let mut second = opened(name, &mut memory);
            assert_eq!((second.cwnd(), second.pacing_rate()), (120, None), "{name}");
            let overrides = |of: &dyn Controller| of.tcp().unwrap().overrides_receive_window();
            assert_eq!(overrides(second.as_ref()), ignores_receive_window, "{name}");
            second.on_ack(&crate::fixtures::ack(2));
            assert_eq!((second.cwnd(), second.pacing_rate()), (121, None), "{name}");
            assert_eq!(overrides(second.as_ref()), ignores_receive_window, "{name}");
        }
    }
}
