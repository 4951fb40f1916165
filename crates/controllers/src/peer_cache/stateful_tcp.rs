//! Stateful-TCP.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{HEADER_BYTES, Rate, Span};

use super::bandwidth_estimators::{self, Estimator};
use crate::registry_rows::PeerCacheEntry;
use jostle_congestion::peer_cache::PathEstimate;
use jostle_congestion::peer_cache::PeerCacheContext;
use jostle_congestion::peer_cache::{PeerLookup, PeerTableConfig};
use jostle_congestion::{AckSample, CongestionController, EstablishedEvent, StateObserver};
use jostle_congestion::{ControllerLayer, LayeredController};

pub(crate) const ROW: PeerCacheEntry = PeerCacheEntry {
    entry: RegistryEntry {
        name: "stateful",
        summary: "starts at the bandwidth measured by the last connection to the peer",
        class: "bandwidth",
        based_on: &[],
        source: "Guo & Lee, Stateful-TCP: A New Approach to Accelerate TCP Slow-Start, IEEE Access \
                 2020, and their scubic_release.c; draft-lee-tcpm-stateful-tcp-00",
        parameters: &[
            Parameter::choice("estimator", "gcbe", bandwidth_estimators::CHOICES).summary(
                "estimator of the saved bandwidth: gap-compensated, Westwood+'s, or BBR's",
            ),
            Parameter::integer("slots", 1_048_576, 1..=1 << 31).summary(
                "entries of the host's table; the slot of a peer is its address modulo this number",
            ),
            Parameter::span("max_age", Span::ZERO, Span::ZERO..=Span::from_ns(1 << 53))
                .summary("age above which an entry is not used; 0: no limit"),
            Parameter::integer("min_bdp", 10, 0..=1_000_000)
                .summary("largest saved BDP, in packets, that does not change the start"),
            Parameter::choice("save", "always", SavePolicy::CHOICES).summary(
                "connections that update the entry: always; if their BDP exceeds the initial \
                 window; or if they delivered a BDP, or the entry is empty",
            ),
        ],
    },
    build: |values, inner| {
        Box::new(LayeredController::new(StatefulTcp::new(values.clone()), inner))
    },
};

/// Connections after which the table is updated.
#[derive(Clone, Copy, Debug)]
enum SavePolicy {
    /// All connections, including those without an estimate, which clear the entry: the authors'
    /// code.
    Always,
    /// Connections with a BDP above the initial window: the authors' paper.
    Large,
    /// Connections that delivered at least a BDP, so that a short connection does not replace the
    /// result of a long one, and connections without an entry in the table: the authors of S-BBR.
    FullOrNew,
}

impl SavePolicy {
    const CHOICES: &[&str] = &["always", "large", "full or new"];

    fn named(name: &str) -> Self {
        match name {
            "large" => Self::Large,
            "full or new" => Self::FullOrNew,
            _ => Self::Always,
        }
    }
}

/// Three phases. *Start*: looks up the peer in the host's table. A hit gives a window of one BDP,
/// sent at the saved bandwidth even beyond the receiver's first window; otherwise the controller
/// starts normally. *Estimation*: the first ACK reduces the window to the packets in flight and
/// ends the pacing; the estimator measures the bandwidth. *Termination*: saves the estimate and the
/// minimum RTT in the table.
pub struct StatefulTcp {
    values: ParameterValues,
    usage: PeerTableConfig,
    min_bdp: u32,
    save: SavePolicy,
    estimator: Estimator,
    found: PeerLookup<PathEstimate>,
    min_rtt: Option<Span>,
    /// Total number of packets delivered.
    delivered: u64,
    mss_bytes: u32,
    initial_window: u32,
    start: Option<SavedRateStart>,
    /// Minimum of the rate of a controller that sets a rate, while it is in its first mode.
    floor: Option<(Rate, &'static str)>,
}

/// A start with the saved rate.
#[derive(Clone, Copy, Debug)]
struct SavedRateStart {
    rate: Rate,
    /// ACKs with an RTT sample.
    samples: u32,
}

impl SavedRateStart {
    /// Number of first samples (`count` from 0 to 10), one of which must confirm the start.
    const SAMPLES: u32 = 11;
    /// Minimum number of packets in flight that confirms the start.
    const MIN_IN_FLIGHT: u32 = 5;
    /// Window if no sample confirmed the start, and minimum window in any case.
    const FALLBACK: u32 = 10;

    /// Returns the new window if this ACK with an RTT sample ends the start.
    fn ends_with(&mut self, ack: &AckSample) -> Option<u32> {
        self.samples += 1;
        if self.samples > Self::SAMPLES {
            return Some(Self::FALLBACK);
        }
        (ack.in_flight > Self::MIN_IN_FLIGHT).then(|| ack.in_flight.max(Self::FALLBACK))
    }
}

impl StatefulTcp {
    fn new(values: ParameterValues) -> Self {
        Self {
            usage: PeerTableConfig { slots: values.u32("slots"), max_age: values.span("max_age") },
            min_bdp: values.u32("min_bdp"),
            save: SavePolicy::named(values.choice("save")),
            estimator: Estimator::new(&values, 1),
            found: PeerLookup::Miss,
            min_rtt: None,
            delivered: 0,
            mss_bytes: 1,
            initial_window: 0,
            start: None,
            floor: None,
            values,
        }
    }
}

impl ControllerLayer for StatefulTcp {
    fn on_connection_open(&mut self, occasion: &mut PeerCacheContext<'_>) {
        self.found = occasion.memory.paths.look_up(self.usage, occasion.peer, occasion.now);
    }

    fn on_established(
        &mut self,
        inner: &mut dyn CongestionController,
        established: &EstablishedEvent,
    ) {
        inner.on_established(established);
        self.mss_bytes = established.mss_bytes;
        self.initial_window = established.initial_window;
        self.estimator = Estimator::new(&self.values, established.mss_bytes);
        (self.start, self.floor) = (None, None);
        let Some(path) = self.found.hit() else { return };
        let bdp = path.bdp(established.mss_bytes);
        if bdp <= self.min_bdp || path.bandwidth == Rate::ZERO {
            return;
        }
        inner.set_cwnd(bdp);
        self.start = Some(SavedRateStart { rate: path.bandwidth, samples: 0 });
        self.floor = inner.pacing_rate().map(|_| (path.bandwidth, inner.mode()));
    }

    #[inline]
    fn on_ack(&mut self, inner: &mut dyn CongestionController, ack: &AckSample) {
        self.estimator.on_ack(ack);
        self.min_rtt = Some(ack.min_rtt);
        self.delivered = ack.delivered;
        if let Some(start) = self.start.as_mut().filter(|_| ack.rtt.is_some())
            && let Some(window) = start.ends_with(ack)
        {
            inner.set_cwnd(window);
            self.start = None;
        }
        inner.on_ack(ack);
    }

    fn on_mss_change(&mut self, inner: &mut dyn CongestionController, mss_bytes: u32) {
        self.mss_bytes = mss_bytes;
        self.estimator.on_mss_change(mss_bytes);
        inner.on_mss_change(mss_bytes);
    }

    fn pacing_rate(&self, inner: &dyn CongestionController) -> Option<Rate> {
        let own = inner.pacing_rate();
        match (self.start, self.floor) {
            (Some(start), None) => Some(start.rate),
            // BBR's STARTUP never reduces its rate; it begins with the saved one.
            (_, Some((rate, mode))) if inner.mode() == mode => own.map(|own| own.max(rate)),
            _ => own,
        }
    }

    /// Applies for the complete connection. Also in the Estimation phase "the AWnd is suppressed
    /// except for 0 to prevent it from becoming the bottleneck". `bictcp_acked` with `NEED_AWND`,
    /// as published, raises `snd_wnd` to cwnd at each ACK.
    fn overrides_receive_window(&self) -> bool {
        true
    }

    fn mode(&self, inner: &dyn CongestionController) -> &'static str {
        if self.start.is_some() { "remembered" } else { inner.mode() }
    }

    fn on_connection_close(
        &mut self,
        _inner: &dyn CongestionController,
        occasion: &mut PeerCacheContext<'_>,
    ) {
        let bandwidth = self.estimator.bandwidth().unwrap_or(Rate::ZERO);
        let path = PathEstimate { bandwidth, min_rtt: self.min_rtt.unwrap_or(Span::ZERO) };
        let bdp = path.bdp(self.mss_bytes);
        let estimated = bandwidth > Rate::ZERO;
        let full = self.delivered >= u64::from(bdp);
        let worth = match self.save {
            SavePolicy::Always => true,
            SavePolicy::Large => bdp > self.initial_window,
            SavePolicy::FullOrNew => estimated && (full || self.found.hit().is_none()),
        };
        if worth {
            occasion.memory.paths.save(self.usage, occasion.peer, occasion.now, path);
        }
    }

    fn observe(&self, inner: &dyn CongestionController, observer: &mut dyn StateObserver) {
        inner.observe(observer);
        let wire_bps = |payload: Rate| {
            let mss = f64::from(self.mss_bytes);
            payload.as_bps() as f64 * (mss + f64::from(HEADER_BYTES)) / mss
        };
        observer.record_value(
            "bandwidth_estimate_bps",
            self.estimator.bandwidth().map_or(0.0, wire_bps),
        );
        let remembered = self.found.hit().map_or(0.0, |path| wire_bps(path.bandwidth));
        observer.record_value("remembered_bps", remembered);
        observer.record_value("lookup", self.found.number());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use crate::test_support::ack;
    use alloc::collections::BTreeMap;
    use jostle_congestion::peer_cache::PeerCache;
    use jostle_registry::ParameterValue;
    use jostle_units::{RandomStream, Time};

    const RTT: Span = Span::from_ms(100);

    fn on(
        controller: &str,
        parameters: &[(&str, ParameterValue)],
    ) -> Box<dyn CongestionController> {
        let row = registry::controller(controller).unwrap();
        let start = registry::slow_start("standard").unwrap().create(&BTreeMap::new()).unwrap();
        let inner = row.create(&BTreeMap::new(), start, RandomStream::new(1, "test")).unwrap();
        let given = parameters.iter().map(|(name, value)| (name.to_string(), value.clone()));
        registry::memory("stateful").unwrap().create(&given.collect(), inner).unwrap()
    }

    fn at(s: u64) -> Time {
        Time::ZERO + Span::from_secs(s)
    }

    fn open(controller: &mut dyn CongestionController, memory: &mut PeerCache, now: Time) {
        controller.host_extension().unwrap().on_connection_open(&mut PeerCacheContext {
            now,
            peer: 7,
            memory,
        });
        controller.on_established(&EstablishedEvent {
            now,
            mss_bytes: 1448,
            initial_window: 10,
            rtt: Some(RTT),
            prospect: Default::default(),
        });
    }

    /// Three round trips of 100 ACKs at a packet in 250 us: 46.3 Mbit/s of payload.
    fn live(controller: &mut dyn CongestionController, start: Time) {
        for i in 0..300u64 {
            let now = start + RTT.mul_div(1 + i / 100, 1) + Span::from_us(250 * (i % 100));
            controller.on_ack(&AckSample {
                now,
                rtt: Some(RTT),
                min_rtt: RTT,
                in_flight: 99,
                ..ack(i + 1)
            });
        }
    }

    fn remember(memory: &mut PeerCache, parameters: &[(&str, ParameterValue)], now: Time) {
        let mut first = on("reno", parameters);
        open(first.as_mut(), memory, now);
        assert_eq!((first.cwnd(), first.pacing_rate()), (10, None), "a miss changes nothing");
        live(first.as_mut(), now);
        first.host_extension().unwrap().on_connection_close(&mut PeerCacheContext {
            now: now + Span::from_secs(1),
            peer: 7,
            memory,
        });
    }

    #[test]
    fn the_second_connection_starts_with_the_bdp_at_the_bandwidth() {
        let mut memory = PeerCache::default();
        remember(&mut memory, &[], at(0));
        let mut second = on("cubic", &[]);
        open(second.as_mut(), &mut memory, at(2));
        // 100 ms of a packet in 250 us.
        assert_eq!((second.cwnd(), second.ssthresh(), second.mode()), (400, None, "remembered"));
        assert_eq!(second.pacing_rate(), Some(Rate::of(1448, Span::from_us(250))));
        assert!(second.tcp_extension().unwrap().ignores_receive_window());
        let first_ack = AckSample { rtt: Some(RTT), in_flight: 390, ..ack(2) };
        second.on_ack(&first_ack);
        assert_eq!((second.cwnd(), second.pacing_rate()), (391, None), "and slow start goes on");
        assert!(second.tcp_extension().unwrap().ignores_receive_window(), "to the end");
    }

    #[test]
    fn without_a_credible_sample_it_falls_back() {
        let mut memory = PeerCache::default();
        remember(&mut memory, &[], at(0));
        let mut second = on("reno", &[]);
        open(second.as_mut(), &mut memory, at(2));
        let mut after = |rtt, in_flight| {
            second.on_ack(&AckSample { rtt, in_flight, can_increase_cwnd: false, ..ack(1) });
            (second.cwnd(), second.pacing_rate().is_some())
        };
        for _ in 0..20 {
            assert_eq!(after(None, 390), (400, true), "an ACK without a sample does not count");
        }
        for _ in 0..11 {
            assert_eq!(after(Some(RTT), 5), (400, true));
        }
        assert_eq!(after(Some(RTT), 390), (10, false), "the twelfth is too late");
    }

    /// `bictcp_release` writes what it has, if that is nothing: the next connection starts as ever.
    #[test]
    fn a_connection_that_found_nothing_empties_its_entry() {
        for (save, cwnd) in [("always", 10), ("large", 400), ("full or new", 400)] {
            let parameters = [("save", ParameterValue::Text(save.to_owned()))];
            let mut memory = PeerCache::default();
            remember(&mut memory, &parameters, at(0));
            let mut short = on("reno", &parameters);
            open(short.as_mut(), &mut memory, at(2));
            short.on_ack(&AckSample { rtt: Some(RTT), min_rtt: RTT, ..ack(1) });
            short.host_extension().unwrap().on_connection_close(&mut PeerCacheContext {
                now: at(3),
                peer: 7,
                memory: &mut memory,
            });
            let mut third = on("reno", &parameters);
            open(third.as_mut(), &mut memory, at(4));
            assert_eq!(third.cwnd(), cwnd, "{save}");
        }
    }

    #[test]
    fn what_is_too_old_does_not_count() {
        let parameters = [("max_age", ParameterValue::Integer(5_000_000_000))];
        let mut memory = PeerCache::default();
        remember(&mut memory, &parameters, at(0));
        for (later_s, cwnd) in [(5, 400), (7, 10)] {
            let mut second = on("reno", &parameters);
            open(second.as_mut(), &mut memory, at(later_s));
            assert_eq!(second.cwnd(), cwnd);
        }
    }

    #[test]
    fn a_short_connection_need_not_replace_what_a_long_one_found() {
        let rate_after_a_short_one = |save: &str| {
            let parameters = [("save", ParameterValue::Text(save.to_owned()))];
            let mut memory = PeerCache::default();
            remember(&mut memory, &parameters, at(0));
            let mut short = on("reno", &parameters);
            open(short.as_mut(), &mut memory, at(2));
            // Flights of ten packets at one in 500 us: a BDP of 200.
            for i in 0..40u64 {
                let now = at(2) + RTT.mul_div(1 + i / 10, 1) + Span::from_us(500 * (i % 10));
                let sample = AckSample { now, rtt: Some(RTT), min_rtt: RTT, ..ack(i + 1) };
                short.on_ack(&sample);
            }
            short.host_extension().unwrap().on_connection_close(&mut PeerCacheContext {
                now: at(3),
                peer: 7,
                memory: &mut memory,
            });
            let mut third = on("reno", &parameters);
            open(third.as_mut(), &mut memory, at(4));
            third.pacing_rate()
        };
        let long = Some(Rate::of(1448, Span::from_us(250)));
        assert_eq!(rate_after_a_short_one("full or new"), long, "40 packets are no BDP");
        assert_ne!(rate_after_a_short_one("always"), long);
    }

    /// BBR begins at the remembered rate, or above, for as long as it is in STARTUP.
    #[test]
    fn bbr_keeps_the_rate_through_startup() {
        let mut memory = PeerCache::default();
        remember(&mut memory, &[], at(0));
        let mut second = on("bbr", &[]);
        open(second.as_mut(), &mut memory, at(2));
        let remembered = Rate::of(1448, Span::from_us(250));
        assert_eq!((second.cwnd(), second.pacing_rate()), (400, Some(remembered)));
        second.on_ack(&AckSample { now: at(3), rtt: Some(RTT), in_flight: 390, ..ack(2) });
        assert_eq!((second.pacing_rate(), second.mode()), (Some(remembered), "startup"));
    }
}
