//! PCC Vivace: gradient ascent on a utility of rate, loss and RTT gradient.
//!
//! Dong et al., "PCC Vivace: Online-Learning Congestion Control", NSDI 2018. Where the paper
//! leaves things open this follows what its authors released:
//!
//! - Their Linux port counts packets sent against packets delivered or lost to tell intervals
//!   apart, holds the rate while it waits for an interval's ACKs, takes RTT gradients below 3 % for
//!   noise, overlooks losses below a tenth and falling RTTs while starting, and does not lower its
//!   rate after a timeout: it drops the measurements, and probes anew when recovery is over.
//! - Their QUIC release distrusts a gradient that is smaller than the residuals of its regression
//!   relative to the mean RTT (on paths with jitter the slope of one interval is mostly noise), and
//!   stops starting at once when the smoothed RTT rose by 30 % within an interval.
//! - Their user-space release starts to move from the better of the probed rates.
//!
//! Intervals are lengthened at random, a little, so that flows of equal RTT do not measure each
//! other in step (PCC's first version drew 1.7 to 2.2 RTTs).

mod experiment;
mod parameters;
mod step;
#[cfg(test)]
mod tests;
mod utility;

use jostle_catalogue::Entry;
use jostle_units::{Span, Stream, Time};

use self::experiment::{LastResult, Phase};
use self::parameters::{PARAMETERS, Parameters};
use crate::controller::{AckSample, Observer};
use crate::pcc::{Experiments, Monitor, NOMINAL_RTT, Pcc};
use crate::row::{ControllerRow, Parts, Start};

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "vivace",
        summary: "PCC: tries rates and climbs the gradient of a utility function",
        class: "hybrid",
        based_on: &[],
        source: "Dong et al., \"PCC Vivace: Online-Learning Congestion Control\", NSDI 2018; \
                 Linux port of its authors",
        parameters: PARAMETERS,
    },
    start: Start::Own,
    build: |parts| Box::new(Pcc::new(Vivace::new(parts))),
};

/// The controller.
pub struct Vivace {
    parameters: Parameters,
    random: Stream,
    phase: Phase,
    /// Rate that the present phase works on, in bit/s of payload.
    rate_bps: f64,
    monitor: Monitor,
    /// Smoothed RTT when the latest interval began.
    srtt_at_start: Span,
    last: LastResult,
}

impl Vivace {
    fn new(parts: Parts) -> Self {
        let parameters = Parameters::new(&parts.values);
        Self {
            parameters,
            random: parts.random,
            phase: Phase::Starting { best: None },
            rate_bps: parameters.minimum_bps,
            monitor: Monitor::new(parameters.minimum_bps, parameters.interval_packets),
            srtt_at_start: NOMINAL_RTT,
            last: LastResult::default(),
        }
    }

    /// Begins to measure at `rate_bps`; `before` packets were sent before the interval.
    fn measure(&mut self, now: Time, before: u64, rate_bps: f64) {
        let p = &self.parameters;
        let rtts = p.interval_rtts * (1.0 + p.interval_jitter * self.random.uniform());
        self.srtt_at_start = self.monitor.srtt;
        self.monitor.measure(now, before, rate_bps, rtts);
    }
}

impl Experiments for Vivace {
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

    fn on_ack(&mut self, ack: &AckSample, in_loss: bool) {
        if let Some(rtt) = ack.rtt
            && let Some(interval) = self.monitor.interval_at(ack.sent_at)
        {
            let at = ack.sent_at.since(interval.start);
            interval.trend.add(at.as_secs_f64(), rtt.as_secs_f64());
        }
        self.monitor.account(ack);
        if !in_loss {
            self.close_interval(ack.now);
            self.take_results(ack.now);
            self.watch_start(ack.now);
        }
    }

    fn rate_in_loss(&mut self) -> f64 {
        self.fall_back();
        self.rate_bps
    }

    fn resume(&mut self, now: Time) {
        self.probe(now);
    }

    fn phase(&self) -> &'static str {
        self.phase.name()
    }

    fn observe(&self, observer: &mut dyn Observer) {
        observer.value("rate_bps", self.rate_bps);
        observer.value("pacing_bps", self.monitor.pacing_bps);
        observer.value("utility", self.last.utility);
        observer.value("rtt_gradient", self.last.gradient);
        observer.value("raw_rtt_gradient", self.last.raw_gradient);
        observer.value("loss_ratio", self.last.loss);
        observer.value("interval_sent_bps", self.last.sent_bps);
    }
}
