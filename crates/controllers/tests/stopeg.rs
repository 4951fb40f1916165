//! StopEG on paths of their own: as a slow start of Reno, as the end of BBR's STARTUP.

use crate::common::{Path, Transfer, build, default_controller};
use jostle_congestion::CongestionController;
use jostle_registry::ParameterValue;
use jostle_units::{Rate, Span};

/// Rate in Mbit/s and round trip in milliseconds: BDPs of 33 to 3,300 packets, between powers of
/// two in every way.
const PATHS: [(u64, u64); 8] =
    [(10, 40), (10, 100), (50, 40), (50, 60), (50, 80), (100, 50), (100, 70), (1000, 40)];

fn path((mbps, rtt_ms): (u64, u64)) -> Path {
    let mut path = Path::new(Rate::from_mbps(mbps), Span::from_ms(rtt_ms), 0);
    path.buffer = (4.0 * path.bdp()) as usize;
    Path { ack_every: 2, ..path }
}

fn bbr(threshold: f64) -> Box<dyn CongestionController> {
    let exit = ParameterValue::Text("stopeg".to_owned());
    let threshold = ParameterValue::Number(threshold);
    build("bbr", &[("startup_exit", exit), ("stopeg_threshold", threshold)], None)
}

/// A start-up, with queues in BDPs.
struct StartUp {
    /// When it was over.
    queue_at_exit: f64,
    peak_queue: f64,
    /// Queue over time in the first three seconds, in BDP · s.
    queue_s: f64,
    delivered: u64,
    lost: u64,
}

fn start_up(path: Path, controller: Box<dyn CongestionController>, still: &str) -> StartUp {
    let mut transfer = Transfer::new(path, controller);
    let bdp = path.bdp();
    let mut found =
        StartUp { queue_at_exit: f64::NAN, peak_queue: 0.0, queue_s: 0.0, delivered: 0, lost: 0 };
    let mut last = transfer.now;
    while transfer.now.as_secs_f64() < 3.0 {
        let queue = transfer.queue() as f64 / bdp;
        transfer.step();
        found.queue_s += queue * transfer.now.since(last).as_secs_f64();
        found.peak_queue = found.peak_queue.max(queue);
        last = transfer.now;
        if found.queue_at_exit.is_nan() && transfer.controller.mode() != still {
            found.queue_at_exit = queue;
        }
    }
    StartUp { delivered: transfer.delivered(), lost: transfer.total_lost, ..found }
}

/// At 0.60 STARTUP goes on until there is a queue, wherever the window stands between powers of
/// two, and costs a fraction of the queue that three rounds without growth do.
#[test]
fn it_ends_startup_when_the_pipe_is_full() {
    for at in PATHS {
        let plain = start_up(path(at), default_controller("bbr"), "startup");
        let with = start_up(path(at), bbr(0.60), "startup");
        assert!((0.2..=2.1).contains(&with.queue_at_exit), "{at:?}: {} BDP", with.queue_at_exit);
        assert!(with.peak_queue <= plain.peak_queue);
        let share = with.queue_s / plain.queue_s;
        assert!(share < 0.55, "{at:?}: {share} of the queue");
        let share = with.delivered as f64 / plain.delivered as f64;
        assert!(share > 0.985, "{at:?}: {share} of what was delivered");
    }
}

/// The printed threshold lies below what ideal doubling shows: where the window can double for
/// long enough, it ends STARTUP before the pipe is full.
#[test]
fn the_printed_threshold_stops_too_early_on_large_paths() {
    for threshold in [0.568, 0.586] {
        let early = start_up(path((1000, 40)), bbr(threshold), "startup");
        assert!(early.queue_at_exit < 0.05, "{} BDP at {threshold}", early.queue_at_exit);
        let late = start_up(path((1000, 40)), bbr(0.60), "startup");
        assert!((early.delivered as f64) < 0.9 * late.delivered as f64);
    }
}

/// A window that doubles once per round trip is looked at once per round trip, when it is between
/// 1.25 and 2.5 BDP, and grows for half a round trip until the answer is there.
#[test]
fn slow_start_ends_within_a_round_trip_of_a_full_pipe() {
    for at in PATHS {
        let with = start_up(path(at), build("reno", &[], Some("stopeg")), "slow_start");
        assert!((0.2..=2.1).contains(&with.queue_at_exit), "{at:?}: {} BDP", with.queue_at_exit);
        assert_eq!(with.lost, 0, "{at:?}");
        let standard = start_up(path(at), default_controller("reno"), "slow_start");
        assert!(standard.lost > 0, "{at:?}");
    }
}
