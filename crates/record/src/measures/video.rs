//! Measures of a video that was watched, over the whole run.

use jostle_units::Span;

use super::row::measures_of_a_run;
use crate::playback::Watched;

measures_of_a_run! {
    /// What the summary has of a video, of the whole run.
    pub(crate) VideoSummary, of Watched by Video;
    /// Time from the opening of a flow of video until the video begins to play; absent if it never
    /// does.
    startup_delay_s: Option<f64>, "startup_delay", "start-up delay", TIME; startup_delay;
    /// Time for which the video stands still because the player's buffer is empty ÷ the time since it
    /// began to play, its own end excluded.
    rebuffering_ratio: Option<f64>, "rebuffering", "rebuffering", PERCENT; rebuffering;
    /// How often the player's buffer runs empty.
    rebufferings: Option<f64>, "rebufferings", "rebufferings", NUMBER; rebufferings;
    /// Mean of the bitrates of the segments that came: what the video is encoded with, whatever its
    /// segments' sizes are.
    video_bitrate_bps: Option<f64>, "bitrate", "bitrate", RATE; bitrate;
    /// How often a segment of the video has another bitrate than the one before it.
    bitrate_switches: Option<f64>, "bitrate_switches", "bitrate switches", NUMBER; switches;
    /// Segments of the video that came.
    video_segments: Option<f64>, "video_segments", "video segments", NUMBER; segments;
}

fn startup_delay(video: &Watched) -> Option<f64> {
    Some(seconds(video.playback.started()?.since(video.opened)))
}

fn rebuffering(video: &Watched) -> Option<f64> {
    let (stalled, _) = video.playback.stalls();
    let watched = video.playback.played() + stalled;
    (!watched.is_zero()).then(|| stalled.as_ns() as f64 / watched.as_ns() as f64)
}

fn rebufferings(video: &Watched) -> Option<f64> {
    video.playback.started()?;
    Some(video.playback.stalls().1 as f64)
}

fn bitrate(video: &Watched) -> Option<f64> {
    let segments = video.playback.segments();
    (segments > 0).then(|| video.playback.bitrates_bps() as f64 / segments as f64)
}

fn switches(video: &Watched) -> Option<f64> {
    (video.playback.segments() > 0).then(|| video.playback.switches() as f64)
}

fn segments(video: &Watched) -> Option<f64> {
    Some(video.playback.segments() as f64)
}

fn seconds(span: Span) -> f64 {
    crate::tables::seconds(span.as_ns())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jostle_units::Time;

    use crate::{Playback, VideoChoice, VideoSpec};

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
        let mut playback = Playback::new(&spec);
        assert_eq!(
            VideoSummary::of(&Watched { opened: at(2), playback: playback.clone() }),
            VideoSummary { video_segments: Some(0.0), ..VideoSummary::default() }
        );
        // It plays from 3 s to 7 s, and from 9 s to 13 s.
        playback.loaded(at(3), 1_000_000);
        playback.loaded(at(9), 3_000_000);
        playback.advance(at(13));
        let summary = VideoSummary::of(&Watched { opened: at(2), playback });
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
