//! Scavengers and rates by delay, against what their specifications promise, on the harness.

use crate::common::{Path, Transfer, default_controller};
use jostle_units::{Rate, Span};

/// Mean queueing delay in ms and share of the link's rate from `from_s` to `to_s`.
fn settled(name: &str, path: Path, from_s: f64, to_s: f64) -> (f64, f64) {
    let mut transfer = Transfer::new(path, default_controller(name));
    transfer.run_until(from_s);
    let delivered = transfer.delivered();
    let (mut sum, mut samples) = (0, 0);
    while transfer.now.as_secs_f64() + 0.01 <= to_s {
        transfer.run_until(transfer.now.as_secs_f64() + 0.01);
        (sum, samples) = (sum + transfer.queue(), samples + 1);
    }
    let packets_per_s = path.rate.as_bps() as f64 / (8.0 * 1514.0);
    let mean_ms = 1e3 * sum as f64 / f64::from(samples) / packets_per_s;
    (mean_ms, (transfer.delivered() - delivered) as f64 / packets_per_s / (to_s - from_s))
}

/// algorithms.md: alone, LEDBAT holds 100 ± 10 ms of queue. It comes back from the overshoot of slow
/// start with a time constant of `target` · C round trips, a minute at 50 Mbit/s.
#[test]
fn ledbat_holds_its_target() {
    for (mbps, rtt_ms, ack_every) in [(10, 40, 1), (10, 100, 2), (50, 40, 2)] {
        let path = Path::new(Rate::from_mbps(mbps), Span::from_ms(rtt_ms), 20_000);
        let (queue_ms, share) = settled("ledbat", Path { ack_every, ..path }, 400.0, 460.0);
        assert!((queue_ms - 100.0).abs() < 10.0, "{mbps} Mbit/s: {queue_ms:.1} ms");
        assert!(share > 0.99, "{mbps} Mbit/s: {share:.3}");
    }
}

/// LEDBAT++ swings below its target of 60 ms, and slowdowns cost it a tenth at most.
#[test]
fn ledbat_plus_plus_stays_below_its_target() {
    for (mbps, rtt_ms) in [(10, 40), (10, 100), (50, 40)] {
        let path = Path::new(Rate::from_mbps(mbps), Span::from_ms(rtt_ms), 20_000);
        let (queue_ms, share) = settled("ledbat++", Path { ack_every: 2, ..path }, 20.0, 120.0);
        assert!((20.0..62.0).contains(&queue_ms), "{mbps} Mbit/s: {queue_ms:.1} ms");
        assert!(share > 0.9, "{mbps} Mbit/s: {share:.3}");
    }
}

/// The paper's bounds on 10 Gbit/s with an RTT of 20 µs: the queue comes up to `t_low`, is met by
/// the gradient soon after, and never reaches `t_high`.
#[test]
fn timely_keeps_the_rtt_of_a_data_centre_within_its_bounds() {
    let path = Path::new(Rate::from_mbps(10_000), Span::from_us(20), 20_000);
    let mut transfer = Transfer::new(path, default_controller("timely"));
    transfer.run_until(0.5);
    let delivered = transfer.delivered();
    let mut longest = 0;
    while transfer.now.as_secs_f64() < 1.0 {
        transfer.run_until(transfer.now.as_secs_f64() + 20e-6);
        longest = longest.max(transfer.queue());
    }
    let packets_per_s = path.rate.as_bps() as f64 / (8.0 * 1514.0);
    let longest_us = 20.0 + 1e6 * longest as f64 / packets_per_s;
    let share = (transfer.delivered() - delivered) as f64 / packets_per_s / 0.5;
    assert!((50.0..500.0).contains(&longest_us), "{longest_us:.1} us");
    assert!(share > 0.9, "{share:.3}");
}
