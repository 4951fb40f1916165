//! Controllers that live on marks, and the queues that mark for them.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use common::*;
use jostle_record::{
    FlowPhase, FlowSpec, Limit, LinkPhase, LinkSpec, QueueSpec, Recorder, RunSpec, Summary,
};
use jostle_units::FULL_PACKET_BYTES;

fn measure(spec: &RunSpec) -> Summary {
    spec.validate().unwrap();
    let mut recorder = Recorder::new(spec);
    jostle_sim::run(spec, &mut recorder, &|| false).unwrap();
    recorder.finish().summary
}

/// Measures of a flow in the second half of the run.
fn settled(summary: &Summary, flow: usize) -> &FlowPhase {
    summary.flows[flow].phases.get("second half").unwrap()
}

fn settled_link(summary: &Summary) -> &LinkPhase {
    summary.links[0].phases.get("second half").unwrap()
}

/// A link whose queue marks what has waited for more than `threshold_ns`.
fn stepping(rate_bps: u64, limit_packets: u64, threshold_ns: u64) -> LinkSpec {
    LinkSpec {
        queue: QueueSpec::StepMark { limit: Limit::Packets(limit_packets), threshold_ns },
        ..link("bottleneck", rate_bps, 0)
    }
}

fn capable(name: &str, controller: &str, rtt_ns: u64) -> FlowSpec {
    FlowSpec { ecn: true, ..flow(name, controller, rtt_ns) }
}

/// Alizadeh et al. 2010 §3.3: with n flows "Q_max = K + N" packets: all that the senders add in the
/// round trip before they hear of their marks.
#[test]
fn dctcp_keeps_the_queue_at_k_and_a_packet_per_flow() {
    let packet = f64::from(FULL_PACKET_BYTES);
    for (n, rtt_ns) in [(1u64, MS), (2, MS), (10, MS), (2, 2 * MS)] {
        // 1 Gbit/s: K = 65 packets, the value of the paper, is 787 µs; enough below 5 ms, for it has
        // to be a seventh of the BDP.
        let k = 65.0;
        let threshold_ns = (k * packet * 8.0) as u64;
        let flows = (0..n).map(|i| capable(&format!("f{i}"), "dctcp", rtt_ns)).collect();
        let summary =
            measure(&run(4 * S, vec![stepping(1_000 * MBPS, 1_000, threshold_ns)], flows));
        let link = settled_link(&summary);
        let p95 = link.queue_p95_bytes / packet;
        // Linux sends and acknowledges in bursts.
        let burst = 2.0 * n as f64 + 4.0;
        assert!(p95 <= k + n as f64 + burst, "{n} flows: {p95} packets");
        assert!(link.utilisation.unwrap() > 0.98, "{n} flows: {:?}", link.utilisation);
        assert_eq!(link.dropped_packets, 0, "{n} flows");
        assert!(link.marked_packets > 100, "{n} flows");
    }
}

#[test]
fn dctcp_flows_share_equally() {
    let flows = (0..4)
        .map(|i| FlowSpec { start_ns: i * 200 * MS, ..capable(&format!("f{i}"), "dctcp", 2 * MS) });
    let spec = run(8 * S, vec![stepping(1_000 * MBPS, 1_000, 800_000)], flows.collect());
    let jain = measure(&spec).fairness.get("second half").unwrap().jain.unwrap();
    assert!(jain > 0.99, "{jain}");
}

/// The receiver's end knows no ECN: Reno, to the packet.
#[test]
fn dctcp_without_ecn_is_reno() {
    let of = |controller| {
        measure(&run(
            10 * S,
            vec![stepping(20 * MBPS, 60, MS)],
            vec![flow("only", controller, 20 * MS)],
        ))
    };
    let (dctcp, reno) = (of("dctcp"), of("reno"));
    assert_eq!(settled_link(&dctcp).marked_packets, 0);
    assert_eq!(settled(&dctcp, 0).goodput_bps, settled(&reno, 0).goodput_bps);
    assert_eq!(settled(&dctcp, 0).retransmitted_packets, settled(&reno, 0).retransmitted_packets);
}

/// Classic ECN halves on what DCTCP takes for a hint: on the same step its queue runs empty.
#[test]
fn a_step_suits_dctcp_and_not_classic_ecn() {
    let utilisation = |controller| {
        let flows = vec![capable("only", controller, 20 * MS)];
        let summary = measure(&run(20 * S, vec![stepping(50 * MBPS, 1_000, 3 * MS)], flows));
        settled_link(&summary).utilisation.unwrap()
    };
    let (dctcp, reno) = (utilisation("dctcp"), utilisation("reno"));
    assert!(dctcp > 0.97 && reno < 0.92, "dctcp {dctcp}, reno {reno}");
}
