//! TCP LoLa.

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::{Span, Time};

use super::cubic::{self, Cubic, ms};
use crate::controller::{AckSample, Congestion, Established, Measurement, Observer, RecoveryState};
use crate::registry::{ControllerRow, Start};
use crate::slow_start::SlowStart;
use crate::windowed::{Window, WindowLaw, Windowed, past_slow_start};

const HOUR_NS: i64 = 3_600_000_000_000;

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "lola",
        summary: "cubic growth up to a short queue, which flows then fill to equal shares, hold, \
                  and drain together",
        class: "delay",
        based_on: &["cubic"],
        source: "Hock, Neumeister, Zitterbart & Bless, TCP LoLa: Congestion Control for Low \
                 Latencies and High Throughput, IEEE LCN 2017; the authors' tcp_lola.c 1.5",
        parameters: &[
            Parameter {
                name: "queue_low",
                summary: "queueing delay above which flows balance their shares",
                kind: Kind::Span { default_ns: 500_000, min_ns: 0, max_ns: HOUR_NS },
            },
            Parameter {
                name: "queue_target",
                summary: "queueing delay above which the window is held, then reduced",
                kind: Kind::Span { default_ns: 5_000_000, min_ns: 0, max_ns: HOUR_NS },
            },
            Parameter {
                name: "curve_factor",
                summary: "φ: after t ms of balancing a flow should have (t/φ)³ packets queued",
                kind: Kind::Integer { default: 75, min: 1, max: 100_000 },
            },
            Parameter {
                name: "hold_time",
                summary: "time for which the window is held before it is reduced",
                kind: Kind::Span { default_ns: 250_000_000, min_ns: 0, max_ns: HOUR_NS },
            },
            Parameter {
                name: "gamma",
                summary: "share that a reduction keeps of what fills the path, in 1024ths",
                kind: Kind::Integer { default: 927, min: 1, max: 1024 },
            },
            Parameter {
                name: "base_timeout",
                summary: "reductions without an RTT near the base after which it is forgotten; 0 \
                          for never",
                kind: Kind::Integer { default: 10, min: 0, max: 1_000_000 },
            },
        ],
    },
    start: Start::Own,
    build: |parts| Box::new(Windowed::new(Lola::new(&parts.values), parts.slow_start)),
};

/// A measuring interval (`lola_measurement_time`) and the samples that it needs.
const INTERVAL_MS: u64 = 40;
const INTERVAL_SAMPLES: u32 = 20;

/// Within this of the base an RTT confirms it; below by more than this it is another path's
/// (`lola_base_delay_epsilon`).
const BASE_TOLERANCE_US: u64 = 100;

/// Least window that is reduced, and that a reduction leaves (`lola_cwnd_min`).
const LEAST_CWND: u32 = 5;

/// Slow start ends at this queueing delay, judged by the least of so many samples of a round, from
/// this window on.
const EXIT_QUEUE_US: u64 = 1_000;
const EXIT_SAMPLES: u32 = 16;
const EXIT_CWND: u32 = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// CUBIC's growth.
    #[default]
    Growth,
    /// Fair-flow balancing, since a time.
    Balancing(u64),
    /// CWndHold, since a time.
    Hold(u64),
}

/// The LoLa window law. It grows as CUBIC until a queue builds up. From then on each flow adds what
/// it lacks of (t/φ)³ packets in the queue, a target that is the same for all of them: whoever has
/// more, waits. All see the queue exceed its target at about the same time, hold their windows
/// until the last one has, and drain it together.
#[derive(Clone, Debug)]
pub struct Lola {
    queue_low_us: u64,
    queue_target_us: u64,
    curve_factor: u64,
    hold_ms: u64,
    gamma: u64,
    base_timeout: u64,
    cubic: Cubic,
    phase: Phase,
    /// Least RTT; none before a sample, and after it was forgotten.
    base_us: Option<u64>,
    /// The base was learnt, or fell, since the last reduction: what queues was underestimated.
    base_fell: bool,
    /// Slow start ended by its own judgement, and its queue is not drained yet.
    overshot: bool,
    /// Reductions since an RTT near the base.
    unconfirmed: u64,
    /// Least RTT of the measuring interval, the samples it had, and when it ends.
    rtt_us: Option<u64>,
    samples: u32,
    interval_end_ms: u64,
    /// The packet whose acknowledgement ends a round of slow start.
    round_end: u64,
    /// A loss was signalled: samples still show the queue before it.
    deaf: bool,
    /// Packets to acknowledge for an increase by one, outside CUBIC's growth.
    per_increase: u32,
    /// Queueing delay when last judged.
    queue_us: u64,
}

impl Lola {
    /// LoLa with the parameters of its registry row.
    pub fn new(values: &Values) -> Self {
        Self {
            queue_low_us: values.span("queue_low").as_us(),
            queue_target_us: values.span("queue_target").as_us(),
            curve_factor: u64::from(values.u32("curve_factor")),
            hold_ms: values.span("hold_time").as_ns() / 1_000_000,
            gamma: u64::from(values.u32("gamma")),
            base_timeout: u64::from(values.u32("base_timeout")),
            cubic: Cubic::new(&cubic::ROW.entry.defaults()),
            phase: Phase::Growth,
            base_us: None,
            base_fell: false,
            overshot: false,
            unconfirmed: 0,
            rtt_us: None,
            samples: 0,
            interval_end_ms: 0,
            round_end: 0,
            deaf: false,
            per_increase: 2,
            queue_us: 0,
        }
    }

    fn start_interval(&mut self) {
        (self.rtt_us, self.samples) = (None, 0);
    }

    /// Packets that a flow should have in the queue after `elapsed_ms` of balancing.
    fn target(&self, elapsed_ms: u64) -> u64 {
        let cube = |x: u64| u128::from(x).saturating_mul(u128::from(x) * u128::from(x));
        u64::try_from(cube(elapsed_ms) / cube(self.curve_factor)).unwrap_or(u64::MAX)
    }

    /// Growth while flows balance: within a measuring interval as much as the queue lacks of this
    /// flow's packets, but no more than four times what the target rose by in a base RTT, or twice
    /// the growth so far in a round trip.
    fn balance(&mut self, cwnd: u32, elapsed_ms: u64, (rtt_us, base_us): (u64, u64)) {
        let target = self.target(elapsed_ms);
        let queued = u128::from(cwnd) * u128::from(rtt_us - base_us) / u128::from(rtt_us);
        let queued = u64::try_from(queued).unwrap_or(u64::MAX);
        self.per_increase = if queued < target {
            let risen = target - self.target(elapsed_ms.saturating_sub(base_us / 1000));
            let growth = u64::from(cwnd / self.per_increase.max(1));
            let increase = risen.saturating_mul(4).max(2 * growth).min(target - queued).max(1);
            let spread = u128::from(cwnd) * u128::from(INTERVAL_MS * 1000)
                / (u128::from(increase) * u128::from(rtt_us));
            u32::try_from(spread).unwrap_or(u32::MAX).max(4)
        } else {
            cwnd.saturating_mul(100)
        };
    }

    /// Precautionary decongestion: to γ of the window that fills the path, so that the queue drains
    /// and everyone sees the base RTT.
    fn reduce(&mut self, window: &mut Window, (rtt_us, base_us): (u64, u64)) {
        let share = u128::from(base_us) * u128::from(self.gamma);
        let kept = u128::from(window.cwnd) * share / u128::from(rtt_us) / 1024;
        self.cubic.restart(window.cwnd);
        window.cwnd = (kept as u32).max(LEAST_CWND).min(window.clamp);
        window.ssthresh = window.ssthresh.min(window.cwnd);
        self.phase = Phase::Growth;
        (self.base_fell, self.overshot) = (false, false);
        self.unconfirmed += 1;
        if self.base_timeout > 0 && self.unconfirmed > self.base_timeout {
            (self.base_us, self.unconfirmed) = (None, 0);
        }
    }

    /// Whether the measuring interval is over and says something.
    fn may_judge(&self, cwnd: u32, now_ms: u64, rtt_us: u64) -> bool {
        let Some(epoch_ms) = self.cubic.epoch_ms() else { return false };
        // After a reduction it takes two round trips until the queue tells of it.
        let settled = matches!(self.phase, Phase::Balancing(_))
            || self.base_fell
            || self.overshot
            || now_ms.saturating_sub(epoch_ms) > 2 * rtt_us / 1000;
        let over = now_ms >= self.interval_end_ms || self.overshot;
        settled && over && self.samples >= INTERVAL_SAMPLES && cwnd >= LEAST_CWND
    }

    /// Moves from phase to phase.
    fn judge(&mut self, window: &mut Window, now_ms: u64) {
        let (Some(rtt_us), Some(base_us)) = (self.rtt_us, self.base_us) else { return };
        if let Phase::Hold(since_ms) = self.phase {
            if now_ms.saturating_sub(since_ms) <= self.hold_ms {
                return;
            }
            self.reduce(window, (rtt_us, base_us));
        } else {
            if !self.may_judge(window.cwnd, now_ms, rtt_us) {
                return;
            }
            self.queue_us = rtt_us - base_us;
            if self.phase == Phase::Growth && self.queue_us > self.queue_low_us {
                self.phase = Phase::Balancing(now_ms);
                self.per_increase = self.cubic.per_increase();
            }
            if let Phase::Balancing(since_ms) = self.phase {
                let elapsed_ms = now_ms.saturating_sub(since_ms);
                self.balance(window.cwnd, elapsed_ms, (rtt_us, base_us));
            }
            if self.base_fell || self.overshot {
                self.reduce(window, (rtt_us, base_us));
            } else if self.queue_us > self.queue_target_us {
                // What was measured is kept for the reduction.
                self.phase = Phase::Hold(now_ms);
                self.per_increase = window.cwnd.saturating_mul(100);
                return;
            }
        }
        self.start_interval();
        self.interval_end_ms = now_ms + INTERVAL_MS;
    }

    /// Ends slow start once every RTT of a round shows a queue.
    fn judge_slow_start(&mut self, window: &mut Window, measurement: &Measurement) {
        let (Some(rtt_us), Some(base_us)) = (self.rtt_us, self.base_us) else { return };
        if window.cwnd >= EXIT_CWND
            && self.samples >= EXIT_SAMPLES
            && rtt_us > base_us + EXIT_QUEUE_US
        {
            window.ssthresh = window.cwnd;
            self.overshot = true;
            self.cubic.restart(0);
        } else if measurement.first_unacked > self.round_end {
            self.round_end = measurement.next_to_send;
            self.start_interval();
        }
    }
}

impl WindowLaw for Lola {
    fn on_established(&mut self, window: &mut Window, established: &Established) {
        self.cubic.on_established(window, established);
    }

    fn on_flight_start(&mut self, window: &mut Window, now: Time, idle: Span) {
        self.cubic.on_flight_start(window, now, idle);
    }

    fn on_measurement(&mut self, window: &mut Window, measurement: &Measurement) {
        let Some(rtt) = measurement.rtt else { return };
        let rtt_us = rtt.as_us().max(1);
        if self.deaf && !window.in_slow_start() {
            let base_ms = self.base_us.unwrap_or(0) / 1000;
            let since_ms =
                self.cubic.epoch_ms().map(|epoch| ms(measurement.now).saturating_sub(epoch));
            if since_ms.is_none_or(|since_ms| since_ms < base_ms) {
                return;
            }
        }
        self.deaf = false;
        let base_us = self.base_us.map_or(rtt_us, |base| base.min(rtt_us));
        self.base_fell |= self.base_us.is_none_or(|base| base - base_us > BASE_TOLERANCE_US);
        self.base_us = Some(base_us);
        self.cubic.look_ahead(base_us);
        if rtt_us - base_us < BASE_TOLERANCE_US {
            self.unconfirmed = 0;
        }
        if !matches!(self.phase, Phase::Hold(_)) {
            self.rtt_us = Some(self.rtt_us.map_or(rtt_us, |least| least.min(rtt_us)));
            self.samples = self.samples.saturating_add(measurement.packets);
        }
        if window.in_slow_start() {
            self.judge_slow_start(window, measurement);
        }
    }

    fn grow(&mut self, window: &mut Window, slow_start: &mut dyn SlowStart, ack: &AckSample) {
        if !window.in_slow_start() {
            self.judge(window, ms(ack.now));
        }
        if let Some(acked) = past_slow_start(window, slow_start, ack) {
            self.avoid(window, acked, ack);
        }
    }

    fn avoid(&mut self, window: &mut Window, acked: u32, ack: &AckSample) {
        if self.phase == Phase::Growth {
            self.cubic.avoid(window, acked, ack);
        } else {
            window.additive_increase(self.per_increase, acked);
        }
    }

    /// CUBIC's.
    fn ssthresh(&mut self, window: &Window, congestion: &Congestion) -> u32 {
        self.phase = Phase::Growth;
        self.deaf = true;
        self.start_interval();
        self.cubic.ssthresh(window, congestion)
    }

    /// Slow start begins anew, and with it its rounds. Unlike CUBIC's, the plateau stays.
    fn on_state(&mut self, _window: &mut Window, _now: Time, state: RecoveryState) {
        if state == RecoveryState::Loss {
            self.phase = Phase::Growth;
            self.start_interval();
        }
    }

    fn undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
        self.deaf = false;
        window.cwnd.max(prior_cwnd)
    }

    fn mode(&self) -> &'static str {
        match self.phase {
            Phase::Growth => "growth",
            Phase::Balancing(_) => "balancing",
            Phase::Hold(_) => "hold",
        }
    }

    fn observe(&self, observer: &mut dyn Observer) {
        observer.value("base_rtt_s", self.base_us.unwrap_or(0) as f64 * 1e-6);
        observer.value("queue_s", self.queue_us as f64 * 1e-6);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: (u64, u64) = (105_000, 100_000);

    fn lola() -> Lola {
        let mut law = Lola::new(&ROW.entry.defaults());
        law.base_us = Some(PATH.1);
        law
    }

    fn at(cwnd: u32) -> Window {
        Window { cwnd, ssthresh: 2, ..Window::default() }
    }

    /// A judgement at `now_ms` of a full interval whose least RTT was `rtt_us`.
    fn judge(law: &mut Lola, window: &mut Window, now_ms: u64, rtt_us: u64) {
        if !matches!(law.phase, Phase::Hold(_)) {
            (law.rtt_us, law.samples) = (Some(rtt_us), INTERVAL_SAMPLES);
        }
        law.judge(window, now_ms);
    }

    /// LoLa in congestion avoidance, its epoch just begun.
    fn growing(window: &mut Window) -> Lola {
        let mut law = lola();
        law.avoid(window, 1, &crate::algorithms::fixtures::ack(1));
        assert_eq!(law.cubic.epoch_ms(), Some(0));
        law
    }

    #[test]
    fn the_target_is_the_cube_of_time_over_phi() {
        let law = lola();
        for (elapsed_ms, packets) in [(0, 0), (74, 0), (75, 1), (150, 8), (750, 1_000)] {
            assert_eq!(law.target(elapsed_ms), packets, "after {elapsed_ms} ms");
        }
    }

    #[test]
    fn a_flow_adds_what_it_lacks_of_the_target_and_waits_if_it_has_more() {
        let mut law = lola();
        // 1050 · 5/105 = 50 packets of its own; the target after 300 ms is 64, and was 18 a base
        // RTT before. It grows by 14 in 40 ms, or 36 in a round trip.
        law.per_increase = 1_050;
        law.balance(1_050, 300, PATH);
        assert_eq!(law.per_increase, 1_050 * 40 / (14 * 105));
        // At 250 ms it is 37.
        law.balance(1_050, 250, PATH);
        assert_eq!(law.per_increase, 105_000);
    }

    #[test]
    fn growth_balancing_hold_and_reduction_follow_one_another() {
        let mut window = at(1_000);
        let mut law = growing(&mut window);
        judge(&mut law, &mut window, 190, 101_000);
        assert_eq!(law.phase, Phase::Growth, "not before two round trips");
        judge(&mut law, &mut window, 300, 100_500);
        assert_eq!(law.phase, Phase::Growth, "0.5 ms are not more than 0.5 ms");
        judge(&mut law, &mut window, 340, 100_501);
        assert_eq!(law.phase, Phase::Balancing(340));
        judge(&mut law, &mut window, 379, 106_000);
        assert_eq!(law.phase, Phase::Balancing(340), "the interval is not over");
        judge(&mut law, &mut window, 380, 105_001);
        assert_eq!(law.phase, Phase::Hold(380));
        judge(&mut law, &mut window, 630, 100_000);
        assert_eq!((law.phase, window.cwnd), (Phase::Hold(380), 1_000));
        judge(&mut law, &mut window, 631, 100_000);
        // 1000 · 100000/105001 · 927/1024, by the RTT before the hold.
        assert_eq!((law.phase, window.cwnd, window.ssthresh), (Phase::Growth, 862, 2));
        assert_eq!(law.cubic.epoch_ms(), None);
    }

    #[test]
    fn what_slow_start_queued_is_drained_without_a_hold() {
        let mut window = at(1_000);
        let mut law = growing(&mut window);
        law.overshot = true;
        judge(&mut law, &mut window, 1, 200_000);
        assert_eq!((law.phase, window.cwnd), (Phase::Growth, 452));
    }

    #[test]
    fn a_base_that_nobody_sees_any_more_is_forgotten() {
        let mut law = lola();
        for _ in 0..10 {
            law.reduce(&mut at(1_000), PATH);
        }
        assert_eq!(law.base_us, Some(100_000));
        law.reduce(&mut at(1_000), PATH);
        assert_eq!(law.base_us, None);
    }

    #[test]
    fn a_small_window_is_left_with_five_packets() {
        let mut window = at(6);
        lola().reduce(&mut window, (400_000, 100_000));
        assert_eq!(window.cwnd, 5);
    }

    #[test]
    fn slow_start_ends_when_a_round_shows_a_millisecond_of_queue() {
        for (rtt_us, ends) in [(101_000, false), (101_001, true)] {
            let (mut law, mut window) = (lola(), Window { cwnd: 100, ..Window::default() });
            for _ in 0..EXIT_SAMPLES {
                let rtt = Span::from_us(rtt_us);
                law.on_measurement(&mut window, &crate::algorithms::fixtures::measurement(rtt));
            }
            assert_eq!((law.overshot, window.in_slow_start()), (ends, !ends), "{rtt_us} us");
        }
    }
}
