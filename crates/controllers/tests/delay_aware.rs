//! Window laws that judge losses and growth by delay, against what their papers and the kernel
//! promise, on the harness.

use crate::common::{Path, Transfer, default_controller};
use jostle_congestion::RecoveryState;
use jostle_units::{Rate, Span};

/// A transfer in congestion avoidance at a window of `cwnd`.
fn avoiding(path: Path, name: &str, cwnd: u32) -> Transfer {
    let mut transfer = Transfer::new(path, default_controller(name));
    transfer.controller.set_ssthresh(2);
    transfer.controller.set_cwnd(cwnd);
    transfer
}

/// Mean and maximum queue in packets from now until `to_s`, sampled every 10 ms.
fn queue_until(transfer: &mut Transfer, to_s: f64) -> (f64, usize) {
    let (mut sum, mut longest, mut samples) = (0, 0, 0);
    while transfer.now.as_secs_f64() + 0.01 <= to_s {
        transfer.run_until(transfer.now.as_secs_f64() + 0.01);
        let queue = transfer.queue();
        (sum, longest, samples) = (sum + queue, longest.max(queue), samples + 1);
    }
    (sum as f64 / f64::from(samples), longest)
}

/// algorithms.md: with random loss and no queue 1.73 times Reno's window. A fifth instead of a
/// half per loss makes √(3/(2p)) √(9/(2p)).
#[test]
fn veno_takes_random_loss_for_what_it_is() {
    let mean = |name| {
        let path = Path::new(Rate::from_mbps(10_000), Span::from_ms(100), usize::MAX);
        let mut transfer = Transfer::new(Path { loss: 1e-3, ..path }, default_controller(name));
        transfer.run_until(20.0);
        let mut sum = 0.0;
        for i in 0..200_000 {
            transfer.run_until(20.0 + f64::from(i) / 100.0);
            sum += f64::from(transfer.controller.cwnd());
        }
        sum / 200_000.0
    };
    let (veno, reno) = (mean("veno"), mean("reno"));
    assert!((veno / reno / libm::sqrt(3.0) - 1.0).abs() < 0.10, "{veno:.1} and {reno:.1}");
}

/// algorithms.md: alone on a buffer of 2 BDPs at most 80 packets queue, and none is lost.
#[test]
fn yeah_drains_its_queue_before_it_overflows() {
    let path = Path::new(Rate::from_mbps(100), Span::from_ms(100), 1_652);
    let mut transfer = avoiding(path, "yeah", 800);
    transfer.run_until(20.0);
    let delivered = transfer.delivered();
    let (mean, longest) = queue_until(&mut transfer, 120.0);
    let share = (transfer.delivered() - delivered) as f64 * 1514.0 * 8.0 / (100.0 * 100e6);
    assert!(share > 0.98, "utilisation {share:.3}");
    // A decision acts a round trip after the queue was measured.
    assert!(mean <= 80.0 && longest <= 110, "mean {mean:.1}, longest {longest}");
    assert_eq!(transfer.total_lost, 0);
}

/// α = 10 far from congestion: ten packets per round trip, and a loss there costs an eighth.
#[test]
fn illinois_grows_by_ten_packets_while_nothing_queues() {
    // So fast that not even a burst of the whole window takes a microsecond.
    let path = Path::new(Rate::from_mbps(10_000_000), Span::from_ms(100), 10_000);
    let mut transfer = avoiding(path, "illinois", 100);
    transfer.run_rounds(2);
    let before = transfer.controller.cwnd();
    transfer.run_rounds(20);
    let growth = f64::from(transfer.controller.cwnd() - before) / 20.0;
    assert!((9.0..=10.1).contains(&growth), "{growth} packets per round trip");
    transfer.path.loss = 0.01;
    while transfer.state != RecoveryState::Recovery {
        transfer.step();
    }
    let (before, after) = (transfer.controller.cwnd(), transfer.controller.ssthresh().unwrap());
    let kept = f64::from(after) / f64::from(before);
    assert!((kept - 0.875).abs() < 0.02, "{after} of {before}");
}

/// Back-offs keep the delay bounded by themselves: with a buffer that Reno would fill nothing is
/// lost, and the queue is a fraction of the BDP.
#[test]
fn cdg_backs_off_before_the_buffer_is_full() {
    let path = Path { ack_every: 2, ..Path::new(Rate::from_mbps(50), Span::from_ms(40), 660) };
    let mut transfer = Transfer::new(path, default_controller("cdg"));
    transfer.run_until(10.0);
    let delivered = transfer.delivered();
    let (mean, _) = queue_until(&mut transfer, 70.0);
    let share = (transfer.delivered() - delivered) as f64 * 1514.0 * 8.0 / (60.0 * 50e6);
    assert_eq!((transfer.total_lost, transfer.recoveries), (0, 0));
    assert!(share > 0.8, "utilisation {share:.3}");
    assert!(mean < 0.5 * path.bdp(), "{mean:.1} packets queue");
}

/// algorithms.md: at most 12 packets queue at a window above 100. That holds while the minimum RTT
/// is the path's: from the second reset on it contains the queue, and each lets it grow.
#[test]
fn nv_keeps_its_pad_in_the_queue() {
    let path = Path { ack_every: 2, ..Path::new(Rate::from_mbps(50), Span::from_ms(40), 660) };
    let mut transfer = avoiding(path, "nv", 165);
    transfer.run_until(1.0);
    let (mean, longest) = queue_until(&mut transfer, 5.0);
    assert!(transfer.controller.cwnd() > 100);
    assert!((6.0..=12.0).contains(&mean) && longest <= 14, "mean {mean:.1}, longest {longest}");
    let (mean, _) = queue_until(&mut transfer, 60.0);
    assert!(mean > 12.0, "{mean:.1}");
    assert_eq!(transfer.total_lost, 0);
}

/// Linux's TCP-LP cuts the window at its first delay sample, and then again whenever the delay
/// rises: it leaves the path to others, even if there are none.
#[test]
fn lp_gives_way_to_delay_where_the_clocks_agree() {
    let path = Path { ack_every: 2, ..Path::new(Rate::from_mbps(20), Span::from_ms(50), 165) };
    let mut transfer = avoiding(path, "lp", 80);
    let (mean, _) = queue_until(&mut transfer, 30.0);
    assert!(mean < 5.0, "{mean:.1} packets queue");
    assert_eq!(transfer.total_lost, 0);
}

/// What the real stack did (Linux 6.1 in User-Mode Linux, 50 Mbit/s, 40 ms, 250 kB of buffer, one
/// flow of 40 s): times well after start-up and cwnd in packets.
const LINUX_6_1: &[(&str, &[(f64, u32)])] = &[
    ("veno", &[(10.1, 257), (20.1, 327), (30.1, 257), (39.1, 321)]),
    ("illinois", &[(10.1, 298), (14.1, 316), (17.1, 328)]),
    ("nv", &[(8.1, 175), (11.1, 175)]),
];

#[test]
fn windows_are_those_of_linux() {
    for &(name, windows) in LINUX_6_1 {
        let path = Path::new(Rate::from_mbps(50), Span::from_ms(40), 165);
        let path = Path { ack_every: 2, ..path };
        let mut transfer = Transfer::new(path, default_controller(name));
        for &(at_s, cwnd) in windows {
            transfer.run_until(at_s);
            let share = f64::from(transfer.controller.cwnd()) / f64::from(cwnd);
            assert!((share - 1.0).abs() < 0.03, "{name} at {at_s} s: {share:.3} of Linux's {cwnd}");
        }
    }
}
