//! The harness itself: it moves packets at the rate of its bottleneck and signals losses.

use crate::common::{Path, Transfer, default_controller};
use jostle_units::{Rate, Span};

#[test]
fn a_window_above_the_bdp_fills_the_link() {
    let path = Path::new(Rate::from_mbps(50), Span::from_ms(40), 165);
    let mut transfer = Transfer::new(path, default_controller("reno"));
    transfer.run_until(5.0);
    let before = transfer.delivered();
    transfer.run_until(25.0);
    let share = (transfer.delivered() - before) as f64 * 1514.0 * 8.0 / (20.0 * 50e6);
    assert!((0.99..=1.0).contains(&share), "utilisation {share}");
    assert!(transfer.recoveries >= 3, "{} recoveries", transfer.recoveries);
    assert_eq!(transfer.timeouts, 0);
}

#[test]
fn delayed_acks_cover_two_packets() {
    let path = Path { ack_every: 2, ..Path::new(Rate::from_mbps(10), Span::from_ms(40), 1000) };
    let mut transfer = Transfer::new(path, default_controller("reno"));
    transfer.offer(10);
    transfer.run_until(1.0);
    assert_eq!((transfer.delivered(), transfer.controller.cwnd()), (10, 20));
}

#[test]
fn a_lost_tail_ends_in_a_timeout() {
    let path = Path { loss: 1.0, ..Path::new(Rate::from_mbps(10), Span::from_ms(40), 1000) };
    let mut transfer = Transfer::new(path, default_controller("reno"));
    transfer.run_until(3.0);
    // 240 ms after the first flight, then 480, 960 …; only the first one signals congestion.
    assert_eq!(transfer.timeouts, 3);
    assert_eq!((transfer.controller.cwnd(), transfer.controller.ssthresh()), (1, Some(5)));
}
