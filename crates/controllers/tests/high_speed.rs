//! Controllers for paths of large bandwidth-delay products, on the harness: how fast they come
//! back from a loss, and what random loss leaves them.

use crate::common::{Path, Transfer, build, default_controller};
use jostle_congestion::{CongestionController, RecoveryState};
use jostle_registry::ParameterValue;
use jostle_units::{Rate, Span};

/// A path whose only limit is random loss.
fn lossy(loss: f64) -> Path {
    Path { loss, ..Path::new(Rate::from_mbps(10_000), Span::from_ms(100), usize::MAX) }
}

/// Mean window over time, sampled every 10 ms from `from_s` to `to_s`.
fn mean_cwnd(transfer: &mut Transfer, from_s: u64, to_s: u64) -> f64 {
    let samples = (to_s - from_s) * 100;
    let mut sum = 0.0;
    for i in 0..samples {
        transfer.run_until(from_s as f64 + i as f64 / 100.0);
        sum += f64::from(transfer.controller.cwnd());
    }
    sum / samples as f64
}

/// Brings a controller to `cwnd` packets on a path of 100 ms that is never full, has packets lost
/// there, and returns the transfer when recovery is over.
fn after_a_loss_at(controller: Box<dyn CongestionController>, cwnd: u32) -> Transfer {
    let path = Path::new(Rate::from_mbps(100_000), Span::from_ms(100), usize::MAX);
    let mut transfer = Transfer::new(path, controller);
    while transfer.controller.cwnd() < cwnd {
        transfer.controller.set_ssthresh(cwnd);
        transfer.step();
    }
    transfer.path.loss = 1.0;
    let sent = transfer.total_sent;
    while transfer.total_sent == sent {
        transfer.step();
    }
    transfer.path.loss = 0.0;
    while transfer.recoveries == 0 {
        // What grows until the loss is noticed would move the window it is answered from.
        transfer.controller.set_cwnd(cwnd);
        transfer.step();
    }
    while transfer.state != RecoveryState::Open {
        transfer.step();
    }
    transfer
}

/// Round trips until cwnd reaches `cwnd`.
fn rounds_until(transfer: &mut Transfer, cwnd: u32) -> f64 {
    let start = transfer.now;
    while transfer.controller.cwnd() < cwnd {
        transfer.step();
    }
    transfer.now.since(start).as_secs_f64() / 0.1
}

/// algorithms.md: 800 → 936 in steps of 16 packets, then ever smaller ones towards 1000. In Linux
/// the steps are 31 packets even with an ACK per packet: its average of packets per ACK begins at
/// 2 and, rounded down, stays at 31/16.
#[test]
fn bic_comes_back_in_a_straight_line_and_then_searches() {
    let mut transfer = after_a_loss_at(default_controller("bic"), 1000);
    let reduced = transfer.controller.cwnd();
    assert!((798..=800).contains(&reduced), "down to {reduced}");
    let linear = rounds_until(&mut transfer, 936);
    assert!((linear - 136.0 / 31.0).abs() < 1.0, "{linear:.1} round trips to 936");
    let mut steps = Vec::new();
    for _ in 0..6 {
        let before = transfer.controller.cwnd();
        transfer.run_rounds(1);
        steps.push(transfer.controller.cwnd() - before);
    }
    assert!(steps.is_sorted_by(|a, b| a > b), "{steps:?}");
    let reached = transfer.controller.cwnd();
    assert!((985..1000).contains(&reached), "the old maximum is not overrun: {reached}");
}

/// algorithms.md: ln(8/7) / ln 1.01 = 13.4 RTTs at W = 500 and at 5000.
#[test]
fn scalable_comes_back_in_the_same_time_from_any_window() {
    let promised = libm::log(8.0 / 7.0) / libm::log(1.01);
    for cwnd in [500, 5_000] {
        let mut transfer = after_a_loss_at(default_controller("scalable"), cwnd);
        let rounds = rounds_until(&mut transfer, cwnd);
        assert!((rounds - promised).abs() < 1.0, "{rounds:.1} round trips at {cwnd}");
    }
}

/// RFC 3649 §5: w = 0.12 / p^0.835, 263 packets at p = 10⁻⁴ (its table 3), for the mean window of
/// losses at even intervals, as Reno's 122 are.
#[test]
fn highspeed_answers_random_loss_as_the_rfc_promises() {
    let mut transfer = Transfer::new(lossy(1e-4), default_controller("highspeed"));
    let mean = mean_cwnd(&mut transfer, 20, 2_000);
    assert!((mean / 263.0 - 1.0).abs() < 0.15, "mean {mean:.1}");
}

/// W = a/(b p) per packet: an increase of 0.01 per packet and a decrease of W/8 per loss balance at
/// W = 0.08 / p (Kelly 2003), above 100 packets: 800 at p = 10⁻⁴.
#[test]
fn scalable_answers_random_loss_in_inverse_proportion() {
    let mut transfer = Transfer::new(lossy(1e-4), default_controller("scalable"));
    let mean = mean_cwnd(&mut transfer, 50, 1_000);
    assert!((mean / 800.0 - 1.0).abs() < 0.15, "mean {mean:.1}");
}

/// From the end of a recovery on α(Δ) packets are added per round trip: 1 in the first second and
/// 1 + 10 (Δ − 1) + ((Δ − 1)/2)² beyond it at β = 0.5. In Linux a packet costs W/α ACKs rounded up,
/// and one more, which the promise here includes.
#[test]
fn htcp_speeds_up_with_the_time_since_the_loss() {
    let unscaled = [("use_rtt_scaling", ParameterValue::Bool(false))];
    let mut transfer = after_a_loss_at(build("htcp", &unscaled, None), 1000);
    let start = transfer.now.as_secs_f64();
    let mut promised = f64::from(transfer.controller.cwnd());
    assert!((promised - 500.0).abs() < 2.0, "down to {promised}");
    let from = promised;
    for ms in 1..=8_000 {
        let beyond = (f64::from(ms) / 1_000.0 - 1.0).max(0.0);
        let alpha = 1.0 + 10.0 * beyond + beyond * beyond / 4.0;
        promised += alpha / (1.0 + 1.5 * alpha / promised) / 100.0;
        if ms % 1_000 == 0 {
            transfer.run_until(start + f64::from(ms) / 1_000.0);
            let (added, due) = (f64::from(transfer.controller.cwnd()) - from, promised - from);
            assert!((added - due).abs() < 2.0 + 0.04 * due, "{added}, not {due:.0}, at {ms} ms");
        }
    }
}

/// A queue that is half of the path: the window falls to what the path itself
/// holds, two thirds instead of a half. A tick of 10 ms makes 11/15 of it.
#[test]
fn htcp_backs_off_by_the_queue() {
    for (hz, promised) in [(1000, 2.0 / 3.0), (100, 11.0 / 15.0)] {
        let path = Path::new(Rate::from_mbps(100), Span::from_ms(100), 413);
        let parameters = [("hz", ParameterValue::Integer(hz))];
        let mut transfer = Transfer::new(path, build("htcp", &parameters, None));
        while transfer.recoveries < 8 {
            let before = transfer.controller.cwnd();
            let recoveries = transfer.recoveries;
            transfer.step();
            // The first two losses are of start-up, and of another throughput than the third.
            if transfer.recoveries != recoveries && transfer.recoveries > 3 {
                let kept = f64::from(transfer.controller.ssthresh().unwrap()) / f64::from(before);
                assert!((kept - promised).abs() < 0.01, "kept {kept:.3} at {hz} Hz");
            }
        }
        assert_eq!(transfer.timeouts, 0);
    }
}

/// algorithms.md: 10 Mbit/s, 50 ms, a buffer of 1 BDP: after a loss W is the BDP, 43 packets, with
/// a clock of 1 ms, and the link stays busy. Linux's coarser clocks round the least RTT up.
#[test]
fn westwood_falls_to_the_bdp() {
    for (hz, least, most) in [(1000, 38, 47), (250, 38, 50), (100, 43, 54)] {
        let path = Path::new(Rate::from_mbps(10), Span::from_ms(50), 41);
        let hz_value = [("hz", ParameterValue::Integer(hz))];
        let mut transfer = Transfer::new(path, build("westwood", &hz_value, None));
        transfer.run_until(30.0);
        let (recoveries, delivered) = (transfer.recoveries, transfer.delivered());
        while transfer.recoveries == recoveries {
            transfer.step();
        }
        while transfer.state != RecoveryState::Open {
            transfer.step();
        }
        let after = transfer.controller.cwnd();
        assert!((least..=most).contains(&after), "{after} packets at {hz} Hz");
        let start = transfer.now.as_secs_f64();
        let already = transfer.delivered();
        transfer.run_until(start + 30.0);
        assert!(already > delivered);
        let bits = (transfer.delivered() - already) as f64 * 1514.0 * 8.0;
        assert!(bits / 300e6 > 0.98, "{:.3} of the link at {hz} Hz", bits / 300e6);
    }
}

/// Random loss on a path that is not full: Reno's window falls by half each time, Westwood+'s to
/// what got through.
#[test]
fn westwood_keeps_its_window_where_loss_is_random() {
    let path = Path { loss: 1e-3, ..Path::new(Rate::from_mbps(20), Span::from_ms(100), 165) };
    let [westwood, reno] = ["westwood", "reno"].map(|name| {
        let mut transfer = Transfer::new(path, default_controller(name));
        transfer.run_until(300.0);
        transfer.delivered()
    });
    assert!(westwood as f64 > 1.25 * reno as f64, "{westwood} beside {reno} packets");
}
