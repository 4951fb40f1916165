//! HyStart as in Linux's CUBIC and as in its papers.

use alloc::boxed::Box;

use jostle_registry::{LinuxRelease, Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Rate, Span, Time};

use super::algorithm::SlowStart;
use crate::cwnd::CongestionWindow;
use crate::registry_rows::SlowStartEntry;
use jostle_congestion::{AckSample, EstablishedEvent, RawAckSample};

pub(crate) const ROW: SlowStartEntry = SlowStartEntry {
    entry: RegistryEntry {
        name: "hystart",
        summary: "ends when an ACK train or a rise of the delay indicates a full pipe",
        class: "delay",
        based_on: &["standard"],
        source: "Ha & Rhee, Taming the elephants, Computer Networks 55(9), 2011; \
                 Linux 6.1 and 4.15 tcp_cubic.c",
        parameters: &[
            DETECT,
            LOW_WINDOW,
            ACK_DELTA,
            Parameter::choice("linux", "as the controller", &["as the controller", "6.1", "4.15"])
                .summary(
                    "kernel to follow; 4.15 has a clock of 1 ms, uses delays of the first 8 ACKs \
                     of a round only, and ignores pacing",
                ),
        ],
    },
    build: |values| Box::new(HyStart::new(values)),
};

pub(crate) const PAPER_ROW: SlowStartEntry = SlowStartEntry {
    entry: RegistryEntry {
        name: "hystart-paper",
        summary: "HyStart with the published threshold: a delay increase by 1/16, 2 to 16 ms",
        class: "delay",
        based_on: &["standard"],
        source: "Ha & Rhee, Hybrid slow start for high-bandwidth and long-distance networks, \
                 PFLDnet 2008; Taming the elephants, Computer Networks 55(9), 2011",
        parameters: &[
            DETECT,
            LOW_WINDOW,
            ACK_DELTA,
            Parameter::choice("baseline", "connection", &["connection", "last round"]).summary(
                "baseline of a round's delay: the minimum of the connection, or of the previous \
                 round",
            ),
        ],
    },
    build: |values| Box::new(HyStart::published(values)),
};

const DETECT: Parameter = Parameter::choice("detect", "both", &["both", "train", "delay"])
    .summary("conditions that end slow start (hystart_detect)");

const LOW_WINDOW: Parameter = Parameter::integer("low_window", 16, 0..=1_000_000)
    .summary("smallest cwnd at which the conditions apply, in packets (hystart_low_window)");

const ACK_DELTA: Parameter =
    Parameter::span("ack_delta", Span::from_ms(2), Span::ZERO..=Span::from_secs(1))
        .summary("largest gap between the ACKs of a train (hystart_ack_delta_us)");

/// Threshold of the delay increase: the difference between a round's minimum RTT and its reference.
#[derive(Clone, Copy, Debug)]
struct DelayThreshold {
    /// Divisor of the reference RTT.
    divisor: u64,
    /// Bounds of the threshold.
    min_us: u64,
    max_us: u64,
}

/// `HYSTART_DELAY_THRESH` and the shift in its call.
const LINUX_MARGIN: DelayThreshold = DelayThreshold { divisor: 8, min_us: 4_000, max_us: 16_000 };

/// The authors' first kernel code (2.6.29): 2 to 16 ms, and `delay_min >> 4`.
const PAPER_MARGIN: DelayThreshold = DelayThreshold { divisor: 16, min_us: 2_000, max_us: 16_000 };

/// `HYSTART_MIN_SAMPLES`: number of samples for a valid minimum of a round.
const MIN_SAMPLES: u32 = 8;

/// `sk_gso_max_size`: a legacy GSO packet (65,536 bytes) without the space for its headers.
const GSO_MAX_BYTES: u64 = 65_536 - 321;

/// Standard slow start with two exit conditions, checked in rounds (the ACKs between sending a
/// packet and its acknowledgement):
///
/// - *ACK train*: closely spaced ACKs since the start of the round span half the minimum RTT, so
///   that the packets in flight fill the forward path;
/// - *delay*: the round's minimum RTT exceeds the minimum of the connection by an eighth (4 to 16
///   ms).
///
/// HyStart has its own minimum RTT of the connection. Linux shares it with CUBIC, which ignores
/// samples in the first second of each epoch of congestion avoidance; HyStart does not ignore them
/// here. This only affects a slow start after an idle time that follows such a second: a timeout
/// resets the minimum of both.
#[derive(Clone, Debug)]
pub struct HyStart {
    detects_train: bool,
    detects_delay: bool,
    low_window: u32,
    ack_delta_us: u64,
    /// Set by the `linux` parameter, which takes precedence over the controller's kernel.
    own_kernel: bool,
    kernel: LinuxRelease,
    margin: DelayThreshold,
    /// Whether delays are compared with the minimum of the last round instead of the connection.
    by_rounds: bool,
    mss_bytes: u32,
    /// Whether an exit condition was met: no further checks until a timeout.
    found: bool,
    /// Minimum RTT of the connection in [`HyStart::delay_unit_us`]; `None` before the first sample.
    delay_min: Option<u64>,
    round_start_us: u64,
    last_ack_us: u64,
    /// `snd_nxt` when the round began: its acknowledgement ends the round.
    round_end: u64,
    /// Minimum RTT of the round, in the same unit.
    round_min: u64,
    /// Minimum RTT of the previous round; `None` without samples.
    last_round_min: Option<u64>,
    samples: u32,
    train: AckTrainShare,
}

/// ACKs of a round that belong to its train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckTrainShare {
    /// These ACKs. They represent a train that is longer by this factor.
    Of(u64),
    /// Not these ACKs: the spacing of their packets was not ACK-clocked.
    None,
}

/// Exit conditions that an ACK meets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ExitConditions {
    /// Closely spaced ACKs have lasted long enough.
    pub ack_train: bool,
    /// The delay of the round has increased.
    pub delay: bool,
}

impl HyStart {
    /// Creates HyStart with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        let linux = values.choice("linux");
        let own_kernel = LinuxRelease::CHOICES.contains(&linux);
        Self { own_kernel, ..Self::following(LinuxRelease::from_choice(linux), values) }
    }

    /// Creates HyStart as published by its authors, with the parameters of the other registry
    /// entry. The authors' kernel code counts time in milliseconds, uses the first eight delays of
    /// a round and does not consider pacing, as did Linux 4.15.
    pub fn published(values: &ParameterValues) -> Self {
        Self {
            own_kernel: true,
            margin: PAPER_MARGIN,
            by_rounds: values.choice("baseline") == "last round",
            ..Self::following(LinuxRelease::V4_15, values)
        }
    }

    fn following(kernel: LinuxRelease, values: &ParameterValues) -> Self {
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
            train: AckTrainShare::Of(1),
        }
    }

    /// Sets the meaning of the following ACKs for trains, for start-ups that pace a part of each
    /// flight.
    pub(super) fn set_train(&mut self, train: AckTrainShare) {
        self.train = train;
    }

    /// Converts a delay to [`HyStart::delay_unit_us`]. The constant divisors avoid a division.
    const fn delay_of(&self, rtt: Span) -> u64 {
        match self.kernel {
            LinuxRelease::V4_15 => rtt.as_us() / 125,
            LinuxRelease::V6_1 => rtt.as_us(),
        }
    }

    /// Returns the resolution of delays: 4.15 uses eighths of a millisecond.
    const fn delay_unit_us(&self) -> u64 {
        match self.kernel {
            LinuxRelease::V4_15 => 125,
            LinuxRelease::V6_1 => 1,
        }
    }

    /// Returns the clock of rounds and trains: 4.15 uses ticks in milliseconds.
    const fn clock_us(&self, now: Time) -> u64 {
        let us = now.as_ns() / 1_000;
        match self.kernel {
            LinuxRelease::V4_15 => us - us % 1_000,
            LinuxRelease::V6_1 => us,
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

    /// Returns the length that an ACK train must exceed, in microseconds.
    fn train_limit_us(&self, delay_min: u64, cwnd: u32, rtt: Span, paced: Option<Rate>) -> u64 {
        match self.kernel {
            // In whole milliseconds like its clock.
            LinuxRelease::V4_15 => delay_min / 16 * 1_000,
            LinuxRelease::V6_1 => match paced {
                // "Pacing might have delayed packets up to RTT/2 during slow start": use the
                // complete RTT.
                Some(rate) => delay_min + aggregation_slack_us(rate),
                None => {
                    // Linux computes a pacing rate, 200 % of cwnd per SRTT, even without pacing.
                    // The latest RTT is sufficient: the slack below 1 ms hardly shifts the exit.
                    let sent_bytes = 2 * u64::from(cwnd) * u64::from(self.mss_bytes);
                    (delay_min + aggregation_slack_us(Rate::of(sent_bytes, rtt))) / 2
                }
            },
        }
    }

    /// Returns whether closely spaced ACKs have lasted long enough.
    fn detects_ack_train(&mut self, now: Time, limit_us: u64) -> bool {
        let AckTrainShare::Of(scale) = self.train else { return false };
        let now_us = self.clock_us(now);
        if now_us.saturating_sub(self.last_ack_us) > self.ack_delta_us {
            return false;
        }
        self.last_ack_us = now_us;
        now_us.saturating_sub(self.round_start_us).saturating_mul(scale) > limit_us
    }

    /// Returns whether the round's delays exceed their reference.
    fn detects_delay_increase(&mut self, delay: u64, delay_min: u64) -> bool {
        let full = self.samples >= MIN_SAMPLES;
        // 4.15 does not change the minimum after it has its samples, 6.1 continues to lower it.
        if !full || self.kernel == LinuxRelease::V6_1 {
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
        let DelayThreshold { divisor, min_us, max_us } = self.margin;
        let margin = (baseline / divisor).clamp(min_us / unit_us, max_us / unit_us);
        self.round_min > baseline + margin
    }

    /// Adds an RTT sample to the minimum of the connection. Returns whether it is a new minimum.
    pub(super) fn add_rtt(&mut self, rtt: Span) -> bool {
        let delay = self.delay_of(rtt).max(1);
        let is_lower = self.delay_min.is_none_or(|min| delay < min);
        if is_lower {
            self.delay_min = Some(delay);
        }
        is_lower
    }

    /// Returns the minimum RTT of the connection.
    pub(super) fn min_rtt(&self) -> Option<Span> {
        self.delay_min.map(|delay| Span::from_us(delay * self.delay_unit_us()))
    }

    /// Returns the minimum RTT of the round (`curr_rtt`), if it has samples.
    pub(super) fn round_min_rtt(&self) -> Option<Span> {
        (self.samples > 0).then(|| Span::from_us(self.round_min * self.delay_unit_us()))
    }

    /// Checks the exit conditions, unless slow start was left. The sample `rtt` has been added. Not
    /// inlined, because most ACKs of a connection arrive after slow start.
    /// `tcp_cubic.c::hystart_update`.
    #[inline(never)]
    pub(super) fn watch(
        &mut self,
        cwnd: u32,
        measurement: &RawAckSample,
        rtt: Span,
    ) -> ExitConditions {
        if self.kernel == LinuxRelease::V6_1 && measurement.first_unacked > self.round_end {
            self.start_round(measurement.now, measurement.next_to_send);
        }
        let delay = self.delay_of(rtt).max(1);
        let delay_min = self.delay_min.unwrap_or(delay);
        if cwnd < self.low_window {
            return ExitConditions::default();
        }
        let limit_us = self.train_limit_us(delay_min, cwnd, rtt, measurement.pacing_rate);
        ExitConditions {
            ack_train: self.detects_train && self.detects_ack_train(measurement.now, limit_us),
            delay: self.detects_delay && self.detects_delay_increase(delay, delay_min),
        }
    }

    /// Leaves slow start.
    pub(super) fn exit(&mut self, window: &mut CongestionWindow) {
        self.found = true;
        window.ssthresh = window.cwnd;
    }

    /// Returns whether an exit condition was met, so that there are no further checks.
    pub(super) const fn has_exited(&self) -> bool {
        self.found
    }
}

/// Returns the time by which segmentation offload may delay ACKs
/// (`tcp_cubic.c::hystart_ack_delay`): four maximum bursts at the pacing rate, at most 1 ms.
fn aggregation_slack_us(rate: Rate) -> u64 {
    const BURSTS_BYTES: u64 = 4 * GSO_MAX_BYTES;
    const MAX_US: u64 = 1_000;
    /// Up to this rate, 2 Gbit/s, the slack has its maximum.
    const SLOW: u64 = BURSTS_BYTES * 1_000_000 / MAX_US;
    match rate.as_bytes_per_s() {
        0 => 0,
        1..=SLOW => MAX_US,
        bytes_per_s => BURSTS_BYTES * 1_000_000 / bytes_per_s,
    }
}

impl SlowStart for HyStart {
    fn set_linux_release(&mut self, kernel: LinuxRelease) {
        if !self.own_kernel {
            self.kernel = kernel;
        }
    }

    fn on_established(&mut self, _window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.samples = 0;
        self.mss_bytes = established.mss_bytes;
        self.found = false;
        self.delay_min = None;
        self.start_round(established.now, 0);
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.mss_bytes = mss_bytes;
    }

    /// `tcp_cubic.c::cubictcp_acked`.
    fn on_ack_before_loss_detection(
        &mut self,
        window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        let Some(rtt) = measurement.rtt else { return };
        self.add_rtt(rtt);
        if !self.found && window.in_slow_start() {
            let ExitConditions { ack_train, delay } = self.watch(window.cwnd, measurement, rtt);
            if ack_train || delay {
                self.exit(window);
            }
        }
    }

    fn grow(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> u32 {
        if self.kernel == LinuxRelease::V4_15 && ack.first_unacked > self.round_end {
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
