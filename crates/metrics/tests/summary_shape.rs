//! Keys of the summary.

use serde_json::{Value, json};

use crate::measures::steady;

fn keys(value: &Value) -> Vec<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn the_summary_has_the_shape_of_the_contract() {
    // Long: every key of a flow by its name.
    let json = serde_json::to_string(&steady().summary).unwrap();
    let summary: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(keys(&summary), ["fairness", "flows", "groups", "links", "totals"]);
    let flow = &summary["flows"][0];
    assert_eq!(
        keys(flow),
        [
            "bandwidth_estimate_bps",
            "completion_rate_bps",
            "completion_time_s",
            "controller",
            "efficiency",
            "group",
            "name",
            "phases",
            "start_s",
            "transport",
            "unfinished",
        ]
    );
    assert_eq!(flow["controller"], "reno");
    assert_eq!(flow["transport"], "tcp");
    assert_eq!(flow["completion_time_s"], Value::Null);
    assert_eq!(
        keys(&flow["phases"]["overall"]),
        [
            "application_limited",
            "cwnd_limited",
            "cwnd_mean_bytes",
            "cwnd_or_pacing_limited",
            "delay_variation_mean_s",
            "delay_variation_p95_s",
            "delay_variation_p99_s",
            "frame_delay_max_s",
            "frame_delay_mean_s",
            "frame_delay_p50_s",
            "frame_delay_p95_s",
            "frame_delay_p99_s",
            "frames",
            "goodput_bps",
            "goodput_ratio",
            "jitter_mean_s",
            "late_frames",
            "lead_bps",
            "lost_share",
            "mos",
            "mouth_to_ear_s",
            "one_way_delay_mean_s",
            "one_way_delay_min_s",
            "one_way_delay_p50_s",
            "one_way_delay_p95_s",
            "one_way_delay_p99_s",
            "pacing_limited",
            "path_queueing_delay_mean_s",
            "power_bits",
            "r_factor",
            "receive_window_limited",
            "response_time_mean_s",
            "response_time_p50_s",
            "response_time_p95_s",
            "response_time_p99_s",
            "responses",
            "retransmission_ratio",
            "retransmitted_packets",
            "rtt_mean_s",
            "rtt_min_s",
            "rtt_p50_s",
            "rtt_p95_s",
            "rtt_sd_s",
            "segment_power_bits",
            "segment_rtt_max_s",
            "segment_rtt_mean_s",
            "segment_rtt_p50_s",
            "segment_rtt_p95_s",
            "send_buffer_limited",
            "sending_rate_bps",
            "sent_packets",
            "share",
            "throughput_bps",
        ]
    );
    assert_eq!(
        summary["fairness"]["middle"],
        json!({"jain": 0.5, "starvation": 24.861_878_453_038_67, "convergence_time_s": null})
    );
    assert_eq!(
        summary["totals"]["middle"],
        json!({"total_throughput_bps": 80_000.0, "total_retransmitted_packets": 4,
            "rtt_of_flows_s": 0.25})
    );
    assert!(json.find(r#""overall""#) < json.find(r#""startup""#), "phases in the spec's order");
}

#[test]
fn the_summary_of_a_group_has_the_shape_of_the_contract() {
    let summary = serde_json::to_value(steady().summary).unwrap();
    let group = &summary["groups"][1];
    assert_eq!(
        keys(group),
        [
            "completion_rate_mean_bps",
            "completion_time_mean_s",
            "completion_time_p50_s",
            "completion_time_p95_s",
            "completion_time_p99_s",
            "flows",
            "name",
            "phases",
            "unfinished",
        ]
    );
    assert_eq!((&group["name"], &group["flows"]), (&json!("second"), &json!(1)));
    assert_eq!(
        keys(&group["phases"]["overall"]),
        [
            "response_time_mean_s",
            "response_time_p50_s",
            "response_time_p95_s",
            "response_time_p99_s",
            "responses"
        ]
    );
}

#[test]
fn the_summary_of_a_link_has_the_shape_of_the_contract() {
    let summary = serde_json::to_value(steady().summary).unwrap();
    let link = &summary["links"][0];
    assert_eq!(keys(link), ["name", "phases"]);
    assert_eq!(
        keys(&link["phases"]["startup"]),
        [
            "dropped_ack_filter_packets",
            "dropped_cobalt_packets",
            "dropped_codel_packets",
            "dropped_corruption_packets",
            "dropped_delay_queue_packets",
            "dropped_loss_packets",
            "dropped_occupancy_packets",
            "dropped_outage_packets",
            "dropped_overflow_packets",
            "dropped_packets",
            "dropped_pi2_packets",
            "dropped_pie_packets",
            "dropped_policer_packets",
            "dropped_red_packets",
            "duplicated_packets",
            "marked_cobalt_packets",
            "marked_codel_packets",
            "marked_fault_packets",
            "marked_packets",
            "marked_pi2_packets",
            "marked_pie_packets",
            "marked_red_packets",
            "marked_step_packets",
            "queue_delay_estimate_mean_s",
            "queue_delay_estimate_p95_s",
            "queue_length_mean_bytes",
            "queue_length_p95_bytes",
            "queueing_delay_mean_s",
            "queueing_delay_p50_s",
            "queueing_delay_p95_s",
            "queueing_delay_p99_s",
            "utilisation",
        ]
    );
}
