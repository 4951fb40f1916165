//! RTT estimation, minimum RTT and retransmission timeout: RFC 6298 with Linux's variance
//! (`tcp_input.c`).

use jostle_units::{Span, Time};

/// SRTT, RTTVAR and RTO (RFC 6298 §2 as Linux computes it) and the minimum RTT over 300 s.
#[derive(Clone, Copy, Debug)]
pub struct RttEstimator {
    /// Smoothed RTT in eighths of a microsecond; 0 before the first sample.
    srtt_8us: u64,
    /// Mean deviation in quarters of a microsecond.
    mdev_4us: u64,
    /// Largest mean deviation of the current round, in quarters of a microsecond.
    mdev_max_4us: u64,
    /// RTTVAR in quarters of a microsecond.
    rttvar_4us: u64,
    /// Stream position whose acknowledgement ends the current round.
    round_end: u64,
    minimum: [(Time, Span); 3],
}

/// Linux: `TCP_RTO_MIN`, the floor of RTTVAR's share in the RTO.
const RTO_MIN_US: u64 = 200_000;
/// Largest retransmission timeout of Linux (`TCP_RTO_MAX`).
pub const RTO_MAX: Span = Span::from_secs(120);
/// RFC 6298 §2 (2.1) "the sender SHOULD set RTO <- 1 second".
const RTO_INITIAL: Span = Span::from_secs(1);
/// Linux: `tcp_min_rtt_wlen`.
const MIN_RTT_WINDOW: Span = Span::from_secs(300);
/// While the minimum is younger, no later candidates for the minimum are collected.
const YOUNG_MINIMUM: Span = MIN_RTT_WINDOW.mul_div(1, 4);

impl Default for RttEstimator {
    fn default() -> Self {
        Self {
            srtt_8us: 0,
            mdev_4us: 0,
            mdev_max_4us: 0,
            rttvar_4us: 0,
            round_end: 0,
            minimum: [(Time::ZERO, Span::MAX); 3],
        }
    }
}

impl RttEstimator {
    /// Adds an RTT sample. `first_unacked` and `next_to_send` delimit rounds.
    /// `tcp_input.c::tcp_rtt_estimator`.
    pub fn on_sample(&mut self, rtt: Span, first_unacked: u64, next_to_send: u64) {
        let m = rtt.as_us().max(1);
        if self.srtt_8us == 0 {
            // RFC 6298 §2 (2.2): SRTT <- R, RTTVAR <- R/2. In quarters R/2 is 2·R.
            self.srtt_8us = m << 3;
            self.mdev_4us = m << 1;
            self.rttvar_4us = self.mdev_4us.max(RTO_MIN_US);
            self.mdev_max_4us = self.rttvar_4us;
            self.round_end = next_to_send;
            return;
        }
        let error = m as i64 - (self.srtt_8us >> 3) as i64;
        self.srtt_8us = (self.srtt_8us as i64 + error).max(1) as u64;
        let mut deviation = error.abs() - (self.mdev_4us >> 2) as i64;
        if error < 0 && deviation > 0 {
            // Linux: a falling RTT must not increase the RTO; such samples have a weight of one
            // eighth.
            deviation >>= 3;
        }
        self.mdev_4us = (self.mdev_4us as i64 + deviation).max(0) as u64;
        if self.mdev_4us > self.mdev_max_4us {
            self.mdev_max_4us = self.mdev_4us;
            self.rttvar_4us = self.rttvar_4us.max(self.mdev_max_4us);
        }
        if first_unacked > self.round_end {
            if self.mdev_max_4us < self.rttvar_4us {
                self.rttvar_4us -= (self.rttvar_4us - self.mdev_max_4us) >> 2;
            }
            self.round_end = next_to_send;
            self.mdev_max_4us = RTO_MIN_US;
        }
    }

    /// Adds a sample to the minimum filter. The sample may come from an ACK that is excluded from
    /// [`on_sample`].
    ///
    /// [`on_sample`]: Self::on_sample
    #[inline]
    pub fn on_min_sample(&mut self, now: Time, rtt: Span) {
        let [best, _, third] = &self.minimum;
        // The three samples are sorted by time and by size. A sample above the third changes
        // nothing while the first is young.
        if rtt > third.1 && now.since(best.0) <= YOUNG_MINIMUM {
            return;
        }
        self.renew_minimum(now, rtt);
    }

    /// Linux: `win_minmax.c::minmax_running_min`, `win_minmax.c::minmax_subwin_update`.
    #[cold]
    #[inline(never)]
    fn renew_minimum(&mut self, now: Time, rtt: Span) {
        let sample = (now, rtt);
        let [best, second, third] = &mut self.minimum;
        if rtt <= best.1 || now.since(third.0) > MIN_RTT_WINDOW {
            self.minimum = [sample; 3];
            return;
        }
        if rtt <= second.1 {
            (*second, *third) = (sample, sample);
        } else if rtt <= third.1 {
            *third = sample;
        }
        let age = now.since(best.0);
        if age > MIN_RTT_WINDOW {
            (*best, *second, *third) = (*second, *third, sample);
            if now.since(best.0) > MIN_RTT_WINDOW {
                (*best, *second, *third) = (*second, *third, sample);
            }
        } else if second.0 == best.0 && age > YOUNG_MINIMUM {
            (*second, *third) = (sample, sample);
        } else if third.0 == second.0 && age > MIN_RTT_WINDOW.mul_div(1, 2) {
            *third = sample;
        }
    }

    /// Returns whether there is at least one sample.
    #[inline]
    pub fn has_sample(&self) -> bool {
        self.srtt_8us != 0
    }

    /// Returns the smoothed RTT; zero before the first sample.
    #[inline]
    pub fn srtt(&self) -> Span {
        Span::from_ns(self.srtt_8us * 125)
    }

    /// Returns the smoothed RTT in eighths of a microsecond, the unit of Linux.
    #[inline]
    pub fn srtt_8us(&self) -> u64 {
        self.srtt_8us
    }

    /// Returns the minimum RTT; [`Span::MAX`] before the first sample.
    #[inline]
    pub fn min_rtt(&self) -> Span {
        self.minimum[0].1
    }

    /// Returns the retransmission timeout without back-off.
    #[inline]
    pub fn rto(&self) -> Span {
        if self.srtt_8us == 0 {
            return RTO_INITIAL;
        }
        Span::from_us((self.srtt_8us >> 3) + self.rttvar_4us).min(RTO_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn at_ms(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    /// algorithms.md §5: "RTO at 40 ms RTT ≥ 240 ms".
    #[test]
    fn rto_is_at_least_srtt_plus_200_ms() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.rto(), Span::from_secs(1));
        for i in 0..1000 {
            rtt.on_sample(Span::from_ms(40), i, i + 10);
        }
        assert_eq!(rtt.srtt(), Span::from_ms(40));
        assert_eq!(rtt.rto(), Span::from_ms(240));
    }

    #[test]
    fn the_first_sample_sets_the_variance_to_half() {
        let mut rtt = RttEstimator::default();
        rtt.on_sample(Span::from_ms(600), 0, 10);
        assert_eq!(rtt.rto(), Span::from_ms(600 + 4 * 300));
    }

    /// `tcp_input.c::tcp_rtt_estimator`: SRTT moves by an eighth of the error, the mean deviation by a quarter, and
    /// by a thirty-second if a falling RTT would increase it. Expected values: SRTT and RTO in µs.
    #[test]
    fn samples_move_srtt_and_rto_by_their_weights() {
        type Samples<'a> = &'a [(u64, u64, u64)];
        let cases: [(Samples<'_>, u64, u64); 5] = [
            (&[(180, 1, 10)], 110_000, 340_000),
            (&[(20, 1, 10)], 90_000, 293_750),
            (&[(80, 1, 10)], 97_500, 297_500),
            // A deviation that shrank to 42.5 ms does not reduce the RTO within the round.
            (&[(80, 1, 10), (180, 2, 10)], 107_812, 317_812),
            (&[(160, 5, 10)], 107_500, 317_500),
        ];
        for (samples, srtt_us, rto_us) in cases {
            let mut rtt = RttEstimator::default();
            rtt.on_sample(Span::from_ms(100), 0, 10);
            assert_eq!(rtt.rto(), Span::from_ms(300));
            for &(rtt_ms, first_unacked, next_to_send) in samples {
                rtt.on_sample(Span::from_ms(rtt_ms), first_unacked, next_to_send);
            }
            let shown = (rtt.srtt_8us() / 8, rtt.srtt().as_us(), rtt.rto().as_us());
            assert_eq!(shown, (srtt_us, srtt_us, rto_us), "{samples:?}");
        }
    }

    /// At the end of a round RTTVAR decays by a quarter of the distance to the largest deviation of
    /// the round (`tcp_input.c::tcp_rtt_estimator`). Data up to 10 ends the first round, up to 30 the second.
    #[test]
    fn rttvar_decays_once_per_round() {
        let mut rtt = RttEstimator::default();
        assert!(!rtt.has_sample());
        rtt.on_sample(Span::from_ms(600), 0, 10);
        assert!(rtt.has_sample());
        let mut rto_us = Vec::new();
        for (first_unacked, next_to_send) in [(10, 20), (11, 30), (30, 35), (31, 40), (41, 50)] {
            rtt.on_sample(Span::from_ms(600), first_unacked, next_to_send);
            rto_us.push(rtt.rto().as_us());
        }
        assert_eq!(rto_us, [1_800_000, 1_800_000, 1_800_000, 1_626_563, 1_441_114]);
    }

    #[test]
    fn rto_is_at_most_two_minutes() {
        let mut rtt = RttEstimator::default();
        rtt.on_sample(Span::from_secs(60), 0, 10);
        assert_eq!(rtt.rto(), Span::from_secs(120));
    }

    /// `win_minmax.c::minmax_subwin_update`: the next best samples of the second quarter and of the second half of
    /// the window follow when the minimum is older than 300 s. Each case: seconds, RTT and minimum in
    /// milliseconds.
    #[test]
    fn later_samples_replace_an_expired_minimum() {
        let cases: [&[(u64, u64, u64)]; 10] = [
            &[
                (0, 40, 40),
                (100, 45, 40),
                (160, 50, 40),
                (301, 60, 45),
                (401, 60, 50),
                (461, 60, 60),
            ],
            // Two of the three expire at once, or all.
            &[(0, 40, 40), (100, 45, 40), (160, 50, 40), (401, 60, 50)],
            &[(0, 40, 40), (101, 45, 40), (160, 50, 40), (401, 60, 45)],
            &[(0, 40, 40), (100, 45, 40), (160, 50, 40), (461, 60, 60)],
            &[(0, 40, 40), (300, 50, 40), (301, 55, 50)],
            // A smaller sample replaces a candidate, and an equal one the minimum.
            &[
                (0, 40, 40),
                (100, 45, 40),
                (160, 55, 40),
                (170, 50, 40),
                (301, 60, 45),
                (401, 60, 50),
            ],
            &[(0, 40, 40), (100, 50, 40), (110, 45, 40), (301, 60, 45), (411, 70, 60)],
            &[(0, 40, 40), (200, 40, 40), (400, 50, 40)],
            // Samples exactly a quarter or half a window after the minimum come too early.
            &[
                (0, 40, 40),
                (290, 45, 40),
                (301, 60, 45),
                (365, 50, 45),
                (366, 60, 45),
                (591, 70, 60),
            ],
            &[(0, 40, 40), (100, 45, 40), (150, 50, 40), (151, 60, 40), (401, 70, 60)],
        ];
        for samples in cases {
            let mut rtt = RttEstimator::default();
            for &(s, rtt_ms, minimum_ms) in samples {
                rtt.on_min_sample(at_ms(s * 1_000), Span::from_ms(rtt_ms));
                assert_eq!(rtt.min_rtt(), Span::from_ms(minimum_ms), "{s} s of {samples:?}");
            }
        }
    }

    proptest! {
        /// Samples that are not looked at closely change nothing.
        #[test]
        fn a_young_minimum_is_what_all_samples_make_of_it(
            samples in prop::collection::vec((0u64..120_000, 40u64..50), 1..100),
        ) {
            let (mut quick, mut thorough) = (RttEstimator::default(), RttEstimator::default());
            let mut now_ms = 0;
            for (wait_ms, rtt_ms) in samples {
                now_ms += wait_ms;
                quick.on_min_sample(at_ms(now_ms), Span::from_ms(rtt_ms));
                thorough.renew_minimum(at_ms(now_ms), Span::from_ms(rtt_ms));
                prop_assert_eq!(quick.minimum, thorough.minimum);
            }
        }
    }

    #[test]
    fn the_minimum_ages_out_after_300_s() {
        let mut rtt = RttEstimator::default();
        rtt.on_min_sample(at_ms(0), Span::from_ms(40));
        for s in 1..=300 {
            rtt.on_min_sample(at_ms(s * 1000), Span::from_ms(50));
            assert_eq!(rtt.min_rtt(), Span::from_ms(40), "after {s} s");
        }
        rtt.on_min_sample(at_ms(301_000), Span::from_ms(50));
        assert_eq!(rtt.min_rtt(), Span::from_ms(50));
    }
}
