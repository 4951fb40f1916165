//! RunSpecs to test with.

#![allow(dead_code, reason = "every test file uses another part")]

use serde_json::{Value, json};

pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000 * MS;

/// Two Reno flows share one link of 8 Mbit/s for 10 s; phases overlap.
pub fn dumbbell() -> Value {
    json!({
        "seed": 1, "duration_ns": 10 * S, "interval_ns": S, "record": "none",
        "capture": null,
        "phases": [
            {"name": "overall", "from_ns": 0, "to_ns": 10 * S},
            {"name": "startup", "from_ns": 0, "to_ns": 4 * S},
            {"name": "middle", "from_ns": 2 * S, "to_ns": 6 * S},
        ],
        "links": [link("bottleneck", part("drop_tail", json!({"limit": {"bytes": 50_000}})))],
        "flows": [flow("first", json!({"kind": "bulk"})), flow("second", json!({"kind": "bulk"}))],
    })
}

/// A line with framing, and strict priority by codepoint.
pub fn lines() -> Value {
    let mut spec = dumbbell();
    let tail = part("drop_tail", json!({"limit": {"packets": 100}}));
    spec["links"][0]["queue"] = part("prio", json!({"limit": {"packets": 100}}));
    spec["links"][0]["classes"] = json!([
        {"name": "calls", "quantum_bytes": 1514, "flows": [1], "dscp": [46, 34], "queue": tail},
        {"name": "rest", "quantum_bytes": 1514, "flows": [0], "queue": tail},
    ]);
    spec["links"][0]["framing"] = json!({"overhead_bytes": 22, "mpu_bytes": 64, "cells": "ptm"});
    spec["flows"][1]["dscp"] = json!(46);
    spec
}

/// A link with each kind of queue.
fn a_link_of_each_queue() -> Value {
    json!([
        link(
            "occupancy",
            part(
                "occupancy_drop",
                json!({"limit": {"bytes": 50_000}, "threshold": 25_000, "probability": 0.25})
            )
        ),
        link(
            "red",
            part(
                "red",
                json!({"limit": {"packets": 50}, "min": 10_000, "max": 30_000,
                "probability": 0.1, "weight": 0.002, "ecn": false})
            )
        ),
        link(
            "codel",
            part(
                "codel",
                json!({"limit": {"packets": 50}, "target": 5 * MS, "interval": 100 * MS,
                "ecn": true})
            )
        ),
        link(
            "fq_codel",
            part(
                "fq_codel",
                json!({"limit": 10_240, "queues": 1024, "quantum": 1514, "target": 5 * MS,
                "interval": 100 * MS, "ecn": true})
            )
        ),
        link(
            "pie",
            part(
                "pie",
                json!({"limit": {"packets": 1000}, "target": 15 * MS, "update": 15 * MS,
                "alpha": 0.125, "beta": 1.25, "ecn": true})
            )
        ),
        link("plain", part("drop_tail", json!({"limit": {"packets": 100}}))),
        link("step", part("step_mark", json!({"limit": {"packets": 1000}, "threshold": MS}))),
        link(
            "dual",
            part(
                "dualpi2",
                json!({"limit": {"packets": 10_000}, "target": 15 * MS, "update": 16 * MS,
                "alpha": 0.16, "beta": 3.2, "coupling": 2.0, "threshold": MS, "ramp": 0,
                "scheduler": "weighted", "classic_share": 0.1, "time_shift": 30 * MS})
            )
        ),
    ])
}

/// Every key and every variant there is, in as few links and flows as possible.
pub fn everything() -> Value {
    let mut spec = dumbbell();
    spec["record"] = json!("acks");
    spec["capture"] = json!({"scenario": "everything", "qlog": true});
    spec["links"] = a_link_of_each_queue();
    spec["links"][0]["capacity"] = json!({"kind": "steps", "steps": [
        {"at_ns": 0, "rate_bps": 8_000_000}, {"at_ns": S, "rate_bps": 0}]});
    spec["links"][1]["capacity"] = json!({"kind": "trace", "opportunities_ms": [1, 1, 3],
        "opportunity_bytes": 1514});
    spec["links"][2]["capacity"] = json!({"kind": "autoregressive", "mean_bps": 8_000_000,
        "deviation_bps": 1_000_000, "correlation_ns": S, "step_ns": 100 * MS,
        "min_bps": 5_000_000, "max_bps": 11_000_000});
    let points = json!([{"probability": 0.0, "value_ns": 0}, {"probability": 1.0, "value_ns": MS}]);
    spec["links"][0]["delay"]["jitter"] =
        json!({"quantiles": points, "correlation_ns": 0, "reorder": false});
    spec["links"][0]["frames"] = json!({"packets": 64, "bytes": 65_535, "contention": points});
    spec["links"][0]["loss_steps"] =
        json!([{"at_ns": 0, "probability": 0.0}, {"at_ns": S, "probability": 0.01}]);
    spec["links"][0]["outages"] = json!({"mean_interval_ns": S, "durations": points});
    spec["links"][0]["quick_start"] = json!({"allowance_bps": 8_000_000, "interval_ns": 100 * MS});
    spec["links"][1]["loss"] = part("independent", json!({"probability": 0.01}));
    spec["links"][2]["loss"] = part(
        "gilbert_elliott",
        json!({"good_to_bad": 0.01, "bad_to_good": 0.5, "loss_good": 0.0, "loss_bad": 1.0}),
    );
    spec["flows"] = json!([
        flow("fixed", json!({"kind": "fixed", "bytes": 1_000_000})),
        flow(
            "on_off",
            json!({"kind": "on_off", "on_ns": S,
                "off_ns": drawn(json!({"kind": "exponential", "mean": 1e9}))})
        ),
        flow(
            "web",
            json!({"kind": "request_response", "bytes": 10_000, "think_ns": S,
            "count": 3})
        ),
        flow("bulk", json!({"kind": "bulk"})),
        flow(
            "short",
            json!({"kind": "fixed", "bytes": drawn(json!({"kind": "empirical", "points": [
            {"value": 0.0, "probability": 0.0}, {"value": 1e6, "probability": 1.0}]}))})
        ),
        flow(
            "drawn",
            json!({"kind": "on_off",
                "on_ns": drawn(json!({"kind": "lognormal", "median": 1e9, "sigma": 1.0})),
                "off_ns": drawn(json!({"kind": "weibull", "scale": 1e9, "shape": 0.7}))})
        ),
        flow(
            "tail",
            json!({"kind": "fixed",
            "bytes": drawn(json!({"kind": "pareto", "scale": 1e3, "shape": 1.5}))})
        ),
        films()[0],
        films()[1],
        flow("bulk@sat", json!({"kind": "relay", "from": 3, "buffer_bytes": 1_000_000})),
    ]);
    spec["flows"][0]["path"] = json!([0, 1, 2, 3, 4]);
    spec["flows"][0]["reverse_path"] = json!([5]);
    spec["flows"][0]["stop_ns"] = json!(5 * S);
    spec["flows"][0]["nic_rate_bps"] = json!(1_000_000_000);
    spec
}

/// Flows that are many connections, as they may come.
pub fn many() -> Value {
    let mut spec = dumbbell();
    let one = |name: &str, arrivals: Value| {
        let mut one = flow(name, json!({"kind": "fixed", "bytes": 20_000}));
        one["arrivals"] = arrivals;
        one
    };
    let mut sessions = one("sessions", json!({"kind": "load", "share": 0.5, "link": 0}));
    sessions["source"] = json!({"kind": "request_response", "bytes": 1_000, "think_ns": S,
        "count": drawn(json!({"kind": "exponential", "mean": 5.0}))});
    spec["flows"] = json!([
        one("poisson", json!({"kind": "poisson", "rate_per_s": 5.0})),
        one("listed", json!({"kind": "listed", "at_ns": [0, S], "bytes": [1_000, 2_000]})),
        sessions,
        flow(
            "web",
            json!({"kind": "web", "pages": 3, "main_bytes": 10_000, "objects": 0,
            "object_bytes": 8_000, "request_bytes": 350, "parse_ns": 0, "think_ns": S,
            "connections": 6, "multiplexed": false})
        ),
    ]);
    spec
}

/// A player of each kind.
fn films() -> [Value; 2] {
    let segment_ns = 4 * S;
    let by_buffer = json!({"kind": "video", "bitrates_bps": [1_000_000, 2_000_000],
        "segment_ns": segment_ns, "segments": 100, "variation": 0.2, "startup_ns": segment_ns,
        "buffer_ns": 60 * S,
        "choice": {"kind": "buffer", "reservoir_ns": 20 * S, "cushion_ns": 30 * S}});
    let by_throughput = json!({"kind": "video", "bitrates_bps": [1_000_000],
        "segment_ns": segment_ns, "segments": null, "variation": 0.0, "startup_ns": segment_ns,
        "buffer_ns": 60 * S, "choice": {"kind": "throughput", "samples": 20, "safety": 0.85}});
    [flow("film", by_buffer), flow("another film", by_throughput)]
}

/// Two flows on the link of `dumbbell`, each in a class of its own.
pub fn classes() -> Value {
    let mut spec = dumbbell();
    let tail = part("drop_tail", json!({"limit": {"packets": 40}}));
    let pie = json!({"limit": {"packets": 50}, "target": 15 * MS, "update": 15 * MS, "alpha": 0.125,
        "beta": 1.25, "ecn": false});
    spec["links"][0]["queue"] = part("drr", json!({"limit": {"packets": 100}, "quantum": 1514}));
    spec["links"][0]["classes"] = json!([
        {"name": "calls", "quantum_bytes": 3028, "flows": [0], "queue": tail},
        {"name": "rest", "quantum_bytes": 1514, "flows": [1], "queue": part("pie", pie)},
    ]);
    spec
}

/// Flows of one host, on a link that thins their ACKs out; the TCP of one differs from Linux's.
pub fn hosts() -> Value {
    let mut spec = dumbbell();
    spec["flows"][0]["tcp"] = json!({"prr": "rfc9937", "accecn_option": false});
    spec["links"][0]["ack_thinning"] = json!({"most": 8, "hold_ns": 5 * MS});
    spec["flows"][0]["receiver_host"] = json!("tv");
    spec["flows"][1]["sender_host"] = json!("tv");
    spec
}

/// A link with every kind of fault, habits of netem and capacity on demand.
pub fn faulty() -> Value {
    let mut spec = dumbbell();
    let event = json!({"probability": 0.01, "correlation": 0.25});
    spec["links"][0]["capacity"] = json!({"kind": "constant", "rate_bps": 3_000_000});
    spec["links"][0]["faults"] = json!({
        "duplicate": event, "corrupt": event,
        "reorder": {"occurrence": event, "gap": 5, "late_ns": 3 * MS},
        "packets": [{"flow": 0, "class": "data", "faults": [
            {"number": 1, "fault": {"kind": "lose"}},
            {"number": 2, "fault": {"kind": "late", "by_ns": 20 * MS}},
        ]}],
    });
    spec["links"][0]["netem"] =
        json!({"limit_packets": 1000, "limit_includes_queue": true, "jitter_per_batch": false});
    spec["links"][0]["grants"] = json!({
        "superframe_ns": 50 * MS, "latency_ns": 660 * MS, "request_interval_ns": 100 * MS,
        "constant_bps": 16_000, "volume_based": false, "free_bps": 0, "quantum_bps": 8_000,
        "rate_based": {"over_per_mille": 1100, "gain_per_mille": 1000, "persistence_ns": 500 * MS},
        "contention": {"bytes": 200, "collision": 0.1, "backoff_superframes": 4},
        "request_loss": 0.01, "spread": false,
    });
    spec
}

/// A flow whose route changes between two links, and back.
pub fn routes() -> Value {
    let mut spec = dumbbell();
    let mut detour = spec["links"][0].clone();
    detour["name"] = json!("detour");
    spec["links"].as_array_mut().unwrap().push(detour);
    let last = spec["links"].as_array().unwrap().len() - 1;
    spec["flows"][0]["routes"] = json!([
        {"at_ns": S, "path": [last], "reverse_path": [0]},
        {"at_ns": 2 * S, "path": [0], "reverse_path": []},
    ]);
    spec
}

/// A flow in a tunnel over QUIC, beside a flow outside: the connections are the flows 2 and 3, and the
/// entrances the links 1 and 2.
pub fn tunnels() -> Value {
    let mut spec = dumbbell();
    for (number, name) in ["vpn", "vpn-back"].into_iter().enumerate() {
        let mut entrance = link(name, part("drop_tail", json!({"limit": {"packets": 500}})));
        entrance["capacity"] = json!({"kind": "tunnel", "flow": 2 + number});
        entrance["delay"]["steps"][0]["delay_ns"] = json!(0);
        spec["links"].as_array_mut().unwrap().push(entrance);
        let mut carrier = quic()["flows"][0].clone();
        carrier["name"] = json!(name);
        carrier["source"] = json!({
            "kind": "tunnel", "link": 1 + number, "header_bytes": 2, "send_buffer_bytes": 65_536,
        });
        carrier["quic"]["initial_mtu_bytes"] = json!(1_472);
        carrier["quic"]["mtu_discovery"] = json!(false);
        carrier["quic"]["gso_packets"] = json!(1);
        carrier["quic"]["handshake"] = json!("1rtt");
        carrier["stop_ns"] = json!(null);
        spec["flows"].as_array_mut().unwrap().push(carrier);
    }
    spec["flows"][2]["path"] = json!([0]);
    spec["flows"][2]["reverse_path"] = json!([]);
    spec["flows"][3]["path"] = json!([]);
    spec["flows"][3]["reverse_path"] = json!([0]);
    spec["flows"][0]["path"] = json!([1]);
    spec["flows"][0]["reverse_path"] = json!([2]);
    spec["flows"][0]["mtu_bytes"] = json!(1_400);
    spec
}

/// What stands for a run where somebody else's packets were measured.
pub fn measured() -> Value {
    let mut spec = dumbbell();
    spec["measured"] = json!([{"name": "upload.pcapng", "sha256": "0f"}]);
    spec["links"] = json!([]);
    for flow in spec["flows"].as_array_mut().unwrap() {
        flow["path"] = json!([]);
        flow["reverse_path"] = json!([]);
        flow["controller"] = json!({"name": "unknown", "parameters": {}});
    }
    spec
}

/// Pings beside a flow: what no capture can hold.
pub fn pings() -> Value {
    let mut spec = dumbbell();
    let source = json!({"kind": "ping", "bytes": 20, "every_ns": 200 * MS, "timeout_ns": 10 * S});
    let mut pings = flow("pings", source);
    pings["transport"] = json!("udp");
    pings["controller"]["name"] = json!("none");
    pings["slow_start"] = json!(null);
    spec["flows"][1] = pings;
    spec
}

/// Two flows that write by the clock.
pub fn timed() -> Value {
    let mut spec = dumbbell();
    let media = json!({"kind": "media", "frames_per_1000_s": 30_000, "key_bytes": 37_500,
        "delta_bytes": 3_750, "key_every": 30, "deadline_ns": 250 * MS});
    let writes = json!([{"at_ns": 0, "bytes": 100}, {"at_ns": 5 * MS, "bytes": 7}]);
    let trace = json!({"kind": "trace", "writes": writes, "deadline_ns": 100 * MS});
    spec["flows"] = json!([flow("video", media), flow("replay", trace)]);
    spec
}

/// Calls, which nobody answers, beside a flow.
pub fn calls() -> Value {
    let mut spec = dumbbell();
    let call = |name: &str, playout: Value| {
        let voice = json!({"equipment_impairment": 0.0, "loss_robustness": 25.1,
            "coding_delay_ns": 20 * MS, "playout": playout});
        let steps = json!([{"at_ns": 0, "rate_bps": 68_800}, {"at_ns": S, "rate_bps": 0}]);
        let mut call = flow(
            name,
            json!({
            "kind": "cbr", "bytes": 172, "steps": steps, "voice": voice}),
        );
        call["transport"] = json!("udp");
        call["controller"]["name"] = json!("none");
        call["slow_start"] = json!(null);
        call
    };
    spec["flows"] = json!([
        flow("bulk", json!({"kind": "bulk"})),
        call("patient", json!({"kind": "quantile", "share": 0.99})),
        call("hasty", json!({"kind": "buffer", "length_ns": 60 * MS})),
    ]);
    spec
}

/// Three QUIC flows: the implementation that is built in with a controller of ours and with one of its
/// own, and somebody else's.
pub fn quic() -> Value {
    let mut spec = dumbbell();
    let bulk = || json!({"kind": "bulk"});
    let others = json!({"name": "theirs", "commands": {
        "server": ["/opt/server", "{port}"], "client": ["/opt/client", "{address}", "{port}"]}});
    spec["flows"] =
        json!([quic_flow("ours", bulk()), quic_flow("stack", bulk()), quic_flow("theirs", bulk())]);
    spec["flows"][0]["quic"]["ack_frequency"] = json!({
        "ack_eliciting_threshold": 9, "max_ack_delay_ns": 25 * MS, "reordering_threshold": 2});
    for (flow, name) in [(1, "noq:cubic"), (2, "any")] {
        spec["flows"][flow]["controller"]["name"] = json!(name);
        spec["flows"][flow]["slow_start"] = json!(null);
    }
    spec["flows"][1]["quic"]["recovery"] = json!("prr");
    spec["flows"][1]["quic"]["handshake"] = json!("0rtt");
    spec["flows"][2]["quic"]["implementation"] = others;
    spec["flows"][2]["quic"]["crypto"] = json!("tls");
    spec
}

/// A flow over QUIC.
pub fn quic_flow(name: &str, source: Value) -> Value {
    let mut flow = flow(name, source);
    flow["transport"] = json!("quic");
    flow["initial_receive_window_bytes"] = flow["receive_window_bytes"].clone();
    flow["quic"] = json!({
        "implementation": null, "initial_mtu_bytes": 1_200, "mtu_discovery": true,
        "ack_frequency": null, "recovery": "rfc9002", "gso_packets": 10, "pacing": true,
        "packet_threshold": null, "burst_limit_packets": null, "streams": 1,
        "stream_receive_window_bytes": 1_000_000, "handshake": "1rtt", "crypto": "none",
    });
    flow
}

/// A quantity that is drawn, without bounds.
fn drawn(law: Value) -> Value {
    json!({"law": law, "min": null, "max": null})
}

/// Receivers of each conduct.
pub fn receivers() -> Value {
    let conducts = [
        json!({"kind": "ack_division", "pieces": 16}),
        json!({"kind": "dupack_spoofing", "copies": 3}),
        json!({"kind": "optimistic_acking", "lead": 0.5}),
        json!({"kind": "hidden_ecn_marks"}),
        json!({"kind": "rledbat", "target_ns": 60 * MS, "constant": 1.0, "slowdowns": true}),
    ];
    let flows = (0..).zip(conducts).map(|(i, receiver): (i32, _)| {
        let mut flow = flow(&format!("to {i}"), json!({"kind": "bulk"}));
        (flow["receiver"], flow["ecn"]) = (receiver, json!(true));
        flow
    });
    let mut spec = dumbbell();
    spec["flows"] = flows.collect();
    spec
}

/// A flow to a slow application on coarse hosts.
pub fn slow() -> Value {
    let mut spec = dumbbell();
    let mut flow = flow("slow", json!({"kind": "bulk"}));
    flow["reader"] = json!({
        "rate_bps": 8_000_000,
        "read_bytes": 65_536,
        "pauses": [
            {"at_ns": 0, "duration_ns": 500 * MS},
            {"at_ns": 0, "duration_ns": 100 * MS, "every_ns": 1_000 * MS},
        ],
    });
    flow["timers"] = json!({"hz": 250, "slack_ns": 50_000, "resolution_ns": 1_000_000});
    spec["flows"] = json!([flow]);
    spec
}

/// A queue or losses.
fn part(kind: &str, parameters: Value) -> Value {
    json!({"kind": kind, "parameters": parameters})
}

fn link(name: &str, queue: Value) -> Value {
    json!({
        "name": name, "queue": queue, "classes": null, "loss": null, "outages": null,
        "quick_start": null,
        "capacity": {"kind": "constant", "rate_bps": 8_000_000},
        "delay": {"steps": [{"at_ns": 0, "delay_ns": 10 * MS}], "jitter": null},
    })
}

fn flow(name: &str, source: Value) -> Value {
    json!({
        "name": name, "group": null, "transport": "tcp", "source": source,
        "controller": {"name": "reno", "parameters": {}},
        "slow_start": {"name": "standard", "parameters": {}},
        "path": [0], "reverse_path": [], "base_delay_ns": 10 * MS,
        "memory": null, "peer": 0, "after": null, "start_ns": 0, "stop_ns": null, "pacing": false, "ecn": false,
        "mtu_bytes": 1_500, "initial_window_packets": 10, "initial_pacing": false, "linux": "6.1", "receive_window_bytes": 60_000_000,
        "initial_receive_window_bytes": 65_535, "receive_window_autotuning": false, "gro": false, "nic_rate_bps": null,
    })
}

/// A run whose second flow shares the connection of the first.
pub fn shared() -> Value {
    let mut spec = dumbbell();
    let mut other = spec["flows"][0].clone();
    (other["name"], other["connection_of"]) = (json!("back"), json!(0));
    (other["path"], other["reverse_path"]) = (json!([1]), json!([0]));
    let first = &mut spec["flows"][0];
    (first["path"], first["reverse_path"]) = (json!([0]), json!([1]));
    let mut link = spec["links"][0].clone();
    link["name"] = json!("the other way");
    spec["links"] = json!([spec["links"][0], link]);
    spec["flows"] = json!([spec["flows"][0], other]);
    spec
}
