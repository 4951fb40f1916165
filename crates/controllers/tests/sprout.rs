//! Sprout on a link whose rate wanders, on the harness.

use crate::common::{Path, Transfer, default_controller};
use jostle_units::{RandomStream, Rate, Span};

/// A transfer over a link whose rate takes a step of a Brownian motion (σ = 200 packets per second
/// per √s) every 20 ms, between 50 and 900 packets per second: queueing delays in seconds, sampled
/// every 5 ms, and the share of what the link could have carried.
fn wander(name: &str, seconds: u32) -> (Vec<f64>, f64) {
    let pps = |pps: f64| Rate::from_bps((pps * 1514.0 * 8.0) as u64);
    let mut random = RandomStream::new(3, "wandering link");
    let (mut rate, mut possible, mut delays) = (400.0, 0.0, Vec::new());
    let path = Path::new(pps(rate), Span::from_ms(40), 10_000);
    let mut transfer = Transfer::new(path, default_controller(name));
    for i in 1..=seconds * 50 {
        rate = (rate + 200.0 * libm::sqrt(0.02) * random.normal()).clamp(50.0, 900.0);
        transfer.path.rate = pps(rate);
        possible += rate * 0.02;
        for part in 1..=4 {
            let at_s = f64::from(i - 1) * 0.02 + f64::from(part) * 0.005;
            if at_s > 0.1 {
                transfer.run_until(at_s);
                delays.push(transfer.queue() as f64 / rate);
            }
        }
    }
    (delays, transfer.delivered() as f64 / possible)
}

/// algorithms.md: at least 95 % of packets wait for less than 100 ms on a varying link.
#[test]
fn on_a_varying_link_few_packets_wait_for_100_ms() {
    let (delays, used) = wander("sprout", 120);
    let short = delays.iter().filter(|&&delay| delay < 0.1).count() as f64 / delays.len() as f64;
    assert!(short > 0.95, "{short:.3} of the time below 100 ms");
    assert!(used > 0.5, "utilisation {used:.3}");
    let (delays, _) = wander("cubic", 120);
    let short = delays.iter().filter(|&&delay| delay < 0.1).count() as f64 / delays.len() as f64;
    assert!(short < 0.5, "Cubic: {short:.3} of the time below 100 ms");
}

/// An outage of two seconds finds no more than the last forecast in the queue.
#[test]
fn an_outage_stops_it() {
    let path = Path::new(Rate::from_mbps(5), Span::from_ms(40), 10_000);
    let mut transfer = Transfer::new(path, default_controller("sprout"));
    transfer.run_until(10.0);
    let before = transfer.controller.cwnd();
    transfer.path.rate = Rate::from_bps(1_000);
    transfer.run_until(12.0);
    assert!(transfer.controller.cwnd() <= 2, "{}", transfer.controller.cwnd());
    // A probe for each timeout comes on top.
    let most = before as usize + transfer.timeouts as usize + 2;
    assert!(transfer.queue() <= most, "{} of {before} wait", transfer.queue());
}
