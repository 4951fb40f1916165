//! Controllers of the literature beside each other and beside Reno.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use common::*;
use jostle_catalogue::Value;
use jostle_record::{FlowSpec, Recorder, RunSpec, Summary};

fn measure(spec: &RunSpec) -> Summary {
    spec.validate().unwrap();
    let mut recorder = Recorder::new(spec);
    jostle_sim::run(spec, &mut recorder, &|| false).unwrap();
    recorder.finish().summary
}

/// algorithms.md: n flows keep n α packets in the queue, and share equally.
#[test]
fn fast_flows_keep_alpha_each_and_share() {
    for n in [2u64, 4] {
        let flows = (0..n).map(|i| flow(&format!("f{i}"), "fast", 50 * MS)).collect();
        let summary = measure(&run(60 * S, vec![link("l", 100 * MBPS, 2_500_000)], flows));
        let queue = summary.links[0].phases.get("second half").unwrap().queue_mean_bytes / 1514.0;
        let jain = summary.fairness.get("second half").unwrap().jain.unwrap();
        assert!((queue / (20.0 * n as f64) - 1.0).abs() < 0.1, "{n} flows: {queue:.1} packets");
        assert!(jain > 0.98, "{n} flows: {jain:.3}");
    }
}

/// Beside a Reno flow Vegas has less than 20 %, Vegas+ more, and three times as much.
/// (algorithms.md proposes 35 %. In moderate mode Vegas+ gives up a packet per round trip while Reno
/// adds one, so that the RTT stays as it is, and the count with it.)
#[test]
fn vegas_plus_holds_its_own_beside_reno() {
    let share = |controller, rate_bps| {
        let rtt_ns = 40 * MS;
        let flows: Vec<FlowSpec> =
            vec![flow("one", controller, rtt_ns), flow("other", "reno", rtt_ns)];
        let buffer = bdp_bytes(rate_bps, rtt_ns);
        let summary = measure(&run(240 * S, vec![link("l", rate_bps, buffer)], flows));
        let [one, other] =
            [0, 1].map(|i| summary.flows[i].phases.get("overall").unwrap().goodput_bps);
        one / (one + other)
    };
    for rate_bps in [20 * MBPS, 50 * MBPS, 100 * MBPS] {
        let (plus, vegas) = (share("vegas+", rate_bps), share("vegas", rate_bps));
        assert!(plus > 0.2 && vegas < 0.2, "{plus:.2} and {vegas:.2} at {rate_bps} bit/s");
        assert!(plus > 3.0 * vegas, "{plus:.2} and {vegas:.2} at {rate_bps} bit/s");
    }
}

/// algorithms.md: RTTs of four flows at 10 Gbit/s stay within 50 … 500 µs. They do on a path of
/// 50 µs. How much of it they use depends on the weight of the average: with the 0.02 of eRPC's
/// release nearly all; with 0.875 the one packet of another flow that is now and then in the way is a
/// gradient, and the rates stay low. All share.
#[test]
fn timely_flows_share_below_the_upper_threshold() {
    for (alpha, utilisation) in [(0.02, 0.85..1.0), (0.875, 0.1..0.5)] {
        let flows = (0..4).map(|i| {
            let mut one = flow(&format!("f{i}"), "timely", 50 * US);
            one.controller.parameters.insert("alpha".to_owned(), Value::Number(alpha));
            FlowSpec { start_ns: i * 50 * MS, ..one }
        });
        let mut spec = run(S, vec![link("l", 10 * GBPS, 1 << 24)], flows.collect());
        spec.interval_ns = 10 * MS;
        let summary = measure(&spec);
        let late = |i: usize| summary.flows[i].phases.get("second half").unwrap();
        for i in 0..4 {
            let (mean, p95) = (late(i).rtt_mean_s.unwrap(), late(i).rtt_p95_s.unwrap());
            assert!(mean > 50e-6 && p95 < 500e-6, "{alpha}: {mean} s, {p95} s");
        }
        let used = summary.links[0].phases.get("second half").unwrap().utilisation.unwrap();
        assert!(utilisation.contains(&used), "{alpha}: {used}");
        let jain = summary.fairness.get("second half").unwrap().jain.unwrap();
        assert!(jain > 0.95, "{alpha}: {jain}");
    }
}

/// algorithms.md: three LoLa flows keep 5 ± 2 ms of queue, with a Jain's index above 0.95 within 30 s.
/// They share so with both readings of the clock that the target of balancing counts by; the queue
/// is of that size if its ticks are those of a kernel with 250 per second (φ = 300).
#[test]
fn lola_flows_share_and_keep_a_short_queue() {
    for (curve_factor, queue_ms) in [(300, 3.0..7.0), (75, 6.0..10.0)] {
        let flows = (0..3u64).map(|i| {
            let mut one = flow(&format!("f{i}"), "lola", 10 * MS);
            let value = Value::Integer(curve_factor);
            one.controller.parameters.insert("curve_factor".to_owned(), value);
            FlowSpec { start_ns: 5 * i * S, ..one }
        });
        // 30 s after the last start.
        let summary =
            measure(&run(80 * S, vec![link("l", 100 * MBPS, 1_250_000)], flows.collect()));
        let late = summary.links[0].phases.get("second half").unwrap();
        let mean_ms = late.queue_mean_bytes * 8.0 / 100e6 * 1e3;
        assert!(queue_ms.contains(&mean_ms), "φ = {curve_factor}: {mean_ms} ms");
        assert!(late.utilisation.unwrap() > 0.95, "φ = {curve_factor}: {:?}", late.utilisation);
        let jain = summary.fairness.get("second half").unwrap().jain.unwrap();
        assert!(jain > 0.95, "φ = {curve_factor}: {jain}");
    }
}
