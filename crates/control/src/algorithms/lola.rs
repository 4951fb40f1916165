//! TCP LoLa.

mod exit;

use jostle_catalogue::{Entry, Kind, Linux, Parameter, Values};
use jostle_units::{Span, Time};

use self::exit::Rounds;
use super::cubic::{self, Cubic, ms};
use crate::controller::{AckSample, Congestion, Established, Measurement, Observer, RecoveryState};
use crate::jiffies::{self, Jiffies};
use crate::row::{ControllerRow, Start};
use crate::slow_start::SlowStart;
use crate::window::Window;
use crate::windowed::{WindowLaw, Windowed};

const HOUR_NS: i64 = 3_600_000_000_000;

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "lola",
        summary: "cubic growth up to a short queue, which flows then fill to equal shares, hold, \
                  and drain together",
        class: "delay",
        based_on: &["cubic"],
        source: "Hock, Neumeister, Zitterbart & Bless, TCP LoLa: Congestion Control for Low \
                 Latencies and High Throughput, IEEE LCN 2017; Neumeister & Hock, tcp_lola.c 1.5, \
                 a module for Linux 4.4",
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
                summary: "after t ticks of balancing a flow should have the cube of t over this \
                          in packets queued",
                kind: Kind::Integer { default: 75, min: 1, max: 100_000 },
            },
            Parameter {
                // The module says no more than that `curve_factor` depends on it; 250 fits its φ
                // (docs/algorithms/lola.md).
                kind: Kind::Integer { default: 250, min: 100, max: 1000 },
                ..jiffies::HZ
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
const INTERVAL: Span = Span::from_ms(40);
const INTERVAL_SAMPLES: u32 = 20;

/// Within this of the base an RTT confirms it; below by more than this it is another path's
/// (`lola_base_delay_epsilon`).
const BASE_TOLERANCE_US: u64 = 100;

/// Least window that is reduced, and that a reduction leaves (`lola_cwnd_min`).
const LEAST_CWND: u32 = 5;

/// Slow start ends at this queueing delay (`lola_slow_start_exit`), judged by the least of so many
/// samples of a round.
const EXIT_QUEUE_US: u64 = 1_000;
const EXIT_SAMPLES: u32 = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// CUBIC's growth.
    #[default]
    Growth,
    /// Fair-flow balancing, since a tick.
    Balancing(u64),
    /// CWndHold, since a tick.
    Hold(u64),
}

/// The LoLa window law. It grows as CUBIC until a queue builds up. From then on each flow adds what
/// it lacks of (t/φ)³ packets in the queue, a target that is the same for all of them: whoever has
/// more, waits. All see the queue exceed its target at about the same time, hold their windows
/// until the last one has, and drain it together.
///
/// The module counts time in ticks of the kernel's clock, and takes milliseconds for ticks wherever
/// it compares an RTT with them (`USEC_PER_MSEC`): both are the same at 1000 ticks per second only.
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
    /// Least RTT; none before a sample, and after it was forgotten.
    base_us: Option<u64>,
    /// The base was learnt, or fell, since the last reduction: what queues was underestimated.
    base_fell: bool,
    /// The first slow start ended with a queue, which is not drained yet (`HYSTART_DELAY`).
    overshot: bool,
    /// Reductions since an RTT near the base.
    unconfirmed: u64,
    /// Least RTT of the measuring interval, the samples it had, and when it ends.
    rtt_us: Option<u64>,
    samples: u32,
    interval_end: u64,
    rounds: Rounds,
    next_to_send: u64,
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
        let clock = Jiffies::new(values);
        Self {
            clock,
            queue_low_us: values.span("queue_low").as_us(),
            queue_target_us: values.span("queue_target").as_us(),
            curve_factor: u64::from(values.u32("curve_factor")),
            hold_ticks: clock.rounded_up(values.span("hold_time")),
            gamma: u64::from(values.u32("gamma")),
            base_timeout: u64::from(values.u32("base_timeout")),
            cubic: Cubic::new(&cubic::ROW.entry.defaults()).following(Linux::V4_15),
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

    /// Ticks since CUBIC's epoch began; none without one.
    fn ticks_of_epoch(&self, now: Time) -> Option<u64> {
        let epoch = Time::ZERO + Span::from_ms(self.cubic.epoch_ms()?);
        Some(self.clock.at(now).saturating_sub(self.clock.at(epoch)))
    }

    /// Packets that a flow should have in the queue after so many ticks of balancing.
    fn target(&self, elapsed: u64) -> u64 {
        let cube = |x: u64| u128::from(x).saturating_mul(u128::from(x) * u128::from(x));
        u64::try_from(cube(elapsed) / cube(self.curve_factor)).unwrap_or(u64::MAX)
    }

    /// Growth while flows balance: within a measuring interval as much as the queue lacks of this
    /// flow's packets, but no more than four times what the target rose by in a base RTT, or twice
    /// the growth so far in a round trip.
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
    fn may_judge(&self, cwnd: u32, now: Time, rtt_us: u64) -> bool {
        let Some(since_epoch) = self.ticks_of_epoch(now) else { return false };
        // After a reduction it takes two round trips until the queue tells of it.
        let settled = matches!(self.phase, Phase::Balancing(_))
            || self.base_fell
            || self.overshot
            || since_epoch > 2 * rtt_us / 1000;
        let over = self.clock.at(now) >= self.interval_end || self.overshot;
        settled && over && self.samples >= INTERVAL_SAMPLES && cwnd >= LEAST_CWND
    }

    /// Moves from phase to phase.
    fn judge(&mut self, window: &mut Window, now: Time) {
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
                // What was measured is kept for the reduction.
                self.phase = Phase::Hold(tick);
                self.per_increase = window.cwnd.saturating_mul(100);
                return;
            }
        }
        self.start_interval();
        self.interval_end = tick + self.clock.rounded_up(INTERVAL);
    }

    /// Ends slow start at a train of ACKs, or once every RTT of a round shows a queue. Of the latter
    /// the first one drains what it queued. (After a timeout the module also keeps CUBIC's epoch of
    /// before; here a new one begins.)
    fn judge_slow_start(&mut self, window: &mut Window, now_ms: u64) {
        let (Some(rtt_us), Some(base_us)) = (self.rtt_us, self.base_us) else { return };
        if window.cwnd < exit::LEAST_CWND || self.overshot || self.rounds.train_found {
            return;
        }
        let mut ends = self.rounds.take_ack(now_ms, base_us);
        if self.samples < EXIT_SAMPLES {
            // Each ACK counts once more here than its packets: an oversight of the module, of which
            // its comment tells.
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

    /// A round of slow start begins.
    fn start_round(&mut self, now: Time, end: u64) {
        self.rounds.begin(ms(now), end);
        self.phase = Phase::Growth;
        self.start_interval();
    }
}

impl WindowLaw for Lola {
    fn on_established(&mut self, window: &mut Window, established: &Established) {
        self.cubic.on_established(window, established);
        self.rounds.begin(ms(established.now), 0);
    }

    /// What began goes on where it stood: idle time does not count.
    fn on_flight_start(&mut self, window: &mut Window, now: Time, idle: Span) {
        self.cubic.on_flight_start(window, now, idle);
        let tick = self.clock.at(now);
        let idle_ticks = tick - self.clock.at(now - idle);
        if let Phase::Balancing(since) | Phase::Hold(since) = &mut self.phase {
            *since = (*since + idle_ticks).min(tick);
        }
        self.rounds.shift(ms(now) - ms(now - idle), ms(now));
    }

    fn on_measurement(&mut self, window: &mut Window, measurement: &Measurement) {
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

    /// `lolatcp_cong_avoid`, without its exit (experimental, as it says) of flows that do not fill
    /// their window in slow start.
    fn grow(&mut self, window: &mut Window, slow_start: &mut dyn SlowStart, ack: &AckSample) {
        let slow = window.in_slow_start();
        if !slow {
            self.judge(window, ack.now);
        }
        // An epoch begins whether the window is the limit or not.
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
    fn on_state(&mut self, window: &mut Window, now: Time, state: RecoveryState) {
        if state == RecoveryState::Loss && window.in_slow_start() {
            self.start_round(now, self.next_to_send);
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
mod tests;
