//! Detection of token-bucket policers by long-term sampling (`tcp_bbr.c::bbr_lt_bw_sampling` in
//! Linux; "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016).
//!
//! Two consecutive intervals that both lose a fifth of their delivered packets, at nearly the same
//! rate, indicate a policer. Its rate is then used instead of the maximum.

use jostle_units::Time;

use super::model::{GAIN_UNIT, MssChange, Pacing, bandwidth_of};

/// Minimum length of an interval in rounds; the maximum is four times as long.
const MIN_ROUNDS: u32 = 4;
/// Losses per delivered packet from which an interval counts, in 256ths.
const LOSS_THRESHOLD: u64 = 50;
/// Two rates agree when they differ by at most this share of the first, in 256ths …
const AGREE_RATIO: u64 = GAIN_UNIT / 8;
/// … or by at most this many bytes per second.
const AGREE_BYTES_PER_S: u64 = 4000 / 8;
/// Rounds for which the policed rate is used.
const USE_ROUNDS: u32 = 48;

/// Input of the sampling: an ACK or a timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    /// Packets were marked lost.
    pub(super) lossy: bool,
    pub(super) app_limited: bool,
    pub(super) round_started: bool,
    pub(super) probing_bandwidth: bool,
    /// Packets delivered since the connection began.
    pub(super) delivered: u64,
    /// Packets marked lost since the connection began.
    pub(super) lost: u64,
    /// Time of the latest delivery.
    pub(super) delivered_at: Time,
}

/// Result of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LongTermResult {
    Nothing,
    /// The path is policed.
    Policed,
    /// The policed rate was used for long enough.
    Expired,
}

/// State of long-term sampling.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongTermSampler {
    sampling: bool,
    in_use: bool,
    bandwidth: u64,
    rounds: u32,
    start_ms: u64,
    start_delivered: u64,
    start_lost: u64,
}

fn floor_ms(time: Time) -> u64 {
    time.as_ns() / 1_000_000
}

impl LongTermSampler {
    /// Adapts to a new packet size.
    pub(super) fn resize(&mut self, resize: MssChange) {
        self.bandwidth = resize.bandwidth(self.bandwidth);
    }

    /// The policed rate while it is in use.
    pub(super) fn bandwidth(&self) -> Option<u64> {
        self.in_use.then_some(self.bandwidth)
    }

    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    fn start_interval(&mut self, event: &Event) {
        self.start_ms = floor_ms(event.delivered_at);
        self.start_delivered = event.delivered;
        self.start_lost = event.lost;
        self.rounds = 0;
    }

    pub(super) fn on_event(&mut self, event: &Event, pacing: Pacing) -> LongTermResult {
        if self.in_use {
            return self.use_up(event);
        }
        if !self.sampling {
            // The first loss indicates that the policer's bucket is empty: earlier rates were
            // bursts.
            if !event.lossy {
                return LongTermResult::Nothing;
            }
            self.start_interval(event);
            self.sampling = true;
        }
        if event.app_limited {
            self.reset();
            return LongTermResult::Nothing;
        }
        self.rounds += u32::from(event.round_started);
        if self.rounds < MIN_ROUNDS {
            return LongTermResult::Nothing;
        }
        if self.rounds > 4 * MIN_ROUNDS {
            self.reset();
            return LongTermResult::Nothing;
        }
        // An interval ends with a loss, when the bucket is empty again.
        if event.lossy { self.end_interval(event, pacing) } else { LongTermResult::Nothing }
    }

    fn use_up(&mut self, event: &Event) -> LongTermResult {
        if event.probing_bandwidth && event.round_started {
            self.rounds += 1;
            if self.rounds >= USE_ROUNDS {
                self.reset();
                return LongTermResult::Expired;
            }
        }
        LongTermResult::Nothing
    }

    fn end_interval(&mut self, event: &Event, pacing: Pacing) -> LongTermResult {
        let lost = event.lost.saturating_sub(self.start_lost);
        let delivered = event.delivered.saturating_sub(self.start_delivered);
        if delivered == 0 || lost * GAIN_UNIT < LOSS_THRESHOLD * delivered {
            return LongTermResult::Nothing;
        }
        let interval_ms = floor_ms(event.delivered_at).saturating_sub(self.start_ms);
        let Some(bandwidth) = bandwidth_of(delivered, interval_ms * 1000) else {
            return LongTermResult::Nothing;
        };
        if self.bandwidth > 0 {
            let difference = bandwidth.abs_diff(self.bandwidth);
            if difference * GAIN_UNIT <= AGREE_RATIO * self.bandwidth
                || pacing.bytes_per_s(difference, GAIN_UNIT) <= AGREE_BYTES_PER_S
            {
                self.bandwidth = (bandwidth + self.bandwidth) / 2;
                self.in_use = true;
                self.rounds = 0;
                return LongTermResult::Policed;
            }
        }
        self.bandwidth = bandwidth;
        self.start_interval(event);
        LongTermResult::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACING: Pacing = Pacing { mss_bytes: 1448, margin_percent: 1 };

    /// Feeds rounds of 100 ms that deliver and lose as given, each ending with a loss event.
    struct RoundFeeder {
        sampling: LongTermSampler,
        round: u64,
        delivered: u64,
        lost: u64,
    }

    impl RoundFeeder {
        fn new() -> Self {
            Self { sampling: LongTermSampler::default(), round: 0, delivered: 0, lost: 0 }
        }

        fn round(&mut self, delivered: u64, lost: u64) -> LongTermResult {
            self.round += 1;
            self.delivered += delivered;
            self.lost += lost;
            let event = Event {
                lossy: lost > 0,
                app_limited: false,
                round_started: true,
                probing_bandwidth: true,
                delivered: self.delivered,
                lost: self.lost,
                delivered_at: Time::from_ns(self.round * 100_000_000),
            };
            self.sampling.on_event(&event, PACING)
        }
    }

    /// The first loss opens the first interval; each interval needs four rounds.
    #[test]
    fn two_lossy_intervals_of_one_rate_betray_a_policer() {
        let mut feed = RoundFeeder::new();
        let findings: Vec<_> = (0..8).map(|_| feed.round(100, 25)).collect();
        assert!(findings[..7].iter().all(|&f| f == LongTermResult::Nothing));
        assert_eq!(findings[7], LongTermResult::Policed);
        // 100 packets in 100 ms: one per millisecond.
        assert_eq!(feed.sampling.bandwidth(), bandwidth_of(1, 1000));
        for _ in 0..47 {
            assert_eq!(feed.round(100, 0), LongTermResult::Nothing);
        }
        assert_eq!(feed.round(100, 0), LongTermResult::Expired);
        assert_eq!(feed.sampling.bandwidth(), None);
    }

    #[test]
    fn a_tenth_of_losses_is_no_policer() {
        let mut feed = RoundFeeder::new();
        assert!((0..100).all(|_| feed.round(100, 10) == LongTermResult::Nothing));
    }

    #[test]
    fn rates_that_differ_by_a_fifth_are_no_policer() {
        let mut feed = RoundFeeder::new();
        for interval in 0..8 {
            for _ in 0..4 {
                let delivered = if interval % 2 == 0 { 100 } else { 120 };
                assert_eq!(feed.round(delivered, 30), LongTermResult::Nothing, "{interval}");
            }
        }
    }

    #[test]
    fn an_interval_without_losses_is_dropped_after_sixteen_rounds() {
        let mut feed = RoundFeeder::new();
        feed.round(100, 25);
        for _ in 0..15 {
            feed.round(100, 0);
        }
        assert!(feed.sampling.sampling);
        feed.round(100, 0);
        assert!(!feed.sampling.sampling);
    }
}
