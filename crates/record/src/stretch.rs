//! What flows and links did during a stretch of time: what every measure is computed from, whether
//! it was counted event by event or added up from the series.

use std::ops::Range;

use jostle_path::Reason;

use crate::tables::FlowTable;

const REASONS: usize = Reason::ALL.len();

/// What a flow did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowStretch {
    /// Whether it takes a share: pings, which have no controller, do not.
    pub competes: bool,
    /// Whether it was there during part of the stretch: between its start and its stop or
    /// completion.
    pub is_there: bool,
    /// Length of the stretch.
    pub length_ns: f64,
    /// Bytes that the sender put on the wire, link headers included.
    pub sent_bytes: f64,
    /// Bytes on the wire that reached the receiver.
    pub received_bytes: f64,
    /// Payload that reached the application in order; NaN if that is not known.
    pub delivered_bytes: f64,
    /// Data packets sent, retransmissions included.
    pub sent_packets: f64,
    /// Data packets sent again; NaN if that is not known.
    pub retransmitted_packets: f64,
    /// Mean of the RTT samples.
    pub rtt_mean_s: Option<f64>,
    /// Smallest RTT sample; not known of the series, nor are the next three.
    pub rtt_min_s: Option<f64>,
    /// Median of the RTT samples.
    pub rtt_p50_s: Option<f64>,
    /// 95th percentile of the RTT samples.
    pub rtt_p95_s: Option<f64>,
    /// Standard deviation of the RTT samples (n − 1).
    pub rtt_sd_s: Option<f64>,
    /// Mean of the RTTs of ACKs.
    pub ack_rtt_mean_s: Option<f64>,
    /// Their median; not known of the series, nor are the next two.
    pub ack_rtt_p50_s: Option<f64>,
    /// Their 95th percentile.
    pub ack_rtt_p95_s: Option<f64>,
    /// The largest of them.
    pub ack_rtt_max_s: Option<f64>,
    /// Mean over time of the congestion window while the flow lived.
    pub cwnd_mean_bytes: Option<f64>,
    /// Whether it always has something to send.
    pub is_bulk: bool,
    /// Payload of a full segment.
    pub segment_bytes: f64,
    /// Mean of the one-way delays of packets of data.
    pub delay_mean_s: Option<f64>,
    /// Smallest one-way delay; not known of the series, nor are the next three.
    pub delay_min_s: Option<f64>,
    /// Median of the one-way delays.
    pub delay_p50_s: Option<f64>,
    /// 95th percentile of the one-way delays.
    pub delay_p95_s: Option<f64>,
    /// 99th percentile of the one-way delays.
    pub delay_p99_s: Option<f64>,
    /// Mean of what packets of data waited in queues.
    pub waited_mean_s: Option<f64>,
    /// Mean of the interarrival jitter of datagrams that nobody answers; not known of the series, nor
    /// are the next three.
    pub jitter_mean_s: Option<f64>,
    /// Of those datagrams, what share did not come.
    pub lost_share: Option<f64>,
    /// From mouth to ear, if they carry speech.
    pub mouth_to_ear_s: Option<f64>,
    /// R of the E-model.
    pub rating: Option<f64>,
    /// What became of what it writes by the clock, if it does; not known of the series.
    pub frames: Option<FrameStretch>,
    /// Whether it answers requests.
    pub responds: bool,
    /// Responses that were whole.
    pub responses: f64,
    /// Mean of what they took.
    pub response_mean_s: Option<f64>,
    /// Median of what they took; not known of the series, nor are the next two.
    pub response_p50_s: Option<f64>,
    /// 95th percentile of what they took.
    pub response_p95_s: Option<f64>,
    /// 99th percentile of what they took.
    pub response_p99_s: Option<f64>,
}

/// What became of media frames, or of what else was written by the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FrameStretch {
    /// Frames that were whole.
    pub frames: f64,
    /// Share of those that were whole too late, or never.
    pub late: Option<f64>,
    /// Mean of what they took.
    pub mean_s: Option<f64>,
    /// Median of what they took.
    pub p50_s: Option<f64>,
    /// 95th percentile of what they took.
    pub p95_s: Option<f64>,
    /// 99th percentile of what they took.
    pub p99_s: Option<f64>,
    /// The longest that one took.
    pub max_s: Option<f64>,
}

/// What the flows of a group did together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupStretch {
    /// Whether one of them answers requests.
    pub responds: bool,
    /// Responses that were whole, of all of them.
    pub responses: f64,
    /// Mean of what they took.
    pub response_mean_s: Option<f64>,
    /// Median of what they took; not known of the series, nor are the next two.
    pub response_p50_s: Option<f64>,
    /// 95th percentile of what they took.
    pub response_p95_s: Option<f64>,
    /// 99th percentile of what they took.
    pub response_p99_s: Option<f64>,
}

impl GroupStretch {
    /// What follows from what each of its flows did.
    pub(crate) fn of<'a>(flows: impl Iterator<Item = &'a FlowStretch>) -> Self {
        let mut sum = Self::default();
        let mut took_s = 0.0;
        for flow in flows {
            sum.responds |= flow.responds;
            sum.responses += flow.responses;
            took_s += flow.response_mean_s.map_or(0.0, |mean_s| mean_s * flow.responses);
        }
        Self { response_mean_s: ratio(took_s, sum.responses), ..sum }
    }
}

/// What a link did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkStretch {
    /// Length of the stretch.
    pub length_ns: f64,
    /// Bytes sent.
    pub sent_bytes: f64,
    /// Bytes that the capacity could have carried; NaN if that is not known.
    pub offered_bytes: f64,
    /// Bytes waiting, added up over nanoseconds.
    pub queue_bytes_ns: f64,
    /// What the queue holds at most during 95 % of the time; not known of the series.
    pub queue_p95_bytes: Option<f64>,
    /// Mean of what the packets sent had waited.
    pub waited_mean_s: Option<f64>,
    /// Median of what they had waited; not known of the series, nor are the next two.
    pub waited_p50_s: Option<f64>,
    /// 95th percentile of what they had waited.
    pub waited_p95_s: Option<f64>,
    /// 99th percentile of what they had waited.
    pub waited_p99_s: Option<f64>,
    /// Packets dropped, by reason.
    pub dropped: [f64; REASONS],
    /// Packets marked, by reason.
    pub marked: [f64; REASONS],
}

/// What all of them did in the same stretch.
#[derive(Clone, Debug)]
pub struct Stretch<'a> {
    /// Flows in the order of the spec.
    pub flows: Vec<FlowStretch>,
    /// Groups in the order of their first flows.
    pub groups: Vec<GroupStretch>,
    /// Links in the order of the spec.
    pub links: Vec<LinkStretch>,
    /// What the flows got in each interval of the series whose middle lies in the stretch.
    pub rates: Rates<'a>,
    /// Bits per second that all got that take shares. Each flow's share asks for it.
    throughput_bps: f64,
}

/// Throughputs by interval of the series.
#[derive(Clone, Copy, Debug)]
pub struct Rates<'a> {
    end_s: &'a [f64],
    throughput_bps: &'a [f64],
    flows: usize,
}

impl<'a> Rates<'a> {
    /// Intervals of `table` whose middle lies from `from_s` up to `to_s`.
    pub(crate) fn between(table: &'a FlowTable, flows: usize, from_s: f64, to_s: f64) -> Self {
        let rows = rows(&table.time_s, flows, from_s, to_s);
        Self {
            end_s: &table.time_s[rows.clone()],
            throughput_bps: &table.throughput_bps[rows],
            flows,
        }
    }

    /// End of each interval, and what each flow got.
    pub fn iter(&self) -> impl Iterator<Item = (f64, &'a [f64])> {
        let step = self.flows.max(1);
        self.end_s.iter().step_by(step).copied().zip(self.throughput_bps.chunks_exact(step))
    }

    /// Length of an interval; none if there are fewer than two.
    pub fn interval_s(&self) -> Option<f64> {
        Some(self.end_s.get(self.flows)? - self.end_s.first()?)
    }
}

/// Rows of a table with `per_interval` rows for each interval, of the intervals whose middle lies
/// from `from_s` up to `to_s`.
fn rows(end_s: &[f64], per_interval: usize, from_s: f64, to_s: f64) -> Range<usize> {
    let Some(intervals) = end_s.len().checked_div(per_interval) else { return 0..0 };
    let end = |interval: usize| end_s[interval * per_interval];
    let middle = |interval: usize| {
        let start = if interval == 0 { 0.0 } else { end(interval - 1) };
        (start + end(interval)) / 2.0
    };
    let first = |time_s: f64| {
        let (mut low, mut high) = (0, intervals);
        while low < high {
            let at = usize::midpoint(low, high);
            if middle(at) < time_s { low = at + 1 } else { high = at }
        }
        low
    };
    let (from, to) = (first(from_s), first(to_s));
    from * per_interval..to.max(from) * per_interval
}

impl<'a> Stretch<'a> {
    pub(crate) fn new(
        flows: Vec<FlowStretch>,
        groups: Vec<GroupStretch>,
        links: Vec<LinkStretch>,
        rates: Rates<'a>,
    ) -> Self {
        let competing = flows.iter().filter(|flow| flow.competes);
        let all = competing.map(|flow| bits_per_s(flow.received_bytes, flow.length_ns));
        // Not `sum`, which says −0 of nothing.
        let throughput_bps = all.fold(0.0, |sum, flow_bps| sum + flow_bps);
        Self { flows, groups, links, rates, throughput_bps }
    }

    /// Bits per second that all flows got that take shares.
    pub(crate) fn throughput_bps(&self) -> f64 {
        self.throughput_bps
    }

    /// The flows that take shares and were there.
    pub(crate) fn competitors(&self) -> impl Iterator<Item = &FlowStretch> {
        self.flows.iter().filter(|flow| flow.competes && flow.is_there)
    }
}

/// The rate that carries `bytes` in `length_ns`.
pub(crate) fn bits_per_s(bytes: f64, length_ns: f64) -> f64 {
    bytes * 8e9 / length_ns
}

/// `part` ÷ `whole`; none where there is no whole, or one of them is unknown: NaN.
pub(crate) fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0 && !part.is_nan()).then(|| part / whole)
}

/// A number, none if it is unknown: NaN.
pub(crate) fn known(number: f64) -> Option<f64> {
    (!number.is_nan()).then_some(number)
}
