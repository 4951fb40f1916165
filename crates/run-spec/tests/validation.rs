//! Every rule of validation, by breaking it.

use crate::common;
use crate::common::{
    MS, S, dumbbell, everything, faulty, hosts, many, measured, pings, quic, receivers, routes,
};
use jostle_run_spec::RunSpec;
use serde_json::{Value, json};

/// The message that a spec is refused with.
fn refusal(spec: &Value) -> String {
    RunSpec::from_json(&spec.to_string()).expect_err("accepted").to_string()
}

/// `everything()` with one value replaced.
fn with(pointer: &str, value: Value) -> Value {
    let mut spec = everything();
    *spec.pointer_mut(pointer).expect(pointer) = value;
    spec
}

#[test]
fn examples_are_accepted_and_survive_json() {
    for example in [
        dumbbell(),
        everything(),
        pings(),
        quic(),
        many(),
        receivers(),
        hosts(),
        faulty(),
        routes(),
    ] {
        let spec = RunSpec::from_json(&example.to_string()).unwrap();
        let again = serde_json::to_string(&spec).unwrap();
        assert_eq!(RunSpec::from_json(&again).unwrap(), spec);
        assert_eq!(serde_json::from_str::<Value>(&again).unwrap(), example);
    }
}

#[test]
fn broken_json_is_no_spec() {
    let message = RunSpec::from_json("{").unwrap_err().to_string();
    assert!(message.starts_with("not a RunSpec: EOF"), "{message}");
    let mut unknown = dumbbell();
    unknown["sede"] = json!(2);
    assert!(refusal(&unknown).contains("unknown field `sede`"));
    let mut missing = dumbbell();
    missing["flows"][0].as_object_mut().unwrap().remove("path");
    assert!(refusal(&missing).contains("missing field `path`"));
}

/// Whoever knows no QUIC reads and writes what it always did.
#[test]
fn other_flows_say_nothing_of_quic() {
    let spec = RunSpec::from_json(&everything().to_string()).unwrap();
    assert!(!serde_json::to_string(&spec).unwrap().contains("\"quic\""));
}

#[test]
fn quic_is_told_what_it_can_do_and_nothing_of_tcp() {
    // Long: a table, a case a line.
    let algorithm = json!({"name": "standard", "parameters": {}});
    let cases = [
        ("/flows/0/quic", json!(null), "`flows[0].quic` cannot be absent"),
        ("/flows/0/transport", json!("tcp"), "`flows[0].quic` cannot be there: expected absent"),
        (
            "/flows/0/source",
            json!({"kind": "ping", "bytes": 20, "every_ns": S, "timeout_ns": S}),
            "`flows[0].transport` cannot be `quic`: expected `udp`",
        ),
        ("/flows/0/mtu_bytes", json!(1_227), "`flows[0].mtu_bytes` cannot be 1227: expected 1228"),
        (
            "/flows/0/quic/initial_mtu_bytes",
            json!(1_199),
            "`flows[0].quic.initial_mtu_bytes` cannot be 1199: expected 1200 to 1472",
        ),
        ("/flows/0/quic/initial_mtu_bytes", json!(1_473), "expected 1200 to 1472"),
        ("/flows/0/quic/stream_receive_window_bytes", json!(1_199), "expected 1200 to 60000000"),
        ("/flows/0/quic/stream_receive_window_bytes", json!(60_000_001), "1200 to 60000000"),
        ("/flows/0/quic/gso_packets", json!(0), "expected 1 to 64"),
        (
            "/flows/0/quic/packet_threshold",
            json!(2),
            "`flows[0].quic.packet_threshold` cannot be 2",
        ),
        ("/flows/0/quic/burst_limit_packets", json!(100), "100: expected absent: paced packets"),
        (
            "/flows/0/tcp",
            json!({"prr": "linux", "accecn_option": true}),
            "`flows[0].tcp` cannot be there: expected absent",
        ),
        ("/flows/0/quic/streams", json!(101), "expected 1 to 100"),
        ("/flows/0/quic/recovery", json!("fast"), "unknown variant `fast`"),
        (
            "/flows/0/quic/ack_frequency/ack_eliciting_threshold",
            json!(2_000_000),
            "`flows[0].quic.ack_frequency.ack_eliciting_threshold` cannot be 2000000",
        ),
        ("/flows/0/pacing", json!(true), "`flows[0].pacing` cannot be true: expected false"),
        ("/flows/0/initial_pacing", json!(true), "`flows[0].initial_pacing` cannot be true"),
        ("/flows/0/gro", json!(true), "`flows[0].gro` cannot be true"),
        ("/flows/0/receive_window_autotuning", json!(true), "autotuning` cannot be true"),
        ("/flows/0/linux", json!("4.15"), "`flows[0].linux` cannot be \"4.15\""),
        (
            "/flows/0/initial_receive_window_bytes",
            json!(65_535),
            "cannot be 65535: expected 60000000, `receive_window_bytes`",
        ),
        ("/flows/0/controller/name", json!("renoo"), "cannot be \"renoo\": expected one of reno"),
        ("/flows/0/controller/name", json!("lp"), "without the timestamps of TCP it is Reno"),
        ("/flows/0/slow_start/name", json!("quickstart"), "goes into the SYN of a TCP"),
        ("/flows/0/controller/name", json!("dctcp"), "`flows[0].ecn` cannot be false"),
        ("/flows/1/controller/name", json!("noq:bbr"), "one of noq:cubic, noq:reno, noq:bbr3"),
        ("/flows/1/controller/parameters", json!({"beta": 0.5}), "`noq:cubic` with `beta`"),
        ("/flows/1/slow_start", algorithm.clone(), "`flows[1].slow_start` cannot be `standard`"),
        ("/flows/2/memory", algorithm, "`flows[2].memory` cannot be `standard`: expected absent"),
        ("/flows/2/controller/name", json!("noq:cubic"), "a controller that \"theirs\" has"),
        (
            "/flows/0/quic",
            {
                let mut early = quic()["flows"][0]["quic"].clone();
                (early["handshake"], early["crypto"]) = (json!("0rtt"), json!("tls"));
                early
            },
            "`flows[0].quic.handshake` cannot be `0rtt`: expected `1rtt`",
        ),
        ("/flows/2/quic/implementation/name", json!(""), "implementation.name` cannot be empty"),
        (
            "/flows/2/quic/implementation/commands/client",
            json!([]),
            "`flows[2].quic.implementation.commands.client` cannot be empty",
        ),
    ];
    for (pointer, value, expected) in cases {
        let mut spec = quic();
        // A key that is absent is added.
        let (parent, key) = pointer.rsplit_once('/').expect(pointer);
        spec.pointer_mut(parent).expect(pointer)[key] = value;
        let message = refusal(&spec);
        assert!(message.contains(expected), "{pointer}: {message}");
    }
    // What the implementation brings along no other transport has.
    let mut tcp = dumbbell();
    tcp["flows"][0]["controller"]["name"] = json!("noq:cubic");
    let message = refusal(&tcp);
    assert!(message.contains("`flows[0].controller` cannot be \"noq:cubic\""), "{message}");
    assert!(message.contains("only QUIC flows"), "{message}");
}

#[test]
fn pings_are_datagrams_without_a_controller() {
    let cases = [
        (
            "/flows/1/transport",
            json!("tcp"),
            "`flows[1].transport` cannot be `tcp`: expected `udp`",
        ),
        (
            "/flows/0/transport",
            json!("udp"),
            "`flows[0].transport` cannot be `udp`: expected `tcp`",
        ),
        (
            "/flows/1/controller/name",
            json!("reno"),
            "expected `none`: datagrams have no controller",
        ),
        (
            "/flows/1/slow_start",
            json!({"name": "standard", "parameters": {}}),
            "`flows[1].slow_start` cannot be `standard`: expected absent",
        ),
        ("/flows/1/source/bytes", json!(1473), "cannot be 1473: expected 1 to 1472"),
        ("/flows/1/source/every_ns", json!(0), "`flows[1].source.every_ns` cannot be 0"),
        ("/flows/1/source/every_ns", json!(2), "`flows[1].source.every_ns` cannot be 2"),
        ("/flows/1/source/timeout_ns", json!(0), "`flows[1].source.timeout_ns` cannot be 0"),
        (
            "/capture",
            json!({"scenario": "pings"}),
            "`capture` cannot be set with the UDP flow `pings`",
        ),
    ];
    for (pointer, value, expected) in cases {
        let mut spec = pings();
        *spec.pointer_mut(pointer).expect(pointer) = value;
        let message = refusal(&spec);
        assert!(message.contains(expected), "{pointer}: {message}");
    }
}

#[test]
fn datagrams_at_a_rate_have_sizes_steps_and_sound_codecs() {
    let spec: RunSpec = serde_json::from_value(common::calls()).unwrap();
    spec.validate().unwrap();
    let cases = [
        ("/flows/1/transport", json!("tcp"), "expected `udp` for a constant rate"),
        ("/flows/1/source/bytes", json!(1473), "`flows[1].source.bytes` cannot be 1473"),
        ("/flows/1/source/steps", json!([]), "`flows[1].source.steps` cannot be empty"),
        ("/flows/1/source/steps/0/at_ns", json!(1), "0 for the first step"),
        ("/flows/1/source/steps/1/at_ns", json!(0), "a time after 0"),
        (
            "/flows/1/source/steps/0/rate_bps",
            json!(2_000_000_000u64),
            "`flows[1].source.steps[0].rate_bps` cannot be 2000000000: expected 0 to 1376000000",
        ),
        ("/flows/1/source/voice/equipment_impairment", json!(96.0), "expected 0 to 95"),
        ("/flows/1/source/voice/loss_robustness", json!(0.0), "expected 0.1 to 1000"),
        ("/flows/1/source/voice/playout/share", json!(1.5), "expected 0 to 1"),
    ];
    for (pointer, value, expected) in cases {
        let mut spec = common::calls();
        *spec.pointer_mut(pointer).expect(pointer) = value;
        let message = refusal(&spec);
        assert!(message.contains(expected), "{pointer}: {message}");
    }
}

#[test]
fn frames_and_traces_have_rates_sizes_and_an_order() {
    let spec: RunSpec = serde_json::from_value(common::timed()).unwrap();
    spec.validate().unwrap();
    let cases = [
        ("/flows/0/source/frames_per_1000_s", json!(0), "expected 1 to 10000000"),
        ("/flows/0/source/key_bytes", json!(0), "`flows[0].source.key_bytes` cannot be 0"),
        ("/flows/0/source/key_every", json!(0), "`flows[0].source.key_every` cannot be 0"),
        ("/flows/0/source/deadline_ns", json!(0), "`flows[0].source.deadline_ns` cannot be 0"),
        ("/flows/1/source/writes", json!([]), "`flows[1].source.writes.len()` cannot be 0"),
        ("/flows/1/source/writes/0/at_ns", json!(6_000_000), "cannot be 5000000: expected 6000000"),
        ("/flows/1/source/writes/1/bytes", json!(0), "`flows[1].source.writes[1].bytes`"),
    ];
    for (pointer, value, expected) in cases {
        let mut spec = common::timed();
        *spec.pointer_mut(pointer).expect(pointer) = value;
        let message = refusal(&spec);
        assert!(message.contains(expected), "{pointer}: {message}");
    }
}

#[test]
fn every_flow_that_crosses_a_link_with_classes_is_of_one() {
    let spec: RunSpec = serde_json::from_value(common::classes()).unwrap();
    spec.validate().unwrap();
    let changed = |pointer: &str, value: Value| {
        let mut spec = common::classes();
        *spec.pointer_mut(pointer).unwrap() = value;
        refusal(&spec)
    };
    let list = "/links/0/classes";
    let first = |key: &str| format!("{list}/0/{key}");
    let nested = common::classes()["links"][0]["queue"].clone();
    for (pointer, value, words) in [
        (list, json!([]), "`links[0].classes` cannot be empty: expected at least one"),
        ("/links/0/queue/kind", json!("drop_tail"), "has no parameter"),
        (&first("name"), json!("rest"), "`links[0].classes[1].name` cannot be"),
        (&first("quantum_bytes"), json!(255), "`links[0].classes[0].quantum_bytes` cannot be 255"),
        (&first("flows"), json!([0, 1]), "`links[0].classes[1].flows` cannot be 1: expected flows"),
        (&first("flows"), json!([2]), "cannot be 2: expected positions of 2 flows"),
        (&first("flows"), json!([]), "`links[0].classes` cannot be without the flow `first`"),
        (&first("queue/kind"), json!("x"), "`links[0].classes[0].queue.kind` cannot be"),
        (&first("queue"), nested, "expected a queue without classes"),
        (
            "/links/0/classes/1/queue/parameters/update",
            json!(1),
            "`links[0].classes[1].queue`: `pie.update` cannot be 1",
        ),
    ] {
        let found = changed(pointer, value);
        assert!(found.contains(words), "{pointer}: {found}");
    }
    let mut spec = common::classes();
    spec["links"][0]["queue"] = spec["links"][0]["classes"][0]["queue"].clone();
    assert!(refusal(&spec).contains("`links[0].classes` cannot be set for the queue `drop_tail`"));
    // Updates that would be made up for without end are those of a class, too.
    let mut spec = common::classes();
    spec["duration_ns"] = json!(5_000 * S);
    spec["phases"] = json!([{"name": "overall", "from_ns": 0, "to_ns": 5_000 * S}]);
    spec["links"][0]["classes"][1]["queue"]["parameters"]["update"] = json!(1_000);
    let found = refusal(&spec);
    assert!(found.contains("links[0].classes[1].queue.parameters.update"), "{found}");
}

#[test]
fn framing_and_codepoints_have_the_ranges_of_tc() {
    let spec: RunSpec = serde_json::from_value(common::lines()).unwrap();
    spec.validate().unwrap();
    // 22 bytes instead of 14, and 24 codewords.
    let service = spec.links[0].constant_service().unwrap();
    assert_eq!(service.rate_bps, (8e6_f64 * 1_514.0 / 1_546.0).round() as u64);
    let list = "/links/0/classes";
    let third = common::lines()["links"][0]["classes"][0].clone();
    for (pointer, value, words) in [
        ("/flows/1/dscp", json!(64), "`flows[1].dscp` cannot be 64: expected 0 to 63"),
        ("/links/0/framing/overhead_bytes", json!(-65), "cannot be -65: expected -64 to 256"),
        ("/links/0/framing/mpu_bytes", json!(257), "`links[0].framing.mpu_bytes` cannot be 257"),
        (&format!("{list}/0/dscp"), json!([64]), "`links[0].classes[0].dscp` cannot be 64"),
        (&format!("{list}/1/dscp"), json!([46]), "codepoints that are of no other class"),
        (list, json!([third]), "`links[0].classes (number)` cannot be 1: expected 2 to 16"),
    ] {
        let mut spec = common::lines();
        match spec.pointer_mut(pointer) {
            Some(place) => *place = value,
            None => spec["links"][0]["classes"][1]["dscp"] = value,
        }
        let found = refusal(&spec);
        assert!(found.contains(words), "{pointer}: {found}");
    }
    let mut spec = common::faulty();
    let at = spec["links"].as_array().unwrap().iter().position(|it| it.get("grants").is_some());
    spec["links"][at.unwrap()]["framing"] = common::lines()["links"][0]["framing"].clone();
    assert!(refusal(&spec).contains("framing` cannot be there with `grants`"));
}

#[test]
fn captures_need_names_of_files_and_not_too_many() {
    for name in ["../one", ".one", "a/b", &"x".repeat(201)] {
        let message = refusal(&with("/flows/0/name", json!(name)));
        assert!(message.contains("`flows[0].name` cannot be"), "{message}");
        let mut without = with("/flows/0/name", json!(name));
        without["capture"] = json!(null);
        RunSpec::from_json(&without.to_string()).unwrap();
    }
    let mut many = dumbbell();
    let flows = (0..101).map(|i| {
        let mut flow = many["flows"][0].clone();
        flow["name"] = json!(format!("flow-{i}"));
        flow
    });
    many["flows"] = flows.collect();
    many["capture"] = json!({"scenario": "many"});
    assert!(refusal(&many).ends_with("set with 101 flows: expected at most 100 flows"));
}

#[test]
fn every_value_out_of_range_is_refused_where_it_is() {
    // Long: a table, a case a line.
    let backwards =
        json!([{"probability": 0.0, "value_ns": 5}, {"probability": 1.0, "value_ns": 4}]);
    let partial = json!([{"probability": 0.0, "value_ns": 5}, {"probability": 0.9, "value_ns": 9}]);
    let repeated = json!([{"probability": 0.0, "value_ns": 0}, {"probability": 0.0, "value_ns": 1},
        {"probability": 1.0, "value_ns": 2}]);
    let late = json!([{"at_ns": 5, "rate_bps": 1}]);
    let unordered = json!([{"at_ns": 0, "rate_bps": 1}, {"at_ns": 7, "rate_bps": 1},
        {"at_ns": 7, "rate_bps": 2}]);
    let still = json!([{"at_ns": 0, "rate_bps": 0}]);
    let cases = [
        ("/duration_ns", json!(0), "`duration_ns` cannot be 0: expected 1 to 9007199254740992"),
        ("/interval_ns", json!(0), "`interval_ns` cannot be 0"),
        ("/interval_ns", json!(1), "`interval_ns` cannot be 1: expected longer bins: at most"),
        ("/phases", json!([]), "`phases` cannot be a list without `overall`"),
        ("/phases/0/to_ns", json!(S), "expected it to go from 0 to the run's end at 10000000000"),
        ("/phases/1/to_ns", json!(11 * S), "`phases[1].to_ns` cannot be 11000000000: expected 1"),
        ("/phases/1/from_ns", json!(4 * S), "`phases[1].from_ns` cannot be 4000000000"),
        ("/phases/2/name", json!("startup"), "a name that differs from phases[1]"),
        ("/links", json!([]), "`links` cannot be empty"),
        ("/links/1/name", json!("occupancy"), "`links[1].name` cannot be \"occupancy\""),
        ("/links/5/capacity/rate_bps", json!(0), "`links[5].capacity.rate_bps` cannot be 0"),
        ("/links/5/capacity/rate_bps", json!(2e12 as u64), "expected 1 to 1000000000000"),
        ("/links/0/capacity/steps", json!([]), "`links[0].capacity.steps` cannot be empty"),
        ("/links/0/capacity/steps", late, "steps[0].at_ns` cannot be 5: expected 0"),
        (
            "/links/0/capacity/steps",
            unordered,
            "steps[2].at_ns` cannot be 7: expected a time after",
        ),
        ("/links/0/capacity/steps", still, "expected a step that sends"),
        ("/links/1/capacity/opportunities_ms", json!([]), "expected at least one opportunity"),
        ("/links/1/capacity/opportunities_ms", json!([0, 0]), "the end of the trace's period"),
        (
            "/links/1/capacity/opportunities_ms",
            json!([1, 5, 4]),
            "opportunities_ms[2]` cannot be 4",
        ),
        ("/links/1/capacity/opportunity_bytes", json!(0), "opportunity_bytes` cannot be 0"),
        ("/links/2/capacity/mean_bps", json!(0), "`links[2].capacity.mean_bps` cannot be 0"),
        ("/links/2/capacity/deviation_bps", json!(2e12 as u64), "deviation_bps` cannot be 2000"),
        ("/links/2/capacity/correlation_ns", json!(0), "correlation_ns` cannot be 0"),
        ("/links/2/capacity/step_ns", json!(MS - 1), "step_ns` cannot be 999999: expected 1000000"),
        ("/links/2/capacity/min_bps", json!(7_999), "min_bps` cannot be 7999: expected 8000 to"),
        ("/links/2/capacity/min_bps", json!(11_000_001), "11000001: expected 0 to 11000000"),
        ("/links/2/capacity/max_bps", json!(2e12 as u64), "max_bps` cannot be 2000000000000"),
        (
            "/links/0/queue/parameters/limit",
            json!({"bytes": 1513}),
            "`links[0].queue`: `occupancy_drop.limit` cannot be 1513 bytes: 1514 to",
        ),
        (
            "/links/5/queue/parameters/limit",
            json!({"packets": 0}),
            "`links[5].queue`: `drop_tail.limit` cannot be 0 packets: 1514 to",
        ),
        (
            "/links/0/queue/parameters/probability",
            json!(1.5),
            "probability` cannot be 1.5: a probability from 0 to 1",
        ),
        (
            "/links/1/queue/parameters/min",
            json!(30_001),
            "`links[1].queue`: `red.min` cannot be 30001: at most max, 30000 bytes",
        ),
        ("/links/1/queue/parameters/max", json!(0), "`red.max` cannot be 0"),
        ("/links/1/queue/parameters/probability", json!(-0.1), "`red.probability` cannot be -0.1"),
        (
            "/links/1/queue/parameters/weight",
            json!(0.0),
            "`red.weight` cannot be 0: a number from 0.000000001 to 1",
        ),
        ("/links/2/queue/parameters/target", json!(0), "`codel.target` cannot be 0"),
        ("/links/2/queue/parameters/interval", json!(0), "`codel.interval` cannot be 0"),
        ("/links/3/queue/parameters/limit", json!(0), "`fq_codel.limit` cannot be 0"),
        (
            "/links/3/queue/parameters/queues",
            json!(0),
            "queues` cannot be 0: a whole number from 1 to 65536",
        ),
        ("/links/3/queue/parameters/quantum", json!(1), "quantum` cannot be 1: 256 to"),
        ("/links/3/queue/parameters/target", json!(0), "`fq_codel.target` cannot be 0"),
        ("/links/4/queue/parameters/update", json!(0), "`pie.update` cannot be 0"),
        ("/links/4/queue/parameters/alpha", json!(-1.0), "`pie.alpha` cannot be -1"),
        ("/links/4/queue/parameters/beta", json!(-1.0), "`pie.beta` cannot be -1"),
        ("/links/6/queue/parameters/threshold", json!(0), "`step_mark.threshold` cannot be 0"),
        ("/links/7/queue/parameters/target", json!(0), "`dualpi2.target` cannot be 0"),
        ("/links/7/queue/parameters/update", json!(0), "`dualpi2.update` cannot be 0"),
        ("/links/7/queue/parameters/alpha", json!(-1.0), "`dualpi2.alpha` cannot be -1"),
        ("/links/7/queue/parameters/beta", json!(-1.0), "`dualpi2.beta` cannot be -1"),
        ("/links/7/queue/parameters/coupling", json!(-1.0), "`dualpi2.coupling` cannot be -1"),
        ("/links/7/queue/parameters/threshold", json!(0), "`dualpi2.threshold` cannot be 0"),
        ("/links/7/queue/parameters/ramp", json!(-1), "`dualpi2.ramp` cannot be -1"),
        (
            "/links/7/queue/parameters/scheduler",
            json!("fair"),
            "cannot be \"fair\": one of weighted, time_shifted",
        ),
        ("/links/7/queue/parameters/classic_share", json!(2.0), "classic_share` cannot be 2"),
        ("/links/7/queue/parameters/time_shift", json!(0), "`dualpi2.time_shift` cannot be 0"),
        ("/links/5/queue/parameters", json!({}), "`drop_tail` needs `limit`: 1514 to"),
        ("/links/5/queue/parameters", json!({"x": 1}), "`drop_tail` has no parameter `x`"),
        ("/links/5/queue/kind", json!("tail"), "`links[5].queue.kind` cannot be \"tail\""),
        ("/links/0/delay/steps", json!([]), "`links[0].delay.steps` cannot be empty"),
        (
            "/links/0/delay/steps/0/delay_ns",
            json!(u64::MAX),
            "delay_ns` cannot be 18446744073709551615",
        ),
        ("/links/0/delay/jitter/quantiles", json!([]), "quantiles` cannot be empty"),
        ("/links/0/delay/jitter/quantiles", partial.clone(), "from probability 0 to 0.9"),
        (
            "/links/0/delay/jitter/quantiles",
            backwards,
            "quantiles[1]` cannot be 4 ns at probability 1",
        ),
        ("/links/0/delay/jitter/quantiles", repeated, "at a probability above 0"),
        ("/links/0/frames/packets", json!(0), "frames.packets` cannot be 0: expected 1 to 1024"),
        ("/links/0/frames/bytes", json!(0), "frames.bytes` cannot be 0"),
        ("/links/0/frames/contention", partial.clone(), "from probability 0 to 0.9"),
        ("/links/0/loss_steps/0/at_ns", json!(1), "loss_steps[0].at_ns` cannot be 1: expected 0"),
        ("/links/0/loss_steps/1/at_ns", json!(0), "loss_steps[1].at_ns` cannot be 0"),
        ("/links/0/loss_steps/1/probability", json!(1.5), "probability` cannot be 1.5: expected 0"),
        ("/links/0/outages/mean_interval_ns", json!(0), "mean_interval_ns` cannot be 0"),
        ("/links/0/quick_start/allowance_bps", json!(0), "quick_start.allowance_bps` cannot be 0"),
        ("/links/0/quick_start/interval_ns", json!(0), "quick_start.interval_ns` cannot be 0"),
        ("/links/0/outages/durations", partial, "`links[0].outages.durations` cannot be points"),
        ("/links/1/loss/parameters/probability", json!(-0.5), "probability` cannot be -0.5"),
        ("/links/2/loss/parameters/good_to_bad", json!(2), "good_to_bad` cannot be 2"),
        ("/links/2/loss/parameters/bad_to_good", json!(2), "bad_to_good` cannot be 2"),
        ("/links/2/loss/parameters/loss_good", json!(2), "loss_good` cannot be 2"),
        ("/links/2/loss/parameters/loss_bad", json!(2), "loss_bad` cannot be 2"),
        ("/links/2/loss/parameters", json!({}), "`gilbert_elliott` needs `good_to_bad`"),
        ("/links/2/loss/kind", json!("x"), "expected one of independent, gilbert_elliott"),
        ("/flows", json!([]), "`flows` cannot be empty"),
        ("/flows/1/name", json!(""), "`flows[1].name` cannot be empty: expected a name"),
        ("/flows/0/path", json!([]), "`flows[0].path` cannot be empty"),
        (
            "/flows/0/path/1",
            json!(8),
            "`flows[0].path[1]` cannot be 8: expected the position of a link",
        ),
        ("/flows/0/reverse_path", json!([9]), "`flows[0].reverse_path[0]` cannot be 9"),
        ("/flows/0/path", json!(vec![0; 256]), "cannot be 256 links long: expected at most 255"),
        ("/flows/0/start_ns", json!(10 * S), "`flows[0].start_ns` cannot be 10000000000"),
        ("/flows/0/stop_ns", json!(0), "`flows[0].stop_ns` cannot be 0: expected 1"),
        ("/flows/0/source/bytes", json!(0), "`flows[0].source.bytes` cannot be 0"),
        ("/flows/1/source/on_ns", json!(0), "`flows[1].source.on_ns` cannot be 0"),
        ("/flows/1/source/off_ns", json!(0), "`flows[1].source.off_ns` cannot be 0"),
        ("/flows/2/source/bytes", json!(0), "`flows[2].source.bytes` cannot be 0"),
        ("/flows/2/source/count", json!(0), "`flows[2].source.count` cannot be 0"),
        (
            "/flows/1/source/off_ns/law/mean",
            json!(0.0),
            "`flows[1].source.off_ns.law.mean` cannot be 0: expected more than 0",
        ),
        (
            "/flows/7/source/bitrates_bps/1",
            json!(1_000_000),
            "`flows[7].source.bitrates_bps` cannot be 1000000 after 1000000: expected each larger",
        ),
        (
            "/flows/7/source/variation",
            json!(1.0),
            "`flows[7].source.variation` cannot be 1: expected from 0 up to 1",
        ),
        // Whole segments come: 61 s are sixteen of them.
        (
            "/flows/7/source/startup_ns",
            json!(61 * S),
            "`flows[7].source.startup_ns` cannot be 61000000000: expected 1 to 60000000000",
        ),
        (
            "/flows/8/source/choice/safety",
            json!(0.0),
            "`flows[8].source.choice.safety` cannot be 0: expected above 0",
        ),
        (
            "/flows/4/source/bytes/law/points/1/probability",
            json!(0.5),
            "`flows[4].source.bytes.law.points` cannot be from 0 to 0.5",
        ),
        (
            "/flows/5/source/on_ns/law/sigma",
            json!(11.0),
            "`flows[5].source.on_ns.law.sigma` cannot be 11",
        ),
        (
            "/flows/6/source/bytes/max",
            json!(500.0),
            "`flows[6].source.bytes` cannot be from 0 to 500: expected bounds between which",
        ),
        ("/flows/0/initial_window_packets", json!(0), "initial_window_packets` cannot be 0"),
        ("/flows/0/receive_window_bytes", json!(1000), "cannot be 1000: expected 1448"),
        (
            "/flows/0/initial_receive_window_bytes",
            json!(60_000_001),
            "cannot be 60000001: expected 1448 to 60000000",
        ),
        ("/flows/0/nic_rate_bps", json!(0), "`flows[0].nic_rate_bps` cannot be 0"),
        ("/flows/0/base_delay_ns", json!(u64::MAX), "`flows[0].base_delay_ns` cannot be"),
        (
            "/flows/2/after",
            json!(2),
            "`flows[2].after` cannot be 2: expected the position of a flow",
        ),
        ("/flows/2/after", json!(1), "expected the position of a flow that has an end"),
        (
            "/flows/0/memory",
            json!({"name": "x", "parameters": {}}),
            "expected one of stateful, tcp",
        ),
        (
            "/flows/0/controller/name",
            json!("rneo"),
            "`flows[0].controller` cannot be \"rneo\": expected one of reno",
        ),
        (
            "/flows/0/controller/parameters",
            json!({"gain": 2}),
            "`flows[0].controller`: `reno` has no parameter `gain`",
        ),
        (
            "/flows/0/slow_start",
            json!(null),
            "`flows[0].slow_start` cannot be absent: expected one of standard",
        ),
        ("/flows/0/slow_start/name", json!("fast"), "`flows[0].slow_start` cannot be \"fast\""),
        ("/flows/0/slow_start/parameters", json!({"x": 1}), "`standard` has no parameter `x`"),
    ];
    for (pointer, value, expected) in cases {
        let message = refusal(&with(pointer, value));
        assert!(message.contains(expected), "{pointer}: {message}");
    }
}

#[test]
fn more_packets_than_32_bits_count_are_refused() {
    let mut long = dumbbell();
    long["links"][0]["capacity"]["rate_bps"] = json!(100_000_000_000u64);
    long["interval_ns"] = json!(100 * S);
    for (seconds, accepted) in [(500, true), (530, false)] {
        long["duration_ns"] = json!(seconds * S);
        long["phases"] = json!([{"name": "overall", "from_ns": 0, "to_ns": seconds * S}]);
        assert_eq!(RunSpec::from_json(&long.to_string()).is_ok(), accepted, "{seconds} s");
    }
    assert!(refusal(&long).contains("at most 520 s, in which `first` can send"));
}

#[test]
fn a_controller_with_its_own_slow_start_takes_no_other() {
    use jostle_controllers::registry::{CONTROLLERS, SlowStartChoice};
    for row in CONTROLLERS {
        let own = row.start == SlowStartChoice::BuiltIn;
        for given in [json!(null), json!({"name": "standard", "parameters": {}})] {
            let mut spec = dumbbell();
            spec["flows"][0]["controller"]["name"] = json!(row.entry.name);
            spec["flows"][0]["slow_start"] = given.clone();
            let accepted = RunSpec::from_json(&spec.to_string()).is_ok();
            assert_eq!(accepted, given.is_null() == own, "{} with {given}", row.entry.name);
        }
    }
}

/// A few bytes that ask for more memory than there is, or for work that nobody could interrupt.
#[test]
fn small_specs_with_big_demands_are_refused_where_they_ask() {
    let update = |ns: u64| ("/links/4/queue/parameters/update", json!(ns));
    let jitter = |ns: u64| ("/links/0/delay/jitter/correlation_ns", json!(ns));
    let outages = |ns: u64| ("/links/0/outages/mean_interval_ns", json!(ns));
    let rates = |ns: u64| ("/links/2/capacity/step_ns", json!(ns));
    let day = json!(86_400 * S);
    let cases = [
        (vec![("/interval_ns", json!(200))], "`interval_ns` cannot be 200: expected longer bins"),
        (
            vec![jitter(999)],
            "`links[0].delay.jitter.correlation_ns` cannot be 999: expected 1000 to",
        ),
        (vec![jitter(1)], "cannot be 1: expected 1000 to"),
        (
            vec![jitter(1_000), ("/duration_ns", day.clone()), ("/interval_ns", day.clone())],
            "`links[0].delay.jitter.correlation_ns` cannot be 1000: expected 138240 to",
        ),
        (vec![outages(1)], "`links[0].outages.mean_interval_ns` cannot be 1: expected 1000 to"),
        (
            vec![outages(1_000), ("/duration_ns", day.clone()), ("/interval_ns", day.clone())],
            "`links[0].outages.mean_interval_ns` cannot be 1000: expected 8640000 to",
        ),
        (
            vec![rates(MS), ("/duration_ns", day.clone()), ("/interval_ns", day.clone())],
            "`links[2].capacity.step_ns` cannot be 1000000: expected 8640000 to",
        ),
        (vec![update(1)], "`pie.update` cannot be 1: 1000 to"),
        (
            vec![update(1_000), ("/duration_ns", day.clone()), ("/interval_ns", day)],
            "`links[4].queue.parameters.update` cannot be 1000: expected 86400 to",
        ),
    ];
    for (changes, expected) in cases {
        let mut spec = everything();
        for (pointer, value) in changes {
            let end = spec["duration_ns"].clone();
            *spec.pointer_mut(pointer).expect(pointer) = value.clone();
            for phase in spec["phases"].as_array_mut().unwrap() {
                if pointer == "/duration_ns" && phase["to_ns"] == end {
                    phase["to_ns"] = value.clone();
                }
            }
        }
        let message = refusal(&spec);
        assert!(message.contains(expected), "{expected}: {message}");
    }
}

#[test]
fn long_lists_are_refused_by_their_length() {
    let mut spec = dumbbell();
    let phase = |i: u64| json!({"name": format!("{i}"), "from_ns": i, "to_ns": i + 1});
    let overall = spec["phases"][0].clone();
    spec["phases"] = (0..1_000).map(phase).chain([overall.clone()]).collect();
    assert_eq!(refusal(&spec), "`phases` cannot be 1001 of them: expected at most 1000",);
    // Each overlaps with all others, for many flows.
    let nested = |i: u64| json!({"name": format!("{i}"), "from_ns": i, "to_ns": S - i});
    spec["phases"] = (0..900).map(nested).chain([overall]).collect();
    let flow = spec["flows"][0].clone();
    let flows = (0..100).map(|i| {
        let mut flow = flow.clone();
        flow["name"] = json!(format!("flow {i}"));
        flow
    });
    spec["flows"] = flows.collect();
    let message = refusal(&spec);
    assert!(message.starts_with("`phases` cannot be 901 that overlap in"), "{message}");
}

#[test]
fn as_many_acks_as_a_fast_link_brings_are_not_recorded() {
    let mut spec = dumbbell();
    spec["links"][0]["capacity"] = json!({"kind": "constant", "rate_bps": 100_000_000_000_u64});
    spec["record"] = json!("acks");
    let message = refusal(&spec);
    assert!(message.starts_with("`record` cannot be `acks`: expected `none` where"), "{message}");
    spec["record"] = json!("none");
    assert!(RunSpec::from_json(&spec.to_string()).is_ok());
}

#[test]
fn more_packets_at_once_than_fit_into_memory_are_refused() {
    let mut spec = dumbbell();
    spec["record"] = json!("none");
    spec["links"][0]["capacity"] = json!({"kind": "constant", "rate_bps": 1_000_000_000_000_u64});
    spec["links"][0]["delay"]["steps"][0]["delay_ns"] = json!(3_600 * S);
    assert!(RunSpec::from_json(&spec.to_string()).is_ok(), "windows keep it small");
    for flow in spec["flows"].as_array_mut().unwrap() {
        flow["receive_window_bytes"] = json!(1_u64 << 50);
    }
    let message = refusal(&spec);
    assert!(message.starts_with("`links` cannot be such that there may be"), "{message}");
}

#[test]
fn pings_that_are_waited_for_are_counted() {
    for (every_ns, timeout_ns, expected) in [
        (1, S, "`flows[1].source.every_ns` cannot be 1: expected 1000 to"),
        (999, S, "cannot be 999: expected 1000 to"),
    ] {
        let mut spec = pings();
        spec["flows"][1]["source"]["every_ns"] = json!(every_ns);
        spec["flows"][1]["source"]["timeout_ns"] = json!(timeout_ns);
        let message = refusal(&spec);
        assert!(message.contains(expected), "{message}");
    }
    let mut spec = pings();
    let mut flow = spec["flows"][1].clone();
    flow["source"]["every_ns"] = json!(1_000);
    flow["source"]["timeout_ns"] = json!(10 * S);
    let named = |name: &str| {
        let mut flow = flow.clone();
        flow["name"] = json!(name);
        flow
    };
    spec["flows"] = json!([named("a")]);
    assert!(RunSpec::from_json(&spec.to_string()).is_ok());
    spec["flows"] = json!([named("a"), named("b")]);
    let message = refusal(&spec);
    assert!(
        message.contains("`flows[1].source.every_ns` cannot be 1000: expected longer"),
        "{message}"
    );
}

#[test]
fn flows_that_cannot_be_many_connections_say_why() {
    let cases = [
        ("/flows/0/arrivals/rate_per_s", json!(0.0), "`flows[0].arrivals.rate_per_s` cannot be 0"),
        ("/flows/0/arrivals/rate_per_s", json!(1e6), "at most 1000000 connections in a run"),
        ("/flows/0/source", json!({"kind": "bulk"}), "connections that come have to end"),
        ("/flows/0/nic_rate_bps", json!(1_000_000), "a separate network card"),
        ("/flows/1/arrivals/at_ns", json!([S, 0]), "times that never decrease"),
        ("/flows/1/arrivals/bytes", json!([1]), "as many as there are times, 2"),
        ("/flows/1/arrivals/bytes/0", json!(0), "`flows[1].arrivals.bytes[0]` cannot be 0"),
        ("/flows/2/arrivals/share", json!(11.0), "`flows[2].arrivals.share` cannot be 11"),
        ("/flows/2/arrivals/link", json!(7), "a link of the flow's path"),
        (
            "/flows/2/source/bytes",
            json!({"law": {"kind": "pareto", "scale": 1e3, "shape": 0.9}, "min": null, "max": null}),
            "`flows[2].arrivals` cannot be a load: expected a rate of arrivals, or sizes",
        ),
    ];
    for (pointer, value, expected) in cases {
        let mut spec = many();
        *spec.pointer_mut(pointer).expect(pointer) = value;
        let message = refusal(&spec);
        assert!(message.contains(expected), "{pointer}: {message}");
    }
}

#[test]
fn what_was_measured_is_read_beside_results_and_run_by_nobody() {
    let spec = measured();
    assert!(RunSpec::of_results(&spec.to_string()).is_ok());
    assert!(refusal(&spec).contains("`measured` cannot be there"));
    let mut linked = measured();
    linked["links"] = dumbbell()["links"].clone();
    let error = RunSpec::of_results(&linked.to_string()).unwrap_err();
    assert!(error.to_string().contains("`links`"), "{error}");
    // A run is held to what it always was.
    let mut run = dumbbell();
    run["links"] = json!([]);
    assert!(RunSpec::of_results(&run.to_string()).is_err());
}

/// What a flow's receiver does is one of TCP's, and of a flow from end to end.
#[test]
fn receivers_fit_their_flow() {
    let responses =
        json!({"kind": "request_response", "bytes": 1_000, "think_ns": 0, "count": null});
    let cases = [
        ("/flows/0/receiver/kind", json!("liar"), "unknown variant `liar`"),
        ("/flows/0/receiver/pieces", json!(1), "`flows[0].receiver.pieces` cannot be 1"),
        ("/flows/1/receiver/copies", json!(101), "expected 1 to 100"),
        ("/flows/2/receiver/lead", json!(1.5), "`flows[2].receiver.lead` cannot be 1.5"),
        ("/flows/2/source", responses, "what is lost never comes, and the source waits for it"),
        (
            "/flows/2/memory",
            json!({"name": "stateful", "parameters": {}}),
            "of senders that remember, some send beyond the window",
        ),
        ("/flows/4/receiver/target_ns", json!(0), "`flows[4].receiver"),
        (
            "/flows/4/memory",
            json!({"name": "tcp-cache+", "parameters": {}}),
            "which is all that rLEDBAT has",
        ),
        ("/flows/3/ecn", json!(false), "without `ecn` there are no marks to hide"),
    ];
    for (pointer, value, expected) in cases {
        let mut spec = receivers();
        *spec.pointer_mut(pointer).expect(pointer) = value;
        let message = refusal(&spec);
        assert!(message.contains(expected), "{pointer}: {message}");
    }
    let mut spec = quic();
    spec["flows"][0]["receiver"] = json!({"kind": "hidden_ecn_marks"});
    let message = refusal(&spec);
    assert!(message.contains("expected absent: it is one of TCP"), "{message}");
}

#[test]
fn acks_wait_for_a_while_and_hosts_have_names() {
    for (place, given, expected) in [
        ("/links/0/ack_thinning/most", json!(0), "links[0].ack_thinning.most"),
        ("/links/0/ack_thinning/most", json!(1025), "links[0].ack_thinning.most"),
        ("/links/0/ack_thinning/hold_ns", json!(S), "links[0].ack_thinning.hold_ns"),
        ("/flows/1/sender_host", json!(""), "flows[1].sender_host"),
    ] {
        let mut spec = hosts();
        *spec.pointer_mut(place).expect(place) = given;
        let message = refusal(&spec);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn faults_and_grants_are_within_their_ranges() {
    assert!(RunSpec::from_json(&faulty().to_string()).is_ok());
    for (place, given, expected) in [
        ("faults/duplicate/probability", json!(1.5), "faults.duplicate.probability"),
        ("faults/corrupt/correlation", json!(-0.1), "faults.corrupt.correlation"),
        ("faults/reorder/gap", json!(0), "faults.reorder.gap"),
        ("faults/reorder/late_ns", json!(0), "faults.reorder.late_ns"),
        ("faults/packets/0/flow", json!(9), "a flow that crosses the link"),
        ("faults/packets/0/faults/0/number", json!(0), "more than 0"),
        ("faults/packets/0/faults/1/number", json!(1), "more than 1"),
        ("faults/packets/0/faults/1/fault/by_ns", json!(0), "fault.by_ns"),
        ("netem/limit_packets", json!(0), "netem.limit_packets"),
        ("grants/superframe_ns", json!(999_999), "grants.superframe_ns"),
        ("grants/request_interval_ns", json!(2 * S), "grants.request_interval_ns"),
        ("grants/constant_bps", json!(3_000_001), "grants.constant_bps"),
        ("grants/quantum_bps", json!(0), "grants.quantum_bps"),
        ("grants/rate_based/over_per_mille", json!(10_001), "grants.rate_based.over_per_mille"),
        ("grants/contention/collision", json!(2), "grants.contention.collision"),
        ("grants/request_loss", json!(2), "grants.request_loss"),
        ("capacity/rate_bps", json!(10_000_000_001u64), "rate of the link"),
        (
            "capacity",
            json!({"kind": "steps", "steps": [{"at_ns": 0, "rate_bps": 1_000_000}]}),
            "a constant capacity",
        ),
    ] {
        let mut spec = faulty();
        let place = format!("/links/0/{place}");
        *spec.pointer_mut(&place).expect(&place) = given;
        let message = refusal(&spec);
        assert!(message.contains(expected), "{place}: {message}");
    }
    let mut spec = faulty();
    spec["links"][0]["grants"]["constant_bps"] = json!(0);
    spec["links"][0]["grants"].as_object_mut().unwrap().remove("rate_based");
    spec["links"][0]["grants"].as_object_mut().unwrap().remove("contention");
    assert!(refusal(&spec).contains("at least one class of capacity"));
    let mut pings = pings();
    pings["links"][0]["faults"] = json!({"packets": [{"flow": 1, "class": "acks", "faults": []}]});
    assert!(refusal(&pings).contains("not of TCP"));
}

#[test]
fn routes_change_in_order_over_known_links() {
    let cases = [
        ("/flows/0/routes/0/at_ns", json!(0), "`flows[0].routes[0].at_ns` cannot be 0"),
        (
            "/flows/0/routes/1/at_ns",
            json!(S),
            "routes[1].at_ns` cannot be 1000000000: expected 1000000001",
        ),
        ("/flows/0/routes/0/path", json!([]), "`flows[0].routes[0].path` cannot be empty"),
        ("/flows/0/routes/0/path", json!([9]), "`flows[0].routes[0].path[0]` cannot be 9"),
        (
            "/flows/0/routes/1/reverse_path",
            json!([0, 0]),
            "routes[1].reverse_path` cannot be link 0 twice",
        ),
        ("/flows/0/path", json!([0, 0]), "`flows[0].path` cannot be link 0 twice"),
        (
            "/flows/1/source",
            json!({"kind": "relay", "from": 0, "buffer_bytes": 100_000}),
            "`flows[0].routes` cannot be there: expected absent: the flow's proxy",
        ),
    ];
    for (pointer, value, expected) in cases {
        let mut spec = routes();
        *spec.pointer_mut(pointer).expect(pointer) = value;
        let message = refusal(&spec);
        assert!(message.contains(expected), "{pointer}: {message}");
    }
    let mut many = routes();
    let path = many["flows"][0]["routes"][0].clone();
    let at = |at_ns: u64| {
        let mut route = path.clone();
        route["at_ns"] = json!(at_ns);
        route
    };
    many["flows"][0]["routes"] = (1..=10_001).map(at).collect();
    assert!(refusal(&many).contains("`flows[0].routes` cannot be 10001"));
}
