//! SEARCH.

mod bins;

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Span, Time};

use super::algorithm::SlowStart;
use crate::cwnd::CongestionWindow;
use crate::registry_rows::SlowStartEntry;
use bins::{BinAdvance, Bins, WINDOW_BINS};
use jostle_congestion::{AckSample, EstablishedEvent, RawAckSample};

pub(crate) const ROW: SlowStartEntry = SlowStartEntry {
    entry: RegistryEntry {
        name: "search",
        summary: "ends when deliveries fall behind the data sent one RTT earlier",
        class: "delay",
        based_on: &["standard"],
        source: "Chung, Kachooei, Li & Claypool, draft-chung-ietf-ccwg-00, 2024, and \
                 draft-chung-ccwg-search-09, 2026; the authors' Linux code 3.1 and 4.0",
        parameters: &[
            Parameter::choice("compare", "sent", &["sent", "delivered"]).summary(
                "reference of the deliveries: data sent a round trip earlier (draft 09), or twice \
                 the data delivered then (earlier drafts)",
            ),
            Parameter::number("threshold", 0.0, 0.0..=1.0).summary(
                "shortfall of the deliveries at the exit, as a share; 0: the draft's, 0.26 with \
                 sent and 0.35 with delivered",
            ),
            Parameter::number("window_factor", 3.5, 0.1..=100.0)
                .summary("length of the evaluated window, in initial RTTs"),
            Parameter::choice(
                "exit",
                "as the draft",
                &["as the draft", "stay", "rollback", "drain"],
            )
            .summary(
                "effect on cwnd: none (stay), minus the deliveries of two initial RTTs (rollback), \
                 down to the deliveries of one (drain); the draft's: drain with sent, rollback \
                 with delivered",
            ),
            Parameter::integer("missed_bins", 10, 1..=10)
                .summary("tenths of the window without an ACK after which it restarts"),
        ],
    },
    build: |values| Box::new(Search::new(values)),
};

/// `TCP_INIT_CWND`: minimum window of a rollback or a drain.
const SMALLEST_CWND: u32 = 10;

/// `SEARCH_DRAIN_ACKEDSEG_THRESH`: number of acknowledged packets per packet sent during the drain.
const ACKED_PER_SENT: u32 = 3;

/// Reference for the latest delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeliveryReference {
    Sent,
    Delivered,
}

/// Change of cwnd at the exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExitAction {
    Stay,
    Rollback,
    Drain,
}

/// Slow start Exit At Right CHokepoint. Time is divided into bins of a tenth of 3.5 initial RTTs.
/// At the end of each bin, the deliveries of the last ten bins are compared with the expectation
/// from the ten bins one RTT earlier. Below the capacity of the path, all packets sent are
/// delivered one RTT later. At capacity the RTT grows, and fewer packets are delivered.
///
/// Counted in packets: those sent for the first time and those acknowledged cumulatively.
#[derive(Clone, Debug)]
pub struct Search {
    reference: DeliveryReference,
    threshold: f64,
    window_factor: f64,
    exit: ExitAction,
    missed_bins: u64,
    bins: Option<Bins>,
    drain: Option<Drain>,
}

/// Reduction of the window to the target.
#[derive(Clone, Copy, Debug)]
struct Drain {
    target: u32,
    /// Packets acknowledged during the drain since the last packet sent.
    acked: u32,
}

impl Search {
    /// Creates SEARCH with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        let reference = match values.choice("compare") {
            "delivered" => DeliveryReference::Delivered,
            _ => DeliveryReference::Sent,
        };
        let threshold = match (values.number("threshold"), reference) {
            (given, _) if given > 0.0 => given,
            (_, DeliveryReference::Sent) => 0.26,
            (_, DeliveryReference::Delivered) => 0.35,
        };
        let exit = match (values.choice("exit"), reference) {
            ("stay", _) => ExitAction::Stay,
            ("drain", _) | ("as the draft", DeliveryReference::Sent) => ExitAction::Drain,
            // draft-chung-ietf-ccwg-00 §3: "it can reduce the congestion window (cwnd) to
            // instead be at the congestion point", lines 39 to 42.
            _ => ExitAction::Rollback,
        };
        Self {
            reference,
            threshold,
            window_factor: values.number("window_factor"),
            exit,
            missed_bins: u64::from(values.u32("missed_bins")),
            bins: None,
            drain: None,
        }
    }

    /// Returns the relative shortfall of the latest delivery from the reference; `None` if there is
    /// too little data or the reference is too old.
    fn shortfall(&self, bins: &Bins, rtt: Span) -> Option<f64> {
        let delivered = bins.delivered(WINDOW_BINS)? as f64;
        let reference = match self.reference {
            DeliveryReference::Sent => bins.sent_before(rtt)?,
            // Slow start doubles the deliveries from one RTT to the next.
            DeliveryReference::Delivered => 2.0 * bins.delivered_before(rtt)?,
        };
        (reference > 0.0).then(|| (reference - delivered) / reference)
    }

    fn leave(&mut self, window: &mut CongestionWindow, bins: &Bins) {
        match self.exit {
            ExitAction::Stay => window.ssthresh = window.cwnd,
            ExitAction::Rollback => {
                let overshoot = bins.delivered(bins.spanning_twice_the_initial_rtt());
                let overshoot = as_packets(overshoot.unwrap_or(0));
                let least = SMALLEST_CWND.min(window.cwnd);
                window.cwnd = window.cwnd.saturating_sub(overshoot).max(least);
                window.ssthresh = window.cwnd;
            }
            ExitAction::Drain => {
                let target = bins.delivered(bins.spanning_the_initial_rtt());
                let target = as_packets(target.unwrap_or(0)).max(SMALLEST_CWND);
                self.drain = Some(Drain { target, acked: 0 });
            }
        }
    }
}

fn as_packets(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl SlowStart for Search {
    fn on_established(&mut self, _window: &mut CongestionWindow, _established: &EstablishedEvent) {
        (self.bins, self.drain) = (None, None);
    }

    fn on_ack_before_loss_detection(
        &mut self,
        window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        if !window.in_slow_start() {
            self.drain = None;
            return;
        }
        let Some(rtt) = measurement.rtt else { return };
        if self.drain.is_some() {
            return;
        }
        let (delivered, sent) = (measurement.first_unacked, measurement.next_to_send);
        let passed = match &mut self.bins {
            Some(bins) => bins.advance(measurement.now, delivered, sent, self.missed_bins),
            None => BinAdvance::TooMany,
        };
        match passed {
            BinAdvance::None => {}
            // The first ACK of the connection or after a silence: the RTT is the base RTT, and
            // earlier measurements are obsolete.
            BinAdvance::TooMany => {
                let length = rtt.as_secs_f64() * self.window_factor;
                self.bins = Some(Bins::new(measurement.now, rtt, length, delivered, sent));
            }
            BinAdvance::Some => {
                let Some(bins) = self.bins.take() else { return };
                if self.shortfall(&bins, rtt).is_some_and(|share| share >= self.threshold) {
                    self.leave(window, &bins);
                }
                self.bins = Some(bins);
            }
        }
    }

    fn grow(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> u32 {
        let Some(drain) = &mut self.drain else { return window.slow_start(ack.acked) };
        let acked = drain.acked.saturating_add(ack.acked);
        drain.acked = acked % ACKED_PER_SENT;
        let cwnd = ack.in_flight.saturating_add(acked / ACKED_PER_SENT).max(drain.target);
        // Only reduce: with few packets in flight the target may be above the window.
        window.cwnd = cwnd.min(window.cwnd).max(1);
        if window.cwnd <= drain.target {
            window.ssthresh = window.cwnd;
            self.drain = None;
        }
        0
    }

    fn on_timeout(&mut self, _now: Time, _next_to_send: u64) {
        (self.bins, self.drain) = (None, None);
    }

    fn mode(&self) -> &'static str {
        if self.drain.is_some() { "drain" } else { "slow_start" }
    }
}

#[cfg(test)]
mod tests;
