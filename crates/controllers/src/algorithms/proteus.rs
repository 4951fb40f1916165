//! PCC Proteus: Vivace's experiments with a utility that can yield to other flows, and with noise
//! tolerance.
//!
//! Meng et al., "PCC Proteus: Scavenger Transport And Beyond", SIGCOMM 2020. "Release" means the
//! authors' implementation (PCC-Uspace, commit 30c2cfe), whose values and decisions are used. If
//! the release deviates from its evident intention (units, a division by zero), the intention is
//! implemented and a comment describes the difference. Packets are assigned to intervals as in
//! [`vivace`](super::vivace).

mod ack_filter;
mod experiment;
mod noise_tolerance;
mod parameters;
#[cfg(test)]
mod tests;
mod utility;

use jostle_registry::RegistryEntry;
use jostle_units::{RandomStream, Time};

use self::ack_filter::AckFilter;
use self::experiment::{LastResult, Phase};
use self::noise_tolerance::NoiseTolerance;
use self::parameters::{PARAMETERS, Parameters};
use crate::pcc::{IntervalMonitor, NOMINAL_RTT, Pcc, RateExperiment, RateUtility};
use crate::registry_rows::{ControllerEntry, ControllerInputs, SlowStartChoice};
use jostle_congestion::{AckSample, StateObserver};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "proteus",
        summary: "PCC: Vivace with a tolerance of noise; as a scavenger it yields where RTTs deviate",
        class: "hybrid",
        based_on: &["vivace"],
        source: "Meng et al., \"PCC Proteus: Scavenger Transport And Beyond\", SIGCOMM 2020; release \
                 of its authors, PCC-Uspace",
        parameters: PARAMETERS,
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| Box::new(Pcc::new(Proteus::new(parts))),
};

/// Minimum number of packets in an interval: a single packet has no duration (release,
/// `HasInvalidUtility`).
const LEAST_PACKETS: u64 = 2;
/// Minimum number of reliable RTTs in an interval (release, `kMinReliableRtt`).
const LEAST_RTTS: u32 = 4;
/// An interval is extended to twice its length if the share of reliable RTTs is not above this
/// value (release, `kMinReliabilityRatio`).
const TRUSTED_SHARE: f64 = 0.8;

/// The controller.
pub struct Proteus {
    parameters: Parameters,
    random: RandomStream,
    phase: Phase,
    /// Base rate of the current phase, in bit/s of payload.
    rate_bps: f64,
    monitor: IntervalMonitor,
    acks: AckFilter,
    tolerance: NoiseTolerance,
    /// Minimum RTT of the connection, in seconds.
    min_rtt_s: f64,
    /// Rate and utility with which the next result is compared.
    latest: RateUtility,
    upwards: bool,
    /// Consecutive moves in one direction, including the move after the probe.
    rounds: u32,
    /// Number of steps by which the bound of moves was widened.
    widened: u32,
    /// Whether the flow behaves as a scavenger.
    yields: bool,
    last: LastResult,
}

impl Proteus {
    fn new(parts: ControllerInputs) -> Self {
        let parameters = Parameters::new(&parts.values);
        Self {
            parameters,
            random: parts.random,
            phase: Phase::Starting,
            rate_bps: parameters.minimum_bps,
            monitor: IntervalMonitor::new(parameters.minimum_bps, LEAST_PACKETS),
            acks: AckFilter::default(),
            tolerance: NoiseTolerance::default(),
            min_rtt_s: NOMINAL_RTT.as_secs_f64(),
            latest: (0.0, 0.0),
            upwards: true,
            rounds: 1,
            widened: 0,
            yields: parameters.utility.yields_above(0.0),
            last: LastResult::default(),
        }
    }

    /// Starts an interval at `rate_bps`. `before` packets were sent before it. Its length is at
    /// least the minimum RTT (release: `monitor_duration_`).
    fn measure(&mut self, now: Time, before: u64, rate_bps: f64) {
        self.monitor.measure_for(now, before, rate_bps, self.min_rtt_s);
    }

    /// Adds the RTT of the previous ACK to its interval, because its reliability is now known.
    fn add_previous_rtt(&mut self, ack: &AckSample) {
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

impl RateExperiment for Proteus {
    fn monitor(&self) -> &IntervalMonitor {
        &self.monitor
    }

    fn monitor_mut(&mut self) -> &mut IntervalMonitor {
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

    /// Ends the current interval if it is long enough and enough of its RTTs are known (release,
    /// `CreateNewInterval`). An interval therefore lasts a round trip and some ACKs.
    fn close_interval(&mut self, now: Time) {
        let Some(interval) = self.monitor.due(now) else { return };
        let trusted = interval.trend.count();
        if trusted < LEAST_RTTS {
            self.monitor.wait();
        } else if !interval.extended
            && f64::from(trusted) <= TRUSTED_SHARE * f64::from(interval.heard)
        {
            self.monitor.extend();
            // The extended deadline may have passed too, and a timer cannot be set in the past.
            self.close_interval(now);
        } else if self.monitor.close_interval(now) {
            self.go_on(now);
        }
    }

    /// Processes an ACK. Its packets are counted last: an interval is complete when the RTT of its
    /// last packet is evaluated, which happens at the next ACK (release, `pending_acked_packets_`).
    fn on_ack(&mut self, ack: &AckSample, in_loss: bool) {
        self.add_previous_rtt(ack);
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

    /// Release: packets are sent one by one (UDT's timer). A flow that sends bursts would queue
    /// behind itself, and would attribute the deviation of its RTTs to other flows.
    fn max_burst_packets(&self) -> Option<u32> {
        Some(1)
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("rate_bps", self.rate_bps);
        observer.record_value("pacing_bps", self.monitor.pacing_bps);
        observer.record_value("utility", self.last.utility);
        observer.record_value("rtt_gradient", self.last.gradient);
        observer.record_value("raw_rtt_gradient", self.last.raw_gradient);
        observer.record_value("rtt_deviation_ms", 1e3 * self.last.deviation_s);
        observer.record_value("raw_rtt_deviation_ms", 1e3 * self.last.raw_deviation_s);
        observer.record_value("loss_ratio", self.last.loss);
        observer.record_value("interval_sent_bps", self.last.sent_bps);
    }
}
