//! TCP-LP as implemented in Linux.

use alloc::boxed::Box;

use jostle_registry::RegistryEntry;

use crate::cwnd::CongestionWindow;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{CongestionAvoidance, WindowBasedController, reno_increase};
use jostle_congestion::{AckSample, RawAckSample, StateObserver, Timestamps};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "lp",
        summary: "scavenger: Reno that yields when the one-way delay rises",
        class: "delay",
        based_on: &["reno"],
        source: "Kuzmanovic & Knightly, TCP-LP, IEEE INFOCOM 2003; Linux 6.1 tcp_lp.c",
        parameters: &[],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| Box::new(WindowBasedController::new(Lp::default(), parts.slow_start)),
};

/// Ticks per second of the one-way delay and of the sender's timestamps (`LP_RESOL`,
/// `TCP_TS_HZ`).
const TICKS_PER_S: u32 = 1_000;
/// δ of the paper: share of the range of delays, in percent, above which a delay indicates
/// congestion.
const DELTA_PERCENT: u32 = 15;
/// The inference phase lasts three round trips.
const INFERENCE_RTTS: u32 = 3;

/// Congestion avoidance of TCP-LP: Reno with an *early congestion indication* when the smoothed
/// one-way delay exceeds its minimum by 15 % of its range. The first indication halves the window
/// and starts an inference phase of three round trips without growth. An indication within this
/// phase sets the window to 1.
///
/// One-way delays are differences of timestamps, TSval − TSecr, so that they include an unknown
/// offset between the clocks. All arithmetic has 32 bits as in Linux, with the same effects of
/// large offsets: see the page of this controller.
#[derive(Clone, Debug)]
pub struct Lp {
    /// Ticks per second of the receiver's clock, 0 before an estimate (`remote_hz`).
    remote_hz: u32,
    /// Timestamps of the previous ACK, 0 before the first.
    remote_ref: u32,
    local_ref: u32,
    /// Smoothed one-way delay, in eighths (`sowd`).
    smoothed_8ms: u32,
    owd_min_ms: u32,
    owd_max_ms: u32,
    /// The largest delay; `owd_max_ms` is the second largest (`owd_max_rsv`).
    owd_max_reserved_ms: u32,
    /// Time of the last reduction, 0 for none (`last_drop`).
    last_cut_ms: u32,
    inference_ms: u32,
    within_inference: bool,
}

impl Default for Lp {
    fn default() -> Self {
        Self {
            remote_hz: 0,
            remote_ref: 0,
            local_ref: 0,
            smoothed_8ms: 0,
            owd_min_ms: u32::MAX,
            owd_max_ms: 0,
            owd_max_reserved_ms: 0,
            last_cut_ms: 0,
            inference_ms: 0,
            within_inference: false,
        }
    }
}

impl Lp {
    /// Estimates the receiver's clock rate from the progress of its timestamps since the last ACK,
    /// smoothed by 1/64 (`tcp_lp.c::tcp_lp_remote_hz_estimator`).
    fn estimate_remote_hz(&mut self, now: &Timestamps) {
        let remote = now.value_ms.wrapping_sub(self.remote_ref);
        let local = now.echo_ms.wrapping_sub(self.local_ref);
        let known = self.remote_ref != 0 && self.local_ref != 0;
        // In 64ths of a hertz, of which Linux keeps the lower 32 bits between ACKs.
        let mut smoothed = i64::from(self.remote_hz.wrapping_shl(6));
        if known && remote != 0 && local != 0 {
            let measured = i64::from(TICKS_PER_S.wrapping_mul(remote) / local);
            if smoothed > 0 {
                smoothed += measured - (smoothed >> 6);
            } else {
                smoothed = measured << 6;
            }
        }
        // Only whole hertz are kept: errors below 64 do not increase the estimate, but any negative
        // error reduces it.
        self.remote_hz = (smoothed >> 6) as u32;
        (self.remote_ref, self.local_ref) = (now.value_ms, now.echo_ms);
    }

    /// Returns the one-way delay of an ACK's data, if it is known
    /// (`tcp_lp.c::tcp_lp_owd_calculator`).
    fn one_way_delay_ms(&mut self, now: &Timestamps) -> Option<u32> {
        self.estimate_remote_hz(now);
        // Integer number of ticks per tick: a clock with an estimated rate above 1 kHz is treated
        // as stopped.
        let scale = TICKS_PER_S.checked_div(self.remote_hz)?;
        let owd_ms = now.value_ms.wrapping_mul(scale).wrapping_sub(now.echo_ms);
        (owd_ms > 0).then_some(owd_ms)
    }

    /// `tcp_lp.c::tcp_lp_rtt_sample`.
    fn take_delay(&mut self, owd_ms: u32) {
        self.owd_min_ms = self.owd_min_ms.min(owd_ms);
        if owd_ms > self.owd_max_ms {
            if owd_ms > self.owd_max_reserved_ms {
                // The largest delay is used only after a second delay close to it.
                self.owd_max_ms = match self.owd_max_reserved_ms {
                    0 => owd_ms,
                    reserved => reserved,
                };
                self.owd_max_reserved_ms = owd_ms;
            } else {
                self.owd_max_ms = owd_ms;
            }
        }
        self.smoothed_8ms = if self.smoothed_8ms == 0 {
            owd_ms.wrapping_shl(3)
        } else {
            self.smoothed_8ms.wrapping_add(owd_ms).wrapping_sub(self.smoothed_8ms >> 3)
        };
    }

    /// Returns whether the smoothed delay is below the congestion threshold.
    const fn is_within_threshold(&self) -> bool {
        let range = self.owd_max_ms.wrapping_sub(self.owd_min_ms);
        let margin = DELTA_PERCENT.wrapping_mul(range) / 100;
        self.smoothed_8ms >> 3 < self.owd_min_ms.wrapping_add(margin)
    }
}

/// Outside the inference phase, cwnd grows as in Reno (`tcp_lp.c::tcp_lp_cong_avoid`).
impl CongestionAvoidance for Lp {
    /// Reduces the window in any recovery state. ssthresh does not change.
    /// `tcp_lp.c::tcp_lp_pkts_acked`.
    fn on_ack_before_loss_detection(
        &mut self,
        window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        // Without the timestamps option it is Reno.
        let Some(now) = measurement.timestamps else { return };
        if measurement.rtt.is_some_and(|rtt| rtt.as_us() > 0)
            && let Some(owd_ms) = self.one_way_delay_ms(&now)
        {
            self.take_delay(owd_ms);
        }
        let rtt_ms = now.now_ms.wrapping_sub(now.echo_ms);
        if rtt_ms as i32 > 0 {
            self.inference_ms = INFERENCE_RTTS.wrapping_mul(rtt_ms);
        }
        self.within_inference =
            self.last_cut_ms != 0 && now.now_ms.wrapping_sub(self.last_cut_ms) < self.inference_ms;
        if self.is_within_threshold() {
            return;
        }
        // Restart minimum and maximum from the delay that was too long.
        self.owd_min_ms = self.smoothed_8ms >> 3;
        self.owd_max_ms = self.smoothed_8ms >> 2;
        self.owd_max_reserved_ms = self.smoothed_8ms >> 2;
        window.cwnd = if self.within_inference { 1 } else { (window.cwnd / 2).max(1) };
        self.last_cut_ms = now.now_ms;
    }

    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        if !self.within_inference {
            reno_increase(window, slow_start, ack);
        }
    }

    fn mode(&self) -> &'static str {
        if self.within_inference { "inference" } else { "avoidance" }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        let known = self.owd_min_ms <= self.owd_max_ms;
        let min_ms = if known { self.owd_min_ms } else { 0 };
        observer.record_value("owd_s", f64::from(self.smoothed_8ms >> 3) * 1e-3);
        observer.record_value("owd_min_s", f64::from(min_ms) * 1e-3);
        observer.record_value("owd_max_s", f64::from(self.owd_max_ms) * 1e-3);
        observer.record_value("remote_clock_hz", f64::from(self.remote_hz));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slow_start::Standard;
    use crate::test_support::{ack, measurement};
    use jostle_units::Span;

    /// A path of 50 ms, one-way `owd_ms`, whose receiver's clock is ahead by `offset_ms`.
    struct TimestampExchange {
        law: Lp,
        window: CongestionWindow,
        now_ms: u32,
        gap_ms: u32,
        offset_ms: u32,
    }

    impl TimestampExchange {
        fn new(offset_ms: u32) -> Self {
            let window = CongestionWindow { cwnd: 64, ssthresh: 2, ..CongestionWindow::default() };
            Self { law: Lp::default(), window, now_ms: 1_000, gap_ms: 10, offset_ms }
        }

        /// The next ACK, whose data took `owd_ms`.
        fn hear(&mut self, owd_ms: u32) {
            self.now_ms += self.gap_ms;
            let sent_ms = self.now_ms - 25 - owd_ms;
            self.law.on_ack_before_loss_detection(
                &mut self.window,
                &RawAckSample {
                    timestamps: Some(Timestamps {
                        value_ms: (self.now_ms - 25).wrapping_add(self.offset_ms),
                        echo_ms: sent_ms,
                        now_ms: self.now_ms,
                    }),
                    ..measurement(Span::from_ms(u64::from(25 + owd_ms)))
                },
            );
        }
    }

    /// The first sample is its own minimum and maximum, hence not below the threshold: Linux cuts.
    #[test]
    fn the_first_delay_halves_the_window() {
        let mut talk = TimestampExchange::new(0);
        talk.hear(25);
        assert_eq!(talk.window.cwnd, 64, "no clock rate yet");
        talk.hear(25);
        assert_eq!((talk.window.cwnd, talk.law.remote_hz), (32, 1_000));
        assert_eq!((talk.law.owd_min_ms, talk.law.owd_max_ms), (25, 50));
    }

    /// Minimum 25 ms, maximum 50 ms: congestion from 25 + ⌊15 % · 25⌋ = 28 ms on.
    #[test]
    fn delay_beyond_the_threshold_cuts_to_half_and_again_to_one() {
        // So far apart that steps of 6 ms do not disturb the estimate of the receiver's clock.
        let mut talk = TimestampExchange { gap_ms: 100, ..TimestampExchange::new(0) };
        (0..40).for_each(|_| talk.hear(25));
        (0..40).for_each(|_| talk.hear(27));
        assert_eq!((talk.law.smoothed_8ms >> 3, talk.window.cwnd), (27, 32));
        let cuts = [33, 39, 45, 51].map(|owd_ms| {
            talk.hear(owd_ms);
            (talk.law.smoothed_8ms >> 3, talk.window.cwnd)
        });
        // The cut starts the range anew from 29 to 58 ms: the next one is due at 29 + ⌊15 % · 29⌋,
        // and comes within three round trips.
        assert_eq!(cuts, [(27, 32), (29, 16), (31, 16), (33, 1)]);
    }

    /// A delay that rises by a tenth of the time makes the receiver's clock look faster than 1 kHz,
    /// and from then on delays mean nothing.
    #[test]
    fn a_quickly_rising_delay_unhinges_the_clock_rate() {
        let mut talk = TimestampExchange::new(0);
        (0..40).for_each(|_| talk.hear(25));
        talk.hear(26);
        assert_eq!(talk.law.remote_hz, 1_001);
        assert!(talk.law.owd_min_ms > 1 << 28, "{} ms", talk.law.owd_min_ms);
    }

    #[test]
    fn nothing_grows_during_inference() {
        let mut talk = TimestampExchange::new(0);
        talk.hear(25);
        talk.hear(25);
        let grown = |talk: &mut TimestampExchange| {
            let before = talk.window;
            talk.law.on_cwnd_limited_ack(&mut talk.window, &mut Standard, &ack(1));
            talk.window != before
        };
        assert!(grown(&mut talk), "the cut itself does not count as within");
        talk.hear(25);
        assert!(!grown(&mut talk));
        assert_eq!(talk.law.mode(), "inference");
        // Three round trips of 50 ms after the cut, the fifteenth ACK after it.
        (0..13).for_each(|_| talk.hear(25));
        assert!(!grown(&mut talk));
        talk.hear(25);
        assert!(grown(&mut talk));
    }

    /// A random offset of 32 bits, as Linux gives every connection, makes the range 0.15 of the
    /// offset; one beyond 2²⁹ ms does not even fit into the smoothed delay. Either way no delay is
    /// ever too long, but for the first.
    #[test]
    fn an_offset_between_the_clocks_blinds_it() {
        for (offset_ms, cwnd) in [(100_000_000, 32), (3_000_000_000, 64)] {
            let mut talk = TimestampExchange::new(offset_ms);
            (0..20).for_each(|_| talk.hear(25));
            (0..200).for_each(|_| talk.hear(500));
            assert_eq!(talk.window.cwnd, cwnd, "offset {offset_ms} ms");
        }
    }

    #[test]
    fn the_clock_rate_falls_by_a_hertz_and_rises_by_64ths() {
        let mut law = Lp { remote_hz: 1_000, remote_ref: 1, local_ref: 1, ..Lp::default() };
        let mut step = |remote, local| {
            law.estimate_remote_hz(&Timestamps {
                value_ms: law.remote_ref + remote,
                echo_ms: law.local_ref + local,
                now_ms: 0,
            });
            law.remote_hz
        };
        assert_eq!(step(1_000, 1_000), 1_000);
        assert_eq!(step(1_063, 1_000), 1_000);
        assert_eq!(step(1_064, 1_000), 1_001);
        assert_eq!(step(1_000, 1_000), 1_000);
        assert_eq!(step(5, 0), 1_000);
        assert_eq!(step(1, 2), 992);
        assert_eq!(step(2, 1), 1_007);
    }

    #[test]
    fn without_timestamps_it_is_reno() {
        let mut talk = TimestampExchange::new(0);
        talk.law.on_ack_before_loss_detection(&mut talk.window, &measurement(Span::from_ms(50)));
        talk.window.count = 63;
        talk.law.on_cwnd_limited_ack(&mut talk.window, &mut Standard, &ack(1));
        assert_eq!(talk.window.cwnd, 65);
    }
}
