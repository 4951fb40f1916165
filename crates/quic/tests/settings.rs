//! Every setting does what it says.
use crate::common::{Fate, Link, World, ours};
use jostle_congestion::CongestionSignal;
use jostle_quic::{
    AckFrequency, Congestion, Error, QuicEndpoint, SenderObserver, Settings, StackController,
};
use jostle_units::{Rate, Span, Time};

fn narrow() -> Link {
    Link::new(Rate::from_mbps(10), Span::from_ms(40), 2.0)
}

fn full_sized() -> Settings {
    Settings { datagram_bytes: 1472, discover_up_to_bytes: None, ..Settings::default() }
}

#[derive(Default)]
struct Signals(Vec<(Time, CongestionSignal)>);

impl SenderObserver for Signals {
    fn congestion(&mut self, now: Time, signal: CongestionSignal) {
        self.0.push((now, signal));
    }
}

/// RFC 8899 and RFC 9000 §14.3: larger packets are tried until they fail; a lost probe is no congestion.
#[test]
fn discovery_finds_what_the_path_takes() {
    for (largest, least, most) in [(usize::MAX, 1452, 1452), (1350, 1300, 1350), (1200, 1200, 1200)]
    {
        for congestion in [ours("cubic"), ours("bbr"), Congestion::Stack(StackController::Cubic)] {
            let mut link = Link::new(Rate::from_mbps(10), Span::from_ms(40), 20.0);
            link.largest_bytes = largest;
            let mut world =
                World::observed(&Settings::default(), congestion, link, Signals::default());
            world.transfer(300_000);
            let size = world.client.state().unwrap().datagram_bytes;
            assert!((least..=most).contains(&(size as usize)), "{size} of {largest}");
            assert!(world.departures.iter().any(|(_, bytes)| *bytes == size as usize));
            assert!(world.observer.0.is_empty(), "{:?}", world.observer.0);
            assert_eq!(world.counters().lost_packets, 0);
        }
    }
}

/// draft-ietf-quic-ack-frequency: "Ack-Eliciting Threshold: ... the maximum number of ack-eliciting
/// packets the recipient of this frame receives before sending an immediate acknowledgment".
#[test]
fn fewer_acks_come_if_the_sender_asks_for_fewer() {
    let run = |threshold: Option<u32>| {
        let ack_frequency = threshold.map(|eliciting_threshold| AckFrequency {
            eliciting_threshold,
            max_ack_delay: Some(Span::from_ms(100)),
            reordering_threshold: 3,
        });
        let settings = Settings { ack_frequency, ..full_sized() };
        let mut world = World::new(&settings, ours("reno"), narrow());
        world.transfer(2_000_000);
        world.sent as f64 / world.acks as f64
    };
    let usual = run(None);
    assert!((1.8..2.3).contains(&usual), "{usual} packets per ACK");
    let few = run(Some(9));
    assert!((8.0..10.5).contains(&few), "{few} packets per ACK");
}

/// What leaves at one instant is a burst; pacing lets one pass at a time.
#[test]
fn bursts_are_as_large_as_the_setting_says() {
    for (burst_datagrams, most) in [(1, 1), (4, 4), (64, 24)] {
        let settings = Settings { burst_datagrams, ..full_sized() };
        // At 100 Mbit/s 1/1024 s is eight packets, and slow start goes beyond twice that.
        let link = Link::new(Rate::from_mbps(100), Span::from_ms(20), 1.0);
        let mut world = World::new(&settings, ours("cubic"), link);
        world.start(None);
        world.run_for(Span::from_secs(1));
        let mut largest = 0;
        let mut run = (Time::ZERO, 0);
        // The initial window is not paced.
        for &(at, bytes) in world.departures.iter().skip(20) {
            if bytes < 1000 {
                continue;
            }
            run = if at == run.0 { (at, run.1 + 1) } else { (at, 1) };
            largest = largest.max(run.1);
        }
        assert!(largest <= most, "{largest} at once, {burst_datagrams} allowed");
        assert!(burst_datagrams < 10 || largest >= 6, "{largest}");
    }
}

#[test]
fn a_window_leaves_at_once_without_pacing() {
    for pacing in [false, true] {
        let settings = Settings { initial_window_packets: 40, pacing, ..full_sized() };
        let mut world = World::new(
            &settings,
            ours("cubic"),
            Link::new(Rate::from_mbps(100), Span::from_ms(40), 4.0),
        );
        world.start(None);
        world.run_for(Span::from_ms(75));
        let at = world.departures.iter().map(|it| it.0).max().unwrap();
        let together = world.departures.iter().filter(|it| it.0 == at).count();
        assert_eq!(together >= 39, !pacing, "{together} at once");
    }
}

/// RFC 9002 §7.7: "Senders MUST either use pacing or limit such bursts. Senders SHOULD limit bursts
/// to the initial congestion window". A window that was idle does not leave at once, unless the
/// setting says so.
#[test]
fn an_unpaced_burst_is_limited_to_the_initial_window() {
    let largest_burst = |change: fn(&mut Settings)| {
        let mut settings = Settings { pacing: false, ..full_sized() };
        change(&mut settings);
        let link = Link::new(Rate::from_mbps(100), Span::from_ms(40), 4.0);
        let mut world = World::new(&settings, ours("reno"), link);
        world.transfer(6_000_000);
        world.run_for(Span::from_secs(10));
        let sent = world.departures.len();
        world.client.supply(Some(3_000_000));
        world.kick();
        world.run_for(Span::from_secs(20));
        assert_eq!(world.delivered, 9_000_000, "{settings:?}");
        let mut counts = std::collections::BTreeMap::new();
        for (at, _) in &world.departures[sent..] {
            *counts.entry(*at).or_insert(0) += 1;
        }
        counts.into_values().max().unwrap()
    };
    assert_eq!(largest_burst(|_| ()), 10);
    assert_eq!(largest_burst(|it| it.initial_window_packets = 32), 32);
    assert_eq!(largest_burst(|it| it.unpaced_burst_packets = Some(3)), 3);
    let lifted = largest_burst(|it| it.unpaced_burst_packets = Some(10_000));
    assert!(lifted > 300, "{lifted}");
    let few_acks = AckFrequency {
        eliciting_threshold: 99,
        max_ack_delay: Some(Span::from_ms(10)),
        reordering_threshold: 3,
    };
    let thinned = {
        let mut settings = Settings { pacing: false, ..full_sized() };
        settings.ack_frequency = Some(few_acks);
        let link = Link::new(Rate::from_mbps(100), Span::from_ms(40), 4.0);
        World::new(&settings, ours("reno"), link).transfer(1_000_000)
    };
    // A burst per ACK delay and round trip at least.
    assert!(thinned < Span::from_secs(4), "{thinned:?}");
}

/// RFC 9000 §4.1: the receiver bounds what is sent: a window per RTT.
#[test]
fn flow_control_bounds_the_rate() {
    let run = |stream_window_bytes, streams| {
        let settings = Settings { stream_window_bytes, streams, ..full_sized() };
        let mut world = World::new(&settings, ours("cubic"), narrow());
        world.start(None);
        world.run_for(Span::from_secs(5));
        world.delivered as f64 * 8e-6 / 5.0
    };
    // 10 kB per RTT are 2 Mbit/s. The stack renews a window when an eighth of it is used.
    let one = run(10_000, 1);
    assert!((1.4..2.1).contains(&one), "{one} Mbit/s");
    let three = run(10_000, 3);
    assert!((2.6 * one..3.2 * one).contains(&three), "{three} Mbit/s");
    assert!(run(1 << 20, 1) > 9.0);
}

/// RFC 9002 §7.1: an increase of the count of marks is a congestion event, one per round trip.
#[test]
fn marks_slow_a_sender_down_that_asked_for_them() {
    for ecn in [false, true] {
        // Slow start doubles the window once more before a mark is heard of.
        let queue_bdp = if ecn { 4.0 } else { 1.0 };
        let mut link = Link::new(Rate::from_mbps(10), Span::from_ms(40), queue_bdp);
        link.mark_above_bytes = link.queue_bytes / 4;
        let settings = Settings { ecn, ..full_sized() };
        let mut world = World::observed(&settings, ours("reno"), link, Signals::default());
        world.start(None);
        world.run_for(Span::from_secs(10));
        let counters = world.counters();
        let expected = if ecn { CongestionSignal::Ecn } else { CongestionSignal::Loss };
        let signals = &world.observer.0;
        assert!(signals.len() > 2, "{signals:?}");
        assert!(signals.iter().all(|(_, signal)| *signal == expected), "{signals:?}");
        assert!(signals.windows(2).all(|pair| pair[1].0.since(pair[0].0) >= Span::from_ms(40)));
        assert_eq!(counters.marked_packets > 0, ecn);
        assert_eq!(counters.lost_packets == 0, ecn);
        assert!(world.delivered as f64 * 8e-6 / 10.0 > 8.5);
    }
}

/// Nothing is discarded but what was not handed over, which is little more than a burst.
#[test]
fn what_is_withdrawn_is_not_sent() {
    let mut world = World::new(&full_sized(), ours("cubic"), narrow());
    world.start(None);
    world.run_for(Span::from_secs(1));
    let sent = world.counters().new_bytes;
    assert!(world.client.withdraw());
    world.kick();
    world.run_for(Span::from_secs(2));
    let more = world.counters().new_bytes - sent;
    assert!(more <= 3 * 10 * 1472, "{more} bytes more");
    assert_eq!(world.delivered, sent + more);
    assert!(world.client.is_drained() && !world.client.withdraw());
    world.client.supply(Some(50_000));
    world.kick();
    world.run_for(Span::from_secs(1));
    assert_eq!(world.delivered, sent + more + 50_000);
}

#[test]
fn a_connection_on_which_nothing_is_heard_ends() {
    let settings = Settings { idle_timeout: Some(Span::from_secs(3)), ..full_sized() };
    let mut world = World::new(&settings, ours("cubic"), narrow().with(|_, _| Fate::Drop));
    world.client.supply(None);
    world.client.open(world.now).unwrap();
    let mut buffer = Vec::new();
    let mut now = Time::ZERO;
    while now < Time::from_ns(20_000_000_000) {
        while world.client.transmit(now, &mut buffer).is_some() {}
        now = world.client.next_time();
        world.client.on_time(now, &mut ());
    }
    assert_eq!(world.client.take_error(), Some(Error::Lost("timed out".to_owned())));
}

#[test]
fn what_quic_cannot_have_is_refused_by_name() {
    let refused = |change: fn(&mut Settings), key: &str| {
        let mut settings = full_sized();
        change(&mut settings);
        for result in [
            QuicEndpoint::client(&settings, 1, ours("reno")).err(),
            QuicEndpoint::server(&settings, 1).err(),
        ] {
            let Some(Error::Setting { key: named, .. }) = result else { panic!("{key}") };
            assert_eq!(named, key);
        }
    };
    refused(|it| it.datagram_bytes = 1199, "datagram_bytes");
    refused(|it| it.discover_up_to_bytes = Some(1400), "discover_up_to_bytes");
    refused(|it| it.burst_datagrams = 0, "burst_datagrams");
    refused(|it| it.unpaced_burst_packets = Some(0), "unpaced_burst_packets");
    refused(|it| it.streams = 101, "streams");
    refused(|it| it.packet_threshold = 2, "packet_threshold");
    refused(|it| it.initial_window_packets = 0, "initial_window_packets");
    let mut server = QuicEndpoint::server(&full_sized(), 1).unwrap();
    assert!(matches!(server.open(Time::ZERO), Err(Error::Connect(_))));
}
