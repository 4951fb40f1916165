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
use jostle_units::{Rate, Stream, Time};

use self::acks::AckFilter;
use self::experiment::{LastResult, Phase, Tried};
use self::parameters::{PARAMETERS, Parameters};
use self::tolerance::Tolerance;
use crate::controller::{
    AckSample, Congestion, Controller, Established, Observer, RecoveryOwner, RecoveryState, Sent,
};
use crate::pcc::{Monitor, NOMINAL_RTT};
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
    build: |parts| Box::new(Proteus::new(parts)),
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
    /// A timeout made the counters useless until recovery ends.
    in_loss: bool,
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
            in_loss: false,
            last: LastResult::default(),
        }
    }

    /// Begins to measure at `rate_bps`; `before` packets were sent before the interval. It lasts as
    /// long as the least RTT, at least (release: `monitor_duration_`).
    fn measure(&mut self, now: Time, before: u64, rate_bps: f64) {
        self.monitor.measure_for(now, before, rate_bps, self.min_rtt_s);
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
        } else if self.monitor.close_interval(now) {
            self.after_interval(now);
        }
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

impl Controller for Proteus {
    fn on_established(&mut self, established: &Established) {
        self.rate_bps = self.monitor.establish(established);
        self.min_rtt_s = self.monitor.srtt.as_secs_f64();
        self.measure(established.now, 0, self.rate_bps);
    }

    fn on_packet_size(&mut self, mss_bytes: u32) {
        self.monitor.resize(mss_bytes);
    }

    fn on_send(&mut self, sent: &Sent) {
        let before = self.monitor.on_send(sent);
        if sent.after_idle && !self.in_loss {
            self.restart(sent.now, before);
        }
        self.close_interval(sent.now);
    }

    /// What this ACK says of packets is counted last: an interval is complete when the RTT of its last
    /// packet is judged, and that is with the next ACK (release, `pending_acked_packets_`).
    fn on_ack(&mut self, ack: &AckSample) {
        self.hear(ack);
        if !self.in_loss {
            self.close_interval(ack.now);
            self.take_results(ack.now);
        }
        self.monitor.account(ack);
        self.monitor.fit_window();
    }

    fn on_congestion(&mut self, _congestion: &Congestion) {}

    /// The release hears of no timeouts. As Vivace's Linux port this drops what was measured, and
    /// probes anew when recovery is over.
    fn on_state(&mut self, now: Time, state: RecoveryState) {
        let in_loss = state == RecoveryState::Loss;
        if in_loss && !self.in_loss {
            self.monitor.drop_measurements();
            self.monitor.hold(self.rate_bps);
        } else if self.in_loss && !in_loss {
            self.leave(now);
        }
        self.in_loss = in_loss;
    }

    fn on_undo(&mut self, _now: Time) {}

    fn set_cwnd(&mut self, cwnd: u32) {
        self.monitor.set_cwnd(cwnd);
    }

    fn cwnd(&self) -> u32 {
        self.monitor.cwnd()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.monitor.pacing_rate())
    }

    /// Release: packets leave one by one (UDT's timer). A flow that sends in bursts waits behind itself,
    /// and takes the deviation of its RTTs for others.
    fn burst_limit(&self) -> Option<u32> {
        Some(1)
    }

    fn recovery_owner(&self) -> RecoveryOwner {
        RecoveryOwner::Controller
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.monitor.next_wakeup()
    }

    fn on_wakeup(&mut self, now: Time) {
        self.close_interval(now);
    }

    fn mode(&self) -> &'static str {
        if self.in_loss { "recovering" } else { self.phase.name() }
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
