//! CDG as Linux has it.

mod exponential;
mod hystart;
#[cfg(test)]
mod tests;

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::{Stream, Time};

use crate::controller::{AckSample, Congestion, Established, Measurement, Observer};
use crate::row::{ControllerRow, Start};
use crate::slow_start::SlowStart;
use crate::window::Window;
use crate::windowed::{WindowLaw, Windowed, grow_as_reno};
use exponential::exp_of_minus;
use hystart::HyStart;

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "cdg",
        summary: "backs off at random, the more likely the faster the delay grows",
        class: "delay",
        based_on: &["reno"],
        source: "Hayes & Armitage, Revisiting TCP congestion control using delay gradients, \
                 IFIP Networking 2011; Linux 6.1 tcp_cdg.c",
        parameters: &[
            Parameter {
                name: "window",
                summary: "rounds whose gradients are added up; Linux takes powers of two",
                kind: Kind::Integer { default: 8, min: 1, max: 256 },
            },
            Parameter {
                name: "backoff_beta",
                summary: "share of the window that is kept at a back-off, in 1024ths",
                kind: Kind::Integer { default: 724, min: 0, max: 1024 },
            },
            Parameter {
                name: "backoff_factor",
                summary: "scale of the back-off probability, per second of gradient",
                kind: Kind::Integer { default: 42, min: 0, max: 1_000_000 },
            },
            Parameter {
                name: "hystart_detect",
                summary: "what ends slow start: 1 an ACK train, 2 delay, 3 either, 0 a loss only",
                kind: Kind::Integer { default: 3, min: 0, max: 3 },
            },
            Parameter {
                name: "use_ineff",
                summary: "back-offs in a row without effect before they are suspended; 0 for never",
                kind: Kind::Integer { default: 5, min: 0, max: 65_535 },
            },
            Parameter {
                name: "use_shadow",
                summary: "do not halve at a loss what back-offs took already",
                kind: Kind::Bool { default: true },
            },
            Parameter {
                name: "use_tolerance",
                summary: "keep the window at a loss while the queue is thought not to be full",
                kind: Kind::Bool { default: false },
            },
        ],
    },
    start: Start::Own,
    build: |parts| Box::new(Windowed::new(Cdg::new(&parts.values, parts.random), parts.slow_start)),
};

/// A sum of gradients below this says that the last back-off took effect.
const EFFECT_US: i32 = -32;
/// Gradients within ± half of this are none to the loss tolerance.
const TOLERANCE_US: i32 = 64;
/// How many single ACKs in a row are taken for delayed ones.
const DELAYED_ACKS_MAX: u8 = 5;

/// The least and the largest RTT of a round, or their change from one round to another, in µs.
/// An RTT of 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Extremes {
    min: i32,
    max: i32,
}

impl Extremes {
    const NONE: Self = Self { min: 0, max: 0 };

    /// Wraps as Linux does: only RTTs of many minutes come near.
    const fn minus(self, other: Self) -> Self {
        Self { min: self.min.wrapping_sub(other.min), max: self.max.wrapping_sub(other.max) }
    }

    const fn plus(self, other: Self) -> Self {
        Self { min: self.min.wrapping_add(other.min), max: self.max.wrapping_add(other.max) }
    }
}

/// What CDG thinks of the bottleneck's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Queue {
    #[default]
    Unknown,
    NotFull,
    Full,
    /// The window is being reduced for its gradient.
    BackingOff,
}

/// The CDG window law: Reno that, once per round trip, adds up by how much the minimum and the
/// maximum RTT changed over the last rounds, and for a sum g > 0 backs off with probability
/// 1 − exp(−factor · g).
///
/// Linux's additions to the paper, kept here: the window comes down by PRR as for a mark; a
/// *shadow window* remembers what back-offs took, so that a loss does not take it again; HyStart.
#[derive(Clone, Debug)]
pub struct Cdg {
    backoff_beta: u32,
    backoff_factor: u32,
    use_ineff: u32,
    use_shadow: bool,
    use_tolerance: bool,
    random: Stream,
    hystart: HyStart,
    /// RTTs of the round (`rtt`) and of the one before it.
    round: Extremes,
    last_round: Extremes,
    /// Gradients of the last rounds, a ring that begins at `tail`, and their sum. Empty if only
    /// the last one counts.
    gradients: Box<[Extremes]>,
    sum: Extremes,
    tail: usize,
    /// The ring is full (`gfilled`).
    filled: bool,
    queue: Queue,
    /// Single ACKs that are to be taken for delayed ones (`delack`).
    delayed_acks: u8,
    /// The packet whose acknowledgement ends the round (`rtt_seq`).
    round_end: u64,
    next_to_send: u64,
    /// The window that there would be without back-offs.
    shadow: u32,
    /// Back-offs in a row without effect (`backoff_cnt`).
    backoffs: u32,
    /// A reduction is asked for.
    requested: bool,
}

impl Cdg {
    /// CDG with the parameters of its registry row.
    pub fn new(values: &Values, random: Stream) -> Self {
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
            round: Extremes::NONE,
            last_round: Extremes::NONE,
            gradients: vec![Extremes::NONE; rounds].into_boxed_slice(),
            sum: Extremes::NONE,
            tail: 0,
            filled: false,
            queue: Queue::Unknown,
            delayed_acks: 0,
            round_end: 0,
            next_to_send: 0,
            shadow: 0,
            backoffs: 0,
            requested: false,
        }
    }

    /// The gradient at the end of a round, in µs over the whole window of rounds
    /// (`tcp_cdg_grad`). The paper's is a mean; `backoff_factor` holds its divisor.
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
                // As if the rounds that are missing were like those that were seen.
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

    /// The paper's inference: when the queue fills up the maximum RTT stops growing before the
    /// minimum does, when it empties the minimum stops falling first.
    fn judge_queue(&mut self, change: Extremes) {
        let min = nearest_multiple(change.min);
        let max = nearest_multiple(change.max);
        if min > 0 && max <= 0 {
            self.queue = Queue::Full;
        } else if (min > 0 && max > 0) || max < 0 {
            self.queue = Queue::NotFull;
        }
    }

    /// Whether a gradient, positive, makes CDG back off (`tcp_cdg_backoff`).
    fn backs_off(&mut self, gradient: i32, cwnd: u32) -> bool {
        // It wraps in Linux, too: with the usual factor at 102 s.
        let x_micro = gradient.unsigned_abs().wrapping_mul(self.backoff_factor);
        let drawn = (self.random.bits() >> 32) as u32;
        if drawn <= exp_of_minus(x_micro) {
            return false;
        }
        if self.use_ineff > 0 {
            // In Linux's 16 bits.
            self.backoffs = (self.backoffs + 1) & 0xffff;
            if self.backoffs > self.use_ineff {
                return false;
            }
        }
        self.shadow = self.shadow.max(cwnd);
        self.queue = Queue::BackingOff;
        true
    }

    /// The rounds start anew with what is sent next.
    fn restart_round(&mut self, next_to_send: u64) {
        self.round_end = next_to_send;
        self.last_round = self.round;
        self.round = Extremes::NONE;
    }
}

/// The nearest multiple of [`TOLERANCE_US`], halves away from zero (`DIV_ROUND_CLOSEST`).
fn nearest_multiple(us: i32) -> i32 {
    let half = if us > 0 { TOLERANCE_US / 2 } else { -TOLERANCE_US / 2 };
    us.saturating_add(half) / TOLERANCE_US
}

impl WindowLaw for Cdg {
    fn on_established(&mut self, window: &mut Window, _established: &Established) {
        self.shadow = window.cwnd;
    }

    fn on_measurement(&mut self, _window: &mut Window, measurement: &Measurement) {
        self.next_to_send = measurement.next_to_send;
        let Some(rtt) = measurement.rtt else { return };
        let rtt_us = i32::try_from(rtt.as_us()).unwrap_or(i32::MAX);
        if rtt_us == 0 {
            return;
        }
        // Hayes, Timing enhancements to the FreeBSD kernel, CAIA TR 100219A: after ACKs of several
        // packets those of one come from the delayed-ACK timer, unless they are proven not to.
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

    fn grow(&mut self, window: &mut Window, slow_start: &mut dyn SlowStart, ack: &AckSample) {
        if window.in_slow_start() && self.hystart.ends_slow_start(ack, self.round.min) {
            window.ssthresh = window.cwnd;
        }
        if ack.first_unacked > self.round_end && self.round != Extremes::NONE {
            let known = self.last_round != Extremes::NONE;
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
        grow_as_reno(window, slow_start, ack);
        self.shadow = self.shadow.saturating_add(window.cwnd - before);
    }

    /// Reno's; [`grow`](Self::grow) has the rest.
    fn avoid(&mut self, window: &mut Window, acked: u32, _ack: &AckSample) {
        window.additive_increase(window.cwnd, acked);
    }

    fn ssthresh(&mut self, window: &Window, congestion: &Congestion) -> u32 {
        self.next_to_send = congestion.next_to_send;
        match self.queue {
            Queue::BackingOff => {
                let kept = (u64::from(window.cwnd) * u64::from(self.backoff_beta)) >> 10;
                (kept as u32).max(2)
            }
            Queue::NotFull if self.use_tolerance => window.cwnd,
            _ => {
                self.shadow = (self.shadow / 2).min(window.cwnd);
                let half = window.cwnd / 2;
                if self.use_shadow { half.max(self.shadow).max(2) } else { half.max(2) }
            }
        }
    }

    fn take_reduction_request(&mut self) -> bool {
        std::mem::take(&mut self.requested)
    }

    fn on_reduction_end(&mut self, _window: &mut Window, _now: Time) {
        self.queue = Queue::Unknown;
        self.restart_round(self.next_to_send);
    }

    /// Everything that was known of the path is forgotten.
    fn on_idle_restart(&mut self, window: &mut Window, _now: Time) {
        self.gradients.fill(Extremes::NONE);
        (self.sum, self.tail, self.filled) = (Extremes::NONE, 0, false);
        (self.round, self.last_round) = (Extremes::NONE, Extremes::NONE);
        self.queue = Queue::Unknown;
        (self.delayed_acks, self.backoffs) = (0, 0);
        self.hystart.reset();
        self.round_end = self.next_to_send;
        self.shadow = window.cwnd;
    }

    fn mode(&self) -> &'static str {
        match self.queue {
            Queue::Unknown => "avoidance",
            Queue::NotFull => "queue_not_full",
            Queue::Full => "queue_full",
            Queue::BackingOff => "backoff",
        }
    }

    fn observe(&self, observer: &mut dyn Observer) {
        observer.value("shadow_window_packets", f64::from(self.shadow));
        observer.value("gradient_min_s", f64::from(self.sum.min) * 1e-6);
        observer.value("gradient_max_s", f64::from(self.sum.max) * 1e-6);
        observer.value("ineffective_backoffs", f64::from(self.backoffs));
    }
}
