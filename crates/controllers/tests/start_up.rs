//! Slow starts: how each composes with every window-based controller, and what its source promises,
//! on the harness.

use crate::common::{Path, Transfer, build};
use jostle_congestion::CongestionController;
use jostle_controllers::registry::{self, CONTROLLERS, SLOW_STARTS, SlowStartChoice};
use jostle_registry::ParameterValue;
use jostle_units::{RandomStream, Rate, Span};

/// Reno with a slow start and parameters for it.
fn reno(slow_start: &str, parameters: &[(&str, ParameterValue)]) -> Box<dyn CongestionController> {
    let given = parameters.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    let slow_start = registry::slow_start(slow_start).unwrap().create(&given).unwrap();
    let row = registry::controller("reno").unwrap();
    row.create(&Default::default(), slow_start, RandomStream::new(1, "reno")).unwrap()
}

fn word(name: &'static str, choice: &str) -> [(&'static str, ParameterValue); 1] {
    [(name, ParameterValue::Text(choice.to_owned()))]
}

fn in_slow_start(transfer: &Transfer) -> bool {
    transfer.controller.ssthresh().is_none_or(|ssthresh| transfer.controller.cwnd() < ssthresh)
}

/// cwnd at the end of every round until slow start is over, that of its end last.
fn windows(transfer: &mut Transfer) -> Vec<u32> {
    let mut windows = Vec::new();
    let mut rounds = transfer.rounds;
    while in_slow_start(transfer) {
        transfer.step();
        if transfer.rounds != rounds {
            rounds = transfer.rounds;
            windows.push(transfer.controller.cwnd());
        }
    }
    windows.push(transfer.controller.cwnd());
    windows
}

/// 50 Mbit/s and 100 ms, as algorithms.md asks for, with room for so many BDPs of 413 packets.
fn fifty_mbps(buffer_bdps: f64) -> Path {
    let path = Path::new(Rate::from_mbps(50), Span::from_ms(100), usize::MAX);
    Path { buffer: (path.bdp() * buffer_bdps) as usize, ..path }
}

/// cwnd, ssthresh and mode.
type Shown = (u32, Option<u32>, &'static str);

/// What a controller shows, and whether slow start was over at some time.
fn life(controller: &str, slow_start: &str, path: Path) -> (Vec<Shown>, bool) {
    // A response of a few windows, then no end: who sends all at once sends no more than that.
    let mut transfer = Transfer::of(1_000, path, build(controller, &[], Some(slow_start)));
    transfer.offer(u64::MAX);
    let mut shown = Vec::new();
    let mut left = false;
    // Libra hardly grows after a loss in a small window.
    let end = jostle_units::Time::ZERO + Span::from_secs(10);
    while transfer.next_time() <= end {
        transfer.step();
        let controller = &transfer.controller;
        assert!(controller.cwnd() >= 1);
        left |= !in_slow_start(&transfer);
        shown.push((controller.cwnd(), controller.ssthresh(), controller.mode()));
    }
    let delivered = transfer.delivered();
    assert!(delivered > 1_000, "{controller} with {slow_start}: {delivered} delivered");
    (shown, left)
}

/// Every method, with every law, over a path with room for one BDP and one with hardly any: no
/// panic, a window that never vanishes, the same run every time, and an end of slow start.
#[test]
fn every_slow_start_composes_with_every_controller() {
    for row in CONTROLLERS.iter().filter(|row| matches!(row.start, SlowStartChoice::Composed(_))) {
        // TCP-LP cuts cwnd and leaves ssthresh where it is: it withdraws before any loss.
        if row.entry.name == "lp" {
            continue;
        }
        for start in SLOW_STARTS {
            for (buffer, ack_every) in [(82, 1), (82, 2), (4, 2)] {
                let path = Path::new(Rate::from_mbps(20), Span::from_ms(50), buffer);
                let path = Path { ack_every, ..path };
                let (shown, left) = life(row.entry.name, start.entry.name, path);
                let what = format!("{} with {}, {path:?}", row.entry.name, start.entry.name);
                assert!(left, "{what} never leaves slow start");
                assert_eq!(shown, life(row.entry.name, start.entry.name, path).0, "{what}");
            }
        }
    }
}

/// algorithms.md: round n sends 10 · 2ⁿ.
#[test]
fn standard_slow_start_doubles_until_a_loss() {
    let mut transfer = Transfer::new(fifty_mbps(1.0), reno("standard", &[]));
    let windows = windows(&mut transfer);
    assert_eq!(windows[..6], [11, 21, 41, 81, 161, 321]);
    assert!(transfer.total_lost > 0);
}

/// RFC 3742 §2: with K = int(cwnd / (0.5 max_ssthresh)) a round trip is worth max_ssthresh / 2.
#[test]
fn limited_slow_start_adds_fifty_packets_a_round() {
    let mut transfer = Transfer::new(fifty_mbps(1.0), reno("limited", &[]));
    let windows = windows(&mut transfer);
    let steps: Vec<u32> = windows.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let beyond = windows.iter().position(|&cwnd| cwnd > 100).unwrap();
    // The last round, in which the loss is noticed, is not over.
    for step in &steps[beyond..steps.len() - 2] {
        assert!((49..=51).contains(step), "{windows:?}");
    }
    assert!(transfer.total_lost > 0 && transfer.total_lost <= 100, "{}", transfer.total_lost);
}

/// The papers' margin is half of Linux's: where a round leaves between a sixteenth and an eighth of
/// the RTT in the queue, they exit a round earlier. The first packets of a round decide, so on other
/// paths the same round is the last one for both.
#[test]
fn hystart_as_published_leaves_by_a_smaller_delay() {
    let exit = |name, kbps: u64| {
        let path = Path::new(Rate::from_bps(kbps * 1_000), Span::from_ms(100), 1000);
        let mut transfer = Transfer::new(path, reno(name, &word("detect", "delay")));
        let last = *windows(&mut transfer).last().unwrap();
        assert_eq!(transfer.total_lost, 0);
        f64::from(last)
    };
    let mut earlier = 0;
    for kbps in (2_000..4_000).step_by(100) {
        let share = exit("hystart-paper", kbps) / exit("hystart", kbps);
        // The same round, a packet later: at most 1 of 40.
        assert!(share < 1.03, "{share} at {kbps} kbit/s");
        earlier += u32::from(share < 0.7);
    }
    assert!(earlier > 0);
}

/// RFC 9406 with a queue that keeps growing: conservative slow start takes five rounds, in which
/// the window grows 1.25⁵ = 3.05-fold (less what of the first round was over).
#[test]
fn hystart_plus_plus_spends_five_rounds_in_conservative_slow_start() {
    let mut transfer = Transfer::new(fifty_mbps(10.0), reno("hystart++", &[]));
    while transfer.controller.mode() == "slow_start" {
        transfer.step();
    }
    let (entered, round) = (f64::from(transfer.controller.cwnd()), transfer.rounds);
    let bdp = fifty_mbps(1.0).bdp();
    assert!((1.0 * bdp..=4.0 * bdp).contains(&entered), "entered at {entered}, BDP {bdp:.0}");
    while in_slow_start(&transfer) {
        assert_eq!(transfer.controller.mode(), "conservative_slow_start");
        transfer.step();
    }
    let gain = f64::from(transfer.controller.cwnd()) / entered;
    assert!((5..=6).contains(&(transfer.rounds - round)), "{} rounds", transfer.rounds - round);
    assert!((2.4..=3.06).contains(&gain), "{gain:.2}");
    assert_eq!(transfer.total_lost, 0);
}

/// algorithms.md: over 50 Mbit/s and 100 ms the exit comes one to three round trips after the
/// window has reached the BDP, and not before it has 80 % of it.
#[test]
fn search_leaves_one_to_three_rounds_late() {
    for (compare, exit) in [("sent", "stay"), ("sent", "drain"), ("delivered", "stay")] {
        let parameters = [&word("compare", compare)[..], &word("exit", exit)[..]].concat();
        let mut transfer = Transfer::new(fifty_mbps(20.0), reno("search", &parameters));
        let bdp = fifty_mbps(1.0).bdp();
        while f64::from(transfer.controller.cwnd()) < bdp {
            transfer.step();
            assert!(in_slow_start(&transfer) && transfer.controller.mode() == "slow_start");
        }
        let reached = transfer.rounds;
        while in_slow_start(&transfer) && transfer.controller.mode() == "slow_start" {
            transfer.step();
        }
        let late = transfer.rounds - reached;
        assert!((1..=3).contains(&late), "{compare}: {late} rounds");
        assert_eq!(transfer.total_lost, 0);
    }
}

/// draft-chung-ietf-ccwg-00 §3, lines 39 to 42: five bins of 35 ms of a full path are 1.75
/// BDPs.
#[test]
fn search_takes_back_what_two_round_trips_delivered() {
    let parameters = word("compare", "delivered");
    let mut transfer = Transfer::new(fifty_mbps(20.0), reno("search", &parameters));
    let mut before = 0;
    while in_slow_start(&transfer) {
        before = transfer.controller.cwnd();
        transfer.step();
    }
    let after = transfer.controller.cwnd();
    let share = (f64::from(before) - f64::from(after)) / fifty_mbps(1.0).bdp();
    assert!((1.7..=1.8).contains(&share), "{before} to {after}: {share:.2} BDP");
    assert_eq!(transfer.controller.ssthresh(), Some(after));
}

/// The drain ends with about one BDP: what the path delivered in an initial RTT, which three bins
/// exceed by a twentieth.
#[test]
fn search_drains_to_the_bdp() {
    let mut transfer = Transfer::new(fifty_mbps(20.0), reno("search", &[]));
    let end = *windows(&mut transfer).last().unwrap();
    let share = f64::from(end) / fifty_mbps(1.0).bdp();
    assert!((0.95..=1.1).contains(&share), "{share:.2} BDP");
    assert_eq!(transfer.controller.ssthresh(), Some(end));
    // Nothing waits: the queue was emptied on the way.
    assert!(transfer.queue() < 50, "{} packets wait", transfer.queue());
}

/// Between 30 and 300 us a packet, with an ACK for each as the authors had it: what the last chirps
/// found, and what was then in flight.
#[test]
fn paced_chirping_finds_the_capacity() {
    for mbps in [40, 100, 250, 400] {
        for rtt_ms in [20, 50, 150] {
            let path = Path::new(Rate::from_mbps(mbps), Span::from_ms(rtt_ms), usize::MAX);
            let mut transfer = Transfer::new(path, reno("paced-chirping", &[]));
            let (mut payload_bps, mut queue) = (0, 0);
            while in_slow_start(&transfer) {
                payload_bps = transfer.controller.pacing_rate().unwrap().as_bps();
                queue = queue.max(transfer.queue());
                transfer.step();
            }
            let estimate = payload_bps as f64 * 1514.0 / 1448.0 / 1e6 / mbps as f64;
            let share = f64::from(transfer.controller.cwnd()) / path.bdp();
            let what = format!("{mbps} Mbit/s, {rtt_ms} ms: {estimate:.2}, {share:.2}, {queue}");
            assert!((0.85..=1.15).contains(&estimate), "{what}");
            assert!((0.85..=1.15).contains(&share), "{what}");
            assert!(queue < 10, "{what}");
        }
    }
}

/// algorithms.md: a path as fast as the card keeps doubling; at a tenth of it less than 1 % is lost.
#[test]
fn capstart_limits_only_where_the_card_is_faster() {
    let path = Path::new(Rate::from_mbps(1_000), Span::from_ms(20), usize::MAX);
    let mut transfer = Transfer::new(path, reno("capstart", &[]));
    transfer.run_rounds(8);
    assert_eq!(transfer.controller.mode(), "slow_start");
    assert!(transfer.controller.cwnd() >= 10 << 7, "{}", transfer.controller.cwnd());

    let path = Path::new(Rate::from_mbps(100), Span::from_ms(100), 826);
    let lost = |name| {
        let mut transfer = Transfer::new(path, reno(name, &[]));
        while transfer.recoveries == 0 {
            transfer.step();
        }
        let sent = transfer.total_sent;
        // All that is missing of this window has been noticed two rounds later.
        transfer.run_rounds(2);
        transfer.total_lost as f64 / sent as f64
    };
    let (capstart, standard) = (lost("capstart"), lost("standard"));
    assert!(capstart < 0.01, "{capstart:.4}");
    assert!(standard > 0.1, "{standard:.4}");
}
