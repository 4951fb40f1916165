//! Updates of BBR v3's minimum RTT (draft-ietf-ccwg-bbr, "ProbeRTT").

use jostle_units::Time;

use super::Bbr3;
use super::probe::Feedback;
use super::state::{Cause, State};
use jostle_congestion::AckSample;

/// Minimum RTTs in microseconds and the times at which they were measured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    /// `min_rtt`, which determines the BDP.
    pub(super) us: Option<u64>,
    pub(super) at: Time,
    /// `probe_rtt_min_delay`, which ProbeRTT updates.
    pub(super) recent_us: Option<u64>,
    pub(super) recent_at: Time,
    /// `probe_rtt_expired`.
    pub(super) expired: bool,
}

impl Bbr3 {
    /// `UpdateMinRTT`: updates the minimum of ProbeRTT and the longer-lived minimum of the BDP.
    pub(super) fn update_min_rtt<const RELEASE: bool>(&mut self, ack: &AckSample) {
        let rtt = &mut self.min_rtt;
        rtt.expired = ack.now > rtt.recent_at + self.parameters.probe_rtt_interval;
        if let Some(sample) = ack.rtt {
            let us = sample.as_us();
            // The release: an ACK that may have been delayed does not replace an expired minimum.
            let replaces = rtt.expired && !(RELEASE && ack.ack_delayed);
            if replaces || rtt.recent_us.is_none_or(|recent| us < recent) {
                (rtt.recent_us, rtt.recent_at) = (Some(us), ack.now);
            }
        }
        let outdated = ack.now > rtt.at + self.parameters.min_rtt_filter_len;
        if let Some(recent) = rtt.recent_us
            // The release: an RTT equal to the minimum confirms it.
            && (outdated || rtt.us.is_none_or(|us| recent < us || RELEASE && recent == us))
        {
            (rtt.us, rtt.at) = (Some(recent), rtt.recent_at);
        }
    }

    /// `CheckProbeRTT`.
    #[inline(always)] // Both flavours call it at every ACK.
    pub(super) fn check_probe_rtt(&mut self, ack: &AckSample) {
        if self.state != State::ProbeRtt
            && self.min_rtt.expired
            && !self.idle_restart
            && !self.parameters.probe_rtt_duration.is_zero()
        {
            self.enter(State::ProbeRtt, Cause::Model);
            self.save_cwnd();
            self.probe_rtt.enter();
            self.probe.feedback = Feedback::Stopping;
            self.rounds.restart(ack.delivered);
        }
        if self.state == State::ProbeRtt {
            self.stay_in_probe_rtt(ack);
        }
        if ack.acked > 0 {
            self.idle_restart = false;
        }
    }

    /// `HandleProbeRTT`.
    fn stay_in_probe_rtt(&mut self, ack: &AckSample) {
        self.limits_flight_on_purpose = true;
        let (small, duration) = (self.probe_rtt_cwnd(), self.parameters.probe_rtt_duration);
        if self.probe_rtt.on_ack(ack, small, duration, &mut self.rounds) {
            self.check_probe_rtt_over(ack.now);
        }
    }

    /// `CheckProbeRTTDone`.
    pub(super) fn check_probe_rtt_over(&mut self, now: Time) {
        if !self.probe_rtt.is_over(now) {
            return;
        }
        self.min_rtt.recent_at = now;
        self.restore_cwnd();
        self.bounds.reset_short();
        if self.full_pipe {
            // Start a new probe cycle. There is no queue to drain.
            self.start_down(now, self.delivered);
            self.start_cruise();
        } else {
            self.enter(State::Startup, Cause::Model);
        }
    }
}
