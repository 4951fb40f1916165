//! Copa: adjusts the window towards a rate that is inversely proportional to the queueing delay.
//!
//! Arun & Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI
//! 2018. The paper leaves the details of the velocity open, and implementations differ. "Release"
//! means the authors' implementation (genericCC), whose values are the defaults because its parts
//! depend on each other. "mvfst" means the implementation in Meta's QUIC, which is a separate
//! flavour.

mod direction;
mod loss_rate;
mod mvfst;
mod parameters;
mod rtt_extremes;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use jostle_registry::RegistryEntry;
use jostle_units::{Rate, Span, Time};

use self::direction::Direction;
use self::loss_rate::LossRateWindow;
use self::mvfst::Mvfst;
use self::parameters::{ModeRule, PARAMETERS, Parameters};
use self::rtt_extremes::{Rtts, seconds};
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CongestionSignal, CwndReductionBy,
    EstablishedEvent, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "copa",
        summary: "moves towards the rate 1/(δ × queueing delay); AIMD when other flows fill the \
            buffer",
        class: "delay",
        based_on: &[],
        source: "Arun & Balakrishnan, \"Copa: Practical Delay-Based Congestion Control for the \
                 Internet\", NSDI 2018; releases of its authors and in mvfst",
        parameters: PARAMETERS,
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| {
        let parameters = Parameters::new(&parts.values);
        if parts.values.choice("flavour") == "mvfst" {
            return Box::new(Mvfst::new(&parameters));
        }
        Box::new(Copa::new(parameters))
    },
};

/// Smallest window (release).
const MIN_WINDOW: f64 = 2.0;
/// Largest window, above any path's BDP.
const MAX_WINDOW: f64 = 1e9;
/// Pacing rate in multiples of cwnd/RTTstanding (§2.1: the window and not the pacing rate limits
/// the flow).
const PACING_GAIN: f64 = 2.0;
/// Number of rounds that the test for competing flows needs.
const ROUNDS_TO_JUDGE: u64 = 5;
/// Maximum of 1/δ in competitive mode, which fills any buffer.
const MAX_INVERSE_DELTA: f64 = 1e6;

/// Window and 1/δ before a congestion signal.
#[derive(Clone, Copy, Debug)]
struct StateBeforeLoss {
    cwnd: f64,
    inverse_delta: f64,
    slow_start: bool,
}

/// The controller.
pub struct Copa {
    parameters: Parameters,
    packet_bits: f64,
    cwnd: f64,
    rtts: Rtts,
    losses: LossRateWindow,
    slow_start: bool,
    competitive: bool,
    /// 1/δ: target number of this flow's packets in the queue.
    inverse_delta: f64,
    velocity: f64,
    direction: Direction,
    /// Consecutive rounds, including the last one, in which cwnd moved in `direction`.
    held: u32,
    cwnd_at_round_start: f64,
    round_start: Time,
    rounds: u64,
    /// Whether this round reacted to a loss: 1/δ is halved only once and does not grow.
    lost_in_round: bool,
    before: Option<StateBeforeLoss>,
}

impl Copa {
    fn new(parameters: Parameters) -> Self {
        Self {
            packet_bits: 8.0,
            cwnd: MIN_WINDOW,
            rtts: Rtts::default(),
            losses: LossRateWindow::default(),
            slow_start: true,
            competitive: parameters.rule == ModeRule::Competitive,
            inverse_delta: 1.0 / parameters.delta,
            velocity: 1.0,
            direction: Direction::Up,
            held: 0,
            cwnd_at_round_start: MIN_WINDOW,
            round_start: Time::ZERO,
            rounds: 0,
            lost_in_round: false,
            before: None,
            parameters,
        }
    }

    /// Release: v is halved while it exceeds δ·cwnd, but is at least 1. A round trip moves the
    /// window by v/δ packets, so that the window at most doubles per round trip, as in slow start.
    fn cap_velocity(&mut self) {
        if self.velocity * self.inverse_delta > self.parameters.velocity_cap * self.cwnd {
            self.velocity = (self.velocity / 2.0).max(1.0);
        }
    }

    fn set_window(&mut self, cwnd: f64) {
        self.cwnd = cwnd.clamp(MIN_WINDOW, MAX_WINDOW);
    }

    /// §2.1, step 4: once per window, v doubles if cwnd still moves in the same direction;
    /// otherwise it is reset to 1.
    fn end_round(&mut self, now: Time) {
        self.round_start = now;
        self.rounds += 1;
        let direction =
            if self.cwnd > self.cwnd_at_round_start { Direction::Up } else { Direction::Down };
        self.cwnd_at_round_start = self.cwnd;
        if self.slow_start {
            self.held = 0;
        } else if direction == self.direction {
            self.held = self.held.saturating_add(1);
            // The paper: "start doubling v only after the direction has remained the same for three
            // RTTs". In the steady state the direction stays the same for 2.5 RTTs, which can touch
            // three rounds. The release doubles in the second round.
            if self.held > self.parameters.steady_rounds {
                self.velocity *= 2.0;
            }
        } else {
            self.turn(direction);
            self.held = 1;
        }
        self.direction = direction;
        if self.competitive && !self.lost_in_round {
            self.inverse_delta = (self.inverse_delta + 1.0).min(MAX_INVERSE_DELTA);
        }
        self.lost_in_round = false;
    }

    fn turn(&mut self, direction: Direction) {
        self.direction = direction;
        self.velocity = 1.0;
        self.held = 0;
    }

    /// §2.2: without buffer-filling competitors the queue is nearly empty once in five RTTs.
    fn choose_mode(&mut self) {
        let competitive = match self.parameters.rule {
            ModeRule::Default => false,
            ModeRule::Competitive => true,
            ModeRule::Switching => {
                self.rounds >= ROUNDS_TO_JUDGE
                    && !self.slow_start
                    && !self.rtts.nearly_empty(self.parameters.empty_share)
            }
        };
        if self.competitive && !competitive {
            self.inverse_delta = 1.0 / self.parameters.delta;
        }
        self.competitive = competitive;
    }

    /// λt = 1/(δ·dq); 0 for an empty queue, which means no limit.
    fn target_pps(&self) -> f64 {
        let queueing_s = seconds(self.rtts.queueing());
        if queueing_s > 0.0 { self.inverse_delta / queueing_s } else { 0.0 }
    }

    /// Takes one step towards the target rate for each acknowledged packet.
    fn steer(&mut self, ack: &AckSample, standing_s: f64) {
        // Compares cwnd/RTTstanding with λt without a division.
        let below = self.cwnd * seconds(self.rtts.queueing()) <= self.inverse_delta * standing_s;
        // An unused window shows nothing about the path.
        let used = ack.cwnd_limited || f64::from(ack.prior_in_flight) * 2.0 >= self.cwnd;
        let acked = f64::from(ack.acked);
        if self.slow_start {
            if !below {
                self.slow_start = false;
                self.turn(Direction::Down);
                self.cwnd_at_round_start = self.cwnd;
                self.round_start = ack.now;
            } else if used {
                self.set_window(self.cwnd + acked);
            }
            return;
        }
        let direction = if below { Direction::Up } else { Direction::Down };
        // mvfst: a large v is only valid in the direction in which it grew.
        if self.parameters.reset_at_crossing && self.velocity > 1.0 && direction != self.direction {
            self.turn(direction);
        }
        self.cap_velocity();
        let change = self.velocity * self.inverse_delta * acked / self.cwnd;
        if !below {
            self.set_window(self.cwnd - change);
        } else if used {
            self.set_window(self.cwnd + change);
        }
    }
}

impl CongestionController for Copa {
    fn on_established(&mut self, established: &EstablishedEvent) {
        self.on_mss_change(established.mss_bytes);
        self.set_window(f64::from(established.initial_window));
        self.cwnd_at_round_start = self.cwnd;
        self.rtts.assume(established.rtt);
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.packet_bits = 8.0 * f64::from(mss_bytes.max(1));
    }

    fn on_ack(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.rtt {
            self.rtts.update(ack.now, rtt, ack.srtt, &self.parameters);
        }
        if ack.acked == 0 {
            return;
        }
        // Release: a round lasts for the latest RTT.
        if ack.now > self.round_start + ack.rtt.unwrap_or(ack.srtt) {
            self.end_round(ack.now);
        }
        self.choose_mode();
        let standing = self.rtts.standing();
        if !standing.is_zero() {
            self.steer(ack, seconds(standing));
        }
        if self.losses.exceed(ack, self.parameters.loss_threshold) {
            self.set_window(self.cwnd * self.parameters.loss_factor);
        }
    }

    /// The default mode ignores losses. The competitive mode halves 1/δ once per RTT, down to the
    /// default's value (§2.2: "in competitive mode δ ≤ 0.5").
    fn on_congestion_event(&mut self, congestion: &CongestionEvent) {
        let Self { cwnd, inverse_delta, slow_start, .. } = *self;
        self.before = Some(StateBeforeLoss { cwnd, inverse_delta, slow_start });
        if self.competitive && !self.lost_in_round {
            self.inverse_delta = (inverse_delta / 2.0).max(1.0 / self.parameters.delta);
            self.lost_in_round = true;
        }
        if congestion.signal == CongestionSignal::Timeout {
            // mvfst: persistent congestion resets the state of the path.
            self.set_window(MIN_WINDOW);
            self.slow_start = true;
            self.turn(Direction::Up);
            self.losses = LossRateWindow::default();
        }
    }

    fn on_undo(&mut self, _now: Time) {
        if let Some(before) = self.before.take() {
            self.set_window(self.cwnd.max(before.cwnd));
            self.inverse_delta = if self.competitive {
                self.inverse_delta.max(before.inverse_delta)
            } else {
                self.inverse_delta
            };
            self.slow_start &= before.slow_start;
        }
    }

    fn set_cwnd(&mut self, cwnd: u32) {
        self.set_window(f64::from(cwnd));
    }

    fn cwnd(&self) -> u32 {
        self.cwnd as u32
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let standing = self.rtts.standing_or_assumed();
        (!standing.is_zero()).then(|| {
            let bps = PACING_GAIN * self.cwnd * self.packet_bits / seconds(standing);
            Rate::from_bps(bps.clamp(1.0, 1e15) as u64)
        })
    }

    /// Release: packets are sent one by one. The bursts of a flow would wait in the queue behind
    /// each other, so that the queue would rarely look empty.
    fn max_burst_packets(&self) -> Option<u32> {
        Some(1)
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        CwndReductionBy::Controller
    }

    fn mode(&self) -> &'static str {
        match (self.slow_start, self.competitive) {
            (true, _) => "slow_start",
            (false, true) => "competitive",
            (false, false) => "default",
        }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        let ms = |span: Span| span.as_secs_f64() * 1e3;
        observer.record_value("velocity", self.velocity);
        observer.record_value("delta", 1.0 / self.inverse_delta);
        observer.record_value("queueing_ms", ms(self.rtts.queueing()));
        observer.record_value("rtt_standing_ms", ms(self.rtts.standing()));
        observer.record_value("target_pps", self.target_pps());
    }
}
