//! The rules of tunnels, by breaking them.

use super::refusal;
use crate::common::{S, slow, tunnels};
use jostle_run_spec::RunSpec;
use jostle_units::{LinkId, Span};
use serde_json::{Value, json};

fn changed(pointer: &str, value: Value) -> String {
    let mut spec = tunnels();
    let (above, key) = pointer.rsplit_once('/').unwrap();
    spec.pointer_mut(above).expect(pointer)[key] = value;
    refusal(&spec)
}

#[test]
fn every_rule_of_tunnels_names_the_place() {
    let shaper = json!({"kind": "tbf", "parameters": {"rate": 1_000_000}});
    let reader = slow()["flows"][0]["reader"].clone();
    for (pointer, value, words) in [
        ("/links/1/capacity/flow", json!(0), "`links[1].capacity.flow` cannot be 0"),
        ("/links/1/capacity/flow", json!(9), "`links[1].capacity.flow` cannot be 9"),
        ("/flows/2/source/link", json!(0), "`links[1].capacity.flow` cannot be 2"),
        ("/flows/2/source/header_bytes", json!(1_001), "`flows[2].source.header_bytes`"),
        ("/flows/2/source/send_buffer_bytes", json!(0), "`flows[2].source.send_buffer_bytes`"),
        ("/flows/2/path", json!([2]), "`flows[2].path` cannot be over `vpn-back`"),
        ("/flows/2/stop_ns", json!(S), "`flows[2].stop_ns` cannot be there"),
        ("/flows/2/after", json!(1), "`flows[2].after` cannot be"),
        ("/flows/2/reader", reader, "`flows[2].reader` cannot be there"),
        ("/flows/2/quic/mtu_discovery", json!(true), "`flows[2].quic.mtu_discovery` cannot be"),
        ("/flows/2/quic/gso_packets", json!(2), "`flows[2].quic.gso_packets` cannot be"),
        ("/flows/2/quic/handshake", json!("0rtt"), "`flows[2].quic.handshake` cannot be"),
        ("/flows/2/quic/initial_mtu_bytes", json!(1_400), "cannot be 1400: expected 1472"),
        // 1500 − 28 − 38 − 2.
        (
            "/flows/0/mtu_bytes",
            json!(1_433),
            "`flows[0].mtu_bytes` cannot be 1433: expected at most 1432",
        ),
        ("/flows/0/reverse_path", json!([2, 1]), "`flows[0].path` cannot be twice"),
        ("/links/1/queue", shaper, "`links[1].queue.kind` cannot be `tbf`"),
        (
            "/links/1/delay/steps",
            json!([{"at_ns": 0, "delay_ns": 0}, {"at_ns": S, "delay_ns": 1}]),
            "`links[1].delay` cannot be not constant",
        ),
        (
            "/links/1/loss",
            json!({"kind": "independent", "parameters": {"probability": 0.1}}),
            "`links[1].loss` cannot be there",
        ),
        (
            "/links/1/outages",
            json!({"mean_interval_ns": S, "durations": [{"probability": 0.0, "value_ns": 1}, {"probability": 1.0, "value_ns": 2}]}),
            "`links[1].outages` cannot be there",
        ),
    ] {
        let found = changed(pointer, value);
        assert!(found.contains(words), "{pointer}: {found}");
    }
}

#[test]
fn a_tunnel_has_the_delay_and_the_rates_of_the_links_below() {
    let spec: RunSpec = serde_json::from_value(tunnels()).unwrap();
    spec.validate().unwrap();
    assert_eq!(spec.propagation(&[LinkId(1)]), Span::from_ms(10));
    assert_eq!(spec.propagation(&[LinkId(2)]), Span::ZERO);
    assert_eq!(spec.links[1].constant_service(), None);
    let alone = spec.links[1].validate("link").unwrap_err().to_string();
    assert!(alone.starts_with("`link.capacity` cannot be a tunnel"), "{alone}");
    let [below, tunnel] = [LinkId(0), LinkId(1)];
    let path = [tunnel];
    assert_eq!(spec.links_with_tunnels(std::iter::once(&path[..])), [tunnel, below]);
}
