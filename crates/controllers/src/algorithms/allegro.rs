//! PCC Allegro: trials of rates, judged by a utility of throughput and loss.
//!
//! Dong et al., "PCC: Re-architecting Congestion Control for Consistent High Performance", NSDI
//! 2015. As in [`vivace`](super::vivace), packets sent are compared with packets delivered or lost
//! to separate the intervals, and the rate is kept while the ACKs of the last interval are
//! outstanding.

mod decision;
mod parameters;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use jostle_registry::RegistryEntry;
use jostle_units::{RandomStream, Time};

use self::decision::Phase;
use self::parameters::{PARAMETERS, Parameters};
use crate::pcc::{IntervalMonitor, MIN_PACKETS_PER_RTT, Pcc, RateExperiment};
use crate::registry_rows::{ControllerEntry, ControllerInputs, SlowStartChoice};
use jostle_congestion::{AckSample, StateObserver};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "allegro",
        summary: "PCC: tries higher and lower rates and follows the higher utility; tolerates 5 % \
            loss",
        class: "hybrid",
        based_on: &[],
        source: "Dong et al., \"PCC: Re-architecting Congestion Control for Consistent High \
                 Performance\", NSDI 2015",
        parameters: PARAMETERS,
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| Box::new(Pcc::new(Allegro::new(parts))),
};

/// The controller.
pub struct Allegro {
    parameters: Parameters,
    random: RandomStream,
    phase: Phase,
    /// Base rate of the current phase, in bit/s of payload.
    rate_bps: f64,
    monitor: IntervalMonitor,
    /// Utility and loss of the latest interval, for plots.
    last: (f64, f64),
}

impl Allegro {
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
            last: (0.0, 0.0),
        }
    }

    /// Starts an interval at `rate_bps`. `before` packets were sent before it.
    fn measure(&mut self, now: Time, before: u64, rate_bps: f64) {
        let p = &self.parameters;
        // §3.1: from 1.7 to 2.2 RTTs at random, so that the intervals of flows are not
        // synchronised.
        let rtts = p.interval_rtts + p.interval_jitter_rtts * self.random.uniform();
        self.monitor.measure(now, before, rate_bps, rtts);
    }

    /// Evaluates the intervals whose packets are all delivered or lost.
    fn take_results(&mut self, now: Time) {
        while let Some(interval) = self.monitor.take_finished_interval() {
            let sent_bps = interval.sent_bps(self.monitor.packet_bits);
            let loss = interval.loss();
            let utility = self.parameters.utility(sent_bps, loss);
            self.last = (utility, loss);
            self.take(now, (interval.rate_bps, utility));
        }
    }
}

impl RateExperiment for Allegro {
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
        if matches!(self.phase, Phase::Starting { .. }) {
            self.monitor.drop_measurements();
            self.measure(now, before, self.rate_bps);
        } else {
            self.decide(now, self.parameters.epsilon);
        }
    }

    fn after_interval(&mut self, now: Time) {
        self.go_on(now);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.monitor.account(ack);
        self.close_interval(ack.now);
        self.take_results(ack.now);
    }

    /// The authors' release halves the rate and makes new trials (`onTimeout` in `cc.h`).
    fn on_timeout(&mut self, now: Time) {
        self.rate_bps = self.monitor.allowed(0.5 * self.rate_bps);
        self.decide(now, self.parameters.epsilon);
    }

    fn phase(&self) -> &'static str {
        self.phase.name()
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("rate_bps", self.rate_bps);
        observer.record_value("pacing_bps", self.monitor.pacing_bps);
        observer.record_value("utility", self.last.0);
        observer.record_value("loss_ratio", self.last.1);
    }
}
