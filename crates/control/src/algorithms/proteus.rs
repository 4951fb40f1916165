//! PCC Proteus: Vivace's experiments, with a utility that can yield to others, and a tolerance of noise.
//!
//! Meng et al., "PCC Proteus: Scavenger Transport And Beyond", SIGCOMM 2020. "Release" is that of its
//! authors (PCC-Uspace, commit 30c2cfe), whose numbers and decisions these are. Where it does not do
//! what it is meant to do (units, a division by zero), this does what is meant, and says so beside the
//! line. Intervals are told apart as in [`vivace`](super::vivace).

mod acks;
mod experiment;
mod parameters;
#[cfg(test)]
mod tests;
mod tolerance;
mod utility;

use jostle_catalogue::Entry;
use jostle_units::{Stream, Time};

use self::acks::AckFilter;
use self::experiment::{LastResult, Phase};
use self::parameters::{PARAMETERS, Parameters};
use self::tolerance::Tolerance;
use crate::controller::{AckSample, Observer};
use crate::pcc::{Experiments, Monitor, NOMINAL_RTT, Pcc, Tried};
use crate::row::{ControllerRow, Parts, Start};

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "proteus",
        summary: "PCC: Vivace with a tolerance of noise; as a scavenger it yields where RTTs deviate",
        class: "hybrid",
        based_on: &["vivace"],
        source: "Meng et al., \"PCC Proteus: Scavenger Transport And Beyond\", SIGCOMM 2020; release \
                 of its authors, PCC-Uspace",
        parameters: PARAMETERS,
    },
    start: Start::Own,
    build: |parts| Box::new(Pcc::new(Proteus::new(parts))),
};

/// Fewest packets of an interval: one alone has no duration (release, `HasInvalidUtility`).
const LEAST_PACKETS: u64 = 2;
/// Fewest RTTs of an interval that can be trusted (release, `kMinReliableRtt`).
const LEAST_RTTS: u32 = 4;
/// An interval lasts twice as long if no more than this share of its RTTs can be trusted (release,
/// `kMinReliabilityRatio`).
const TRUSTED_SHARE: f64 = 0.8;

/// The controller.
pub struct Proteus {
    parameters: Parameters,
    random: Stream,
    phase: Phase,
    /// Rate that the present phase works on, in bit/s of payload.
    rate_bps: f64,
    monitor: Monitor,
    acks: AckFilter,
    tolerance: Tolerance,
    /// Least RTT of the connection, in seconds.
    min_rtt_s: f64,
    /// Rate and utility with which the next result is compared.
    latest: Tried,
    upwards: bool,
    /// Moves in a row in one direction, that from the probe among them.
    rounds: u32,
    /// By how many steps the bound of moves was widened.
    widened: u32,
    /// Experiments are those of a scavenger.
    yields: bool,
    last: LastResult,
}

impl Proteus {
    fn new(parts: Parts) -> Self {
        let parameters = Parameters::new(&parts.values);
        Self {
            parameters,
            random: parts.random,
            phase: Phase::Starting,
            rate_bps: parameters.minimum_bps,
            monitor: Monitor::new(parameters.minimum_bps, LEAST_PACKETS),
            acks: AckFilter::default(),
            tolerance: Tolerance::default(),
            min_rtt_s: NOMINAL_RTT.as_secs_f64(),
            latest: (0.0, 0.0),
            upwards: true,
            rounds: 1,
            widened: 0,
            yields: parameters.utility.yields_above(0.0),
            last: LastResult::default(),
        }
    }

    /// Begins to measure at `rate_bps`; `before` packets were sent before the interval. It lasts as
    /// long as the least RTT, at least (release: `monitor_duration_`).
    fn measure(&mut self, now: Time, before: u64, rate_bps: f64) {
        self.monitor.measure_for(now, before, rate_bps, self.min_rtt_s);
    }

    /// Hands the RTT of the ACK before this one to its interval, now that it is known whether it can
    /// be trusted.
    fn hear(&mut self, ack: &AckSample) {
        if !ack.min_rtt.is_zero() {
            self.min_rtt_s = ack.min_rtt.as_secs_f64();
        }
        let Some(rtt) = ack.rtt else { return };
        let Some(heard) = self.acks.next(ack, rtt) else { return };
        let Some(interval) = self.monitor.interval_at(heard.sent_at) else { return };
        interval.heard += 1;
        if heard.trusted {
            let at = heard.sent_at.since(interval.start);
            interval.trend.add(at.as_secs_f64(), heard.rtt.as_secs_f64());
        }
    }
}

impl Experiments for Proteus {
    fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    fn monitor_mut(&mut self) -> &mut Monitor {
        &mut self.monitor
    }

    fn begin(&mut self, now: Time, rate_bps: f64) {
        self.rate_bps = rate_bps;
        self.min_rtt_s = self.monitor.srtt.as_secs_f64();
        self.measure(now, 0, rate_bps);
    }

    fn restart(&mut self, now: Time, before: u64) {
        match self.phase {
            Phase::Starting => {
                self.monitor.drop_measurements();
                self.measure(now, before, self.rate_bps);
            }
            Phase::Probing(_) | Phase::Moving => self.leave(now),
        }
    }

    fn after_interval(&mut self, now: Time) {
        self.go_on(now);
    }

    /// Ends the interval that is being sent if it is long enough and enough of its RTTs are known
    /// (release, `CreateNewInterval`), so that it lasts a round trip and some ACKs.
    fn close_interval(&mut self, now: Time) {
        let Some(interval) = self.monitor.due(now) else { return };
        let trusted = interval.trend.count();
        if trusted < LEAST_RTTS {
            self.monitor.wait();
        } else if !interval.extended
            && f64::from(trusted) <= TRUSTED_SHARE * f64::from(interval.heard)
        {
            self.monitor.extend();
            // Twice the length may be over as well, and nobody can be woken up in the past.
            self.close_interval(now);
        } else if self.monitor.close_interval(now) {
            self.go_on(now);
        }
    }

    /// What this ACK says of packets is counted last: an interval is complete when the RTT of its last
    /// packet is judged, and that is with the next ACK (release, `pending_acked_packets_`).
    fn on_ack(&mut self, ack: &AckSample, in_loss: bool) {
        self.hear(ack);
        if !in_loss {
            self.close_interval(ack.now);
            self.take_results(ack.now);
        }
        self.monitor.account(ack);
    }

    fn rate_in_loss(&mut self) -> f64 {
        self.rate_bps
    }

    fn resume(&mut self, now: Time) {
        self.leave(now);
    }

    fn phase(&self) -> &'static str {
        self.phase.name()
    }

    /// Release: packets leave one by one (UDT's timer). A flow that sends in bursts waits behind itself,
    /// and takes the deviation of its RTTs for others.
    fn burst_limit(&self) -> Option<u32> {
        Some(1)
    }

    fn observe(&self, observer: &mut dyn Observer) {
        observer.value("rate_bps", self.rate_bps);
        observer.value("pacing_bps", self.monitor.pacing_bps);
        observer.value("utility", self.last.utility);
        observer.value("rtt_gradient", self.last.gradient);
        observer.value("raw_rtt_gradient", self.last.raw_gradient);
        observer.value("rtt_deviation_ms", 1e3 * self.last.deviation_s);
        observer.value("raw_rtt_deviation_ms", 1e3 * self.last.raw_deviation_s);
        observer.value("loss_ratio", self.last.loss);
        observer.value("interval_sent_bps", self.last.sent_bps);
    }
}
