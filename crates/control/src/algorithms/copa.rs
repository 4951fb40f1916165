//! Copa: steers towards a rate that is the inverse of the queueing delay.
//!
//! Arun & Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI
//! 2018. The paper leaves the details of the velocity to the implementations, which differ. "Release"
//! is that of the authors (genericCC), which the defaults follow as a whole, for its parts depend on
//! each other; "mvfst" is the one in Meta's QUIC, a flavour of its own.

mod direction;
mod losses;
mod mvfst;
mod parameters;
mod rtts;
#[cfg(test)]
mod tests;

use jostle_catalogue::Entry;
use jostle_units::{Rate, Span, Time};

use self::direction::Direction;
use self::losses::Losses;
use self::mvfst::Mvfst;
use self::parameters::{ModeRule, PARAMETERS, Parameters};
use self::rtts::{Rtts, seconds};
use crate::controller::{
    AckSample, Congestion, Controller, Established, Observer, RecoveryOwner, Signal,
};
use crate::row::{ControllerRow, Start};

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "copa",
        summary: "steers towards the rate 1/(δ × queueing delay); plays AIMD against those that \
                  fill buffers",
        class: "delay",
        based_on: &[],
        source: "Arun & Balakrishnan, \"Copa: Practical Delay-Based Congestion Control for the \
                 Internet\", NSDI 2018; releases of its authors and in mvfst",
        parameters: PARAMETERS,
    },
    start: Start::Own,
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
/// Largest window, beyond any path.
const MAX_WINDOW: f64 = 1e9;
/// Pacing in multiples of cwnd/RTTstanding (§2.1: the window, not the pace, is what limits).
const PACING_GAIN: f64 = 2.0;
/// Rounds before the test for competitors means anything: those that it looks back on.
const ROUNDS_TO_JUDGE: u64 = 5;
/// Steepest competition: 1/δ this large fills any buffer.
const MAX_INVERSE_DELTA: f64 = 1e6;

/// Window and 1/δ before a congestion signal.
#[derive(Clone, Copy, Debug)]
struct Before {
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
    losses: Losses,
    slow_start: bool,
    competitive: bool,
    /// 1/δ: packets that the flow wants in the queue.
    inverse_delta: f64,
    velocity: f64,
    direction: Direction,
    /// Rounds in a row, the last one included, over which cwnd moved in `direction`.
    held: u32,
    cwnd_at_round_start: f64,
    round_start: Time,
    rounds: u64,
    /// A loss was answered in this round: 1/δ halves once and does not grow.
    lost_in_round: bool,
    before: Option<Before>,
}

impl Copa {
    fn new(parameters: Parameters) -> Self {
        Self {
            packet_bits: 8.0,
            cwnd: MIN_WINDOW,
            rtts: Rtts::default(),
            losses: Losses::default(),
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

    /// Release: v is halved where it exceeds δ·cwnd, and is at least 1. A round trip moves the window
    /// by v/δ packets, so that this is no more than the window itself: a doubling, as in slow start.
    fn cap_velocity(&mut self) {
        if self.velocity * self.inverse_delta > self.parameters.velocity_cap * self.cwnd {
            self.velocity = (self.velocity / 2.0).max(1.0);
        }
    }

    fn set_window(&mut self, cwnd: f64) {
        self.cwnd = cwnd.clamp(MIN_WINDOW, MAX_WINDOW);
    }

    /// §2.1, step 4: once per window v doubles if cwnd still moves the same way, else it is 1.
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
            // RTTs". In the steady state it does for 2.5, which can touch three rounds. The release
            // doubles with the second.
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

    /// §2.2: without others that fill the buffer the queue is nearly empty once in five RTTs.
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

    /// λt = 1/(δ·dq); 0 without a queue, where there is no limit.
    fn target_pps(&self) -> f64 {
        let queueing_s = seconds(self.rtts.queueing());
        if queueing_s > 0.0 { self.inverse_delta / queueing_s } else { 0.0 }
    }

    /// One step towards the target rate for each packet acknowledged.
    fn steer(&mut self, ack: &AckSample, standing_s: f64) {
        // cwnd/RTTstanding against λt, without a division.
        let below = self.cwnd * seconds(self.rtts.queueing()) <= self.inverse_delta * standing_s;
        // A window that is not used up says nothing about what it would meet.
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
        // mvfst: a large v is meant for the direction in which it grew.
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

impl Controller for Copa {
    fn on_established(&mut self, established: &Established) {
        self.on_packet_size(established.mss_bytes);
        self.set_window(f64::from(established.initial_window));
        self.cwnd_at_round_start = self.cwnd;
        self.rtts.assume(established.rtt);
    }

    fn on_packet_size(&mut self, mss_bytes: u32) {
        self.packet_bits = 8.0 * f64::from(mss_bytes.max(1));
    }

    fn on_ack(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.rtt {
            self.rtts.update(ack.now, rtt, ack.srtt, &self.parameters);
        }
        if ack.acked == 0 {
            return;
        }
        // Release: a round lasts as long as the latest RTT.
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

    /// The default mode ignores losses; the competitive one halves 1/δ once per RTT, down to the
    /// default's (§2.2: "in competitive mode δ ≤ 0.5").
    fn on_congestion(&mut self, congestion: &Congestion) {
        let Self { cwnd, inverse_delta, slow_start, .. } = *self;
        self.before = Some(Before { cwnd, inverse_delta, slow_start });
        if self.competitive && !self.lost_in_round {
            self.inverse_delta = (inverse_delta / 2.0).max(1.0 / self.parameters.delta);
            self.lost_in_round = true;
        }
        if congestion.signal == Signal::Timeout {
            // mvfst, for persistent congestion: nothing of the path is known any more.
            self.set_window(MIN_WINDOW);
            self.slow_start = true;
            self.turn(Direction::Up);
            self.losses = Losses::default();
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

    /// Release: packets leave one by one. A flow that sends in bursts waits behind itself, and seldom
    /// sees the queue empty.
    fn burst_limit(&self) -> Option<u32> {
        Some(1)
    }

    fn recovery_owner(&self) -> RecoveryOwner {
        RecoveryOwner::Controller
    }

    fn mode(&self) -> &'static str {
        match (self.slow_start, self.competitive) {
            (true, _) => "slow_start",
            (false, true) => "competitive",
            (false, false) => "default",
        }
    }

    fn observe(&self, observer: &mut dyn Observer) {
        let ms = |span: Span| span.as_secs_f64() * 1e3;
        observer.value("velocity", self.velocity);
        observer.value("delta", 1.0 / self.inverse_delta);
        observer.value("queueing_ms", ms(self.rtts.queueing()));
        observer.value("rtt_standing_ms", ms(self.rtts.standing()));
        observer.value("target_pps", self.target_pps());
    }
}
