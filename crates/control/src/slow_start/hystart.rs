//! HyStart as Linux's CUBIC has it, and as its papers do.

use jostle_catalogue::{Entry, Kind, Linux, Parameter, Values};
use jostle_units::{Rate, Span, Time};

use super::method::SlowStart;
use crate::controller::{AckSample, Established, Measurement};
use crate::row::SlowStartRow;
use crate::window::Window;

pub(crate) const ROW: SlowStartRow = SlowStartRow {
    entry: Entry {
        name: "hystart",
        summary: "leaves slow start when ACK trains or delays say that the pipe is full",
        class: "delay",
        based_on: &["standard"],
        source: "Ha & Rhee, Taming the elephants, Computer Networks 55(9), 2011; \
                 Linux 6.1 and 4.15 tcp_cubic.c",
        parameters: &[
            DETECT,
            LOW_WINDOW,
            ACK_DELTA,
            Parameter {
                name: "linux",
                summary: "kernel to follow; 4.15 has a clock of 1 ms, takes delays from the first \
                          8 ACKs of a round only, and knows no pacing",
                kind: Kind::Choice {
                    default: "as the controller",
                    choices: &["as the controller", "6.1", "4.15"],
                },
            },
        ],
    },
    build: |values| Box::new(HyStart::new(values)),
};

pub(crate) const PAPER_ROW: SlowStartRow = SlowStartRow {
    entry: Entry {
        name: "hystart-paper",
        summary: "HyStart as published: a rise of the delay by a sixteenth, 2 to 16 ms, is enough",
        class: "delay",
        based_on: &["standard"],
        source: "Ha & Rhee, Hybrid slow start for high-bandwidth and long-distance networks, \
                 PFLDnet 2008; Taming the elephants, Computer Networks 55(9), 2011",
        parameters: &[
            DETECT,
            LOW_WINDOW,
            ACK_DELTA,
            Parameter {
                name: "baseline",
                summary: "what a round's delay is compared with: the connection's minimum, or that \
                          of the round before",
                kind: Kind::Choice {
                    default: "connection",
                    choices: &["connection", "last round"],
                },
            },
        ],
    },
    build: |values| Box::new(HyStart::published(values)),
};

const DETECT: Parameter = Parameter {
    name: "detect",
    summary: "which signs end slow start (hystart_detect)",
    kind: Kind::Choice { default: "both", choices: &["both", "train", "delay"] },
};

const LOW_WINDOW: Parameter = Parameter {
    name: "low_window",
    summary: "smallest cwnd that is watched, in packets (hystart_low_window)",
    kind: Kind::Integer { default: 16, min: 0, max: 1_000_000 },
};

const ACK_DELTA: Parameter = Parameter {
    name: "ack_delta",
    summary: "largest gap between the ACKs of a train (hystart_ack_delta_us)",
    kind: Kind::Span { default_ns: 2_000_000, min_ns: 0, max_ns: 1_000_000_000 },
};

/// By how much a round's minimum RTT must exceed what it is compared with.
#[derive(Clone, Copy, Debug)]
struct Margin {
    /// One part in so many of that RTT …
    divisor: u64,
    /// … but no less and no more than this.
    min_us: u64,
    max_us: u64,
}

/// `HYSTART_DELAY_THRESH` and the shift it is called with.
const LINUX_MARGIN: Margin = Margin { divisor: 8, min_us: 4_000, max_us: 16_000 };

/// As the authors' first kernel code (2.6.29) has it: 2 to 16 ms, and `delay_min >> 4`.
const PAPER_MARGIN: Margin = Margin { divisor: 16, min_us: 2_000, max_us: 16_000 };

/// `HYSTART_MIN_SAMPLES`: delays that make a round's minimum trustworthy.
const MIN_SAMPLES: u32 = 8;

/// `sk_gso_max_size`: a legacy GSO packet (65,536 bytes) without the room for its headers.
const GSO_MAX_BYTES: u64 = 65_536 - 321;

/// Standard slow start with two ways out, both found by watching rounds (the ACKs between sending
/// a packet and its acknowledgement):
///
/// - *ACK train*: ACKs in close succession since the round began span half the minimum RTT, so
///   the packets in flight fill the forward path;
/// - *delay*: the round's minimum RTT exceeds the connection's by an eighth (4 to 16 ms).
///
/// The connection's minimum RTT is HyStart's own. Linux shares it with CUBIC, which ignores
/// samples during the first second of each epoch of congestion avoidance; HyStart here hears
/// them. It matters only to slow start after an idle time that follows such a second: after a
/// timeout both forget the minimum.
#[derive(Clone, Debug)]
pub struct HyStart {
    detects_train: bool,
    detects_delay: bool,
    low_window: u32,
    ack_delta_us: u64,
    /// Set by the `linux` parameter, which then outweighs the controller's.
    own_kernel: bool,
    kernel: Linux,
    margin: Margin,
    /// Delays are compared with the last round's minimum, not with the connection's.
    by_rounds: bool,
    mss_bytes: u32,
    /// A way out was found: nothing more to look for until a timeout.
    found: bool,
    /// Minimum RTT of the connection in [`HyStart::delay_unit_us`]; none before the first sample.
    delay_min: Option<u64>,
    round_start_us: u64,
    last_ack_us: u64,
    /// `snd_nxt` when the round began: its acknowledgement ends the round.
    round_end: u64,
    /// Minimum RTT of the round, in the same unit.
    round_min: u64,
    /// Minimum RTT of the round before; none if it had no samples.
    last_round_min: Option<u64>,
    samples: u32,
    train: TrainPart,
}

/// Which of a round's ACKs make up its train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrainPart {
    /// These, which stand for so many times as long a train.
    Of(u64),
    /// Not these: their packets did not leave as ACKs came.
    None,
}

impl HyStart {
    /// HyStart with the parameters of its registry row.
    pub fn new(values: &Values) -> Self {
        let linux = values.choice("linux");
        let own_kernel = Linux::CHOICES.contains(&linux);
        Self { own_kernel, ..Self::following(Linux::from_choice(linux), values) }
    }

    /// HyStart as its authors published it, with the parameters of the registry's other row. The
    /// kernel code that they wrote for it counts time in milliseconds, takes a round's first eight
    /// delays and knows no pacing, all of which 4.15 still did.
    pub fn published(values: &Values) -> Self {
        Self {
            own_kernel: true,
            margin: PAPER_MARGIN,
            by_rounds: values.choice("baseline") == "last round",
            ..Self::following(Linux::V4_15, values)
        }
    }

    fn following(kernel: Linux, values: &Values) -> Self {
        let detect = values.choice("detect");
        Self {
            detects_train: detect != "delay",
            detects_delay: detect != "train",
            low_window: values.u32("low_window"),
            ack_delta_us: values.span("ack_delta").as_us(),
            own_kernel: false,
            kernel,
            margin: LINUX_MARGIN,
            by_rounds: false,
            mss_bytes: 0,
            found: false,
            delay_min: None,
            round_start_us: 0,
            last_ack_us: 0,
            round_end: 0,
            round_min: u64::MAX,
            last_round_min: None,
            samples: 0,
            train: TrainPart::Of(1),
        }
    }

    /// For start-ups that pace a part of each flight: what the ACKs from now on are to trains.
    pub(super) fn set_train(&mut self, train: TrainPart) {
        self.train = train;
    }

    /// A delay in [`HyStart::delay_unit_us`], each of which is divided by a number that is known.
    const fn delay_of(&self, rtt: Span) -> u64 {
        match self.kernel {
            Linux::V4_15 => rtt.as_us() / 125,
            Linux::V6_1 => rtt.as_us(),
        }
    }

    /// Resolution of delays: 4.15 keeps them in eighths of a millisecond.
    const fn delay_unit_us(&self) -> u64 {
        match self.kernel {
            Linux::V4_15 => 125,
            Linux::V6_1 => 1,
        }
    }

    /// The clock that rounds and trains are timed with: 4.15's ticks in milliseconds.
    const fn clock_us(&self, now: Time) -> u64 {
        let us = now.as_ns() / 1_000;
        match self.kernel {
            Linux::V4_15 => us - us % 1_000,
            Linux::V6_1 => us,
        }
    }

    fn start_round(&mut self, now: Time, next_to_send: u64) {
        self.round_start_us = self.clock_us(now);
        self.last_ack_us = self.round_start_us;
        self.round_end = next_to_send;
        self.last_round_min = (self.samples > 0).then_some(self.round_min);
        self.round_min = u64::MAX;
        self.samples = 0;
    }

    /// Length that an ACK train must exceed, in microseconds.
    fn train_limit_us(&self, delay_min: u64, cwnd: u32, rtt: Span, paced: Option<Rate>) -> u64 {
        match self.kernel {
            // In whole milliseconds, as its clock.
            Linux::V4_15 => delay_min / 16 * 1_000,
            Linux::V6_1 => match paced {
                // "Pacing might have delayed packets up to RTT/2 during slow start": the whole RTT.
                Some(rate) => delay_min + aggregation_slack_us(rate),
                None => {
                    // Linux keeps a pacing rate, 200 % of cwnd per SRTT, even where nothing paces.
                    // The latest RTT serves as well: below 1 ms the slack hardly shifts the exit.
                    let sent_bytes = 2 * u64::from(cwnd) * u64::from(self.mss_bytes);
                    (delay_min + aggregation_slack_us(Rate::of(sent_bytes, rtt))) / 2
                }
            },
        }
    }

    /// Whether ACKs have come in close succession for long enough.
    fn train_found(&mut self, now: Time, limit_us: u64) -> bool {
        let TrainPart::Of(scale) = self.train else { return false };
        let now_us = self.clock_us(now);
        if now_us.saturating_sub(self.last_ack_us) > self.ack_delta_us {
            return false;
        }
        self.last_ack_us = now_us;
        now_us.saturating_sub(self.round_start_us).saturating_mul(scale) > limit_us
    }

    /// Whether the round's delays are above those it is compared with.
    fn delay_found(&mut self, delay: u64, delay_min: u64) -> bool {
        let full = self.samples >= MIN_SAMPLES;
        // 4.15 leaves the minimum as it is once it has its samples, 6.1 keeps lowering it.
        if !full || self.kernel == Linux::V6_1 {
            self.round_min = self.round_min.min(delay);
        }
        if !full {
            self.samples += 1;
            return false;
        }
        let Some(baseline) = (if self.by_rounds { self.last_round_min } else { Some(delay_min) })
        else {
            return false;
        };
        let unit_us = self.delay_unit_us();
        let Margin { divisor, min_us, max_us } = self.margin;
        let margin = (baseline / divisor).clamp(min_us / unit_us, max_us / unit_us);
        self.round_min > baseline + margin
    }

    /// Looks for a way out of slow start. Most of a connection's ACKs come later.
    #[inline(never)]
    fn watch(
        &mut self,
        window: &mut Window,
        measurement: &Measurement,
        (rtt, delay, delay_min): (Span, u64, u64),
    ) {
        if self.kernel == Linux::V6_1 && measurement.first_unacked > self.round_end {
            self.start_round(measurement.now, measurement.next_to_send);
        }
        if window.cwnd < self.low_window {
            return;
        }
        let limit_us = self.train_limit_us(delay_min, window.cwnd, rtt, measurement.pacing_rate);
        let by_train = self.detects_train && self.train_found(measurement.now, limit_us);
        let by_delay = self.detects_delay && self.delay_found(delay, delay_min);
        if by_train || by_delay {
            self.found = true;
            window.ssthresh = window.cwnd;
        }
    }
}

/// Time by which segmentation offload may hold ACKs back (`hystart_ack_delay`): four maximal
/// bursts at the pacing rate, 1 ms at most.
fn aggregation_slack_us(rate: Rate) -> u64 {
    const BURSTS_BYTES: u64 = 4 * GSO_MAX_BYTES;
    const MAX_US: u64 = 1_000;
    /// Up to this rate, 2 Gbit/s, it is the most that it can be.
    const SLOW: u64 = BURSTS_BYTES * 1_000_000 / MAX_US;
    match rate.as_bytes_per_s() {
        0 => 0,
        1..=SLOW => MAX_US,
        bytes_per_s => BURSTS_BYTES * 1_000_000 / bytes_per_s,
    }
}

impl SlowStart for HyStart {
    fn follow(&mut self, kernel: Linux) {
        if !self.own_kernel {
            self.kernel = kernel;
        }
    }

    fn on_established(&mut self, _window: &mut Window, established: &Established) {
        self.samples = 0;
        self.mss_bytes = established.mss_bytes;
        self.found = false;
        self.delay_min = None;
        self.start_round(established.now, 0);
    }

    fn on_packet_size(&mut self, mss_bytes: u32) {
        self.mss_bytes = mss_bytes;
    }

    fn on_measurement(&mut self, window: &mut Window, measurement: &Measurement) {
        let Some(rtt) = measurement.rtt else { return };
        let delay = self.delay_of(rtt).max(1);
        let delay_min = self.delay_min.map_or(delay, |min| min.min(delay));
        self.delay_min = Some(delay_min);
        if !self.found && window.in_slow_start() {
            self.watch(window, measurement, (rtt, delay, delay_min));
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &AckSample) -> u32 {
        if self.kernel == Linux::V4_15 && ack.first_unacked > self.round_end {
            self.start_round(ack.now, ack.next_to_send);
        }
        window.slow_start(ack.acked)
    }

    fn on_timeout(&mut self, now: Time, next_to_send: u64) {
        self.found = false;
        self.delay_min = None;
        self.samples = 0;
        self.start_round(now, next_to_send);
    }
}

#[cfg(test)]
mod tests;
