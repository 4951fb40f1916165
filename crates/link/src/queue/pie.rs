//! PIE (RFC 8033) with the defaults of Linux (`net/sched/sch_pie.c`; RFC 8033 §4.3): the delay is
//! measured on the last dequeued packet (timestamps, not the departure-rate estimator), drops are
//! derandomised, `bytemode` is off. As in Linux, the probability is not limited to 1, unlike in
//! RFC 8033: after a long overload every packet is dropped until it is below 1 again.
//!
//! There is no timer. Updates of the probability that are due are made before any other change of
//! the queue. Their inputs do not change in between, so this is exact. Updates are at multiples of
//! the period (Linux waits 500 ms for the first).

use jostle_registry::{Parameter, ParameterValues, QueueLimit, RegistryEntry};
use jostle_units::{FULL_PACKET_BYTES, RandomStream, Span, Time};

use super::{Fifo, QueueDiscipline, mark};
use crate::packet::{DropReason, Packet, PacketOutcome};
use crate::parameters::{self, period, span};
use crate::registry::{QueueEntry, unrelated};

const ENTRY: RegistryEntry = RegistryEntry {
    name: "pie",
    summary: "drops with a probability from a proportional-integral controller of the delay",
    class: "active",
    based_on: &["drop_tail"],
    source: "RFC 8033; Linux net/sched/sch_pie.c",
    parameters: &[
        parameters::limit(Some(1_000)),
        TARGET,
        UPDATE,
        ALPHA,
        BETA,
        parameters::ecn(false),
    ],
};

pub(super) const TARGET: Parameter =
    span("target", Span::from_ms(15)).summary("target queueing delay");
pub(super) const UPDATE: Parameter =
    period("update", Span::from_ms(15)).summary("interval between updates of the probability");
pub(super) const ALPHA: Parameter = Parameter::number("alpha", 0.125, 0.0..=1000.0)
    .summary("weight of the deviation from the target, per s");
pub(super) const BETA: Parameter =
    Parameter::number("beta", 1.25, 0.0..=1000.0).summary("weight of the delay's trend, per s");

/// RFC 8033 §4.4: bursts of up to 150 ms are allowed.
const BURST_ALLOWANCE: Span = Span::from_ms(150);
/// RFC 8033 §5.1: above 10 %, ECN-capable packets are dropped too.
const MARK_ECN_THRESHOLD: f64 = 0.1;
/// Linux: above a delay of 250 ms the probability increases by an additional 2 % per update.
const HIGH_DELAY: Span = Span::from_ms(250);
/// Linux: a probability of 1 is 2⁵⁶, and a sum that overflows 64 bits is set to 1.
const PROBABILITY_OVERFLOW: f64 = 256.0;
/// RFC 8033 §5.4: bounds of the accumulated probability, which space drops evenly.
const NO_DROP_BELOW: f64 = 0.85;
const DROP_FROM: f64 = 8.5;

/// Parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PieParameters {
    /// Target delay of the controller.
    target: Span,
    /// Update period of the probability.
    update: Span,
    /// Weight of the current deviation from the target, per second (RFC 8033: 0.125; `tc`: 2, in
    /// sixteenths).
    alpha: f64,
    /// Weight of the delay's trend, per second (RFC 8033: 1.25; `tc`: 20, in sixteenths).
    beta: f64,
    /// Mark ECN-capable packets instead of dropping them while the probability is at most 10 %.
    ecn: bool,
}

impl PieParameters {
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            target: values.span("target"),
            update: values.span("update"),
            alpha: values.number("alpha"),
            beta: values.number("beta"),
            ecn: values.bool("ecn"),
        }
    }
}

/// A FIFO queue with PIE.
#[derive(Debug)]
pub struct Pie<B> {
    limit: QueueLimit,
    parameters: PieParameters,
    control: PieState,
    random: RandomStream,
    fifo: Fifo<B>,
}

/// State of PIE for one queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct PieState {
    next_update: Time,
    probability: f64,
    accumulated: f64,
    delay: Span,
    /// `delay` at the previous update.
    delay_before: Span,
    burst_left: Span,
    last_dequeue: Option<Time>,
}

impl PieState {
    pub fn new(parameters: &PieParameters) -> Self {
        Self {
            next_update: Time::ZERO + parameters.update,
            probability: 0.0,
            accumulated: 0.0,
            delay: Span::ZERO,
            delay_before: Span::ZERO,
            burst_left: BURST_ALLOWANCE,
            last_dequeue: None,
        }
    }

    /// RFC 8033 §4.2: returns the scale of a step, which is smaller for small probabilities.
    fn scale(&self) -> f64 {
        match self.probability {
            p if p < 0.000_001 => 1.0 / 2048.0,
            p if p < 0.000_01 => 1.0 / 512.0,
            p if p < 0.000_1 => 1.0 / 128.0,
            p if p < 0.001 => 1.0 / 32.0,
            p if p < 0.01 => 1.0 / 8.0,
            p if p < 0.1 => 1.0 / 2.0,
            _ => 1.0,
        }
    }

    /// `sch_pie.c::pie_calculate_probability`.
    fn update(&mut self, parameters: &PieParameters, backlog_bytes: u64) {
        let seconds = Span::as_secs_f64;
        let deviation = seconds(self.delay) - seconds(parameters.target);
        let trend = seconds(self.delay) - seconds(self.delay_before);
        let mut step = self.scale() * (parameters.alpha * deviation + parameters.beta * trend);
        // RFC 8033 §5.5: limit the step to 2 % if the probability is at least 10 %.
        if step > 0.02 && self.probability >= 0.1 {
            step = 0.02;
        }
        if self.delay > HIGH_DELAY {
            step += 0.02;
        }
        self.probability = match self.probability + step {
            overflow if overflow >= PROBABILITY_OVERFLOW => 1.0,
            sum => sum.max(0.0),
        };
        let idle = self.delay.is_zero() && self.delay_before.is_zero() && backlog_bytes == 0;
        if idle {
            // Linux reduces it by 1/64 per update, RFC 8033 §4.2 by 2 %.
            self.probability -= self.probability / 64.0;
        }
        let low = Span::from_ns(parameters.target.as_ns() / 2);
        if self.probability == 0.0 && self.delay < low && self.delay_before < low {
            self.burst_left = BURST_ALLOWANCE;
            self.last_dequeue = None;
            self.accumulated = 0.0;
        }
        self.delay_before = self.delay;
    }

    /// Returns whether another update would change nothing.
    fn at_rest(&self, parameters: &PieParameters) -> bool {
        let low = Span::from_ns(parameters.target.as_ns() / 2);
        self.probability == 0.0
            && self.delay == self.delay_before
            && self.delay < low
            && self.burst_left == BURST_ALLOWANCE
            && self.last_dequeue.is_none()
    }

    /// Makes the updates that were due by `now`.
    #[inline]
    pub fn catch_up(&mut self, parameters: &PieParameters, now: Time, backlog_bytes: u64) {
        while self.next_update <= now {
            if self.at_rest(parameters) {
                let periods = now.since(self.next_update).as_ns() / parameters.update.as_ns();
                self.next_update += parameters.update.mul_div(periods + 1, 1);
                return;
            }
            self.update(parameters, backlog_bytes);
            self.next_update += parameters.update;
        }
    }

    /// Decides on an arrival. Returns whether it is accepted, possibly with a mark; else it is
    /// dropped.
    #[inline]
    pub fn admits<B>(
        &mut self,
        parameters: &PieParameters,
        now: Time,
        packet: &mut Packet<B>,
        backlog_bytes: u64,
        random: &mut RandomStream,
        outcome: &mut dyn PacketOutcome<B>,
    ) -> bool {
        if !self.strikes(parameters.target, backlog_bytes, random) {
            return true;
        }
        if parameters.ecn && self.probability <= MARK_ECN_THRESHOLD && mark(packet) {
            outcome.marked(now, packet, DropReason::Pie);
            return true;
        }
        self.drops(now, packet, DropReason::Pie, outcome);
        false
    }

    /// Drops an arriving packet.
    pub fn drops<B>(
        &mut self,
        now: Time,
        packet: &Packet<B>,
        reason: DropReason,
        outcome: &mut dyn PacketOutcome<B>,
    ) {
        self.accumulated = 0.0;
        outcome.dropped(now, packet, reason);
    }

    /// RFC 8033 §4.1 and §5.4: returns whether an arrival is to be marked or dropped.
    /// `sch_pie.c::pie_drop_early`.
    fn strikes(&mut self, target: Span, backlog_bytes: u64, random: &mut RandomStream) -> bool {
        let half_target = Span::from_ns(target.as_ns() / 2);
        if !self.burst_left.is_zero()
            || (self.delay < half_target && self.probability < 0.2)
            || backlog_bytes < 2 * u64::from(FULL_PACKET_BYTES)
        {
            return false;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        } else {
            self.accumulated += self.probability;
        }
        if self.accumulated < NO_DROP_BELOW {
            return false;
        }
        if self.accumulated >= DROP_FROM {
            return true;
        }
        let hit = random.chance(self.probability);
        if hit {
            self.accumulated = 0.0;
        }
        hit
    }

    /// Records the departure of a packet that arrived at `queued_at` and leaves `left_bytes` in the
    /// queue.
    #[inline]
    pub fn departure(&mut self, now: Time, queued_at: Time, left_bytes: u64) {
        self.delay = if left_bytes == 0 { Span::ZERO } else { now.since(queued_at) };
        // As in Linux, the burst allowance is reduced by the time between departures, not by
        // updates.
        if let Some(last) = self.last_dequeue {
            self.burst_left = self.burst_left - now.since(last);
        }
        self.last_dequeue = Some(now);
    }
}

impl<B: Copy + Send + 'static> Pie<B> {
    pub(crate) const ROW: QueueEntry<B> = QueueEntry {
        entry: ENTRY,
        check: unrelated,
        build: |values, random| {
            Box::new(Self::new(values.limit("limit"), PieParameters::new(values), random))
        },
    };
}

impl<B: Copy> Pie<B> {
    fn new(limit: QueueLimit, parameters: PieParameters, random: RandomStream) -> Self {
        Self {
            limit,
            parameters,
            control: PieState::new(&parameters),
            random,
            fifo: Fifo::default(),
        }
    }

    #[inline]
    fn catch_up(&mut self, now: Time) {
        self.control.catch_up(&self.parameters, now, self.fifo.backlog().bytes);
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for Pie<B> {
    fn enqueue(&mut self, now: Time, mut packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        self.catch_up(now);
        let backlog = self.fifo.backlog();
        if !backlog.fits(packet.size_bytes, self.limit) {
            self.control.drops(now, &packet, DropReason::Overflow, outcome);
            return;
        }
        let (parameters, random) = (&self.parameters, &mut self.random);
        if self.control.admits(parameters, now, &mut packet, backlog.bytes, random, outcome) {
            self.fifo.push(packet);
        }
    }

    fn dequeue(&mut self, now: Time, _: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
        self.catch_up(now);
        let packet = self.fifo.pop()?;
        self.control.departure(now, packet.queued_at, self.fifo.backlog().bytes);
        Some(packet)
    }

    fn backlog_bytes(&self) -> u64 {
        self.fifo.backlog().bytes
    }

    fn backlog_packets(&self) -> u64 {
        self.fifo.backlog().packets
    }

    fn advance_to(&mut self, now: Time) {
        self.catch_up(now);
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{RecordedOutcomes, capable};
    use super::*;
    use crate::packet::Ecn;

    const LAW: PieParameters = PieParameters {
        target: Span::from_ms(15),
        update: Span::from_ms(15),
        alpha: 0.125,
        beta: 1.25,
        ecn: true,
    };

    fn after_update(probability: f64, delay_ms: u64, before_ms: u64) -> f64 {
        let mut control = PieState {
            probability,
            delay: Span::from_ms(delay_ms),
            delay_before: Span::from_ms(before_ms),
            ..PieState::new(&LAW)
        };
        control.update(&LAW, 100_000);
        control.probability
    }

    #[test]
    fn steps_of_the_probability_are_those_of_the_specification() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} instead of {b}");
        // 0.125 · (35 − 15) ms + 1.25 · (35 − 25) ms = 0.0025 + 0.0125 = 0.015, before scaling.
        close(after_update(0.2, 35, 25), 0.215);
        close(after_update(0.05, 35, 25), 0.05 + 0.015 / 2.0);
        close(after_update(0.005, 35, 25), 0.005 + 0.015 / 8.0);
        close(after_update(0.000_5, 35, 25), 0.000_5 + 0.015 / 32.0);
        close(after_update(0.000_05, 35, 25), 0.000_05 + 0.015 / 128.0);
        close(after_update(0.000_005, 35, 25), 0.000_005 + 0.015 / 512.0);
        close(after_update(0.0, 35, 25), 0.015 / 2048.0);
        // Steps up are capped to 2 % above 10 %; beyond 250 ms another 2 % comes on top.
        close(after_update(0.2, 200, 100), 0.22);
        close(after_update(0.1, 200, 100), 0.12);
        close(after_update(0.05, 200, 100), 0.05 + (0.125 * 0.185 + 1.25 * 0.1) / 2.0);
        close(after_update(0.2, 250, 100), 0.22);
        close(after_update(0.2, 300, 100), 0.24);
        // Down: 0.125 · (5 − 15) ms + 1.25 · (5 − 15) ms = −0.01375; never below 0.
        close(after_update(0.2, 5, 15), 0.186_25);
        close(after_update(0.000_000_1, 5, 15), 0.0);
        // No limit at 1.
        close(after_update(0.995, 300, 100), 1.035);
        close(after_update(1.5, 0, 600), 1.5 - 0.125 * 0.015 - 1.25 * 0.6);
        close(after_update(255.99, 300, 100), 1.0);
    }

    #[test]
    fn an_idle_queue_forgets_its_probability_by_a_64th_per_update() {
        let mut control = PieState { probability: 0.5, ..PieState::new(&LAW) };
        control.update(&LAW, 0);
        assert!((control.probability - (0.5 - 0.125 * 0.015) * 63.0 / 64.0).abs() < 1e-12);
    }

    /// RFC 8033 §4.2: "if drop_prob < 0.000001 … else if < 0.00001 …": a bound is in the upper range.
    #[test]
    fn a_bound_of_the_scale_belongs_to_the_larger_steps() {
        for (probability, divisor) in
            [(1e-6, 512.0), (1e-5, 128.0), (1e-4, 32.0), (1e-3, 8.0), (1e-2, 2.0), (1e-1, 1.0)]
        {
            let step = after_update(probability, 35, 25) - probability;
            assert!((step - 0.015 / divisor).abs() < 1e-12, "{step} at {probability}");
        }
    }

    /// A queue with packets or with a recent delay is not idle.
    #[test]
    fn a_queue_in_use_keeps_its_probability() {
        for (delay_ms, before_ms, backlog_bytes, step) in [
            (1, 0, 0, 0.125 * -0.014 + 1.25 * 0.001),
            (0, 1, 0, 0.125 * -0.015 - 1.25 * 0.001),
            (0, 0, 1, 0.125 * -0.015),
        ] {
            let mut control = PieState {
                probability: 0.5,
                delay: Span::from_ms(delay_ms),
                delay_before: Span::from_ms(before_ms),
                ..PieState::new(&LAW)
            };
            control.update(&LAW, backlog_bytes);
            assert!((control.probability - 0.5 - step).abs() < 1e-12, "{}", control.probability);
        }
    }

    /// RFC 8033 §4.4: the allowance is 150 ms again once the probability is 0 and both delays are less
    /// than half the target, 7.5 ms.
    #[test]
    fn a_calm_queue_may_burst_again() {
        for (probability, delay_us, before_us, allowance_ms) in [
            (0.0, 7_499, 7_499, 150),
            (0.0, 7_500, 7_499, 0),
            (0.0, 7_499, 7_500, 0),
            (0.5, 7_499, 7_499, 0),
        ] {
            let mut control = PieState {
                probability,
                delay: Span::from_us(delay_us),
                delay_before: Span::from_us(before_us),
                burst_left: Span::ZERO,
                ..PieState::new(&LAW)
            };
            control.update(&LAW, 3_000);
            assert_eq!(
                control.burst_left,
                Span::from_ms(allowance_ms),
                "{delay_us}, {before_us} µs"
            );
        }
    }

    /// Linux, `pie_process_dequeue`: the time between two departures uses up the allowance.
    #[test]
    fn departures_use_up_the_burst_allowance() {
        let ms = |ms| Time::ZERO + Span::from_ms(ms);
        let mut control = PieState::new(&LAW);
        let mut left_ms = Vec::new();
        for at in [300, 400, 430, 500] {
            control.departure(ms(at), ms(at - 20), 1);
            left_ms.push(control.burst_left.as_us() / 1_000);
        }
        assert_eq!(left_ms, [150, 50, 20, 0]);
        assert_eq!(control.delay, Span::from_ms(20));
        control.departure(ms(510), ms(490), 0);
        assert_eq!(control.delay, Span::ZERO, "an empty queue has no delay");
    }

    /// `pie_drop_early`: the conditions under which no packet is dropped, each at its bound. An
    /// accumulated probability of 8.5 drops every other packet (RFC 8033 §5.4), whatever the seed.
    #[test]
    fn the_guards_end_at_their_bounds() {
        let strikes_of_32 = |probability, delay_us, backlog_bytes, burst_left| {
            let seeds = 0..32;
            let strikes = seeds.filter(|seed| {
                let mut control = PieState {
                    probability,
                    accumulated: DROP_FROM - 0.125,
                    delay: Span::from_us(delay_us),
                    burst_left,
                    ..PieState::new(&LAW)
                };
                let mut random = RandomStream::new(*seed, "bounds");
                control.strikes(LAW.target, backlog_bytes, &mut random)
            });
            strikes.count()
        };
        let none = Span::ZERO;
        assert_eq!(strikes_of_32(0.125, 7_500, 3_028, none), 32, "half the target, two packets");
        assert_eq!(strikes_of_32(0.125, 7_499, 3_028, none), 0, "less than half the target");
        assert_eq!(strikes_of_32(0.2, 7_499, 3_028, none), 32, "20 %");
        assert_eq!(strikes_of_32(0.125, 7_500, 3_027, none), 0, "less than two packets");
        assert_eq!(strikes_of_32(0.125, 7_500, 3_028, Span::from_ns(1)), 0, "a burst");
    }

    /// RFC 8033 §5.1: marks up to a probability of 10 %. Linux: `prob <= MAX_PROB / 10`.
    #[test]
    fn capable_packets_are_marked_up_to_ten_percent() {
        let admitted = |parameters: &PieParameters, probability, ecn| {
            let mut control = PieState {
                probability,
                accumulated: DROP_FROM,
                delay: Span::from_ms(20),
                burst_left: Span::ZERO,
                ..PieState::new(&LAW)
            };
            let mut fates = RecordedOutcomes::default();
            let mut arrival = Packet { ecn, ..capable(Time::ZERO, 1500) };
            let mut random = RandomStream::new(1, "marks");
            let admitted = control.admits(
                parameters,
                Time::ZERO,
                &mut arrival,
                9_000,
                &mut random,
                &mut fates,
            );
            assert_eq!(fates.dropped.len(), usize::from(!admitted));
            assert_eq!(control.accumulated == 0.0, !admitted, "a drop resets the sum");
            (admitted, fates.marked.len())
        };
        assert_eq!(admitted(&LAW, 0.1, Ecn::Capable), (true, 1));
        assert_eq!(admitted(&LAW, 0.100_001, Ecn::Capable), (false, 0));
        assert_eq!(admitted(&LAW, 0.1, Ecn::NotCapable), (false, 0));
        assert_eq!(admitted(&PieParameters { ecn: false, ..LAW }, 0.1, Ecn::Capable), (false, 0));
    }

    /// A standing delay above the target is no rest, even if no packet has arrived for a period.
    #[test]
    fn a_constant_delay_above_the_target_raises_the_probability() {
        let mut control = PieState {
            delay: Span::from_ms(20),
            delay_before: Span::from_ms(20),
            ..PieState::new(&LAW)
        };
        control.catch_up(&LAW, Time::ZERO + Span::from_ms(44), 100_000);
        assert_eq!(control.next_update, Time::ZERO + Span::from_ms(45));
        let two_steps = 2.0 * 0.125 * 0.005 / 2048.0;
        assert!((control.probability - two_steps).abs() < 1e-15, "{}", control.probability);
    }

    #[test]
    fn bursts_up_to_the_allowance_pass_and_a_standing_queue_does_not() {
        let mut queue = Pie::new(QueueLimit::Packets(1000), LAW, RandomStream::new(1, "pie"));
        let mut fates = RecordedOutcomes::default();
        // Two packets in, one out, every millisecond: the delay grows by half a ms per ms.
        let mut first = None;
        for ms in 0..900 {
            let now = Time::ZERO + Span::from_ms(ms);
            queue.enqueue(now, capable(now, 1500), &mut fates);
            queue.enqueue(now, capable(now, 1500), &mut fates);
            queue.dequeue(now, &mut fates);
            if first.is_none() && !fates.marked.is_empty() {
                first = Some(ms);
            }
        }
        assert!(first.is_some_and(|ms| ms > 150), "{first:?}");
        assert!(queue.control.probability > MARK_ECN_THRESHOLD);
        assert!(fates.dropped.iter().all(|(_, reason)| *reason == DropReason::Pie));
        assert!(!fates.dropped.is_empty(), "above 10 % capable packets are dropped too");
    }

    #[test]
    fn drops_are_spread_evenly() {
        let mut control = PieState {
            probability: 0.05,
            delay: Span::from_ms(20),
            burst_left: Span::ZERO,
            ..PieState::new(&LAW)
        };
        let mut random = RandomStream::new(9, "spread");
        let (mut gap, mut gaps) = (0u32, Vec::new());
        for _ in 0..200_000 {
            gap += 1;
            if control.strikes(Span::from_ms(15), 100_000, &mut random) {
                control.accumulated = 0.0;
                gaps.push(gap);
                gap = 0;
            }
        }
        // 0.85 ÷ 0.05 = 17 packets at least, 8.5 ÷ 0.05 = 170 at most; then geometric.
        assert!(gaps.iter().all(|gap| (17..=171).contains(gap)));
        let mean = gaps.iter().map(|gap| f64::from(*gap)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 36.5).abs() < 1.0, "{mean}");
    }

    #[test]
    fn updates_made_up_for_are_those_a_timer_would_have_made() {
        let mut lazy = Pie::<()>::new(QueueLimit::Packets(1000), LAW, RandomStream::new(1, "pie"));
        lazy.control.probability = 0.3;
        lazy.control.delay_before = Span::from_ms(10);
        let mut eager = lazy.control;
        for _ in 0..4_000 {
            eager.update(&LAW, 0);
        }
        lazy.catch_up(Time::ZERO + Span::from_secs(60));
        assert_eq!(lazy.control.probability, eager.probability);
        assert_eq!(lazy.control.next_update, Time::ZERO + Span::from_ms(60_015));
    }
}
