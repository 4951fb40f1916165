//! Controllers that keep the queue short against what their papers promise, on the harness.

use crate::common::{Path, Transfer, build};
use jostle_units::{Rate, Span};

/// The phases follow one another in their order, the link is used, the queue drains, nothing is lost.
/// The queue is brought to 5 ms and beyond by what the target rises while it is measured, a round trip
/// and 40 ms late.
#[test]
fn lola_fills_five_milliseconds_of_queue_and_drains_them() {
    let path = Path::new(Rate::from_mbps(100), Span::from_ms(40), 1_000);
    let mut transfer = Transfer::new(path, build("lola", &[], None));
    transfer.run_until(5.0);
    let delivered = transfer.delivered();
    let (mut longest, mut empty, mut seen) = (0, 0, Vec::new());
    while transfer.now.as_secs_f64() + 0.01 <= 35.0 {
        transfer.run_until(transfer.now.as_secs_f64() + 0.01);
        let queue = transfer.queue();
        longest = longest.max(queue);
        empty += u32::from(queue <= 1);
        let mode = transfer.controller.mode();
        if seen.last() != Some(&mode) {
            seen.push(mode);
        }
    }
    let share = (transfer.delivered() - delivered) as f64 * 1514.0 * 8.0 / (30.0 * 100e6);
    assert!(share > 0.95 && empty > 10, "{share:.3} used, empty {empty} times");
    assert_eq!(transfer.total_lost, 0);
    for phase in ["growth", "balancing", "hold"] {
        let times = seen.iter().filter(|&&it| it == phase).count();
        assert!(times > 5, "{times} times {phase}");
    }
    let wrong = seen.windows(2).find(|pair| matches!(pair, ["balancing", "growth"]));
    assert_eq!(wrong, None, "no reduction without a hold");
    let longest_ms = longest as f64 * 0.12112;
    assert!((5.0..=10.0).contains(&longest_ms), "{longest_ms:.1} ms");
}

/// 90 % of a BDP of 500 packets takes 5.5 doublings of 10 packets: 11 round trips of the original
/// Vegas, which doubles every other one. Afterwards 6 packets more than that at most.
#[test]
fn new_vegas_converges_in_fewer_rounds_than_vegas() {
    let path = Path::new(Rate::from_mbps(100), Span::from_us(60_560), 2_000);
    let mut transfer = Transfer::new(path, build("new-vegas", &[], None));
    while f64::from(transfer.controller.cwnd()) < 0.9 * path.bdp() {
        transfer.step();
    }
    let rounds = transfer.rounds;
    assert!(rounds < 11, "{rounds} round trips");
    transfer.run_until(20.0);
    let cwnd = f64::from(transfer.controller.cwnd());
    assert!((path.bdp()..=path.bdp() + 6.0).contains(&cwnd), "{cwnd}");
    assert_eq!(transfer.total_lost, 0);
}
