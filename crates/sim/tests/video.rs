//! Adaptive streaming on links where the answer can be worked out by hand.

use crate::common::*;
use jostle_metrics::{Summary, VideoSummary};
use jostle_run_spec::{FlowSpec, RunSpec, SourceSpec, VideoChoice, VideoSpec};

fn video(bitrates_bps: &[u64], choice: VideoChoice) -> VideoSpec {
    VideoSpec {
        bitrates_bps: bitrates_bps.to_vec(),
        segment_ns: 4 * S,
        segments: None,
        variation: 0.0,
        choice,
        startup_ns: 4 * S,
        buffer_ns: 60 * S,
    }
}

fn watched(video: VideoSpec, rtt_ns: u64) -> FlowSpec {
    FlowSpec { source: SourceSpec::Video(video), ..flow("video", "cubic", rtt_ns) }
}

fn alone(duration_ns: u64, rate_bps: u64, flow: FlowSpec) -> RunSpec {
    run(duration_ns, vec![link("bottleneck", rate_bps, 100_000)], vec![flow])
}

fn seen(summary: &Summary) -> &VideoSummary {
    summary.flows[0].video.as_ref().unwrap()
}

const BY_THROUGHPUT: VideoChoice = VideoChoice::Throughput { samples: 3, safety: 0.85 };

/// The client's SYN and the server's answer, the request with the last part of the handshake, then
/// ten packets of 1514 bytes at 10 Mbit/s. The whole round trip of 100 ms lies on the way back, which
/// is crossed twice; the SYN of 74 bytes takes 59 us, the ACK of the SYN-ACK 53 us.
#[test]
fn a_video_starts_two_round_trips_and_a_segment_after_it_was_opened() {
    let mut small = video(&[115_840], BY_THROUGHPUT);
    (small.segment_ns, small.startup_ns) = (S, S);
    let summary = measure(&alone(2 * S, 10 * MBPS, watched(small, 100 * MS)));
    let expected_s = 0.1 + 59.2e-6 + 0.1 + 52.8e-6 + 10.0 * 1514.0 * 8.0 / 10e6;
    let startup_s = seen(&summary).startup_delay_s.unwrap();
    assert!((startup_s - expected_s).abs() < 1e-6, "{startup_s} s, by hand {expected_s}");
}

/// Segments come at up to 4.78 Mbit/s, less what slow start and a round trip cost: 85 % of that
/// carries 2 Mbit/s and never 4.5. The first segment has the lowest bitrate.
#[test]
fn the_throughput_chooses_the_highest_bitrate_below_it() {
    for quic in [false, true] {
        let tcp = watched(video(&[500_000, 2_000_000, 4_500_000], BY_THROUGHPUT), 40 * MS);
        let flow = if quic { over_quic(tcp) } else { tcp };
        let summary = measure(&alone(100 * S, 5 * MBPS, flow));
        let seen = seen(&summary);
        let segments = seen.video_segments.unwrap();
        // What has been played, and a buffer that is full but for the segment under way.
        assert!((38.0..=40.0).contains(&segments), "{segments}");
        let expected_bps = (0.5e6 + 2e6 * (segments - 1.0)) / segments;
        assert!((seen.video_bitrate_bps.unwrap() - expected_bps).abs() < 1.0, "QUIC: {quic}");
        assert_eq!(seen.bitrate_switches, Some(1.0), "QUIC: {quic}");
        assert_eq!(seen.rebuffering_ratio, Some(0.0), "QUIC: {quic}");
    }
}

/// A link between two bitrates: a player that goes by its buffer uses all of it, in turns above and
/// below, and its buffer stays in the cushion.
#[test]
fn the_buffer_takes_turns_between_the_bitrates_around_the_capacity() {
    let choice = VideoChoice::Buffer { reservoir_ns: 20 * S, cushion_ns: 30 * S };
    let flow = watched(video(&[1_000_000, 2_000_000, 4_000_000], choice), 20 * MS);
    let summary = measure(&alone(600 * S, 3 * MBPS, flow));
    let seen = seen(&summary);
    let utilisation = summary.links[0].phases.get("second half").unwrap().utilisation.unwrap();
    assert!(utilisation > 0.98, "{utilisation}");
    // What came was played or is in the buffer, which holds 20 to 50 s.
    let goodput_bps = 3e6 * 1448.0 / 1514.0;
    let bitrate_bps = seen.video_bitrate_bps.unwrap();
    let range = goodput_bps * 0.98 * 600.0 / 650.0..goodput_bps * 600.0 / 620.0;
    assert!(range.contains(&bitrate_bps), "{bitrate_bps} of {range:?}");
    assert_eq!(seen.rebuffering_ratio, Some(0.0));
    assert!(seen.bitrate_switches.unwrap() > 4.0);
}

/// A bitrate of 1 Mbit/s over a link that carries 0.861 Mbit/s of payload: the video stands still for
/// 1 - 0.861 of the time.
#[test]
fn a_link_below_the_lowest_bitrate_makes_a_video_stand_still() {
    let flow = watched(video(&[1_000_000], BY_THROUGHPUT), 10 * MS);
    let summary = measure(&alone(1_000 * S, 900_000, flow));
    let seen = seen(&summary);
    let expected = 1.0 - 0.9 * 1448.0 / 1514.0;
    let stalled = seen.rebuffering_ratio.unwrap();
    assert!((stalled - expected).abs() < 0.01, "{stalled}, by hand {expected}");
    // Each segment is played as soon as it has come; the last one may still be.
    let playing = seen.video_segments.unwrap() - seen.rebufferings.unwrap();
    assert!((0.0..=1.0).contains(&playing), "{playing}");
}

#[test]
fn a_video_that_ends_is_complete_and_does_not_stand_still() {
    let mut short = video(&[1_000_000], BY_THROUGHPUT);
    short.segments = Some(5);
    let summary = measure(&alone(60 * S, 5 * MBPS, watched(short, 40 * MS)));
    let completion_time_s = summary.flows[0].completion_time_s.unwrap();
    // 2.5 MB at 4.78 Mbit/s, five requests and slow start.
    assert!((4.18..5.0).contains(&completion_time_s), "{completion_time_s} s");
    assert_eq!(seen(&summary).rebufferings, Some(0.0));
    assert_eq!(seen(&summary).video_segments, Some(5.0));
}
