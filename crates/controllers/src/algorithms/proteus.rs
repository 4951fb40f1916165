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

use alloc::boxed::Box;

use jostle_registry::RegistryEntry;
use jostle_units::{RandomStream, Span, Time};

use self::ack_filter::AckFilter;
use self::experiment::{LastResult, Phase};
use self::noise_tolerance::NoiseTolerance;
use self::parameters::{PARAMETERS, Parameters};
use crate::pcc::{IntervalMonitor, MonitorInterval, NOMINAL_RTT, Pcc, RateExperiment, RateUtility};
use crate::registry_rows::{ControllerEntry, ControllerInputs, SlowStartChoice};
use jostle_congestion::{AckSample, StateObserver};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "proteus",
        summary: "PCC: Vivace with noise filters; as a scavenger it yields when RTTs deviate",
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
/// Time after the planned end of an interval at which it ends without the RTTs that it needs, at
/// least: the initial retransmission timeout (RFC 6298 §2 (2.1)). The release has no limit, but
/// learns an RTT from each ACK, because it numbers transmissions.
const LEAST_PATIENCE: Span = Span::from_secs(1);

/// The controller.
pub struct Proteus {
    parameters: Parameters,
    random: RandomStream,
    phase: Phase,
    /// Base rate of the current phase, in bit/s of payload.
    rate_bps: f64,
    monitor: IntervalMonitor,
    /// Whether an RTT has been measured; before, `rate_bps` is for the nominal RTT.
    has_rtt: bool,
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
            monitor: IntervalMonitor::new(parameters.minimum_bps, 0.0, LEAST_PACKETS),
            has_rtt: false,
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

    /// Starts the first interval when the first RTT is known: with a shorter one than the nominal
    /// RTT the rate is higher (release, `has_seen_valid_rtt_`).
    fn scale_first_rate(&mut self, now: Time, rtt: Span) {
        self.has_rtt = true;
        let ratio = NOMINAL_RTT.as_secs_f64() / rtt.as_secs_f64().max(1e-6);
        self.rate_bps = self.monitor.allowed(self.rate_bps * ratio.max(1.0));
        self.measure(now, self.monitor.total_sent, self.rate_bps);
    }

    /// Returns the time at which `interval` ends even without the RTTs that it needs: the release's
    /// extension to twice the length, two round trips, and the ACKs for the RTTs, each of which may
    /// be delayed until a second packet arrives.
    fn limit(&self, interval: &MonitorInterval) -> Time {
        let length = self.monitor.deadline.since(interval.start);
        let packets = 2.0 * f64::from(LEAST_RTTS + 1) * self.monitor.packet_bits;
        let acks = Span::from_secs_f64(packets / interval.rate_bps);
        let patience = (length + self.monitor.srtt + self.monitor.srtt + acks).max(LEAST_PATIENCE);
        self.monitor.deadline + patience
    }

    /// Adds the RTT of the previous ACK to its interval, because its reliability is now known.
    fn add_previous_rtt(&mut self, ack: &AckSample) {
        if !ack.min_rtt.is_zero() {
            self.min_rtt_s = ack.min_rtt.as_secs_f64();
        }
        let Some(rtt) = ack.transmission_rtt() else { return };
        if !self.has_rtt {
            self.scale_first_rate(ack.now, rtt);
        }
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

    /// The release sends the initial window per nominal RTT until it has measured an RTT.
    fn begin(&mut self, _now: Time, rate_bps: f64) {
        let srtt_s = self.monitor.srtt.as_secs_f64();
        self.min_rtt_s = srtt_s;
        self.rate_bps = self.monitor.allowed(rate_bps * srtt_s / NOMINAL_RTT.as_secs_f64());
        self.monitor.hold(self.rate_bps);
    }

    fn restart(&mut self, now: Time, before: u64) {
        match self.phase {
            Phase::Starting if !self.has_rtt => {}
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
        let (trusted, limit) = (interval.trend.count(), self.limit(interval));
        if trusted < LEAST_RTTS && now < limit {
            self.monitor.wait(limit);
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
    fn on_ack(&mut self, ack: &AckSample) {
        self.add_previous_rtt(ack);
        self.close_interval(ack.now);
        self.take_results(ack.now);
        self.monitor.account(ack);
    }

    /// The release has no timeouts. The packets that one marks lost are in the utility.
    fn on_timeout(&mut self, _now: Time) {}

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
