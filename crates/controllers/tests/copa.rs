//! Copa alone, in each of its modes, on the harness.

use crate::common::{Path, Transfer, build, default_controller};
use jostle_registry::ParameterValue;
use jostle_units::{Rate, Span};

/// Queue lengths of a transfer, sampled every half millisecond until `to_s`, and the share of
/// time in the default mode.
fn queues(transfer: &mut Transfer, to_s: f64) -> (Vec<usize>, f64) {
    let mut lengths = Vec::new();
    let mut default = 0;
    while transfer.now.as_secs_f64() + SAMPLE_S <= to_s {
        transfer.run_until(transfer.now.as_secs_f64() + SAMPLE_S);
        lengths.push(transfer.queue());
        default += usize::from(transfer.controller.mode() == "default");
    }
    let share = default as f64 / lengths.len() as f64;
    (lengths, share)
}

const SAMPLE_S: f64 = 0.5e-3;

/// Mean of what waits behind the packet that is being sent.
fn mean(lengths: &[usize]) -> f64 {
    lengths.iter().map(|&length| length.saturating_sub(1)).sum::<usize>() as f64
        / lengths.len() as f64
}

/// algorithms.md: alone 1/δ = 2 ± 1.5 packets queue on average, and the queue empties about once
/// in 5 round trips.
#[test]
fn alone_it_keeps_two_packets_in_the_queue_and_empties_it() {
    let path = Path::new(Rate::from_mbps(20), Span::from_ms(40), 1000);
    let mut transfer = Transfer::new(path, default_controller("copa"));
    transfer.run_until(5.0);
    let delivered = transfer.delivered();
    let (lengths, default) = queues(&mut transfer, 45.0);
    let share = (transfer.delivered() - delivered) as f64 * 1514.0 * 8.0 / (40.0 * 20e6);
    assert!(share > 0.99, "utilisation {share:.3}");
    assert!((mean(&lengths) - 2.0).abs() < 1.5, "{:.2} packets queue", mean(&lengths));
    // Stretches with a queue, but for those that bursts of a packet or two make.
    let stretches =
        lengths.split(|&length| length <= 1).map(|s| s.len() as f64 * SAMPLE_S / 0.0425);
    let mut rtts: Vec<_> = stretches.filter(|&rtts| rtts > 1.0).collect();
    rtts.sort_by(f64::total_cmp);
    let median = rtts[rtts.len() / 2];
    assert!((3.0..=5.0).contains(&median), "with a queue for {median:.1} RTTs");
    assert!(default > 0.9, "in the default mode for {default:.3} of the time");
    assert_eq!(transfer.total_lost, 0);
}

/// mvfst: 1/δ is 20 packets, by which the queue seldom empties: what its RTTmin then has of a queue comes
/// on top.
#[test]
fn of_mvfst_it_keeps_twenty_packets_above_its_least_rtt() {
    let path = Path::new(Rate::from_mbps(20), Span::from_ms(40), 1000);
    let given = [("flavour", ParameterValue::Text("mvfst".into()))];
    let mut transfer = Transfer::new(path, build("copa", &given, None));
    transfer.run_until(20.0);
    let (lengths, _) = queues(&mut transfer, 60.0);
    let least = *lengths.iter().min().unwrap() as f64;
    let above = mean(&lengths) - least;
    assert!((20.0..=30.0).contains(&above), "{above:.1} packets above {least}");
    assert!(least > 0.0, "never empty");
    assert_eq!(transfer.total_lost, 0);
}

/// A smaller δ keeps more packets in the queue, in proportion.
#[test]
fn delta_sets_the_queue() {
    let queue = |delta| {
        let path = Path::new(Rate::from_mbps(50), Span::from_ms(40), 1000);
        let given = [
            ("delta", ParameterValue::Number(delta)),
            ("mode", ParameterValue::Text("default".into())),
        ];
        let mut transfer = Transfer::new(path, build("copa", &given, None));
        transfer.run_until(5.0);
        mean(&queues(&mut transfer, 35.0).0)
    };
    let (usual, quarter) = (queue(0.5), queue(0.125));
    assert!((2.5..=6.0).contains(&(quarter / usual)), "{quarter:.1} and {usual:.1} packets");
}

/// The default mode does not answer losses below 30 %: 5 % at random cost no more than a little of
/// the velocity's, whose RTTs they take away. The authors' release uses 94 … 96 % of this path, and
/// 99 % with the wait of the paper.
#[test]
fn random_loss_does_not_slow_it_down() {
    for (steady_rounds, least) in [(1, 0.93), (3, 0.97)] {
        let path = Path::new(Rate::from_mbps(20), Span::from_ms(40), 1000);
        let given = [("steady_rounds", ParameterValue::Integer(steady_rounds))];
        let mut transfer = Transfer::new(Path { loss: 0.05, ..path }, build("copa", &given, None));
        transfer.run_until(5.0);
        let delivered = transfer.delivered();
        transfer.run_until(35.0);
        let share = (transfer.delivered() - delivered) as f64 * 1514.0 * 8.0 / (30.0 * 20e6);
        assert!(share > least, "utilisation {share:.3} with {steady_rounds}");
    }
}

/// Always competitive, it fills the buffer as an AIMD does, and loses packets for it.
#[test]
fn competition_fills_the_buffer() {
    let path = Path::new(Rate::from_mbps(20), Span::from_ms(40), 100);
    let given = [("mode", ParameterValue::Text("competitive".into()))];
    let mut transfer = Transfer::new(path, build("copa", &given, None));
    transfer.run_until(10.0);
    let mean = mean(&queues(&mut transfer, 40.0).0);
    assert!(mean > 30.0, "{mean:.1} packets queue");
    assert!(transfer.recoveries > 2 && transfer.timeouts == 0);
}
