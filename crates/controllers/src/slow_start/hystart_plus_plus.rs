//! HyStart++.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
#[cfg(not(feature = "std"))]
use jostle_units::FloatMath;
use jostle_units::{Span, Time};

use super::algorithm::SlowStart;
use crate::cwnd::{CongestionWindow, INFINITE_SSTHRESH};
use crate::registry_rows::SlowStartEntry;
use jostle_congestion::{AckSample, EstablishedEvent, RawAckSample};

pub(crate) const ROW: SlowStartEntry = SlowStartEntry {
    entry: RegistryEntry {
        name: "hystart++",
        summary: "slows down when the delay of a round rises, and resumes if it falls again",
        class: "delay",
        based_on: &["hystart"],
        source: "RFC 9406; draft-balasubramanian-tcpm-hystartplusplus-03, 2020, for limited slow start",
        parameters: &[
            Parameter::span("min_rtt_thresh", Span::from_ms(4), Span::ZERO..=Span::from_secs(1))
                .summary("smallest rise of a round's delay that counts"),
            Parameter::span("max_rtt_thresh", Span::from_ms(16), Span::ZERO..=Span::from_secs(1))
                .summary("largest required rise"),
            Parameter::integer("min_rtt_divisor", 8, 1..=1_000)
                .summary("divisor of the last round's minimum RTT that gives the required rise"),
            Parameter::integer("n_rtt_sample", 8, 1..=1_000)
                .summary("RTT samples required in a round"),
            Parameter::integer("css_growth_divisor", 4, 2..=1_000)
                .summary("divisor of the growth in conservative slow start"),
            Parameter::integer("css_rounds", 5, 1..=1_000)
                .summary("rounds of conservative slow start before congestion avoidance"),
            Parameter::choice("after_rise", "conservative", &["conservative", "limited"]).summary(
                "phase after a rise: conservative slow start, which may resume (RFC 9406), or \
                 limited slow start until a loss (drafts of 2019 and 2020)",
            ),
            Parameter::number("lss_divisor", 0.25, 0.01..=1.0).summary(
                "share of the cwnd at the rise that limited slow start adds per round trip",
            ),
            Parameter::integer("low_cwnd", 16, 1..=1_000_000)
                .summary("smallest cwnd, in packets, at which limited slow start begins"),
            Parameter::integer("l", 8, 1..=0x7fff_ffff)
                .summary("largest number of packets counted per ACK, without pacing"),
        ],
    },
    build: |values| Box::new(HyStartPlusPlus::new(values)),
};

/// RFC 9406 §4.2 and §4.3. The minimum RTT of each round is compared with the last round's. If it
/// has risen, the window grows at a quarter of the speed for five rounds (conservative slow start,
/// CSS). If the delay falls back in this time, the rise was jitter and slow start resumes;
/// otherwise slow start ends.
#[derive(Clone, Debug)]
pub struct HyStartPlusPlus {
    min_rtt_thresh: Span,
    max_rtt_thresh: Span,
    min_rtt_divisor: u64,
    n_rtt_sample: u32,
    css_growth_divisor: u32,
    css_rounds: u32,
    most_per_ack: u32,
    /// Limited slow start of the drafts, if enabled.
    limited: Option<Limited>,
    state: State,
}

/// Limited slow start of the drafts before the RFC: "K = cwnd / (LSS_DIVISOR * ssthresh); cwnd =
/// max(cwnd + (min(N, L * SMSS) / K), CA_cwnd())", with the ssthresh at its start.
#[derive(Clone, Copy, Debug)]
struct Limited {
    divisor: f64,
    /// `LOW_CWND`.
    low_cwnd: u32,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// `windowEnd`: the packet whose acknowledgement ends the round.
    round_end: u64,
    /// `currentRoundMinRTT`; `None` means infinity in the RFC.
    round_min: Option<Span>,
    /// `lastRoundMinRTT`.
    last_round_min: Option<Span>,
    samples: u32,
    phase: Phase,
    paced: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Phase {
    #[default]
    SlowStart,
    Conservative {
        /// `cssBaselineMinRtt`.
        baseline: Span,
        /// Number of completed rounds.
        rounds: u32,
        /// Packets acknowledged towards the next increase by one.
        count: u32,
    },
    Limited {
        /// cwnd at the start of the phase, which the drafts keep as ssthresh.
        from: u32,
        /// Fraction of a packet that the phase has added.
        fraction: f64,
    },
}

impl HyStartPlusPlus {
    /// Creates HyStart++ with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            min_rtt_thresh: values.span("min_rtt_thresh"),
            max_rtt_thresh: values.span("max_rtt_thresh"),
            min_rtt_divisor: u64::from(values.u32("min_rtt_divisor").max(1)),
            n_rtt_sample: values.u32("n_rtt_sample"),
            css_growth_divisor: values.u32("css_growth_divisor").max(1),
            css_rounds: values.u32("css_rounds"),
            most_per_ack: values.u32("l"),
            limited: (values.choice("after_rise") == "limited").then(|| Limited {
                divisor: values.number("lss_divisor"),
                low_cwnd: values.u32("low_cwnd"),
            }),
            state: State::default(),
        }
    }

    /// "An implementation SHOULD use HyStart++ only for the initial slow start (when the ssthresh is
    /// at its initial value of arbitrarily high per RFC 5681) and fall back to using standard slow
    /// start for the remainder of the connection lifetime."
    const fn applies(window: &CongestionWindow) -> bool {
        window.ssthresh == INFINITE_SSTHRESH && window.in_slow_start()
    }

    /// A round ended: "When windowEnd is ACKed, the current round ends and windowEnd is set to
    /// SND.NXT."
    fn start_round(&mut self, window: &mut CongestionWindow, next_to_send: u64) {
        let s = &mut self.state;
        s.round_end = next_to_send;
        s.last_round_min = s.round_min.take();
        s.samples = 0;
        if let Phase::Conservative { rounds, .. } = &mut s.phase {
            // "If the transition into CSS happens in the middle of a round, that partial round
            // counts towards the limit."
            *rounds += 1;
            if *rounds >= self.css_rounds {
                window.ssthresh = window.cwnd;
            }
        }
    }

    /// "RttThresh = max(MIN_RTT_THRESH, min(lastRoundMinRTT / MIN_RTT_DIVISOR, MAX_RTT_THRESH))".
    fn rise(&self, last_round_min: Span) -> Span {
        let share = last_round_min.mul_div(1, self.min_rtt_divisor);
        share.min(self.max_rtt_thresh).max(self.min_rtt_thresh)
    }

    /// Checks a round with enough samples.
    fn judge(&mut self, window: &CongestionWindow, round_min: Span) {
        match self.state.phase {
            // "If (currentRoundMinRTT >= (lastRoundMinRTT + RttThresh)): cssBaselineMinRtt =
            // currentRoundMinRTT, exit slow start and enter CSS".
            Phase::SlowStart => {
                if let Some(last) = self.state.last_round_min
                    && round_min >= last.saturating_add(self.rise(last))
                {
                    self.slow_down(window, round_min);
                }
            }
            // "If (currentRoundMinRTT < cssBaselineMinRtt): cssBaselineMinRtt = infinity, resume
            // slow start including HyStart++".
            Phase::Conservative { baseline, .. } => {
                if round_min < baseline {
                    self.state.phase = Phase::SlowStart;
                }
            }
            // Lasts until a congestion signal.
            Phase::Limited { .. } => {}
        }
    }

    /// Enters the slower phase after the delay has risen to `round_min`.
    fn slow_down(&mut self, window: &CongestionWindow, round_min: Span) {
        self.state.phase = match self.limited {
            None => Phase::Conservative { baseline: round_min, rounds: 0, count: 0 },
            Some(limited) if window.cwnd < limited.low_cwnd => Phase::SlowStart,
            Some(_) => Phase::Limited { from: window.cwnd, fraction: 0.0 },
        };
    }

    /// Returns the packets, including a fraction, that limited slow start adds for `counted`
    /// packets.
    fn added(&self, window: &CongestionWindow, counted: u32, from: u32) -> f64 {
        let divisor = self.limited.map_or(0.0, |limited| limited.divisor);
        f64::from(counted) * divisor * f64::from(from) / f64::from(window.cwnd)
    }
}

impl SlowStart for HyStartPlusPlus {
    fn on_established(&mut self, _window: &mut CongestionWindow, _established: &EstablishedEvent) {
        self.state = State::default();
    }

    fn on_ack_before_loss_detection(
        &mut self,
        window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        if !Self::applies(window) {
            return;
        }
        self.state.paced = measurement.pacing_rate.is_some();
        if measurement.first_unacked > self.state.round_end {
            self.start_round(window, measurement.next_to_send);
        }
        let Some(rtt) = measurement.rtt else { return };
        let round_min = self.state.round_min.map_or(rtt, |min| min.min(rtt));
        self.state.round_min = Some(round_min);
        self.state.samples = self.state.samples.saturating_add(1);
        if self.state.samples >= self.n_rtt_sample {
            self.judge(window, round_min);
        }
    }

    fn grow(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> u32 {
        if !Self::applies(window) {
            return window.slow_start(ack.acked);
        }
        // "L = infinity if paced, L = 8 if non-paced". Packets beyond L are not counted.
        let counted = if self.state.paced { ack.acked } else { ack.acked.min(self.most_per_ack) };
        match self.state.phase {
            // "cwnd = cwnd + min(N, L * SMSS)".
            Phase::SlowStart => window.slow_start(counted),
            // "cwnd = cwnd + (min(N, L * SMSS) / CSS_GROWTH_DIVISOR)"; fractions of a packet
            // accumulate.
            Phase::Conservative { ref mut count, .. } => {
                let sum = count.saturating_add(counted);
                *count = sum % self.css_growth_divisor;
                window.slow_start(sum / self.css_growth_divisor)
            }
            Phase::Limited { from, fraction } => {
                let added = fraction + self.added(window, counted, from);
                self.state.phase = Phase::Limited { from, fraction: added.fract() };
                window.slow_start(added as u32)
            }
        }
    }

    fn on_timeout(&mut self, _now: Time, next_to_send: u64) {
        self.state = State { round_end: next_to_send, ..State::default() };
    }

    fn mode(&self) -> &'static str {
        match self.state.phase {
            Phase::SlowStart => "slow_start",
            Phase::Conservative { .. } => "conservative_slow_start",
            Phase::Limited { .. } => "limited_slow_start",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support;
    use jostle_registry::ParameterValue;
    use jostle_units::Rate;

    const WINDOW: u64 = 20;

    /// A connection with `WINDOW` packets in flight, whose window is watched apart.
    struct Rounds {
        hystart: HyStartPlusPlus,
        window: CongestionWindow,
        acked: u64,
        paced: bool,
    }

    impl Rounds {
        fn new() -> Self {
            let hystart = HyStartPlusPlus::new(&ROW.entry.defaults());
            Self { hystart, window: CongestionWindow::default(), acked: 0, paced: false }
        }

        fn hear(&mut self, rtt: Span) {
            self.acked += 1;
            self.hystart.on_ack_before_loss_detection(
                &mut self.window,
                &RawAckSample {
                    now: Time::ZERO,
                    rtt: Some(rtt),
                    packets: 1,
                    first_unacked: self.acked,
                    next_to_send: self.acked + WINDOW - 1,
                    pacing_rate: self.paced.then_some(Rate::from_mbps(10)),
                    ..RawAckSample::default()
                },
            );
        }

        /// A round of ACKs with one RTT.
        fn round(&mut self, rtt_ms: f64) {
            (0..WINDOW).for_each(|_| self.hear(Span::from_secs_f64(rtt_ms / 1e3)));
        }

        /// With the drafts' limited slow start, at a window of `cwnd`.
        fn limited(cwnd: u32) -> Self {
            let given =
                [("after_rise".to_owned(), ParameterValue::Text("limited".to_owned()))].into();
            let hystart = HyStartPlusPlus::new(&ROW.entry.resolve(&given).unwrap());
            Self {
                hystart,
                window: CongestionWindow { cwnd, ..CongestionWindow::default() },
                ..Self::new()
            }
        }

        fn in_css(&self) -> bool {
            self.hystart.mode() == "conservative_slow_start"
        }
    }

    #[test]
    fn a_rise_of_an_eighth_between_4_and_16_ms_slows_it_down() {
        for (last, rise) in [(10.0, 4.0), (100.0, 12.5), (600.0, 16.0)] {
            for (rtt, enters) in [(last + rise - 0.01, false), (last + rise, true)] {
                let mut rounds = Rounds::new();
                rounds.round(last);
                rounds.round(last);
                rounds.round(rtt);
                assert_eq!(rounds.in_css(), enters, "{rtt} ms after {last} ms");
                assert!(rounds.window.in_slow_start());
            }
        }
    }

    /// Unlike HyStart, which compares with the connection's minimum.
    #[test]
    fn a_slow_rise_goes_unnoticed() {
        let mut rounds = Rounds::new();
        (0..20).for_each(|i| rounds.round(100.0 + 10.0 * f64::from(i)));
        assert!(!rounds.in_css());
    }

    #[test]
    fn eight_samples_decide() {
        let mut rounds = Rounds::new();
        rounds.round(100.0);
        for i in 0..8 {
            assert!(!rounds.in_css(), "after {i}");
            rounds.hear(Span::from_ms(120));
        }
        assert!(rounds.in_css());
    }

    #[test]
    fn slow_start_is_over_after_five_rounds_of_css() {
        let mut rounds = Rounds::new();
        rounds.round(100.0);
        // The eighth ACK of the second round enters, and that round is the first of the five.
        (0..5).for_each(|_| rounds.round(120.0));
        assert!(rounds.window.in_slow_start());
        rounds.hear(Span::from_ms(120));
        assert_eq!(rounds.window.ssthresh, rounds.window.cwnd);
    }

    #[test]
    fn delay_that_falls_below_the_baseline_resumes_slow_start() {
        let mut rounds = Rounds::new();
        rounds.round(100.0);
        rounds.round(120.0);
        rounds.round(120.0);
        assert!(rounds.in_css());
        rounds.round(119.9);
        assert!(!rounds.in_css());
        // It can be entered again, with five rounds anew.
        rounds.round(140.0);
        assert!(rounds.in_css());
        (0..4).for_each(|_| rounds.round(140.0));
        assert!(rounds.window.in_slow_start());
    }

    fn grown(hystart: &mut HyStartPlusPlus, window: &mut CongestionWindow, acked: u32) -> u32 {
        let before = window.cwnd;
        hystart.grow(window, &AckSample { acked, ..test_support::ack(0) });
        window.cwnd - before
    }

    /// algorithms.md: five rounds of CSS make 1.25⁵ = 3.05 times the window.
    #[test]
    fn css_grows_by_a_quarter_per_round() {
        let mut rounds = Rounds::new();
        let baseline = Span::from_ms(100);
        rounds.hystart.state.phase = Phase::Conservative { baseline, rounds: 0, count: 0 };
        let mut window = CongestionWindow { cwnd: 1000, ..CongestionWindow::default() };
        for _ in 0..5 {
            (0..window.cwnd).for_each(|_| {
                grown(&mut rounds.hystart, &mut window, 1);
            });
        }
        let gain = f64::from(window.cwnd) / 1000.0;
        assert!((gain / 1.25f64.powi(5) - 1.0).abs() < 0.005, "{gain}");
    }

    /// The drafts: up to a quarter of the window of the rise per round trip, and no way back.
    #[test]
    fn limited_slow_start_adds_a_quarter_of_its_first_window_a_round() {
        let mut rounds = Rounds::limited(100);
        rounds.round(100.0);
        rounds.round(112.4);
        assert_eq!(rounds.hystart.mode(), "slow_start");
        rounds.round(112.4 * 1.125 + 0.01);
        assert_eq!(rounds.hystart.mode(), "limited_slow_start");
        let mut window = rounds.window;
        for _ in 0..4 {
            // W dW = F/4 dn from W to W' over W packets, F the first window: 22 to 24 a round.
            let expected = f64::from(window.cwnd * window.cwnd + 50 * window.cwnd).sqrt();
            (0..window.cwnd).for_each(|_| {
                grown(&mut rounds.hystart, &mut window, 1);
            });
            assert!(
                (f64::from(window.cwnd) - expected).abs() <= 1.0,
                "{} of {expected}",
                window.cwnd
            );
        }
        (0..10).for_each(|_| rounds.round(100.0));
        assert_eq!(rounds.hystart.mode(), "limited_slow_start");
        assert!(rounds.window.in_slow_start(), "until something is lost");
    }

    #[test]
    fn limited_slow_start_begins_with_sixteen_packets() {
        for (cwnd, mode) in [(15, "slow_start"), (16, "limited_slow_start")] {
            let mut rounds = Rounds::limited(cwnd);
            rounds.round(100.0);
            rounds.round(150.0);
            assert_eq!(rounds.hystart.mode(), mode, "at {cwnd}");
        }
    }

    #[test]
    fn an_ack_counts_for_eight_packets_unless_packets_are_paced() {
        for (paced, increase) in [(false, 8), (true, 50)] {
            let mut rounds = Rounds { paced, ..Rounds::new() };
            rounds.hear(Span::from_ms(100));
            let mut window = CongestionWindow::default();
            assert_eq!(grown(&mut rounds.hystart, &mut window, 50), increase);
            // After a loss slow start is the standard one.
            window.ssthresh = 1000;
            assert_eq!(grown(&mut rounds.hystart, &mut window, 50), 50);
        }
    }

    #[test]
    fn only_the_initial_slow_start_is_watched() {
        let mut rounds = Rounds::new();
        rounds.window.ssthresh = 500;
        rounds.round(100.0);
        rounds.round(200.0);
        assert!(!rounds.in_css());
    }

    /// RFC 9406 §4.3: "The minimum value of CSS_GROWTH_DIVISOR MUST be at least 2."
    #[test]
    fn a_divisor_of_one_is_refused() {
        let given = [("css_growth_divisor".to_owned(), ParameterValue::Integer(1))].into();
        assert!(ROW.entry.resolve(&given).is_err());
    }
}
