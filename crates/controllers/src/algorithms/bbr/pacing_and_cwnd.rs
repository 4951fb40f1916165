//! Pacing rate and cwnd of BBR.

use jostle_registry::LinuxRelease;
use jostle_units::Span;

use super::model::{self, NOMINAL_RTT_US, is_recovery};
use super::modes::Mode;
use super::{Bbr, INIT_CWND};
use jostle_congestion::{AckSample, RecoveryState};

/// Rate in bytes per second below which bursts are single packets (`bbr_min_tso_rate`, 1.2 Mbit/s).
const SINGLE_PACKET_BYTES_PER_S: u64 = 1_200_000 / 8;
/// Largest burst for which cwnd reserves space (`GSO_LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER`).
pub(crate) const MAX_BURST_BYTES: u64 = 65_536 - 1 - 320;

impl Bbr {
    fn bdp(&self, bandwidth: u64, gain: u64) -> u32 {
        self.min_rtt_us.map_or(INIT_CWND, |rtt_us| model::bdp(bandwidth, rtt_us, gain))
    }

    /// Returns the packets in flight that fill the path at `gain`.
    pub(super) fn inflight(&self, bandwidth: u64, gain: u64) -> u32 {
        self.with_quantum(self.bdp(bandwidth, gain))
    }

    /// `tcp_bbr.c::bbr_quantization_budget`: adds space for three bursts inside the hosts, rounds
    /// up to an even number because of delayed ACKs, and adds packets for the probe if the BDP is
    /// small.
    pub(super) fn with_quantum(&self, packets: u32) -> u32 {
        let even = packets.saturating_add(3 * self.burst_goal()).saturating_add(1) & !1;
        // Added in Linux 4.19. Before, a probe of a few packets was rounded to no probe.
        let probes = self.mode == Mode::ProbeBw && self.phase == 0 && !self.is_of_4_15();
        let probe = if probes { 2 } else { 0 };
        even.saturating_add(probe)
    }

    /// Returns whether cwnd compensates for ACK aggregation, which was added in Linux 5.1.
    pub(super) fn compensates_aggregation(&self) -> bool {
        self.parameters.ack_aggregation && !self.is_of_4_15()
    }

    /// Returns whether the changes of Linux 4.19 to 5.1 are disabled.
    pub(super) fn is_of_4_15(&self) -> bool {
        self.parameters.kernel == LinuxRelease::V4_15
    }

    /// Packets in a burst of one millisecond (`tcp_bbr.c::bbr_tso_segs_goal`; 2¹⁰ is the pacing
    /// shift).
    pub(super) fn burst_goal(&self) -> u32 {
        let bytes = (self.pacing_bytes_per_s >> 10).min(MAX_BURST_BYTES);
        ((bytes / self.pacing.mss_bytes) as u32).max(self.min_burst()).min(0x7f)
    }

    /// `tcp_bbr.c::bbr_min_tso_segs`.
    pub(super) fn min_burst(&self) -> u32 {
        if self.pacing_bytes_per_s < SINGLE_PACKET_BYTES_PER_S { 1 } else { 2 }
    }

    /// `tcp_bbr.c::bbr_init_pacing_rate_from_rtt`.
    pub(super) fn start_pacing(&mut self, rtt: Option<Span>) {
        let rtt_us = match rtt {
            Some(rtt) => {
                self.has_seen_rtt = true;
                rtt.as_us().max(1)
            }
            None => NOMINAL_RTT_US,
        };
        if let Some(bandwidth) = model::bandwidth_of(u64::from(self.cwnd), rtt_us) {
            self.pacing_bytes_per_s =
                self.pacing.bytes_per_s(bandwidth, self.parameters.startup_gain);
        }
    }

    /// Sets the pacing rate. Until the pipe is full it only rises, because single samples of
    /// STARTUP are noisy.
    /// `tcp_bbr.c::bbr_set_pacing_rate`.
    pub(super) fn set_pacing(&mut self, gain: u64, srtt: Span) {
        let rate = self.pacing.bytes_per_s(self.bandwidth(), gain);
        if !self.has_seen_rtt && !srtt.is_zero() {
            self.start_pacing(Some(srtt));
        }
        if self.full_pipe.reached || rate > self.pacing_bytes_per_s {
            self.pacing_bytes_per_s = rate;
        }
    }

    /// Saves cwnd before recovery or PROBE_RTT reduces it (`tcp_bbr.c::bbr_save_cwnd`).
    pub(super) fn save_cwnd(&mut self) {
        let cut_already = is_recovery(self.prior_state) || self.mode == Mode::ProbeRtt;
        self.prior_cwnd = if cut_already { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// Conserves packets in the first round of recovery and restores the window after it
    /// (`tcp_bbr.c::bbr_set_cwnd_to_recover_or_restore`). Returns the window if nothing else may
    /// change it.
    fn recover(&mut self, ack: &AckSample) -> Option<u32> {
        self.cwnd = self.cwnd.saturating_sub(ack.lost).max(1);
        let conserved = ack.in_flight.saturating_add(ack.acked);
        let was_recovery = is_recovery(self.prior_state);
        if ack.state == RecoveryState::Recovery && self.prior_state != RecoveryState::Recovery {
            self.conserves_packets = true;
            self.rounds.restart(ack.delivered);
            self.cwnd = conserved;
        } else if was_recovery && !is_recovery(ack.state) {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.conserves_packets = false;
        }
        self.prior_state = ack.state;
        self.conserves_packets.then(|| self.cwnd.max(conserved))
    }

    /// Moves cwnd towards its target by what was acknowledged (`tcp_bbr.c::bbr_set_cwnd`).
    pub(super) fn update_cwnd(&mut self, ack: &AckSample) {
        if ack.acked > 0 {
            self.cwnd = match self.recover(ack) {
                Some(cwnd) => cwnd,
                None => self.towards_target(ack).max(self.parameters.min_window),
            };
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(self.parameters.min_window);
        }
        debug_assert!(self.cwnd >= 1 && self.pacing_bytes_per_s > 0, "nothing may be sent");
    }

    /// Target window of the model.
    pub(in crate::algorithms) fn target(&self) -> u32 {
        let bandwidth = self.bandwidth();
        let mut target = self.bdp(bandwidth, self.cwnd_gain);
        if self.full_pipe.reached && self.compensates_aggregation() {
            target = target.saturating_add(self.aggregation.allowance(bandwidth));
        }
        self.with_quantum(target)
    }

    fn towards_target(&self, ack: &AckSample) -> u32 {
        let target = self.target();
        let grown = self.cwnd.saturating_add(ack.acked);
        if self.full_pipe.reached {
            grown.min(target)
        } else if self.cwnd < target || ack.delivered < u64::from(INIT_CWND) {
            grown
        } else {
            self.cwnd
        }
    }
}
