//! PCC Allegro: trials of rates, judged by a utility of throughput and loss.
//!
//! Dong et al., "PCC: Re-architecting Congestion Control for Consistent High Performance", NSDI
//! 2015. Intervals are told apart as in [`vivace`](super::vivace): packets sent are counted against
//! packets delivered or lost, and the rate is held while the ACKs of the last interval are awaited.

mod decide;
mod parameters;
#[cfg(test)]
mod tests;

use jostle_catalogue::Entry;
use jostle_units::{Stream, Time};

use self::decide::Phase;
use self::parameters::{PARAMETERS, Parameters};
use crate::controller::{AckSample, Observer};
use crate::pcc::{Experiments, Monitor, Pcc};
use crate::row::{ControllerRow, Parts, Start};

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "allegro",
        summary: "PCC: moves in the direction in which trials of rates agree, tolerates 5 % of loss",
        class: "hybrid",
        based_on: &[],
        source: "Dong et al., \"PCC: Re-architecting Congestion Control for Consistent High \
                 Performance\", NSDI 2015",
        parameters: PARAMETERS,
    },
    start: Start::Own,
    build: |parts| Box::new(Pcc::new(Allegro::new(parts))),
};

/// The controller.
pub struct Allegro {
    parameters: Parameters,
    random: Stream,
    phase: Phase,
    /// Rate that the present phase works on, in bit/s of payload.
    rate_bps: f64,
    monitor: Monitor,
    /// Utility and loss of the latest interval, for plots.
    last: (f64, f64),
}

impl Allegro {
    fn new(parts: Parts) -> Self {
        let parameters = Parameters::new(&parts.values);
        Self {
            parameters,
            random: parts.random,
            phase: Phase::Starting { best: None },
            rate_bps: parameters.minimum_bps,
            monitor: Monitor::new(parameters.minimum_bps, parameters.interval_packets),
            last: (0.0, 0.0),
        }
    }

    /// Begins to measure at `rate_bps`; `before` packets were sent before the interval.
    fn measure(&mut self, now: Time, before: u64, rate_bps: f64) {
        let p = &self.parameters;
        // §3.1: from 1.7 to 2.2 RTTs at random, so that flows do not measure each other in step.
        let rtts = p.interval_rtts + p.interval_jitter_rtts * self.random.uniform();
        self.monitor.measure(now, before, rate_bps, rtts);
    }

    /// Evaluates the intervals all of whose packets are delivered or lost.
    fn take_results(&mut self, now: Time) {
        while let Some(interval) = self.monitor.take_result() {
            let sent_bps = interval.sent_bps(self.monitor.packet_bits);
            let loss = interval.loss();
            let utility = self.parameters.utility(sent_bps, loss);
            self.last = (utility, loss);
            self.take(now, (interval.rate_bps, utility));
        }
    }
}

impl Experiments for Allegro {
    fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    fn monitor_mut(&mut self) -> &mut Monitor {
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

    fn on_ack(&mut self, ack: &AckSample, in_loss: bool) {
        self.monitor.account(ack);
        if !in_loss {
            self.close_interval(ack.now);
            self.take_results(ack.now);
        }
    }

    fn rate_in_loss(&mut self) -> f64 {
        self.fall_back();
        self.rate_bps
    }

    fn resume(&mut self, now: Time) {
        self.decide(now, self.parameters.epsilon);
    }

    fn phase(&self) -> &'static str {
        self.phase.name()
    }

    fn observe(&self, observer: &mut dyn Observer) {
        observer.value("rate_bps", self.rate_bps);
        observer.value("pacing_bps", self.monitor.pacing_bps);
        observer.value("utility", self.last.0);
        observer.value("loss_ratio", self.last.1);
    }
}
