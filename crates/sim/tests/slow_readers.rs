//! Applications that read slowly close the receive window.

use jostle_metrics::{EventSink, Summary};
use jostle_run_spec::*;
use jostle_units::{ConnectionId, Span, Time};
use proptest::prelude::*;

use crate::common::*;

const WINDOW_BYTES: u64 = 500_000;

fn reader(rate_bps: Option<u64>, pauses: &[(u64, u64)]) -> Option<ReaderSpec> {
    let pause =
        |&(at_ns, duration_ns): &(u64, u64)| PauseSpec { at_ns, duration_ns, every_ns: None };
    let pauses = pauses.iter().map(pause).collect();
    Some(ReaderSpec { rate_bps, read_bytes: 65_536, pauses })
}

fn slow(source: SourceSpec, reader: Option<ReaderSpec>) -> FlowSpec {
    let receive_window_bytes = WINDOW_BYTES;
    FlowSpec { source, reader, receive_window_bytes, ..flow("one", "cubic", 40 * MS) }
}

fn of(flow: FlowSpec) -> RunSpec {
    let bottleneck = link("bottleneck", 20 * MBPS, 150_000);
    let spec = run(20 * S, vec![bottleneck], vec![flow]);
    spec.validate().unwrap();
    spec
}

/// What arrived in order, when, and when responses were read.
#[derive(Default)]
struct Arrivals {
    delivered: Vec<(Time, u64)>,
    responses: Vec<Time>,
}

impl EventSink for Arrivals {
    fn delivered(&mut self, now: Time, _: ConnectionId, bytes: u64) {
        self.delivered.push((now, bytes));
    }

    fn response_complete(&mut self, now: Time, _: ConnectionId, _: Span) {
        self.responses.push(now);
    }
}

impl Arrivals {
    fn of(spec: &RunSpec) -> Self {
        let mut arrivals = Self::default();
        jostle_sim::run(spec, &mut arrivals, &|| false).unwrap();
        arrivals
    }

    fn bytes_until(&self, at: Time) -> u64 {
        self.delivered.iter().take_while(|(time, _)| *time <= at).map(|(_, bytes)| bytes).sum()
    }
}

fn transports(flow: &FlowSpec) -> [FlowSpec; 2] {
    [flow.clone(), over_quic(flow.clone())]
}

/// On Linux 6.1, 931,400 bytes arrive at a window of 500 kB of which nothing is read; a QUIC
/// connection has the window that it was given, and a datagram that arrived before it shrank.
#[test]
fn nothing_arrives_beyond_a_buffer_that_nobody_reads() {
    for (flow, range) in transports(&slow(SourceSpec::Bulk, reader(None, &[(0, 12 * S)])))
        .into_iter()
        .zip([929_000..=933_000, 495_000..=503_000])
    {
        let arrivals = Arrivals::of(&of(flow));
        let held = arrivals.bytes_until(Time::from_ns(12 * S - 1));
        assert!(range.contains(&held), "{held}");
        // Then it reads at once: 20 Mbit/s for 8 s, of which slow start takes some.
        let after = arrivals.bytes_until(Time::from_ns(20 * S)) - held;
        assert!((15_000_000..=20_000_000).contains(&after), "{after}");
    }
}

fn limited(summary: &Summary) -> f64 {
    settled(summary, 0).receive_window_limited.unwrap()
}

#[test]
fn goodput_is_the_rate_of_the_reader() {
    for (flow, least) in transports(&slow(SourceSpec::Bulk, reader(Some(8 * MBPS), &[])))
        .into_iter()
        .zip([0.9, 0.75])
    {
        let arrivals = Arrivals::of(&of(flow.clone()));
        let [first, last] = [5, 20].map(|s| arrivals.bytes_until(Time::from_ns(s * S)));
        let rate_bps = (last - first) as f64 * 8.0 / 15.0;
        assert!((rate_bps - 8e6).abs() < 0.15e6, "{rate_bps}");
        let limited = limited(&measure(&of(flow)));
        assert!(limited > least, "{limited}");
    }
}

/// A response is complete when the application has read its last byte.
#[test]
fn responses_end_when_they_are_read() {
    let source = SourceSpec::RequestResponse {
        bytes: 1_000_000.into(),
        think_ns: 0.into(),
        count: Some(2.into()),
    };
    for flow in transports(&slow(source, reader(Some(4 * MBPS), &[(3 * S, 2 * S)]))) {
        let ends: Vec<_> = Arrivals::of(&of(flow)).responses;
        let ends = ends.iter().map(|at| at.as_secs_f64()).collect::<Vec<_>>();
        // 1 MB at 4 Mbit/s is 2 s, the second one waits for the pause; the last read of a response is
        // handled after it.
        assert_eq!(ends.len(), 2);
        assert!((1.8..2.2).contains(&ends[0]) && (5.6..6.2).contains(&ends[1]), "{ends:?}");
    }
}

#[test]
fn a_reader_behind_a_proxy_stops_the_whole_path() {
    let mut spec = of(slow(SourceSpec::Bulk, None));
    let relay = SourceSpec::Relay { from: jostle_units::FlowId(0), buffer_bytes: 200_000 };
    let reader = reader(None, &[(0, 60 * S)]);
    let path = vec![jostle_units::LinkId(1)];
    spec.links.push(link("last", 20 * MBPS, 150_000));
    spec.flows.push(FlowSpec { name: "one@".to_owned(), path, reader, ..slow(relay, None) });
    spec.validate().unwrap();
    let arrivals = Arrivals::of(&spec);
    let last = arrivals.delivered.last().unwrap().0;
    assert!(last < Time::from_ns(3 * S), "{last}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever arrives fits into the buffer next to what can have been read, and all of it is read
    /// in the end.
    #[test]
    fn a_reader_never_holds_more_than_its_buffer(
        rate_mbps in 1u64..40,
        window_bytes in 20_000u64..2_000_000,
        read_bytes in 500u64..300_000,
        (at_ms, pause_ms) in (0u64..3_000, 1u64..3_000),
        (is_quic, loss) in (any::<bool>(), 0.0..0.02),
    ) {
        let pauses = vec![PauseSpec { at_ns: at_ms * MS, duration_ns: pause_ms * MS, every_ns: None }];
        let rate_bps = Some(rate_mbps * MBPS);
        let bytes = 300_000 * rate_mbps;
        let flow = FlowSpec {
            receive_window_bytes: window_bytes,
            initial_receive_window_bytes: window_bytes.min(65_535),
            reader: Some(ReaderSpec { rate_bps, read_bytes, pauses }),
            ..slow(SourceSpec::Fixed { bytes: bytes.into() }, None)
        };
        let mut spec = of(if is_quic { over_quic(flow) } else { flow });
        spec.duration_ns = 120 * S;
        spec.links[0].loss = lost(loss);
        let arrivals = Arrivals::of(&spec);
        // TCP holds up to twice its window, which is half of its memory.
        let most = if is_quic { window_bytes + 3_000 } else { 2 * window_bytes };
        let mut total = 0;
        for &(at, arrived) in &arrivals.delivered {
            total += arrived;
            let readable = rate_mbps * at.as_ns() / 8_000 + read_bytes;
            prop_assert!(total <= readable + most, "{total} at {at}");
        }
        prop_assert_eq!(total, bytes);
    }
}
