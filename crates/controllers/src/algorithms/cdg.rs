//! CDG as implemented in Linux.

mod exponential;
mod hystart;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{RandomStream, Time};

use crate::cwnd::CongestionWindow;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{CongestionAvoidance, WindowBasedController, reno_increase};
use exponential::exp_of_minus;
use hystart::HyStart;
use jostle_congestion::{
    AckSample, CongestionEvent, EstablishedEvent, RawAckSample, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "cdg",
        summary: "Reno that also reduces cwnd with a probability that rises with the delay \
            gradient",
        class: "delay",
        based_on: &["reno"],
        source: "Hayes & Armitage, Revisiting TCP congestion control using delay gradients, \
                 IFIP Networking 2011; Linux 6.1 tcp_cdg.c",
        parameters: &[
            Parameter::integer("window", 8, 1..=256)
                .summary("rounds whose gradients are added up; Linux uses powers of two"),
            Parameter::integer("backoff_beta", 724, 0..=1024)
                .summary("share of cwnd kept at a back-off, in 1024ths"),
            Parameter::integer("backoff_factor", 42, 0..=1_000_000)
                .summary("scale of the back-off probability, per second of gradient"),
            Parameter::integer("hystart_detect", 3, 0..=3)
                .summary("what ends slow start: 1 an ACK train, 2 delay, 3 either, 0 a loss only"),
            Parameter::integer("use_ineff", 5, 0..=65_535)
                .summary("successive back-offs without effect before they are suspended; 0: never"),
            Parameter::bool("use_shadow", true)
                .summary("do not reduce cwnd at a loss by the amount of earlier back-offs"),
            Parameter::bool("use_tolerance", false)
                .summary("keep cwnd at a loss while the queue is presumably not full"),
        ],
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| {
        Box::new(WindowBasedController::new(
            Cdg::new(&parts.values, parts.random),
            parts.slow_start,
        ))
    },
};

/// A sum of gradients below this value shows that the last back-off had an effect.
const EFFECT_US: i32 = -32;
/// Gradients within ± half of this value count as zero for the loss tolerance.
const TOLERANCE_US: i32 = 64;
/// Maximum number of consecutive single-packet ACKs that are treated as delayed ACKs.
const DELAYED_ACKS_MAX: u8 = 5;

/// Minimum and maximum RTT of a round, or their change from one round to the next, in µs. An RTT of
/// 0 means no sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RttExtremes {
    min: i32,
    max: i32,
}

impl RttExtremes {
    const NONE: Self = Self { min: 0, max: 0 };

    /// Wraps like Linux, which requires RTTs of many minutes.
    const fn minus(self, other: Self) -> Self {
        Self { min: self.min.wrapping_sub(other.min), max: self.max.wrapping_sub(other.max) }
    }

    const fn plus(self, other: Self) -> Self {
        Self { min: self.min.wrapping_add(other.min), max: self.max.wrapping_add(other.max) }
    }
}

/// CDG's estimate of the bottleneck's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum QueueState {
    #[default]
    Unknown,
    NotFull,
    Full,
    /// The window is being reduced because of a gradient.
    BackingOff,
}

/// Congestion avoidance of CDG: Reno that, once per round trip, sums the changes of the minimum and
/// maximum RTT over the last rounds, and for a sum g > 0 backs off with probability 1 − exp(−factor
/// · g).
///
/// Linux's additions to the paper are included: PRR reduces the window as after a mark; a *shadow
/// window* records the effect of back-offs, so that a loss does not reduce the window again for
/// them; HyStart.
#[derive(Clone, Debug)]
pub struct Cdg {
    backoff_beta: u32,
    backoff_factor: u32,
    use_ineff: u32,
    use_shadow: bool,
    use_tolerance: bool,
    random: RandomStream,
    hystart: HyStart,
    /// Extreme RTTs of the current round (`rtt`) and of the previous one.
    round: RttExtremes,
    last_round: RttExtremes,
    /// Gradients of the last rounds, a ring that starts at `tail`, and their sum. Empty if only the
    /// latest gradient is used.
    gradients: Box<[RttExtremes]>,
    sum: RttExtremes,
    tail: usize,
    /// Whether the ring is full (`gfilled`).
    filled: bool,
    queue: QueueState,
    /// Number of single-packet ACKs to treat as delayed ACKs (`delack`).
    delayed_acks: u8,
    /// Packet whose acknowledgement ends the round (`rtt_seq`).
    round_end: u64,
    next_to_send: u64,
    /// Window without back-offs.
    shadow: u32,
    /// Consecutive back-offs without effect (`backoff_cnt`).
    backoffs: u32,
    /// Whether a reduction is requested.
    requested: bool,
}

impl Cdg {
    /// Creates CDG with the parameters of its registry entry.
    pub fn new(values: &ParameterValues, random: RandomStream) -> Self {
        let rounds = values.u32("window") as usize;
        let rounds = if rounds > 1 { rounds } else { 0 };
        Self {
            backoff_beta: values.u32("backoff_beta"),
            backoff_factor: values.u32("backoff_factor"),
            use_ineff: values.u32("use_ineff"),
            use_shadow: values.bool("use_shadow"),
            use_tolerance: values.bool("use_tolerance"),
            random,
            hystart: HyStart::new(values.u32("hystart_detect")),
            round: RttExtremes::NONE,
            last_round: RttExtremes::NONE,
            gradients: vec![RttExtremes::NONE; rounds].into_boxed_slice(),
            sum: RttExtremes::NONE,
            tail: 0,
            filled: false,
            queue: QueueState::Unknown,
            delayed_acks: 0,
            round_end: 0,
            next_to_send: 0,
            shadow: 0,
            backoffs: 0,
            requested: false,
        }
    }

    /// Returns the gradient at the end of a round, in µs over the complete window of rounds
    /// (`tcp_cdg.c::tcp_cdg_grad`). The paper uses a mean; `backoff_factor` includes its divisor.
    fn gradient(&mut self) -> i32 {
        let mut change = self.round.minus(self.last_round);
        if let Some(oldest) = self.gradients.get_mut(self.tail) {
            self.sum = self.sum.plus(change).minus(*oldest);
            *oldest = change;
            self.tail = (self.tail + 1) % self.gradients.len();
            change = self.sum;
        }
        let mut gradient = if change.min > 0 { change.min } else { change.max };
        if !self.filled {
            if self.tail == 0 {
                self.filled = true;
            } else {
                // Extrapolates the observed rounds to missing ones.
                let rounds = self.gradients.len() as i32;
                gradient = gradient.wrapping_mul(rounds) / self.tail as i32;
            }
        }
        if change.min <= EFFECT_US || change.max <= EFFECT_US {
            self.backoffs = 0;
        }
        if self.use_tolerance {
            self.judge_queue(change);
        }
        gradient
    }

    /// Infers the state of the queue as in the paper: when the queue fills up, the maximum RTT
    /// stops growing before the minimum; when it empties, the minimum stops falling first.
    fn judge_queue(&mut self, change: RttExtremes) {
        let min = nearest_multiple(change.min);
        let max = nearest_multiple(change.max);
        if min > 0 && max <= 0 {
            self.queue = QueueState::Full;
        } else if (min > 0 && max > 0) || max < 0 {
            self.queue = QueueState::NotFull;
        }
    }

    /// Returns whether CDG backs off because of a positive gradient (`tcp_cdg.c::tcp_cdg_backoff`).
    fn backs_off(&mut self, gradient: i32, cwnd: u32) -> bool {
        // Wraps as in Linux: with the usual factor at 102 s.
        let x_micro = gradient.unsigned_abs().wrapping_mul(self.backoff_factor);
        let drawn = (self.random.bits() >> 32) as u32;
        if drawn <= exp_of_minus(x_micro) {
            return false;
        }
        if self.use_ineff > 0 {
            // 16 bits as in Linux.
            self.backoffs = (self.backoffs + 1) & 0xffff;
            if self.backoffs > self.use_ineff {
                return false;
            }
        }
        self.shadow = self.shadow.max(cwnd);
        self.queue = QueueState::BackingOff;
        true
    }

    /// Restarts the rounds with the next packet.
    fn restart_round(&mut self, next_to_send: u64) {
        self.round_end = next_to_send;
        self.last_round = self.round;
        self.round = RttExtremes::NONE;
    }
}

/// Returns the nearest multiple of [`TOLERANCE_US`]; halves are rounded away from zero
/// (`DIV_ROUND_CLOSEST`).
fn nearest_multiple(us: i32) -> i32 {
    let half = if us > 0 { TOLERANCE_US / 2 } else { -TOLERANCE_US / 2 };
    us.saturating_add(half) / TOLERANCE_US
}

/// cwnd grows as in Reno (`tcp_cdg.c::tcp_cdg_cong_avoid`).
impl CongestionAvoidance for Cdg {
    fn on_established(&mut self, window: &mut CongestionWindow, _established: &EstablishedEvent) {
        self.shadow = window.cwnd;
    }

    fn on_ack_before_loss_detection(
        &mut self,
        _window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        self.next_to_send = measurement.next_to_send;
        let Some(rtt) = measurement.rtt else { return };
        let rtt_us = i32::try_from(rtt.as_us()).unwrap_or(i32::MAX);
        if rtt_us == 0 {
            return;
        }
        // Hayes, Timing enhancements to the FreeBSD kernel, CAIA TR 100219A: after ACKs of several
        // packets, ACKs of one packet come from the delayed-ACK timer unless proven otherwise.
        if measurement.sacked == 0 {
            if measurement.packets == 1 && self.delayed_acks > 0 {
                self.round.min = self.round.min.min(rtt_us);
                self.delayed_acks -= 1;
                return;
            }
            if measurement.packets > 1 && self.delayed_acks < DELAYED_ACKS_MAX {
                self.delayed_acks += 1;
            }
        }
        let round = &mut self.round;
        round.min = if round.min == 0 { rtt_us } else { round.min.min(rtt_us) };
        round.max = round.max.max(rtt_us);
    }

    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        if window.in_slow_start() && self.hystart.ends_slow_start(ack, self.round.min) {
            window.ssthresh = window.cwnd;
        }
        if ack.first_unacked > self.round_end && self.round != RttExtremes::NONE {
            let known = self.last_round != RttExtremes::NONE;
            let gradient = if known { self.gradient() } else { 0 };
            self.restart_round(ack.next_to_send);
            self.hystart.start_round();
            if gradient > 0 && self.backs_off(gradient, window.cwnd) {
                self.requested = true;
                return;
            }
        }
        if !ack.cwnd_limited {
            self.shadow = self.shadow.min(window.cwnd);
            return;
        }
        let before = window.cwnd;
        reno_increase(window, slow_start, ack);
        self.shadow = self.shadow.saturating_add(window.cwnd - before);
    }

    /// `tcp_cdg.c::tcp_cdg_ssthresh`.
    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        self.next_to_send = congestion.next_to_send;
        match self.queue {
            QueueState::BackingOff => {
                let kept = (u64::from(window.cwnd) * u64::from(self.backoff_beta)) >> 10;
                (kept as u32).max(2)
            }
            QueueState::NotFull if self.use_tolerance => window.cwnd,
            _ => {
                self.shadow = (self.shadow / 2).min(window.cwnd);
                let half = window.cwnd / 2;
                if self.use_shadow { half.max(self.shadow).max(2) } else { half.max(2) }
            }
        }
    }

    fn take_cwr_request(&mut self) -> bool {
        core::mem::take(&mut self.requested)
    }

    fn on_cwr_complete(&mut self, _window: &mut CongestionWindow, _now: Time) {
        self.queue = QueueState::Unknown;
        self.restart_round(self.next_to_send);
    }

    /// Discards all measurements of the path.
    fn on_idle_restart(&mut self, window: &mut CongestionWindow, _now: Time) {
        self.gradients.fill(RttExtremes::NONE);
        (self.sum, self.tail, self.filled) = (RttExtremes::NONE, 0, false);
        (self.round, self.last_round) = (RttExtremes::NONE, RttExtremes::NONE);
        self.queue = QueueState::Unknown;
        (self.delayed_acks, self.backoffs) = (0, 0);
        self.hystart.reset();
        self.round_end = self.next_to_send;
        self.shadow = window.cwnd;
    }

    fn mode(&self) -> &'static str {
        match self.queue {
            QueueState::Unknown => "avoidance",
            QueueState::NotFull => "queue_not_full",
            QueueState::Full => "queue_full",
            QueueState::BackingOff => "backoff",
        }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("shadow_window_packets", f64::from(self.shadow));
        observer.record_value("gradient_min_s", f64::from(self.sum.min) * 1e-6);
        observer.record_value("gradient_max_s", f64::from(self.sum.max) * 1e-6);
        observer.record_value("ineffective_backoffs", f64::from(self.backoffs));
    }
}
