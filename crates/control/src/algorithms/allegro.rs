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
use jostle_units::{Rate, Stream, Time};

use self::decide::Phase;
use self::parameters::{PARAMETERS, Parameters};
use crate::controller::{
    AckSample, Congestion, Controller, Established, Observer, RecoveryOwner, RecoveryState, Sent,
};
use crate::pcc::Monitor;
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
    build: |parts| Box::new(Allegro::new(parts)),
};

/// The controller.
pub struct Allegro {
    parameters: Parameters,
    random: Stream,
    phase: Phase,
    /// Rate that the present phase works on, in bit/s of payload.
    rate_bps: f64,
    monitor: Monitor,
    /// A timeout made the counters useless until recovery ends.
    in_loss: bool,
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
            in_loss: false,
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

    /// Ends the interval that is being sent if it is long enough.
    fn close_interval(&mut self, now: Time) {
        if self.monitor.close_interval(now) {
            self.after_interval(now);
        }
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

    /// Sending begins after idle time: what was measured across it is worth nothing.
    fn restart(&mut self, now: Time, before: u64) {
        if matches!(self.phase, Phase::Starting { .. }) {
            self.monitor.drop_measurements();
            self.measure(now, before, self.rate_bps);
        } else {
            self.decide(now, self.parameters.epsilon);
        }
    }
}

impl Controller for Allegro {
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
        self.monitor.account(ack);
        if self.in_loss {
            self.monitor.fit_window();
            return;
        }
        self.close_interval(ack.now);
        self.take_results(ack.now);
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
            self.decide(now, self.parameters.epsilon);
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
        observer.value("utility", self.last.0);
        observer.value("loss_ratio", self.last.1);
    }
}
