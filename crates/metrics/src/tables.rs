//! Tables of recorded data, as columns. A missing value is NaN.

use jostle_link::DropReason;
use jostle_units::{FlowId, Span, Time};

const REASONS: usize = DropReason::ALL.len();

/// Strings that a column refers to by position: controller modes, names of internal values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StringTable {
    names: Vec<&'static str>,
    last: usize,
}

impl StringTable {
    /// Returns the strings in the order of their first use.
    pub fn as_slice(&self) -> &[&'static str] {
        &self.names
    }

    /// Returns the position of `name`. Adds it if it is new.
    pub(crate) fn code(&mut self, name: &'static str) -> u32 {
        // A controller reports its values in the same order every time.
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

/// Converts nanoseconds to seconds with one division.
#[inline]
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[inline]
pub(crate) fn seconds_or_nan(span: Option<Span>) -> f64 {
    span.map_or(f64::NAN, |span| seconds(span.as_ns()))
}

/// Time series of flows: one row per interval and flow, ordered by time, then by flow.
///
/// Rates, counts and means cover the interval that ends at `time_s`. Window, threshold, bytes in
/// flight, pacing rate and mode are the values at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowTable {
    /// End of the interval.
    pub time_s: Vec<f64>,
    /// Position of the flow in the spec.
    pub flow: Vec<u32>,
    /// Bits per second that the sender put on the wire, including headers.
    pub sending_rate_bps: Vec<f64>,
    /// Bits per second that reached the receiver, including headers.
    pub throughput_bps: Vec<f64>,
    /// Bits per second of payload that reached the application in order.
    pub goodput_bps: Vec<f64>,
    /// Mean of the RTT samples; NaN if there were none.
    pub rtt_mean_s: Vec<f64>,
    /// Number of RTT samples.
    pub rtt_samples: Vec<u32>,
    /// Mean RTT of ACKs of new data, from first transmissions; NaN if there were none.
    pub segment_rtt_mean_s: Vec<f64>,
    /// Number of ACKs of new data.
    pub segment_rtt_samples: Vec<u32>,
    /// Last RTT sample; NaN if there was none.
    pub rtt_last_s: Vec<f64>,
    /// Smoothed RTT; NaN before the first sample.
    pub srtt_s: Vec<f64>,
    /// Congestion window; NaN before the flow opens and after it has ended.
    pub cwnd_bytes: Vec<f64>,
    /// Time-weighted mean of the congestion window during the flow's lifetime; NaN outside of it.
    pub cwnd_mean_bytes: Vec<f64>,
    /// Part of the interval in the flow's lifetime.
    pub lived_s: Vec<f64>,
    /// Slow-start threshold; NaN if it is not set.
    pub ssthresh_bytes: Vec<f64>,
    /// Bytes in flight.
    pub in_flight_bytes: Vec<f64>,
    /// Packets sent, including retransmissions.
    pub sent_packets: Vec<u32>,
    /// Packets retransmitted.
    pub retransmitted_packets: Vec<u32>,
    /// Packets retransmitted ÷ packets sent; NaN if no packet was sent.
    pub retransmission_ratio: Vec<f64>,
    /// Data packets received with a known one-way delay and queueing delay; 0 if these are unknown.
    pub received_packets: Vec<u32>,
    /// Mean one-way delay of these packets; NaN if there were none.
    pub one_way_delay_mean_s: Vec<f64>,
    /// Mean queueing delay of these packets; NaN if there were none.
    pub queueing_delay_mean_s: Vec<f64>,
    /// Complete responses.
    pub responses: Vec<u32>,
    /// Mean response time; NaN if there were none.
    pub response_time_mean_s: Vec<f64>,
    /// Pacing rate; NaN if the sender does not pace.
    pub pacing_rate_bps: Vec<f64>,
    /// Mode of the controller, as position in `modes`.
    pub mode: Vec<u32>,
    /// Names of the modes.
    pub modes: StringTable,
}

impl FlowTable {
    /// Removes the responses of the last row.
    pub(crate) fn clear_last_responses(&mut self) {
        if let (Some(count), Some(mean_s)) =
            (self.responses.last_mut(), self.response_time_mean_s.last_mut())
        {
            (*count, *mean_s) = (0, f64::NAN);
        }
    }

    /// Replaces unknown values of a flow by NaN, so that no zero is mistaken for a value.
    pub(crate) fn forget(&mut self, flow: FlowId, shows_delivery: bool, shows_itself: bool) {
        let rows = self.flow.iter().enumerate().filter(|(_, of)| **of == flow.0);
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

    /// Copies the received data of the proxy leg `last` to `flow`. `flows` is the number of flows.
    pub(crate) fn take_arrivals(&mut self, flow: usize, last: usize, flows: usize) {
        for start in (0..self.flow.len()).step_by(flows) {
            if start + flow.max(last) < self.flow.len() {
                self.throughput_bps[start + flow] = self.throughput_bps[start + last];
                self.goodput_bps[start + flow] = self.goodput_bps[start + last];
            }
        }
    }

    /// Creates a table with capacity for `rows`.
    pub(crate) fn with_capacity(rows: usize) -> Self {
        Self {
            time_s: Vec::with_capacity(rows),
            flow: Vec::with_capacity(rows),
            sending_rate_bps: Vec::with_capacity(rows),
            throughput_bps: Vec::with_capacity(rows),
            goodput_bps: Vec::with_capacity(rows),
            rtt_mean_s: Vec::with_capacity(rows),
            rtt_samples: Vec::with_capacity(rows),
            segment_rtt_mean_s: Vec::with_capacity(rows),
            segment_rtt_samples: Vec::with_capacity(rows),
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
            response_time_mean_s: Vec::with_capacity(rows),
            pacing_rate_bps: Vec::with_capacity(rows),
            mode: Vec::with_capacity(rows),
            modes: StringTable::default(),
        }
    }
}

/// Time series of links: one row per interval and link, ordered by time, then by link.
///
/// Rates, utilisation, means, extremes and counts cover the interval that ends at `time_s`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkTable {
    /// End of the interval.
    pub time_s: Vec<f64>,
    /// Position of the link in the spec.
    pub link: Vec<u32>,
    /// Bits per second sent.
    pub throughput_bps: Vec<f64>,
    /// Bits per second that the service rate allowed.
    pub capacity_bps: Vec<f64>,
    /// Throughput ÷ service rate; NaN while the link was stopped.
    pub utilisation: Vec<f64>,
    /// Bytes in the queue at the end of the interval.
    pub queue_bytes: Vec<f64>,
    /// Time-weighted mean of the bytes in the queue.
    pub queue_length_mean_bytes: Vec<f64>,
    /// Smallest number of bytes in the queue.
    pub queue_length_min_bytes: Vec<f64>,
    /// Largest number of bytes in the queue. Lengths that last for no time, as while packets of a
    /// burst arrive at the same instant, do not count.
    pub queue_length_max_bytes: Vec<f64>,
    /// Mean queue length ÷ rate at which the queue empties; NaN while the link was stopped.
    pub queue_delay_estimate_mean_s: Vec<f64>,
    /// Packets sent.
    pub sent_packets: Vec<u32>,
    /// Mean queueing delay of the packets sent; NaN if there were none.
    pub queueing_delay_mean_s: Vec<f64>,
    /// Packets dropped, by reason in the order of [`DropReason::ALL`].
    pub dropped: [Vec<u32>; REASONS],
    /// Packets marked, by reason in the order of [`DropReason::ALL`].
    pub marked: [Vec<u32>; REASONS],
}

/// Internal values of controllers: one row per interval, flow and value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ControllerStateTable {
    /// End of the interval.
    pub time_s: Vec<f64>,
    /// Position of the flow in the spec.
    pub flow: Vec<u32>,
    /// Name of the value, as position in `quantities`.
    pub quantity: Vec<u32>,
    /// The value, in the unit at the end of its name.
    pub value: Vec<f64>,
    /// Names of the values.
    pub quantities: StringTable,
}

impl ControllerStateTable {
    /// Returns the last value of a quantity for each flow. Scans the rows once, because ten
    /// thousand flows have millions of rows.
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

    pub(crate) fn push(&mut self, now: Time, flow: FlowId, quantity: &'static str, value: f64) {
        self.time_s.push(seconds(now.as_ns()));
        self.flow.push(flow.0);
        self.quantity.push(self.quantities.code(quantity));
        self.value.push(value);
    }
}

/// One row per ACK that reached a sender, ordered by time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AckTable {
    /// Arrival of the ACK.
    pub time_s: Vec<f64>,
    /// Position of the flow in the spec.
    pub flow: Vec<u32>,
    /// RTT sample; NaN if the ACK gave none.
    pub rtt_s: Vec<f64>,
    /// Time since the first transmission of the acknowledged data; NaN if the ACK acknowledges no
    /// new data.
    pub segment_rtt_s: Vec<f64>,
    /// Congestion window after the ACK.
    pub cwnd_bytes: Vec<f64>,
    /// Bytes in flight after the ACK.
    pub in_flight_bytes: Vec<f64>,
    /// Payload acknowledged since the start of the connection.
    pub acked_bytes: Vec<u64>,
    /// Packets marked lost by the ACK.
    pub lost_packets: Vec<u32>,
}

/// One row per transfer of multi-connection flows, in the order of their requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransferTable {
    /// Time of the request. For the first transfer of a connection, the time at which it was
    /// opened.
    pub start_s: Vec<f64>,
    /// Position of the flow in the spec.
    pub flow: Vec<u32>,
    /// Number of the connection, counted from 0 over all flows.
    pub connection: Vec<u32>,
    /// Payload.
    pub bytes: Vec<u64>,
    /// Time until all of it was acknowledged, or, for a response, until all of it arrived; NaN if
    /// the transfer was incomplete at the end of the run.
    pub completion_time_s: Vec<f64>,
    /// Completion time ÷ minimum completion time on the empty path; NaN also if a rate of the path
    /// varies.
    pub slowdown: Vec<f64>,
    /// Packets that the connection retransmitted while this was its latest transfer.
    pub retransmitted_packets: Vec<u32>,
}

impl TransferTable {
    /// Adds a transfer that begins. `slowdown` holds its minimum completion time until it is
    /// complete.
    pub(crate) fn push(
        &mut self,
        start_s: f64,
        flow: FlowId,
        number: u32,
        bytes: u64,
        least_s: f64,
    ) {
        self.start_s.push(start_s);
        self.flow.push(flow.0);
        self.connection.push(number);
        self.bytes.push(bytes);
        self.completion_time_s.push(f64::NAN);
        self.slowdown.push(least_s);
        self.retransmitted_packets.push(0);
    }

    /// Completes a transfer, if it is not complete yet.
    pub(crate) fn end(&mut self, row: usize, completion_time_s: f64) {
        if self.completion_time_s[row].is_nan() {
            self.completion_time_s[row] = completion_time_s;
            self.slowdown[row] = completion_time_s / self.slowdown[row];
        }
    }

    /// Ends the run. Incomplete transfers get no slowdown.
    pub(crate) fn finish(&mut self) {
        for (slowdown, completion_time_s) in self.slowdown.iter_mut().zip(&self.completion_time_s) {
            if completion_time_s.is_nan() {
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
        let mut table = ControllerStateTable::default();
        let rows = [(0, "a", 1.0), (1, "b", 2.0), (2, "a", 3.0), (0, "a", 4.0), (2, "a", f64::NAN)];
        for (flow, quantity, value) in rows {
            table.push(Time::ZERO, FlowId(flow), quantity, value);
        }
        assert_eq!(table.last_of_each("a", 3), [Some(4.0), None, None]);
        assert_eq!(table.last_of_each("b", 3), [None, Some(2.0), None]);
        assert_eq!(table.last_of_each("c", 3), [None; 3]);
    }

    #[test]
    fn names_are_coded_by_first_use() {
        let mut names = StringTable::default();
        let codes: Vec<u32> =
            ["a", "b", "a", "c", "b", "c", "a"].iter().map(|name| names.code(name)).collect();
        assert_eq!(codes, [0, 1, 0, 2, 1, 2, 0]);
        assert_eq!(names.as_slice(), ["a", "b", "c"]);
    }
}
