//! Control parameters of BBR v3: pacing rate, send quantum and cwnd (draft-ietf-ccwg-bbr, "Updating
//! Control Parameters").

use jostle_units::Span;

use super::Bbr3;
use super::bounds::UNBOUNDED;
use super::state::State;
use crate::algorithms::bbr::model::{self, GAIN_UNIT, NOMINAL_RTT_US, Pacing, is_recovery};
use jostle_congestion::AckSample;

/// "C.send_quantum = min(C.send_quantum, 64 KBytes)"
const MAX_QUANTUM_BYTES: u64 = 65_536;

/// Inputs of the cached values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ControlInputs {
    bandwidth: u64,
    min_rtt_us: Option<u64>,
    state: State,
    full_pipe: bool,
}

/// Cached values that depend only on the inputs. Most ACKs do not change them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ControlParameters {
    /// `None` forces an update.
    basis: Option<ControlInputs>,
    /// `bdp`.
    bdp: u32,
    /// `BDPMultiple(cwnd_gain)`.
    inflight: u32,
    /// Minimum of `QuantizationBudget`.
    least: u32,
}

impl Bbr3 {
    /// `BDPMultiple`.
    fn bdp_multiple(&self, bandwidth: u64, gain: u64) -> u32 {
        self.min_rtt.us.map_or(self.initial_window, |us| model::bdp(bandwidth, us, gain))
    }

    pub(super) fn max_bdp(&self) -> u32 {
        self.bdp_multiple(self.max_bandwidth.get(), GAIN_UNIT)
    }

    /// `TargetInflight`: "Our estimated BDP, unless congestion cut C.cwnd." The release adds space
    /// for bursts.
    pub(super) fn target_inflight<const RELEASE: bool>(&self) -> u32 {
        let bdp = if RELEASE { self.inflight(self.bandwidth, GAIN_UNIT) } else { self.plan.bdp };
        bdp.min(self.cwnd)
    }

    /// `Inflight`.
    pub(super) fn inflight(&self, bandwidth: u64, gain: u64) -> u32 {
        self.with_quantum(self.bdp_multiple(bandwidth, gain), self.least_inflight())
    }

    /// `QuantizationBudget`. `least` is the result of [`least_inflight`](Self::least_inflight).
    fn with_quantum(&self, packets: u32, least: u32) -> u32 {
        let probe = if self.state == State::Up { 2 } else { 0 };
        packets.max(least).saturating_add(probe)
    }

    /// Returns the larger of "BBR.offload_budget = 3 * C.send_quantum" and the minimum cwnd.
    fn least_inflight(&self) -> u32 {
        let budget = if self.is_release() {
            3 * self.burst_goal()
        } else {
            (3 * self.quantum_bytes()).div_ceil(self.pacing.mss_bytes) as u32
        };
        budget.max(self.parameters.min_pipe_cwnd)
    }

    /// `SetSendQuantum`.
    fn quantum_bytes(&self) -> u64 {
        let least = 2 * self.pacing.mss_bytes;
        (self.pacing_bytes_per_s / 1000).min(MAX_QUANTUM_BYTES).max(least)
    }

    /// `InitPacingRate`: "BBR.StartupPacingGain * nominal_bandwidth". The draft does not subtract a
    /// margin.
    pub(super) fn start_pacing(&mut self, rtt: Option<Span>) {
        self.has_seen_rtt |= rtt.is_some();
        let rtt_us = rtt.map_or(NOMINAL_RTT_US, |rtt| rtt.as_us().max(1));
        if let Some(bandwidth) = model::bandwidth_of(u64::from(self.initial_window), rtt_us) {
            let gain = self.parameters.startup_pacing_gain;
            let margin_percent = if self.is_release() { self.pacing.margin_percent } else { 0 };
            let pacing = Pacing { margin_percent, ..self.pacing };
            self.pacing_bytes_per_s = pacing.bytes_per_s(bandwidth, gain);
            self.plan.basis = None;
        }
    }

    /// `SetPacingRateWithGain`: until the pipe is full, the rate only rises.
    fn set_pacing(&mut self, gain: u64) {
        let rate = self.pacing.bytes_per_s(self.bandwidth, gain);
        if self.full_pipe || rate > self.pacing_bytes_per_s {
            self.pacing_bytes_per_s = rate;
        }
    }

    /// Restart after idle: "BBR sets C.pacing_rate to exactly BBR.bw".
    pub(super) fn pace_restart(&mut self) {
        self.set_pacing(GAIN_UNIT);
        self.forget_plan();
    }

    /// Forces an update of the cached values at the next ACK.
    pub(super) fn forget_plan(&mut self) {
        self.plan.basis = None;
    }

    /// `SetPacingRate`, and the part of `UpdateMaxInflight` that does not depend on the ACK.
    #[inline(always)] // Both flavours call it at every ACK, and most only compare.
    pub(super) fn update_plan(&mut self) {
        let basis = Some(ControlInputs {
            bandwidth: self.bandwidth,
            min_rtt_us: self.min_rtt.us,
            state: self.state,
            full_pipe: self.full_pipe,
        });
        if self.plan.basis == basis {
            return;
        }
        self.set_pacing(self.pacing_gain());
        self.plan = ControlParameters {
            basis,
            bdp: self.bdp_multiple(self.bandwidth, GAIN_UNIT),
            inflight: self.bdp_multiple(self.bandwidth, self.cwnd_gain()),
            least: self.least_inflight(),
        };
    }

    /// `SetCwnd`.
    pub(super) fn set_window<const RELEASE: bool>(&mut self, ack: &AckSample) {
        if ack.acked > 0 {
            let max = self.max_inflight::<RELEASE>();
            let grown = self.cwnd.saturating_add(ack.acked);
            let settled = if self.full_pipe {
                self.cwnd = grown.min(max);
                grown >= max
            } else if self.cwnd < max || self.is_start_of_startup::<RELEASE>(ack) {
                self.cwnd = grown;
                false
            } else {
                true
            };
            if RELEASE {
                self.release.is_settled = settled;
            }
            self.cwnd = self.cwnd.max(self.parameters.min_pipe_cwnd);
        }
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_window();
    }

    /// `UpdateMaxInflight`. The release adds at most 100 ms of the bandwidth for aggregated ACKs.
    fn max_inflight<const RELEASE: bool>(&self) -> u32 {
        let extra = if RELEASE {
            self.aggregation.allowance(self.bandwidth)
        } else {
            self.aggregation.max_extra()
        };
        self.with_quantum(self.plan.inflight.saturating_add(extra), self.plan.least)
    }

    /// Returns whether too little was delivered for the model to limit cwnd: an initial window in
    /// the draft. In the release cwnd may grow to two initial windows.
    fn is_start_of_startup<const RELEASE: bool>(&self, ack: &AckSample) -> bool {
        if RELEASE {
            self.cwnd < 2 * self.initial_window
        } else {
            ack.delivered < u64::from(self.initial_window)
        }
    }

    /// `BoundBWForModel`.
    pub(super) fn bound_bandwidth(&mut self) {
        self.bandwidth = self.max_bandwidth.get().min(self.bounds.bandwidth_short);
    }

    /// `ProbeRTTCwnd`.
    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        let gain = self.parameters.probe_rtt_cwnd_gain;
        self.bdp_multiple(self.bandwidth, gain).max(self.parameters.min_pipe_cwnd)
    }

    /// `BoundCwndForModel`.
    fn bound_window(&mut self) {
        let cap = match self.state {
            State::Startup | State::Drain => UNBOUNDED,
            State::Down | State::Refill | State::Up => self.bounds.inflight_long,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
        };
        let cap = cap.min(self.bounds.inflight_short).max(self.parameters.min_pipe_cwnd);
        self.cwnd = self.cwnd.min(cap);
    }

    /// `SaveCwnd`.
    pub(super) fn save_cwnd(&mut self) {
        let cut_already = is_recovery(self.recovery) || self.state == State::ProbeRtt;
        self.prior_cwnd = if cut_already { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// `RestoreCwnd`.
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}
