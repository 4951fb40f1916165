//! The slow start of CDG: a modified HyStart.

use jostle_units::Time;

use jostle_congestion::AckSample;

/// Bits of the parameter `hystart_detect`.
const DETECT_TRAIN: u32 = 1;
const DETECT_DELAY: u32 = 2;
/// A gap beyond this ends a train.
const TRAIN_GAP_US: u64 = 3_000;
/// Minimum threshold of both exit conditions.
const FLOOR_US: i32 = 125;
/// Minimum number of RTT samples for the delay of a round.
const MIN_SAMPLES: u32 = 8;

/// State of slow start (`tcp_cdg.c::tcp_cdg_hystart_update`). Differences from Linux's HyStart: it
/// applies to every window, its clock has a resolution of 1 µs, the train's length is half of the
/// minimum RTT, the delay threshold has no upper bound, and a train restarts while the flow is
/// application-limited.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    train: bool,
    delay: bool,
    /// Minimum RTT of all rounds, 0 for none (`delay_min`).
    delay_min_us: i32,
    /// Time of the last ACK of the train; `None` between trains.
    last_ack_us: Option<u64>,
    round_start_us: u64,
    samples: u32,
}

impl HyStart {
    pub fn new(detect: u32) -> Self {
        Self {
            train: detect & DETECT_TRAIN != 0,
            delay: detect & DETECT_DELAY != 0,
            delay_min_us: 0,
            last_ack_us: None,
            round_start_us: 0,
            samples: 0,
        }
    }

    /// Discards all measurements.
    pub fn reset(&mut self) {
        self.delay_min_us = 0;
        self.round_start_us = 0;
        self.start_round();
    }

    pub fn start_round(&mut self) {
        self.last_ack_us = None;
        self.samples = 0;
    }

    /// Returns whether an ACK ends slow start. `round_min_us`: minimum RTT of the round, 0 for
    /// none.
    pub fn ends_slow_start(&mut self, ack: &AckSample, round_min_us: i32) -> bool {
        if !(self.train || self.delay) {
            return false;
        }
        self.delay_min_us = match (self.delay_min_us, round_min_us) {
            (0, min) | (min, 0) => min,
            (a, b) => a.min(b),
        };
        if self.delay_min_us == 0 {
            return false;
        }
        (self.train && self.detects_train(ack.now, ack.cwnd_limited))
            || (self.delay && self.detects_delay(round_min_us))
    }

    fn detects_train(&mut self, now: Time, cwnd_limited: bool) -> bool {
        let now_us = now.as_ns() / 1_000;
        match self.last_ack_us {
            Some(last_us) if cwnd_limited => {
                if now_us >= last_us + TRAIN_GAP_US {
                    return false;
                }
                self.last_ack_us = Some(now_us);
                let limit_us = (self.delay_min_us / 2).max(FLOOR_US);
                now_us > self.round_start_us + u64::from(limit_us.unsigned_abs())
            }
            _ => {
                (self.last_ack_us, self.round_start_us) = (Some(now_us), now_us);
                false
            }
        }
    }

    fn detects_delay(&mut self, round_min_us: i32) -> bool {
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let threshold_us = self.delay_min_us.saturating_add(self.delay_min_us / 8).max(FLOOR_US);
        round_min_us > threshold_us
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::Span;

    use super::*;
    use crate::test_support;

    fn ack_at(us: u64) -> AckSample {
        AckSample { now: Time::ZERO + Span::from_us(us), ..test_support::ack(1) }
    }

    /// ACKs every `gap_us`, at an RTT of `rtt_us`, until slow start ends or a second is over: how
    /// many.
    fn acks_to_exit(detect: u32, gap_us: u64, rtt_us: i32) -> Option<u64> {
        let mut hystart = HyStart::new(detect);
        hystart.delay_min_us = 100_000;
        (0..1_000_000 / gap_us)
            .find(|i| hystart.ends_slow_start(&ack_at(10_000 + i * gap_us), rtt_us))
    }

    #[test]
    fn a_train_of_half_the_rtt_ends_slow_start() {
        assert_eq!(acks_to_exit(1, 1_000, 100_000), Some(51));
        assert_eq!(acks_to_exit(1, 2_999, 100_000), Some(17));
        assert_eq!(acks_to_exit(1, 3_000, 100_000), None);
        assert_eq!(acks_to_exit(2, 1_000, 100_000), None);
        assert_eq!(acks_to_exit(0, 1_000, 200_000), None);
    }

    #[test]
    fn an_eighth_of_queueing_delay_after_eight_samples_ends_slow_start() {
        assert_eq!(acks_to_exit(2, 1_000, 112_500), None);
        assert_eq!(acks_to_exit(2, 1_000, 112_501), Some(8));
        assert_eq!(acks_to_exit(1, 5_000, 112_501), None);
    }

    #[test]
    fn an_application_that_sends_less_breaks_the_train() {
        let mut hystart = HyStart::new(3);
        let mut found = (0..60).map(|i| {
            let ack = AckSample { cwnd_limited: i != 30, ..ack_at(i * 1_000) };
            hystart.ends_slow_start(&ack, 100_000)
        });
        assert!(!found.any(|found| found));
    }
}
