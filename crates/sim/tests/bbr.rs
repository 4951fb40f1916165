//! The family of BBR beside other flows.

use crate::common::*;
use jostle_metrics::Summary;

/// Goodput in Mbit/s and retransmitted packets of every flow in the second half of the run.
fn settled(summary: &Summary) -> Vec<(f64, u64)> {
    let phases = summary.flows.iter().map(|flow| flow.phases.get("second half").unwrap());
    phases.map(|phase| (phase.goodput_bps / 1e6, phase.retransmitted_packets.unwrap())).collect()
}

/// A Cubic flow and another one that starts a second later share 50 Mbit/s at 40 ms.
fn beside_cubic(controller: &str, buffer_bytes: u64) -> Vec<(f64, u64)> {
    let mut newcomer = flow("newcomer", controller, 40 * MS);
    newcomer.start_ns = S;
    let flows = vec![flow("incumbent", "cubic", 40 * MS), newcomer];
    settled(&measure(&run(120 * S, vec![link("bottleneck", 50 * MBPS, buffer_bytes)], flows)))
}

/// Where version 1 takes nine tenths from Cubic, version 3 leaves it three tenths at least; Cubic, in
/// turn, does not shut version 3 out of a deep buffer.
#[test]
fn version_3_shares_with_cubic_where_version_1_does_not() {
    for buffer_bytes in [62_500, 125_000, 250_000] {
        let old = beside_cubic("bbr", buffer_bytes);
        let new = beside_cubic("bbr3", buffer_bytes);
        assert!(old[0].0 < 0.2 * old[1].0, "{buffer_bytes} B: {old:?}");
        assert!(new[0].0 > 0.45 * new[1].0, "{buffer_bytes} B: {new:?}");
        // Retransmissions of both.
        assert!(
            2 * (new[0].1 + new[1].1) < old[0].1 + old[1].1,
            "{buffer_bytes} B: {old:?} {new:?}"
        );
        assert!(new[0].0 + new[1].0 > 0.93 * 47.8, "{buffer_bytes} B: {new:?}");
    }
    let deep = beside_cubic("bbr3", 2_000_000);
    assert!(deep[1].0 > 10.0 && deep[0].0 > 10.0, "{deep:?}");
}

#[test]
fn two_of_version_3_share_equally() {
    let mut second = flow("second", "bbr3", 40 * MS);
    second.start_ns = S;
    let flows = vec![flow("first", "bbr3", 40 * MS), second];
    let summary = measure(&run(120 * S, vec![link("bottleneck", 50 * MBPS, 250_000)], flows));
    let jain = summary.fairness.get("second half").unwrap().jain.unwrap();
    assert!(jain > 0.95, "{jain}");
}

/// A flow at 40 ms beside a Cubic flow on 100 Mbit/s, with parameters: sums over four starts, since
/// retransmissions of single runs differ by half.
fn beside_cubic_at_100(controller: &str, words: &[(&str, &str)]) -> Vec<(f64, u64)> {
    let mut newcomer = flow("newcomer", controller, 40 * MS);
    for (name, word) in words {
        let value = jostle_registry::ParameterValue::Text((*word).to_owned());
        newcomer.controller.parameters.insert((*name).to_owned(), value);
    }
    let mut sums = vec![(0.0, 0); 2];
    for start in 0..4 {
        newcomer.start_ns = S / 4 + start * 10 * MS;
        let flows = vec![flow("incumbent", "cubic", 40 * MS), newcomer.clone()];
        let bottleneck = link("bottleneck", 100 * MBPS, 500_000);
        for (sum, one) in
            sums.iter_mut().zip(settled(&measure(&run(60 * S, vec![bottleneck], flows))))
        {
            *sum = (sum.0 + one.0, sum.1 + one.1);
        }
    }
    sums
}

/// The paper's claim, in each of its readings: fewer retransmissions than BBR's and more for Cubic.
#[test]
fn modest_bbr_gives_way_to_cubic() {
    let bbr = beside_cubic_at_100("bbr", &[]);
    for increase in ["per ack", "per round trip"] {
        for control in ["cwnd and pacing", "cwnd"] {
            let words = [("increase", increase), ("control", control)];
            let modest = beside_cubic_at_100("modest-bbr", &words);
            let told = format!("{increase}, {control}: {modest:?} against {bbr:?}");
            assert!(modest[0].0 > 1.2 * bbr[0].0, "{told}");
            assert!(modest[1].1 < bbr[1].1 * 3 / 4, "{told}");
            assert!(modest[0].0 + modest[1].0 > 0.99 * (bbr[0].0 + bbr[1].0), "{told}");
        }
    }
}

/// A single flow fits into one BDP of buffer: where nothing is lost there is nothing to give.
#[test]
fn modest_bbr_alone_is_bbr() {
    let alone = |name| {
        let flows = vec![flow("only", name, 40 * MS)];
        settled(&measure(&run(40 * S, vec![link("bottleneck", 100 * MBPS, 500_000)], flows)))
    };
    let modest = alone("modest-bbr");
    assert_eq!(modest[0].1, 0);
    assert!((modest[0].0 / alone("bbr")[0].0 - 1.0).abs() < 0.005);
}
