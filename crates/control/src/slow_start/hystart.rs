//! HyStart as Linux's CUBIC has it.

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::{Rate, Span, Time};

use super::SlowStart;
use crate::controller::{AckSample, Established, Measurement};
use crate::registry::SlowStartRow;
use crate::windowed::{Kernel, Window};

pub(crate) const ROW: SlowStartRow = SlowStartRow {
    entry: Entry {
        name: "hystart",
        summary: "leaves slow start when ACK trains or delays say that the pipe is full",
        class: "delay",
        based_on: &["standard"],
        source: "Ha & Rhee, Taming the elephants, Computer Networks 55(9), 2011; \
                 Linux 6.1 and 4.15 tcp_cubic.c",
        parameters: &[
            Parameter {
                name: "detect",
                summary: "which signs end slow start (hystart_detect)",
                kind: Kind::Choice { default: "both", choices: &["both", "train", "delay"] },
            },
            Parameter {
                name: "low_window",
                summary: "smallest cwnd that is watched, in packets (hystart_low_window)",
                kind: Kind::Integer { default: 16, min: 0, max: 1_000_000 },
            },
            Parameter {
                name: "ack_delta",
                summary: "largest gap between the ACKs of a train (hystart_ack_delta_us)",
                kind: Kind::Span { default_ns: 2_000_000, min_ns: 0, max_ns: 1_000_000_000 },
            },
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
    kernel: Kernel,
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
        let detect = values.choice("detect");
        let linux = values.choice("linux");
        Self {
            detects_train: detect != "delay",
            detects_delay: detect != "train",
            low_window: values.u32("low_window"),
            ack_delta_us: values.span("ack_delta").as_us(),
            own_kernel: Kernel::CHOICES.contains(&linux),
            kernel: Kernel::from_choice(linux),
            mss_bytes: 0,
            found: false,
            delay_min: None,
            round_start_us: 0,
            last_ack_us: 0,
            round_end: 0,
            round_min: u64::MAX,
            samples: 0,
            train: TrainPart::Of(1),
        }
    }

    /// For start-ups that pace a part of each flight: what the ACKs from now on are to trains.
    pub(super) fn set_train(&mut self, train: TrainPart) {
        self.train = train;
    }

    /// Resolution of delays: 4.15 keeps them in eighths of a millisecond.
    const fn delay_unit_us(&self) -> u64 {
        match self.kernel {
            Kernel::V4_15 => 125,
            Kernel::V6_1 => 1,
        }
    }

    /// The clock that rounds and trains are timed with: 4.15's ticks in milliseconds.
    const fn clock_us(&self, now: Time) -> u64 {
        let us = now.as_ns() / 1_000;
        match self.kernel {
            Kernel::V4_15 => us - us % 1_000,
            Kernel::V6_1 => us,
        }
    }

    fn start_round(&mut self, now: Time, next_to_send: u64) {
        self.round_start_us = self.clock_us(now);
        self.last_ack_us = self.round_start_us;
        self.round_end = next_to_send;
        self.round_min = u64::MAX;
        self.samples = 0;
    }

    /// Length that an ACK train must exceed, in microseconds.
    fn train_limit_us(&self, delay_min: u64, cwnd: u32, rtt: Span, paced: Option<Rate>) -> u64 {
        match self.kernel {
            // In whole milliseconds, as its clock.
            Kernel::V4_15 => delay_min / 16 * 1_000,
            Kernel::V6_1 => match paced {
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

    /// Whether the round's delays are above the connection's minimum.
    fn delay_found(&mut self, delay: u64, delay_min: u64) -> bool {
        let full = self.samples >= MIN_SAMPLES;
        // 4.15 leaves the minimum as it is once it has its samples, 6.1 keeps lowering it.
        if !full || self.kernel == Kernel::V6_1 {
            self.round_min = self.round_min.min(delay);
        }
        if !full {
            self.samples += 1;
            return false;
        }
        let unit_us = self.delay_unit_us();
        let margin = (delay_min / 8).clamp(4_000 / unit_us, 16_000 / unit_us);
        self.round_min > delay_min + margin
    }
}

/// Time by which segmentation offload may hold ACKs back (`hystart_ack_delay`): four maximal
/// bursts at the pacing rate, 1 ms at most.
fn aggregation_slack_us(rate: Rate) -> u64 {
    match rate.as_bytes_per_s() {
        0 => 0,
        bytes_per_s => (GSO_MAX_BYTES * 4 * 1_000_000 / bytes_per_s).min(1_000),
    }
}

impl SlowStart for HyStart {
    fn follow(&mut self, kernel: Kernel) {
        if !self.own_kernel {
            self.kernel = kernel;
        }
    }

    fn on_established(&mut self, _window: &mut Window, established: &Established) {
        self.mss_bytes = established.mss_bytes;
        self.found = false;
        self.delay_min = None;
        self.start_round(established.now, 0);
    }

    fn on_measurement(&mut self, window: &mut Window, measurement: &Measurement) {
        let Some(rtt) = measurement.rtt else { return };
        let delay = (rtt.as_us() / self.delay_unit_us()).max(1);
        let delay_min = self.delay_min.map_or(delay, |min| min.min(delay));
        self.delay_min = Some(delay_min);
        if self.found || !window.in_slow_start() {
            return;
        }
        if self.kernel == Kernel::V6_1 && measurement.first_unacked > self.round_end {
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

    fn grow(&mut self, window: &mut Window, ack: &AckSample) -> u32 {
        if self.kernel == Kernel::V4_15 && ack.first_unacked > self.round_end {
            self.start_round(ack.now, ack.next_to_send);
        }
        window.slow_start(ack.acked)
    }

    fn on_timeout(&mut self, now: Time, next_to_send: u64) {
        self.found = false;
        self.delay_min = None;
        self.start_round(now, next_to_send);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use jostle_catalogue::Value;

    const BASE: Span = Span::from_ms(100);

    /// HyStart with parameters, its connection established, at a window of 100.
    fn hystart(parameters: &[(&str, &str)]) -> (HyStart, Window) {
        let given = parameters
            .iter()
            .map(|(name, choice)| (name.to_string(), Value::Choice(choice.to_string())))
            .collect();
        let mut hystart = HyStart::new(&ROW.entry.resolve(&given).unwrap());
        let mut window = Window { cwnd: 100, ..Window::default() };
        let established = Established {
            now: Time::ZERO + BASE,
            mss_bytes: 1448,
            initial_window: 10,
            rtt: Some(BASE),
            prospect: Default::default(),
        };
        hystart.on_established(&mut window, &established);
        (hystart, window)
    }

    fn ack(now: Time, rtt: Span, number: u64, pacing_rate: Option<Rate>) -> Measurement {
        Measurement {
            now,
            rtt: Some(rtt),
            packets: 1,
            first_unacked: number,
            next_to_send: number + 100,
            state: crate::RecoveryState::Open,
            pacing_rate,
        }
    }

    /// ACKs every `gap` from the first ACK of a round on, until slow start ends: how long the
    /// train was.
    fn train_length(parameters: &[(&str, &str)], gap: Span, pacing: Option<Rate>) -> Option<Span> {
        let (mut hystart, mut window) = hystart(parameters);
        let start = Time::ZERO + BASE + BASE;
        let mut now = start;
        for i in 0..1_000 {
            // The first ACK starts a round in which the rest of 1,000 packets falls.
            let next_to_send = if i == 0 { 1_000 } else { 2_000 };
            let m = Measurement { next_to_send, ..ack(now, BASE, i + 1, pacing) };
            hystart.on_measurement(&mut window, &m);
            if hystart.kernel == Kernel::V4_15 && i == 0 {
                hystart.start_round(now, next_to_send);
            }
            if !window.in_slow_start() {
                assert_eq!(window.ssthresh, 100);
                return Some(now.since(start));
            }
            now += gap;
        }
        None
    }

    /// algorithms.md: at 100 ms without pacing, a train of more than 50 ms (plus half the slack).
    #[test]
    fn a_train_of_half_the_rtt_ends_slow_start_without_pacing() {
        let length = train_length(&[], Span::from_us(250), None).unwrap();
        assert_eq!(length, Span::from_us(50_750), "the first ACK after 50 + 0.5 ms");
    }

    #[test]
    fn pacing_asks_for_a_train_of_a_whole_rtt() {
        let length = train_length(&[], Span::from_us(250), Some(Rate::from_mbps(10))).unwrap();
        assert_eq!(length, Span::from_us(101_250), "the first ACK after 100 + 1 ms");
        let fast = train_length(&[], Span::from_us(250), Some(Rate::from_mbps(10_000))).unwrap();
        assert_eq!(fast, Span::from_us(100_250), "four bursts take 0.2 ms at 10 Gbit/s");
    }

    #[test]
    fn a_gap_of_more_than_2_ms_breaks_the_train() {
        assert_eq!(train_length(&[], Span::from_us(2_001), None), None);
        assert!(train_length(&[], Span::from_us(2_000), None).is_some());
        assert_eq!(train_length(&[("detect", "delay")], Span::from_us(250), None), None);
    }

    /// Rounds of 20 ACKs, 3 ms apart, whose RTT rises by 0.1 ms from round to round: the queueing
    /// delay at which slow start ends.
    fn delay_at_exit(parameters: &[(&str, &str)]) -> Option<Span> {
        let (mut hystart, mut window) = hystart(parameters);
        let mut now = Time::ZERO + BASE + BASE;
        for i in 0..20 * 300 {
            let queued = Span::from_us(100 * (i / 20));
            let next_to_send = i + 20;
            let m = Measurement { next_to_send, ..ack(now, BASE + queued, i + 1, None) };
            hystart.on_measurement(&mut window, &m);
            if hystart.kernel == Kernel::V4_15 && i % 20 == 0 {
                hystart.start_round(now, next_to_send);
            }
            if !window.in_slow_start() {
                return Some(queued);
            }
            now += Span::from_ms(3);
        }
        None
    }

    /// algorithms.md: at 100 ms, when the queueing delay first exceeds 12.5 ms.
    #[test]
    fn a_delay_of_an_eighth_ends_slow_start() {
        assert_eq!(delay_at_exit(&[]), Some(Span::from_us(12_600)));
        assert_eq!(delay_at_exit(&[("detect", "train")]), None);
        // In eighths of a millisecond: 12.5 ms is 100 of them, exceeded at 12.625 ms.
        assert_eq!(delay_at_exit(&[("linux", "4.15")]), Some(Span::from_us(12_700)));
    }

    #[test]
    fn small_windows_are_left_alone() {
        let (mut hystart, mut window) = hystart(&[]);
        window.cwnd = 15;
        for i in 0..100 {
            let now = Time::ZERO + BASE + Span::from_ms(i);
            hystart.on_measurement(&mut window, &ack(now, BASE + Span::from_ms(i), i, None));
        }
        assert!(window.in_slow_start());
    }

    #[test]
    fn the_old_kernel_halves_the_train_whatever_the_pacing() {
        let old = [("linux", "4.15")];
        let paced = train_length(&old, Span::from_us(250), Some(Rate::from_mbps(10))).unwrap();
        assert_eq!(paced, Span::from_ms(51), "the first ACK whose millisecond exceeds 50");
        assert_eq!(train_length(&old, Span::from_us(250), None), Some(paced));
    }

    #[test]
    fn the_controller_names_the_kernel_unless_a_parameter_does() {
        for (linux, followed) in [("as the controller", Kernel::V4_15), ("6.1", Kernel::V6_1)] {
            let (mut hystart, _) = hystart(&[("linux", linux)]);
            hystart.follow(Kernel::V4_15);
            assert_eq!(hystart.kernel, followed);
        }
        assert!(registry::slow_start("hystart").is_some());
    }

    #[test]
    fn a_timeout_starts_anew() {
        let (mut hystart, mut window) = hystart(&[]);
        hystart.found = true;
        hystart.delay_min = Some(1);
        hystart.on_timeout(Time::ZERO + Span::from_secs(5), 500);
        assert!(!hystart.found);
        window.cwnd = 20;
        hystart.on_measurement(&mut window, &ack(Time::ZERO + Span::from_secs(6), BASE, 501, None));
        assert_eq!(hystart.delay_min, Some(100_000));
    }
}
