//! Congestion events: what a controller is told, whatever the transport has already removed.
use std::collections::BTreeMap;

use crate::common::{Fate, Link, World, controller};
use jostle_congestion::{CongestionController, CongestionSignal, CwndReductionBy};
use jostle_controllers::registry::{self, CONTROLLERS};
use jostle_quic::{AckOutcome, Congestion, SenderObserver, Settings};
use jostle_registry::ParameterValue;
use jostle_units::{RandomStream, Rate, Span, Time};

const DATAGRAM: u64 = 1472;

/// The ACKs and congestion signals of a connection.
#[derive(Default)]
struct Log {
    acks: Vec<(Time, AckOutcome)>,
    signals: Vec<(Time, CongestionSignal)>,
}

impl SenderObserver for Log {
    fn on_ack(&mut self, now: Time, ack: &AckOutcome) {
        self.acks.push((now, *ack));
    }

    fn congestion(&mut self, now: Time, signal: CongestionSignal) {
        self.signals.push((now, signal));
    }
}

fn flavour(name: &str, flavour: &str) -> Box<dyn CongestionController> {
    let given = BTreeMap::from([("flavour".to_owned(), ParameterValue::Text(flavour.to_owned()))]);
    let start = registry::slow_start("standard").unwrap().create(&BTreeMap::new()).unwrap();
    let row = registry::controller(name).unwrap();
    row.create(&given, start, RandomStream::new(1, "controller")).unwrap()
}

/// The outcome of losses, in packets.
struct Reduction {
    /// cwnd and the most packets in flight before the losses.
    cwnd: f64,
    flight: f64,
    /// ssthresh and the smallest cwnd after them.
    ssthresh: f64,
    smallest: f64,
    signals: Vec<CongestionSignal>,
}

/// Runs into a time in which all packets are lost, until the first congestion signal. The receive
/// window keeps the flight below the BDP of 20 Mbit/s and 100 ms, so that nothing else is lost.
fn lose(controller: Box<dyn CongestionController>, lost_ms: u64) -> Reduction {
    let from = Time::ZERO + Span::from_secs(3);
    let to = from + Span::from_ms(lost_ms);
    let settings = Settings {
        datagram_bytes: DATAGRAM as u16,
        discover_up_to_bytes: None,
        connection_window_bytes: 200_000,
        ..Settings::default()
    };
    let fate = move |_, now| if now >= from && now < to { Fate::Drop } else { Fate::Pass };
    let link = Link::new(Rate::from_mbps(20), Span::from_ms(100), 4.0).with(fate);
    let mut world = World::observed(&settings, Congestion::Ours(controller), link, Log::default());
    world.start(None);
    world.run(from, |_| false);
    let before = world.client.state().unwrap();
    assert!(world.observer.signals.is_empty(), "{:?}", world.observer.signals);
    let latest = world.observer.acks.iter().filter(|(at, _)| *at + Span::from_ms(200) > from);
    let flight = latest.map(|it| it.1.in_flight_bytes).max().unwrap();
    world.run(to + Span::from_secs(6), |world| !world.observer.signals.is_empty());
    let after = world.client.state().unwrap();
    let acks = world.observer.acks.iter().filter(|(at, _)| *at > from);
    let smallest = acks.map(|it| it.1.cwnd_bytes).min().unwrap().min(after.cwnd_bytes);
    let packets = |bytes: u64| bytes as f64 / DATAGRAM as f64;
    Reduction {
        cwnd: packets(before.cwnd_bytes),
        flight: packets(flight),
        ssthresh: packets(after.ssthresh_bytes.unwrap_or(0)),
        smallest: packets(smallest),
        signals: world.observer.signals.iter().map(|it| it.1).collect(),
    }
}

/// RFC 9438 §4.6: "ssthresh = flight_size * beta_cubic", where flight_size is "the amount of
/// outstanding (unacknowledged) data in the network". RFC 9002 §A.10, removes lost packets from
/// `bytes_in_flight` first; they were outstanding all the same.
#[test]
fn lost_packets_belong_to_the_flight() {
    for lost_ms in [10, 30, 60, 100, 300] {
        let found = lose(flavour("cubic", "rfc9438"), lost_ms);
        assert_eq!(found.signals, [CongestionSignal::Loss], "{lost_ms} ms");
        let share = found.ssthresh / found.flight;
        // If a whole flight is lost, probes follow, which are in flight, too (RFC 9002 §7.5).
        let most = if lost_ms < 100 { 0.73 } else { 0.85 };
        assert!((0.67..most).contains(&share), "{lost_ms} ms: {share} of {}", found.flight);
        assert!(found.flight < 0.6 * found.cwnd, "the flight is not cwnd");
    }
}

/// RFC 9002 §B.8: the losses that establish persistent congestion are one congestion event. It
/// reduces ssthresh once, and leaves the minimum window.
#[test]
fn persistent_congestion_reduces_ssthresh_once() {
    for (law, beta) in [
        (flavour("reno", "linux"), 0.5),
        (flavour("reno", "rfc9002"), 0.5),
        (flavour("cubic", "linux"), 0.7),
        (controller("bic", 1), 0.8),
        (controller("scalable", 1), 0.875),
    ] {
        let found = lose(law, 2_000);
        assert_eq!(found.signals, [CongestionSignal::Timeout], "{beta}");
        let share = found.ssthresh / found.cwnd;
        assert!((beta - 0.01..beta + 0.01).contains(&share), "{share}, not {beta}");
        assert!(found.smallest <= 4.0, "{beta}: {} packets", found.smallest);
    }
    let found = lose(flavour("cubic", "rfc9438"), 2_000);
    // The probes of the silence are in flight, too (RFC 9002 §7.5).
    let share = found.ssthresh / found.flight;
    assert!((0.67..0.85).contains(&share) && found.smallest <= 4.0, "{share}");
}

/// The same for every row: one signal. Window-based controllers go down to the minimum.
#[test]
fn every_controller_is_told_once_of_persistent_congestion() {
    for row in CONTROLLERS {
        let name = row.entry.name;
        let law = controller(name, 1);
        let window_based = law.recovery_owner() == CwndReductionBy::Transport;
        let found = lose(law, 2_000);
        assert_eq!(found.signals, [CongestionSignal::Timeout], "{name}");
        if window_based {
            assert!(found.smallest <= 4.0, "{name}: {} packets", found.smallest);
            let most = found.cwnd + 1.0;
            assert!((2.0..=most).contains(&found.ssthresh), "{name}: {}", found.ssthresh);
        }
    }
}
