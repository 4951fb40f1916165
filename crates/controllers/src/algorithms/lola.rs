//! TCP LoLa.

mod slow_start_exit;

use alloc::boxed::Box;

use jostle_registry::{LinuxRelease, Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Span, Time};

use self::slow_start_exit::Rounds;
use super::cubic::{self, Cubic, ms};
use crate::cwnd::CongestionWindow;
use crate::jiffies::{self, Jiffies};
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{CongestionAvoidance, WindowBasedController};
use jostle_congestion::{
    AckSample, CongestionEvent, EstablishedEvent, RawAckSample, RecoveryState, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "lola",
        summary: "CUBIC up to a short queue; flows then balance their shares in the queue and \
            drain it together",
        class: "delay",
        based_on: &["cubic"],
        source: "Hock, Neumeister, Zitterbart & Bless, TCP LoLa: Congestion Control for Low \
                 Latencies and High Throughput, IEEE LCN 2017; Neumeister & Hock, tcp_lola.c 1.5, \
                 a module for Linux 4.4",
        parameters: &[
            Parameter::span("queue_low", Span::from_us(500), Span::ZERO..=Span::from_secs(3600))
                .summary("queueing delay above which flows balance their shares"),
            Parameter::span("queue_target", Span::from_ms(5), Span::ZERO..=Span::from_secs(3600))
                .summary("queueing delay above which cwnd is constant for a time, then reduced"),
            Parameter::integer("curve_factor", 75, 1..=100_000).summary(
                "after t ticks of balancing, a flow should have (t / curve_factor)³ packets queued",
            ),
            // The module only says that `curve_factor` depends on φ. 250 fits its φ
            // (docs/reference/algorithms/lola.md).
            jiffies::hz(250),
            Parameter::span("hold_time", Span::from_ms(250), Span::ZERO..=Span::from_secs(3600))
                .summary("time for which cwnd is constant before it is reduced"),
            Parameter::integer("gamma", 927, 1..=1024)
                .summary("share of the window that fills the path kept by a reduction, in 1024ths"),
            Parameter::integer("base_timeout", 10, 0..=1_000_000).summary(
                "reductions without an RTT near the base RTT after which it is discarded; 0: never",
            ),
        ],
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| Box::new(WindowBasedController::new(Lola::new(&parts.values), parts.slow_start)),
};

/// Length of a measuring interval (`lola_measurement_time`) and the number of samples that it
/// needs.
const INTERVAL: Span = Span::from_ms(40);
const INTERVAL_SAMPLES: u32 = 20;

/// An RTT within this distance of the base confirms the base. An RTT below the base by more belongs
/// to another path (`lola_base_delay_epsilon`).
const BASE_TOLERANCE_US: u64 = 100;

/// Minimum window that is reduced, and minimum after a reduction (`lola_cwnd_min`).
const LEAST_CWND: u32 = 5;

/// Queueing delay that ends slow start (`lola_slow_start_exit`), and the number of samples per
/// round whose minimum is used.
const EXIT_QUEUE_US: u64 = 1_000;
const EXIT_SAMPLES: u32 = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Growth like CUBIC.
    #[default]
    Growth,
    /// Fair-flow balancing, since a tick.
    Balancing(u64),
    /// CWndHold, since a tick.
    Hold(u64),
}

/// Congestion avoidance of LoLa. The window grows like CUBIC until a queue builds up. Then each
/// flow adds packets until it has (t/φ)³ packets in the queue. This target is the same for all
/// flows; a flow with more packets waits. All flows detect at about the same time that the queue
/// exceeds its target, keep their windows until the last flow has detected it, and then drain the
/// queue together.
///
/// The module counts time in ticks of the kernel's clock, and treats milliseconds as ticks when it
/// compares an RTT with them (`USEC_PER_MSEC`): both are equal only at 1000 ticks per second.
#[derive(Clone, Debug)]
pub struct Lola {
    clock: Jiffies,
    queue_low_us: u64,
    queue_target_us: u64,
    curve_factor: u64,
    hold_ticks: u64,
    gamma: u64,
    base_timeout: u64,
    cubic: Cubic,
    phase: Phase,
    /// Minimum RTT; `None` before a sample and after it expired.
    base_us: Option<u64>,
    /// Whether the base was set or fell since the last reduction, so that queueing was
    /// underestimated.
    base_fell: bool,
    /// Whether the first slow start ended with a queue that is not yet drained (`HYSTART_DELAY`).
    overshot: bool,
    /// Reductions since an RTT near the base.
    unconfirmed: u64,
    /// Minimum RTT of the measuring interval, its number of samples, and its end.
    rtt_us: Option<u64>,
    samples: u32,
    interval_end: u64,
    rounds: Rounds,
    next_to_send: u64,
    /// Whether a loss was signalled, so that samples still contain the queue from before it.
    deaf: bool,
    /// Packets to acknowledge for an increase by one, outside of CUBIC's growth.
    per_increase: u32,
    /// Queueing delay at the last check.
    queue_us: u64,
}

impl Lola {
    /// Creates LoLa with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        let clock = Jiffies::new(values);
        Self {
            clock,
            queue_low_us: values.span("queue_low").as_us(),
            queue_target_us: values.span("queue_target").as_us(),
            curve_factor: u64::from(values.u32("curve_factor")),
            hold_ticks: clock.rounded_up(values.span("hold_time")),
            gamma: u64::from(values.u32("gamma")),
            base_timeout: u64::from(values.u32("base_timeout")),
            cubic: Cubic::new(&cubic::ROW.entry.defaults()).following(LinuxRelease::V4_15),
            phase: Phase::Growth,
            base_us: None,
            base_fell: false,
            overshot: false,
            unconfirmed: 0,
            rtt_us: None,
            samples: 0,
            interval_end: 0,
            rounds: Rounds::default(),
            next_to_send: 0,
            deaf: false,
            per_increase: 2,
            queue_us: 0,
        }
    }

    fn start_interval(&mut self) {
        (self.rtt_us, self.samples) = (None, 0);
    }

    /// Returns the ticks since CUBIC's epoch began; `None` without an epoch.
    fn ticks_of_epoch(&self, now: Time) -> Option<u64> {
        let epoch = Time::ZERO + Span::from_ms(self.cubic.epoch_ms()?);
        Some(self.clock.at(now).saturating_sub(self.clock.at(epoch)))
    }

    /// Returns the target number of a flow's packets in the queue after `elapsed` ticks of
    /// balancing.
    fn target(&self, elapsed: u64) -> u64 {
        let cube = |x: u64| u128::from(x).saturating_mul(u128::from(x) * u128::from(x));
        u64::try_from(cube(elapsed) / cube(self.curve_factor)).unwrap_or(u64::MAX)
    }

    /// Computes the growth while flows balance: in a measuring interval the flow adds the packets
    /// that it lacks in the queue. The growth is limited to the larger of four times the increase
    /// of the target in a base RTT and twice the previous growth per round trip.
    fn balance(&mut self, cwnd: u32, elapsed: u64, (rtt_us, base_us): (u64, u64)) {
        let target = self.target(elapsed);
        let queued = u128::from(cwnd) * u128::from(rtt_us - base_us) / u128::from(rtt_us);
        let queued = u64::try_from(queued).unwrap_or(u64::MAX);
        self.per_increase = if queued < target {
            let risen = target - self.target(elapsed.saturating_sub(base_us / 1000));
            let growth = u64::from(cwnd / self.per_increase.max(1));
            let increase = risen.saturating_mul(4).max(2 * growth).min(target - queued).max(1);
            let spread = u128::from(cwnd) * u128::from(INTERVAL.as_us())
                / (u128::from(increase) * u128::from(rtt_us));
            u32::try_from(spread).unwrap_or(u32::MAX).max(4)
        } else {
            cwnd.saturating_mul(100)
        };
    }

    /// Precautionary decongestion: reduces the window to γ of the BDP, so that the queue drains and
    /// all flows measure the base RTT.
    fn reduce(&mut self, window: &mut CongestionWindow, (rtt_us, base_us): (u64, u64)) {
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

    /// Returns whether the measuring interval has ended with enough samples.
    fn may_judge(&self, cwnd: u32, now: Time, rtt_us: u64) -> bool {
        let Some(since_epoch) = self.ticks_of_epoch(now) else { return false };
        // After a reduction it takes two round trips until the RTT reflects it.
        let settled = matches!(self.phase, Phase::Balancing(_))
            || self.base_fell
            || self.overshot
            || since_epoch > 2 * rtt_us / 1000;
        let over = self.clock.at(now) >= self.interval_end || self.overshot;
        settled && over && self.samples >= INTERVAL_SAMPLES && cwnd >= LEAST_CWND
    }

    /// Changes the phase if required.
    fn judge(&mut self, window: &mut CongestionWindow, now: Time) {
        let (Some(rtt_us), Some(base_us)) = (self.rtt_us, self.base_us) else { return };
        let tick = self.clock.at(now);
        if let Phase::Hold(since) = self.phase {
            if tick.saturating_sub(since) <= self.hold_ticks {
                return;
            }
            self.reduce(window, (rtt_us, base_us));
        } else {
            if !self.may_judge(window.cwnd, now, rtt_us) {
                return;
            }
            self.queue_us = rtt_us - base_us;
            if self.phase == Phase::Growth && self.queue_us > self.queue_low_us {
                self.phase = Phase::Balancing(tick);
                self.per_increase = self.cubic.per_increase();
            }
            if let Phase::Balancing(since) = self.phase {
                self.balance(window.cwnd, tick.saturating_sub(since), (rtt_us, base_us));
            }
            if self.base_fell || self.overshot {
                self.reduce(window, (rtt_us, base_us));
            } else if self.queue_us > self.queue_target_us {
                // Keep the measurements for the reduction.
                self.phase = Phase::Hold(tick);
                self.per_increase = window.cwnd.saturating_mul(100);
                return;
            }
        }
        self.start_interval();
        self.interval_end = tick + self.clock.rounded_up(INTERVAL);
    }

    /// Ends slow start at an ACK train, or if all RTTs of a round show a queue. The first slow
    /// start that ends with a queue drains it. (After a timeout the module also keeps CUBIC's
    /// previous epoch; here a new one begins.)
    fn judge_slow_start(&mut self, window: &mut CongestionWindow, now_ms: u64) {
        let (Some(rtt_us), Some(base_us)) = (self.rtt_us, self.base_us) else { return };
        if window.cwnd < slow_start_exit::LEAST_CWND || self.overshot || self.rounds.train_found {
            return;
        }
        let mut ends = self.rounds.take_ack(now_ms, base_us);
        if self.samples < EXIT_SAMPLES {
            // Each ACK counts once in addition to its packets: an oversight of the module that its
            // comment mentions.
            self.samples += 1;
        } else if rtt_us > base_us + EXIT_QUEUE_US {
            self.overshot = self.cubic.w_max() == 0;
            ends = true;
        }
        if ends {
            window.ssthresh = window.cwnd;
            self.cubic.forget_epoch();
        }
    }

    /// Starts a round of slow start.
    fn start_round(&mut self, now: Time, end: u64) {
        self.rounds.begin(ms(now), end);
        self.phase = Phase::Growth;
        self.start_interval();
    }
}

impl CongestionAvoidance for Lola {
    fn on_established(&mut self, window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.cubic.on_established(window, established);
        self.rounds.begin(ms(established.now), 0);
    }

    /// Shifts all start times by the idle time, which does not count.
    fn on_flight_start(&mut self, window: &mut CongestionWindow, now: Time, idle: Span) {
        self.cubic.on_flight_start(window, now, idle);
        let tick = self.clock.at(now);
        let idle_ticks = tick - self.clock.at(now - idle);
        if let Phase::Balancing(since) | Phase::Hold(since) = &mut self.phase {
            *since = (*since + idle_ticks).min(tick);
        }
        self.rounds.shift(ms(now) - ms(now - idle), ms(now));
    }

    fn on_ack_before_loss_detection(
        &mut self,
        window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        self.next_to_send = measurement.next_to_send;
        let Some(rtt) = measurement.rtt else { return };
        let rtt_us = rtt.as_us().max(1);
        if self.deaf && !window.in_slow_start() {
            let base_ms = self.base_us.unwrap_or(0) / 1000;
            if self.ticks_of_epoch(measurement.now).is_none_or(|ticks| ticks < base_ms) {
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
            self.judge_slow_start(window, ms(measurement.now));
        }
    }

    /// `lolatcp_cong_avoid`, without its experimental exit for flows that do not fill their window
    /// in slow start.
    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        let slow = window.in_slow_start();
        if !slow {
            self.judge(window, ack.now);
        }
        // An epoch begins even if the flow is not cwnd-limited.
        if !ack.cwnd_limited && (slow || self.cubic.epoch_ms().is_some()) {
            return;
        }
        let mut acked = ack.acked;
        if slow {
            if self.rounds.over(ack.first_unacked) {
                self.start_round(ack.now, ack.next_to_send);
            }
            acked = slow_start.grow(window, ack);
            if !window.in_slow_start() {
                self.cubic.forget_epoch();
            }
        }
        if acked > 0 {
            self.increase_cwnd(window, acked, ack);
        }
    }

    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, ack: &AckSample) {
        if self.phase == Phase::Growth {
            self.cubic.increase_cwnd(window, acked, ack);
        } else {
            window.additive_increase(self.per_increase, acked);
        }
    }

    /// Reduces the window like CUBIC.
    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        self.phase = Phase::Growth;
        self.deaf = true;
        self.start_interval();
        self.cubic.ssthresh_after(window, congestion)
    }

    /// Restarts slow start and its rounds. The plateau remains, unlike in CUBIC.
    fn on_recovery_state(
        &mut self,
        window: &mut CongestionWindow,
        now: Time,
        state: RecoveryState,
    ) {
        if state == RecoveryState::Loss && window.in_slow_start() {
            self.start_round(now, self.next_to_send);
        }
    }

    fn cwnd_after_undo(&mut self, window: &CongestionWindow, prior_cwnd: u32) -> u32 {
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

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("base_rtt_s", self.base_us.unwrap_or(0) as f64 * 1e-6);
        observer.record_value("queue_s", self.queue_us as f64 * 1e-6);
    }
}

#[cfg(test)]
mod tests;
