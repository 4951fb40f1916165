//! Pages on links where the answer can be worked out by hand.

use crate::common::*;
use jostle_metrics::{Summary, WebSummary};
use jostle_run_spec::{FlowSpec, RunSpec, SourceSpec, WebSpec};
use jostle_units::LinkId;

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
/// A request and the main object of a new connection: the request, the SYN, its answer, two segments.
const MAIN: f64 = 4.0 * WAY + (416.0 + 74.0) * UP + (74.0 + 2.0 * 1514.0) * DOWN;
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

/// The ACK of the object before it goes up with the request for the next one: whichever is first is in
/// the other one's way. The ACK of every second segment leaves at once, that of a single one is delayed,
/// and Linux's receiver acknowledges the first packets of a connection at once: each object costs an ACK.
#[test]
fn one_connection_asks_for_one_object_after_the_other() {
    let seen = loads(&measure(&home(10, vec![reader(pages(3, 1))])));
    let (least, acks) = (MAIN + 0.01 + 3.0 * OBJECT, 3.0 * 66.0 * UP);
    let mean = seen.page_load_time_mean_s.unwrap();
    assert!(
        (least - 1e-6..least + acks + 1e-6).contains(&mean),
        "{mean} s, by hand {least} + {acks}"
    );
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
fn requests_that_are_lost_are_repeated() {
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
