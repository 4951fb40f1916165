//! Ranges of values, and demands that would not fit into memory.

use crate::common::{MS, S, dumbbell, everything, pings};
use jostle_run_spec::RunSpec;
use serde_json::json;

use super::{refusal, with};

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
