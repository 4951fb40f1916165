//! What a guest says that its kernel captured: refused, or written as a capture no larger than it.

#![no_main]

use jostle_metrics::EndpointRole;
use jostle_pcap::{PacketRing, from_ring};
use jostle_run_spec::RunSpec;
use jostle_units::FlowId;
use libfuzzer_sys::fuzz_target;

/// The smallest run that has a capture.
const SPEC: &str = include_str!("../one-flow.json");

fuzz_target!(|blocks: &[u8]| {
    let spec = RunSpec::from_json(SPEC).expect("the spec is one");
    let ring = PacketRing {
        flow: FlowId(0),
        end: EndpointRole::Sender,
        system: "Linux",
        start_ns: 0,
        received: 0,
        dropped: 0,
        secrets: "",
    };
    let mut out = Vec::new();
    if let Ok(packets) = from_ring(&spec, &ring, blocks, &mut out) {
        assert!(packets <= blocks.len() as u64);
    }
});
