//! CUBIC as specified in RFC 9438, in floating point. Names and section numbers are the
//! RFC's.

use jostle_registry::ParameterValues;
#[cfg(not(feature = "std"))]
use jostle_units::FloatMath;
use jostle_units::{Span, Time};

use crate::cwnd::{CongestionWindow, FractionalWindow};
use crate::window_based::CongestionAvoidance;
use jostle_congestion::{
    AckSample, CongestionEvent, EstablishedEvent, RawAckSample, RecoveryState, StateObserver,
};

use super::region::Region;

/// RFC 9438 §4.2: "1.5 * cwnd", the largest target of a round trip.
const LARGEST_STEP: f64 = 1.5;

/// Congestion avoidance of RFC 9438.
#[derive(Clone, Debug)]
pub(super) struct Rfc9438 {
    fast_convergence: bool,
    friendly: bool,
    /// Initial ssthresh without HyStart; 0 for none.
    initial_ssthresh: u32,
    /// β_cubic.
    beta: f64,
    /// C, in segments per s³.
    c: f64,
    /// Fractional part of cwnd.
    fraction: FractionalWindow,
    state: State,
    /// State before the last reduction, for an undo (RFC 9438 §4.9.2).
    undo: State,
    /// First segment that is not acknowledged.
    first_unacked: u64,
    /// Time of the latest ACK, or of the first packet after a time without packets in flight.
    heard_at: Time,
    region: Region,
}

/// The variables of RFC 9438 §4.1, which an undone reduction restores.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// W_max; `None` before the first congestion event.
    w_max: Option<f64>,
    /// cwnd_prior.
    cwnd_prior: f64,
    /// The congestion avoidance stage; `None` outside of it.
    stage: Option<Stage>,
    /// Whether the next stage is the first one after a timeout (RFC 9438 §4.8).
    after_timeout: bool,
}

/// A congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
struct Stage {
    /// t_epoch, shifted by times that do not count.
    t_epoch: Time,
    /// K, in seconds. Negative for a stage that begins above W_max, for example after a mark with a
    /// small reduction (RFC 8511): equation 2 also has this root, and the curve begins at
    /// cwnd_epoch.
    k: f64,
    /// W_est.
    w_est: f64,
}

/// Converts from 1024ths, Linux's unit for values that the RFC gives in tenths, and rounds to
/// thousandths: 717 is 0.7.
fn thousandths(value_in_1024ths: u64) -> f64 {
    (value_in_1024ths as f64 * 1000.0 / 1024.0).round() / 1000.0
}

impl Rfc9438 {
    /// Creates the algorithm with the parameters of the registry entry.
    pub(super) fn new(values: &ParameterValues) -> Self {
        Self {
            fast_convergence: values.bool("fast_convergence"),
            friendly: values.bool("tcp_friendliness"),
            initial_ssthresh: if values.bool("hystart") {
                0
            } else {
                values.u32("initial_ssthresh")
            },
            beta: thousandths(u64::from(values.u32("beta"))).clamp(0.001, 0.999),
            c: thousandths(10 * u64::from(values.u32("bic_scale"))),
            fraction: FractionalWindow::default(),
            state: State::default(),
            undo: State::default(),
            first_unacked: 0,
            heard_at: Time::ZERO,
            region: Region::default(),
        }
    }

    /// RFC 9438 §4.2: "W_cubic(t) = C * (t - K)^3 + W_max".
    fn w_cubic(&self, t_s: f64, k: f64) -> f64 {
        let offset = t_s - k;
        self.c * offset * offset * offset + self.state.w_max.unwrap_or(0.0)
    }

    /// Returns the current stage, or starts one at an ACK that arrives at `now` with this cwnd.
    fn stage(&mut self, cwnd: f64, now: Time) -> Stage {
        if let Some(stage) = self.state.stage {
            return stage;
        }
        if self.state.w_max.is_none() {
            // RFC 9438 §4.10: "it may exit the first slow start without incurring any packet loss
            // and thus W_max is undefined. In this special case, CUBIC sets cwnd_prior = cwnd".
            self.state.cwnd_prior = cwnd;
        }
        // There and in RFC 9438 §4.8: "K is set to 0, and W_max is set to the congestion window
        // size at the beginning of the current congestion avoidance stage".
        let w_max = self.state.w_max.filter(|_| !self.state.after_timeout).unwrap_or(cwnd);
        self.state.w_max = Some(w_max);
        self.state.after_timeout = false;
        // RFC 9438 §4.2: "K = cubic root of ((W_max - cwnd_epoch) / C)"; RFC 9438 §4.3: "W_est is
        // set equal to cwnd_epoch at the start of the congestion avoidance stage".
        let k = libm::cbrt((w_max - cwnd) / self.c);
        Stage { t_epoch: now, k, w_est: cwnd }
    }

    /// RFC 9438 §4.3, where "cwnd SHOULD be set to W_est"; otherwise RFC 9438 §4.4 and §4.5.
    fn grow(&mut self, window: &mut CongestionWindow, acked: u32, ack: &AckSample) {
        let cwnd = self.fraction.of(window);
        let mut stage = self.stage(cwnd, ack.now);
        let t_s = ack.now.since(stage.t_epoch).as_secs_f64();
        // "Once W_est >= cwnd_prior, the sender SHOULD set alpha_cubic to 1"; before, it is
        // "3 * (1 - beta_cubic) / (1 + beta_cubic)".
        let reached = stage.w_est >= self.state.cwnd_prior;
        let alpha = if reached { 1.0 } else { 3.0 * (1.0 - self.beta) / (1.0 + self.beta) };
        // Equation 4: "W_est = W_est + alpha_cubic * segments_acked / cwnd".
        stage.w_est += alpha * f64::from(acked) / cwnd;
        self.state.stage = Some(stage);
        let w_max = self.state.w_max.unwrap_or(cwnd);
        if self.friendly && self.w_cubic(t_s, stage.k) < stage.w_est {
            self.region = Region::RenoFriendly;
            // If the look-ahead of the curve has increased cwnd further, cwnd does not fall: the
            // rate of increase is to be "non-decreasing" (RFC 9438 §4.2).
            self.fraction.add(window, (stage.w_est - cwnd).max(0.0));
            return;
        }
        self.region = if cwnd < w_max { Region::Concave } else { Region::Convex };
        // RFC 9438 §4.2: "target", between cwnd and 1.5 * cwnd; RFC 9438 §4.4: "cwnd MUST be
        // incremented by (target - cwnd) / cwnd for each received new ACK", regardless of the
        // amount of data it acknowledges.
        let ahead = self.w_cubic(t_s + ack.srtt.as_secs_f64(), stage.k);
        let target = ahead.clamp(cwnd, LARGEST_STEP * cwnd);
        self.fraction.add(window, (target - cwnd) / cwnd);
    }
}

impl CongestionAvoidance for Rfc9438 {
    fn on_established(&mut self, window: &mut CongestionWindow, established: &EstablishedEvent) {
        (self.state, self.undo) = (State::default(), State::default());
        self.heard_at = established.now;
        if self.initial_ssthresh > 0 {
            window.ssthresh = self.initial_ssthresh;
        }
    }

    /// RFC 9438 §4.2: "t MUST NOT include periods during which cwnd has not been updated due to
    /// application-limited behavior": nothing has been in flight since the last ACK.
    fn on_flight_start(&mut self, _window: &mut CongestionWindow, now: Time, _idle: Span) {
        if let Some(stage) = &mut self.state.stage {
            stage.t_epoch += now.since(self.heard_at);
        }
        self.heard_at = now;
    }

    fn on_ack_before_loss_detection(
        &mut self,
        _window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        self.first_unacked = measurement.first_unacked;
    }

    fn on_ack(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        if window.in_slow_start() {
            // Another stage will follow.
            self.state.stage = None;
        } else if !ack.cwnd_limited
            && let Some(stage) = &mut self.state.stage
        {
            stage.t_epoch += ack.now.since(self.heard_at);
        }
        self.heard_at = ack.now;
    }

    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, ack: &AckSample) {
        // "a new ACK": an ACK that acknowledges new data.
        if acked > 0 {
            self.grow(window, acked, ack);
        }
    }

    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        self.undo = self.state;
        let cwnd = self.fraction.of(window);
        // RFC 9438 §4.7: "cwnd * (1 + beta_cubic) / 2 if cwnd < W_max and fast convergence
        // enabled".
        let lower = self.fast_convergence && self.state.w_max.is_some_and(|w_max| cwnd < w_max);
        self.state = State {
            w_max: Some(if lower { cwnd * (1.0 + self.beta) / 2.0 } else { cwnd }),
            cwnd_prior: cwnd,
            stage: None,
            after_timeout: false,
        };
        self.fraction.clear();
        // RFC 9438 §4.6: "ssthresh = flight_size * beta_cubic", at least 2. RFC 5681 §3.2 (2): data
        // that limited transmit sent beyond cwnd "MUST NOT be included".
        let flight = congestion.next_to_send.saturating_sub(self.first_unacked);
        let flight_size = cwnd.min(flight as f64);
        // Rounded down to packets. The binary 0.7 is slightly too small, but 0.7 · 700 must give
        // 490.
        ((flight_size * self.beta + 1e-6) as u32).max(2)
    }

    fn on_recovery_state(
        &mut self,
        _window: &mut CongestionWindow,
        _now: Time,
        state: RecoveryState,
    ) {
        if state == RecoveryState::Loss {
            self.state.after_timeout = true;
            self.state.stage = None;
        }
    }

    /// RFC 9438 §4.9.2: restores the previous variables "if cwnd < cwnd_prior". RFC 9438 §4.9.1
    /// leaves the reaction to a spurious timeout open; the same is done.
    fn cwnd_after_undo(&mut self, window: &CongestionWindow, prior_cwnd: u32) -> u32 {
        if f64::from(window.cwnd) >= self.state.cwnd_prior {
            return window.cwnd;
        }
        self.state = self.undo;
        // A second undo without a congestion event between meets the state before the first one.
        window.cwnd.max(prior_cwnd)
    }

    fn mode(&self) -> &'static str {
        self.region.name()
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        let stage = self.state.stage;
        observer.record_value("w_max_packets", self.state.w_max.unwrap_or(0.0));
        observer.record_value("cwnd_prior_packets", self.state.cwnd_prior);
        observer.record_value("k_s", stage.map_or(0.0, |stage| stage.k));
        observer.record_value("reno_cwnd_packets", stage.map_or(0.0, |stage| stage.w_est));
    }
}

#[cfg(test)]
mod tests;
