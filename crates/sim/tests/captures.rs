//! What is told of segments: every one at both ends, with headers that belong together.

use std::collections::BTreeSet;

use crate::common::*;
use jostle_link::Ecn;
use jostle_metrics::{EndpointRole, EventSink, HeaderKind, Recorder, SegmentHeader, Summary};
use jostle_run_spec::{JitterSpec, Quantile, RunSpec, SourceSpec};
use jostle_units::{ConnectionId, FULL_PACKET_BYTES, LinkId, Time};

/// Every segment of one flow.
#[derive(Default)]
struct Seen(Vec<(Time, EndpointRole, SegmentHeader)>);

impl EventSink for Seen {
    fn wants_segments(&self) -> bool {
        true
    }

    fn segment(
        &mut self,
        now: Time,
        flow: ConnectionId,
        end: EndpointRole,
        header: &SegmentHeader,
    ) {
        assert_eq!(flow, ConnectionId(0));
        assert!(self.0.last().is_none_or(|(before, ..)| *before <= now));
        self.0.push((now, end, *header));
    }
}

impl Seen {
    fn at(
        &self,
        end: EndpointRole,
        kind: HeaderKind,
    ) -> impl Iterator<Item = &(Time, EndpointRole, SegmentHeader)> {
        self.0.iter().filter(move |(_, at, header)| *at == end && header.kind == kind)
    }
}

fn capture(spec: &RunSpec) -> (Summary, Seen) {
    spec.validate().unwrap();
    let mut both = (Recorder::new(spec), Seen::default());
    jostle_sim::run(spec, &mut both, &|| false).unwrap();
    (both.0.finish().summary, both.1)
}

/// Losses, a congested and jittery way back, marks.
fn rough() -> RunSpec {
    let mut there = link("there", 20 * MBPS, 100_000);
    there.queue = part("codel", json!({"limit": {"bytes": 200_000}, "ecn": true}));
    there.loss = lost(0.002);
    let mut back = link("back", 2 * MBPS, 20_000);
    back.loss = lost(0.01);
    let quantile = |probability, value_ns| Quantile { probability, value_ns };
    back.delay.jitter = Some(JitterSpec {
        quantiles: vec![quantile(0.0, 0), quantile(1.0, 5 * MS)],
        correlation_ns: 0,
        reorder: true,
    });
    let mut only = flow("only", "cubic", 40 * MS);
    only.reverse_path = vec![LinkId(1)];
    only.ecn = true;
    run(20 * S, vec![there, back], vec![only])
}

#[test]
fn counts_are_those_of_the_summary() {
    let (summary, seen) = capture(&rough());
    let measured = summary.flows[0].phases.get("overall").unwrap();
    let sent: Vec<u32> =
        seen.at(EndpointRole::Sender, HeaderKind::Data).map(|row| row.2.number).collect();
    assert_eq!(sent.len() as u64, measured.sent_packets);
    let different: BTreeSet<u32> = sent.iter().copied().collect();
    let again = sent.len() - different.len();
    assert!(again > 10);
    assert_eq!(Some(again as u64), measured.retransmitted_packets);
    let received = seen.at(EndpointRole::Receiver, HeaderKind::Data).count() as f64;
    let bits = received * f64::from(FULL_PACKET_BYTES) * 8.0;
    assert_eq!((bits / 20.0).round(), measured.throughput_bps.round());
    let marked = seen
        .at(EndpointRole::Receiver, HeaderKind::Data)
        .filter(|row| row.2.ecn == Ecn::Marked)
        .count();
    let links = summary.links[0].phases.get("overall").unwrap();
    // Some that were marked are lost, or on their way at the end.
    assert!(marked > 0 && marked as u64 <= links.marked_packets);
}

#[test]
fn what_leaves_one_end_reaches_the_other_as_it_was() {
    let (_, seen) = capture(&rough());
    let said = |header: &SegmentHeader| {
        let SegmentHeader { number, tsval_ms, tsecr_ms, window_packets, blocks, .. } = *header;
        (number, tsval_ms, tsecr_ms, window_packets, blocks)
    };
    for (from, kind) in
        [(EndpointRole::Sender, HeaderKind::Data), (EndpointRole::Receiver, HeaderKind::Ack)]
    {
        let to = if from == EndpointRole::Sender {
            EndpointRole::Receiver
        } else {
            EndpointRole::Sender
        };
        let left: BTreeSet<_> = seen.at(from, kind).map(|row| said(&row.2)).collect();
        let mut arrived = 0;
        for (_, _, header) in seen.at(to, kind) {
            assert!(left.contains(&said(header)), "{header:?}");
            arrived += 1;
        }
        assert!(arrived > 1000);
    }
}

#[test]
fn time_stamps_are_those_of_rfc_7323() {
    let (_, seen) = capture(&rough());
    let clock_ms = |now: Time| (now.as_ns() / MS) as u32 + 1;
    let (mut at_sender, mut at_receiver) = (0, BTreeSet::new());
    for (now, end, header) in &seen.0 {
        match (end, header.kind) {
            (
                EndpointRole::Sender,
                HeaderKind::Syn | HeaderKind::HandshakeAck | HeaderKind::Data,
            ) => {
                assert_eq!(header.tsval_ms, clock_ms(*now));
                assert_eq!(header.tsecr_ms, at_sender);
            }
            (EndpointRole::Sender, _) => at_sender = at_sender.max(header.tsval_ms),
            (
                EndpointRole::Receiver,
                HeaderKind::Syn | HeaderKind::HandshakeAck | HeaderKind::Data,
            ) => {
                at_receiver.insert(header.tsval_ms);
            }
            (EndpointRole::Receiver, _) => {
                assert_eq!(header.tsval_ms, clock_ms(*now));
                assert!(at_receiver.contains(&header.tsecr_ms));
            }
        }
    }
}

#[test]
fn a_connection_opens_with_a_handshake() {
    let mut spec = run(2 * S, vec![link("only", 10 * MBPS, 50_000)], vec![]);
    let mut one = flow("one", "reno", 40 * MS);
    one.nic_rate_bps = Some(10 * MBPS);
    one.source = SourceSpec::Fixed { bytes: 10_000.into() };
    spec.flows = vec![one];
    let (_, seen) = capture(&spec);
    let first: Vec<_> = seen.0.iter().take(4).map(|(_, end, header)| (*end, header.kind)).collect();
    let expected = [
        (EndpointRole::Sender, HeaderKind::Syn),
        (EndpointRole::Receiver, HeaderKind::Syn),
        (EndpointRole::Receiver, HeaderKind::SynAck),
        (EndpointRole::Sender, HeaderKind::SynAck),
    ];
    assert_eq!(first, expected);
    // It is seen when the card has sent it.
    let at = seen.0[0].0;
    assert_eq!(at.as_ns(), 74 * 8 * 100);
    let payload: u32 = seen
        .at(EndpointRole::Receiver, HeaderKind::Data)
        .map(|row| u32::from(row.2.payload_bytes))
        .sum();
    assert_eq!(payload, 10_000);
}
