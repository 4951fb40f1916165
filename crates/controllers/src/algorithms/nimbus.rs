//! Nimbus: pulses its rate to find out whether the cross traffic reacts to the pulses (is elastic).
//!
//! Goyal et al., "Elasticity Detection: A Building Block for Internet Congestion Control", SIGCOMM
//! 2022. "Release" means the authors' implementation (ccp-project/nimbus, commit 744be3b), whose
//! values are used. Its unit of time is a report of the datapath, every 5 ms. As in the release,
//! each flow sends pulses (`switching_master` is off). Flows that watch the pulses of another flow
//! are not implemented.

mod cross_traffic;
mod elasticity;
mod parameters;
mod pulse;
mod spectrum;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use jostle_registry::RegistryEntry;
use jostle_units::{Rate, Span, Time};

use self::cross_traffic::CrossTrafficEstimator;
use self::elasticity::ElasticityDetector;
use self::parameters::{PARAMETERS, Parameters};
use self::pulse::pulse;
use self::spectrum::{SAMPLE_S, SAMPLES};
use super::cubic::{self, Cubic};
use super::reno::Reno;
use crate::cwnd::CongestionWindow;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::window_based::CongestionAvoidance;
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CongestionSignal, CwndReductionBy,
    EstablishedEvent, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "nimbus",
        summary: "detects elastic cross traffic with rate pulses; Cubic mode if elastic, delay \
            mode if not",
        class: "hybrid",
        based_on: &["cubic"],
        source: "Goyal et al., \"Elasticity Detection: A Building Block for Internet Congestion \
                 Control\", SIGCOMM 2022; release of its authors, ccp-project/nimbus",
        parameters: PARAMETERS,
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| Box::new(Nimbus::new(Parameters::new(&parts.values))),
};

/// Time between two decisions (release: `wait_time`).
const REPORT: Span = Span::from_ms(5);
/// Minimum age of a flow for decisions about elasticity.
const FIRST_JUDGEMENT: Span = Span::from_ms(10_000);
/// Minimum age of a flow for changes of the mode.
const FIRST_SWITCH: Span = Span::from_ms(15_000);
/// Minimum time before delay mode is entered again.
const LEAST_STAY: Span = Span::from_ms(5_000);
/// Age, in samples, of the rate before elastic traffic started or was detected: 5 s.
const BEFORE: usize = 500;
/// Minimum rate, as a share of the link rate.
const LEAST_SHARE: f64 = 0.05;
/// Decrease of the delay threshold per report, in multiples of the minimum RTT.
const THRESHOLD_STEP: f64 = 0.005;
/// Window in multiples of rate × RTT (release, `send_pattern`): pacing limits the flow.
const WINDOW_GAIN: f64 = 2.0;
const MIN_WINDOW: f64 = 2.0;
/// Largest window and highest rate; every path has less.
const MAX_WINDOW: f64 = 1e9;
const MAX_BPS: f64 = 1e12;
/// RTT that is used if the handshake gave none.
const NOMINAL_RTT: Span = Span::from_ms(100);

/// Mode of the rate control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Competes with buffer-filling traffic.
    Competitive,
    /// Keeps the queue short.
    Delay,
}

/// Congestion avoidance algorithm in competitive mode.
#[derive(Clone, Debug)]
enum CompetitiveAlgorithm {
    Cubic(Cubic),
    Reno(Reno),
}

impl CompetitiveAlgorithm {
    fn avoid(&mut self, window: &mut CongestionWindow, acked: u32, ack: &AckSample) {
        match self {
            Self::Cubic(law) => law.increase_cwnd(window, acked, ack),
            Self::Reno(law) => law.increase_cwnd(window, acked, ack),
        }
    }

    fn ssthresh(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        match self {
            Self::Cubic(law) => law.ssthresh_after(window, congestion),
            Self::Reno(law) => law.ssthresh_after(window, congestion),
        }
    }

    fn look_ahead(&mut self, min_rtt: Span) {
        if let Self::Cubic(law) = self {
            law.look_ahead(min_rtt.as_us().max(1));
        }
    }

    fn forget_epoch(&mut self) {
        if let Self::Cubic(law) = self {
            law.forget_epoch();
        }
    }
}

/// The controller.
pub struct Nimbus {
    parameters: Parameters,
    packet_bits: f64,
    mode: Mode,
    law: CompetitiveAlgorithm,
    /// Window of the competitive algorithm.
    window: CongestionWindow,
    /// That window before the last congestion signal.
    before: Option<CongestionWindow>,
    reduced_at: Option<Time>,
    cross: CrossTrafficEstimator,
    elasticity: ElasticityDetector,
    started_at: Time,
    next_report: Time,
    next_sample: Time,
    switched_at: Time,
    rtt: Span,
    srtt: Span,
    min_rtt: Span,
    /// Target RTT, in multiples of the minimum.
    delay_threshold: f64,
    /// Rate without and with pulses, in bit/s of payload.
    rate_bps: f64,
    pacing_bps: f64,
    cwnd: u32,
}

impl Nimbus {
    fn new(parameters: Parameters) -> Self {
        let low_hz = parameters.frequency_hz;
        let law = if parameters.reno {
            CompetitiveAlgorithm::Reno(Reno)
        } else {
            CompetitiveAlgorithm::Cubic(Cubic::new(&cubic::ROW.entry.defaults()))
        };
        Self {
            packet_bits: 8.0,
            mode: Mode::Competitive,
            law,
            window: CongestionWindow::default(),
            before: None,
            reduced_at: None,
            cross: CrossTrafficEstimator::new(parameters.link_bps),
            elasticity: ElasticityDetector::new(low_hz, low_hz + 1.0),
            started_at: Time::ZERO,
            next_report: Time::ZERO,
            next_sample: Time::ZERO,
            switched_at: Time::ZERO,
            rtt: NOMINAL_RTT,
            srtt: NOMINAL_RTT,
            min_rtt: NOMINAL_RTT,
            delay_threshold: parameters.delay_threshold,
            rate_bps: 1.0,
            pacing_bps: 1.0,
            cwnd: MIN_WINDOW as u32,
            parameters,
        }
    }

    /// Returns the frequency of pulses. It is 1 Hz higher in delay mode, so that other flows can
    /// distinguish the modes (release, `frequency`).
    fn frequency_hz(&self) -> f64 {
        self.parameters.frequency_hz + if self.mode == Mode::Delay { 1.0 } else { 0.0 }
    }

    fn window_bps(&self) -> f64 {
        f64::from(self.window.cwnd) * self.packet_bits / self.rtt.as_secs_f64()
    }

    /// BasicDelay (release, `update_rate_delay`): takes the share α of the unused capacity and
    /// reduces the rate if the RTT x exceeds its target, S + α (μ − z − S) − β μ/x (x − threshold).
    fn delay_bps(&mut self) -> f64 {
        let p = &self.parameters;
        let (sent_bps, link_bps) = (self.cross.sent_bps, self.cross.link_bps());
        let left_bps = link_bps - self.cross.cross_bps() - sent_bps;
        let rtt_s = self.rtt.as_secs_f64();
        let beyond_s = rtt_s - self.delay_threshold * self.min_rtt.as_secs_f64();
        self.delay_threshold = (self.delay_threshold - THRESHOLD_STEP).max(p.delay_threshold);
        sent_bps + p.alpha * left_bps - p.beta * link_bps / rtt_s * beyond_s
    }

    /// Updates estimates and the mode from the latest ACKs.
    fn report(&mut self, ack: &AckSample) {
        self.next_report = ack.now + REPORT;
        self.cross.measure(ack, self.packet_bits);
        self.take_samples(ack.now);
        let wanted_bps = match self.mode {
            Mode::Competitive => self.window_bps(),
            Mode::Delay => self.delay_bps(),
        };
        let link_bps = self.cross.link_bps();
        self.rate_bps = self.allowed(wanted_bps);
        let periods = ack.now.since(self.started_at).as_secs_f64() * self.frequency_hz();
        let pulse = pulse(periods - libm::floor(periods));
        self.pacing_bps =
            self.allowed(self.rate_bps + self.parameters.pulse_size * link_bps * pulse);
        self.choose_mode(ack.now);
    }

    fn allowed(&self, rate_bps: f64) -> f64 {
        let least = (LEAST_SHARE * self.cross.link_bps()).max(self.packet_bits);
        rate_bps.clamp(least.min(MAX_BPS), MAX_BPS)
    }

    fn take_samples(&mut self, now: Time) {
        let step = Span::from_secs_f64(SAMPLE_S);
        // After a pause longer than the window, process only one window of samples.
        if now.since(self.next_sample).as_secs_f64() > SAMPLES as f64 * SAMPLE_S {
            self.next_sample = now - Span::from_secs_f64(SAMPLES as f64 * SAMPLE_S);
        }
        let judging = now >= self.started_at + FIRST_JUDGEMENT;
        while self.next_sample <= now {
            self.elasticity.push(self.cross.cross_bps(), self.cross.received_bps);
            self.next_sample += step;
            if judging {
                self.elasticity.judge(self.frequency_hz(), self.cross.link_bps());
            }
        }
    }

    fn choose_mode(&mut self, now: Time) {
        if now < self.started_at + FIRST_SWITCH {
            return;
        }
        let elasticity = self.elasticity.average;
        if self.mode == Mode::Delay && elasticity > self.parameters.elastic_above {
            self.compete(now);
        } else if self.mode == Mode::Competitive
            && elasticity < self.parameters.inelastic_below
            && now >= self.switched_at + LEAST_STAY
        {
            // The current queue is the first target. The release uses the mean RTT of the second
            // before the last one.
            self.delay_threshold = self
                .parameters
                .delay_threshold
                .max(self.srtt.as_secs_f64() / self.min_rtt.as_secs_f64());
            self.mode = Mode::Delay;
            self.switched_at = now;
        }
    }

    /// Enters competitive mode with the rate from before the elastic traffic, because its detection
    /// takes 5 s (release, `should_switch_flow_mode`).
    fn compete(&mut self, now: Time) {
        let packets =
            self.elasticity.received_ago(BEFORE) * self.rtt.as_secs_f64() / self.packet_bits;
        self.window.cwnd = libm::round(packets).clamp(MIN_WINDOW, MAX_WINDOW) as u32;
        self.window.ssthresh = self.window.cwnd;
        self.window.count = 0;
        // An undo must not restore the window of delay mode.
        self.before = None;
        self.law.forget_epoch();
        self.mode = Mode::Competitive;
        self.switched_at = now;
    }

    fn grow(&mut self, ack: &AckSample) {
        let left_over =
            if self.window.in_slow_start() { self.window.slow_start(ack.acked) } else { ack.acked };
        if left_over > 0 {
            self.law.avoid(&mut self.window, left_over, ack);
        }
        self.window.cwnd = self.window.cwnd.min(MAX_WINDOW as u32);
    }

    fn fit_window(&mut self) {
        let packets = WINDOW_GAIN * self.pacing_bps * self.rtt.as_secs_f64() / self.packet_bits;
        self.cwnd = packets.clamp(MIN_WINDOW, MAX_WINDOW) as u32;
    }
}

impl CongestionController for Nimbus {
    fn on_established(&mut self, established: &EstablishedEvent) {
        self.on_mss_change(established.mss_bytes);
        self.window = CongestionWindow {
            cwnd: established.initial_window.max(1),
            ..CongestionWindow::default()
        };
        self.rtt = established.rtt.unwrap_or(NOMINAL_RTT).max(Span::from_us(1));
        (self.srtt, self.min_rtt) = (self.rtt, established.rtt.unwrap_or(Span::MAX));
        let now = established.now;
        (self.started_at, self.next_report, self.next_sample) = (now, now, now);
        self.switched_at = now;
        self.rate_bps = self.window_bps();
        self.pacing_bps = self.rate_bps;
        self.fit_window();
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.packet_bits = 8.0 * f64::from(mss_bytes.max(1));
    }

    fn on_ack(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.rtt {
            self.rtt = rtt.max(Span::from_us(1));
        }
        if !ack.min_rtt.is_zero() {
            // The transport's minimum RTT expires after five minutes. The release uses the minimum
            // of the complete connection (`base_rtt`), which is necessary: the minimum would
            // otherwise include the target queue.
            self.srtt = ack.srtt;
            self.min_rtt = self.min_rtt.min(ack.min_rtt);
            self.law.look_ahead(self.min_rtt);
        }
        if ack.lost > 0 {
            // Release: each report of losses is a congestion event and nothing else. The transport
            // signals a recovery episode only once, although it may last as long as there are
            // losses.
            let AckSample { now, in_flight, next_to_send, .. } = *ack;
            self.on_congestion_event(&CongestionEvent {
                now,
                signal: CongestionSignal::Loss,
                in_flight,
                next_to_send,
            });
        } else if ack.acked > 0 {
            self.cross.on_ack(ack);
            // Release: a report without losses increases the window by all acknowledged packets,
            // also in recovery, where the window is reduced again, too. Unlike the release, a window
            // that the application or the receiver leaves unused does not grow.
            let is_used = ack.prior_in_flight.saturating_mul(2) >= self.window.cwnd;
            if self.mode == Mode::Competitive && !ack.app_limited && is_used {
                self.grow(ack);
            }
            if ack.now >= self.next_report {
                self.report(ack);
            }
        }
        self.fit_window();
    }

    /// Release: reacts at most once per round trip in any mode. A timeout is treated like any loss.
    fn on_congestion_event(&mut self, congestion: &CongestionEvent) {
        if self.reduced_at.is_some_and(|at| congestion.now < at + self.rtt) {
            return;
        }
        self.before = Some(self.window);
        self.reduced_at = Some(congestion.now);
        self.window.ssthresh = self.law.ssthresh(&self.window, congestion);
        self.window.cwnd = self.window.ssthresh.min(self.window.cwnd);
        self.window.count = 0;
        if self.mode == Mode::Competitive {
            self.rate_bps = self.allowed(self.window_bps());
            self.pacing_bps = self.rate_bps;
            self.fit_window();
        }
    }

    fn on_undo(&mut self, _now: Time) {
        if let Some(before) = self.before.take() {
            self.window.cwnd = self.window.cwnd.max(before.cwnd);
            self.window.ssthresh = self.window.ssthresh.max(before.ssthresh);
        }
    }

    /// Sets cwnd after a timeout. The value lasts until the next ACK.
    fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(1);
    }

    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps(self.pacing_bps.max(1.0) as u64))
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        CwndReductionBy::Controller
    }

    fn mode(&self) -> &'static str {
        match self.mode {
            Mode::Competitive if self.window.in_slow_start() => "slow_start",
            Mode::Competitive => "competitive",
            Mode::Delay => "delay",
        }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("rate_bps", self.rate_bps);
        observer.record_value("pacing_bps", self.pacing_bps);
        observer.record_value("link_bps", self.cross.link_bps());
        observer.record_value("cross_bps", self.cross.cross_bps());
        observer.record_value("sent_bps", self.cross.sent_bps);
        observer.record_value("received_bps", self.cross.received_bps);
        observer.record_value("elasticity", self.elasticity.average);
        observer.record_value("delay_threshold", self.delay_threshold);
    }
}
