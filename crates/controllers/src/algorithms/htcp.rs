//! H-TCP as implemented in Linux.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Span, Time};

use crate::cwnd::CongestionWindow;
use crate::jiffies::{HZ, Jiffies};
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{
    BETA_ECN, CongestionAvoidance, WindowBasedController, slow_start_or_remaining,
};
use jostle_congestion::{
    AckSample, CongestionEvent, EstablishedEvent, RawAckSample, RecoveryState, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "htcp",
        summary: "additive increase that grows with the time since the last loss",
        class: "loss",
        based_on: &["reno"],
        source: "Leith & Shorten, H-TCP: TCP for high-speed and long-distance networks, \
                 PFLDnet 2004; Linux 6.1 tcp_htcp.c",
        parameters: &[
            Parameter::bool("use_rtt_scaling", true)
                .summary("growth per round trip in proportion to the RTT, between 10 and 200 ms"),
            Parameter::bool("use_bandwidth_switch", true)
                .summary("halve cwnd if the throughput has changed since the last loss"),
            HZ,
            BETA_ECN,
        ],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| {
        Box::new(
            WindowBasedController::new(Htcp::new(&parts.values), parts.slow_start)
                .with_abe(&parts.values),
        )
    },
};

/// α and β are kept in 128ths.
const SHIFT: u32 = 7;
const ONE: u32 = 1 << SHIFT;
/// Minimum and maximum β, 0.5 and 0.8.
const BETA_MIN: u32 = ONE / 2;
const BETA_MAX: u32 = 102;

/// Maximum increase of the largest RTT by one sample.
const RTT_RISE: Span = Span::from_ms(20);
/// With smaller RTTs, queueing cannot be distinguished from noise.
const RTT_LEAST: Span = Span::from_ms(10);
/// Inverse of the longest round trip of the reference path in RTT scaling: a tenth of a second.
const SCALE_PER_S: u64 = 10;

/// Congestion avoidance of H-TCP: Δ seconds after a congestion event α(Δ) packets are added per
/// round trip. Beyond Δ_L = 1 s, α = 2 (1 − β) · (1 + 10 (Δ − Δ_L) + ((Δ − Δ_L) / 2)²); before, it
/// is Reno's increase for the same β. An event keeps the share β = RTT_min / RTT_max, which empties
/// the queue.
///
/// Linux's arithmetic is kept: times are in ticks; α is updated only when the window has grown; the
/// quadratic term has 32 bits, so that α falls back to its linear term 131,072 ticks after an event
/// (22 minutes at 100 ticks per second, 131 s at 1000) and then grows again.
#[derive(Clone, Debug)]
pub struct Htcp {
    rtt_scaling: bool,
    bandwidth_switch: bool,
    clock: Jiffies,
    alpha: u32,
    beta: u32,
    /// Whether an event with steady throughput occurred, so that the next one may keep more than
    /// half (`modeswitch`).
    adaptive: bool,
    /// Packets that the last ACK acknowledged in state `Open` (`pkts_acked`).
    acked: u32,
    /// Minimum and maximum RTT in ticks; `None` before the first sample.
    min_rtt: Option<u64>,
    max_rtt: u64,
    /// Start of the last congestion event, or its end if it has ended (`last_cong`).
    last_event: u64,
    undo: Option<Undo>,
    throughput: Throughput,
    old_max_throughput: u64,
    /// Whether the last computed α was above Reno's.
    high_speed: bool,
}

/// State that a spurious congestion event restores.
#[derive(Clone, Copy, Debug)]
struct Undo {
    last_event: u64,
    max_rtt: u64,
    old_max_throughput: u64,
}

/// Packets per second, measured over at least a round trip and a window.
#[derive(Clone, Copy, Debug, Default)]
struct Throughput {
    packets: u32,
    /// Start of the count; `None` before the first recovery episode, for which Linux's tick counter
    /// gives a time long ago.
    since: Option<u64>,
    smoothed: u64,
    max: u64,
}

impl Htcp {
    /// Creates H-TCP with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            rtt_scaling: values.bool("use_rtt_scaling"),
            bandwidth_switch: values.bool("use_bandwidth_switch"),
            clock: Jiffies::new(values),
            alpha: ONE,
            beta: BETA_MIN,
            adaptive: false,
            acked: 1,
            min_rtt: None,
            max_rtt: 0,
            last_event: 0,
            undo: None,
            throughput: Throughput::default(),
            old_max_throughput: 0,
            high_speed: false,
        }
    }

    /// `tcp_htcp.c::measure_rtt`.
    fn note_rtt(&mut self, rtt: Span, state: RecoveryState) {
        let rtt = self.clock.rounded_up(rtt);
        let min_rtt = self.min_rtt.map_or(rtt, |min| min.min(rtt));
        self.min_rtt = Some(min_rtt);
        if state == RecoveryState::Open {
            self.max_rtt = self.max_rtt.max(min_rtt);
            if rtt <= self.max_rtt + self.clock.rounded_up(RTT_RISE) {
                self.max_rtt = self.max_rtt.max(rtt);
            }
        }
    }

    /// `tcp_htcp.c::measure_achieved_throughput`.
    fn note_throughput(&mut self, cwnd: u32, measurement: &RawAckSample) {
        let now = self.clock.at(measurement.now);
        let t = &mut self.throughput;
        if !matches!(measurement.state, RecoveryState::Open | RecoveryState::Disorder) {
            (t.packets, t.since) = (0, Some(now));
            return;
        }
        t.packets = t.packets.saturating_add(measurement.packets);
        let Some(min_rtt) = self.min_rtt else { return };
        let elapsed = t.since.map_or(u64::MAX, |since| now - since);
        // Linux subtracts unsigned numbers: while α exceeds cwnd, the result is huge and nothing is
        // measured.
        let enough = cwnd.wrapping_sub((self.alpha >> SHIFT).max(1));
        if t.packets < enough || elapsed < min_rtt {
            return;
        }
        let sample = u64::from(t.packets) * self.clock.hz() / elapsed;
        if (now - self.last_event) / min_rtt <= 3 {
            // Just after an event: discard earlier samples.
            t.smoothed = sample;
            t.max = sample;
        } else {
            t.smoothed = (3 * t.smoothed + sample) / 4;
            t.max = t.max.max(t.smoothed);
        }
        (t.packets, t.since) = (0, Some(now));
    }

    /// `tcp_htcp.c::htcp_beta_update`: updates the share of the window that an event keeps.
    fn update_beta(&mut self) {
        if self.bandwidth_switch {
            let (new, old) = (self.throughput.max, self.old_max_throughput);
            self.old_max_throughput = new;
            if !(4 * old..=6 * old).contains(&(5 * new)) {
                self.beta = BETA_MIN;
                self.adaptive = false;
                return;
            }
        }
        let least = self.clock.rounded_up(RTT_LEAST);
        match self.min_rtt.filter(|&min_rtt| self.adaptive && min_rtt > least) {
            Some(min_rtt) if self.max_rtt > 0 => {
                // No overflow: the quotient is at most 128.
                let share = ((min_rtt << SHIFT) / self.max_rtt) as u32;
                self.beta = share.clamp(BETA_MIN, BETA_MAX);
            }
            _ => {
                self.beta = BETA_MIN;
                self.adaptive = true;
            }
        }
    }

    /// `tcp_htcp.c::htcp_alpha_update`.
    fn update_alpha(&mut self, now: Time) {
        // 32 bits throughout, like Linux.
        let hz = self.clock.hz() as u32;
        let since_event = (self.clock.at(now) - self.last_event) as u32;
        let mut factor = 1;
        self.high_speed = since_event > hz;
        if self.high_speed {
            let beyond = since_event - hz;
            let half = beyond / 2;
            let quadratic = half.wrapping_mul(half) / hz;
            factor = 1 + beyond.wrapping_mul(10).wrapping_add(quadratic) / hz;
        }
        if let Some(min_rtt) = self.min_rtt.filter(|_| self.rtt_scaling) {
            // In eighths: the reference round trip over the path's, between 0.5 and 10.
            let scale = (8 * self.clock.hz() / (SCALE_PER_S * min_rtt)).clamp(4, 80) as u32;
            factor = (factor.wrapping_shl(3) / scale).max(1);
        }
        self.alpha = factor.wrapping_mul(2 * (ONE - self.beta));
        if self.alpha == 0 {
            self.alpha = ONE;
        }
    }
}

impl CongestionAvoidance for Htcp {
    fn on_established(&mut self, _window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.last_event = self.clock.at(established.now);
    }

    fn on_ack_before_loss_detection(
        &mut self,
        window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        if measurement.state == RecoveryState::Open {
            self.acked = measurement.packets;
        }
        if let Some(rtt) = measurement.rtt.filter(|rtt| rtt.as_us() > 0) {
            self.note_rtt(rtt, measurement.state);
        }
        if self.bandwidth_switch {
            self.note_throughput(window.cwnd, measurement);
        }
    }

    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        if let Some(acked) = slow_start_or_remaining(window, slow_start, ack) {
            self.increase_cwnd(window, acked, ack);
        }
    }

    /// `tcp_htcp.c::htcp_cong_avoid`.
    fn increase_cwnd(&mut self, window: &mut CongestionWindow, _acked: u32, ack: &AckSample) {
        let credit = (u64::from(window.count) * u64::from(self.alpha)) >> SHIFT;
        if credit >= u64::from(window.cwnd) {
            // As in Linux, the packets of the ACK at which the window grows are not counted.
            window.cwnd = window.cwnd.saturating_add(1).min(window.clamp);
            window.count = 0;
            self.update_alpha(ack.now);
        } else {
            window.count = window.count.saturating_add(self.acked);
        }
        self.acked = 1;
    }

    /// `tcp_htcp.c::htcp_recalc_ssthresh`.
    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        self.update_beta();
        self.update_alpha(congestion.now);
        if let Some(min_rtt) = self.min_rtt.filter(|&min_rtt| min_rtt < self.max_rtt) {
            // Routes may change: the largest RTT decays.
            self.max_rtt = min_rtt + (self.max_rtt - min_rtt) * 95 / 100;
        }
        // No overflow: β is less than 1.
        let kept = ((u64::from(window.cwnd) * u64::from(self.beta)) >> SHIFT) as u32;
        kept.max(2)
    }

    fn on_recovery_state(
        &mut self,
        _window: &mut CongestionWindow,
        now: Time,
        state: RecoveryState,
    ) {
        match state {
            RecoveryState::Cwr | RecoveryState::Recovery | RecoveryState::Loss => {
                self.undo = Some(Undo {
                    last_event: self.last_event,
                    max_rtt: self.max_rtt,
                    old_max_throughput: self.old_max_throughput,
                });
                self.last_event = self.clock.at(now);
            }
            RecoveryState::Open if self.undo.take().is_some() => {
                self.last_event = self.clock.at(now);
            }
            RecoveryState::Open | RecoveryState::Disorder => {}
        }
    }

    fn cwnd_after_undo(&mut self, window: &CongestionWindow, prior_cwnd: u32) -> u32 {
        if let Some(undo) = self.undo.take() {
            self.last_event = undo.last_event;
            self.max_rtt = undo.max_rtt;
            self.old_max_throughput = undo.old_max_throughput;
        }
        window.cwnd.max(prior_cwnd)
    }

    fn mode(&self) -> &'static str {
        if self.high_speed { "high_speed" } else { "low_speed" }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("alpha_packets", f64::from(self.alpha) / f64::from(ONE));
        observer.record_value("beta", f64::from(self.beta) / f64::from(ONE));
        observer.record_value("min_rtt_s", self.clock.seconds(self.min_rtt.unwrap_or(0)));
        observer.record_value("max_rtt_s", self.clock.seconds(self.max_rtt));
        observer.record_value("throughput_packets_per_s", self.throughput.smoothed as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{ack, loss, measured};

    fn htcp(parameters: &[(&str, bool)], hz: i64) -> Htcp {
        use jostle_registry::ParameterValue;
        let mut given: alloc::collections::BTreeMap<_, _> = parameters
            .iter()
            .map(|&(name, on)| (name.to_owned(), ParameterValue::Bool(on)))
            .collect();
        given.insert("hz".to_owned(), ParameterValue::Integer(hz));
        Htcp::new(&ROW.entry.resolve(&given).unwrap())
    }

    fn at_ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn alpha(law: &mut Htcp, since_event_ms: u64) -> f64 {
        law.update_alpha(at_ms(since_event_ms));
        f64::from(law.alpha) / f64::from(ONE)
    }

    /// algorithms.md: β = 0.5, no scaling, Δ = 5 s: α = 1 + 10 · 4 + (4/2)² = 45.
    #[test]
    fn growth_follows_the_time_since_the_last_loss() {
        for hz in [100, 250, 1000] {
            let mut law = htcp(&[("use_rtt_scaling", false)], hz);
            for (ms, expected) in [(0, 1.0), (1_000, 1.0), (2_000, 11.0), (5_000, 45.0)] {
                assert_eq!(alpha(&mut law, ms), expected, "{ms} ms at {hz} Hz");
            }
            law.beta = BETA_MAX;
            assert_eq!(alpha(&mut law, 5_000), 45.0 * 2.0 * 26.0 / 128.0);
        }
    }

    /// α(Δ) · RTT / 0.1 s, the ratio held between 0.1 and 2.
    #[test]
    fn growth_is_scaled_by_the_rtt() {
        for (rtt_ms, expected) in [(1, 4.0), (10, 4.0), (50, 22.0), (100, 45.0), (200, 90.0)] {
            let mut law = htcp(&[], 1000);
            law.note_rtt(Span::from_ms(rtt_ms), RecoveryState::Open);
            assert_eq!(alpha(&mut law, 5_000), expected, "at {rtt_ms} ms");
        }
        let mut law = htcp(&[], 1000);
        law.note_rtt(Span::from_ms(900), RecoveryState::Open);
        assert_eq!(alpha(&mut law, 5_000), 90.0);
    }

    /// Linux squares in 32 bits: at 131,072 ticks beyond the first second the term is gone.
    #[test]
    fn the_quadratic_term_wraps() {
        let mut law = htcp(&[("use_rtt_scaling", false)], 1000);
        assert_eq!(alpha(&mut law, 1_000 + 131_070), 1.0 + 5_605.0);
        assert_eq!(alpha(&mut law, 1_000 + 131_072), 1.0 + 1_310.0);
    }

    #[test]
    fn the_largest_rtt_rises_in_small_steps_and_fades() {
        let mut law = htcp(&[("use_bandwidth_switch", false)], 1000);
        for (rtt_ms, max_ms) in [(100, 100), (121, 100), (120, 120), (130, 130), (90, 130)] {
            law.note_rtt(Span::from_ms(rtt_ms), RecoveryState::Open);
            assert_eq!(law.max_rtt, max_ms, "after {rtt_ms} ms");
        }
        law.note_rtt(Span::from_ms(140), RecoveryState::Recovery);
        assert_eq!((law.min_rtt, law.max_rtt), (Some(90), 130));
        law.ssthresh_after(&CongestionWindow::default(), &loss());
        assert_eq!(law.max_rtt, 90 + 38, "95 % of 40 ms remain");
    }

    /// β = RTT_min / RTT_max between 0.5 and 0.8, from the second loss on.
    #[test]
    fn a_loss_empties_the_queue() {
        let window = CongestionWindow { cwnd: 1000, ..CongestionWindow::default() };
        for (max_ms, kept) in [(150, 664), (105, 796), (300, 500)] {
            let mut law = htcp(&[("use_bandwidth_switch", false)], 1000);
            law.min_rtt = Some(100);
            law.max_rtt = max_ms;
            assert_eq!(law.ssthresh_after(&window, &loss()), 500);
            law.max_rtt = max_ms;
            assert_eq!(law.ssthresh_after(&window, &loss()), kept, "at {max_ms} ms");
        }
    }

    #[test]
    fn the_second_loss_halves_where_throughput_changed_by_a_fifth() {
        let window = CongestionWindow { cwnd: 1000, ..CongestionWindow::default() };
        for (new, kept) in [(799, 500), (800, 664), (1200, 664), (1201, 500)] {
            let mut law = htcp(&[], 1000);
            (law.min_rtt, law.max_rtt, law.adaptive) = (Some(100), 150, true);
            law.old_max_throughput = 1000;
            law.throughput.max = new;
            assert_eq!(law.ssthresh_after(&window, &loss()), kept, "{new} after 1000");
        }
    }

    #[test]
    fn throughput_is_that_of_a_window_and_a_round_trip() {
        let mut law = htcp(&[], 1000);
        let mut window =
            CongestionWindow { cwnd: 100, ssthresh: 50, ..CongestionWindow::default() };
        let rtt = Some(Span::from_ms(100));
        law.note_rtt(Span::from_ms(100), RecoveryState::Open);
        law.throughput.since = Some(0);
        // A packet per ms: the round trip is the longer one.
        for ms in 1..=100 {
            law.on_ack_before_loss_detection(&mut window, &measured(at_ms(ms), 1, rtt));
        }
        assert_eq!((law.throughput.max, law.throughput.packets), (1000, 0));
        // Beyond three round trips samples are smoothed. A window but α is enough, so this one is
        // 99 packets in 498 ms: (3 · 1000 + 198) / 4.
        for ms in (402..=600).step_by(2) {
            law.on_ack_before_loss_detection(&mut window, &measured(at_ms(ms), 1, rtt));
        }
        assert_eq!((law.throughput.max, law.throughput.smoothed), (1000, 799));
    }

    #[test]
    fn an_ack_counts_what_it_acknowledged_and_the_next_step_waits() {
        let mut law = htcp(&[], 100);
        let mut window = CongestionWindow { cwnd: 10, ssthresh: 5, ..CongestionWindow::default() };
        for count in [2, 4, 6, 8, 10] {
            law.on_ack_before_loss_detection(&mut window, &measured(Time::ZERO, 2, None));
            law.increase_cwnd(&mut window, 2, &ack(1));
            assert_eq!((window.cwnd, window.count), (10, count));
        }
        law.on_ack_before_loss_detection(&mut window, &measured(Time::ZERO, 2, None));
        law.increase_cwnd(&mut window, 2, &ack(1));
        assert_eq!((window.cwnd, window.count), (11, 0));
    }

    #[test]
    fn undo_restores_the_clock_and_recovery_restarts_it() {
        let mut law = htcp(&[], 100);
        let mut window = CongestionWindow::default();
        law.on_recovery_state(&mut window, at_ms(5_000), RecoveryState::Recovery);
        law.on_recovery_state(&mut window, at_ms(5_300), RecoveryState::Open);
        assert_eq!(law.last_event, 530);
        law.on_recovery_state(&mut window, at_ms(9_000), RecoveryState::Recovery);
        law.cwnd_after_undo(&window, 10);
        law.on_recovery_state(&mut window, at_ms(9_100), RecoveryState::Open);
        assert_eq!(law.last_event, 530, "the loss was none");
        law.on_recovery_state(&mut window, at_ms(9_200), RecoveryState::Disorder);
        law.on_recovery_state(&mut window, at_ms(9_300), RecoveryState::Open);
        assert_eq!(law.last_event, 530, "reordering is no congestion");
    }
}
