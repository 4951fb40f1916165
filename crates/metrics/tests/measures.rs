//! Measures of small runs, computed by hand.

use crate::common::{MS, S, dumbbell};
use jostle_link::{DropReason, Service};
use jostle_metrics::{AckEvent, EventSink, FlowState, Recorder, RunRecord};
use jostle_run_spec::RunSpec;
use jostle_units::{ConnectionId, FlowId, LinkId, Rate, Span, Time};
use serde_json::{Value, json};

fn at(ms: u64) -> Time {
    Time::from_ns(ms * MS)
}

fn spec(change: impl FnOnce(&mut Value)) -> RunSpec {
    let mut json = dumbbell();
    change(&mut json);
    RunSpec::from_json(&json.to_string()).unwrap()
}

fn ack(rtt_ms: u64, cwnd_bytes: u64) -> AckEvent {
    AckEvent {
        rtt: Some(Span::from_ms(rtt_ms)),
        cwnd_bytes,
        in_flight_bytes: 1_448,
        acked_bytes: 2_896,
        lost_packets: 1,
    }
}

pub const STATE: FlowState = FlowState {
    srtt: Span::ZERO,
    cwnd_bytes: 14_480,
    ssthresh_bytes: None,
    in_flight_bytes: 1_448,
    pacing_rate: None,
    mode: "slow_start",
};

/// 8 Mbit/s carry 1000 bytes per millisecond.
fn offered_until(ms: u64) -> f64 {
    (ms * 1_000) as f64
}

/// Ends second number `second` (from 1), and phases with it.
fn end_second(recorder: &mut Recorder, second: u64, queue_bytes: u64) {
    let now = at(second * 1_000);
    for flow in [FlowId(0), FlowId(1)] {
        recorder.flow_state(now, flow, &STATE);
        recorder.controller_state(now, flow, "k_s", second as f64);
    }
    recorder.link_state(now, LinkId(0), queue_bytes, offered_until(second * 1_000).into());
    if [2, 4, 6, 10].contains(&second) {
        recorder.phase_boundary(now, &[offered_until(second * 1_000).into()]);
    }
}

/// The first flow sends a packet of 1000 bytes with 900 of payload every 100 ms and sees RTTs of
/// 100, 200, 300, 400 ms in turn; every tenth packet is a retransmission. The queue holds 3000
/// bytes in the second half of every second. The second flow does nothing.
pub fn steady() -> RunRecord {
    let spec = spec(|_| ());
    let mut recorder = Recorder::new(&spec);
    recorder.phase_boundary(Time::ZERO, &[Service::default()]);
    for i in 0..100u64 {
        let now = at(i * 100);
        recorder.sent(now, ConnectionId(0), 1, 1_000, i % 10 == 9);
        recorder.link_sent(now, now, LinkId(0), 1_000, Span::from_ms(2));
        recorder.received(now, ConnectionId(0), 1_000);
        recorder.delivered(now, ConnectionId(0), 900);
        recorder.acked(
            now,
            ConnectionId(0),
            &ack(100 * (i % 4 + 1), if i < 40 { 10_000 } else { 20_000 }),
        );
        match i % 10 {
            0 => recorder.queue_changed(now, LinkId(0), 0, 0),
            5 => recorder.queue_changed(now, LinkId(0), 3_000, 3),
            7 => recorder.dropped(now, LinkId(0), ConnectionId(0), DropReason::Overflow, 0),
            8 => recorder.marked(now, LinkId(0), ConnectionId(0), DropReason::Codel),
            _ => {}
        }
        if i % 10 == 9 {
            end_second(&mut recorder, i / 10 + 1, 3_000);
        }
    }
    recorder.finish()
}

#[test]
fn a_steady_flow_is_measured_as_computed_by_hand() {
    let record = steady();
    let flow = &record.summary.flows[0];
    let overall = flow.phases.get("overall").unwrap();
    assert_eq!(overall.sending_rate_bps, 80_000.0);
    assert_eq!(overall.throughput_bps, 80_000.0);
    assert_eq!(overall.goodput_bps, 72_000.0);
    assert_eq!(overall.goodput_ratio, Some(0.9));
    assert_eq!((overall.sent_packets, overall.retransmitted_packets), (100, Some(10)));
    assert_eq!(overall.retransmission_ratio, Some(0.1));
    assert_eq!(overall.rtt_mean_s, Some(0.25));
    assert_eq!(overall.rtt_min_s, Some(0.1));
    // 25 samples each of 100, 200, 300, 400 ms: Σ(x − 250)² = 50·(150² + 50²) ms².
    let sd_s = (50.0 * (0.15f64.powi(2) + 0.05f64.powi(2)) / 99.0).sqrt();
    assert!((overall.rtt_sd_s.unwrap() - sd_s).abs() < 1e-12);
    assert!((overall.rtt_p50_s.unwrap() / 0.25 - 1.0).abs() < 1.0 / 64.0);
    assert!((overall.rtt_p95_s.unwrap() / 0.4 - 1.0).abs() < 1.0 / 64.0);
    assert_eq!(overall.power_bits, Some(320_000.0));
    assert_eq!(overall.cwnd_mean_bytes, Some(16_000.0));
    assert_eq!(flow.phases.get("startup").unwrap().cwnd_mean_bytes, Some(10_000.0));
    assert_eq!(flow.phases.get("middle").unwrap().cwnd_mean_bytes, Some(15_000.0));
    assert_eq!(flow.phases.get("middle").unwrap().sent_packets, 40);
    assert_eq!(flow.completion_time_s, None);
}

#[test]
fn a_link_is_measured_as_computed_by_hand() {
    let record = steady();
    let phases = &record.summary.links[0].phases;
    for (phase, seconds) in [("overall", 10), ("startup", 4), ("middle", 4)] {
        let link = phases.get(phase).unwrap();
        assert_eq!(link.utilisation, Some(0.01), "{phase}");
        assert_eq!(link.queue_length_mean_bytes, 1_500.0, "{phase}");
        assert!((link.queue_length_p95_bytes / 3_000.0 - 1.0).abs() < 1.0 / 64.0, "{phase}");
        // At 10 kB/s the link is used to 1 %: it sends 1 MB/s.
        assert!((link.queue_delay_estimate_mean_s.unwrap() - 1.5e-3).abs() < 1e-12, "{phase}");
        let p95_s = link.queue_length_p95_bytes / 1e6;
        assert!((link.queue_delay_estimate_p95_s.unwrap() - p95_s).abs() < 1e-12, "{phase}");
        assert_eq!((link.dropped_packets, link.marked_packets), (seconds, seconds), "{phase}");
    }
}

#[test]
fn a_flow_that_does_nothing_has_no_data() {
    let record = steady();
    let overall = record.summary.flows[1].phases.get("overall").unwrap();
    assert_eq!(overall.throughput_bps, 0.0);
    assert_eq!(overall.goodput_ratio, None);
    assert_eq!(overall.retransmission_ratio, None);
    assert_eq!(overall.rtt_p95_s, None);
    assert_eq!(overall.power_bits, None);
    // It was there and got nothing: one of two has it all.
    assert_eq!(record.summary.fairness.get("overall").unwrap().jain, Some(0.5));
}

#[test]
fn the_series_has_a_row_per_second_and_flow() {
    let record = steady();
    let flows = &record.flows;
    assert_eq!(flows.time_s.len(), 20);
    assert_eq!(flows.flow[..4], [0, 1, 0, 1]);
    assert_eq!(flows.time_s[..4], [1.0, 1.0, 2.0, 2.0]);
    assert_eq!(flows.sending_rate_bps[..2], [80_000.0, 0.0]);
    assert_eq!(flows.goodput_bps[18], 72_000.0);
    assert_eq!((flows.sent_packets[18], flows.retransmitted_packets[18]), (10, 1));
    // Samples of the first second: 100, 200, 300, 400, 100, …, 200 ms.
    assert!((flows.rtt_mean_s[0] - 0.23).abs() < 1e-12);
    assert_eq!(flows.rtt_last_s[0], 0.2);
    assert!(flows.rtt_last_s[1].is_nan() && flows.srtt_s[0].is_nan());
    assert!(flows.ssthresh_bytes[0].is_nan() && flows.pacing_rate_bps[0].is_nan());
    assert_eq!(flows.modes.as_slice(), ["slow_start"]);

    let links = &record.links;
    assert_eq!(links.time_s.len(), 10);
    assert_eq!(links.utilisation, [0.01; 10]);
    assert_eq!(links.queue_bytes, [3_000.0; 10]);
    assert_eq!(links.queue_length_mean_bytes, [1_500.0; 10]);
    assert!(
        links.queue_delay_estimate_mean_s.iter().all(|queue_s| (queue_s - 1.5e-3).abs() < 1e-12)
    );
    assert_eq!(links.sent_packets, [10; 10]);
    assert_eq!(links.dropped[DropReason::Overflow as usize], [1; 10]);
    assert_eq!(links.marked[DropReason::Codel as usize], [1; 10]);
    assert_eq!(links.dropped[DropReason::Red as usize], [0; 10]);

    assert_eq!(record.internals.value[..3], [1.0, 1.0, 2.0]);
    assert_eq!(record.internals.quantities.as_slice(), ["k_s"]);
    assert!(record.acks.is_none());
}

#[test]
fn states_become_numbers_where_they_exist() {
    let spec = spec(|_| ());
    let mut recorder = Recorder::new(&spec);
    let state = FlowState {
        srtt: Span::from_ms(600),
        ssthresh_bytes: Some(7_240),
        pacing_rate: Some(Rate::from_mbps(5)),
        mode: "probe_bw",
        ..STATE
    };
    recorder.flow_state(at(1_000), FlowId(0), &STATE);
    recorder.flow_state(at(1_000), FlowId(1), &state);
    let flows = recorder.finish().flows;
    assert_eq!(flows.srtt_s[1], 0.6);
    assert_eq!(flows.ssthresh_bytes[1], 7_240.0);
    assert_eq!(flows.pacing_rate_bps[1], 5_000_000.0);
    assert_eq!(flows.mode, [0, 1]);
    assert_eq!(flows.modes.as_slice(), ["slow_start", "probe_bw"]);
}

#[test]
fn modes_beyond_256_keep_their_names() {
    let spec = spec(|_| ());
    let mut recorder = Recorder::new(&spec);
    let modes: Vec<&'static str> =
        (0..300).map(|number| &*Box::leak(format!("mode {number}").into_boxed_str())).collect();
    for mode in &modes {
        recorder.flow_state(at(1_000), FlowId(0), &FlowState { mode, ..STATE });
    }
    let flows = recorder.finish().flows;
    let names: Vec<_> =
        flows.mode.iter().map(|code| flows.modes.as_slice()[*code as usize]).collect();
    assert_eq!(names, modes);
}

#[test]
fn events_of_a_link_count_where_their_own_time_is() {
    let spec = spec(|_| ());
    let mut recorder = Recorder::new(&spec);
    // Sending starts at 1.9 s and ends at 2.1 s, where the packet is lost; both are told at once,
    // ahead of what the queue does meanwhile.
    recorder.queue_changed(at(1_500), LinkId(0), 4_000, 4);
    recorder.link_sent(at(2_100), at(2_100), LinkId(0), 1_000, Span::from_ms(2));
    recorder.dropped(at(2_100), LinkId(0), ConnectionId(0), DropReason::Loss, 0);
    recorder.queue_changed(at(1_900), LinkId(0), 2_000, 2);
    recorder.dropped(at(1_950), LinkId(0), ConnectionId(0), DropReason::Overflow, 0);
    recorder.link_sent(Time::NEVER, Time::NEVER, LinkId(0), 1_000, Span::from_ms(2));
    for second in 1..=10 {
        end_second(&mut recorder, second, 0);
    }
    let record = recorder.finish();
    assert_eq!(record.links.sent_packets, [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(record.links.dropped[DropReason::Loss as usize][..3], [0, 0, 1]);
    assert_eq!(record.links.dropped[DropReason::Overflow as usize][..3], [0, 1, 0]);
    assert_eq!(record.links.queue_length_mean_bytes[..3], [0.0, 1_800.0, 2_000.0]);
    let middle = record.summary.links[0].phases.get("middle").unwrap();
    assert_eq!((middle.dropped_packets, middle.queue_length_mean_bytes), (1, 2_000.0));
}

#[test]
fn the_last_interval_may_be_shorter() {
    let spec = spec(|json| json["interval_ns"] = json!(4 * S));
    let mut recorder = Recorder::new(&spec);
    for (ms, offered) in [(4_000, 4e6), (8_000, 8e6), (10_000, 10e6)] {
        recorder.sent(at(ms - 500), ConnectionId(0), 1, 1_000, false);
        recorder.link_sent(at(ms - 500), at(ms - 500), LinkId(0), 1_000, Span::from_ms(2));
        recorder.flow_state(at(ms), FlowId(0), &STATE);
        recorder.link_state(at(ms), LinkId(0), 0, offered.into());
    }
    let record = recorder.finish();
    assert_eq!(record.flows.sending_rate_bps, [2_000.0, 2_000.0, 4_000.0]);
    assert_eq!(record.links.utilisation, [0.00025, 0.00025, 0.0005]);
    assert_eq!(record.links.time_s, [4.0, 8.0, 10.0]);
}

#[test]
fn fairness_counts_the_flows_that_were_there() {
    let spec = spec(|json| {
        json["flows"][1]["start_ns"] = json!(5 * S);
        json["phases"]
            .as_array_mut()
            .unwrap()
            .push(json!({"name": "end", "from_ns": 8 * S, "to_ns": 10 * S}));
    });
    let mut recorder = Recorder::new(&spec);
    recorder.received(at(1_000), ConnectionId(0), 3_000);
    for second in [2, 4] {
        recorder.phase_boundary(at(second * 1_000), &[Service::default()]);
    }
    recorder.received(at(5_500), ConnectionId(0), 3_000);
    recorder.received(at(5_500), ConnectionId(1), 3_000);
    recorder.phase_boundary(at(6_000), &[Service::default()]);
    recorder.flow_completed(at(7_000), ConnectionId(1), Span::from_secs(2));
    let record = recorder.finish();
    let jain = |phase| record.summary.fairness.get(phase).unwrap().jain;
    assert_eq!(jain("startup"), Some(1.0));
    assert_eq!(jain("middle"), Some(1.0));
    assert_eq!(jain("overall"), Some(0.9));
    assert_eq!(jain("end"), None);
    assert_eq!(record.summary.flows[1].completion_time_s, Some(2.0));
    // A capacity of nothing, or an unknown one, has no utilisation.
    assert_eq!(record.summary.links[0].phases.get("overall").unwrap().utilisation, None);
}

#[test]
fn completions_of_a_group_are_put_together_and_what_is_late_is_counted() {
    let spec = spec(|json| {
        let mut flows = Vec::new();
        for number in 0..5 {
            let mut flow = json["flows"][0].clone();
            flow["name"] = json!(format!("web-{number}"));
            flow["group"] = json!("web");
            flow["source"] = json!({"kind": "fixed", "bytes": 1_000_000});
            flows.push(flow);
        }
        flows.push(json["flows"][0].clone());
        json["flows"] = json!(flows);
    });
    let mut recorder = Recorder::new(&spec);
    for (flow, s) in [(0, 4), (1, 1), (3, 2)] {
        recorder.flow_completed(at(s * 1_000), ConnectionId(flow), Span::from_secs(s));
    }
    let summary = recorder.finish().summary;
    let late: Vec<_> = summary.flows.iter().map(|flow| flow.unfinished).collect();
    assert_eq!(late, [Some(0), Some(0), Some(1), Some(0), Some(1), None]);
    assert_eq!(summary.flows[3].completion_rate_bps, Some(4e6));
    let [web, bulk] = &summary.groups[..] else { panic!("two groups") };
    assert_eq!((web.name.as_str(), web.flows, web.unfinished), ("web", 5, Some(2)));
    assert_eq!(web.completion_time_mean_s, Some(7.0 / 3.0));
    assert_eq!((web.completion_time_p50_s, web.completion_time_p95_s), (Some(4.0), None));
    assert_eq!(web.completion_rate_mean_bps, Some((2.0 + 8.0 + 4.0) / 3.0 * 1e6));
    assert_eq!((bulk.name.as_str(), bulk.flows, bulk.unfinished), ("first", 1, None));
    assert_eq!((bulk.completion_time_mean_s, bulk.completion_time_p50_s), (None, None));
}

#[test]
fn delays_of_packets_are_measured_as_computed_by_hand() {
    let spec = spec(|_| ());
    let mut recorder = Recorder::new(&spec);
    recorder.phase_boundary(Time::ZERO, &[Service::default()]);
    let mut told = 0;
    for second in 1..=10 {
        for ms in (told..second * 1_000).step_by(100) {
            // Propagation takes 10 ms; a packet waits for 0, 1, …, 99 ms, and is sent in 1 ms.
            let waited = Span::from_ms(ms / 100);
            recorder.link_sent(at(ms), at(ms + 1), LinkId(0), 1_000, waited);
            recorder.packet_transit(
                at(ms + 11),
                ConnectionId(0),
                Span::from_ms(11) + waited,
                waited,
            );
        }
        told = second * 1_000;
        end_second(&mut recorder, second, 0);
    }
    let record = recorder.finish();
    let near = |found: Option<f64>, exact: f64| (found.unwrap() - exact).abs() < exact / 64.0;
    let flow = record.summary.flows[0].phases.get("overall").unwrap();
    assert_eq!((flow.one_way_delay_mean_s, flow.one_way_delay_min_s), (Some(0.0605), Some(0.011)));
    assert!(near(flow.one_way_delay_p50_s, 0.0605) && near(flow.one_way_delay_p95_s, 0.10505));
    assert!((flow.delay_variation_mean_s.unwrap() - 0.0495).abs() < 1e-12);
    assert!(near(flow.delay_variation_p99_s, 0.09801));
    assert_eq!(flow.path_queueing_delay_mean_s, Some(0.0495));
    // Variation is that within the phase.
    let middle = record.summary.flows[0].phases.get("middle").unwrap();
    assert_eq!(
        (middle.one_way_delay_min_s, middle.path_queueing_delay_mean_s),
        (Some(0.031), Some(0.0395))
    );
    assert!((middle.delay_variation_mean_s.unwrap() - 0.0195).abs() < 1e-12);
    let link = record.summary.links[0].phases.get("overall").unwrap();
    assert_eq!(link.queueing_delay_mean_s, Some(0.0495));
    assert!(near(link.queueing_delay_p50_s, 0.0495) && near(link.queueing_delay_p95_s, 0.09405));
    assert_eq!(record.flows.received_packets[..2], [10, 0]);
    assert!((record.flows.one_way_delay_mean_s[0] - 0.0155).abs() < 1e-12);
    assert!((record.links.queueing_delay_mean_s[9] - 0.0945).abs() < 1e-12);
    let other = record.summary.flows[1].phases.get("overall").unwrap();
    assert_eq!((other.one_way_delay_mean_s, other.delay_variation_p95_s), (None, None));
}

#[test]
fn a_packet_counts_where_its_bytes_leave() {
    let spec = spec(|_| ());
    let mut recorder = Recorder::new(&spec);
    recorder.phase_boundary(Time::ZERO, &[Service::default()]);
    // A link of 8 Mbit/s that is never still: packets of 1.5 MB take 1.5 s each.
    for number in 0..7 {
        let (start, finish) = (at(number * 1_500), at((number + 1) * 1_500));
        recorder.link_sent(start, finish, LinkId(0), 1_500_000, Span::ZERO);
    }
    for second in 1..=10 {
        end_second(&mut recorder, second, 0);
    }
    let record = recorder.finish();
    assert_eq!(record.links.utilisation, [1.0; 10]);
    assert_eq!(record.links.throughput_bps, [8e6; 10]);
    for (_, phase) in record.summary.links[0].phases.iter() {
        assert_eq!(phase.utilisation, Some(1.0));
    }
}

#[test]
fn a_flow_that_is_not_open_has_no_window() {
    let spec = spec(|json| {
        json["flows"][0]["start_ns"] = json!(1_500 * MS);
        json["flows"][1]["source"] = json!({"kind": "fixed", "bytes": 1_000});
    });
    let mut recorder = Recorder::new(&spec);
    recorder.acked(at(500), ConnectionId(1), &ack(40, 14_480));
    recorder.flow_completed(at(1_200), ConnectionId(1), Span::from_ms(1_200));
    for second in 1..=10 {
        end_second(&mut recorder, second, 0);
    }
    let windows = |flow: usize| -> Vec<bool> {
        let flows = recorded_windows(&recorder);
        flows.iter().skip(flow).step_by(2).map(|cwnd| cwnd.is_nan()).collect()
    };
    assert_eq!(windows(0), [true, false, false, false, false, false, false, false, false, false]);
    assert_eq!(windows(1), [false, false, true, true, true, true, true, true, true, true]);
}

fn recorded_windows(recorder: &Recorder) -> Vec<f64> {
    recorder.clone().finish().flows.cwnd_bytes
}

#[test]
fn responses_count_in_the_phase_in_which_they_are_whole() {
    let spec = spec(|json| {
        let source = json!({"kind": "request_response", "bytes": 10_000, "think_ns": S,
            "count": null});
        for flow in 0..2 {
            json["flows"][flow]["source"] = source.clone();
            json["flows"][flow]["group"] = json!("web");
        }
    });
    let mut recorder = Recorder::new(&spec);
    let mut told = 0;
    for second in 1..=10 {
        for ms in (told..second * 1_000).step_by(100) {
            // 10, 20, …, 1000 ms by the first flow, one of 5 s by the second.
            recorder.response_complete(at(ms), ConnectionId(0), Span::from_ms(ms / 10 + 10));
        }
        if second == 6 {
            recorder.response_complete(at(5_500), ConnectionId(1), Span::from_secs(5));
        }
        told = second * 1_000;
        end_second(&mut recorder, second, 0);
    }
    let record = recorder.finish();
    let close = |found: Option<f64>, exact: f64| (found.unwrap() / exact - 1.0).abs() < 1.0 / 64.0;
    let overall = record.summary.flows[0].phases.get("overall").unwrap();
    assert_eq!((overall.responses, overall.response_time_mean_s), (Some(100), Some(0.505)));
    assert!(
        close(overall.response_time_p50_s, 0.505) && close(overall.response_time_p95_s, 0.9505)
    );
    let startup = record.summary.flows[0].phases.get("startup").unwrap();
    assert_eq!((startup.responses, startup.response_time_mean_s), (Some(40), Some(0.205)));
    let [web] = &record.summary.groups[..] else { panic!("one group") };
    let pooled = web.phases.get("overall").unwrap();
    assert_eq!(pooled.responses, Some(101));
    assert!((pooled.response_time_mean_s.unwrap() - (50.5 + 5.0) / 101.0).abs() < 1e-12);
    assert!(close(pooled.response_time_p50_s, 0.51) && close(pooled.response_time_p99_s, 1.0));
    assert_eq!(web.phases.get("startup").unwrap().responses, Some(40));
    assert_eq!(record.flows.responses[..3], [10, 0, 10]);
    assert!((record.flows.response_time_mean_s[0] - 0.055).abs() < 1e-12);
    assert!(record.flows.response_time_mean_s[1].is_nan());
    assert_eq!(record.flows.responses[11], 1);
}

#[test]
fn acks_are_kept_when_asked_for() {
    let spec = spec(|json| json["record"] = json!("acks"));
    let mut recorder = Recorder::new(&spec);
    recorder.acked(at(100), ConnectionId(1), &ack(40, 14_480));
    recorder.acked(at(140), ConnectionId(1), &AckEvent { rtt: None, ..ack(0, 15_928) });
    let acks = recorder.finish().acks.unwrap();
    assert_eq!(acks.time_s, [0.1, 0.14]);
    assert_eq!(acks.flow, [1, 1]);
    assert_eq!(acks.rtt_s[0], 0.04);
    assert!(acks.rtt_s[1].is_nan());
    assert_eq!(acks.cwnd_bytes, [14_480.0, 15_928.0]);
    assert_eq!(acks.in_flight_bytes, [1_448.0; 2]);
    assert_eq!(acks.acked_bytes, [2_896; 2]);
    assert_eq!(acks.lost_packets, [1; 2]);
}
