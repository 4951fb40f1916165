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
use jostle_units::{Rate, Span, Stream, Time};

use self::experiment::{LastResult, Phase};
use self::parameters::{PARAMETERS, Parameters};
use crate::controller::{
    AckSample, Congestion, Controller, Established, Observer, RecoveryOwner, RecoveryState, Sent,
};
use crate::pcc::{Monitor, NOMINAL_RTT};
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
    build: |parts| Box::new(Vivace::new(parts)),
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
    /// A timeout made the counters useless until recovery ends.
    in_loss: bool,
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
            in_loss: false,
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

    /// Ends the interval that is being sent if it is long enough.
    fn close_interval(&mut self, now: Time) {
        if self.monitor.close_interval(now) {
            self.after_interval(now);
        }
    }
}

impl Controller for Vivace {
    fn on_established(&mut self, established: &Established) {
        self.rate_bps = self.monitor.establish(established);
        self.measure(established.now, 0, self.rate_bps);
    }

    fn on_packet_size(&mut self, mss_bytes: u32) {
        self.monitor.resize(mss_bytes);
    }

    fn on_send(&mut self, sent: &Sent) {
        let before = self.monitor.on_send(sent);
        if sent.after_idle && !self.in_loss {
            self.restart(sent.now, before);
        }
        self.close_interval(sent.now);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.rtt
            && let Some(interval) = self.monitor.interval_at(ack.sent_at)
        {
            let at = ack.sent_at.since(interval.start);
            interval.trend.add(at.as_secs_f64(), rtt.as_secs_f64());
        }
        self.monitor.account(ack);
        if self.in_loss {
            self.monitor.fit_window();
            return;
        }
        self.close_interval(ack.now);
        self.take_results(ack.now);
        self.watch_start(ack.now);
        self.monitor.fit_window();
    }

    fn on_congestion(&mut self, _congestion: &Congestion) {}

    fn on_state(&mut self, now: Time, state: RecoveryState) {
        let in_loss = state == RecoveryState::Loss;
        if in_loss && !self.in_loss {
            self.monitor.drop_measurements();
            self.fall_back();
            self.monitor.hold(self.rate_bps);
        } else if self.in_loss && !in_loss {
            self.probe(now);
        }
        self.in_loss = in_loss;
    }

    fn on_undo(&mut self, _now: Time) {}

    fn set_cwnd(&mut self, cwnd: u32) {
        self.monitor.set_cwnd(cwnd);
    }

    fn cwnd(&self) -> u32 {
        self.monitor.cwnd()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.monitor.pacing_rate())
    }

    fn recovery_owner(&self) -> RecoveryOwner {
        RecoveryOwner::Controller
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.monitor.next_wakeup()
    }

    fn on_wakeup(&mut self, now: Time) {
        self.close_interval(now);
    }

    fn mode(&self) -> &'static str {
        if self.in_loss { "recovering" } else { self.phase.name() }
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
