//! PCC Allegro: trials of rates, judged by a utility of throughput and loss.
//!
//! Dong et al., "PCC: Re-architecting Congestion Control for Consistent High Performance", NSDI
//! 2015. Intervals are told apart as in [`vivace`](super::vivace): packets sent are counted against
//! packets delivered or lost, and the rate is held while the ACKs of the last interval are awaited.

mod decide;
mod parameters;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use jostle_catalogue::Entry;
use jostle_units::{Rate, Span, Stream, Time};

use self::decide::Phase;
use self::parameters::{PARAMETERS, Parameters};
use super::monitor_interval::Interval;
use crate::controller::{
    AckSample, Congestion, Controller, Established, Observer, RecoveryOwner, RecoveryState, Sent,
};
use crate::registry::{ControllerRow, Parts, Start};

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

/// Packets in flight that are always allowed: pacing is what limits.
const MIN_WINDOW: f64 = 10.0;
/// Largest window, beyond any path.
const MAX_WINDOW: f64 = 1e9;
/// RTT assumed when the handshake gave none.
const NOMINAL_RTT: Span = Span::from_ms(100);
/// Packets per round trip below which the rate never falls (§3.2: the rate of the first interval).
const MIN_PACKETS_PER_RTT: f64 = 2.0;
/// Highest rate, far above any link.
const MAX_BPS: f64 = 1e12;
/// Intervals under way at most: the four trials.
const INTERVALS: usize = 4;

/// The controller.
pub struct Allegro {
    parameters: Parameters,
    random: Stream,
    packet_bits: f64,
    phase: Phase,
    /// Rate that the present phase works on, in bit/s of payload.
    rate_bps: f64,
    /// Rate that packets are sent at.
    pacing_bps: f64,
    cwnd: u32,
    srtt: Span,
    /// Intervals whose fate is not fully known, oldest first.
    intervals: VecDeque<Interval>,
    /// Packets are being sent for the last of `intervals`.
    measuring: bool,
    /// Time at which the interval that is being sent should end.
    deadline: Time,
    /// The deadline passed with too few packets sent.
    overdue: bool,
    /// A timeout made the counters useless until recovery ends.
    in_loss: bool,
    total_sent: u64,
    /// Packets sent whose fate is known.
    resolved: u64,
    /// Utility and loss of the latest interval, for plots.
    last: (f64, f64),
}

impl Allegro {
    fn new(parts: Parts) -> Self {
        let parameters = Parameters::new(&parts.values);
        Self {
            parameters,
            random: parts.random,
            packet_bits: 8.0,
            phase: Phase::Starting { best: None },
            rate_bps: parameters.minimum_bps,
            pacing_bps: parameters.minimum_bps,
            cwnd: 1,
            srtt: NOMINAL_RTT,
            intervals: VecDeque::with_capacity(INTERVALS),
            measuring: false,
            deadline: Time::NEVER,
            overdue: false,
            in_loss: false,
            total_sent: 0,
            resolved: 0,
            last: (0.0, 0.0),
        }
    }

    /// `rate_bps` within what may be sent.
    fn allowed(&self, rate_bps: f64) -> f64 {
        let per_rtt = MIN_PACKETS_PER_RTT * self.packet_bits / self.srtt.as_secs_f64().max(1e-6);
        rate_bps.max(per_rtt.max(self.parameters.minimum_bps)).min(MAX_BPS)
    }

    /// Begins to measure at `rate_bps`; `before` packets were sent before the interval.
    fn measure(&mut self, now: Time, before: u64, rate_bps: f64) {
        let p = &self.parameters;
        // §3.1: from 1.7 to 2.2 RTTs at random, so that flows do not measure each other in step.
        let rtts = p.interval_rtts + p.interval_jitter_rtts * self.random.uniform();
        let packets_s = p.interval_packets as f64 * self.packet_bits / rate_bps;
        let length_s = (rtts * self.srtt.as_secs_f64()).max(packets_s);
        self.deadline = now + Span::from_secs_f64(length_s);
        self.overdue = false;
        self.measuring = true;
        self.intervals.push_back(Interval::new(now, before, rate_bps));
        self.pace(rate_bps);
    }

    /// Sends at `rate_bps` without measuring.
    fn hold(&mut self, rate_bps: f64) {
        self.measuring = false;
        self.pace(rate_bps);
    }

    /// Linux port: the window is twice rate × SRTT, so that it only catches what pacing cannot see.
    fn pace(&mut self, rate_bps: f64) {
        self.pacing_bps = rate_bps;
        let bdp = rate_bps * self.srtt.as_secs_f64() / self.packet_bits;
        self.cwnd = (2.0 * bdp).clamp(MIN_WINDOW, MAX_WINDOW) as u32;
    }

    /// Ends the interval that is being sent if it is long enough.
    fn close_interval(&mut self, now: Time) {
        if !self.measuring || now < self.deadline {
            return;
        }
        let Some(interval) = self.intervals.back_mut() else { return };
        if self.total_sent.saturating_sub(interval.first) < self.parameters.interval_packets {
            self.overdue = true;
            return;
        }
        interval.close(now, self.total_sent);
        self.after_interval(now);
    }

    /// Shares out what the ACK makes known over the intervals.
    fn account(&mut self, ack: &AckSample) {
        // What is not in flight any more is delivered or lost. Counting the flight, unlike adding
        // up deliveries and losses, cannot drift when a loss proves to be spurious.
        let resolved = ack.total_sent.saturating_sub(u64::from(ack.in_flight));
        if resolved > self.resolved {
            for interval in &mut self.intervals {
                interval.account(self.resolved, resolved, ack.acked, ack.lost);
            }
            self.resolved = resolved;
        }
    }

    /// Evaluates the intervals all of whose packets are delivered or lost.
    fn take_results(&mut self, now: Time) {
        while self.intervals.front().is_some_and(|i| i.end.is_some() && i.last <= self.resolved) {
            let Some(interval) = self.intervals.pop_front() else { return };
            let (sent_bps, loss) = (interval.sent_bps(self.packet_bits), interval.loss());
            let utility = self.parameters.utility(sent_bps, loss);
            self.last = (utility, loss);
            self.take(now, (interval.rate_bps, utility));
        }
    }

    /// Sending begins after idle time: what was measured across it is worth nothing.
    fn restart(&mut self, now: Time, before: u64) {
        if matches!(self.phase, Phase::Starting { .. }) {
            self.drop_measurements();
            self.measure(now, before, self.rate_bps);
        } else {
            self.decide(now, self.parameters.epsilon);
        }
    }

    fn drop_measurements(&mut self) {
        self.intervals.clear();
        self.measuring = false;
    }
}

impl Controller for Allegro {
    fn on_established(&mut self, established: &Established) {
        self.packet_bits = 8.0 * f64::from(established.mss_bytes.max(1));
        self.srtt = established.rtt.unwrap_or(NOMINAL_RTT).max(Span::from_us(1));
        let window_bits = f64::from(established.initial_window) * self.packet_bits;
        self.rate_bps = self.allowed(window_bits / self.srtt.as_secs_f64());
        self.measure(established.now, 0, self.rate_bps);
    }

    fn on_send(&mut self, sent: &Sent) {
        self.total_sent = sent.total_sent;
        if sent.after_idle && !self.in_loss {
            self.restart(sent.now, sent.total_sent.saturating_sub(u64::from(sent.packets)));
        }
        self.close_interval(sent.now);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        if !ack.srtt.is_zero() {
            self.srtt = ack.srtt;
        }
        self.total_sent = ack.total_sent;
        self.account(ack);
        if self.in_loss {
            self.pace(self.pacing_bps);
            return;
        }
        self.close_interval(ack.now);
        self.take_results(ack.now);
        self.pace(self.pacing_bps);
    }

    fn on_congestion(&mut self, _congestion: &Congestion) {}

    fn on_state(&mut self, now: Time, state: RecoveryState) {
        let in_loss = state == RecoveryState::Loss;
        if in_loss && !self.in_loss {
            self.drop_measurements();
            self.fall_back();
            self.hold(self.rate_bps);
        } else if self.in_loss && !in_loss {
            self.decide(now, self.parameters.epsilon);
        }
        self.in_loss = in_loss;
    }

    fn on_undo(&mut self, _now: Time) {}

    /// What a transport sets after a timeout lasts until the next ACK.
    fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(1);
    }

    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps(self.pacing_bps as u64))
    }

    fn recovery_owner(&self) -> RecoveryOwner {
        RecoveryOwner::Controller
    }

    fn next_wakeup(&self) -> Option<Time> {
        (self.measuring && !self.overdue).then_some(self.deadline)
    }

    fn on_wakeup(&mut self, now: Time) {
        self.close_interval(now);
    }

    fn mode(&self) -> &'static str {
        if self.in_loss { "recovering" } else { self.phase.name() }
    }

    fn observe(&self, observer: &mut dyn Observer) {
        observer.value("rate_bps", self.rate_bps);
        observer.value("pacing_bps", self.pacing_bps);
        observer.value("utility", self.last.0);
        observer.value("loss_ratio", self.last.1);
    }
}
