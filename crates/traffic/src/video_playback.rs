//! Video playback: playing times and stalls.

use jostle_units::{Span, Time};

use jostle_run_spec::VideoSpec;

/// Buffer of a player, with statistics of its playback. Both the player and the meter have one.
#[derive(Clone, Debug)]
pub struct PlayerBuffer {
    segment: Span,
    startup: Span,
    /// Number of segments of the video.
    all: Option<u64>,
    /// Time of the state below.
    at: Time,
    buffered: Span,
    playing: bool,
    /// Time at which playback started.
    started: Option<Time>,
    played: Span,
    stalled: Span,
    stalls: u64,
    segments: u64,
    bitrates_bps: u64,
    bitrate_bps: Option<u64>,
    switches: u64,
}

impl PlayerBuffer {
    /// Creates the buffer of a video before its first segment.
    pub fn new(spec: &VideoSpec) -> Self {
        Self {
            segment: Span::from_ns(spec.segment_ns),
            startup: Span::from_ns(spec.startup_ns),
            all: spec.segments,
            at: Time::ZERO,
            buffered: Span::ZERO,
            playing: false,
            started: None,
            played: Span::ZERO,
            stalled: Span::ZERO,
            stalls: 0,
            segments: 0,
            bitrates_bps: 0,
            bitrate_bps: None,
            switches: 0,
        }
    }

    /// Advances to `now`. An empty buffer stalls the playback, unless the video has ended.
    pub fn advance(&mut self, now: Time) {
        let passed = now.since(self.at);
        self.at = self.at.max(now);
        if !self.playing {
            if self.started.is_some() && !self.is_over() {
                self.stalled = self.stalled + passed;
            }
            return;
        }
        let played = passed.min(self.buffered);
        self.played = self.played + played;
        self.buffered = self.buffered - played;
        if passed == played {
            return;
        }
        self.playing = false;
        if !self.is_loaded() {
            self.stalls += 1;
            self.stalled = self.stalled + (passed - played);
        }
    }

    /// Handles a completely received segment.
    pub fn loaded(&mut self, now: Time, bitrate_bps: u64) {
        self.advance(now);
        self.buffered = self.buffered + self.segment;
        self.segments += 1;
        self.bitrates_bps = self.bitrates_bps.saturating_add(bitrate_bps);
        let before = self.bitrate_bps.replace(bitrate_bps);
        self.switches += u64::from(before.is_some_and(|before| before != bitrate_bps));
        if !self.playing && (self.buffered >= self.startup || self.is_loaded()) {
            self.playing = true;
            self.started.get_or_insert(now);
        }
    }

    /// Returns whether all segments of the video were received.
    fn is_loaded(&self) -> bool {
        self.all.is_some_and(|all| self.segments >= all)
    }

    /// Returns whether the video was played to its end.
    fn is_over(&self) -> bool {
        self.is_loaded() && self.buffered.is_zero()
    }

    /// Returns the buffered duration.
    pub const fn buffered(&self) -> Span {
        self.buffered
    }

    /// Returns the bitrate of the last segment received.
    pub const fn bitrate_bps(&self) -> Option<u64> {
        self.bitrate_bps
    }

    /// Returns the time at which playback started.
    pub const fn started(&self) -> Option<Time> {
        self.started
    }

    /// Returns the total duration of stalls since playback started, and their number.
    pub const fn stalls(&self) -> (Span, u64) {
        (self.stalled, self.stalls)
    }

    /// Returns the duration played.
    pub const fn played(&self) -> Span {
        self.played
    }

    /// Returns the number of segments received.
    pub const fn segments(&self) -> u64 {
        self.segments
    }

    /// Returns the sum of the bitrates of all segments received.
    pub const fn bitrates_bps(&self) -> u64 {
        self.bitrates_bps
    }

    /// Returns the number of segments with a bitrate other than the previous segment's.
    pub const fn switches(&self) -> u64 {
        self.switches
    }
}

/// Playback statistics of a flow until it is stopped.
#[derive(Clone, Debug)]
pub struct VideoMeter {
    /// State of the player.
    pub playback: PlayerBuffer,
    /// Time at which the viewer stops watching.
    pub leaves: Time,
}

impl VideoMeter {
    /// Returns the playback until `now`.
    pub fn until(&mut self, now: Time) -> &PlayerBuffer {
        self.playback.advance(now.min(self.leaves));
        &self.playback
    }
}

/// Outcome of a flow's video session.
#[derive(Clone, Debug)]
pub struct VideoSession {
    /// Time at which the flow opened.
    pub opened: Time,
    /// State of the player at the end of the run, or when the flow was stopped.
    pub playback: PlayerBuffer,
}

#[cfg(test)]
mod tests {
    use super::*;
    use jostle_run_spec::VideoChoice;
    use proptest::prelude::*;

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    /// Segments of 2 s; it begins with two of them.
    fn playback(segments: Option<u64>) -> PlayerBuffer {
        PlayerBuffer::new(&VideoSpec {
            bitrates_bps: vec![1_000_000, 2_000_000],
            segment_ns: 2_000_000_000,
            segments,
            variation: 0.0,
            choice: VideoChoice::Throughput { samples: 1, safety: 1.0 },
            startup_ns: 4_000_000_000,
            buffer_ns: 20_000_000_000,
        })
    }

    #[test]
    fn a_buffer_that_runs_empty_is_a_stall_until_enough_has_come() {
        let mut it = playback(None);
        it.loaded(at(500), 1_000_000);
        assert_eq!(it.started(), None);
        it.loaded(at(1_000), 2_000_000);
        assert_eq!((it.started(), it.buffered()), (Some(at(1_000)), Span::from_ms(4_000)));
        // Empty at 5 s; the segments of 6 s and 7 s make two, and it plays again.
        it.loaded(at(6_000), 2_000_000);
        assert_eq!(it.stalls(), (Span::from_ms(1_000), 1));
        it.loaded(at(7_000), 1_000_000);
        it.advance(at(8_000));
        assert_eq!(it.stalls(), (Span::from_ms(2_000), 1));
        assert_eq!(it.played(), Span::from_ms(5_000));
        assert_eq!(it.buffered(), Span::from_ms(3_000));
        assert_eq!((it.segments(), it.switches(), it.bitrates_bps()), (4, 2, 6_000_000));
    }

    #[test]
    fn a_segment_in_the_last_moment_is_no_stall() {
        let mut it = playback(None);
        it.loaded(at(0), 1_000_000);
        it.loaded(at(0), 1_000_000);
        it.loaded(at(4_000), 1_000_000);
        it.advance(at(5_000));
        assert_eq!(it.stalls(), (Span::ZERO, 0));
    }

    #[test]
    fn the_end_of_a_video_is_no_stall_and_its_last_segment_need_not_wait() {
        let mut it = playback(Some(1));
        it.loaded(at(300), 1_000_000);
        assert_eq!(it.started(), Some(at(300)));
        it.advance(at(9_000));
        it.advance(at(10_000));
        assert_eq!(it.stalls(), (Span::ZERO, 0));
        assert_eq!(it.played(), Span::from_ms(2_000));
    }

    proptest! {
        /// Time since the start is played or stalled, and what came is played or in the buffer.
        #[test]
        fn nothing_is_lost(gaps_ms in prop::collection::vec(0u64..6_000, 1..60)) {
            let mut it = playback(None);
            let mut now_ms = 0;
            for gap_ms in gaps_ms {
                now_ms += gap_ms;
                it.advance(at(now_ms - gap_ms / 2));
                it.loaded(at(now_ms), 1_000_000);
                let came_ms = it.segments() * 2_000;
                prop_assert_eq!(it.played() + it.buffered(), Span::from_ms(came_ms));
                if let Some(started) = it.started() {
                    prop_assert_eq!(it.played() + it.stalls().0, at(now_ms).since(started));
                }
            }
        }
    }
}
