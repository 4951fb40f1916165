//! What a viewer sees of a video: when it plays, and when it stands still.

use jostle_units::{Span, Time};

use crate::VideoSpec;

/// A player's buffer, and what has been played from it. Both who decides and who measures has one.
#[derive(Clone, Debug)]
pub struct Playback {
    segment: Span,
    startup: Span,
    /// Segments that the video has.
    all: Option<u64>,
    /// The rest holds at this moment.
    at: Time,
    buffered: Span,
    playing: bool,
    /// When it began to play.
    started: Option<Time>,
    played: Span,
    stalled: Span,
    stalls: u64,
    segments: u64,
    bitrates_bps: u64,
    bitrate_bps: Option<u64>,
    switches: u64,
}

impl Playback {
    /// Of a video of which nothing has come yet.
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

    /// Time goes on. A buffer that runs empty stops the video, unless that was its end.
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

    /// A segment is whole.
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

    /// Everything of the video has come.
    fn is_loaded(&self) -> bool {
        self.all.is_some_and(|all| self.segments >= all)
    }

    /// It was played to its end.
    fn is_over(&self) -> bool {
        self.is_loaded() && self.buffered.is_zero()
    }

    /// Playing time that is in the buffer.
    pub const fn buffered(&self) -> Span {
        self.buffered
    }

    /// Bitrate of the segment that came last.
    pub const fn bitrate_bps(&self) -> Option<u64> {
        self.bitrate_bps
    }

    /// When it began to play.
    pub const fn started(&self) -> Option<Time> {
        self.started
    }

    /// Time that it stood still since, and how often it did.
    pub const fn stalls(&self) -> (Span, u64) {
        (self.stalled, self.stalls)
    }

    /// Time that it has played.
    pub const fn played(&self) -> Span {
        self.played
    }

    /// Segments that came.
    pub const fn segments(&self) -> u64 {
        self.segments
    }

    /// Sum of their bitrates.
    pub const fn bitrates_bps(&self) -> u64 {
        self.bitrates_bps
    }

    /// How often a segment had another bitrate than the one before it.
    pub const fn switches(&self) -> u64 {
        self.switches
    }
}

/// What a viewer sees until the flow is stopped.
#[derive(Clone, Debug)]
pub(crate) struct Viewing {
    pub playback: Playback,
    /// When the viewer leaves.
    pub leaves: Time,
}

impl Viewing {
    /// What has been seen until `now`.
    pub(crate) fn until(&mut self, now: Time) -> &Playback {
        self.playback.advance(now.min(self.leaves));
        &self.playback
    }
}

/// What became of a flow's video.
#[derive(Clone, Debug)]
pub struct Watched {
    /// When its flow opened.
    pub opened: Time,
    /// At the end of the run, or when its flow was stopped.
    pub playback: Playback,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VideoChoice;
    use proptest::prelude::*;

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    /// Segments of 2 s; it begins with two of them.
    fn playback(segments: Option<u64>) -> Playback {
        Playback::new(&VideoSpec {
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
