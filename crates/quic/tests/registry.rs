//! Every row of the registry over QUIC, whatever the path does.
use crate::common::{Fate, Link, World, controller, ours};
use jostle_congestion::EcnFeedback;
use jostle_congestion::peer_cache::PeerCache;
use jostle_controllers::registry::{CONTROLLERS, MEMORIES, SLOW_STARTS};
use jostle_quic::{AckOutcome, Congestion, Recovery, SenderObserver, Settings, StackController};
use jostle_units::{RandomStream, Rate, Span, Time};
use proptest::prelude::*;

/// What holds whenever an ACK was processed.
#[derive(Default)]
struct Watch {
    acks: u64,
    acked_bytes: u64,
    smallest_cwnd: Option<u64>,
}

impl SenderObserver for Watch {
    fn on_ack(&mut self, _: Time, ack: &AckOutcome) {
        self.acks += 1;
        assert!(ack.acked_bytes >= self.acked_bytes, "acknowledged bytes only grow");
        self.acked_bytes = ack.acked_bytes;
        let smallest = self.smallest_cwnd.unwrap_or(u64::MAX);
        self.smallest_cwnd = Some(smallest.min(ack.cwnd_bytes));
    }
}

fn settings(recovery: Recovery) -> Settings {
    Settings { datagram_bytes: 1472, discover_up_to_bytes: None, recovery, ..Settings::default() }
}

fn check<O: SenderObserver>(world: &World<O>, what: &str, written: Option<u64>) {
    let counters = world.counters();
    let state = world.client.state().unwrap();
    assert!(world.delivered <= counters.new_bytes, "{what}: delivered what was not sent");
    assert!(counters.acked_bytes <= counters.new_bytes, "{what}: {counters:?}");
    assert!(counters.lost_packets <= counters.sent_packets, "{what}: {counters:?}");
    assert!(state.in_flight_bytes <= counters.sent_bytes, "{what}: {state:?}");
    assert!(state.cwnd_bytes >= u64::from(state.datagram_bytes), "{what}: {state:?}");
    if let Some(written) = written {
        assert_eq!((world.delivered, counters.acked_bytes), (written, written), "{what}");
        assert_eq!(counters.new_bytes, written, "{what}");
        assert_eq!(state.in_flight_bytes, 0, "{what}");
    }
}

/// The least goodput of 10 Mbit/s, of which headers leave 9.5: most fill a queue of one BDP.
fn least_mbps(name: &str) -> f64 {
    match name {
        // It is for data centres: its thresholds are microseconds of queueing.
        "timely" => 0.1,
        // They leave the link when delays grow, or go down to two packets on purpose.
        "cdg" => 7.0,
        "ledbat++" => 8.0,
        // Its built-in policy slows down, once per RTT, when the RTT is a fifth above its least.
        "learned" => 7.0,
        _ => 8.7,
    }
}

fn narrow() -> Link {
    Link::new(Rate::from_mbps(10), Span::from_ms(40), 1.0)
}

#[test]
fn every_controller_fills_a_link_and_repeats() {
    for recovery in [Recovery::Rfc9002, Recovery::Prr] {
        for row in CONTROLLERS {
            let name = row.entry.name;
            let needs_marks = controller(name, 1).required_ecn_feedback() != EcnFeedback::None;
            let run = || {
                let mut link = narrow();
                if needs_marks {
                    link.mark_above_bytes = link.queue_bytes / 4;
                }
                let watch = Watch::default();
                let mut world = World::observed(&settings(recovery), ours(name), link, watch);
                world.start(None);
                world.run_for(Span::from_secs(6));
                check(&world, name, None);
                assert!(world.observer.smallest_cwnd.unwrap() >= 1472, "{name}");
                world
            };
            let (first, second) = (run(), run());
            assert_eq!(first.digest, second.digest, "{name} differs from itself");
            let mbps = first.delivered as f64 * 8e-6 / 6.0;
            assert!(mbps > 0.95 * least_mbps(name), "{name}, {recovery:?}: {mbps} Mbit/s");
            // Marks do what drops do otherwise, and ACKs tell of them.
            let counters = first.counters();
            assert_eq!(counters.marked_packets > 0, needs_marks, "{name}: {counters:?}");
            assert!(!needs_marks || counters.lost_packets == 0, "{name}: {counters:?}");
        }
    }
}

#[test]
fn every_slow_start_and_every_memory_carries_data() {
    for row in SLOW_STARTS {
        let start = row.create(&Default::default()).unwrap();
        let cubic = jostle_controllers::registry::controller("cubic").unwrap();
        let random = RandomStream::new(1, "start");
        let congestion =
            Congestion::Ours(cubic.create(&Default::default(), start, random).unwrap());
        let mut world = World::new(&settings(Recovery::Prr), congestion, narrow());
        world.transfer(2_000_000);
        check(&world, row.entry.name, Some(2_000_000));
    }
    for row in MEMORIES {
        let mut memory = PeerCache::default();
        let layered =
            || Congestion::Ours(row.create(&Default::default(), controller("cubic", 1)).unwrap());
        let mut world = World::new(&settings(Recovery::Prr), layered(), narrow());
        let mut took = Vec::new();
        for _ in 0..2 {
            let begin = world.now;
            let (now, before) = (world.now, world.delivered);
            world.client.recall(now, &mut memory);
            world.transfer(400_000);
            took.push(world.now.since(begin));
            assert_eq!(world.delivered - before, 400_000, "{}", row.entry.name);
            let now = world.now;
            world.client.remember(now, &mut memory);
            world.client.close(now);
            world.run_for(Span::from_secs(2));
            world.client.renew(layered());
        }
        // Half of what so short a connection had is no more than slow start's second flight, and it
        // is spread over a round trip.
        let paced = if row.entry.name == "careful-resume" { 1 } else { 0 };
        let most = took[0] + Span::from_ms(40).mul_div(paced, 1);
        assert!(took[1] <= most, "{}: {took:?}", row.entry.name);
    }
}

/// The stack's own controllers tell the observer as ours do.
#[test]
fn controllers_of_the_stack_are_observed() {
    for stack in [StackController::Cubic, StackController::Reno, StackController::Bbr3] {
        let watch = Watch::default();
        let settings = settings(Recovery::Rfc9002);
        let mut world = World::observed(&settings, Congestion::Stack(stack), narrow(), watch);
        world.transfer(1_000_000);
        assert!(world.observer.acks > 100 && world.observer.acked_bytes == 1_000_000, "{stack:?}");
        assert!(world.observer.smallest_cwnd.unwrap() >= 2 * 1472, "{stack:?}");
        let state = world.client.state().unwrap();
        assert!(state.srtt >= Span::from_ms(40), "{stack:?}: {state:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever controller, whatever is lost, marked and delayed: what was written arrives, once.
    #[test]
    fn bytes_are_conserved_whatever_the_path_does(
        row in 0..CONTROLLERS.len(),
        prr: bool,
        bytes in 1u64..400_000,
        seed: u64,
        loss in 0.0f64..0.1,
        late in 0.0f64..0.05,
        queue_bdp in 0.05f64..3.0,
        streams in 1u32..5,
        burst_datagrams in 1u8..20,
        ecn: bool,
    ) {
        let name = CONTROLLERS[row].entry.name;
        let recovery = if prr { Recovery::Prr } else { Recovery::Rfc9002 };
        let settings = Settings { streams, burst_datagrams, ecn, ..settings(recovery) };
        let mut random = RandomStream::new(seed, "path");
        let link = Link::new(Rate::from_mbps(20), Span::from_ms(20), queue_bdp);
        let link = link.with(move |_, _| {
            if random.chance(loss) {
                Fate::Drop
            } else if random.chance(late) {
                Fate::Delay(Span::from_us(random.below(30_000)))
            } else {
                Fate::Pass
            }
        });
        let mut world = World::observed(&settings, ours(name), link, Watch::default());
        world.transfer(bytes);
        world.run_for(Span::from_secs(3));
        check(&world, name, Some(bytes));
    }
}
