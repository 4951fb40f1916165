//! BBR on a path of its own: 50 Mbit/s, 40 ms, a deep buffer.

use crate::common::{Path, Transfer, build, default_controller};
use jostle_registry::ParameterValue;
use jostle_units::{Rate, Span};

const MBPS: u64 = 50;
/// Buffer of three bandwidth-delay products.
const BUFFER: usize = 495;

fn path() -> Path {
    Path::new(Rate::from_mbps(MBPS), Span::from_ms(40), BUFFER)
}

#[test]
fn it_delivers_what_the_path_can_carry() {
    let mut transfer = Transfer::new(path(), default_controller("bbr"));
    let share = transfer.utilisation(2.0, 10.0);
    assert!((0.98..=1.0).contains(&share), "utilisation {share}");
    assert_eq!(transfer.timeouts, 0);
}

#[test]
fn the_queue_of_startup_is_gone_after_drain() {
    let mut transfer = Transfer::new(path(), default_controller("bbr"));
    let bdp = transfer.path.bdp();
    let mut modes = vec![transfer.controller.mode()];
    let mut startup_queue = 0;
    while transfer.now.as_secs_f64() < 9.0 {
        transfer.step();
        let mode = transfer.controller.mode();
        if modes.last() != Some(&mode) {
            modes.push(mode);
            if mode == "probe_bw" {
                let queue = transfer.queue() as f64;
                assert!(queue < 0.3 * bdp, "{queue} packets after drain, BDP {bdp}");
            }
        }
        let queue = transfer.queue();
        if mode == "startup" {
            startup_queue = startup_queue.max(queue);
        } else if mode == "probe_bw" {
            // The probing phase adds a quarter of a BDP.
            assert!((queue as f64) < 0.45 * bdp, "{queue} packets at {}", transfer.now);
        }
    }
    assert_eq!(modes, ["startup", "drain", "probe_bw"]);
    assert!(startup_queue as f64 > bdp, "startup queued {startup_queue} packets only");
}

/// The window is four packets for 200 ms and a round, every ten seconds.
#[test]
fn it_dips_every_ten_seconds() {
    let mut transfer = Transfer::new(path(), default_controller("bbr"));
    let mut dips = Vec::new();
    let mut probing = false;
    while transfer.now.as_secs_f64() < 45.0 {
        transfer.step();
        let now_probing = transfer.controller.mode() == "probe_rtt";
        if now_probing && !probing {
            dips.push((transfer.now, transfer.now));
        } else if probing && let Some(dip) = dips.last_mut() {
            dip.1 = transfer.now;
            assert_eq!(transfer.controller.cwnd() <= 4, now_probing);
        }
        probing = now_probing;
    }
    assert_eq!(dips.len(), 4);
    for (start, end) in &dips {
        let length = end.since(*start).as_secs_f64();
        assert!((0.2..0.35).contains(&length), "a dip of {length} s at {start}");
    }
    for pair in dips.windows(2) {
        let apart = pair[1].0.since(pair[0].0).as_secs_f64();
        assert!((10.0..10.7).contains(&apart), "{apart} s apart");
    }
}

/// The dips cost what is published, about two percent.
#[test]
fn the_dips_cost_two_percent() {
    let mut transfer = Transfer::new(path(), default_controller("bbr"));
    let share = transfer.utilisation(5.0, 45.0);
    assert!((0.96..0.985).contains(&share), "utilisation {share}");
    let never = [("probe_rtt_duration", ParameterValue::Integer(0))];
    let mut steady = Transfer::new(path(), build("bbr", &never, None));
    let share = steady.utilisation(5.0, 45.0);
    assert!(share > 0.985, "utilisation without dips {share}");
}

/// On a path of 2 ms a dip lasts a hundred rounds, ten times the bandwidth filter: only because
/// its samples count as limited by the application does the estimate survive.
#[test]
fn a_dip_does_not_lower_the_estimate_on_a_short_path() {
    let path = Path::new(Rate::from_mbps(MBPS), Span::from_ms(2), 200);
    let mut transfer = Transfer::new(path, default_controller("bbr"));
    let share = transfer.utilisation(11.0, 19.0);
    assert!(share > 0.97, "utilisation after the first dip {share}");
}

/// A loss-based controller would stall at 3 % of random loss; BBR loses little more than the 3 %.
#[test]
fn random_loss_does_not_slow_it() {
    let mut transfer = Transfer::new(Path { loss: 0.03, ..path() }, default_controller("bbr"));
    let share = transfer.utilisation(2.0, 10.0);
    assert!((0.91..0.98).contains(&share), "utilisation {share}");
}

#[test]
fn it_finds_new_capacity_and_lets_go_of_lost_capacity() {
    let mut transfer = Transfer::new(path(), default_controller("bbr"));
    transfer.run_until(5.0);
    transfer.path.rate = Rate::from_mbps(MBPS / 2);
    transfer.run_until(9.0);
    assert!(transfer.queue() < 165, "{} packets queued", transfer.queue());
    transfer.path.rate = Rate::from_mbps(MBPS);
    let share = transfer.utilisation(14.0, 19.0);
    assert!(share > 0.95, "utilisation {share}");
}
