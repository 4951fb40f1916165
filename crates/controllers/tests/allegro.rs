//! PCC Allegro on a path of its own, with and without random loss.

use crate::common::{Path, Transfer, default_controller};
use jostle_units::{Rate, Span};

fn path(mbps: u64, rtt_ms: u64, loss: f64) -> Path {
    let path = Path::new(Rate::from_mbps(mbps), Span::from_ms(rtt_ms), 0);
    Path { loss, buffer: path.bdp() as usize, ..path }
}

/// Share of the bottleneck used between two times.
fn share(transfer: &mut Transfer, from_s: f64, to_s: f64) -> f64 {
    transfer.run_until(from_s);
    let before = transfer.delivered();
    transfer.run_until(to_s);
    let packet_s = 1514.0 * 8.0 / transfer.path.rate.as_bps() as f64;
    (transfer.delivered() - before) as f64 * packet_s / (to_s - from_s)
}

#[test]
fn it_fills_the_path() {
    for (mbps, rtt_ms) in [(5, 20), (50, 40), (100, 100)] {
        let mut transfer = Transfer::new(path(mbps, rtt_ms, 0.0), default_controller("allegro"));
        transfer.run_until(10.0);
        let (sent, lost) = (transfer.total_sent, transfer.total_lost);
        let used = share(&mut transfer, 10.0, 40.0);
        let lost = (transfer.total_lost - lost) as f64 / (transfer.total_sent - sent) as f64;
        assert!(used > 0.95, "{mbps} Mbit/s, {rtt_ms} ms: utilisation {used}");
        // It sees no queue: an overload shows when the buffer is full, and 5 % of it are borne.
        assert!(lost < 0.05, "{mbps} Mbit/s, {rtt_ms} ms: {lost} of what was sent was lost");
    }
}

/// algorithms.md: 3 % of random loss leave 90 % of the throughput, with 7 % it collapses.
#[test]
fn three_percent_of_loss_are_borne_and_seven_are_not() {
    for (loss, least, most) in
        [(0.01, 0.98, 1.0), (0.03, 0.9, 1.0), (0.07, 0.0, 0.4), (0.1, 0.0, 0.1)]
    {
        let mut transfer = Transfer::new(path(100, 30, loss), default_controller("allegro"));
        let used = share(&mut transfer, 20.0, 80.0);
        assert!((least..=most).contains(&used), "{loss} lost: utilisation {used}");
    }
}

#[test]
fn it_follows_the_capacity() {
    let mut transfer = Transfer::new(path(50, 40, 0.0), default_controller("allegro"));
    transfer.run_until(10.0);
    transfer.path.rate = Rate::from_mbps(20);
    let used = share(&mut transfer, 20.0, 40.0);
    assert!(used > 0.9, "20 Mbit/s: {used}");
    transfer.path.rate = Rate::from_mbps(50);
    let used = share(&mut transfer, 60.0, 80.0);
    assert!(used > 0.9, "50 Mbit/s: {used}");
}

/// What the application does not send cannot be counted as throughput.
#[test]
fn a_slow_application_does_not_drive_the_rate_up() {
    let mut transfer = Transfer::new(path(50, 40, 0.0), default_controller("allegro"));
    // 1 Mbit/s: a packet every 12 ms.
    for sent in 1..2000 {
        transfer.offer(sent);
        transfer.run_until(0.1 + sent as f64 * 0.012);
    }
    let rate = transfer.controller.pacing_rate().unwrap().as_bps();
    assert!(rate < 10_000_000, "{rate} bit/s");
    assert!(transfer.delivered() > 1980);
}
