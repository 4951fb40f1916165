//! Video player: bitrates and times of its segment requests.

use std::collections::VecDeque;

use crate::PlayerBuffer;
use jostle_run_spec::{VideoChoice, VideoSpec};
use jostle_units::{RandomStream, Span, Time};

/// A video player. It requests the next segment when the previous one is complete and its buffer
/// has room.
#[derive(Debug)]
pub struct VideoPlayer {
    spec: VideoSpec,
    playback: PlayerBuffer,
    random: RandomStream,
    /// Index of the requested bitrate.
    bitrate: usize,
    /// Number of segments requested.
    asked: u64,
    /// Time of the last request, and size of the segment.
    asked_at: Time,
    bytes: u64,
    /// Throughputs of the most recent segments.
    throughputs_bps: VecDeque<f64>,
    /// Time from the completion of the last segment to the next request.
    pause: Span,
}

impl VideoPlayer {
    /// Creates a player of `spec`, which draws from `random`.
    pub fn new(spec: VideoSpec, random: RandomStream) -> Self {
        Self {
            playback: PlayerBuffer::new(&spec),
            spec,
            random,
            bitrate: 0,
            asked: 0,
            asked_at: Time::ZERO,
            bytes: 0,
            throughputs_bps: VecDeque::new(),
            pause: Span::ZERO,
        }
    }

    /// Opens the video at `now` and requests the first segment, at the lowest bitrate because
    /// nothing has been measured.
    pub fn open(&mut self, now: Time) {
        self.ask(now);
    }

    /// Returns the size of the requested segment.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Handles the completion of the requested segment and chooses the next one. Returns the
    /// bitrate of the completed segment.
    pub fn loaded(&mut self, now: Time) -> u64 {
        let bitrate_bps = self.spec.bitrates_bps[self.bitrate];
        self.playback.loaded(now, bitrate_bps);
        if let VideoChoice::Throughput { samples, .. } = self.spec.choice {
            let took_s = now.since(self.asked_at).as_secs_f64().max(1e-9);
            self.throughputs_bps.push_back(self.bytes as f64 * 8.0 / took_s);
            if self.throughputs_bps.len() > samples as usize {
                self.throughputs_bps.pop_front();
            }
        }
        if self.is_done() {
            return bitrate_bps;
        }
        let room = Span::from_ns(self.spec.buffer_ns - self.spec.segment_ns);
        self.pause = self.playback.buffered() - room;
        self.bitrate = self.choose(self.playback.buffered() - self.pause);
        self.ask(now + self.pause);
        bitrate_bps
    }

    /// Returns the time from the completion of the last segment to the next request, or `None` if
    /// there is no next segment.
    pub fn pause(&self) -> Option<Span> {
        (!self.is_done() || self.playback.segments() < self.asked).then_some(self.pause)
    }

    fn is_done(&self) -> bool {
        self.spec.segments.is_some_and(|all| self.asked >= all)
    }

    fn ask(&mut self, at: Time) {
        self.asked += 1;
        self.asked_at = at;
        let factor = 1.0 + self.spec.variation * (2.0 * self.random.uniform() - 1.0);
        let bits = self.spec.bitrates_bps[self.bitrate] as f64
            * Span::from_ns(self.spec.segment_ns).as_secs_f64();
        self.bytes = ((bits * factor / 8.0).round() as u64).max(1);
    }

    /// Returns the index of the bitrate of the next segment if `buffered` is in the buffer at its
    /// request.
    fn choose(&self, buffered: Span) -> usize {
        match self.spec.choice {
            VideoChoice::Buffer { reservoir_ns, cushion_ns } => {
                let buffered_ns = buffered.as_ns();
                let above_ns = buffered_ns.saturating_sub(reservoir_ns);
                by_buffer(
                    &self.spec.bitrates_bps,
                    self.bitrate,
                    (buffered_ns > reservoir_ns).then_some(above_ns as f64 / cushion_ns as f64),
                )
            }
            VideoChoice::Throughput { safety, .. } => {
                let inverse_sum: f64 = self.throughputs_bps.iter().map(|bps| 1.0 / bps).sum();
                let mean_bps = self.throughputs_bps.len() as f64 / inverse_sum;
                highest_within(&self.spec.bitrates_bps, safety * mean_bps)
            }
        }
    }
}

/// Selects a bitrate by Algorithm 1 of Huang et al., SIGCOMM 2014 (BBA-0). `above` is the fraction
/// of the cushion above the reservoir that is full, `None` within the reservoir. The bitrate
/// changes only when the value mapped from the buffer reaches the next higher or next lower
/// bitrate.
fn by_buffer(bitrates_bps: &[u64], last: usize, above: Option<f64>) -> usize {
    let highest = bitrates_bps.len() - 1;
    // "if Buf_now ≤ r then R_min", "else if Buf_now ≥ r + cu then R_max".
    let Some(above) = above else { return 0 };
    if above >= 1.0 {
        return highest;
    }
    let (min_bps, max_bps) = (bitrates_bps[0] as f64, bitrates_bps[highest] as f64);
    let mapped_bps = min_bps + above * (max_bps - min_bps);
    let next_up_bps = bitrates_bps[(last + 1).min(highest)] as f64;
    let next_down_bps = bitrates_bps[last.saturating_sub(1)] as f64;
    if mapped_bps >= next_up_bps {
        // "max{R_i : R_i < f(Buf_now)}"
        bitrates_bps.iter().rposition(|&bps| (bps as f64) < mapped_bps).unwrap_or(0)
    } else if mapped_bps <= next_down_bps {
        // "min{R_i : R_i > f(Buf_now)}"
        bitrates_bps.iter().position(|&bps| bps as f64 > mapped_bps).unwrap_or(highest)
    } else {
        last
    }
}

/// Returns the index of the highest bitrate that does not exceed a rate, or of the lowest bitrate.
fn highest_within(bitrates_bps: &[u64], rate_bps: f64) -> usize {
    bitrates_bps.iter().rposition(|&bps| bps as f64 <= rate_bps).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LADDER: [u64; 4] = [1_000_000, 2_000_000, 4_000_000, 5_000_000];

    fn viewer(choice: VideoChoice, variation: f64, segments: Option<u64>) -> VideoPlayer {
        let spec = VideoSpec {
            bitrates_bps: LADDER.to_vec(),
            segment_ns: 4_000_000_000,
            segments,
            variation,
            choice,
            startup_ns: 4_000_000_000,
            buffer_ns: 20_000_000_000,
        };
        VideoPlayer::new(spec, RandomStream::new(1, "viewer"))
    }

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    #[test]
    fn the_buffer_chooses_as_in_algorithm_1() {
        let choose = |last, above| by_buffer(&LADDER, last, above);
        // The map: 1 Mbit/s at 0, 5 at 1; within the reservoir and beyond the cushion its ends.
        assert_eq!(choose(3, None), 0);
        assert_eq!(choose(0, Some(1.0)), 3);
        // From 1 Mbit/s: 2 is reached at 0.25; the largest below 2.2 is 2.
        assert_eq!(choose(0, Some(0.24)), 0);
        assert_eq!(choose(0, Some(0.3)), 1);
        // At 0.25 the map is at 2 itself, and the largest below it is 1: "R_i < f".
        assert_eq!(choose(0, Some(0.25)), 0);
        // Several at a time: 4.4 Mbit/s.
        assert_eq!(choose(0, Some(0.85)), 2);
        // From 4 Mbit/s: it stays above 2 (0.25), then falls to the smallest above the map.
        assert_eq!(choose(2, Some(0.26)), 2);
        assert_eq!(choose(2, Some(0.2)), 1);
        // The highest stays until the map is at 4 (0.75).
        assert_eq!(choose(3, Some(0.76)), 3);
        assert_eq!(choose(3, Some(0.7)), 2);
    }

    #[test]
    fn throughputs_have_a_harmonic_mean() {
        let mut viewer = viewer(VideoChoice::Throughput { samples: 2, safety: 0.5 }, 0.0, None);
        viewer.open(at(0));
        assert_eq!(viewer.bytes(), 500_000);
        // 4 Mbit in 0.4 s are 10 Mbit/s, half of it 5.
        assert_eq!(viewer.loaded(at(400)), LADDER[0]);
        assert_eq!(viewer.bytes(), 2_500_000);
        // 20 Mbit in 5 s are 4; with 10 the harmonic mean is 5.71, half of it 2.86.
        assert_eq!(viewer.loaded(at(5_400)), LADDER[3]);
        assert_eq!(viewer.bytes(), 1_000_000);
        // 8 Mbit in 1 s are 8; with 4 the mean is 5.33: the first one no longer counts.
        viewer.loaded(at(6_400));
        assert_eq!(viewer.bytes(), 1_000_000);
    }

    #[test]
    fn a_full_buffer_makes_the_player_wait() {
        let choice =
            VideoChoice::Buffer { reservoir_ns: 6_000_000_000, cushion_ns: 10_000_000_000 };
        let mut viewer = viewer(choice, 0.0, None);
        viewer.open(at(0));
        for ms in [500, 1_000, 1_500, 2_000] {
            viewer.loaded(at(ms));
            assert_eq!(viewer.pause(), Some(Span::ZERO));
        }
        // Five segments of 4 s, less the 2 s since the first came: room for another in 2 s.
        viewer.loaded(at(2_500));
        assert_eq!(viewer.pause(), Some(Span::from_ms(2_000)));
        // What is in the buffer then counts: 16 s are reservoir and cushion.
        assert_eq!(viewer.bytes(), 2_500_000);
    }

    #[test]
    fn a_video_ends() {
        let choice = VideoChoice::Throughput { samples: 20, safety: 0.85 };
        let mut viewer = viewer(choice, 0.0, Some(2));
        viewer.open(at(0));
        viewer.loaded(at(100));
        assert_eq!(viewer.pause(), Some(Span::ZERO));
        viewer.loaded(at(200));
        assert_eq!(viewer.pause(), None);
    }

    #[test]
    fn sizes_vary_about_their_mean() {
        let choice = VideoChoice::Buffer { reservoir_ns: 0, cushion_ns: 1_000_000_000_000_000 };
        let mut viewer = viewer(choice, 0.5, None);
        viewer.open(at(0));
        let (mut sum, count) = (0u64, 10_000);
        for number in 1..=count {
            assert!((250_000..=750_000).contains(&viewer.bytes()), "{}", viewer.bytes());
            sum += viewer.bytes();
            viewer.loaded(at(number * 4_000));
        }
        let mean = sum as f64 / count as f64;
        assert!((mean / 500_000.0 - 1.0).abs() < 0.01, "{mean}");
    }
}
