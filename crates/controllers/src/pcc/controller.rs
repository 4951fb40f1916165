//! The interface of PCC's controllers to a transport.

use jostle_units::{Rate, Time};

use super::IntervalMonitor;
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CwndReductionBy, EstablishedEvent,
    RecoveryState, SendEvent, StateObserver,
};

/// The experiments of a PCC controller with rates.
pub(crate) trait RateExperiment: Send {
    /// Returns the monitor, which paces and stores the intervals.
    fn monitor(&self) -> &IntervalMonitor;

    /// Returns the monitor mutably.
    fn monitor_mut(&mut self) -> &mut IntervalMonitor;

    /// Starts the connection with an interval at the rate of the initial window.
    fn begin(&mut self, now: Time, rate_bps: f64);

    /// Restarts after an idle time. Measurements that include it are invalid. `before` packets were
    /// sent before the restart.
    fn restart(&mut self, now: Time, before: u64);

    /// Chooses the next interval after one was sent.
    fn after_interval(&mut self, now: Time);

    /// Ends the current interval if it is long enough.
    fn close_interval(&mut self, now: Time) {
        if self.monitor_mut().close_interval(now) {
            self.after_interval(now);
        }
    }

    /// Processes an ACK.
    fn on_ack(&mut self, ack: &AckSample);

    /// Processes a retransmission timeout.
    fn on_timeout(&mut self, now: Time);

    /// Returns the name of the current phase.
    fn phase(&self) -> &'static str;

    /// Returns the maximum burst size in packets; `None` leaves it to the transport.
    fn max_burst_packets(&self) -> Option<u32> {
        None
    }

    /// Reports the state for plots.
    fn observe(&self, observer: &mut dyn StateObserver);
}

/// A [`CongestionController`] based on rate experiments.
pub(crate) struct Pcc<E> {
    experiments: E,
    /// Whether the transport recovers from a timeout. Experiments continue meanwhile: with a rate
    /// far above the path's, recovery would only end after they have reduced it.
    in_loss: bool,
}

impl<E> Pcc<E> {
    pub(crate) fn new(experiments: E) -> Self {
        Self { experiments, in_loss: false }
    }
}

impl<E: RateExperiment> CongestionController for Pcc<E> {
    fn on_established(&mut self, established: &EstablishedEvent) {
        let rate_bps = self.experiments.monitor_mut().establish(established);
        self.experiments.begin(established.now, rate_bps);
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.experiments.monitor_mut().resize(mss_bytes);
    }

    fn on_send(&mut self, sent: &SendEvent) {
        let before = self.experiments.monitor_mut().on_send(sent);
        if sent.after_idle && !self.in_loss {
            self.experiments.restart(sent.now, before);
        }
        self.experiments.close_interval(sent.now);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.experiments.on_ack(ack);
        self.experiments.monitor_mut().fit_window();
    }

    /// Losses only affect the utilities.
    fn on_congestion_event(&mut self, _congestion: &CongestionEvent) {}

    fn on_recovery_state(&mut self, now: Time, state: RecoveryState) {
        let in_loss = state == RecoveryState::Loss;
        if in_loss && !self.in_loss {
            self.experiments.on_timeout(now);
        }
        self.in_loss = in_loss;
    }

    fn on_undo(&mut self, _now: Time) {}

    fn set_cwnd(&mut self, cwnd: u32) {
        self.experiments.monitor_mut().set_cwnd(cwnd);
    }

    fn cwnd(&self) -> u32 {
        self.experiments.monitor().cwnd()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.experiments.monitor().pacing_rate())
    }

    fn max_burst_packets(&self) -> Option<u32> {
        self.experiments.max_burst_packets()
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        CwndReductionBy::Controller
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.experiments.monitor().next_wakeup()
    }

    fn on_wakeup(&mut self, now: Time) {
        self.experiments.close_interval(now);
    }

    fn mode(&self) -> &'static str {
        self.experiments.phase()
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        self.experiments.observe(observer);
    }
}

#[cfg(test)]
impl<E> core::ops::Deref for Pcc<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.experiments
    }
}

#[cfg(test)]
impl<E> core::ops::DerefMut for Pcc<E> {
    fn deref_mut(&mut self) -> &mut E {
        &mut self.experiments
    }
}
