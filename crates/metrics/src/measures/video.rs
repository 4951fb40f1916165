//! Measures of a video session over the complete run.

use jostle_units::Span;

use super::definition::measures_of_a_run;
use jostle_traffic::VideoSession;

measures_of_a_run! {
    /// Summary of a video session over the complete run.
    pub(crate) VideoSummary, of VideoSession by Video;
    /// Time from the opening of a video flow until playback begins; absent if it never begins.
    startup_delay_s: Option<f64>, "startup_delay", "start-up delay", TIME; startup_delay;
    /// Time in which playback is stalled because the player's buffer is empty ÷ time since playback
    /// began. The time after the end of the video does not count.
    rebuffering_ratio: Option<f64>, "rebuffering", "rebuffering", PERCENT; rebuffering;
    /// Number of times that the player's buffer runs empty.
    rebufferings: Option<f64>, "rebufferings", "rebufferings", NUMBER; rebufferings;
    /// Mean encoding bitrate of the segments received; the sizes of the segments do not matter.
    video_bitrate_bps: Option<f64>, "bitrate", "bitrate", RATE; bitrate;
    /// Number of video segments whose bitrate differs from the previous segment's.
    bitrate_switches: Option<f64>, "bitrate_switches", "bitrate switches", NUMBER; switches;
    /// Video segments received.
    video_segments: Option<f64>, "video_segments", "video segments", NUMBER; segments;
}

fn startup_delay(video: &VideoSession) -> Option<f64> {
    Some(seconds(video.playback.started()?.since(video.opened)))
}

fn rebuffering(video: &VideoSession) -> Option<f64> {
    let (stalled, _) = video.playback.stalls();
    let watched = video.playback.played() + stalled;
    (!watched.is_zero()).then(|| stalled.as_ns() as f64 / watched.as_ns() as f64)
}

fn rebufferings(video: &VideoSession) -> Option<f64> {
    video.playback.started()?;
    Some(video.playback.stalls().1 as f64)
}

fn bitrate(video: &VideoSession) -> Option<f64> {
    let segments = video.playback.segments();
    (segments > 0).then(|| video.playback.bitrates_bps() as f64 / segments as f64)
}

fn switches(video: &VideoSession) -> Option<f64> {
    (video.playback.segments() > 0).then(|| video.playback.switches() as f64)
}

fn segments(video: &VideoSession) -> Option<f64> {
    Some(video.playback.segments() as f64)
}

fn seconds(span: Span) -> f64 {
    crate::tables::seconds(span.as_ns())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jostle_units::Time;

    use jostle_run_spec::{VideoChoice, VideoSpec};
    use jostle_traffic::PlayerBuffer;

    #[test]
    fn a_video_that_stalls_for_a_fifth_of_the_time_says_so() {
        let spec = VideoSpec {
            bitrates_bps: vec![1_000_000, 3_000_000],
            segment_ns: 4_000_000_000,
            segments: None,
            variation: 0.0,
            choice: VideoChoice::Throughput { samples: 1, safety: 1.0 },
            startup_ns: 4_000_000_000,
            buffer_ns: 20_000_000_000,
        };
        let at = |s: u64| Time::from_ns(s * 1_000_000_000);
        let mut playback = PlayerBuffer::new(&spec);
        assert_eq!(
            VideoSummary::of(&VideoSession { opened: at(2), playback: playback.clone() }),
            VideoSummary { video_segments: Some(0.0), ..VideoSummary::default() }
        );
        // It plays from 3 s to 7 s, and from 9 s to 13 s.
        playback.loaded(at(3), 1_000_000);
        playback.loaded(at(9), 3_000_000);
        playback.advance(at(13));
        let summary = VideoSummary::of(&VideoSession { opened: at(2), playback });
        let expected = VideoSummary {
            startup_delay_s: Some(1.0),
            rebuffering_ratio: Some(0.2),
            rebufferings: Some(1.0),
            video_bitrate_bps: Some(2e6),
            bitrate_switches: Some(1.0),
            video_segments: Some(2.0),
        };
        assert_eq!(summary, expected);
    }
}
