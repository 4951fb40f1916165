//! RFC 9002 with numbers: its constants (RFC 9002 §A.2 and §B.1) and what its pseudocode makes of them.
use crate::common::{Fate, Link, World, ours};
use jostle_congestion::{CongestionSignal, RecoveryState};
use jostle_quic::{AckOutcome, Recovery, SenderObserver, Settings};
use jostle_units::{Rate, Span, Time};

const DATAGRAM: u64 = 1472;

/// What happened, and when.
#[derive(Default)]
struct Log {
    acks: Vec<(Time, AckOutcome)>,
    lost: Vec<(Time, u32)>,
    signals: Vec<(Time, CongestionSignal)>,
    states: Vec<(Time, RecoveryState)>,
    undone: Vec<Time>,
}

impl SenderObserver for Log {
    fn on_ack(&mut self, now: Time, ack: &AckOutcome) {
        self.acks.push((now, *ack));
    }

    fn lost(&mut self, now: Time, packets: u32) {
        self.lost.push((now, packets));
    }

    fn congestion(&mut self, now: Time, signal: CongestionSignal) {
        self.signals.push((now, signal));
    }

    fn on_undo(&mut self, now: Time) {
        self.undone.push(now);
    }

    fn state(&mut self, now: Time, state: RecoveryState) {
        self.states.push((now, state));
    }
}

fn settings() -> Settings {
    Settings { datagram_bytes: DATAGRAM as u16, discover_up_to_bytes: None, ..Settings::default() }
}

/// A path on which nothing queues: RTTs are 100 ms and the time of a packet, 0.12 ms.
fn wide(fate: impl FnMut(u64, Time) -> Fate + 'static) -> Link {
    Link::new(Rate::from_mbps(100), Span::from_ms(100), 20.0).with(fate)
}

fn world(link: Link) -> World<Log> {
    World::observed(&settings(), ours("reno"), link, Log::default())
}

fn ms(span: Span) -> f64 {
    span.as_secs_f64() * 1e3
}

/// RFC 9002 §6.2.2: "the initial RTT SHOULD be set to 333 milliseconds. This results in handshakes
/// starting with a PTO of 1 second": 333 + 4 · 166.5. RFC 9002 §6.2.1: "the PTO backoff factor ... MUST
/// be increased" to twice its value.
#[test]
fn the_first_timeouts_are_those_of_333_ms() {
    let mut world = world(wide(|_, _| Fate::Drop));
    world.start(Some(1000));
    world.run_for(Span::from_secs(8));
    let mut times: Vec<f64> =
        world.departures.iter().map(|(at, _)| at.as_secs_f64() * 1e3).collect();
    times.dedup();
    let expected = [0.0, 999.0, 2997.0, 6993.0];
    assert_eq!(times.len(), expected.len(), "{times:?}");
    for (time, expected) in times.iter().zip(expected) {
        assert!((time - expected).abs() < 1.0, "{times:?}");
    }
}

/// RFC 9002 §6.2.1: "PTO = smoothed_rtt + max(4*rttvar, kGranularity) + max_ack_delay". After many equal
/// samples rttvar is nothing: 100.1 + 1 + 25 ms after the last packet that elicits an ACK.
#[test]
fn a_probe_leaves_after_rtt_granularity_and_ack_delay() {
    let cut = Time::from_ns(3_000_000_000);
    let mut world = world(wide(move |_, now| if now >= cut { Fate::Drop } else { Fate::Pass }));
    // A packet every 50 ms.
    world.start(Some(1000));
    for _ in 0..60 {
        world.run_for(Span::from_ms(50));
        world.client.supply(Some(1000));
        world.kick();
    }
    let last = world.departures.last().unwrap().0;
    world.run_for(Span::from_ms(500));
    let probe = world.departures.iter().find(|(at, _)| *at > last).unwrap().0;
    let span = ms(probe.since(last));
    assert!((span - 126.1).abs() < 0.3, "{span} ms");
}

/// RFC 9002 §6.1.1: kPacketThreshold is 3. A packet that two later ones overtake is late, and one that
/// three overtake is lost; when it arrives after all, what was done for it is undone.
#[test]
fn three_later_packets_make_a_loss() {
    for overtaken_by in [2, 3] {
        // A window leaves at once, 8 µs for each of its packets: nothing but the numbers tells.
        let late = Span::from_us(8 * overtaken_by + 4);
        let mut link = wide(move |n, _| if n == 40 { Fate::Delay(late) } else { Fate::Pass });
        link.rate = Rate::from_bps(1_500_000_000);
        let settings = Settings { initial_window_packets: 400, pacing: false, ..settings() };
        let mut world = World::observed(&settings, ours("reno"), link, Log::default());
        world.start(Some(400_000));
        world.run_for(Span::from_secs(2));
        let log = &world.observer;
        assert_eq!(world.delivered, 400_000);
        if overtaken_by < 3 {
            assert!(log.lost.is_empty(), "{:?}", log.lost);
            assert!(log.states.is_empty());
        } else {
            assert_eq!(log.lost.len(), 1, "{:?}", log.lost);
            assert_eq!(log.signals.len(), 1);
            assert_eq!(log.undone.len(), 1);
            let before = log.acks.iter().rev().find(|(at, _)| *at < log.lost[0].0).unwrap().1;
            let after = log.acks.iter().find(|(at, _)| *at >= log.undone[0]).unwrap().1;
            assert!(after.cwnd_bytes >= before.cwnd_bytes, "{before:?} {after:?}");
            assert_eq!(world.counters().spurious, 1);
        }
    }
}

/// RFC 9002 §6.1.2: kTimeThreshold is 9/8 of max(smoothed_rtt, latest_rtt). The last but one packet of a
/// message is lost, and only one later packet says so.
#[test]
fn nine_eighths_of_an_rtt_make_a_loss() {
    let mut dropped = false;
    let cut = Time::from_ns(2_000_000_000);
    let fate = move |_, now| {
        let drop = now >= cut && !std::mem::replace(&mut dropped, now >= cut);
        if drop { Fate::Drop } else { Fate::Pass }
    };
    let mut world = world(wide(fate));
    world.start(Some(1300));
    for _ in 0..40 {
        world.run_for(Span::from_ms(50));
        world.client.supply(Some(1300));
        world.kick();
    }
    let sent = world.now;
    world.client.supply(Some(1300));
    world.kick();
    world.run_for(Span::from_secs(1));
    let (lost, packets) = world.observer.lost[0];
    let span = ms(lost.since(sent));
    assert_eq!(packets, 1);
    // 112.6 ms for an RTT of 100.1 ms; in the smoothed RTT there is a rest of the first samples, which
    // the delay of an ACK made longer (see the last test).
    assert!((112.5..113.6).contains(&span), "{span} ms");
}

/// RFC 9002 §7.6: kPersistentCongestionThreshold is 3: with RTTs of 100 ms and no variance a silence of
/// more than 3 · (100 + 1 + 25) ms that holds two lost packets takes the window to two packets; a
/// shorter one is a loss like another.
#[test]
fn a_long_silence_is_persistent_congestion() {
    for (silence_ms, persistent) in [(150, false), (2000, true)] {
        let from = Time::from_ns(2_000_000_000);
        let to = from + Span::from_ms(silence_ms);
        let link =
            wide(move |_, now| if now >= from && now < to { Fate::Drop } else { Fate::Pass });
        let mut world = world(link);
        world.client.supply(Some(300));
        world.start(Some(300));
        while world.now < to + Span::from_secs(1) {
            world.run_for(Span::from_ms(20));
            world.client.supply(Some(300));
            world.kick();
        }
        let log = &world.observer;
        let timeouts =
            log.signals.iter().filter(|(_, it)| *it == CongestionSignal::Timeout).count();
        assert_eq!(timeouts > 0, persistent, "{silence_ms} ms: {:?}", log.signals);
        assert!(!log.signals.is_empty(), "{silence_ms} ms");
        if persistent {
            let at = log.signals.iter().find(|(_, it)| *it == CongestionSignal::Timeout).unwrap().0;
            let ack = log.acks.iter().find(|(time, _)| *time >= at).unwrap().1;
            // kMinimumWindow, and what this ACK lets slow start add.
            assert!(ack.cwnd_bytes <= 4 * DATAGRAM, "{ack:?}");
        }
    }
}

/// B.3: kInitialWindow; B.5: in slow start "congestion_window += acked_packet.sent_bytes".
#[test]
fn slow_start_doubles_from_ten_packets() {
    let mut world = world(wide(|_, _| Fate::Pass));
    world.start(None);
    for (rtts, packets) in [(1, 10), (2, 20), (3, 40), (4, 80)] {
        let end = Time::ZERO + Span::from_ms(100 * rtts + 95);
        world.run(end, |_| false);
        let cwnd = world.client.state().unwrap().cwnd_bytes / DATAGRAM;
        // Pacing spreads a window over 4/5 of an RTT.
        assert!((packets * 9 / 10..=packets).contains(&cwnd), "{cwnd} packets after {rtts} RTTs");
    }
}

/// B.6: "ssthresh = congestion_window * kLossReductionFactor", one half; "congestion_window =
/// max(ssthresh, kMinimumWindow)" at once, or by PRR packet by packet. RFC 9002 §7.3.2: one reduction
/// for all losses of a round trip, and no growth before a packet is acknowledged that was sent later.
#[test]
fn a_loss_halves_the_window_at_once_or_by_prr() {
    for recovery in [Recovery::Rfc9002, Recovery::Prr] {
        let fate =
            |n, _| if (200..260).contains(&n) && n % 7 == 0 { Fate::Drop } else { Fate::Pass };
        let settings = Settings { recovery, ..settings() };
        let mut world = World::observed(&settings, ours("reno"), wide(fate), Log::default());
        world.start(Some(1_500_000));
        world.run_for(Span::from_ms(1100));
        let log = &world.observer;
        assert_eq!(log.signals.len(), 1, "{:?}", log.signals);
        let at = log.signals[0].0;
        let before = log.acks.iter().rev().find(|(time, _)| *time < at).unwrap().1;
        let during: Vec<_> = {
            let end = log.states.iter().find(|(_, it)| *it == RecoveryState::Open).unwrap().0;
            log.acks.iter().filter(|(time, _)| *time >= at && *time < end).map(|it| it.1).collect()
        };
        let half = before.cwnd_bytes / 2;
        let first = during[0].cwnd_bytes;
        let last = during[during.len() - 1].cwnd_bytes;
        match recovery {
            Recovery::Rfc9002 => {
                assert!(during.iter().all(|ack| ack.cwnd_bytes.abs_diff(half) <= DATAGRAM));
            }
            Recovery::Prr => {
                assert!(first > half + 10 * DATAGRAM, "{first} of {}", before.cwnd_bytes);
            }
        }
        assert!(last.abs_diff(half) <= 2 * DATAGRAM, "{recovery:?}: {last}, half is {half}");
    }
}

/// RFC 9002 §5.3: the time for which the receiver held an ACK back is not part of a sample. A lone
/// packet's ACK waits 25 ms.
#[test]
fn delays_of_acks_are_not_in_the_rtt() {
    let mut world = world(wide(|_, _| Fate::Pass));
    world.start(Some(1300));
    world.run_for(Span::from_secs(1));
    for _ in 0..10 {
        world.client.supply(Some(1300));
        world.kick();
        world.run_for(Span::from_ms(400));
    }
    let rtts: Vec<f64> = world.observer.acks.iter().filter_map(|ack| ack.1.rtt).map(ms).collect();
    assert!(rtts.len() >= 10, "{rtts:?}");
    // The handshake's packets were larger: only from the first smaller sample on is the delay known
    // to be one ("MUST NOT subtract the acknowledgment delay from the RTT sample if the resulting
    // value is smaller than the min_rtt").
    let (early, late) = rtts.split_at(2);
    assert!(early[1] > 124.0, "{rtts:?}");
    assert!(late.iter().all(|rtt| (100.0..101.0).contains(rtt)), "{rtts:?}");
}
