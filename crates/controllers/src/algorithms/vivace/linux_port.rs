//! The authors' Linux port of Vivace (PCC-Kernel, branch `vivace`, commit ed39d0f, `tcp_pcc.c`).
//!
//! The paper and the user-space release have other experiments. Rates are bytes
//! per second, shares and gradients are thousandths, and divisions truncate, as in the port. One
//! difference: the port counts packets that are delivered or lost by adding both, and corrects the
//! sum after a timeout; here it is the number of packets that are no longer in flight.

use jostle_congestion::{AckSample, RecoveryState, StateObserver};
use jostle_units::{RandomStream, Span, Time};

use crate::pcc::{IntervalMonitor, MIN_PACKETS_PER_RTT, RateExperiment};
use crate::registry_rows::ControllerInputs;

/// Unit of shares, gradients and utilities (`PCC_SCALE`).
const SCALE: i64 = 1_000;
/// Initial rate, 512 KiB/s (`PCC_RATE_MIN * 512`).
const INITIAL_RATE: i64 = 1_024 * 512;
/// Lowest rate, in bytes per second (`PCC_RATE_MIN`).
const MIN_RATE: i64 = 1_024;
/// Highest rate, far above any link. It limits the arithmetic.
const MAX_RATE: i64 = 125_000_000_000;
/// Intervals of a probe (`PCC_INTERVALS`).
const INTERVALS: usize = 4;
/// Distance of probed rates from the current rate, in percent (`PCC_PROBING_EPS`).
const EPSILON_PERCENT: i64 = 5;
/// Fewest packets of an interval (`PCC_INTERVAL_MIN_PACKETS`).
const LEAST_PACKETS: u64 = 50;
/// Packets at the start of an interval that are not counted, and at its end that are not awaited
/// (`PCC_IGNORE_PACKETS`).
const IGNORED_PACKETS: u64 = 10;
/// RTT gradients below this are noise, in thousandths (`PCC_LAT_INFL_FILTER`).
const GRADIENT_FILTER: i64 = 30;
/// Coefficients of the utility.
const RTT_COEFFICIENT: i64 = 900;
const LOSS_COEFFICIENT: i64 = 11;
/// Share of losses that the starting phase ignores, in thousandths.
const STARTING_LOSS: i64 = 100;
/// Step per thousandth of the gradient, in bytes per second (`PCC_GRAD_STEP_SIZE`).
const STEP: i64 = 25;
/// Least difference of two rates that gives a gradient, in thousandths
/// (`PCC_MIN_RATE_DIFF_RATIO_FOR_GRAD`).
const LEAST_DIFFERENCE: i64 = 20;
/// First bound of a change and its widening, in thousandths of the rate.
const CHANGE_BOUND: i64 = 100;
const CHANGE_BOUND_STEP: i64 = 70;
/// Initial amplifier of steps (`PCC_AMP_MIN`), and changes after a turn without a larger one
/// (`PCC_MAX_SWING_BUFFER`).
const LEAST_AMPLIFIER: i64 = 2;
const MAX_SWING_BUFFER: u32 = 2;

/// A monitor interval (`struct pcc_interval`).
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    rate: i64,
    send_start: Time,
    send_end: Time,
    receive_start: Time,
    receive_end: Time,
    start_rtt: Span,
    end_rtt: Span,
    /// Packets sent before the interval; 0 if it has not started.
    first: u64,
    /// Packets sent until its end; 0 while it continues.
    last: u64,
    utility: i64,
    lost: u64,
    delivered: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Starting,
    Probing,
    Moving,
}

/// The experiments of the port.
pub(super) struct LinuxPort {
    random: RandomStream,
    monitor: IntervalMonitor,
    phase: Phase,
    intervals: [Interval; INTERVALS],
    /// Interval that is being sent, and the one whose ACKs are awaited.
    sending: usize,
    receiving: usize,
    /// Whether all intervals are sent and the rate is kept until their ACKs arrive.
    waits: bool,
    rate: i64,
    last_rate: i64,
    /// Whether the transport recovers from a timeout.
    in_loss: bool,
    /// Packets known to be delivered or lost at the previous ACK.
    counted: u64,
    delivered: u64,
    lost: u64,
    amplifier: i64,
    swing_buffer: u32,
    change_bound: i64,
    mss: i64,
}

impl LinuxPort {
    pub(super) fn new(parts: ControllerInputs) -> Self {
        Self {
            random: parts.random,
            monitor: IntervalMonitor::new(8.0 * MIN_RATE as f64, 0.0, LEAST_PACKETS),
            phase: Phase::Starting,
            intervals: [Interval::default(); INTERVALS],
            sending: 0,
            receiving: 0,
            waits: false,
            rate: INITIAL_RATE,
            last_rate: INITIAL_RATE,
            in_loss: false,
            counted: 0,
            delivered: 0,
            lost: 0,
            amplifier: LEAST_AMPLIFIER,
            swing_buffer: 0,
            change_bound: CHANGE_BOUND,
            mss: 1,
        }
    }

    /// `pcc_setup_intervals_probing`.
    fn set_up_probe(&mut self) {
        let order = self.random.bits();
        let high = self.rate * (100 + EPSILON_PERCENT) / 100;
        let low = self.rate * (100 - EPSILON_PERCENT) / 100;
        for (pair, intervals) in self.intervals.chunks_exact_mut(2).enumerate() {
            let lower_first = order >> pair & 1 == 1;
            let rates = if lower_first { [low, high] } else { [high, low] };
            for (interval, rate) in intervals.iter_mut().zip(rates) {
                (interval.rate, interval.first) = (rate, 0);
            }
        }
        (self.sending, self.receiving, self.waits) = (0, 0, false);
    }

    /// `pcc_setup_intervals_moving`.
    fn set_up_move(&mut self) {
        (self.intervals[0].rate, self.intervals[0].first) = (self.rate, 0);
        (self.sending, self.receiving, self.waits) = (0, 0, false);
    }

    /// `start_interval`.
    fn start_interval(&mut self, now: Time) {
        let mut rate = self.rate;
        if !self.waits {
            let interval = &mut self.intervals[self.sending];
            (interval.last, interval.lost, interval.delivered) = (0, 0, 0);
            interval.first = self.monitor.total_sent.max(1);
            interval.send_start = now;
            rate = interval.rate;
        }
        self.monitor.hold(self.monitor.allowed(8.0 * rate as f64));
    }

    /// `pcc_calc_utility_vivace`.
    fn set_utility(&mut self, index: usize) {
        let starting = self.phase == Phase::Starting;
        let mss = self.mss;
        let interval = &mut self.intervals[index];
        let (delivered, lost) = (interval.delivered as i64, interval.lost as i64);
        if delivered == 0 {
            interval.utility = 0;
            return;
        }
        let micros = |until: Time, from: Time| until.since(from).as_us() as i64;
        let receive_us = micros(interval.receive_end, interval.receive_start);
        let throughput = if receive_us > 0 { 1_000_000 * delivered * mss / receive_us } else { 0 };
        let rtt_rise = interval.end_rtt.as_us() as i64 - interval.start_rtt.as_us() as i64;
        let two_packets_us = if throughput > 0 { 2_000_000 * mss / throughput } else { 0 };
        let send_us = micros(interval.send_end, interval.send_start);
        let mut gradient = if send_us > 0 { SCALE * rtt_rise / send_us } else { 0 };
        if rtt_rise.abs() < two_packets_us
            || gradient.abs() < GRADIENT_FILTER
            || (gradient < 0 && starting)
        {
            gradient = 0;
        }
        let mut loss = lost * SCALE / (lost + delivered);
        if starting && loss < STARTING_LOSS {
            loss = 0;
        }
        let cost = RTT_COEFFICIENT * gradient + LOSS_COEFFICIENT * loss;
        interval.utility = interval.rate - interval.rate.saturating_mul(cost) / SCALE;
    }

    /// `pcc_decide_slow_start`: half as fast again while the utility rises.
    fn decide_start(&mut self, now: Time) {
        let before = self.intervals[0].utility;
        self.set_utility(0);
        if self.intervals[0].utility > before {
            self.last_rate = self.rate;
            self.rate = (self.rate + self.rate / 2).min(MAX_RATE);
            self.intervals[0].rate = self.rate;
            (self.sending, self.receiving, self.waits) = (0, 0, false);
        } else {
            core::mem::swap(&mut self.rate, &mut self.last_rate);
            self.phase = Phase::Probing;
            self.set_up_probe();
        }
        self.start_interval(now);
    }

    /// `pcc_decide`: moves to the better rate of the last pair if both pairs agree. The first
    /// interval of the move is still sent at the rate before it.
    fn decide_probe(&mut self, now: Time) {
        for index in 0..INTERVALS {
            self.set_utility(index);
        }
        let [a, b, c, d] = self.intervals;
        let (first, second) = (a.utility > b.utility, c.utility > d.utility);
        let agree = (first == second) == (a.rate == c.rate);
        let best = if second { c } else { d };
        if agree {
            self.last_rate = best.rate;
            self.intervals[0].utility = best.utility;
        }
        if agree && best.rate != self.rate {
            self.phase = Phase::Moving;
            self.set_up_move();
            self.rate = best.rate;
        } else {
            self.set_up_probe();
        }
        self.start_interval(now);
    }

    /// `pcc_decide_moving`. The port never updates `last_decision`, which stays at an increase: a
    /// decrease always ends the move with a probe.
    fn decide_move(&mut self, now: Time) {
        let before = self.intervals[0].utility;
        self.set_utility(0);
        let gradient = gradient((self.rate, self.intervals[0].utility), (self.last_rate, before));
        let step = self.step(gradient);
        let per_rtt = MIN_PACKETS_PER_RTT as i64 * self.mss * 1_000_000;
        let floor = per_rtt / (self.monitor.srtt.as_us() as i64).max(1);
        self.last_rate = self.rate;
        self.rate = (self.rate + step).max(floor).min(MAX_RATE);
        if step > 0 {
            self.set_up_move();
        } else {
            self.phase = Phase::Probing;
            self.set_up_probe();
        }
        self.start_interval(now);
    }

    /// Returns the change of the rate along `gradient` (`pcc_decide_rate_moving`).
    fn step(&mut self, gradient: i64) -> i64 {
        let raw = gradient.saturating_mul(STEP);
        if (raw > 0) == (self.rate > self.last_rate) {
            if self.swing_buffer > 0 {
                self.swing_buffer -= 1;
            } else {
                self.amplifier += 1;
            }
        } else {
            self.swing_buffer = (self.swing_buffer + 1).min(MAX_SWING_BUFFER);
            self.amplifier = LEAST_AMPLIFIER;
            self.change_bound = CHANGE_BOUND;
        }
        let mut size = (raw.saturating_mul(self.amplifier) / SCALE).abs();
        if size.saturating_mul(SCALE) / self.rate.max(1) > self.change_bound {
            size = self.rate * self.change_bound / SCALE;
            self.change_bound += CHANGE_BOUND_STEP;
        } else {
            self.change_bound = CHANGE_BOUND;
        }
        // "Our step size [has] to be large enough that we can compute the gradient".
        let least = self.rate * LEAST_DIFFERENCE / SCALE * 11 / 10;
        size = size.max(least);
        if raw >= 0 { size } else { -size }
    }
}

/// Utility per rate between two results, in thousandths of a thousandth
/// (`pcc_calc_util_grad`).
fn gradient(latest: (i64, i64), before: (i64, i64)) -> i64 {
    let apart = before.0 - latest.0;
    if (SCALE * apart / latest.0.max(1)).abs() < LEAST_DIFFERENCE {
        return 0;
    }
    (SCALE * SCALE).saturating_mul(before.1.saturating_sub(latest.1)) / apart
}

impl RateExperiment for LinuxPort {
    fn monitor(&self) -> &IntervalMonitor {
        &self.monitor
    }

    fn monitor_mut(&mut self) -> &mut IntervalMonitor {
        &mut self.monitor
    }

    /// `pcc_init`. The rate does not depend on the initial window.
    fn begin(&mut self, now: Time, _rate_bps: f64) {
        self.intervals[0].utility = i64::MIN;
        self.set_up_probe();
        self.start_interval(now);
    }

    /// The port ignores idle times.
    fn restart(&mut self, _now: Time, _before: u64) {}

    /// Intervals end with ACKs alone.
    fn after_interval(&mut self, _now: Time) {}

    /// `pcc_process`.
    fn on_ack(&mut self, ack: &AckSample) {
        self.monitor.account(ack);
        self.mss = (self.monitor.packet_bits / 8.0) as i64;
        if self.in_loss && ack.state != RecoveryState::Loss {
            self.in_loss = false;
            self.set_up_probe();
            self.start_interval(ack.now);
        }
        let lost = ack.total_lost.saturating_sub(self.lost);
        let delivered = ack.delivered.saturating_sub(self.delivered);
        (self.lost, self.delivered) = (ack.total_lost, ack.delivered);
        if self.in_loss {
            return;
        }
        if !self.waits {
            let interval = &mut self.intervals[self.sending];
            let sent = ack.total_sent.saturating_sub(interval.first);
            if sent >= LEAST_PACKETS && self.counted > interval.first {
                (interval.last, interval.send_end) = (ack.total_sent, ack.now);
                self.sending += 1;
                self.waits = self.sending == INTERVALS || self.phase != Phase::Probing;
                self.start_interval(ack.now);
            }
        }
        let before = core::mem::replace(&mut self.counted, self.monitor.resolved);
        let interval = &mut self.intervals[self.receiving];
        if interval.first == 0 {
            return;
        }
        if before > interval.first + IGNORED_PACKETS {
            (interval.receive_end, interval.end_rtt) = (ack.now, ack.srtt);
            if interval.lost + interval.delivered == 0 {
                (interval.receive_start, interval.start_rtt) = (ack.now, ack.srtt);
            }
            interval.lost += lost;
            interval.delivered += delivered;
        }
        if interval.last > 0 && interval.last - IGNORED_PACKETS < self.counted {
            self.receiving += 1;
            match self.phase {
                Phase::Starting => self.decide_start(ack.now),
                Phase::Moving => self.decide_move(ack.now),
                Phase::Probing if self.receiving == INTERVALS => self.decide_probe(ack.now),
                Phase::Probing => {}
            }
        }
    }

    /// `pcc_set_state`: the rate is kept, and the rates of a probe follow recovery.
    fn on_timeout(&mut self, now: Time) {
        self.in_loss = true;
        self.waits = true;
        self.start_interval(now);
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            _ if self.in_loss => "recovering",
            Phase::Starting => "starting",
            Phase::Probing => "probing",
            Phase::Moving => "moving",
        }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("rate_bps", 8.0 * self.rate as f64);
        observer.record_value("pacing_bps", self.monitor.pacing_bps);
        observer.record_value("utility", self.intervals[0].utility as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::VIVACE;
    use crate::test_support::pcc::{NOW, established};
    use crate::test_support::{ack, controller_inputs};
    use jostle_registry::ParameterValue;

    fn port() -> LinuxPort {
        let form = [("form", ParameterValue::Text("linux".to_owned()))];
        let mut port = LinuxPort::new(controller_inputs(&VIVACE, 1, &form));
        port.monitor.establish(&established(10));
        port.mss = 1448;
        port.begin(NOW, 1.0);
        port
    }

    /// An interval at 1 MB/s of 100 packets that were sent and received in 144.8 ms.
    fn interval(lost: u64, rtts_us: [u64; 2]) -> Interval {
        Interval {
            rate: 1_000_000,
            send_start: NOW,
            send_end: NOW + Span::from_us(144_800),
            receive_start: NOW,
            receive_end: NOW + Span::from_us(144_800),
            start_rtt: Span::from_us(rtts_us[0]),
            end_rtt: Span::from_us(rtts_us[1]),
            delivered: 100 - lost,
            lost,
            ..Interval::default()
        }
    }

    /// 524,288 bytes per second, 5 % more or less (4.2 Mbit/s).
    #[test]
    fn it_starts_at_half_a_mebibyte_per_second() {
        let mut port = port();
        port.monitor.establish(&established(10));
        assert!([550_502, 498_073].contains(&port.intervals[0].rate), "{:?}", port.intervals[0]);
        assert_eq!(port.monitor.pacing_bps, 8.0 * port.intervals[0].rate as f64);
    }

    /// 1 − 0.9 · 41 ‰ and 1 − 11 · 50 ‰ of the rate. A rise of 3 ms is two packets, 2.896 ms, and
    /// 20 ‰ of the time, below the filter of 30 ‰.
    #[test]
    fn the_utility_is_linear_in_the_rate() {
        for (lost, rtts_us, starting, utility) in [
            (0, [40_000, 40_000], false, 1_000_000),
            (0, [40_000, 46_000], false, 1_000_000 - 36_900_000),
            (0, [46_000, 40_000], false, 1_000_000 + 36_900_000),
            (0, [46_000, 40_000], true, 1_000_000),
            (0, [40_000, 43_000], false, 1_000_000),
            (5, [40_000, 40_000], false, 450_000),
            (5, [40_000, 40_000], true, 1_000_000),
            (10, [40_000, 40_000], true, -100_000),
            (100, [40_000, 40_000], false, 0),
        ] {
            let mut port = port();
            port.phase = if starting { Phase::Starting } else { Phase::Moving };
            port.intervals[0] = interval(lost, rtts_us);
            port.set_utility(0);
            assert_eq!(port.intervals[0].utility, utility, "{lost} lost, {rtts_us:?}");
        }
    }

    #[test]
    fn starting_adds_half_of_the_rate_until_the_utility_falls() {
        let mut port = port();
        let mut rates = Vec::new();
        for lost in [0, 0, 60] {
            port.intervals[0] = Interval {
                utility: port.intervals[0].utility,
                ..Interval { rate: port.rate, ..interval(lost, [40_000, 40_000]) }
            };
            port.decide_start(NOW);
            rates.push(port.rate);
        }
        assert_eq!(rates, [786_432, 1_179_648, 786_432]);
        assert_eq!(port.phase, Phase::Probing);
    }

    /// A gradient of 1 (10⁶ in the port's unit) moves 25 kB/s times the amplifier, which begins at
    /// 2 and is 3 when the first step is taken.
    #[test]
    fn steps_are_amplified_and_bounded() {
        let mut port = port();
        (port.rate, port.last_rate) = (10_000_000, 9_000_000);
        assert_eq!(port.step(1_000_000), 220_000, "at least 2.2 % of the rate");
        assert_eq!(port.step(10_000_000), 1_000_000, "4 × 250 kB/s");
        let bounded: Vec<_> = (0..3).map(|_| port.step(100_000_000)).collect();
        assert_eq!(bounded, [1_000_000, 1_700_000, 2_400_000]);
        assert_eq!(port.step(-100_000_000), -1_000_000);
        assert_eq!((port.amplifier, port.swing_buffer), (2, 1));
    }

    /// Both pairs prefer the higher rate. The first step of a move is at least 2.2 %, upwards; a
    /// step downwards ends the move.
    #[test]
    fn a_move_ends_with_the_first_step_downwards() {
        let mut port = port();
        port.phase = Phase::Probing;
        port.rate = 1_000_000;
        let at = |rate| Interval { rate, ..interval(0, [40_000, 40_000]) };
        port.intervals = [at(1_050_000), at(950_000), at(950_000), at(1_050_000)];
        port.decide_probe(NOW);
        assert_eq!((port.phase, port.rate, port.last_rate), (Phase::Moving, 1_050_000, 1_050_000));
        assert_eq!(port.monitor.pacing_bps, 8e6, "the port sends the old rate once more");
        port.intervals[0] = Interval { utility: 1_050_000, ..at(1_050_000) };
        port.decide_move(NOW);
        assert_eq!((port.phase, port.rate), (Phase::Moving, 1_050_000 + 23_100));
        let worse = Interval { rate: port.rate, ..interval(20, [40_000, 40_000]) };
        port.intervals[0] = Interval { utility: 1_050_000, ..worse };
        port.decide_move(NOW);
        assert_eq!(port.phase, Phase::Probing);
        assert!(port.rate < 1_073_100, "{}", port.rate);
    }

    /// An interval has 50 packets and ends when the packets before it are known; its first ten are
    /// not counted, and its last ten not awaited.
    #[test]
    fn intervals_follow_the_counters() {
        let mut port = port();
        let mut heard = |total_sent: u64, resolved: u64| {
            let now = NOW + Span::from_ms(total_sent);
            let in_flight = (total_sent - resolved) as u32;
            port.on_ack(&AckSample { now, total_sent, in_flight, delivered: resolved, ..ack(0) });
            (port.waits, port.intervals[0].delivered, port.rate)
        };
        assert_eq!(heard(40, 10), (false, 0, INITIAL_RATE));
        assert_eq!(heard(60, 12), (true, 0, INITIAL_RATE));
        assert_eq!(heard(60, 20), (true, 8, INITIAL_RATE));
        assert_eq!(heard(60, 50), (true, 38, INITIAL_RATE));
        let (waits, _, rate) = heard(60, 51);
        assert_eq!((waits, rate), (false, INITIAL_RATE * 3 / 2));
    }

    #[test]
    fn a_timeout_keeps_the_rate_until_recovery_ends() {
        let mut port = port();
        port.on_timeout(NOW);
        assert_eq!(
            (port.phase(), port.monitor.pacing_bps),
            ("recovering", 8.0 * INITIAL_RATE as f64)
        );
        port.on_ack(&AckSample { state: RecoveryState::Loss, ..ack(0) });
        assert_eq!(port.phase(), "recovering");
        port.on_ack(&ack(0));
        assert_eq!(port.phase(), "starting");
    }
}
