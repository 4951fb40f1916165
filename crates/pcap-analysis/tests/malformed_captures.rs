//! Files that nobody should trust: damaged, invented, cut off. No panic, and a clear message.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use jostle_pcap_analysis::{
    AnalysisOptions, Error, Kind, Measurement, TimeSequence, TimeSequenceOptions,
    extract_flow_packets, look,
};
use proptest::prelude::*;

/// The clock of an interface may have a resolution of years.
#[test]
fn a_time_that_no_clock_can_have_ends_the_analysis() {
    let interface = [1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let segments = [Segment::data(1, 1_000), Segment::ack(1_001, &[])];
    let mut bytes = block(0x0a0d_0d0a, &section());
    bytes.extend(block(1, &interface));
    for (segment, time) in segments.iter().zip([0, u32::MAX]) {
        let frame = segment.frame();
        let mut body = Vec::new();
        for word in [0, time, time, frame.len() as u32, 1_514] {
            body.extend(word.to_le_bytes());
        }
        body.extend(&frame);
        body.resize(body.len().next_multiple_of(4), 0);
        bytes.extend(block(6, &body));
    }
    let measured = look(&bytes, &OPTIONS).unwrap();
    assert_eq!(measured.packets, 2);
}

const OPTIONS: AnalysisOptions = AnalysisOptions { flows: 4, interval_ns: 1_000_000_000 };

/// A segment between two hosts.
#[derive(Clone, Debug)]
struct Segment {
    up: bool,
    flags: u8,
    sequence: u32,
    acknowledgment: u32,
    payload: u16,
    window: u16,
    options: Vec<u8>,
    wait_us: u32,
    /// Bytes that are kept of it.
    kept: usize,
}

const SYN: u8 = 2;
const ACK: u8 = 16;
const FIN: u8 = 1;

impl Segment {
    fn data(sequence: u32, payload: u16) -> Self {
        Self {
            up: true,
            flags: ACK,
            sequence,
            acknowledgment: 1,
            payload,
            window: 1_000,
            options: Vec::new(),
            wait_us: 1_000,
            kept: usize::MAX,
        }
    }

    fn ack(acknowledgment: u32, blocks: &[(u32, u32)]) -> Self {
        let mut options = Vec::new();
        if !blocks.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
            for (start, end) in blocks {
                options.extend(start.to_be_bytes());
                options.extend(end.to_be_bytes());
            }
        }
        Self { up: false, acknowledgment, payload: 0, options, ..Self::data(1, 0) }
    }

    fn with_stamps(mut self, value: u32, echo: u32) -> Self {
        self.options.extend([1, 1, 8, 10]);
        self.options.extend(value.to_be_bytes());
        self.options.extend(echo.to_be_bytes());
        self
    }

    fn frame(&self) -> Vec<u8> {
        let mut options = self.options.clone();
        options.truncate(40);
        options.resize(options.len().next_multiple_of(4), 0);
        let total = 40 + options.len() as u16 + self.payload.min(60_000);
        let up = u8::from(self.up);
        let mut bytes = vec![0; 12];
        bytes.extend([0x08, 0x00, 0x45, 0]);
        bytes.extend(total.to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, up, 10, 0, 0, 1 - up]);
        bytes.extend([0, 80 + up, 0, 81 - up]);
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.acknowledgment.to_be_bytes());
        bytes.extend([(5 + options.len() as u8 / 4) << 4, self.flags]);
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(options);
        bytes
    }
}

/// A capture in the format of pcap.
fn pcap(segments: &[Segment]) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    file.extend([0; 8]);
    file.extend([0xff, 0xff, 0, 0, 1, 0, 0, 0]);
    let mut now_us = 0_u64;
    for segment in segments {
        now_us += u64::from(segment.wait_us);
        let frame = segment.frame();
        let size = frame.len() as u32 + u32::from(segment.payload.min(60_000));
        let kept = &frame[..frame.len().min(segment.kept)];
        file.extend(((now_us / 1_000_000) as u32).to_le_bytes());
        file.extend(((now_us % 1_000_000) as u32).to_le_bytes());
        file.extend((kept.len() as u32).to_le_bytes());
        file.extend(size.to_le_bytes());
        file.extend(kept);
    }
    file
}

/// A block of pcapng.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes(), &length[..], body, &length].concat()
}

/// The body of a section header of unknown length.
fn section() -> Vec<u8> {
    [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat()
}

fn measured(segments: &[Segment]) -> Measurement {
    look(&pcap(segments), &OPTIONS).unwrap()
}

const EVERYTHING: TimeSequenceOptions =
    TimeSequenceOptions { flow: None, from_ns: 0, to_ns: u64::MAX, rows: 1_000 };

fn drawn(segments: &[Segment], wanted: &TimeSequenceOptions) -> TimeSequence {
    extract_flow_packets(&pcap(segments), &OPTIONS, wanted).unwrap()
}

/// A number in the summary of the only flow.
fn of(measurement: &Measurement, key: &str) -> serde_json::Value {
    let flow = serde_json::to_value(&measurement.record.summary.flows[0]).unwrap();
    flow.get(key).or_else(|| flow["phases"]["overall"].get(key)).cloned().unwrap()
}

/// EtherTypes, with the IP headers of tunnels in front of what is drawn.
const ENCAPSULATIONS: [&[u8]; 9] = [
    &[0x88, 0x47],
    &[0x88, 0x64],
    &[0x89, 0x4f],
    &[0x89, 0x3f],
    &[0x08, 0x00, 0x45, 0, 0, 100, 0, 1, 0, 0, 64, 47, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
    &[0x08, 0x00, 0x45, 0, 0, 100, 0, 1, 0, 0, 64, 4, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
    // A fragment of UDP.
    &[0x08, 0x00, 0x45, 0, 0, 100, 0, 1, 0x20, 9, 64, 17, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
    // VXLAN and GTP-U.
    &[
        0x08, 0x00, 0x45, 0, 0, 100, 0, 1, 0, 0, 64, 17, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 0x12,
        0xb5, 0, 80, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
    ],
    &[
        0x08, 0x00, 0x45, 0, 0, 100, 0, 1, 0, 0, 64, 17, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 0x08,
        0x68, 0, 80, 0, 0, 0x34, 0xff,
    ],
];

/// First bytes of snoop and of Kuznetzov's pcap in both byte orders.
const CONTAINERS: [&[u8]; 3] = [
    b"snoop\0\0\0\0\0\0\x02\0\0\0\x04",
    &[0x34, 0xcd, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0],
    &[0xa1, 0xb2, 0xcd, 0x34, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 1],
];

fn any_segment() -> impl Strategy<Value = Segment> {
    let near = prop_oneof![0..20_000_u32, Just(u32::MAX - 3_000), any::<u32>()];
    let number = (near, 0..5_u32).prop_map(|(near, step)| near.wrapping_add(step * 1_000));
    let block = (number.clone(), 0..5_000_u32).prop_map(|(at, size)| (at, at.wrapping_add(size)));
    let options = prop_oneof![
        3 => Just(Vec::new()),
        3 => proptest::collection::vec(block, 1..4)
            .prop_map(|blocks| Segment::ack(0, &blocks).options),
        2 => (any::<u32>(), any::<u32>())
            .prop_map(|(value, echo)| Segment::data(0, 0).with_stamps(value, echo).options),
        1 => proptest::collection::vec(any::<u8>(), 0..40),
    ];
    let sizes = (prop_oneof![Just(0_u16), Just(1), 0..3_000_u16, any::<u16>()], any::<u16>());
    let kept = prop_oneof![4 => Just(usize::MAX), 1 => 0..80_usize];
    let place = (any::<bool>(), prop_oneof![4 => Just(ACK), 1 => any::<u8>()]);
    (place, number.clone(), number, sizes, options, 0..2_000_000_u32, kept).prop_map(
        |((up, flags), sequence, acknowledgment, (payload, window), options, wait_us, kept)| {
            Segment { up, flags, sequence, acknowledgment, payload, window, options, wait_us, kept }
        },
    )
}

proptest! {
    #[test]
    fn no_sequence_of_segments_is_too_strange(segments in proptest::collection::vec(any_segment(), 1..120)) {
        if let Ok(found) = look(&pcap(&segments), &OPTIONS) {
            for flow in found.record.summary.flows {
                let text = serde_json::to_string(&flow).unwrap();
                prop_assert!(!text.contains("null,null,null,inf"), "{text}");
            }
        }
    }

    #[test]
    fn no_diagram_has_more_rows_than_are_wanted(
        segments in proptest::collection::vec(any_segment(), 1..120),
        rows in 0..40_usize,
        (from_ns, length_ns) in (0..60_000_000_000_u64, 0..60_000_000_000_u64),
    ) {
        let wanted = TimeSequenceOptions { flow: None, from_ns, to_ns: from_ns + length_ns, rows };
        if let Ok(found) = extract_flow_packets(&pcap(&segments), &OPTIONS, &wanted) {
            let TimeSequence { packets, answers, sacks, .. } = &found;
            for times in [&packets.time_ns, &answers.time_ns, &sacks.time_ns] {
                prop_assert!(times.len() <= rows);
                prop_assert!(times.is_sorted());
                prop_assert!(times.iter().all(|at| (from_ns..=found.to_ns).contains(at)));
            }
            prop_assert!(packets.start.iter().zip(&packets.end).all(|(start, end)| start < end));
            prop_assert!(packets.kind.iter().all(|kind| usize::from(*kind) < Kind::NAMES.len()));
        }
    }

    #[test]
    fn no_encapsulation_is_too_strange(
        link in proptest::sample::select(vec![0_u32, 1, 9, 50, 51, 101, 104, 113, 204, 219, 276]),
        kind in proptest::sample::select(ENCAPSULATIONS.to_vec()),
        frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..120), 1..60),
    ) {
        let mut file = pcap(&[Segment::data(1, 1_000)]);
        file[20..24].copy_from_slice(&link.to_le_bytes());
        for (at, bytes) in frames.iter().enumerate() {
            let frame = if link == 1 { [&[0; 12][..], kind, bytes].concat() } else { bytes.clone() };
            let kept = frame.len() as u32;
            for number in [at as u32 / 2, 0, kept, 1_500] {
                file.extend(number.to_le_bytes());
            }
            file.extend(frame);
        }
        let _ = look(&file, &OPTIONS);
    }

    #[test]
    fn no_container_is_too_strange(
        start in proptest::sample::select(CONTAINERS.to_vec()),
        bytes in proptest::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..600),
    ) {
        let _ = look(&[start, &bytes].concat(), &OPTIONS);
    }

    #[test]
    fn no_bytes_are(bytes in proptest::collection::vec(any::<u8>(), 0..600), cut in 0..400_usize) {
        let _ = look(&bytes, &OPTIONS);
        let segments: Vec<_> = (0..9).map(|at| Segment::data(at * 1_000, 1_000)).collect();
        let mut file = pcap(&segments);
        file.truncate(file.len().saturating_sub(cut));
        let at = cut % file.len().max(1);
        if let Some(place) = file.get_mut(at) {
            *place ^= bytes.first().copied().unwrap_or(0x5a);
        }
        let _ = look(&file, &OPTIONS);
    }
}

#[test]
fn numbers_that_wrap_are_no_retransmissions() {
    let start = u32::MAX - 2_500;
    let mut segments = Vec::new();
    for at in 0..10 {
        segments.push(Segment::data(start.wrapping_add(at * 1_000), 1_000));
        segments.push(Segment::ack(start.wrapping_add((at + 1) * 1_000), &[]));
    }
    let found = measured(&segments);
    assert_eq!(of(&found, "retransmitted_packets"), 0);
    assert_eq!(of(&found, "sent_packets"), 10);
}

#[test]
fn sacks_beyond_what_was_sent_are_left_out() {
    let segments = [
        Segment::data(1, 1_000),
        Segment::data(1_001, 1_000),
        Segment::ack(1, &[(5_000, 900_000)]),
        Segment::ack(2_001, &[]),
    ];
    let found = measured(&segments);
    assert_eq!(of(&found, "retransmitted_packets"), 0);
    assert_eq!(found.record.flows.in_flight_bytes, [0.0]);
}

#[test]
fn what_is_sent_again_is_told_apart() {
    let mut segments: Vec<_> = (0..6).map(|at| Segment::data(1 + at * 1_000, 1_000)).collect();
    // The first is lost; SACKs tell.
    segments.push(Segment::ack(1, &[(1_001, 6_001)]));
    segments.push(Segment::data(1, 1_000));
    segments.push(Segment::ack(6_001, &[]));
    // The last is asked for by a probe, which was not needed: a D-SACK.
    segments.push(Segment::data(6_001, 1_000));
    segments.push(Segment::data(6_001, 1_000));
    segments.push(Segment::ack(7_001, &[]));
    segments.push(Segment::ack(7_001, &[(6_001, 7_001)]));
    // Nothing comes back of two: a timeout.
    segments.push(Segment::data(7_001, 1_000));
    segments.push(Segment::data(8_001, 1_000));
    segments.push(Segment::data(7_001, 1_000));
    let found = measured(&segments);
    let counts = [
        "retransmitted_packets",
        "fast_retransmissions",
        "tlp_retransmissions",
        "rto_retransmissions",
        "spurious_retransmissions",
    ];
    assert_eq!(counts.map(|key| of(&found, key)), [3, 1, 1, 1, 1].map(serde_json::Value::from));
}

#[test]
fn a_diagram_has_every_packet_and_what_the_receiver_said_of_it() {
    let mut segments: Vec<_> = (0..4).map(|at| Segment::data(1 + at * 1_000, 1_000)).collect();
    segments.push(Segment::ack(1, &[(1_001, 3_001), (3_001, 4_001)]));
    segments.push(Segment::data(1, 1_000));
    segments.push(Segment::ack(4_001, &[(1, 1_001)]));
    segments.push(Segment::data(4_001, 500));
    segments.push(Segment::data(4_001, 500));
    let found = drawn(&segments, &EVERYTHING);
    assert_eq!(found.packets.time_ns[0], 0);
    assert_eq!(found.packets.start, [0, 1_000, 2_000, 3_000, 0, 4_000, 4_000]);
    assert_eq!(found.packets.end, [1_000, 2_000, 3_000, 4_000, 1_000, 4_500, 4_500]);
    let new = Kind::New as u8;
    let kinds = [new, new, new, new, Kind::Fast as u8, new, Kind::Probe as u8];
    assert_eq!(found.packets.kind, kinds);
    assert_eq!(found.answers.acknowledged, [0, 4_000]);
    // Without a handshake nobody knows the scale of windows.
    assert!(found.answers.edge.iter().all(|edge| edge.is_nan()));
    assert_eq!(found.sacks.start, [1_000, 3_000, 0]);
    assert_eq!(found.sacks.end, [3_000, 4_000, 1_000]);
    assert_eq!(found.sacks.is_duplicate, [false, false, true]);
    assert!(found.is_near_sender && !found.is_cut);

    // A window, and too few rows for it.
    let wanted = TimeSequenceOptions { from_ns: 1_000_000, to_ns: 6_000_000, ..EVERYTHING };
    let found = drawn(&segments, &wanted);
    assert_eq!(found.packets.start, [1_000, 2_000, 3_000, 0]);
    assert_eq!(found.answers.acknowledged, [0]);
    let found = drawn(&segments, &TimeSequenceOptions { rows: 2, ..wanted });
    assert_eq!(found.packets.start, [1_000, 2_000]);
    assert!(found.is_cut);
    assert_eq!(found.to_ns, 3_000_000);
    assert!(found.answers.time_ns.is_empty());
}

#[test]
fn a_diagram_knows_the_window_from_the_handshake() {
    let scaled = |mut segment: Segment| {
        segment.options.extend([1, 3, 3, 4]);
        segment
    };
    let segments = [
        scaled(Segment { flags: SYN, ..Segment::data(0, 0) }),
        scaled(Segment { flags: SYN | ACK, sequence: 0, ..Segment::ack(1, &[]) }),
        Segment::data(1, 1_000),
        Segment::ack(1_001, &[]),
    ];
    let found = drawn(&segments, &EVERYTHING);
    assert_eq!(found.answers.acknowledged, [1_000]);
    assert_eq!(found.answers.edge, [1_000.0 + 16_000.0]);
    let error = extract_flow_packets(
        &pcap(&segments),
        &OPTIONS,
        &TimeSequenceOptions { flow: Some("another".to_owned()), ..EVERYTHING },
    );
    assert!(matches!(error, Err(Error::Empty { .. })), "{error:?}");
}

#[test]
fn a_receiver_tells_late_packets_from_those_sent_again() {
    let handshake = [
        Segment { flags: SYN, ..Segment::data(0, 0).with_stamps(100, 0) },
        Segment { flags: SYN | ACK, sequence: 0, ..Segment::ack(1, &[]).with_stamps(500, 100) },
        Segment { wait_us: 50_000, ..Segment::data(1, 0).with_stamps(150, 500) },
    ];
    // Answers leave at once, and what they ask for takes 50 ms: this is near the receiver.
    let came = |at: u32, stamp| {
        [
            Segment {
                wait_us: 2_000,
                ..Segment::data(1 + at * 1_000, 1_000).with_stamps(stamp, 500)
            },
            Segment { wait_us: 10, ..Segment::ack(1, &[]).with_stamps(stamp + 400, stamp) },
        ]
    };
    let mut segments = handshake.to_vec();
    for (at, stamp) in [(0, 150), (2, 152), (1, 151), (4, 153), (5, 154), (3, 205), (3, 260)] {
        segments.extend(came(at, stamp));
    }
    let found = measured(&segments);
    assert_eq!(of(&found, "reordered_packets"), 1);
    assert_eq!(of(&found, "loss_bursts"), 1);
    assert_eq!(of(&found, "spurious_retransmissions"), 1);
    assert_eq!(of(&found, "cwnd_mean_bytes"), serde_json::Value::Null);
    let seen = drawn(&segments, &EVERYTHING);
    assert!(!seen.is_near_sender);
    let kinds = seen.packets.kind.iter().map(|kind| Kind::NAMES[usize::from(*kind)]);
    let expected = ["new", "new", "out_of_order", "new", "new", "again", "twice"];
    assert!(kinds.eq(expected), "{:?}", seen.packets.kind);
}

/// A network card that merges packets passes them on after the first of them was acknowledged.
#[test]
fn data_captured_after_their_ack_are_not_sent_again() {
    for stamps in [None, Some((7, 3))] {
        let stamped = |segment: Segment, (value, echo)| match stamps {
            None => segment,
            Some(_) => segment.with_stamps(value, echo),
        };
        let mut segments = [
            stamped(Segment::data(1, 1_000), (10, 3)),
            stamped(Segment::ack(2_001, &[]), (20, 11)),
            stamped(Segment::data(1_001, 2_000), (11, 3)),
            stamped(Segment::ack(3_001, &[]), (21, 11)),
        ];
        let found = measured(&segments);
        assert_eq!(of(&found, "retransmitted_packets"), 0);
        if stamps.is_some() {
            // Sent after the ACK: the copy before it was not captured.
            segments[2] = stamped(Segment::data(1_001, 1_000), (25, 20));
            assert_eq!(of(&measured(&segments), "retransmitted_packets"), 1);
        }
    }
}

#[test]
fn keep_alives_are_not_sent_again() {
    let segments = [
        Segment::data(1, 1_000),
        Segment::ack(1_001, &[]),
        Segment { wait_us: 60_000_000, ..Segment::data(1_000, 1) },
        Segment::ack(1_001, &[]),
        Segment { flags: ACK | FIN, ..Segment::data(1_001, 0) },
        Segment::ack(1_002, &[]),
    ];
    let found = measured(&segments);
    assert_eq!(of(&found, "retransmitted_packets"), 0);
    assert_eq!(of(&found, "sent_packets"), 1);
}

#[test]
fn headers_that_are_cut_off_are_counted_and_options_left_out() {
    let segments: Vec<_> = (0..3)
        .map(|at| Segment { kept: 54, ..Segment::data(1 + at * 500, 500).with_stamps(7, 9) })
        .collect();
    let found = measured(&segments);
    assert_eq!(of(&found, "sent_packets"), 3);
    let error = look(&pcap(&[Segment { kept: 40, ..Segment::data(1, 500) }]), &OPTIONS);
    assert!(matches!(error, Err(Error::Empty { .. })), "{error:?}");
}
