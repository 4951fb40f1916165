//! SEARCH.

mod bins;

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::{Span, Time};

use super::method::SlowStart;
use crate::controller::{AckSample, Established, Measurement};
use crate::row::SlowStartRow;
use crate::window::Window;
use bins::{Bins, Passed, WINDOW_BINS};

pub(crate) const ROW: SlowStartRow = SlowStartRow {
    entry: Entry {
        name: "search",
        summary: "leaves slow start when less is delivered than was sent a round trip earlier",
        class: "delay",
        based_on: &["standard"],
        source: "Chung, Kachooei, Li & Claypool, draft-chung-ietf-ccwg-00, 2024, and \
                 draft-chung-ccwg-search-09, 2026; the authors' Linux code 3.1 and 4.0",
        parameters: &[
            Parameter {
                name: "compare",
                summary: "what delivery is compared with: what was sent a round trip earlier \
                          (draft 09), or twice what was delivered then (earlier drafts)",
                kind: Kind::Choice { default: "sent", choices: &["sent", "delivered"] },
            },
            Parameter {
                name: "threshold",
                summary: "share by which delivery falls short at the exit; 0 for the draft's, \
                          0.26 beside sent and 0.35 beside delivered",
                kind: Kind::Number { default: 0.0, min: 0.0, max: 1.0 },
            },
            Parameter {
                name: "window_factor",
                summary: "length of the window that is watched, in initial RTTs",
                kind: Kind::Number { default: 3.5, min: 0.1, max: 100.0 },
            },
            Parameter {
                name: "exit",
                summary: "what happens to cwnd: nothing (stay), back by what two initial RTTs \
                          delivered (rollback), down to what one delivered (drain); drain beside \
                          sent and rollback beside delivered if left to the draft",
                kind: Kind::Choice {
                    default: "as the draft",
                    choices: &["as the draft", "stay", "rollback", "drain"],
                },
            },
            Parameter {
                name: "missed_bins",
                summary: "tenths of the window without an ACK after which it starts anew",
                kind: Kind::Integer { default: 10, min: 1, max: 10 },
            },
        ],
    },
    build: |values| Box::new(Search::new(values)),
};

/// `TCP_INIT_CWND`: the window that neither a rollback nor a drain goes below.
const SMALLEST_CWND: u32 = 10;

/// `SEARCH_DRAIN_ACKEDSEG_THRESH`: packets acknowledged for each that is sent during the drain.
const ACKED_PER_SENT: u32 = 3;

/// What the latest delivery is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reference {
    Sent,
    Delivered,
}

/// What becomes of cwnd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Stay,
    Rollback,
    Drain,
}

/// Slow start Exit At Right CHokepoint. Time is cut into bins of a tenth of 3.5 initial RTTs. At
/// the end of each, what the last ten bins delivered is compared with what the ten bins one RTT
/// earlier promised: below the capacity of the path all that was sent is delivered one RTT later;
/// at capacity the RTT grows, and delivery falls behind.
///
/// Counted in packets: those sent for the first time and those acknowledged cumulatively.
#[derive(Clone, Debug)]
pub struct Search {
    reference: Reference,
    threshold: f64,
    window_factor: f64,
    exit: Exit,
    missed_bins: u64,
    bins: Option<Bins>,
    drain: Option<Drain>,
}

/// The way down to the target.
#[derive(Clone, Copy, Debug)]
struct Drain {
    target: u32,
    /// Packets acknowledged and not yet answered by one sent.
    acked: u32,
}

impl Search {
    /// SEARCH with the parameters of its registry row.
    pub fn new(values: &Values) -> Self {
        let reference = match values.choice("compare") {
            "delivered" => Reference::Delivered,
            _ => Reference::Sent,
        };
        let threshold = match (values.number("threshold"), reference) {
            (given, _) if given > 0.0 => given,
            (_, Reference::Sent) => 0.26,
            (_, Reference::Delivered) => 0.35,
        };
        let exit = match (values.choice("exit"), reference) {
            ("stay", _) => Exit::Stay,
            ("drain", _) | ("as the draft", Reference::Sent) => Exit::Drain,
            // draft-chung-ietf-ccwg-00, section 3: "it can reduce the congestion window (cwnd) to
            // instead be at the congestion point", lines 39 to 42.
            _ => Exit::Rollback,
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

    /// By how much the latest delivery falls short of the reference; none if too little, or what
    /// lies too long ago, would be compared.
    fn shortfall(&self, bins: &Bins, rtt: Span) -> Option<f64> {
        let delivered = bins.delivered(WINDOW_BINS)? as f64;
        let reference = match self.reference {
            Reference::Sent => bins.sent_before(rtt)?,
            // Slow start doubles what is delivered from one RTT to the next.
            Reference::Delivered => 2.0 * bins.delivered_before(rtt)?,
        };
        (reference > 0.0).then(|| (reference - delivered) / reference)
    }

    fn leave(&mut self, window: &mut Window, bins: &Bins) {
        match self.exit {
            Exit::Stay => window.ssthresh = window.cwnd,
            Exit::Rollback => {
                let overshoot = bins.delivered(bins.spanning_twice_the_initial_rtt());
                let overshoot = as_packets(overshoot.unwrap_or(0));
                let least = SMALLEST_CWND.min(window.cwnd);
                window.cwnd = window.cwnd.saturating_sub(overshoot).max(least);
                window.ssthresh = window.cwnd;
            }
            Exit::Drain => {
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
    fn on_established(&mut self, _window: &mut Window, _established: &Established) {
        (self.bins, self.drain) = (None, None);
    }

    fn on_measurement(&mut self, window: &mut Window, measurement: &Measurement) {
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
            Some(bins) => bins.pass(measurement.now, delivered, sent, self.missed_bins),
            None => Passed::TooMany,
        };
        match passed {
            Passed::None => {}
            // The first ACK of the connection, or of what follows a silence: the RTT is that of an
            // empty path, and what was measured before is stale.
            Passed::TooMany => {
                let length = rtt.as_secs_f64() * self.window_factor;
                self.bins = Some(Bins::new(measurement.now, rtt, length, delivered, sent));
            }
            Passed::Some => {
                let Some(bins) = self.bins.take() else { return };
                if self.shortfall(&bins, rtt).is_some_and(|share| share >= self.threshold) {
                    self.leave(window, &bins);
                }
                self.bins = Some(bins);
            }
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &AckSample) -> u32 {
        let Some(drain) = &mut self.drain else { return window.slow_start(ack.acked) };
        let acked = drain.acked.saturating_add(ack.acked);
        drain.acked = acked % ACKED_PER_SENT;
        let cwnd = ack.in_flight.saturating_add(acked / ACKED_PER_SENT).max(drain.target);
        // Only down: with little in flight the target may lie above the window.
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
