//! TCP connections whose both ends send data.

use jostle_metrics::{EndpointRole, EventSink, HeaderKind, SegmentHeader, Summary};
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
    // While the window grows, every segment is acknowledged at once.
    FlowSpec { receive_window_bytes: 1_000_000, ..flow("", controller, 40 * MS) }
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

/// Nearly no ACK is sent alone if both ends send: on Linux 6.1, 191 and 181 per second next to 1,570
/// and 1,610 data segments.
#[test]
fn data_in_both_directions_carry_the_acks() {
    let packets = Packets::of(&shared(bulk("cubic"), bulk("cubic"), 20 * MBPS, 20 * MBPS));
    for (data, acks) in packets.data.into_iter().zip(packets.pure_acks) {
        assert!(data > 25_000 && acks < data / 4, "{acks} of {data}");
    }
    assert!(packets.delivered.iter().all(|bytes| *bytes > 38_000_000), "{:?}", packets.delivered);
}

/// The bytes that the ends sent, and the bytes of the data that arrived.
#[derive(Default)]
struct WireBytes {
    sent: [u64; 2],
    received: [u64; 2],
}

impl EventSink for WireBytes {
    fn sent(&mut self, _: Time, it: ConnectionId, _: u32, wire_bytes: u64, _: bool) {
        self.sent[it.index()] += wire_bytes;
    }

    fn options_sent(&mut self, _: Time, it: ConnectionId, bytes: u32) {
        self.sent[it.index()] += u64::from(bytes);
    }

    fn received(&mut self, _: Time, it: ConnectionId, wire_bytes: u32) {
        self.received[it.index()] += u64::from(wire_bytes);
    }
}

/// Data carry the SACK blocks of the data that are lost in the other direction.
#[test]
fn sack_options_of_data_are_sent_and_received() {
    let mut spec = shared(fixed(4_000_000), fixed(2_000_000), 20 * MBPS, 20 * MBPS);
    spec.links[0].queue = part("drop_tail", json!({"limit": {"bytes": 5_000_000}}));
    spec.links[1].loss = lost(0.02);
    let mut bytes = WireBytes::default();
    jostle_sim::run(&spec, &mut bytes, &|| false).unwrap();
    assert_eq!(bytes.sent[0], bytes.received[0], "no packet is lost");
    let down = &measure(&spec).flows[0].phases;
    let down = down.get("overall").unwrap();
    assert_eq!(down.sending_rate_bps, down.throughput_bps);
}

/// An end that has sent all its data acknowledges every second segment again.
#[test]
fn an_end_without_data_sends_acks() {
    let packets = Packets::of(&shared(bulk("cubic"), fixed(14_480), 20 * MBPS, 20 * MBPS));
    let [down, up] = packets.data;
    assert!((10..20).contains(&up), "{up}");
    let acks = packets.pure_acks[1];
    assert!((down * 9 / 20..down * 12 / 20).contains(&acks), "{acks} for {down}");
    assert_eq!(packets.completed[0], None);
    assert!(packets.completed[1].is_some_and(|after| after < Span::from_ms(200)));
}

/// ACKs behind the data of a slow uplink: the RTT of both directions contains its queue.
#[test]
fn a_full_uplink_delays_the_acks_of_the_downlink() {
    let alone = measure(&shared(bulk("cubic"), fixed(1_448), 20 * MBPS, 2 * MBPS));
    let spec = shared(bulk("cubic"), bulk("cubic"), 20 * MBPS, 2 * MBPS);
    let both = measure(&spec);
    let rtt = |summary: &Summary, flow| settled(summary, flow).rtt_mean_s.unwrap();
    assert!(rtt(&alone, 0) < 0.09, "{}", rtt(&alone, 0));
    assert!(rtt(&both, 0) > 0.25 && rtt(&both, 1) > 0.25);
    assert!(settled(&both, 0).goodput_bps < 0.7 * settled(&alone, 0).goodput_bps);
}

/// Each direction has its own receive window.
#[test]
fn a_slow_reader_limits_one_direction() {
    let reader = ReaderSpec { rate_bps: Some(4 * MBPS), read_bytes: 65_536, pauses: Vec::new() };
    let up = FlowSpec { reader: Some(reader), receive_window_bytes: 300_000, ..bulk("cubic") };
    let summary = measure(&shared(bulk("cubic"), up, 20 * MBPS, 20 * MBPS));
    let [down, up] = [0, 1].map(|flow| settled(&summary, flow));
    assert!((up.goodput_bps - 4e6).abs() < 0.1e6, "{}", up.goodput_bps);
    assert!(up.receive_window_limited.unwrap() > 0.9);
    assert!(down.goodput_bps > 17e6 && down.receive_window_limited.unwrap() == 0.0);
}

/// The reply starts when the request is complete, over the connection that the request has opened.
#[test]
fn a_flow_may_follow_the_flow_whose_connection_it_shares() {
    let reply = FlowSpec { after: Some(FlowId(0)), ..fixed(200_000) };
    let packets = Packets::of(&shared(fixed(100_000), reply, 20 * MBPS, 20 * MBPS));
    assert_eq!(packets.delivered, [100_000, 200_000]);
    let [request, reply] = packets.completed.map(Option::unwrap);
    assert!(reply > Span::from_ms(80) && request > Span::from_ms(80), "{request} {reply}");
}

fn lose(number: u64) -> Option<FaultsSpec> {
    let faults = vec![NumberedFaultSpec { number, fault: FaultSpec::Lose }];
    let packets = vec![NumberedFaultsSpec { flow: None, class: None, faults }];
    Some(FaultsSpec { packets, ..FaultsSpec::default() })
}

/// SYN, SYN-ACK, the ACK of the SYN-ACK, and the first data: the loss of the first two costs a second.
#[test]
fn lost_packets_of_the_handshake_are_replaced() {
    for (link, number, least_ms, most_ms) in
        [(0, 1, 1_000, 1_400), (1, 1, 1_000, 1_400), (0, 2, 80, 500), (0, 3, 80, 600)]
    {
        let mut spec = shared(fixed(50_000), fixed(50_000), 20 * MBPS, 20 * MBPS);
        spec.links[link].faults = lose(number);
        let packets = Packets::of(&spec);
        for completed in packets.completed {
            let ms = completed.unwrap().as_ns() / MS;
            assert!((least_ms..most_ms).contains(&ms), "{link} {number}: {ms} ms");
        }
    }
}

/// The end that accepts has data, the other none: only the SYN-ACK can be repeated.
#[test]
fn a_lost_ack_of_the_syn_ack_is_replaced_although_no_data_follow() {
    let writes = vec![WriteSpec { at_ns: 10 * S, bytes: 1 }];
    let silent = SourceSpec::Trace(TraceSpec { writes, deadline_ns: None });
    let down = FlowSpec { source: silent, ..bulk("cubic") };
    let mut spec = shared(down, fixed(50_000), 20 * MBPS, 20 * MBPS);
    spec.links[0].faults = lose(2);
    let packets = Packets::of(&spec);
    assert_eq!(packets.delivered[1], 50_000);
    let ms = packets.completed[1].unwrap().as_ns() / MS;
    assert!((1_000..1_500).contains(&ms), "{ms} ms");
}

/// Marks are echoed on data: otherwise a queue of 600 ms would be full.
#[test]
fn marks_are_echoed_in_both_directions() {
    for controller in ["cubic", "dctcp", "prague"] {
        let ends = || FlowSpec { ecn: true, ..bulk(controller) };
        let mut spec = shared(ends(), ends(), 20 * MBPS, 20 * MBPS);
        for link in &mut spec.links {
            let parameters = json!({"limit": {"packets": 1_000}, "target": 5 * MS,
                "interval": 100 * MS, "ecn": true});
            link.queue = part("codel", parameters);
        }
        let summary = measure(&spec);
        for flow in 0..2 {
            let it = settled(&summary, flow);
            assert_eq!(it.retransmitted_packets, Some(0), "{controller}");
            assert!(it.goodput_bps > 15e6, "{controller} {}", it.goodput_bps);
            assert!(it.rtt_p95_s.unwrap() < 0.2, "{controller} {:?}", it.rtt_p95_s);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Under loss, reordering, duplication and corruption, both streams deliver all bytes once, and
    /// both flows are complete.
    #[test]
    fn both_streams_deliver_all_bytes(
        (down_bytes, up_bytes) in (1u64..2_000_000, 1u64..2_000_000),
        (down_mbps, up_mbps) in (1u64..50, 1u64..50),
        (loss, duplicate, corrupt, reorder) in (0.0..0.05, 0.0..0.05, 0.0..0.02, 0.0..0.05),
        (late_ms, seed) in (1u64..30, 0u64..1_000),
        (down_start_ms, up_start_ms) in (0u64..500, 0u64..500),
        window_bytes in 20_000u64..2_000_000,
        controller in prop::sample::select(vec!["cubic", "reno", "bbr"]),
    ) {
        let end = |bytes: u64, start_ms| FlowSpec {
            source: SourceSpec::Fixed { bytes: bytes.into() },
            start_ns: start_ms * MS,
            receive_window_bytes: window_bytes,
            initial_receive_window_bytes: window_bytes.min(65_535),
            ..bulk(controller)
        };
        let (down, up) = (end(down_bytes, down_start_ms), end(up_bytes, up_start_ms));
        let mut spec = shared(down, up, down_mbps * MBPS, up_mbps * MBPS);
        (spec.seed, spec.duration_ns) = (seed, 300 * S);
        spec.phases.iter_mut().for_each(|phase| phase.to_ns = 300 * S);
        let occurrence = |probability| OccurrenceSpec { probability, correlation: 0.0 };
        for link in &mut spec.links {
            link.loss = lost(loss);
            link.faults = Some(FaultsSpec {
                duplicate: Some(occurrence(duplicate)),
                corrupt: Some(occurrence(corrupt)),
                reorder: Some(ReorderingSpec {
                    occurrence: occurrence(reorder),
                    gap: 1,
                    late_ns: Some(late_ms * MS),
                }),
                packets: Vec::new(),
            });
        }
        spec.validate().unwrap();
        let packets = Packets::of(&spec);
        prop_assert_eq!(packets.delivered, [down_bytes, up_bytes]);
        prop_assert!(packets.completed.iter().all(Option::is_some));
    }
}
