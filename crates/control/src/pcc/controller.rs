//! What PCC's controllers have in common towards a transport: all but what they try.

use jostle_units::{Rate, Time};

use super::Monitor;
use crate::controller::{
    AckSample, Congestion, Controller, Established, Observer, RecoveryOwner, RecoveryState, Sent,
};

/// What one of PCC's controllers tries, and what it makes of the results.
pub(crate) trait Experiments: Send {
    /// Who paces, and keeps the intervals.
    fn monitor(&self) -> &Monitor;

    /// The same, to change it.
    fn monitor_mut(&mut self) -> &mut Monitor;

    /// The connection begins: measures at the rate of the initial window.
    fn begin(&mut self, now: Time, rate_bps: f64);

    /// Sending begins after idle time, and what was measured across it is worth nothing; `before` packets
    /// were sent before.
    fn restart(&mut self, now: Time, before: u64);

    /// An interval was sent: what comes next.
    fn after_interval(&mut self, now: Time);

    /// Ends the interval that is being sent if it is long enough.
    fn close_interval(&mut self, now: Time) {
        if self.monitor_mut().close_interval(now) {
            self.after_interval(now);
        }
    }

    /// An ACK came. `in_loss`: a timeout made the counters useless until recovery ends.
    fn on_ack(&mut self, ack: &AckSample, in_loss: bool);

    /// A timeout: the rate that is held until recovery ends.
    fn rate_in_loss(&mut self) -> f64;

    /// Recovery from a timeout is over.
    fn resume(&mut self, now: Time);

    /// Name of the present phase.
    fn phase(&self) -> &'static str;

    /// Most packets that leave together; none as the transport likes.
    fn burst_limit(&self) -> Option<u32> {
        None
    }

    /// Shows what plots show.
    fn observe(&self, observer: &mut dyn Observer);
}

/// A [`Controller`] made of experiments.
pub(crate) struct Pcc<E> {
    experiments: E,
    /// A timeout made the counters useless until recovery ends.
    in_loss: bool,
}

impl<E> Pcc<E> {
    pub(crate) fn new(experiments: E) -> Self {
        Self { experiments, in_loss: false }
    }
}

impl<E: Experiments> Controller for Pcc<E> {
    fn on_established(&mut self, established: &Established) {
        let rate_bps = self.experiments.monitor_mut().establish(established);
        self.experiments.begin(established.now, rate_bps);
    }

    fn on_packet_size(&mut self, mss_bytes: u32) {
        self.experiments.monitor_mut().resize(mss_bytes);
    }

    fn on_send(&mut self, sent: &Sent) {
        let before = self.experiments.monitor_mut().on_send(sent);
        if sent.after_idle && !self.in_loss {
            self.experiments.restart(sent.now, before);
        }
        self.experiments.close_interval(sent.now);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.experiments.on_ack(ack, self.in_loss);
        self.experiments.monitor_mut().fit_window();
    }

    /// Losses are a part of utilities, and nothing else.
    fn on_congestion(&mut self, _congestion: &Congestion) {}

    /// Vivace's Linux port drops what was measured, does not lower its rate, and probes anew when recovery
    /// is over. Its authors' other releases hear of no timeouts.
    fn on_state(&mut self, now: Time, state: RecoveryState) {
        let in_loss = state == RecoveryState::Loss;
        if in_loss && !self.in_loss {
            self.experiments.monitor_mut().drop_measurements();
            let rate_bps = self.experiments.rate_in_loss();
            self.experiments.monitor_mut().hold(rate_bps);
        } else if self.in_loss && !in_loss {
            self.experiments.resume(now);
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

    fn burst_limit(&self) -> Option<u32> {
        self.experiments.burst_limit()
    }

    fn recovery_owner(&self) -> RecoveryOwner {
        RecoveryOwner::Controller
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.experiments.monitor().next_wakeup()
    }

    fn on_wakeup(&mut self, now: Time) {
        self.experiments.close_interval(now);
    }

    fn mode(&self) -> &'static str {
        if self.in_loss { "recovering" } else { self.experiments.phase() }
    }

    fn observe(&self, observer: &mut dyn Observer) {
        self.experiments.observe(observer);
    }
}

#[cfg(test)]
impl<E> std::ops::Deref for Pcc<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.experiments
    }
}

#[cfg(test)]
impl<E> std::ops::DerefMut for Pcc<E> {
    fn deref_mut(&mut self) -> &mut E {
        &mut self.experiments
    }
}
