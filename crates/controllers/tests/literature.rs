//! Controllers of the literature against what their papers promise, on the harness.

use crate::common::{Path, Transfer, build, default_controller};
use jostle_congestion::RecoveryState;
use jostle_registry::ParameterValue;
use jostle_units::{RandomStream, Rate, Span};

/// A transfer in congestion avoidance at a window of `cwnd`.
fn avoiding(path: Path, name: &str, cwnd: u32) -> Transfer {
    let mut transfer = Transfer::new(path, default_controller(name));
    transfer.controller.set_ssthresh(2);
    transfer.controller.set_cwnd(cwnd);
    transfer
}

/// Mean, least and greatest queue in packets from now until `to_s`, sampled every 10 ms.
fn queue_until(transfer: &mut Transfer, to_s: f64) -> (f64, usize, usize) {
    let (mut sum, mut least, mut longest, mut samples) = (0, usize::MAX, 0, 0);
    while transfer.now.as_secs_f64() + 0.01 <= to_s {
        transfer.run_until(transfer.now.as_secs_f64() + 0.01);
        let queue = transfer.queue();
        (sum, samples) = (sum + queue, samples + 1);
        (least, longest) = (least.min(queue), longest.max(queue));
    }
    (sum as f64 / f64::from(samples), least, longest)
}

/// A path whose queue never builds up: not even a burst of the whole window takes a microsecond.
fn endless() -> Path {
    Path::new(Rate::from_mbps(10_000_000), Span::from_ms(100), 100_000)
}

/// algorithms.md: at 256 packets and without a queue D gains ⅛ · 256^¾ − 1 = 7 packets per round
/// trip, and W one.
#[test]
fn compound_grows_by_eight_packets_at_256() {
    let mut transfer = avoiding(endless(), "compound", 200);
    while transfer.controller.cwnd() < 256 {
        transfer.step();
    }
    let before = transfer.controller.cwnd();
    transfer.run_rounds(5);
    let growth = f64::from(transfer.controller.cwnd() - before) / 5.0;
    assert!((7.5..=9.0).contains(&growth), "{growth} packets per round trip");
}

/// D ends at about γ packets in the queue, where Reno alone goes on.
#[test]
fn compound_fills_the_path_and_then_grows_as_reno() {
    let path = Path::new(Rate::from_mbps(100), Span::from_ms(100), 2_000);
    let mut transfer = avoiding(path, "compound", 200);
    transfer.run_until(20.0);
    let (mean, _, longest) = queue_until(&mut transfer, 40.0);
    assert!(mean > 5.0 && longest < 200, "mean {mean:.1}, longest {longest}");
    assert_eq!(transfer.total_lost, 0);
}

/// algorithms.md: α packets stay in the queue; 10 % and half a packet for the rounding.
#[test]
fn fast_and_vfast_keep_alpha_packets_in_the_queue() {
    for name in ["fast", "vfast"] {
        for alpha in [8, 20, 100] {
            let path = Path::new(Rate::from_mbps(100), Span::from_ms(50), 2_000);
            let given = [("alpha", ParameterValue::Integer(alpha))];
            let mut transfer = Transfer::new(path, build(name, &given, None));
            transfer.run_until(20.0);
            let (mean, ..) = queue_until(&mut transfer, 40.0);
            let alpha = alpha as f64;
            assert!((mean - alpha).abs() <= 0.1 * alpha + 1.0, "{name}: {mean:.1}, not {alpha}");
            assert_eq!(transfer.total_lost, 0, "{name}");
        }
    }
}

/// algorithms.md: VFAST settles no later than FAST. The path halves its rate; the queue is back at
/// α ± 20 %.
#[test]
fn vfast_settles_no_later_than_fast() {
    let [fast, vfast] = ["fast", "vfast"].map(|name| {
        let path = Path::new(Rate::from_mbps(100), Span::from_ms(50), 2_000);
        let mut transfer = Transfer::new(path, default_controller(name));
        transfer.run_until(20.0);
        transfer.path.rate = Rate::from_mbps(50);
        let mut unsettled_s = 0.0;
        for i in 1..=1_000 {
            transfer.run_until(20.0 + f64::from(i) / 100.0);
            if !(16..=24).contains(&transfer.queue()) {
                unsettled_s = f64::from(i) / 100.0;
            }
        }
        unsettled_s
    });
    assert!(vfast <= fast && fast < 5.0, "vfast {vfast} s, fast {fast} s");
}

/// A longer way, on which nothing queues, looks like a queue to Vegas for ever. The throughput of
/// Vegas-A rises with its window once something moves it: that the RTT wavers by 2 %, as RTTs do.
#[test]
fn vegas_a_takes_a_longer_path_and_vegas_does_not() {
    let [vegas_a, vegas] = ["vegas-a", "vegas"].map(|name| {
        let mut random = RandomStream::new(1, "wavering");
        let path = Path::new(Rate::from_mbps(5), Span::from_ms(50), 200);
        let mut transfer = Transfer::new(path, default_controller(name));
        transfer.run_until(10.0);
        let mut settled = 0;
        for i in 1..=3_000 {
            transfer.path.rtt = Span::from_us(99_000 + random.below(2_000));
            transfer.run_until(10.0 + f64::from(i) / 50.0);
            if i == 2_000 {
                settled = transfer.delivered();
            }
        }
        (transfer.delivered() - settled) as f64 * 1514.0 * 8.0 / (20.0 * 5e6)
    });
    assert!(vegas_a > 0.9 && vegas < 0.6, "{vegas_a:.2} and {vegas:.2}");
}

/// algorithms.md: the queueing delay swings around half of the greatest that was seen.
#[test]
fn dual_swings_around_half_of_the_longest_queue() {
    let path = Path::new(Rate::from_mbps(50), Span::from_ms(40), 400);
    let mut transfer = Transfer::new(path, default_controller("dual"));
    transfer.run_until(10.0);
    let (lost, used) =
        (transfer.total_lost, transfer.utilisation(transfer.now.as_secs_f64(), 20.0));
    let (mean, least, longest) = queue_until(&mut transfer, 60.0);
    assert!((0.8..=1.2).contains(&(mean / 200.0)), "{least} to {longest}, mean {mean:.1}");
    assert!(used > 0.99 && transfer.total_lost == lost && lost > 0, "{used:.3} used");
}

/// algorithms.md: growth is that of HighSpeed until 1.64 packets queue, and then a packet per round
/// trip: as soon as a whole round has seen the queue.
#[test]
fn africa_slows_down_within_a_round_trip_of_a_queue() {
    let path = Path::new(Rate::from_mbps(100), Span::from_ms(100), 2_000);
    let mut transfer = avoiding(path, "africa", 300);
    transfer.run_until(2.0);
    let before = transfer.controller.cwnd();
    transfer.run_rounds(5);
    let growth = f64::from(transfer.controller.cwnd() - before) / 5.0;
    assert!(growth > 3.0, "{growth} packets per round trip without a queue");
    // 826 packets fit.
    while transfer.controller.cwnd() < 832 {
        transfer.step();
    }
    transfer.run_rounds(2);
    let before = transfer.controller.cwnd();
    transfer.run_rounds(10);
    let growth = f64::from(transfer.controller.cwnd() - before) / 10.0;
    assert!((0.9..=1.1).contains(&growth), "{growth} packets per round trip with one");
}

/// algorithms.md: growth without congestion is 0.8 Wm + 1 packets per round trip (and Reno's one), Wm
/// being a packet per 10 Mbit/s, and a loss there takes nothing; where the queue is as long as it is
/// at losses, a loss takes half.
#[test]
fn areno_grows_by_the_rate_and_yields_by_the_queue() {
    let path = Path::new(Rate::from_mbps(100), Span::from_ms(100), 800);
    let mut transfer = Transfer::new(path, default_controller("areno"));
    while transfer.recoveries < 3 || transfer.state != RecoveryState::Open {
        transfer.step();
    }
    let mut before = 0;
    while transfer.recoveries < 4 {
        before = transfer.controller.cwnd();
        transfer.step();
    }
    let kept = f64::from(transfer.controller.ssthresh().unwrap()) / f64::from(before);
    assert!((0.45..=0.6).contains(&kept), "kept {kept:.2} of {before}");

    transfer.controller.set_ssthresh(2);
    while transfer.state != RecoveryState::Open {
        transfer.step();
    }
    // Far from what fits, at the rate that was measured when the path was full.
    transfer.controller.set_cwnd(400);
    transfer.run_rounds(3);
    let before = f64::from(transfer.controller.cwnd());
    transfer.run_rounds(2);
    let growth = (f64::from(transfer.controller.cwnd()) - before) / 2.0;
    assert!((5.0..=10.0).contains(&growth), "{growth} packets per round trip");
    let before = transfer.controller.cwnd();
    transfer.path.loss = 0.05;
    while transfer.state != RecoveryState::Recovery {
        transfer.step();
    }
    let kept = f64::from(transfer.controller.ssthresh().unwrap()) / f64::from(before);
    assert!(kept > 0.9, "kept {kept:.2}");
}

/// algorithms.md: never below the Reno window, and at most 3 Dmin ± 2 ms in the queue, as long as
/// the Reno window has not caught up.
#[test]
fn fusion_keeps_a_few_milliseconds_in_the_queue() {
    let path = Path::new(Rate::from_mbps(100), Span::from_ms(100), 2_000);
    let mut transfer = avoiding(path, "fusion", 300);
    transfer.run_until(15.0);
    let now_s = transfer.now.as_secs_f64();
    let used = transfer.utilisation(now_s, 20.0);
    let (mean, least, longest) = queue_until(&mut transfer, 30.0);
    let ms = |packets: f64| packets * 0.12112;
    assert!(used > 0.99, "{used:.3} used");
    assert!(ms(longest as f64) <= 14.0, "{least} to {longest}, mean {mean:.1}");
    assert_eq!(transfer.total_lost, 0);
    // After 300 + 826 + 99 packets of Reno's growth at 112 ms a round trip, Reno rules.
    transfer.run_until(120.0);
    let before = transfer.controller.cwnd();
    transfer.run_rounds(10);
    let growth = transfer.controller.cwnd() - before;
    assert!((9..=11).contains(&growth), "{growth} packets in ten round trips");
}

/// algorithms.md: at the same loss rate the rates at 20 and at 200 ms differ by less than 1.5, Reno's
/// by 10.
#[test]
fn libra_gives_long_ways_the_rate_of_short_ones() {
    let ratio = |name| {
        let [short, long] = [20, 200].map(|rtt_ms| {
            let path = Path::new(Rate::from_mbps(1_000), Span::from_ms(rtt_ms), 20_000);
            let mut transfer = Transfer::new(Path { loss: 1e-3, ..path }, default_controller(name));
            transfer.run_until(50.0);
            let before = transfer.delivered();
            transfer.run_until(450.0);
            (transfer.delivered() - before) as f64
        });
        short / long
    };
    let (libra, reno) = (ratio("libra"), ratio("reno"));
    assert!((0.67..=1.5).contains(&libra) && reno > 7.0, "{libra:.2} and {reno:.2}");
}

/// algorithms.md: the distance to the window of the last loss halves in α ln 2 = 1.4 round trips.
#[test]
fn log_westwood_returns_fast_to_where_it_was() {
    let path = Path::new(Rate::from_mbps(100), Span::from_ms(100), 400);
    let rounds = |name| {
        let mut transfer = Transfer::new(path, default_controller(name));
        while transfer.recoveries < 3 {
            transfer.step();
        }
        let most = transfer.controller.cwnd();
        while transfer.state != RecoveryState::Open {
            transfer.step();
        }
        let start = transfer.rounds;
        let target = most - (most - transfer.controller.cwnd()) / 4;
        while transfer.controller.cwnd() < target {
            transfer.step();
        }
        transfer.rounds - start
    };
    let (log, westwood) = (rounds("log-westwood+"), rounds("westwood"));
    // Two halvings, and the round that was under way.
    assert!((2..=5).contains(&log) && westwood > 50, "{log} and {westwood} round trips");
}

/// algorithms.md: at 100 Mbit/s and 100 ms 90 % of the BDP without loss, in twice the time of slow
/// start at most. With a buffer of one BDP slow start itself goes on until it loses packets.
#[test]
fn tcpw_a_starts_up_to_the_bdp_without_a_loss() {
    let path = Path::new(Rate::from_mbps(100), Span::from_ms(100), 826);
    let rounds = |name| {
        let mut transfer = Transfer::new(path, default_controller(name));
        while f64::from(transfer.controller.cwnd()) < 0.9 * path.bdp() {
            transfer.step();
        }
        let rounds = transfer.rounds;
        transfer.run_rounds(10);
        (rounds, transfer.total_lost)
    };
    let ((probing, lost), (slow_start, lost_there)) = (rounds("tcpw-a"), rounds("reno"));
    assert!(probing <= 2 * slow_start, "{probing} and {slow_start} round trips");
    assert!(lost == 0 && lost_there > 100, "{lost} and {lost_there} lost");
}

/// Persistent non-congestion: the path becomes ten times as fast, and the window follows at once
/// instead of by a packet per round trip.
#[test]
fn tcpw_a_finds_new_bandwidth() {
    let rounds = |name| {
        let path = Path::new(Rate::from_mbps(10), Span::from_ms(100), 100);
        let mut transfer = Transfer::new(path, default_controller(name));
        transfer.run_until(30.0);
        transfer.path.rate = Rate::from_mbps(100);
        let start = transfer.rounds;
        while f64::from(transfer.controller.cwnd()) < 0.8 * transfer.path.bdp() {
            transfer.step();
        }
        transfer.rounds - start
    };
    let (tcpw_a, westwood) = (rounds("tcpw-a"), rounds("westwood"));
    assert!(tcpw_a < 40 && westwood > 200, "{tcpw_a} and {westwood} round trips");
}

/// Westwood as first published: on a path of 10 Mbit/s and 50 ms whose queue is full at the loss, W
/// falls to about the BDP, 43 packets, and the link stays busy; where loss is random it keeps more than
/// Reno does.
#[test]
fn the_first_westwood_falls_to_the_bdp() {
    let path = Path::new(Rate::from_mbps(10), Span::from_ms(50), 41);
    let mut transfer = Transfer::new(path, default_controller("tcpw"));
    transfer.run_until(30.0);
    let recoveries = transfer.recoveries;
    while transfer.recoveries == recoveries || transfer.state != RecoveryState::Open {
        transfer.step();
    }
    let after = transfer.controller.cwnd();
    let (start, already) = (transfer.now.as_secs_f64(), transfer.delivered());
    transfer.run_until(start + 30.0);
    let used = (transfer.delivered() - already) as f64 * 1514.0 * 8.0 / 300e6;
    assert!((38..=47).contains(&after), "{after} packets");
    assert!(used > 0.98, "{used:.3} of the link");

    let lossy = Path { loss: 1e-3, ..Path::new(Rate::from_mbps(20), Span::from_ms(100), 165) };
    let [tcpw, reno] = ["tcpw", "reno"].map(|name| {
        let mut transfer = Transfer::new(lossy, default_controller(name));
        transfer.run_until(300.0);
        transfer.delivered()
    });
    assert!(tcpw as f64 > 1.25 * reno as f64, "{tcpw} beside {reno} packets");
}
