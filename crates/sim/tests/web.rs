//! Pages on links where the answer can be worked out by hand.

use crate::common::*;
use jostle_link::DropReason;
use jostle_metrics::*;
use jostle_run_spec::*;
use jostle_units::{ConnectionId, FlowId, LinkId, SendLimit, Span, Time};

/// Pages of a main object and some others; parsing takes 10 ms, reading 1 s.
fn pages(objects: u64, connections: u32) -> WebSpec {
    WebSpec {
        pages: Some(2),
        main_bytes: 2_896.into(),
        objects: objects.into(),
        object_bytes: 1_448.into(),
        request_bytes: 350,
        parse_ns: (10 * MS).into(),
        think_ns: S.into(),
        connections,
        multiplexed: false,
    }
}

fn reader(web: WebSpec) -> FlowSpec {
    FlowSpec {
        source: SourceSpec::Web(web),
        reverse_path: vec![LinkId(1)],
        ..flow("web", "cubic", 0)
    }
}

/// 10 Mbit/s down and 1 Mbit/s up, 20 ms each way.
fn home(lasting_s: u64, flows: Vec<FlowSpec>) -> RunSpec {
    let mut links = vec![link("down", 10 * MBPS, 100_000), link("up", MBPS, 50_000)];
    for link in &mut links {
        link.delay = constant_delay(20 * MS);
    }
    run(lasting_s * S, links, flows)
}

fn loads(summary: &Summary) -> WebSummary {
    summary.flows[0].web.clone().unwrap()
}

fn close(seen: Option<f64>, expected_s: f64) {
    let seen = seen.unwrap();
    assert!((seen - expected_s).abs() < 1e-6, "{seen} s, by hand {expected_s}");
}

const DOWN: f64 = 8.0 / 10e6;
const UP: f64 = 8.0 / 1e6;
const WAY: f64 = 0.02;
/// A new connection and the main object: up the SYN, the ACK of the SYN-ACK and the request, down the
/// SYN-ACK, the ACK of the request and two segments.
const MAIN: f64 = 4.0 * WAY + (74.0 + 66.0 + 416.0) * UP + (74.0 + 66.0 + 2.0 * 1514.0) * DOWN;
/// A request over a connection that is there, and the object.
const OBJECT: f64 = 2.0 * WAY + 416.0 * UP + 1514.0 * DOWN;

#[test]
fn a_page_without_objects_takes_two_round_trips_and_itself() {
    let summary = measure(&home(10, vec![reader(pages(0, 6))]));
    let seen = loads(&summary);
    // The time ends with the last byte, before the page is parsed.
    close(seen.page_load_time_p50_s, MAIN);
    close(seen.page_load_time_p95_s, MAIN);
    assert_eq!((seen.pages, seen.pages_unfinished), (Some(2.0), Some(0.0)));
    let goodput_bps = summary.flows[0].phases.get("overall").unwrap().goodput_bps;
    assert!((goodput_bps - 2.0 * 2_896.0 * 8.0 / 10.0).abs() < 1e-6, "{goodput_bps} bit/s");
}

/// Requests carry the ACKs of the objects before them, and objects the ACKs of requests.
#[test]
fn one_connection_asks_for_one_object_after_the_other() {
    let seen = loads(&measure(&home(10, vec![reader(pages(3, 1))])));
    close(seen.page_load_time_mean_s, MAIN + 0.01 + 3.0 * OBJECT);
}

#[test]
fn connections_beside_each_other_are_quicker_than_one_and_one_that_is_multiplexed_is_quickest() {
    let took = |web| loads(&measure(&home(10, vec![reader(web)]))).page_load_time_mean_s.unwrap();
    let one = took(pages(12, 1));
    let six = took(pages(12, 6));
    let multiplexed = took(WebSpec { multiplexed: true, ..pages(12, 1) });
    assert!(multiplexed < six && six < one / 2.0, "{multiplexed} {six} {one}");
}

/// What an upload leaves in the queue of the way up is what each request and each SYN-ACK waits for.
#[test]
fn an_upload_makes_pages_wait() {
    let upload = FlowSpec {
        path: vec![LinkId(1)],
        reverse_path: vec![LinkId(0)],
        ..flow("upload", "cubic", 0)
    };
    let mut spec = home(60, vec![reader(pages(3, 6)), upload]);
    let SourceSpec::Web(web) = &mut spec.flows[0].source else { unreachable!() };
    web.pages = None;
    let seen = loads(&measure(&spec));
    // Three trips up for a page; the buffer of 50 kB takes 400 ms, and Cubic keeps more than half of it full.
    let mean = seen.page_load_time_mean_s.unwrap();
    assert!((0.8..6.0).contains(&mean), "{mean} s");
    assert!(seen.pages.unwrap() > 8.0);
}

#[test]
fn requests_that_are_lost_are_retransmitted() {
    let mut spec = home(120, vec![reader(WebSpec { pages: Some(20), ..pages(6, 2) })]);
    spec.links[1].loss = lost(0.2);
    let seen = loads(&measure(&spec));
    assert_eq!((seen.pages, seen.pages_unfinished), (Some(20.0), Some(0.0)));
    assert!(seen.page_load_time_p95_s.unwrap() > 1.0);
    spec.flows[0].stop_ns = Some(10 * S);
    let stopped = loads(&measure(&spec));
    assert!(stopped.pages.unwrap() < 11.0, "{stopped:?}");
}

#[test]
fn a_browser_is_refused_where_its_connections_cannot_be_told_apart() {
    let refused = |change: fn(&mut FlowSpec)| {
        let mut spec = home(10, vec![reader(pages(1, 6))]);
        change(&mut spec.flows[0]);
        spec.validate().unwrap_err().to_string()
    };
    assert!(refused(|flow| *flow = over_quic(flow.clone())).contains("transport"));
    assert!(refused(|flow| flow.nic_rate_bps = Some(GBPS)).contains("nic_rate_bps"));
    assert!(refused(|flow| flow.memory = Some(algorithm("tcp-cache"))).contains("peer cache"));
    let multiplexed = |flow: &mut FlowSpec| {
        flow.source = SourceSpec::Web(WebSpec { multiplexed: true, ..pages(1, 6) });
    };
    assert!(refused(multiplexed).contains("connections"));
}

/// Numbers of the responses of a browser's connections, those of the requests follow them.
#[derive(Default)]
struct Packets {
    of_responses: Vec<ConnectionId>,
    opened: usize,
    /// Data segments and ACKs without data, of requests and of responses.
    data: [u64; 2],
    pure_acks: [u64; 2],
    syns: [u64; 2],
    delivered: u64,
    responses: u64,
    dropped: [u64; 2],
}

impl Packets {
    fn of(spec: &RunSpec) -> Self {
        spec.validate().unwrap();
        let mut packets = Self::default();
        jostle_sim::run(spec, &mut packets, &|| false).unwrap();
        packets
    }

    /// Only responses may be reported.
    fn check(&self, connection: ConnectionId) {
        assert!(self.of_responses.contains(&connection), "an event of requests");
    }
}

impl EventSink for Packets {
    fn wants_segments(&self) -> bool {
        true
    }

    fn connection_opened(&mut self, _: Time, connection: ConnectionId, flow: FlowId) {
        assert_eq!(flow, FlowId(0));
        if self.opened.is_multiple_of(2) {
            self.of_responses.push(connection);
        }
        self.opened += 1;
    }

    fn segment(&mut self, _: Time, it: ConnectionId, end: EndpointRole, header: &SegmentHeader) {
        if end == EndpointRole::Sender {
            let counts = match header.kind {
                HeaderKind::Data => &mut self.data,
                HeaderKind::Ack | HeaderKind::HandshakeAck => &mut self.pure_acks,
                HeaderKind::Syn | HeaderKind::SynAck => &mut self.syns,
            };
            counts[usize::from(self.of_responses.contains(&it))] += 1;
        }
    }

    fn sent(&mut self, _: Time, it: ConnectionId, _: u32, _: u64, _: bool) {
        self.check(it);
    }

    fn send_limit(&mut self, _: Time, it: ConnectionId, _: SendLimit) {
        self.check(it);
    }

    fn received(&mut self, _: Time, it: ConnectionId, _: u32) {
        self.check(it);
    }

    fn packet_transit(&mut self, _: Time, it: ConnectionId, _: Span, _: Span) {
        self.check(it);
    }

    fn acked(&mut self, _: Time, it: ConnectionId, _: &AckEvent) {
        self.check(it);
    }

    fn delivered(&mut self, _: Time, it: ConnectionId, bytes: u64) {
        self.check(it);
        self.delivered += bytes;
    }

    fn response_complete(&mut self, _: Time, it: ConnectionId, _: Span) {
        self.check(it);
        self.responses += 1;
    }

    fn dropped(&mut self, _: Time, _: LinkId, it: ConnectionId, _: DropReason, _: u32) {
        self.dropped[usize::from(self.of_responses.contains(&it))] += 1;
    }
}

fn one_page(web: WebSpec) -> WebSpec {
    WebSpec { pages: Some(1), ..web }
}

/// The client opens the connection. Its requests carry ACKs: alone are only the ACK of the SYN-ACK, that
/// of the main object's end, and that of the last object, for which the page's end is too early.
#[test]
fn the_client_opens_the_connection_and_acknowledges_with_requests() {
    let packets = Packets::of(&home(10, vec![reader(one_page(pages(20, 1)))]));
    assert_eq!(packets.syns, [1, 1]);
    assert_eq!(packets.data, [21, 22]);
    assert!(packets.pure_acks[0] <= 3, "{:?}", packets.pure_acks);
    assert_eq!((packets.delivered, packets.responses), (2_896 + 20 * 1_448, 21));
}

/// Ten requests leave at once, as the client's initial window allows. TCP puts the others together: in
/// two full segments and one of 604 bytes.
#[test]
fn the_cwnd_of_the_client_limits_multiplexed_requests() {
    let web = WebSpec { multiplexed: true, ..one_page(pages(20, 1)) };
    let packets = Packets::of(&home(10, vec![reader(web)]));
    assert_eq!((packets.data[0], packets.responses), (1 + 10 + 3, 21));
    assert_eq!(packets.delivered, 2_896 + 20 * 1_448);
}

#[test]
fn losses_of_both_directions_are_losses_of_the_flow() {
    let mut spec = home(120, vec![reader(WebSpec { pages: Some(20), ..pages(6, 2) })]);
    for link in &mut spec.links {
        link.loss = lost(0.1);
    }
    let packets = Packets::of(&spec);
    assert!(packets.dropped[0] > 10 && packets.dropped[1] > 10, "{:?}", packets.dropped);
    assert_eq!(packets.delivered, 20 * (2_896 + 6 * 1_448));
    let summary = measure(&spec);
    let dropped: u64 =
        summary.links.iter().map(|it| it.phases.get("overall").unwrap().dropped_packets).sum();
    assert_eq!(dropped, packets.dropped.iter().sum::<u64>());
    let flow = summary.flows[0].phases.get("overall").unwrap();
    assert!(flow.retransmitted_packets.unwrap() > 5);
}

/// Without a link on the reverse path, requests cross its delay only.
#[test]
fn a_reverse_path_may_have_no_links() {
    let web = FlowSpec { reverse_path: vec![], base_delay_ns: 20 * MS, ..reader(pages(0, 1)) };
    let seen = loads(&measure(&home(10, vec![web])));
    close(seen.page_load_time_p50_s, 4.0 * WAY + (74.0 + 66.0 + 2.0 * 1514.0) * DOWN);
}

/// After 2 s both directions take links with three times the delay.
#[test]
fn requests_follow_changes_of_the_route() {
    let mut spec = home(10, vec![reader(pages(0, 1))]);
    for (name, rate_bps) in [("down 2", 10 * MBPS), ("up 2", MBPS)] {
        spec.links
            .push(LinkSpec { delay: constant_delay(60 * MS), ..link(name, rate_bps, 100_000) });
    }
    let (path, reverse_path) = (vec![LinkId(2)], vec![LinkId(3)]);
    spec.flows[0].routes = vec![RouteSpec { at_ns: S / 2, path, reverse_path }];
    let seen = loads(&measure(&spec));
    close(seen.page_load_time_mean_s, (MAIN + MAIN + 8.0 * WAY) / 2.0);
}

/// RFC 4782: the SYN-ACK of the server requests a rate. Slow start takes 10, 20, 40 and 80 packets.
#[test]
fn the_server_requests_a_rate_for_a_large_page() {
    let took = |slow_start: &str, allowance: Option<u64>| {
        let web = WebSpec { main_bytes: (120 * 1_448).into(), ..pages(0, 1) };
        let mut spec = home(10, vec![reader(web)]);
        spec.links[0] = LinkSpec {
            capacity: CapacitySpec::Constant { rate_bps: 100 * MBPS },
            quick_start: allowance
                .map(|allowance_bps| QuickStartSpec { allowance_bps, interval_ns: 100 * MS }),
            ..spec.links[0].clone()
        };
        spec.flows[0].slow_start = Some(algorithm(slow_start));
        spec.flows[0].initial_receive_window_bytes = 1_000_000;
        loads(&measure(&spec)).page_load_time_mean_s.unwrap()
    };
    let (refused, granted) = (took("quickstart", None), took("quickstart", Some(90 * MBPS)));
    assert!((0.19..0.23).contains(&refused), "{refused} s");
    assert!((0.10..0.11).contains(&granted), "{granted} s");
    // The response is known when the server starts its controller.
    let (standard, jumped) = (took("standard", None), took("jumpstart", None));
    assert!(jumped < standard - 0.05, "{jumped} {standard} s");
}

/// Receivers that deviate from Linux load pages, too.
#[test]
fn every_receiver_loads_pages() {
    let receivers = [
        ReceiverSpec::AckDivision { pieces: 3 },
        ReceiverSpec::DupackSpoofing { copies: 3 },
        ReceiverSpec::HiddenEcnMarks,
        ReceiverSpec::Rledbat { target_ns: 60 * MS, constant: 1.0, slowdowns: true },
    ];
    for receiver in receivers {
        let web = WebSpec { main_bytes: 200_000.into(), ..one_page(pages(6, 1)) };
        let web = FlowSpec { receiver: Some(receiver.clone()), ecn: true, ..reader(web) };
        let plain = FlowSpec { receiver: None, ..web.clone() };
        let [plain, packets] = [plain, web].map(|flow| Packets::of(&home(30, vec![flow])));
        assert_eq!((packets.responses, packets.delivered), (7, 200_000 + 6 * 1_448));
        match receiver {
            ReceiverSpec::AckDivision { .. } | ReceiverSpec::DupackSpoofing { .. } => {
                assert!(packets.pure_acks[0] > 2 * plain.pure_acks[0], "{receiver:?}");
            }
            _ => assert!(packets.pure_acks[0] <= plain.pure_acks[0] + 10, "{receiver:?}"),
        }
    }
}

/// A link that sends ten packets every 10 ms: the card merges them, and fewer ACKs are sent.
#[test]
fn a_card_merges_responses() {
    let of = |gro| {
        let web = WebSpec { main_bytes: 500_000.into(), ..one_page(pages(6, 1)) };
        let mut spec = home(30, vec![FlowSpec { gro, ..reader(web) }]);
        spec.links[0].capacity =
            CapacitySpec::Trace { opportunities_ms: vec![10; 10], opportunity_bytes: 1_514 };
        Packets::of(&spec)
    };
    let (plain, merged) = (of(false), of(true));
    assert_eq!((merged.delivered, merged.responses), (plain.delivered, plain.responses));
    assert!(2 * merged.pure_acks[0] < plain.pure_acks[0], "{:?}", merged.pure_acks);
}

/// Marks are echoed in both directions, also on data.
#[test]
fn browsers_use_ecn() {
    for controller in ["cubic", "dctcp", "prague"] {
        let web = WebSpec { main_bytes: 1_000_000.into(), ..one_page(pages(20, 1)) };
        let mut spec = home(30, vec![FlowSpec { ecn: true, ..reader(web) }]);
        spec.flows[0].controller = algorithm(controller);
        spec.flows[0].slow_start = slow_start(controller);
        let parameters = json!({"limit": {"packets": 1_000}, "target": 5 * MS,
            "interval": 100 * MS, "ecn": true});
        spec.links[0].queue = part("codel", parameters);
        let summary = measure(&spec);
        let flow = summary.flows[0].phases.get("overall").unwrap();
        assert_eq!(flow.retransmitted_packets, Some(0), "{controller}");
        assert!(summary.links[0].phases.get("overall").unwrap().marked_packets > 0, "{controller}");
        assert_eq!(loads(&summary).pages, Some(1.0));
    }
}
