//! What the series say about an interval, and what does not depend on its length.

use crate::common::{MS, S, dumbbell};
use crate::measures::STATE;
use jostle_metrics::{EventSink, KernelSamples, Recorder, SampledFlow, SampledLink};
use jostle_run_spec::RunSpec;
use jostle_units::{ConnectionId, FlowId, LinkId, Time};
use serde_json::json;

const DURATION_S: u64 = 20;

fn at(ms: u64) -> Time {
    Time::from_ns(ms * MS)
}

fn spec(interval_ns: u64) -> RunSpec {
    let mut spec = dumbbell();
    spec["duration_ns"] = json!(DURATION_S * S);
    spec["interval_ns"] = json!(interval_ns);
    spec["phases"] = json!([
        {"name": "overall", "from_ns": 0, "to_ns": DURATION_S * S},
        {"name": "late", "from_ns": 9 * S + 600 * MS, "to_ns": DURATION_S * S},
        {"name": "middle", "from_ns": 9 * S + 400 * MS, "to_ns": 16 * S},
    ]);
    RunSpec::from_json(&spec.to_string()).unwrap()
}

/// Bytes that a flow receives per 100 ms: the second has a third of the first until 7.2 s, and four
/// fifths of it from then on.
fn received(flow: u32, ms: u64) -> u32 {
    match (flow, ms) {
        (0, _) => 15_000,
        (_, ..7_200) => 5_000,
        _ => 12_000,
    }
}

#[test]
fn the_queue_has_its_extremes_in_every_interval() {
    let spec = spec(5 * S);
    let mut recorder = Recorder::new(&spec);
    recorder.queue_changed(at(1_000), LinkId(0), 3_000, 3);
    // Two packets of a burst: the length between them lasts for no time.
    recorder.queue_changed(at(2_000), LinkId(0), 9_000, 9);
    recorder.queue_changed(at(2_000), LinkId(0), 7_000, 7);
    recorder.queue_changed(at(2_001), LinkId(0), 1_000, 1);
    // The second interval begins with 1,000 bytes, and a phase begins in it.
    recorder.queue_changed(at(6_000), LinkId(0), 4_000, 4);
    recorder.queue_changed(at(12_000), LinkId(0), 2_000, 2);
    for end in [5, 10, 15, 20] {
        recorder.link_state(at(end * 1_000), LinkId(0), 0, 1e6.into());
    }
    let links = recorder.finish().links;
    assert_eq!(links.queue_length_min_bytes, [0.0, 1_000.0, 2_000.0, 2_000.0]);
    assert_eq!(links.queue_length_max_bytes, [7_000.0, 4_000.0, 4_000.0, 2_000.0]);
}

#[test]
fn the_convergence_time_does_not_depend_on_the_sampling_interval() {
    for interval_ns in [100 * MS, 300 * MS, S, 3 * S, 20 * S] {
        let spec = spec(interval_ns);
        let mut recorder = Recorder::new(&spec);
        for ms in (0..DURATION_S * 1_000).step_by(100) {
            if ms > 0 && (ms * MS).is_multiple_of(interval_ns) {
                (0..2).for_each(|flow| recorder.flow_state(at(ms), FlowId(flow), &STATE));
            }
            (0..2)
                .for_each(|flow| recorder.received(at(ms), ConnectionId(flow), received(flow, ms)));
        }
        (0..2).for_each(|flow| recorder.flow_state(at(DURATION_S * 1_000), FlowId(flow), &STATE));
        let fairness = recorder.finish().summary.fairness;
        let found = |phase| fairness.get(phase).unwrap().convergence_time_s;
        // The second from 7 s to 8 s is fair on average, 1.5 to 1.06.
        assert_eq!((found("overall"), found("late")), (Some(7.0), Some(10.0)), "{interval_ns}");
        // The second from 9 s to 10 s begins before the phase.
        assert_eq!(found("middle"), Some(10.0), "{interval_ns}");
    }
}

/// The second flow waits until `opened_s`, and is active for a time.
fn convergence_beside(opened_s: Option<u64>, stop_s: u64) -> [Option<f64>; 2] {
    let mut spec = serde_json::to_value(spec(S)).unwrap();
    spec["flows"][1]["stop_ns"] = json!(stop_s * S);
    spec["flows"][1]["after"] = json!(0);
    let spec: RunSpec = serde_json::from_value(spec).unwrap();
    let mut recorder = Recorder::new(&spec);
    for ms in (0..DURATION_S * 1_000).step_by(100) {
        if opened_s.is_some_and(|opened_s| ms == opened_s * 1_000) {
            recorder.opened(at(ms), FlowId(1));
        }
        recorder.received(at(ms), ConnectionId(0), 15_000);
        if opened_s.is_some_and(|opened_s| (opened_s * 1_000..stop_s * 1_000).contains(&ms)) {
            recorder.received(at(ms), ConnectionId(1), 12_000);
        }
    }
    let fairness = recorder.finish_summary().fairness;
    ["overall", "late"].map(|phase| fairness.get(phase).unwrap().convergence_time_s)
}

#[test]
fn flows_that_are_active_in_a_phase_converge() {
    assert_eq!(convergence_beside(Some(2), DURATION_S), [Some(2.0), Some(10.0)]);
    // A flow that stopped before a phase does not count in it.
    assert_eq!(convergence_beside(Some(2), 9), [Some(2.0), Some(10.0)]);
    assert_eq!(convergence_beside(Some(2), 10), [Some(2.0), None]);
    // The first flow is not alone in a phase in which the second one starts later.
    assert_eq!(convergence_beside(Some(15), DURATION_S), [Some(15.0); 2]);
    assert_eq!(convergence_beside(Some(16), DURATION_S), [None; 2]);
    // A flow that never starts does not count.
    assert_eq!(convergence_beside(None, DURATION_S), [Some(0.0), Some(10.0)]);
}

#[test]
fn a_sampled_run_converges_at_the_same_time_with_any_sampling_interval() {
    let times: Vec<Time> = (0..=DURATION_S * 10).map(|step| at(step * 100)).collect();
    let unknown = vec![f64::NAN; times.len()];
    let flow = |flow: u32| {
        let sums = (0..=DURATION_S * 10).scan(0.0, |sum, step| {
            let before = *sum;
            *sum += f64::from(received(flow, step * 100));
            Some(before)
        });
        let received_bytes: Vec<f64> = sums.collect();
        SampledFlow {
            start: Some(Time::ZERO),
            sent_bytes: received_bytes.clone(),
            delivered_bytes: received_bytes.clone(),
            received_bytes,
            sent_packets: vec![0.0; times.len()],
            retransmitted_packets: vec![0.0; times.len()],
            rtt_s: unknown.clone(),
            srtt_s: unknown.clone(),
            rtt_min_s: unknown.clone(),
            cwnd_bytes: unknown.clone(),
            ssthresh_bytes: unknown.clone(),
            in_flight_bytes: unknown.clone(),
            pacing_rate_bps: unknown.clone(),
            mode: vec![""; times.len()],
            ..SampledFlow::default()
        }
    };
    // The link sends a packet of 1,000 bytes every 100 ms. Two wait in every other second.
    let counter: Vec<f64> = (0..times.len()).map(|step| step as f64).collect();
    let none = vec![0.0; times.len()];
    let link = SampledLink {
        duplicated: vec![0.0; times.len()],
        sent_bytes: counter.iter().map(|packets| packets * 1_000.0).collect(),
        sent_packets: counter,
        queue_bytes: (0..times.len()).map(|step| (step / 10 % 2 * 2_000) as f64).collect(),
        dropped: std::array::from_fn(|_| none.clone()),
        marked: std::array::from_fn(|_| none.clone()),
    };
    let flows = vec![flow(0), flow(1)];
    let samples = KernelSamples { times, flows, links: vec![link] };
    let mut waits_s = Vec::new();
    for interval_ns in [100 * MS, 300 * MS, S, 3 * S, 20 * S] {
        let record = samples.record(&spec(interval_ns)).unwrap();
        let found = record.summary.fairness.get("overall").unwrap().convergence_time_s;
        assert_eq!(found, Some(7.0), "{interval_ns}");
        let link = record.summary.links[0].phases.get("overall").unwrap();
        waits_s.push((link.queueing_delay_mean_s, link.queueing_delay_p95_s));
        if interval_ns >= 3 * S {
            assert!(record.links.queue_length_min_bytes.iter().all(|bytes| *bytes == 0.0));
            assert!(record.links.queue_length_max_bytes.iter().all(|bytes| *bytes == 2_000.0));
        }
    }
    assert!(waits_s.iter().all(|found| *found == waits_s[0]), "{waits_s:?}");
    // Two packets at ten packets per second.
    assert!((waits_s[0].1.unwrap() - 0.2).abs() < 0.2 / 64.0, "{waits_s:?}");
}
