//! Illinois as implemented in Linux.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::Time;

use crate::cwnd::CongestionWindow;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{
    BETA_ECN, CongestionAvoidance, WindowBasedController, slow_start_or_remaining,
};
use jostle_congestion::{AckSample, CongestionEvent, RawAckSample, RecoveryState, StateObserver};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "illinois",
        summary: "AIMD whose increase falls and whose decrease rises with the queueing delay",
        class: "hybrid",
        based_on: &["reno"],
        source: "Liu, Başar & Srikant, TCP-Illinois, Performance Evaluation 65(6-7), 2008; \
                 Linux 6.1 tcp_illinois.c",
        parameters: &[
            Parameter::integer("win_thresh", 15, 0..=1_000_000)
                .summary("cwnd in packets below which it is Reno"),
            Parameter::integer("theta", 5, 1..=255)
                .summary("rounds of low delay, after a higher one, before alpha is the largest"),
            BETA_ECN,
        ],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| {
        Box::new(
            WindowBasedController::new(Illinois::new(&parts.values), parts.slow_start)
                .with_abe(&parts.values),
        )
    },
};

/// α is kept in 128ths.
const ALPHA_SHIFT: u32 = 7;
const ALPHA_ONE: u32 = 1 << ALPHA_SHIFT;
/// 0.3, rounded down to 38/128.
const ALPHA_MIN: u32 = 3 * ALPHA_ONE / 10;
const ALPHA_MAX: u32 = 10 * ALPHA_ONE;

/// β is kept in 64ths.
const BETA_SHIFT: u32 = 6;
const BETA_ONE: u32 = 1 << BETA_SHIFT;
const BETA_MIN: u32 = BETA_ONE / 8;
const BETA_MAX: u32 = BETA_ONE / 2;

/// Maximum RTT, 3.36 s, which keeps the formula of α within 32 bits.
const RTT_MAX_US: u32 = u32::MAX / ALPHA_MAX;

/// Congestion avoidance of Illinois: AIMD whose increase α falls from 10 packets per round trip to
/// 0.3 as the average queueing delay of a round rises from zero to the largest ever measured, and
/// whose decrease β rises from an eighth to a half.
///
/// As in Linux, the longest RTT never expires; selectively acknowledged packets count towards α
/// when the cumulative acknowledgement passes them; α and β start at 10 and ½.
#[derive(Clone, Debug)]
pub struct Illinois {
    window_threshold: u32,
    theta: u8,
    /// Packets per round trip, in 128ths.
    alpha: u32,
    /// Share of the window by which a loss reduces it, in 64ths.
    beta: u32,
    base_rtt_us: u32,
    max_rtt_us: u32,
    /// Sum of the round's samples.
    rtt_sum_us: u64,
    /// Number of samples. Linux counts in 16 bits, which wrap after 65,535 samples in a round.
    rtt_count: u32,
    /// Packet whose acknowledgement ends the round.
    round_end: u64,
    next_to_send: u64,
    /// Packets that the last ACK acknowledged cumulatively, then 1.
    acked: u16,
    /// Whether the delay exceeded 1 % of the longest since α was at its maximum.
    rtt_above: bool,
    /// Rounds since then with a delay up to 1 % of the longest.
    low_rounds: u8,
}

/// α for an average queueing delay of `delay_us` and a longest one of `longest_us`.
fn alpha_of_delay(delay_us: u32, longest_us: u32) -> u32 {
    let low_us = longest_us / 100;
    let (delay_us, longest_us) = (delay_us - low_us, longest_us - low_us);
    // α = k1 / (k2 + d) with k1, k2 such that α(0) = 10 and α(longest) = 0.3. Delays are 3.36 s at
    // most, so 32 bits hold it.
    longest_us * ALPHA_MAX / (longest_us + delay_us * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN)
}

/// Returns β for an average queueing delay of `delay_us` and a longest one of `longest_us`: an
/// eighth up to a tenth of the longest, a half from eight tenths on, linear in between.
fn beta_of_delay(delay_us: u32, longest_us: u32) -> u32 {
    let low_us = longest_us / 10;
    if delay_us <= low_us {
        return BETA_MIN;
    }
    let high_us = 8 * longest_us / 10;
    if delay_us >= high_us || high_us <= low_us {
        return BETA_MAX;
    }
    (BETA_MIN * high_us - BETA_MAX * low_us + (BETA_MAX - BETA_MIN) * delay_us) / (high_us - low_us)
}

impl Illinois {
    /// Creates Illinois with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            window_threshold: values.u32("win_thresh"),
            theta: u8::try_from(values.u32("theta")).unwrap_or(u8::MAX),
            alpha: ALPHA_MAX,
            beta: BETA_MAX,
            base_rtt_us: u32::MAX >> 1,
            max_rtt_us: 0,
            rtt_sum_us: 0,
            rtt_count: 0,
            round_end: 0,
            next_to_send: 0,
            acked: 0,
            rtt_above: false,
            low_rounds: 0,
        }
    }

    fn start_round(&mut self, round_end: u64) {
        self.round_end = round_end;
        self.rtt_sum_us = 0;
        self.rtt_count = 0;
    }

    /// Returns α. After a longer delay, α returns to its maximum only after θ rounds without such a
    /// delay, so that one favourable round does not cause a burst.
    fn alpha(&mut self, delay_us: u32, longest_us: u32) -> u32 {
        if delay_us > longest_us / 100 {
            self.rtt_above = true;
            return alpha_of_delay(delay_us, longest_us);
        }
        if !self.rtt_above {
            return ALPHA_MAX;
        }
        self.low_rounds = self.low_rounds.wrapping_add(1);
        if self.low_rounds < self.theta {
            return self.alpha;
        }
        self.low_rounds = 0;
        self.rtt_above = false;
        ALPHA_MAX
    }

    /// Updates α and β once per round trip (`tcp_illinois.c::update_params`).
    fn end_round(&mut self, cwnd: u32, next_to_send: u64) {
        if cwnd < self.window_threshold {
            (self.alpha, self.beta) = (ALPHA_ONE, BETA_MAX);
        } else if self.rtt_count > 0 {
            let longest_us = self.max_rtt_us - self.base_rtt_us;
            // Between the minimum and the maximum, so it fits.
            let average_us = (self.rtt_sum_us / u64::from(self.rtt_count)) as u32;
            let delay_us = average_us - self.base_rtt_us;
            self.alpha = self.alpha(delay_us, longest_us);
            self.beta = beta_of_delay(delay_us, longest_us);
        }
        self.start_round(next_to_send);
    }
}

impl CongestionAvoidance for Illinois {
    /// `tcp_illinois.c::tcp_illinois_acked`.
    fn on_ack_before_loss_detection(
        &mut self,
        _window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        self.next_to_send = measurement.next_to_send;
        self.acked = measurement.packets as u16;
        let Some(rtt) = measurement.rtt else { return };
        let rtt_us = u32::try_from(rtt.as_us()).unwrap_or(u32::MAX).min(RTT_MAX_US);
        self.base_rtt_us = self.base_rtt_us.min(rtt_us);
        self.max_rtt_us = self.max_rtt_us.max(rtt_us);
        self.rtt_count += 1;
        self.rtt_sum_us += u64::from(rtt_us);
    }

    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        if ack.first_unacked > self.round_end {
            self.end_round(window.cwnd, ack.next_to_send);
        }
        if let Some(acked) = slow_start_or_remaining(window, slow_start, ack) {
            self.increase_cwnd(window, acked, ack);
        }
    }

    /// `tcp_illinois.c::tcp_illinois_cong_avoid`.
    fn increase_cwnd(&mut self, window: &mut CongestionWindow, _acked: u32, _ack: &AckSample) {
        window.count = window.count.saturating_add(u32::from(self.acked));
        self.acked = 1;
        let due = window.count.wrapping_mul(self.alpha) >> ALPHA_SHIFT;
        if due >= window.cwnd {
            let increase = due / window.cwnd;
            window.cwnd = window.cwnd.saturating_add(increase).min(window.clamp);
            window.count = 0;
        }
    }

    /// `tcp_illinois.c::tcp_illinois_ssthresh`.
    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        self.next_to_send = congestion.next_to_send;
        let decrease = (u64::from(window.cwnd) * u64::from(self.beta)) >> BETA_SHIFT;
        (window.cwnd - decrease as u32).max(2)
    }

    fn on_recovery_state(
        &mut self,
        _window: &mut CongestionWindow,
        _now: Time,
        state: RecoveryState,
    ) {
        if state == RecoveryState::Loss {
            (self.alpha, self.beta) = (ALPHA_ONE, BETA_MAX);
            self.low_rounds = 0;
            self.rtt_above = false;
            self.start_round(self.next_to_send);
        }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        let base_us = if self.max_rtt_us == 0 { 0 } else { self.base_rtt_us };
        observer.record_value("alpha_packets", f64::from(self.alpha) / f64::from(ALPHA_ONE));
        observer.record_value("beta", f64::from(self.beta) / f64::from(BETA_ONE));
        observer.record_value("base_rtt_s", f64::from(base_us) * 1e-6);
        observer.record_value("max_rtt_s", f64::from(self.max_rtt_us) * 1e-6);
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::Span;

    use super::*;
    use crate::slow_start::Standard;
    use crate::test_support::{ack, measurement};

    fn illinois() -> Illinois {
        Illinois::new(&ROW.entry.defaults())
    }

    fn at(cwnd: u32) -> CongestionWindow {
        CongestionWindow { cwnd, ssthresh: 2, ..CongestionWindow::default() }
    }

    /// A round in which every RTT is `rtt_us`; α in packets, β.
    fn round(law: &mut Illinois, rtt_us: u64) -> (f64, f64) {
        let mut window = at(100);
        for _ in 0..10 {
            law.on_ack_before_loss_detection(&mut window, &measurement(Span::from_us(rtt_us)));
        }
        law.end_round(100, 0);
        (f64::from(law.alpha) / 128.0, f64::from(law.beta) / 64.0)
    }

    /// algorithms.md: at the longest delay α is 0.3 and β ½; at 0.45 of it β is 0.3125 ± 0.01.
    #[test]
    fn alpha_and_beta_follow_the_delay() {
        let mut law = illinois();
        assert_eq!(round(&mut law, 100_000), (10.0, 0.125), "no delay was ever seen");
        let (alpha, beta) = round(&mut law, 200_000);
        assert!((alpha - 0.3).abs() < 0.01, "{alpha}");
        assert_eq!(beta, 0.5);
        let (alpha, beta) = round(&mut law, 145_000);
        // 0.99 · 10 / (0.99 + 0.44 · 9.7 / 0.3) = 0.65 with the exact 0.3.
        assert!((alpha - 0.65).abs() < 0.01, "{alpha}");
        assert!((beta - 0.3125).abs() < 0.01, "{beta}");
        assert_eq!(round(&mut law, 110_000).1, 0.125);
        assert_eq!(round(&mut law, 180_000).1, 0.5);
    }

    #[test]
    fn alpha_returns_to_ten_after_five_good_rounds() {
        let mut law = illinois();
        round(&mut law, 100_000);
        let low = round(&mut law, 200_000).0;
        for _ in 0..4 {
            assert_eq!(round(&mut law, 100_000).0, low);
        }
        assert_eq!(round(&mut law, 100_000).0, 10.0);
    }

    #[test]
    fn small_windows_and_timeouts_are_renos() {
        let mut law = illinois();
        round(&mut law, 100_000);
        law.end_round(14, 0);
        assert_eq!((law.alpha, law.beta), (128, 32));
        round(&mut law, 100_000);
        law.on_recovery_state(&mut at(100), Time::ZERO, RecoveryState::Loss);
        assert_eq!((law.alpha, law.beta), (128, 32));
    }

    /// The longest delay that 32 bits allow, twice over: the formula must not overflow.
    #[test]
    fn long_delays_are_capped() {
        let mut law = illinois();
        round(&mut law, 0);
        let (alpha, beta) = round(&mut law, 10_000_000);
        assert_eq!(law.max_rtt_us, 3_355_443);
        assert!((alpha - 0.3).abs() < 0.01, "{alpha}");
        assert_eq!(beta, 0.5);
    }

    #[test]
    fn the_window_grows_by_alpha_per_round_trip() {
        let (mut law, mut window) = (illinois(), at(100));
        law.round_end = u64::MAX;
        for number in 0..100 {
            law.on_ack_before_loss_detection(&mut window, &measurement(Span::from_ms(100)));
            law.on_cwnd_limited_ack(&mut window, &mut Standard, &ack(number));
        }
        // A packet per ⌈W/10⌉ ACKs.
        assert_eq!(window.cwnd, 109);
        // An ACK of 44 packets adds four at once, and drops the fraction.
        let stretched = RawAckSample { packets: 44, ..measurement(Span::from_ms(100)) };
        (window.cwnd, window.count) = (100, 0);
        law.on_ack_before_loss_detection(&mut window, &stretched);
        law.on_cwnd_limited_ack(&mut window, &mut Standard, &ack(200));
        assert_eq!((window.cwnd, window.count), (104, 0));
    }
}
