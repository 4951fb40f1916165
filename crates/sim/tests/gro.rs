//! Receivers whose cards put together what arrives at the same moment.

use crate::common::*;
use jostle_metrics::{AckEvent, EventSink};
use jostle_run_spec::{CapacitySpec, LinkSpec};
use jostle_units::{ConnectionId, Time};

/// Data packets that reached the receiver, ACKs that reached the sender.
#[derive(Debug, Default, PartialEq, Eq)]
struct Crossed {
    data: u64,
    acks: u64,
}

impl EventSink for Crossed {
    fn received(&mut self, _now: Time, _flow: ConnectionId, _wire_bytes: u32) {
        self.data += 1;
    }

    fn acked(&mut self, _now: Time, _flow: ConnectionId, _row: &AckEvent) {
        self.acks += 1;
    }
}

fn crossed(path: LinkSpec, gro: bool) -> Crossed {
    let mut download = flow("download", "reno", 20 * MS);
    download.gro = gro;
    let spec = run(5 * S, vec![path], vec![download]);
    spec.validate().unwrap();
    let mut counted = Crossed::default();
    jostle_sim::run(&spec, &mut counted, &|| false).unwrap();
    counted
}

/// Ten packets every 10 ms, at one moment.
fn in_lumps() -> LinkSpec {
    let capacity = CapacitySpec::Trace { opportunities_ms: vec![10; 10], opportunity_bytes: 1_514 };
    LinkSpec { capacity, ..link("lumps", 1, 100 * 1_514) }
}

#[test]
fn what_arrives_at_one_moment_gets_one_ack() {
    let plain = crossed(in_lumps(), false);
    assert!(plain.acks * 10 > plain.data * 4, "{plain:?}");
    let merged = crossed(in_lumps(), true);
    assert!(merged.acks * 10 < merged.data * 3, "{merged:?}");
}

#[test]
fn what_arrives_one_by_one_is_not_touched() {
    let plain = || link("plain", 10 * MBPS, 100 * 1_514);
    assert_eq!(crossed(plain(), true), crossed(plain(), false));
}
