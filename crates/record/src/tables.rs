//! Columns of what was recorded. A value that does not exist is NaN.

use jostle_path::Reason;
use jostle_units::{Span, Time};

const REASONS: usize = Reason::ALL.len();

/// Words that a column holds by their position: modes of controllers, names of quantities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    names: Vec<&'static str>,
    last: usize,
}

impl Names {
    /// The words, in the order of their first use.
    pub fn as_slice(&self) -> &[&'static str] {
        &self.names
    }

    /// Position of `name`, which is added if it is new.
    pub(crate) fn code(&mut self, name: &'static str) -> u32 {
        // A controller names its quantities in the same order every time.
        let next = if self.last + 1 < self.names.len() { self.last + 1 } else { 0 };
        self.last = if self.names.get(next) == Some(&name) {
            next
        } else if let Some(found) = self.names.iter().position(|known| *known == name) {
            found
        } else {
            self.names.push(name);
            self.names.len() - 1
        };
        self.last as u32
    }
}

/// Seconds, exact to the last bit of the quotient.
#[inline]
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[inline]
pub(crate) fn seconds_or_nan(span: Option<Span>) -> f64 {
    span.map_or(f64::NAN, |span| seconds(span.as_ns()))
}

/// One row per interval and flow, in order of time, then of the flows in the spec.
///
/// Rates, counts and means are those of the interval that ends at `time_s`; window, threshold, bytes
/// in flight, pacing rate and mode are what they were at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowTable {
    /// End of the interval.
    pub time_s: Vec<f64>,
    /// Position of the flow in the spec.
    pub flow: Vec<u32>,
    /// Bits that the sender put on the wire, headers included, per second.
    pub sending_rate_bps: Vec<f64>,
    /// Bits that reached the receiver, headers included, per second.
    pub throughput_bps: Vec<f64>,
    /// Bits of payload that reached the application in order, per second.
    pub goodput_bps: Vec<f64>,
    /// Mean of the RTT samples of the interval; NaN if there were none.
    pub rtt_mean_s: Vec<f64>,
    /// How many there were.
    pub rtt_samples: Vec<u32>,
    /// Mean of the RTTs of the interval's ACKs, from first transmissions on; NaN if there were none.
    pub ack_rtt_mean_s: Vec<f64>,
    /// How many of them said something new.
    pub ack_rtt_samples: Vec<u32>,
    /// Last RTT sample of the interval; NaN if there was none.
    pub rtt_last_s: Vec<f64>,
    /// Smoothed RTT; NaN before the first sample.
    pub srtt_s: Vec<f64>,
    /// Congestion window; NaN before the flow opens, and when it has ended.
    pub cwnd_bytes: Vec<f64>,
    /// Mean over time of the congestion window while the flow lived; NaN if it did not.
    pub cwnd_mean_bytes: Vec<f64>,
    /// For how long of the interval it lived.
    pub lived_s: Vec<f64>,
    /// Slow-start threshold; NaN while there is none.
    pub ssthresh_bytes: Vec<f64>,
    /// Bytes in flight.
    pub in_flight_bytes: Vec<f64>,
    /// Packets sent, retransmissions included.
    pub sent_packets: Vec<u32>,
    /// Packets sent again.
    pub retransmitted_packets: Vec<u32>,
    /// Packets sent again ÷ packets sent; NaN if none were.
    pub retransmission_ratio: Vec<f64>,
    /// Packets of data that reached the receiver, of which the next two are; 0 if those are not known.
    pub received_packets: Vec<u32>,
    /// Mean of their one-way delays; NaN if there were none.
    pub one_way_delay_mean_s: Vec<f64>,
    /// Mean of what they waited in queues; NaN if there were none.
    pub queueing_delay_mean_s: Vec<f64>,
    /// Responses that were whole.
    pub responses: Vec<u32>,
    /// Mean of what they took; NaN if there were none.
    pub response_mean_s: Vec<f64>,
    /// Pacing rate; NaN if packets are not paced.
    pub pacing_rate_bps: Vec<f64>,
    /// Mode of the controller, as position in `modes`.
    pub mode: Vec<u32>,
    /// Names of the modes.
    pub modes: Names,
}

impl FlowTable {
    /// Forgets what is not known of a flow: NaN, and no zero that would be taken for one.
    pub(crate) fn forget(&mut self, flow: u32, shows_delivery: bool, shows_itself: bool) {
        let rows = self.flow.iter().enumerate().filter(|(_, of)| **of == flow);
        for row in rows.map(|(row, _)| row) {
            if !shows_delivery {
                self.goodput_bps[row] = f64::NAN;
            }
            if !shows_itself {
                self.cwnd_bytes[row] = f64::NAN;
                self.in_flight_bytes[row] = f64::NAN;
                self.retransmission_ratio[row] = f64::NAN;
            }
        }
    }

    /// Lets what reached the receiver of `flow`, of `flows`, be what reached that of `last`.
    pub(crate) fn take_arrivals(&mut self, flow: usize, last: usize, flows: usize) {
        for start in (0..self.flow.len()).step_by(flows) {
            if start + flow.max(last) < self.flow.len() {
                self.throughput_bps[start + flow] = self.throughput_bps[start + last];
                self.goodput_bps[start + flow] = self.goodput_bps[start + last];
            }
        }
    }

    /// A table with room for `rows`.
    pub(crate) fn with_capacity(rows: usize) -> Self {
        Self {
            time_s: Vec::with_capacity(rows),
            flow: Vec::with_capacity(rows),
            sending_rate_bps: Vec::with_capacity(rows),
            throughput_bps: Vec::with_capacity(rows),
            goodput_bps: Vec::with_capacity(rows),
            rtt_mean_s: Vec::with_capacity(rows),
            rtt_samples: Vec::with_capacity(rows),
            ack_rtt_mean_s: Vec::with_capacity(rows),
            ack_rtt_samples: Vec::with_capacity(rows),
            rtt_last_s: Vec::with_capacity(rows),
            srtt_s: Vec::with_capacity(rows),
            cwnd_bytes: Vec::with_capacity(rows),
            cwnd_mean_bytes: Vec::with_capacity(rows),
            lived_s: Vec::with_capacity(rows),
            ssthresh_bytes: Vec::with_capacity(rows),
            in_flight_bytes: Vec::with_capacity(rows),
            sent_packets: Vec::with_capacity(rows),
            retransmitted_packets: Vec::with_capacity(rows),
            retransmission_ratio: Vec::with_capacity(rows),
            received_packets: Vec::with_capacity(rows),
            one_way_delay_mean_s: Vec::with_capacity(rows),
            queueing_delay_mean_s: Vec::with_capacity(rows),
            responses: Vec::with_capacity(rows),
            response_mean_s: Vec::with_capacity(rows),
            pacing_rate_bps: Vec::with_capacity(rows),
            mode: Vec::with_capacity(rows),
            modes: Names::default(),
        }
    }
}

/// One row per interval and link, in order of time, then of the links in the spec.
///
/// Rates, utilisation, mean and counts are those of the interval that ends at `time_s`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkTable {
    /// End of the interval.
    pub time_s: Vec<f64>,
    /// Position of the link in the spec.
    pub link: Vec<u32>,
    /// Bits sent per second.
    pub throughput_bps: Vec<f64>,
    /// Bits that the capacity could have carried per second.
    pub capacity_bps: Vec<f64>,
    /// The first ÷ the second; NaN while the link was stopped.
    pub utilisation: Vec<f64>,
    /// Bytes waiting at the end of the interval.
    pub queue_bytes: Vec<f64>,
    /// Mean over time of the bytes waiting.
    pub queue_mean_bytes: Vec<f64>,
    /// The same as time, at the capacity of the interval; NaN while the link was stopped.
    pub queue_mean_s: Vec<f64>,
    /// Packets sent.
    pub sent_packets: Vec<u32>,
    /// Mean of what they had waited in the queue; NaN if there were none.
    pub queueing_delay_mean_s: Vec<f64>,
    /// Packets dropped, by reason in the order of [`Reason::ALL`].
    pub dropped: [Vec<u32>; REASONS],
    /// Packets marked, by reason in the order of [`Reason::ALL`].
    pub marked: [Vec<u32>; REASONS],
}

/// One row per interval, flow and internal quantity of its controller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InternalTable {
    /// End of the interval.
    pub time_s: Vec<f64>,
    /// Position of the flow in the spec.
    pub flow: Vec<u32>,
    /// The quantity, as position in `quantities`.
    pub quantity: Vec<u32>,
    /// Its value, in the unit that its name ends with.
    pub value: Vec<f64>,
    /// Names of the quantities.
    pub quantities: Names,
}

impl InternalTable {
    /// The last value of a quantity of each flow, in one pass: ten thousand flows have millions of
    /// rows.
    pub(crate) fn last_of_each(&self, quantity: &str, flows: usize) -> Vec<Option<f64>> {
        let mut last = vec![None; flows];
        let Some(code) = self.quantities.names.iter().position(|name| *name == quantity) else {
            return last;
        };
        for (row, &flow) in self.flow.iter().enumerate() {
            if self.quantity[row] == code as u32
                && let Some(value) = last.get_mut(flow as usize)
            {
                *value = Some(self.value[row]).filter(|value| !value.is_nan());
            }
        }
        last
    }

    pub(crate) fn push(&mut self, now: Time, flow: u32, quantity: &'static str, value: f64) {
        self.time_s.push(seconds(now.as_ns()));
        self.flow.push(flow);
        self.quantity.push(self.quantities.code(quantity));
        self.value.push(value);
    }
}

/// One row per ACK that reached a sender, in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AckTable {
    /// Arrival of the ACK.
    pub time_s: Vec<f64>,
    /// Position of the flow in the spec.
    pub flow: Vec<u32>,
    /// RTT sample; NaN if the ACK gave none.
    pub rtt_s: Vec<f64>,
    /// Time since what the ACK acknowledges was first sent; NaN if it says nothing new.
    pub ack_rtt_s: Vec<f64>,
    /// Congestion window after the ACK.
    pub cwnd_bytes: Vec<f64>,
    /// Bytes in flight after the ACK.
    pub in_flight_bytes: Vec<f64>,
    /// Payload acknowledged since the connection began.
    pub acked_bytes: Vec<u64>,
    /// Packets marked lost by the ACK.
    pub lost_packets: Vec<u32>,
}

/// One row per transfer of the flows that are many connections, in the order in which they were asked
/// for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransferTable {
    /// When it was asked for: of the first one of a connection, when that was opened.
    pub start_s: Vec<f64>,
    /// Position of the flow in the spec.
    pub flow: Vec<u32>,
    /// Number of the connection, counted from 0 over all flows.
    pub connection: Vec<u32>,
    /// Payload.
    pub bytes: Vec<u64>,
    /// Time until all of it was acknowledged, or, of a response, until it had arrived; NaN if it was
    /// not over at the end of the run.
    pub completion_s: Vec<f64>,
    /// The same ÷ what it would take on an empty path; NaN also where a rate of the path varies.
    pub slowdown: Vec<f64>,
    /// Packets sent again while it was the connection's last.
    pub retransmitted_packets: Vec<u32>,
}

impl TransferTable {
    /// Adds one that has begun. Its slowdown holds the least time until it is over.
    pub(crate) fn push(
        &mut self,
        start_s: f64,
        flow: u32,
        connection: u32,
        bytes: u64,
        least_s: f64,
    ) {
        self.start_s.push(start_s);
        self.flow.push(flow);
        self.connection.push(connection);
        self.bytes.push(bytes);
        self.completion_s.push(f64::NAN);
        self.slowdown.push(least_s);
        self.retransmitted_packets.push(0);
    }

    /// One is over, unless it was before.
    pub(crate) fn end(&mut self, row: usize, completion_s: f64) {
        if self.completion_s[row].is_nan() {
            self.completion_s[row] = completion_s;
            self.slowdown[row] = completion_s / self.slowdown[row];
        }
    }

    /// The run is over, and what is not over with it has no slowdown.
    pub(crate) fn finish(&mut self) {
        for (slowdown, completion_s) in self.slowdown.iter_mut().zip(&self.completion_s) {
            if completion_s.is_nan() {
                *slowdown = f64::NAN;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_each_flow_is_found() {
        let mut table = InternalTable::default();
        let rows = [(0, "a", 1.0), (1, "b", 2.0), (2, "a", 3.0), (0, "a", 4.0), (2, "a", f64::NAN)];
        for (flow, quantity, value) in rows {
            table.push(Time::ZERO, flow, quantity, value);
        }
        assert_eq!(table.last_of_each("a", 3), [Some(4.0), None, None]);
        assert_eq!(table.last_of_each("b", 3), [None, Some(2.0), None]);
        assert_eq!(table.last_of_each("c", 3), [None; 3]);
    }

    #[test]
    fn names_are_coded_by_first_use() {
        let mut names = Names::default();
        let codes: Vec<u32> =
            ["a", "b", "a", "c", "b", "c", "a"].iter().map(|name| names.code(name)).collect();
        assert_eq!(codes, [0, 1, 0, 2, 1, 2, 0]);
        assert_eq!(names.as_slice(), ["a", "b", "c"]);
    }
}
