//! Controllers that are driven by RTT samples, on links far slower than their first rate. While they
//! send too fast, nearly all packets that arrive are retransmissions.

use crate::common::*;
use jostle_metrics::Summary;
use jostle_run_spec::{CapacitySpec, DelaySpec, DelayStep, RateStep};

/// A minute with a queue of so many packets, and its second half.
fn minute(controller: &str, rate_bps: u64, rtt_ns: u64, packets: u64) -> Summary {
    let link = link("l", rate_bps, packets * 1_514);
    measure(&run(60 * S, vec![link], vec![flow(controller, controller, rtt_ns)]))
}

/// Karn's algorithm gives no RTT of a retransmission. A controller that waits for RTTs to lower its
/// rate never gets one: Proteus and TIMELY retransmitted 90 % and more here, and delivered nothing.
/// TIMELY's lowest rate is 100 kbit/s.
#[test]
fn a_rate_far_above_the_link_comes_down() {
    for controller in ["proteus", "timely", "copa", "remy", "sprout"] {
        for (rate_bps, rtt_ns, packets) in
            [(500_000, 2 * MS, 20), (MBPS, 5 * MS, 3), (MBPS, 5 * MS, 50), (2 * MBPS, 5 * MS, 100)]
        {
            let summary = minute(controller, rate_bps, rtt_ns, packets);
            let late = settled(&summary, 0);
            let what = format!("{controller}: {rate_bps} bit/s, {rtt_ns} ns, {packets} packets");
            assert!(late.goodput_bps > 80e3, "{what}: {}", late.goodput_bps);
            assert!(late.retransmission_ratio.unwrap() < 0.5, "{what}: {late:?}");
        }
    }
}

/// 50 Mbit/s become 1 Mbit/s after ten seconds.
#[test]
fn a_link_may_become_fifty_times_slower() {
    let flow = flow("proteus", "proteus", 20 * MS);
    let mut spec = run(120 * S, vec![link("l", MBPS, 50 * 1_514)], vec![flow]);
    let step = |at_ns, rate_bps| RateStep { at_ns, rate_bps };
    let steps = vec![step(0, 50 * MBPS), step(10 * S, MBPS)];
    spec.links[0].capacity = CapacitySpec::Steps { steps };
    let summary = measure(&spec);
    let late = settled(&summary, 0);
    assert!(late.goodput_bps > 500e3, "{}", late.goodput_bps);
    assert!(late.retransmission_ratio.unwrap() < 0.5, "{late:?}");
}

/// The RTT of 60 ms becomes 120 to 460 ms after ten seconds, which looks like a queue: Sprout fell
/// from 8 Mbit/s to less than 0.1.
#[test]
fn sprout_finds_the_rtt_of_a_longer_path() {
    for delay_ms in [40, 70, 130, 210] {
        let mut spec = run(
            60 * S,
            vec![link("l", 8 * MBPS, 1_000_000)],
            vec![flow("sprout", "sprout", 40 * MS)],
        );
        let step = |at_ns, delay_ns| DelayStep { at_ns, delay_ns };
        let steps = vec![step(0, 10 * MS), step(10 * S, delay_ms * MS)];
        spec.links[0].delay = DelaySpec { steps, jitter: None };
        let rate_bps = settled(&measure(&spec), 0).goodput_bps;
        assert!(rate_bps > 5e6, "{delay_ms} ms: {rate_bps}");
    }
}
