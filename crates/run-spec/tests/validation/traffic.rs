//! Rules for flows: transports, sources and receivers.

use crate::common;
use crate::common::{
    MS, S, dumbbell, everything, hosts, many, pings, quic, receivers, shared, slow,
};
use jostle_run_spec::RunSpec;
use serde_json::json;

use super::refusal;

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
fn readers_and_timers_are_within_their_ranges() {
    assert!(RunSpec::from_json(&slow().to_string()).is_ok());
    for (place, given, expected) in [
        ("reader/rate_bps", json!(0), "reader.rate_bps"),
        ("reader/rate_bps", json!(1_000_000_000_000_000u64), "reader."),
        ("reader/read_bytes", json!(0), "reader.read_bytes"),
        ("reader/pauses/0/duration_ns", json!(0), "reader.pauses[0].duration_ns"),
        ("reader/pauses/1/every_ns", json!(100 * MS), "reader.pauses[1].every_ns"),
        ("reader/pauses/0", json!({"at_ns": 0, "duration_ns": 1, "every_ns": 9}), "another pause"),
        ("transport", json!("udp"), "udp"),
        ("receiver", json!({"kind": "optimistic_acking", "lead": 0.5}), "keeps no data"),
        ("timers/hz", json!(99), "timers.hz"),
        ("timers/slack_ns", json!(200 * MS), "timers.slack_ns"),
        ("timers/resolution_ns", json!(200 * MS), "timers.resolution_ns"),
    ] {
        let mut spec = slow();
        let flow = &mut spec["flows"][0];
        match flow.pointer_mut(&format!("/{place}")) {
            Some(value) => *value = given,
            None => flow[place] = given,
        }
        let message = refusal(&spec);
        assert!(message.contains(expected), "{place}: {message}");
    }
    let mut spec = quic();
    spec["flows"][0]["timers"] = slow()["flows"][0]["timers"].clone();
    let message = refusal(&spec);
    assert!(message.contains("the kernel's ticks"), "{message}");
    let mut spec = quic();
    spec["flows"][0]["reader"] = json!({"read_bytes": 1});
    spec["flows"][0]["quic"]["stream_receive_window_bytes"] = json!(2_000);
    let message = refusal(&spec);
    assert!(message.contains("window of the connection"), "{message}");
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
fn a_shared_connection_has_the_same_properties_in_both_directions() {
    RunSpec::from_json(&shared().to_string()).unwrap();
    let route = json!([{"at_ns": S, "path": [1], "reverse_path": [0]}]);
    let cases = [
        ("/flows/1/connection_of", json!(1), "`flows[1].connection_of` cannot be 1"),
        ("/flows/1/connection_of", json!(7), "`flows[1].connection_of` cannot be 7"),
        ("/flows/1/path", json!([0]), "`flows[1].path` cannot be another one"),
        ("/flows/1/reverse_path", json!([]), "`flows[1].reverse_path` cannot be another one"),
        ("/flows/1/base_delay_ns", json!(MS), "`flows[1].base_delay_ns` cannot be another one"),
        ("/flows/1/mtu_bytes", json!(9_000), "`flows[1].mtu_bytes` cannot be another one"),
        ("/flows/1/ecn", json!(true), "`flows[1].ecn` cannot be another one"),
        ("/flows/1/dscp", json!(46), "`flows[1].dscp` cannot be another one"),
        ("/flows/0/routes", route, "`flows[1].routes` cannot be another one"),
        ("/flows/0/sender_host", json!("a"), "`flows[1].receiver_host` cannot be another one"),
        ("/flows/0/gro", json!(true), "`flows[0].gro` cannot be"),
        ("/flows/1/gro", json!(true), "`flows[1].gro` cannot be"),
        ("/flows/1/nic_rate_bps", json!(1_000_000_000), "`flows[1].nic_rate_bps` cannot be"),
        (
            "/flows/1/controller",
            json!({"name": "dctcp", "parameters": {}}),
            "`flows[1].controller` cannot be \"dctcp\"",
        ),
        ("/capture", json!({"scenario": ""}), "`capture` cannot be set with `back`"),
    ];
    for (at, value, message) in cases {
        let mut spec = shared();
        let (table, key) = at.rsplit_once('/').unwrap();
        spec.pointer_mut(table).unwrap()[key] = value;
        let refused = refusal(&spec);
        assert!(refused.contains(message), "{at}: {refused}");
    }
}
