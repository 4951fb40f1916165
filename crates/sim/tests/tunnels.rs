//! Flows inside a tunnel: header bytes, losses of outer packets, the books.

use crate::common::{
    MBPS, MS, S, algorithm, bdp_bytes, constant_delay, flow, link, lost, measure, over_quic, part,
    record, run, settled,
};
use crate::ledger::Ledger;
use jostle_link::DropReason;
use jostle_metrics::EventSink;
use jostle_run_spec::{
    CapacitySpec, CbrSpec, FaultSpec, FaultsSpec, FlowSpec, LinkPart, LinkSpec, NumberedFaultSpec,
    NumberedFaultsSpec, OccurrenceSpec, PacketClassSpec, RateStep, ReorderingSpec, RunSpec,
    SourceSpec, Transport, TunnelSpec,
};
use jostle_units::{ConnectionId, FlowId, LinkId, Span, Time};
use proptest::prelude::*;
use serde_json::json;

/// Links below the tunnel, and the links of its directions.
const WAN: LinkId = LinkId(0);
const BACK: LinkId = LinkId(1);
const THERE: LinkId = LinkId(2);
const HOME: LinkId = LinkId(3);

/// OpenVPN's, HTTP Datagrams' and WireGuard's bytes per packet.
const fn header_bytes(transport: Transport) -> u32 {
    match transport {
        Transport::Tcp => 26,
        Transport::Quic => 2,
        Transport::Udp => 32,
    }
}

/// One direction of a tunnel over `path`, with a queue of `packets` at its entrance.
fn direction(
    transport: Transport,
    controller: &str,
    (name, at, link): (&str, u32, LinkId),
    (path, reverse_path): (LinkId, LinkId),
    queue: LinkPart,
) -> (FlowSpec, LinkSpec) {
    let tunnel =
        TunnelSpec { link, header_bytes: header_bytes(transport), send_buffer_bytes: 250_000 };
    let carrier = FlowSpec {
        path: vec![path],
        reverse_path: vec![reverse_path],
        source: SourceSpec::Tunnel(tunnel),
        ..flow(name, controller, 0)
    };
    let carrier = match transport {
        Transport::Tcp => carrier,
        Transport::Quic => {
            let mut carrier = over_quic(carrier);
            if let Some(quic) = &mut carrier.quic {
                (quic.initial_mtu_bytes, quic.mtu_discovery) = (1_472, false);
                quic.gso_packets = 1;
            }
            carrier
        }
        Transport::Udp => FlowSpec {
            transport,
            controller: algorithm("none"),
            slow_start: None,
            ecn: true,
            ..carrier
        },
    };
    let entrance = LinkSpec {
        capacity: CapacitySpec::Tunnel { flow: FlowId(at) },
        queue,
        ..crate::common::link(name, 0, 0)
    };
    (carrier, entrance)
}

fn drop_tail(packets: u64) -> LinkPart {
    part("drop_tail", json!({"limit": {"packets": packets}}))
}

/// A tunnel over 10 Mbit/s and 100 ms with one flow inside, which starts after 1 s.
fn tunnel_of(
    transport: Transport,
    controller: &str,
    queue: &LinkPart,
    inside: FlowSpec,
) -> RunSpec {
    let wan = LinkSpec {
        delay: constant_delay(50 * MS),
        ..link("wan", 10 * MBPS, bdp_bytes(10 * MBPS, 100 * MS))
    };
    let back = LinkSpec { name: "back".to_owned(), ..wan.clone() };
    let ways = ((WAN, BACK), (BACK, WAN));
    let (there, entrance) =
        direction(transport, controller, ("vpn", 1, THERE), ways.0, queue.clone());
    let (home, exit) =
        direction(transport, controller, ("vpn-back", 2, HOME), ways.1, queue.clone());
    let inside = FlowSpec {
        path: vec![THERE],
        reverse_path: vec![HOME],
        base_delay_ns: 0,
        start_ns: S,
        mtu_bytes: 1_400,
        ..inside
    };
    run(20 * S, vec![wan, back, entrance, exit], vec![inside, there, home])
}

/// A datagram of 1,000 bytes every 20 ms.
fn calls() -> FlowSpec {
    FlowSpec {
        transport: Transport::Udp,
        controller: algorithm("none"),
        slow_start: None,
        source: SourceSpec::Cbr(CbrSpec {
            bytes: 1_000,
            steps: vec![RateStep { at_ns: 0, rate_bps: 400_000 }],
            voice: None,
        }),
        ..flow("calls", "reno", 0)
    }
}

/// Sizes of the packets that were sent, delays of the datagrams, drops and marks.
#[derive(Default)]
struct Observed {
    /// Size of the last packet of each flow.
    wire_bytes: [u64; 4],
    delays_ms: Vec<(u32, u64)>,
    dropped: Vec<(LinkId, ConnectionId, DropReason)>,
}

impl EventSink for Observed {
    fn wants_transit_times(&self) -> bool {
        true
    }

    fn sent(&mut self, _: Time, flow: ConnectionId, packets: u32, wire_bytes: u64, _: bool) {
        self.wire_bytes[flow.index()] = wire_bytes / u64::from(packets);
    }

    fn datagram_received(&mut self, _: Time, _: ConnectionId, number: u32, delay: Span) {
        self.delays_ms.push((number, delay.as_ns() / MS));
    }

    fn dropped(
        &mut self,
        _: Time,
        link: LinkId,
        flow: ConnectionId,
        reason: DropReason,
        _queued_bytes: u32,
    ) {
        self.dropped.push((link, flow, reason));
    }
}

fn observe(spec: &RunSpec) -> Observed {
    spec.validate().unwrap();
    let mut observed = Observed::default();
    jostle_sim::run(spec, &mut observed, &|| false).unwrap();
    observed
}

/// The `number`-th data packet of the outer flow is lost.
fn with_a_loss(mut spec: RunSpec, number: u64) -> RunSpec {
    spec.links[0].faults = Some(FaultsSpec {
        packets: vec![NumberedFaultsSpec {
            flow: Some(FlowId(1)),
            class: Some(PacketClassSpec::Data),
            faults: vec![NumberedFaultSpec { number, fault: FaultSpec::Lose }],
        }],
        ..FaultsSpec::default()
    });
    spec
}

#[test]
fn headers_are_those_of_the_encapsulation() {
    let inner_ip_bytes = 20 + 8 + 1_000;
    let bytes =
        |transport| observe(&tunnel_of(transport, "reno", &drop_tail(100), calls())).wire_bytes[1];
    // Ethernet, IPv4, UDP, WireGuard.
    assert_eq!(bytes(Transport::Udp), 14 + 20 + 8 + 32 + inner_ip_bytes);
    // Ethernet, IPv4, TCP with timestamps, OpenVPN.
    assert_eq!(bytes(Transport::Tcp), 14 + 20 + 32 + 26 + inner_ip_bytes);
    // Ethernet, IPv4, UDP; first byte, connection ID, one or two bytes of packet number and the tag;
    // the DATAGRAM frame's type and two bytes of length; quarter stream ID and context ID.
    let quic_bytes = 14 + 20 + 8 + 1 + 8 + 16 + 1 + 2 + 2 + inner_ip_bytes;
    let extra_bytes = bytes(Transport::Quic) - quic_bytes;
    assert!((1..=2).contains(&extra_bytes), "{extra_bytes}");
}

#[test]
fn a_lost_tcp_segment_delays_all_packets_behind_it_by_a_round_trip() {
    let spec = with_a_loss(tunnel_of(Transport::Tcp, "reno", &drop_tail(100), calls()), 51);
    let observed = observe(&spec);
    let delay_ms = |number: u32| {
        let (at, delay_ms) = observed.delays_ms[number as usize];
        assert_eq!(at, number, "in order, and none is missing");
        delay_ms
    };
    assert!(
        (0..50).all(|number| (50..=51).contains(&delay_ms(number))),
        "{:?}",
        observed.delays_ms
    );
    // RACK needs the ACK of a later packet, after 20 ms and a round trip, and waits for a quarter of
    // one: the retransmission arrives after 20 + 100 + 25 + 50 ms, with all packets that have arrived
    // since, in one burst.
    assert!((170..=200).contains(&delay_ms(50)), "{}", delay_ms(50));
    let later: Vec<_> = (50..60).map(delay_ms).collect();
    assert!(later.windows(2).all(|two| two[1] + 20 == two[0] || two[1] <= 51), "{later:?}");
    assert!(later[1] > 140 && later[9] <= 51, "{later:?}");
    let tunnels: Vec<_> = observed.dropped.iter().filter(|it| it.0 != WAN).collect();
    assert!(tunnels.is_empty(), "{tunnels:?}");
}

#[test]
fn a_lost_datagram_is_one_lost_packet() {
    for transport in [Transport::Quic, Transport::Udp] {
        let spec = with_a_loss(tunnel_of(transport, "reno", &drop_tail(100), calls()), 51);
        let observed = observe(&spec);
        let inside: Vec<_> = observed.dropped.iter().filter(|it| it.1 == ConnectionId(0)).collect();
        assert_eq!(inside, [&(THERE, ConnectionId(0), DropReason::Loss)], "{transport:?}");
        // 19 s of datagrams, of which the last ones are on their way.
        let numbers: Vec<_> = observed.delays_ms.iter().map(|it| it.0).collect();
        assert_eq!(numbers.len() as u32, numbers[numbers.len() - 1], "{transport:?}");
        assert!(observed.delays_ms.iter().all(|it| (50..=52).contains(&it.1)), "{transport:?}");
    }
}

#[test]
fn the_inner_flow_has_the_capacity_without_headers() {
    let all = [
        (Transport::Tcp, 1_348.0 / (1_400.0 + 66.0 + 26.0)),
        (Transport::Quic, 1_348.0 / (1_400.0 + 42.0 + 32.0)),
        (Transport::Udp, 1_348.0 / (1_400.0 + 42.0 + 32.0)),
    ];
    for (transport, share) in all {
        let mut spec = tunnel_of(transport, "cubic", &drop_tail(100), flow("inside", "cubic", 0));
        spec.duration_ns = 60 * S;
        spec.phases = run(60 * S, vec![], vec![]).phases;
        let summary = measure(&spec);
        let goodput = settled(&summary, 0).goodput_bps / 10e6;
        assert!((goodput / share - 1.0).abs() < 0.05, "{transport:?}: {goodput} of {share}");
        let outer = settled(&summary, 1);
        assert!(outer.goodput_bps > settled(&summary, 0).goodput_bps, "{transport:?}");
        // Only TCP hides the losses of the bottleneck from the inner controller, which then fills
        // the entrance. Of QUIC's datagrams both controllers lose the same ones, but the outer one
        // may reduce first.
        let waits = |link: LinkId| {
            summary.links[link.index()].phases.get("second half").unwrap().queueing_delay_mean_s
        };
        let (least_s, most_s) = match transport {
            Transport::Tcp => (0.05, 0.2),
            Transport::Quic => (0.0, 0.04),
            Transport::Udp => (0.0, 0.001),
        };
        let waited_s = waits(THERE).unwrap();
        assert!((least_s..most_s).contains(&waited_s), "{transport:?}: {waited_s} s");
        assert!(waits(WAN).unwrap() > 0.01, "{transport:?}");
        // A packet waits in both queues. Segments of TCP carry parts of several packets.
        let path = settled(&summary, 0).path_queueing_delay_mean_s.unwrap();
        let both = waits(THERE).unwrap() + waits(WAN).unwrap();
        assert!((path / both - 1.0).abs() < 0.05, "{transport:?}: {path} of {both} s");
    }
}

/// Retransmissions of a tunnel's connection are no retransmissions of the flow inside.
#[test]
fn totals_ignore_tunnels() {
    for transport in [Transport::Tcp, Transport::Quic] {
        let inside = flow("inside", "cubic", 0);
        let mut spec = tunnel_of(transport, "cubic", &drop_tail(20), inside);
        spec.links[WAN.index()].loss = lost(0.01);
        let record = record(&spec);
        let retransmitted: Vec<u64> = record
            .summary
            .flows
            .iter()
            .map(|flow| flow.phases.get("overall").unwrap().retransmitted_packets.unwrap())
            .collect();
        let total = record.summary.totals.get("overall").unwrap().total_retransmitted_packets;
        assert_eq!(total, Some(retransmitted[0]), "{retransmitted:?}");
        assert!(retransmitted[1] > 10 || transport == Transport::Quic, "{retransmitted:?}");
        let capacities = record.links.link.iter().zip(&record.links.capacity_bps);
        for (link, capacity_bps) in capacities {
            let is_entrance = [THERE, HOME].contains(&LinkId(*link));
            assert_eq!(capacity_bps.is_nan(), is_entrance, "link {link}: {capacity_bps} bit/s");
        }
    }
}

#[test]
fn a_full_entrance_drops_packets() {
    let spec = tunnel_of(Transport::Tcp, "cubic", &drop_tail(20), flow("inside", "cubic", 0));
    let summary = measure(&spec);
    let entrance = summary.links[THERE.index()].phases.get("overall").unwrap();
    assert!(entrance.dropped_overflow_packets > 10, "{entrance:?}");
    assert_eq!(entrance.dropped_overflow_packets, entrance.dropped_packets);
    assert_eq!(entrance.utilisation, None, "a tunnel has no rate");
}

/// Losses of 1 %: the outer TCP hides them from the inner one, at the price of delay and spurious
/// timeouts. Over datagrams the inner TCP repairs them.
#[test]
fn tcp_over_tcp_times_out_where_datagrams_do_not() {
    let outcome = |transport| {
        let queue = drop_tail(1_000);
        let mut spec = tunnel_of(transport, "reno", &queue, flow("inside", "reno", 0));
        spec.links[0].loss = lost(0.02);
        spec.duration_ns = 120 * S;
        spec.phases = run(120 * S, vec![], vec![]).phases;
        let summary = measure(&spec);
        let inside = settled(&summary, 0);
        (inside.retransmitted_packets, inside.rtt_p95_s.unwrap(), inside.goodput_bps)
    };
    let (tcp, quic) = (outcome(Transport::Tcp), outcome(Transport::Quic));
    assert!(tcp.1 > 2.0 * quic.1, "{tcp:?} {quic:?}");
}

#[test]
fn marks_of_outer_packets_reach_the_inner_flow() {
    let inside = FlowSpec { ecn: true, ..flow("inside", "cubic", 0) };
    let mut spec = tunnel_of(Transport::Udp, "none", &drop_tail(100), inside);
    spec.links[0].queue = part("codel", json!({"ecn": true, "limit": {"packets": 1000}}));
    let marked = measure(&spec);
    let wan = marked.links[0].phases.get("second half").unwrap();
    assert!(wan.marked_packets > 0 && wan.dropped_packets == 0, "{wan:?}");
    assert_eq!(settled(&marked, 0).retransmitted_packets, Some(0));
    // RFC 6040 §4.1, compatibility mode: the outer packets are not ECN-capable, so they are dropped.
    spec.flows[1].ecn = false;
    let dropped = measure(&spec);
    assert!(settled(&dropped, 0).retransmitted_packets > Some(0));
}

#[test]
fn runs_are_repeatable() {
    for transport in [Transport::Tcp, Transport::Quic, Transport::Udp] {
        let mut spec = tunnel_of(transport, "cubic", &drop_tail(50), flow("inside", "bbr", 0));
        spec.links[0].loss = lost(0.01);
        assert_eq!(record(&spec).summary, record(&spec).summary, "{transport:?}");
    }
}

/// Faults of the links below a tunnel.
fn faults() -> impl Strategy<Value = (f64, FaultsSpec)> {
    let probability = prop::sample::select(vec![0.0, 0.01, 0.1]);
    (probability.clone(), probability.clone(), probability.clone(), probability).prop_map(
        |(loss, duplicated, corrupted, reordered)| {
            let often = |probability| OccurrenceSpec { probability, correlation: 0.0 };
            let faults = FaultsSpec {
                duplicate: Some(often(duplicated)),
                corrupt: Some(often(corrupted)),
                reorder: Some(ReorderingSpec {
                    occurrence: often(reordered),
                    gap: 1,
                    late_ns: None,
                }),
                ..FaultsSpec::default()
            };
            (loss, faults)
        },
    )
}

fn queues() -> impl Strategy<Value = LinkPart> {
    prop::sample::select(vec![
        drop_tail(5),
        drop_tail(1_000),
        part("codel", json!({"ecn": true})),
        part("fq_codel", json!({})),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Every inner packet is delivered, dropped at the entrance or lost with an outer packet; in the
    /// end none is in the tunnel, and all data were delivered.
    #[test]
    fn the_books_balance(
        transport in prop::sample::select(vec![Transport::Tcp, Transport::Quic, Transport::Udp]),
        controller in prop::sample::select(vec!["reno", "cubic", "bbr"]),
        (loss, faults) in faults(),
        queue in queues(),
        over in prop::sample::select(vec![false, true]),
        kilobytes in 1u64..2_000,
    ) {
        let inside = FlowSpec {
            source: SourceSpec::Fixed { bytes: (kilobytes * 1_000).into() },
            ..flow("inside", controller, 0)
        };
        let mut spec = tunnel_of(transport, controller, &queue, inside);
        if over {
            let mut inner = over_quic(spec.flows[0].clone());
            if let Some(quic) = &mut inner.quic {
                quic.mtu_discovery = true;
            }
            spec.flows[0] = inner;
        }
        spec.links[0].loss = lost(loss);
        spec.links[0].faults = Some(faults);
        spec.duration_ns = 1_000 * S;
        spec.interval_ns = S;
        spec.phases = run(1_000 * S, vec![], vec![]).phases;
        spec.validate().map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut ledger = Ledger::new(&spec);
        jostle_sim::run(&spec, &mut ledger, &|| false)
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        let drained = ledger.last_sent() + Span::from_secs(100) < Time::from_ns(spec.duration_ns);
        let ledger = ledger.close(drained).map_err(TestCaseError::fail)?;
        prop_assert!(ledger.all_completed(), "{ledger:?}");
    }
}
