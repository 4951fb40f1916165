//! Two ends and a link between them.
use crate::common::{Fate, Link, World, ours};
use jostle_quic::{Congestion, Handshake, Settings, StackController};
use jostle_units::{Rate, Span};

const MEGABYTE: u64 = 1_000_000;

fn link() -> Link {
    Link::new(Rate::from_mbps(10), Span::from_ms(40), 1.0)
}

#[test]
fn a_megabyte_arrives_and_the_same_seed_gives_the_same_packets() {
    let run = |congestion| {
        let mut world = World::new(&Settings::default(), congestion, link());
        let span = world.transfer(MEGABYTE);
        assert_eq!(world.delivered, MEGABYTE);
        assert_eq!(world.counters().acked_bytes, MEGABYTE);
        assert_eq!(world.counters().new_bytes, MEGABYTE);
        (span, world.digest, world.sent, world.acks)
    };
    let first = run(ours("cubic"));
    assert_eq!(first, run(ours("cubic")));
    // 1 MB in datagrams of 1452 bytes and 42 of headers at 10 Mbit/s: 0.84 s, and two round trips.
    let span = first.0.as_secs_f64();
    assert!((0.9..1.3).contains(&span), "{span} s");
    assert_ne!(first.1, run(ours("reno")).1);
    let stack = run(Congestion::Stack(StackController::Cubic));
    assert_eq!(stack, run(Congestion::Stack(StackController::Cubic)));
}

#[test]
fn every_controller_of_the_stack_carries_data() {
    for stack in [StackController::Cubic, StackController::Reno, StackController::Bbr3] {
        let mut world = World::new(&Settings::default(), Congestion::Stack(stack), link());
        world.transfer(MEGABYTE);
        assert_eq!(world.delivered, MEGABYTE, "{stack:?}");
    }
}

#[test]
fn zero_rtt_data_leave_with_the_first_packet() {
    let small = 4_000;
    let run = |handshake| {
        let settings = Settings { handshake, ..Settings::default() };
        let mut world = World::new(&settings, ours("cubic"), link());
        world.start(Some(small));
        let end = world.now + Span::from_secs(5);
        world.run(end, |world| world.delivered == small);
        world.now.as_secs_f64()
    };
    let (one, zero) = (run(Handshake::OneRtt), run(Handshake::ZeroRtt));
    assert!((0.02..0.03).contains(&zero), "{zero} s");
    // A round trip more, and the time that the handshake's packets take on the link.
    assert!((0.0385..0.043).contains(&(one - zero)), "{one} s, {zero} s");
}

#[test]
fn a_connection_can_be_opened_again() {
    let mut world = World::new(&Settings::default(), ours("cubic"), link());
    world.transfer(100_000);
    world.client.close(world.now);
    world.run_for(Span::from_ms(500));
    world.client.renew(ours("reno"));
    world.transfer(200_000);
    assert_eq!(world.delivered, 300_000);
    assert_eq!(world.counters().acked_bytes, 200_000);
}

#[test]
fn what_is_lost_is_sent_again() {
    let fated = link().with(|number, _| if number % 50 == 7 { Fate::Drop } else { Fate::Pass });
    let mut world = World::new(&Settings::default(), ours("reno"), fated);
    world.transfer(MEGABYTE);
    let counters = world.counters();
    assert_eq!(world.delivered, MEGABYTE);
    assert!(counters.lost_packets >= 10, "{counters:?}");
    assert!(counters.retransmitted_bytes >= counters.lost_packets * 900, "{counters:?}");
    assert_eq!(counters.acked_bytes, MEGABYTE, "{counters:?}");
}

#[test]
fn a_stream_with_thousands_of_gaps_is_delivered() {
    // Slow start that overshoots: every second packet of a window of 6,000 is lost.
    let settings = Settings { initial_window_packets: 6_000, pacing: false, ..Settings::default() };
    let fated = Link::new(Rate::from_mbps(1_000), Span::from_ms(80), 2.0)
        .with(|number, _| if number < 6_000 && number % 2 == 1 { Fate::Drop } else { Fate::Pass });
    let mut world = World::new(&settings, ours("cubic"), fated);
    world.transfer(12 * MEGABYTE);
    assert_eq!(world.delivered, 12 * MEGABYTE);
    assert!(world.dropped > 2_500, "{} packets were lost", world.dropped);
}

#[test]
fn packets_of_many_small_frames_are_delivered() {
    // Losses of retransmissions leave pieces of some bytes, up to 26 of which share a packet.
    let path = Link::new(Rate::from_mbps(100), Span::from_ms(300), 1.0);
    let mut world = World::new(&Settings::default(), ours("bic"), path);
    world.transfer(48 * MEGABYTE);
    assert_eq!(world.delivered, 48 * MEGABYTE);
    assert!(world.dropped > 5_000, "{} packets were lost", world.dropped);
    // The window is the same as before.
    world.transfer(32 * MEGABYTE);
    assert_eq!(world.delivered, 80 * MEGABYTE);
}

#[test]
fn data_beyond_a_gap_occupy_the_receive_window() {
    let window = 65_536;
    // The window of the connection, and that of a stream, limits the sender.
    for connection_window_bytes in [window, 16 * window] {
        let settings = Settings {
            stream_window_bytes: window,
            connection_window_bytes,
            ..Settings::default()
        };
        let fated =
            link().with(|number, _| if number % 100 == 60 { Fate::Drop } else { Fate::Pass });
        let mut world = World::new(&settings, ours("cubic"), fated);
        world.start(Some(MEGABYTE));
        let (mut most, end) = (0, world.now + Span::from_secs(60));
        world.run(end, |world| {
            // A 32nd of the window and a datagram more: smaller parts are not withheld, and credit
            // is withheld after a datagram was read.
            most = most.max(world.counters().new_bytes - world.delivered);
            world.client.is_drained()
        });
        assert_eq!(world.delivered, MEGABYTE);
        assert!(world.dropped >= 5, "{} packets were lost", world.dropped);
        assert!((window / 2..window + window / 32 + 1_500).contains(&most), "{most} bytes");
    }
}
