//! TCP connections whose both ends send data.

use jostle_metrics::{EndpointRole, EventSink, HeaderKind, SegmentHeader};
use jostle_run_spec::*;
use jostle_units::{ConnectionId, FlowId, LinkId, Span, Time};
use proptest::prelude::*;

use crate::common::*;

/// Two flows over one connection, with the rates of both directions.
fn shared(down: FlowSpec, up: FlowSpec, down_bps: u64, up_bps: u64) -> RunSpec {
    let (path, reverse_path) = (vec![LinkId(0)], vec![LinkId(1)]);
    let up = FlowSpec {
        name: "up".to_owned(),
        connection_of: Some(FlowId(0)),
        path: reverse_path.clone(),
        reverse_path: path.clone(),
        base_delay_ns: down.base_delay_ns,
        ..up
    };
    let down = FlowSpec { name: "down".to_owned(), path, reverse_path, ..down };
    let links = vec![link("downlink", down_bps, 100_000), link("uplink", up_bps, 100_000)];
    let spec = run(20 * S, links, vec![down, up]);
    spec.validate().unwrap();
    spec
}

fn bulk(controller: &str) -> FlowSpec {
    flow("", controller, 40 * MS)
}

fn fixed(bytes: u64) -> FlowSpec {
    FlowSpec { source: SourceSpec::Fixed { bytes: bytes.into() }, ..bulk("cubic") }
}

/// What each end sent and received.
#[derive(Default)]
struct Packets {
    data: [u64; 2],
    pure_acks: [u64; 2],
    delivered: [u64; 2],
    completed: [Option<Span>; 2],
}

impl EventSink for Packets {
    fn wants_segments(&self) -> bool {
        true
    }

    fn segment(&mut self, _: Time, it: ConnectionId, end: EndpointRole, header: &SegmentHeader) {
        if end == EndpointRole::Sender {
            match header.kind {
                HeaderKind::Data => self.data[it.index()] += 1,
                HeaderKind::Ack => self.pure_acks[it.index()] += 1,
                _ => {}
            }
        }
    }

    fn delivered(&mut self, _: Time, it: ConnectionId, bytes: u64) {
        self.delivered[it.index()] += bytes;
    }

    fn flow_completed(&mut self, _: Time, it: ConnectionId, after: Span) {
        assert_eq!(self.completed[it.index()].replace(after), None, "complete twice");
    }
}

impl Packets {
    fn of(spec: &RunSpec) -> Self {
        let mut packets = Self::default();
        jostle_sim::run(spec, &mut packets, &|| false).unwrap();
        packets
    }
}

#[test]
fn look() {
    for (a, b, ab, bb) in
        [("cubic", "cubic", 20, 20), ("cubic", "cubic", 20, 2), ("bbr", "bbr", 20, 20)]
    {
        let spec = shared(bulk(a), bulk(b), ab * MBPS, bb * MBPS);
        let packets = Packets::of(&spec);
        let summary = measure(&spec);
        println!("{:?} {:?} {:?}", packets.data, packets.pure_acks, packets.delivered);
        for f in 0..2 {
            let s = settled(&summary, f);
            println!("{} {:?} {:?}", s.goodput_bps, s.rtt_p95_s, s.retransmitted_packets);
        }
    }
}
