//! Differences of the release for Linux from the draft: `net/ipv4/tcp_bbr.c` of
//! [google/bbr](https://github.com/google/bbr), branch v3, `BBR_VERSION` 3. Comments give the names
//! of its functions. Differences in a single condition are in the code of the draft.

use jostle_units::Time;

use super::bounds::{ExcessiveInflight, Undo};
use super::ecn::Ecn;
use super::parameters::Flavour;
use super::state::State;
use super::{Bbr3, FULL_PIPE_GROWTH, FULL_PIPE_ROUNDS};
use crate::algorithms::bbr::model::{self, GAIN_UNIT, is_recovery};
use crate::algorithms::bbr::pacing_and_cwnd::MAX_BURST_BYTES;
use jostle_congestion::{
    AckSample, CongestionEvent, CongestionSignal, LostPacket, RateSample, RecoveryState,
};

/// `bbr_tso_rtt_shift`: "For every K = 2^tso_rtt_shift microseconds of min_rtt, halve the burst".
/// The burst on a path without delay is 64 KiB.
const BURST_RTT_SHIFT: u64 = 9;
const BURST_BYTES_AT_ZERO_RTT: u64 = 65_536;
/// `sysctl_tcp_min_tso_segs`.
const MIN_BURST_PACKETS: u32 = 2;
/// Maximum of the 4-bit field `loss_events_in_round`.
const MAX_LOSS_EVENTS: u32 = 15;
/// Maximum of the 8-bit field `rounds_since_probe`.
const MAX_ROUNDS_SINCE_PROBE: u32 = 255;

/// State that only the release has.
#[derive(Clone, Debug)]
pub(super) struct GoogleRelease {
    pub(super) ecn: Ecn,
    /// `loss_in_cycle`.
    loss_in_cycle: bool,
    /// `try_fast_path`: cwnd is at its target, so that an ACK without news can be skipped.
    pub(super) is_settled: bool,
    /// `pacing_gain` after the previous ACK.
    gain: u64,
    /// `loss_events_in_round`: ACKs of a round of Startup that reported losses.
    loss_events: u32,
    /// Whether the latest sample was application-limited.
    app_limited: bool,
    /// Signal of the current episode.
    signal: Option<CongestionSignal>,
}

impl GoogleRelease {
    pub(super) fn new(ecn: bool) -> Self {
        Self {
            ecn: Ecn::new(ecn),
            loss_in_cycle: false,
            is_settled: false,
            gain: GAIN_UNIT,
            loss_events: 0,
            app_limited: false,
            signal: None,
        }
    }

    /// The part of `bbr_reset_congestion_signals` that resets the flags of a cycle.
    pub(super) fn start_cycle(&mut self) {
        self.loss_in_cycle = false;
        (self.ecn.in_round, self.ecn.in_cycle) = (false, false);
    }
}

impl Bbr3 {
    pub(super) fn is_release(&self) -> bool {
        self.parameters.flavour == Flavour::Google
    }

    /// `bbr_main`. A separate function, so that the ACKs of the draft do not save registers for it.
    #[inline(never)]
    pub(super) fn on_ack_of_release(&mut self, ack: &AckSample) {
        let sample = ack.rate.as_ref().and_then(usable);
        self.count_round(ack, sample);
        let before = (self.state, self.min_rtt.us);
        let brief = self.is_app_limited_sample(ack);
        if !brief {
            self.update_estimates(ack, sample);
        }
        self.check_release_drain(ack);
        self.update_cycle::<true>(ack);
        self.bound_bandwidth();
        self.update_min_rtt::<true>(ack);
        self.check_probe_rtt(ack);
        let same = before == (self.state, self.min_rtt.us);
        if !(brief && same && self.release.is_settled) {
            if !self.has_seen_rtt && !ack.srtt.is_zero() {
                self.start_pacing(Some(ack.srtt));
            }
            self.update_plan();
            self.set_window::<true>(ack);
            self.release.gain = self.pacing_gain();
        }
        if let Some((bandwidth, delivered)) = sample {
            self.latest.advance(bandwidth, delivered);
        }
        self.release.loss_in_cycle |= ack.lost_since_send > 0;
        self.release.ecn.in_cycle |= self.release.ecn.marked_in(ack) > 0;
        self.release.app_limited = ack.app_limited;
    }

    /// `bbr_update_round_start`, `bbr_update_ecn_alpha`, `bbr_update_latest_delivery_signals`.
    fn count_round(&mut self, ack: &AckSample, sample: Option<(u64, u32)>) {
        self.rounds.started = false;
        self.latest.round_started = false;
        self.sample_bandwidth = sample.map_or(0, |(bandwidth, _)| bandwidth);
        if sample.is_some() {
            self.rounds.on_sample(ack);
        }
        if self.rounds.started {
            self.probe.rounds_since = (self.probe.rounds_since + 1).min(MAX_ROUNDS_SINCE_PROBE);
        }
        let marks = self.release.ecn.on_ack(ack, self.rounds.started, self.min_rtt.us);
        if marks && !self.full_pipe {
            self.end_startup();
        }
        if let Some((bandwidth, delivered)) = sample {
            self.latest.on_sample(ack, bandwidth, delivered);
        }
    }

    /// `bbr_run_fast_path`: the sample of an application-limited flow without congestion contains
    /// no news, and cwnd does not need a change.
    fn is_app_limited_sample(&self, ack: &AckSample) -> bool {
        self.release.is_settled
            && ack.app_limited
            && self.sample_bandwidth < self.max_bandwidth.get()
            && !self.latest.lossy
            && !self.release.ecn.in_round
    }

    /// `bbr_update_congestion_signals`, `bbr_update_ack_aggregation`,
    /// `bbr_check_loss_too_high_in_startup`, `bbr_check_full_bw_reached`.
    fn update_estimates(&mut self, ack: &AckSample, sample: Option<(u64, u32)>) {
        if let Some((bandwidth, _)) = sample {
            if !ack.app_limited || bandwidth >= self.max_bandwidth.get() {
                self.max_bandwidth.update(bandwidth);
            }
            self.latest.lossy |= ack.lost > 0;
            self.adapt_short_term::<true>();
            self.bound_bandwidth();
            self.update_aggregation::<true>(ack);
        }
        self.check_release_startup_loss(ack);
        if let Some((bandwidth, _)) = sample
            && !ack.app_limited
        {
            let round = self.rounds.started;
            self.plateau.on_sample(bandwidth, FULL_PIPE_GROWTH, FULL_PIPE_ROUNDS, round);
            self.full_pipe |= self.plateau.reached;
        }
    }

    /// `bbr_check_loss_too_high_in_startup`: counts ACKs that report losses. The draft counts gaps
    /// instead.
    fn check_release_startup_loss(&mut self, ack: &AckSample) {
        if self.full_pipe {
            return;
        }
        let (needed, release) = (self.parameters.startup_full_loss_cnt, &mut self.release);
        if ack.lost > 0 {
            release.loss_events = (release.loss_events + 1).min(MAX_LOSS_EVENTS);
        }
        if !self.latest.round_started {
            return;
        }
        let events = core::mem::take(&mut release.loss_events);
        if needed > 0
            && ack.state == RecoveryState::Recovery
            && events >= needed
            && self.is_ack_too_high::<true>(ack)
        {
            self.end_startup();
        }
    }

    /// `bbr_handle_queue_too_high_in_startup`.
    fn end_startup(&mut self) {
        self.full_pipe = true;
        let filled = self.inflight(self.max_bandwidth.get(), GAIN_UNIT);
        self.bounds.inflight_long = filled.max(self.latest.inflight);
    }

    /// `bbr_check_drain`: Drain does not end after three rounds as in the draft, and its losses
    /// start with cleared signals.
    fn check_release_drain(&mut self, ack: &AckSample) {
        if self.state == State::Startup && self.full_pipe {
            self.enter_drain();
            self.latest.reset();
            self.release.start_cycle();
        }
        if self.state == State::Drain
            && self.in_network(ack, ack.in_flight)
                <= self.inflight(self.max_bandwidth.get(), GAIN_UNIT)
        {
            self.start_down(ack.now, ack.delivered);
        }
    }

    /// `bbr_packets_in_net_at_edt`: estimated packets in flight at the departure of the next burst.
    pub(super) fn in_network(&self, ack: &AckSample, in_flight: u32) -> u32 {
        let wait_us = ack.next_departure.since(ack.now).as_us();
        let delivered = model::packets_in(self.bandwidth, wait_us);
        let burst = if self.release.gain > GAIN_UNIT { self.burst_goal() } else { 0 };
        let then = u64::from(in_flight) + u64::from(burst);
        then.saturating_sub(delivered) as u32
    }

    /// `bbr_tso_segs_goal`.
    pub(super) fn burst_goal(&self) -> u32 {
        let rtts = self.min_rtt.us.unwrap_or(u64::MAX) >> BURST_RTT_SHIFT;
        let short = if rtts < 32 { BURST_BYTES_AT_ZERO_RTT >> rtts } else { 0 };
        // 2¹⁰ is the pacing shift.
        let bytes = ((self.pacing_bytes_per_s >> 10) + short).min(MAX_BURST_BYTES);
        ((bytes / self.pacing.mss_bytes) as u32).max(MIN_BURST_PACKETS)
    }

    /// The first part of `bbr_check_time_to_probe_bw`: if a probe without losses is no longer
    /// marked, "reprobe\[s\] quickly (in case cross-traffic has ceased and freed up bw)". Returns
    /// the power of two of its first growth.
    pub(super) fn reprobes_after_marks(&self, ack: &AckSample) -> Option<u32> {
        let ecn = &self.release.ecn;
        let marks_alone = ecn.in_cycle && !self.release.loss_in_cycle;
        (ecn.is_eligible() && marks_alone && ack.state == RecoveryState::Open)
            .then(|| Ecn::reprobe_rounds(self.bounds.inflight_long))
    }

    /// `bbr_inflight_hi_from_lost_skb` for single packets: the loss budget is rounded up, and
    /// nothing is subtracted if earlier losses exceeded it.
    pub(super) fn release_inflight_at_loss(&self, lost: &LostPacket) -> u32 {
        let thresh = (self.parameters.loss_thresh * GAIN_UNIT as f64) as u64;
        let prior = u64::from(lost.in_flight_at_send.saturating_sub(1));
        let budget = (prior * thresh).div_ceil(GAIN_UNIT);
        let left = budget.saturating_sub(u64::from(lost.lost_since_send.saturating_sub(1)));
        (prior + left * GAIN_UNIT / (GAIN_UNIT - thresh).max(1)) as u32
    }

    /// `bbr_skb_marked_lost`.
    pub(super) fn on_release_lost(&mut self, lost: &LostPacket) {
        self.delivered = lost.delivered;
        self.latest.note_loss(lost.delivered);
        self.release.loss_in_cycle = true;
        if self.probe.samples
            && self.is_inflight_too_high(lost.lost_since_send, lost.in_flight_at_send)
        {
            self.handle_inflight_too_high(&ExcessiveInflight {
                now: lost.now,
                delivered: lost.delivered,
                app_limited: lost.app_limited,
                in_flight: self.release_inflight_at_loss(lost),
            });
        }
    }

    /// `bbr_ssthresh`: an undo restores the state at the start of recovery, which includes its
    /// first losses.
    pub(super) fn on_release_congestion(&mut self, congestion: &CongestionEvent) {
        self.save_cwnd();
        self.undo = Some(Undo { bounds: self.bounds, ended: None });
        self.release.signal = Some(congestion.signal);
    }

    /// `bbr_set_state`, and `CA_EVENT_TLP_RECOVERY` of the transport: a response to a loss without
    /// recovery means that a tail loss probe repaired the loss (RFC 8985 §7.4.2).
    pub(super) fn on_release_state(&mut self, now: Time, state: RecoveryState) {
        match state {
            RecoveryState::Loss => {
                self.plateau.restart(0);
                self.bound_before_timeout();
            }
            RecoveryState::Cwr if self.release.signal == Some(CongestionSignal::Loss) => {
                self.on_tail_loss(now);
            }
            _ => {}
        }
        if self.recovery == RecoveryState::Loss && state != RecoveryState::Loss {
            self.restore_cwnd();
            self.release.is_settled = false;
        }
        if !is_recovery(state) {
            self.release.signal = None;
        }
        self.recovery = state;
    }

    /// `bbr_run_loss_probe_recovery`. The transport does not report whether the lost data was
    /// application-limited, so the previous sample's flag is used.
    fn on_tail_loss(&mut self, now: Time) {
        self.latest.note_loss(self.delivered);
        self.release.loss_in_cycle = true;
        let in_flight = self.latest.inflight.saturating_add(1);
        if self.probe.samples && self.is_inflight_too_high(1, in_flight) {
            self.handle_inflight_too_high(&ExcessiveInflight {
                now,
                delivered: self.delivered,
                app_limited: self.release.app_limited,
                in_flight,
            });
        }
    }

    /// `bbr_undo_cwnd`: restores bounds and window, but not the state.
    pub(super) fn undo_release_loss(&mut self) {
        self.plateau.restart(0);
        self.latest.lossy = false;
        if let Some(undo) = &self.undo {
            self.bounds.raise_to(&undo.bounds);
            self.cwnd = self.prior_cwnd.max(1);
        }
        self.release.is_settled = false;
    }
}

/// Returns the bandwidth of a sample, rounded up "to allow growth at low rates", and its delivered
/// packets.
fn usable(rate: &RateSample) -> Option<(u64, u32)> {
    Some((model::bandwidth_rounded_up(rate)?, rate.delivered))
}
