//! PCC Vivace: gradient ascent on a utility of rate, loss and RTT gradient.
//!
//! Dong et al., "PCC Vivace: Online-Learning Congestion Control", NSDI 2018. Details that the paper
//! leaves open follow the authors' releases. Their Linux port as a whole is [`LinuxPort`].
//!
//! - The Linux port compares packets sent with packets delivered or lost to separate intervals,
//!   keeps the rate while it waits for an interval's ACKs, treats RTT gradients below 3 % as noise,
//!   and ignores losses below a tenth and falling RTTs while starting.
//! - The QUIC release ignores a gradient that is smaller than the residuals of its regression
//!   relative to the mean RTT (on paths with jitter the slope of one interval is mostly noise), and
//!   ends the starting phase immediately if the smoothed RTT rose by 30 % within an interval.
//! - The user-space release starts to move from the better of the probed rates, and halves the
//!   rate after a timeout.
//!
//! Intervals are extended by a small random time, so that the intervals of flows with equal RTTs
//! are not synchronised (PCC's first version used 1.7 to 2.2 RTTs).

mod experiment;
mod linux_port;
mod parameters;
mod step_size;
#[cfg(test)]
mod tests;
mod utility;

use alloc::boxed::Box;

use jostle_registry::RegistryEntry;
use jostle_units::{RandomStream, Span, Time};

use self::experiment::{LastResult, Phase};
use self::linux_port::LinuxPort;
use self::parameters::{PARAMETERS, Parameters};
use crate::pcc::{IntervalMonitor, MIN_PACKETS_PER_RTT, NOMINAL_RTT, Pcc, RateExperiment};
use crate::registry_rows::{ControllerEntry, ControllerInputs, SlowStartChoice};
use jostle_congestion::{AckSample, StateObserver};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "vivace",
        summary: "PCC: tries rates and follows the gradient of a utility of rate, loss and RTT \
            gradient",
        class: "hybrid",
        based_on: &[],
        source: "Dong et al., \"PCC Vivace: Online-Learning Congestion Control\", NSDI 2018; \
                 Linux port of its authors",
        parameters: PARAMETERS,
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| match parts.values.choice("form") {
        "linux" => Box::new(Pcc::new(LinuxPort::new(parts))),
        _ => Box::new(Pcc::new(Vivace::new(parts))),
    },
};

/// The controller.
pub struct Vivace {
    parameters: Parameters,
    random: RandomStream,
    phase: Phase,
    /// Base rate of the current phase, in bit/s of payload.
    rate_bps: f64,
    monitor: IntervalMonitor,
    /// Smoothed RTT at the start of the latest interval.
    srtt_at_start: Span,
    last: LastResult,
}

impl Vivace {
    fn new(parts: ControllerInputs) -> Self {
        let parameters = Parameters::new(&parts.values);
        Self {
            parameters,
            random: parts.random,
            phase: Phase::Starting { best: None },
            rate_bps: parameters.minimum_bps,
            monitor: IntervalMonitor::new(
                parameters.minimum_bps,
                MIN_PACKETS_PER_RTT,
                parameters.interval_packets,
            ),
            srtt_at_start: NOMINAL_RTT,
            last: LastResult::default(),
        }
    }

    /// Starts an interval at `rate_bps`. `before` packets were sent before it.
    fn measure(&mut self, now: Time, before: u64, rate_bps: f64) {
        let p = &self.parameters;
        let rtts = p.interval_rtts * (1.0 + p.interval_jitter * self.random.uniform());
        self.srtt_at_start = self.monitor.srtt;
        self.monitor.measure(now, before, rate_bps, rtts);
    }
}

impl RateExperiment for Vivace {
    fn monitor(&self) -> &IntervalMonitor {
        &self.monitor
    }

    fn monitor_mut(&mut self) -> &mut IntervalMonitor {
        &mut self.monitor
    }

    fn begin(&mut self, now: Time, rate_bps: f64) {
        self.rate_bps = rate_bps;
        self.measure(now, 0, rate_bps);
    }

    fn restart(&mut self, now: Time, before: u64) {
        match self.phase {
            Phase::Starting { .. } => {
                self.monitor.drop_measurements();
                self.measure(now, before, self.rate_bps);
            }
            Phase::Probing(_) | Phase::Moving { .. } => self.probe(now),
        }
    }

    fn after_interval(&mut self, now: Time) {
        self.go_on(now);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.transmission_rtt()
            && let Some(interval) = self.monitor.interval_at(ack.sent_at)
        {
            let at = ack.sent_at.since(interval.start);
            interval.trend.add(at.as_secs_f64(), rtt.as_secs_f64());
        }
        self.monitor.account(ack);
        self.close_interval(ack.now);
        self.take_results(ack.now);
        self.watch_start(ack.now);
    }

    /// The user-space release halves the rate and probes (`onTimeout` in `pcc.h`).
    fn on_timeout(&mut self, now: Time) {
        self.rate_bps = self.monitor.allowed(0.5 * self.rate_bps);
        self.probe(now);
    }

    fn phase(&self) -> &'static str {
        self.phase.name()
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("rate_bps", self.rate_bps);
        observer.record_value("pacing_bps", self.monitor.pacing_bps);
        observer.record_value("utility", self.last.utility);
        observer.record_value("rtt_gradient", self.last.gradient);
        observer.record_value("raw_rtt_gradient", self.last.raw_gradient);
        observer.record_value("loss_ratio", self.last.loss);
        observer.record_value("interval_sent_bps", self.last.sent_bps);
    }
}
