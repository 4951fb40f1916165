//! Runs in which somebody outside decides: the same as those in which a controller does.

use crate::common;
use crate::common::{MBPS, MS, S, bdp_bytes, flow, link, lost, run};
use jostle_controllers::algorithms::cubic_below;
use jostle_controllers::learning::{
    IntervalObservation, NeuralNetwork, learned, parse_design, parse_policy,
};
use jostle_metrics::{Recorder, RunRecord};
use jostle_run_spec::RunSpec;
use jostle_sim::{Episode, LearningFlow};
use jostle_units::FlowId;

const LEARNER: &str = "jostle:learner";

/// A design, and a network that reacts to what it sees: more while the RTT is short.
fn policy(interval: &str, action: &str, outputs: usize) -> (String, String) {
    let design = format!(
        "jostle-policy 1\nfeatures rtt_gradient rtt_ratio loss_ratio\nhistory 2\n\
         interval {interval}\naction {action}\n"
    );
    let rows = "6 -0.5 -2 -4 -0.5 -2 -1\n".repeat(outputs);
    let file = format!("{design}layer tanh 6 {outputs}\n{rows}layer linear {outputs} {outputs}\n");
    let last: String = (0..outputs)
        .map(|i| {
            let weight = |j| if i == j { " 3" } else { " 0" };
            format!("0{}\n", (0..outputs).map(weight).collect::<String>())
        })
        .collect();
    (design, file + &last)
}

fn spec() -> RunSpec {
    let mut narrow = link("narrow", 20 * MBPS, bdp_bytes(20 * MBPS, 40 * MS));
    narrow.loss = lost(0.001);
    let mut late = flow("late", LEARNER, 60 * MS);
    late.start_ns = 700 * MS;
    late.slow_start = None;
    let mut early = flow("early", LEARNER, 40 * MS);
    early.slow_start = None;
    run(4 * S, vec![narrow], vec![early, flow("cubic", "cubic", 40 * MS), late])
}

/// The run, its learners governed by the network within them.
fn on_their_own(spec: &RunSpec, file: &str) -> RunRecord {
    let mut recorder = Recorder::new(spec);
    jostle_sim::run_with(spec, &mut recorder, &|| false, &|_, random| {
        let (design, network) = parse_policy(file.as_bytes())?;
        Ok(learned(design, network, || cubic_below(random)))
    })
    .unwrap();
    recorder.finish()
}

/// The run, its learners governed by the same network from outside; how many decisions it took, and
/// what was observed.
fn from_outside(
    spec: &RunSpec,
    design: &str,
    file: &str,
) -> (RunRecord, usize, Vec<IntervalObservation>) {
    let learner = |flow| LearningFlow { flow, design: parse_design(design).unwrap() };
    let mut episode = Episode::new(
        spec.clone(),
        Recorder::new(spec),
        vec![learner(FlowId(0)), learner(FlowId(2))],
    )
    .unwrap();
    let mut network: NeuralNetwork = parse_policy(file.as_bytes()).unwrap().1;
    let (mut decisions, mut observed) = (0, Vec::new());
    while episode.advance(&|| false).unwrap() {
        for learner in 0..2 {
            if episode.is_due(learner) {
                let action = network.outputs(episode.observation(learner)).to_vec();
                episode.act(learner, &action);
                observed.push(episode.observed(learner));
                decisions += 1;
            }
        }
    }
    (episode.finish(&|| false).unwrap().finish(), decisions, observed)
}

fn text(record: &RunRecord) -> String {
    serde_json::to_string(&record.summary).unwrap()
}

#[test]
fn who_decides_makes_no_difference() {
    for (action, outputs) in [("rate 0.2", 1), ("window 0.5", 1), ("cubic", 1), ("absolute", 2)] {
        for interval in ["20 ms", "0.5 rtt", "1 ms"] {
            let (design, file) = policy(interval, action, outputs);
            let (outside, decisions, _) = from_outside(&spec(), &design, &file);
            assert!(decisions > 100, "{action}, {interval}: {decisions} decisions");
            let own = on_their_own(&spec(), &file);
            assert_eq!(text(&outside), text(&own), "{action}, {interval}");
            // As text, for there is no window before the start.
            let windows = |it: &RunRecord| format!("{:?}", it.flows.cwnd_bytes);
            assert_eq!(windows(&outside), windows(&own), "{action}, {interval}");
        }
    }
}

#[test]
fn it_makes_none_over_quic_either() {
    let mut spec = spec();
    for flow in &mut spec.flows {
        *flow = common::over_quic(flow.clone());
    }
    // What is lost in large numbers breaks the connection (`too many gaps`).
    let (design, file) = policy("20 ms", "rate 0.02", 1);
    let (outside, decisions, _) = from_outside(&spec, &design, &file);
    assert!(decisions > 300, "{decisions} decisions");
    assert_eq!(text(&outside), text(&on_their_own(&spec, &file)));
}

/// Intervals follow each other without a gap, and count what the record counts.
#[test]
fn intervals_add_up_to_the_run() {
    let (design, file) = policy("20 ms", "window 0.1", 1);
    let mut spec = spec();
    spec.flows.truncate(1);
    spec.links[0].loss = None;
    let learner = LearningFlow { flow: FlowId(0), design: parse_design(&design).unwrap() };
    let mut episode = Episode::new(spec.clone(), Recorder::new(&spec), vec![learner]).unwrap();
    let mut network: NeuralNetwork = parse_policy(file.as_bytes()).unwrap().1;
    let (mut sum, mut intervals) = (IntervalObservation::default(), 0.0);
    while episode.advance(&|| false).unwrap() {
        let it = episode.observed(0);
        assert!((it.duration_s - 0.02).abs() < 1e-9, "{it:?}");
        assert!(it.rtt_samples == 0.0 || (0.04..0.2).contains(&it.rtt_mean_s), "{it:?}");
        assert!(it.rtt_min_s <= it.rtt_mean_s + 1e-9 && it.least_rtt_s <= it.srtt_s, "{it:?}");
        sum.acked_packets += it.acked_packets;
        sum.sent_packets += it.sent_packets;
        sum.lost_packets += it.lost_packets;
        intervals += 1.0;
        let action = network.outputs(episode.observation(0)).to_vec();
        episode.act(0, &action);
    }
    // A round trip passes before the connection is open, and the last interval may be cut.
    assert!(intervals > 196.0 && intervals <= 199.0, "{intervals} intervals");
    let record = episode.finish(&|| false).unwrap().finish();
    let sent: f64 = record.flows.sent_packets.iter().map(|&it| it as f64).sum();
    assert!((sent - sum.sent_packets).abs() < 0.02 * sent, "{sent} packets, {sum:?}");
    assert!(sum.acked_packets + sum.lost_packets <= sum.sent_packets + 1.0, "{sum:?}");
    assert!(sum.acked_packets > 0.9 * sent, "{sent} packets, {sum:?}");
}
