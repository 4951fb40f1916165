//! Every rule of validation, by breaking it.

use crate::common;
use crate::common::{
    S, dumbbell, everything, faulty, hosts, many, measured, pings, quic, receivers, routes, tunnels,
};
use jostle_run_spec::RunSpec;
use serde_json::{Value, json};

mod limits;
mod traffic;
#[path = "validation/tunnels.rs"]
mod tunnel_rules;

/// The message that a spec is refused with.
pub(crate) fn refusal(spec: &Value) -> String {
    RunSpec::from_json(&spec.to_string()).expect_err("accepted").to_string()
}

/// `everything()` with one value replaced.
pub(crate) fn with(pointer: &str, value: Value) -> Value {
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
        tunnels(),
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
