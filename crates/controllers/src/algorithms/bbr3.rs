//! BBR, version 3: draft-ietf-ccwg-bbr-06 of July 2026, or the release for Linux by its authors
//! (`flavour`). Comments give the names of functions and variables in the draft. The names of the
//! release begin with `bbr_`.
//!
//! Windows are in packets. Bandwidths and gains have the units of version 1, whose model of rounds,
//! rates and ACK aggregation is shared.

mod bounds;
mod control_parameters;
mod ecn;
mod google_release;
mod losses;
mod parameters;
mod probe;
mod probe_rtt;
mod state;
mod state_machine;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use jostle_registry::RegistryEntry;
use jostle_units::{RandomStream, Rate, Span, Time};

use self::bounds::{Bounds, LatestDelivery, UNBOUNDED, Undo};
use self::control_parameters::ControlParameters;
use self::google_release::GoogleRelease;
use self::parameters::{PARAMETERS, Parameters};
use self::probe::{CycleMax, Probe};
use self::probe_rtt::MinRtt;
use self::state::State;
use super::bbr::model::{
    self, AckAggregation, FullPipe, GAIN_UNIT, Pacing, ProbeRtt, Rounds, is_recovery,
};
use crate::registry_rows::{ControllerEntry, ControllerInputs, SlowStartChoice};
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CwndReductionBy, EcnFeedback,
    EstablishedEvent, LostPacket, RecoveryState, SendEvent, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "bbr3",
        summary: "BBR v3: paces at the measured bandwidth; limits inflight after probes with loss \
            or ECN marks",
        class: "hybrid",
        based_on: &["bbr"],
        source: "Cardwell, Swett, Beshay (eds.), draft-ietf-ccwg-bbr-06, July 2026; flavour google: \
                 github.com/google/bbr, branch v3, net/ipv4/tcp_bbr.c",
        parameters: PARAMETERS,
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| Box::new(Bbr3::new(parts)),
};

/// Growth of the delivery rate per round, in 256ths, below which the pipe may be full.
const FULL_PIPE_GROWTH: u64 = 320;
/// Number of rounds below this growth after which the pipe is full.
const FULL_PIPE_ROUNDS: u32 = 3;

/// The controller.
pub struct Bbr3 {
    parameters: Parameters,
    random: RandomStream,
    pacing: Pacing,
    state: State,
    cwnd: u32,
    initial_window: u32,
    /// Last window before recovery or ProbeRTT.
    prior_cwnd: u32,
    ssthresh: Option<u32>,
    pacing_bytes_per_s: u64,
    has_seen_rtt: bool,
    rounds: Rounds,
    /// Delivery rate of the current ACK; 0 without a sample.
    sample_bandwidth: u64,
    max_bandwidth: CycleMax,
    /// `bw`: the maximum, bounded by the short-term model.
    bandwidth: u64,
    plan: ControlParameters,
    aggregation: AckAggregation,
    /// The search for a plateau of the rate in the current acceleration (`full_bw_now`).
    plateau: FullPipe,
    /// `full_bw_reached`.
    full_pipe: bool,
    drain_start_round: u64,
    probe: Probe,
    bounds: Bounds,
    latest: LatestDelivery,
    undo: Option<Undo>,
    min_rtt: MinRtt,
    probe_rtt: ProbeRtt,
    /// Whether ProbeRTT limited the flight at the latest ACK.
    limits_flight_on_purpose: bool,
    /// Whether sending restarted after an idle time and nothing was delivered since.
    idle_restart: bool,
    recovery: RecoveryState,
    /// Packets delivered at the transport's last report.
    delivered: u64,
    /// State that only the release has.
    release: GoogleRelease,
}

impl Bbr3 {
    /// Creates a controller with the parameters and random numbers of `parts`.
    fn new(parts: ControllerInputs) -> Self {
        let parameters = Parameters::new(&parts.values);
        Self {
            parameters,
            random: parts.random,
            pacing: Pacing { mss_bytes: 1, margin_percent: parameters.pacing_margin_percent },
            state: State::Startup,
            cwnd: 10,
            initial_window: 10,
            prior_cwnd: 0,
            ssthresh: None,
            pacing_bytes_per_s: 0,
            has_seen_rtt: false,
            rounds: Rounds::default(),
            sample_bandwidth: 0,
            max_bandwidth: CycleMax::default(),
            bandwidth: 0,
            plan: ControlParameters::default(),
            aggregation: AckAggregation::default(),
            plateau: FullPipe::default(),
            full_pipe: false,
            drain_start_round: 0,
            probe: Probe::default(),
            bounds: Bounds::default(),
            latest: LatestDelivery::default(),
            undo: None,
            min_rtt: MinRtt::default(),
            probe_rtt: ProbeRtt::default(),
            limits_flight_on_purpose: false,
            idle_restart: false,
            recovery: RecoveryState::Open,
            delivered: 0,
            release: GoogleRelease::new(parameters.ecn_low),
        }
    }

    /// Updates the model from a delivery-rate sample: `UpdateLatestDeliverySignals`,
    /// `UpdateCongestionSignals`, `UpdateACKAggregation`, `CheckFullBWReached`.
    fn update_model(&mut self, ack: &AckSample) {
        self.rounds.started = false;
        self.latest.round_started = false;
        self.sample_bandwidth = 0;
        let Some(rate) = &ack.rate else { return };
        let Some(bandwidth) = model::bandwidth(rate) else { return };
        self.sample_bandwidth = bandwidth;
        self.latest.on_sample(ack, bandwidth, rate.delivered);
        self.rounds.on_sample(ack);
        if self.rounds.started {
            self.probe.rounds_since = self.probe.rounds_since.saturating_add(1);
        }
        if !ack.app_limited || bandwidth >= self.max_bandwidth.get() {
            self.max_bandwidth.update(bandwidth);
        }
        self.adapt_short_term::<false>();
        if ack.acked > 0 {
            self.update_aggregation::<false>(ack);
        }
        if self.rounds.started && !ack.app_limited {
            self.plateau.on_round(bandwidth, FULL_PIPE_GROWTH, FULL_PIPE_ROUNDS);
            self.full_pipe |= self.plateau.reached;
        }
    }

    #[inline(always)] // Both flavours call it at every ACK.
    fn update_aggregation<const RELEASE: bool>(&mut self, ack: &AckSample) {
        if self.rounds.started {
            // "in Startup, just remember 1 round"
            if self.full_pipe {
                self.aggregation.on_round();
            } else if RELEASE {
                self.aggregation.on_startup_round();
            } else {
                self.aggregation.forget();
            }
        }
        self.aggregation.on_ack(ack, self.bandwidth, self.cwnd);
    }
}

impl CongestionController for Bbr3 {
    fn on_established(&mut self, established: &EstablishedEvent) {
        self.pacing.mss_bytes = u64::from(established.mss_bytes.max(1));
        self.initial_window = established.initial_window;
        self.cwnd = established.initial_window;
        let us = established.rtt.map(Span::as_us);
        let at = established.now;
        self.min_rtt = MinRtt { us, at, recent_us: us, recent_at: at, expired: false };
        self.aggregation.restart(at);
        self.start_pacing(established.rtt);
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        let resize = self.pacing.resize(mss_bytes);
        self.max_bandwidth.resize(resize);
        self.bandwidth = resize.bandwidth(self.bandwidth);
        self.latest.bandwidth = resize.bandwidth(self.latest.bandwidth);
        self.plateau.resize(resize);
        self.bounds.resize(resize);
        if let Some(undo) = &mut self.undo {
            undo.bounds.resize(resize);
        }
        self.forget_plan();
    }

    /// `HandleRestartFromIdle`.
    fn on_send(&mut self, sent: &SendEvent) {
        if !sent.after_idle {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(sent.now);
        if self.state.is_probe_bw() {
            self.pace_restart();
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_over(sent.now);
        }
    }

    fn required_ecn_feedback(&self) -> EcnFeedback {
        // The marks of a route are usable only with precise feedback: `bbr_precise_ece_ack`.
        if self.release.ecn.is_usable() { EcnFeedback::DctcpEcho } else { EcnFeedback::None }
    }

    fn on_ecn_negotiated(&mut self, feedback: EcnFeedback) {
        if feedback != EcnFeedback::DctcpEcho {
            self.release.ecn.give_up();
        }
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        if self.is_release() {
            self.on_release_lost(lost);
        } else {
            self.handle_lost_packet(lost);
        }
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.limits_flight_on_purpose = false;
        self.delivered = ack.delivered;
        if self.is_release() {
            return self.on_ack_of_release(ack);
        }
        self.update_model(ack);
        self.check_startup_done(ack);
        self.check_drain_done(ack);
        self.update_cycle::<false>(ack);
        self.update_min_rtt::<false>(ack);
        self.check_probe_rtt(ack);
        if let Some(rate) = &ack.rate {
            self.latest.advance(self.sample_bandwidth, rate.delivered);
        }
        self.bound_bandwidth();
        if !self.has_seen_rtt && !ack.srtt.is_zero() {
            self.start_pacing(Some(ack.srtt));
        }
        self.update_plan();
        self.set_window::<false>(ack);
    }

    fn on_congestion_event(&mut self, congestion: &CongestionEvent) {
        if self.is_release() {
            return self.on_release_congestion(congestion);
        }
        self.save_cwnd();
        self.save_bounds();
    }

    fn on_recovery_state(&mut self, now: Time, state: RecoveryState) {
        if self.is_release() {
            return self.on_release_state(now, state);
        }
        if state == RecoveryState::Loss {
            self.bound_before_timeout();
        } else if !is_recovery(state) {
            if is_recovery(self.recovery) {
                self.restore_cwnd();
            }
            self.undo = None;
        }
        self.recovery = state;
    }

    fn on_undo(&mut self, _now: Time) {
        if self.is_release() {
            return self.undo_release_loss();
        }
        self.undo_loss();
    }

    fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(1);
    }

    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<u32> {
        self.ssthresh
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let rate = self.pacing_bytes_per_s;
        (rate > 0).then_some(Rate::from_bytes_per_s(rate))
    }

    /// "C.send_quantum = max(C.send_quantum, 2 * C.SMSS)"
    fn min_burst_packets(&self) -> Option<u32> {
        Some(2)
    }

    fn limits_flight_on_purpose(&self) -> bool {
        self.limits_flight_on_purpose
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        CwndReductionBy::Controller
    }

    fn mode(&self) -> &'static str {
        self.state.name()
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        let gain = |gain: u64| gain as f64 / GAIN_UNIT as f64;
        let bps = |bandwidth| self.pacing.bits_per_s(bandwidth);
        // A missing bound is reported as 0.
        let bound = |packets: u32| if packets == UNBOUNDED { 0.0 } else { f64::from(packets) };
        observer.record_value("bottleneck_bps", bps(self.max_bandwidth.get()));
        observer.record_value("bw_shortterm_bps", bps(self.bounds.short_bandwidth().unwrap_or(0)));
        observer.record_value("inflight_shortterm_packets", bound(self.bounds.inflight_short));
        observer.record_value("inflight_longterm_packets", bound(self.bounds.inflight_long));
        observer.record_value("min_rtt_s", self.min_rtt.us.unwrap_or(0) as f64 * 1e-6);
        observer.record_value("pacing_gain", gain(self.pacing_gain()));
        observer.record_value("cwnd_gain", gain(self.cwnd_gain()));
        observer.record_value("round_count", self.rounds.count as f64);
        observer.record_value("extra_acked_packets", f64::from(self.aggregation.max_extra()));
        observer.record_value("prior_cwnd_packets", f64::from(self.prior_cwnd));
        if self.parameters.ecn_low {
            observer.record_value("ecn_alpha", self.release.ecn.alpha());
        }
        observer.record_value("full_pipe", f64::from(u8::from(self.full_pipe)));
    }
}
