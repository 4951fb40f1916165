//! BBR's modes: STARTUP, DRAIN, the gain cycle of PROBE_BW, PROBE_RTT.

use jostle_units::Time;

use super::Bbr;
use super::model::{self, GAIN_UNIT};
use jostle_congestion::AckSample;

/// Mode of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Doubles the rate per round until the pipe is full.
    Startup,
    /// Drains the queue that STARTUP built.
    Drain,
    /// Cycles the pacing gain around the estimated bandwidth.
    ProbeBw,
    /// Keeps the window at its minimum to measure the base RTT.
    ProbeRtt,
}

impl Mode {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::ProbeBw => "probe_bw",
            Self::ProbeRtt => "probe_rtt",
        }
    }
}

/// Phases of the gain cycle: 0 probes, 1 yields, the others cruise.
const PHASES: u32 = 8;

impl Bbr {
    /// Ends a phase of the gain cycle (`tcp_bbr.c::bbr_update_cycle_phase`).
    pub(super) fn update_phase(&mut self, ack: &AckSample) {
        if self.mode == Mode::ProbeBw && self.phase_is_over(ack) {
            self.next_phase();
        }
    }

    fn phase_is_over(&self, ack: &AckSample) -> bool {
        let lasted_us = self.delivered_at.since(self.phase_start).as_us();
        let full_length = self.min_rtt_us.is_some_and(|rtt_us| lasted_us > rtt_us);
        if self.pacing_gain == GAIN_UNIT {
            return full_length;
        }
        let in_network = self.packets_in_network_at_departure(ack, ack.prior_in_flight);
        if self.pacing_gain > GAIN_UNIT {
            // The probe aims at gain × BDP in flight. Losses show that this does not fit.
            full_length
                && (ack.lost > 0
                    || in_network >= self.inflight(self.max_bandwidth(), self.pacing_gain))
        } else {
            full_length || in_network <= self.inflight(self.max_bandwidth(), GAIN_UNIT)
        }
    }

    fn next_phase(&mut self) {
        self.phase = (self.phase + 1) % PHASES;
        self.phase_start = self.delivered_at;
    }

    /// Enters PROBE_BW in a random phase except the draining one, so that flows that enter together
    /// are not synchronised.
    /// `tcp_bbr.c::bbr_reset_probe_bw_mode`.
    pub(super) fn enter_probe_bw(&mut self) {
        self.mode = Mode::ProbeBw;
        self.phase = PHASES - 1 - self.random.below(u64::from(PHASES) - 1) as u32;
        self.next_phase();
    }

    /// Changes from STARTUP to DRAIN, and to PROBE_BW when the queue is empty
    /// (`tcp_bbr.c::bbr_check_drain`).
    pub(super) fn check_drain(&mut self, ack: &AckSample) {
        if self.mode == Mode::Startup && self.full_pipe.reached {
            self.mode = Mode::Drain;
            self.ssthresh = Some(self.inflight(self.max_bandwidth(), GAIN_UNIT));
        }
        if self.mode == Mode::Drain
            && self.packets_in_network_at_departure(ack, ack.in_flight)
                <= self.inflight(self.max_bandwidth(), GAIN_UNIT)
        {
            self.enter_probe_bw();
        }
    }

    /// Updates the minimum RTT, and starts PROBE_RTT when it expires
    /// (`tcp_bbr.c::bbr_update_min_rtt`).
    pub(super) fn update_min_rtt(&mut self, ack: &AckSample) {
        let expired = ack.now > self.min_rtt_at + self.parameters.min_rtt_window;
        if let Some(rtt) = ack.rtt {
            let rtt_us = rtt.as_us();
            let confirms = self.is_of_4_15() && self.min_rtt_us == Some(rtt_us);
            let lower = self.min_rtt_us.is_none_or(|min_us| rtt_us < min_us);
            if lower || confirms || (expired && !ack.ack_delayed) {
                self.min_rtt_us = Some(rtt_us);
                self.min_rtt_at = ack.now;
            }
        }
        if expired
            && !self.idle_restart
            && self.mode != Mode::ProbeRtt
            && !self.parameters.probe_rtt_duration.is_zero()
        {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt.enter();
        }
        if self.mode == Mode::ProbeRtt {
            self.stay_in_probe_rtt(ack);
        }
        if ack.acked > 0 {
            self.idle_restart = false;
        }
    }

    fn stay_in_probe_rtt(&mut self, ack: &AckSample) {
        self.limits_flight_on_purpose = true;
        let p = &self.parameters;
        let (small, duration) = (p.min_window, p.probe_rtt_duration);
        if self.probe_rtt.on_ack(ack, small, duration, &mut self.rounds) {
            self.check_probe_rtt_over(ack.now);
        }
    }

    /// Leaves PROBE_RTT after its time (`tcp_bbr.c::bbr_check_probe_rtt_done`).
    pub(super) fn check_probe_rtt_over(&mut self, now: Time) {
        if !self.probe_rtt.is_over(now) {
            return;
        }
        self.min_rtt_at = now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full_pipe.reached {
            self.enter_probe_bw();
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// Gains of the mode (`tcp_bbr.c::bbr_update_gains`).
    pub(super) fn update_gains(&mut self) {
        let p = &self.parameters;
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (p.startup_gain, p.startup_gain),
            Mode::Drain => (p.drain_gain, p.startup_gain),
            Mode::ProbeBw if self.long_term.bandwidth().is_some() => (GAIN_UNIT, p.cwnd_gain),
            Mode::ProbeBw => match self.phase {
                0 => (p.probe_gain, p.cwnd_gain),
                1 => (p.yield_gain, p.cwnd_gain),
                _ => (GAIN_UNIT, p.cwnd_gain),
            },
            Mode::ProbeRtt => (GAIN_UNIT, GAIN_UNIT),
        };
    }

    /// Estimates the packets in the network at the departure of the next packet
    /// (`tcp_bbr.c::bbr_packets_in_net_at_edt`). Many of the packets in flight may still wait in
    /// the sender.
    pub(super) fn packets_in_network_at_departure(&self, ack: &AckSample, in_flight: u32) -> u32 {
        if self.is_of_4_15() {
            return in_flight;
        }
        let wait_us = ack.next_departure.since(ack.now).as_us();
        let delivered = model::packets_in(self.bandwidth(), wait_us);
        let burst = if self.pacing_gain > GAIN_UNIT { self.burst_goal() } else { 0 };
        u64::from(in_flight.saturating_add(burst)).saturating_sub(delivered) as u32
    }
}
