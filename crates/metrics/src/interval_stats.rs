//! Statistics of flows and links in an interval, from which all measures are computed. They come
//! either from all events of a phase or from the rows of the time series.

use jostle_link::DropReason;
use jostle_units::SendLimit;

use crate::fair_bins::FairBins;

const REASONS: usize = DropReason::ALL.len();

/// Statistics of a flow in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowIntervalStats {
    /// Whether the flow counts in shares and fairness. Pings do not, because they have no
    /// controller.
    pub counts_for_share: bool,
    /// Whether the flow carries the data of other flows, as a later proxy leg or a tunnel. Totals
    /// ignore it.
    pub carries_other_flows: bool,
    /// Number of the set of flows that compete for links. Shares are computed within it.
    pub contest: usize,
    /// Whether the flow was active during part of the interval: between its start and its stop or
    /// completion.
    pub is_active: bool,
    /// Length of the interval.
    pub length_ns: f64,
    /// Bytes that the sender put on the wire, including link headers.
    pub sent_bytes: f64,
    /// Bytes on the wire that reached the receiver.
    pub received_bytes: f64,
    /// Payload that reached the application in order; NaN if unknown.
    pub delivered_bytes: f64,
    /// Data packets sent, including retransmissions.
    pub sent_packets: f64,
    /// Data packets retransmitted; NaN if unknown.
    pub retransmitted_packets: f64,
    /// Mean of the RTT samples.
    pub rtt_mean_s: Option<f64>,
    /// Smallest RTT sample; unknown in the series.
    pub rtt_min_s: Option<f64>,
    /// Median of the RTT samples; unknown in the series.
    pub rtt_p50_s: Option<f64>,
    /// 95th percentile of the RTT samples; unknown in the series.
    pub rtt_p95_s: Option<f64>,
    /// Standard deviation of the RTT samples (n − 1); unknown in the series.
    pub rtt_sd_s: Option<f64>,
    /// Mean RTT of ACKs of new data.
    pub segment_rtt_mean_s: Option<f64>,
    /// Median RTT of ACKs of new data; unknown in the series.
    pub segment_rtt_p50_s: Option<f64>,
    /// 95th percentile of the RTT of ACKs of new data; unknown in the series.
    pub segment_rtt_p95_s: Option<f64>,
    /// Largest RTT of ACKs of new data; unknown in the series.
    pub segment_rtt_max_s: Option<f64>,
    /// Time during which each [`SendLimit`] held; all zero if unknown, as in the series.
    pub limited_ns: [f64; SendLimit::COUNT],
    /// Time-weighted mean of cwnd during the flow's lifetime.
    pub cwnd_mean_bytes: Option<f64>,
    /// Whether the source always has data to send.
    pub is_bulk: bool,
    /// Payload of a full-sized segment.
    pub segment_bytes: f64,
    /// Mean one-way delay of data packets.
    pub delay_mean_s: Option<f64>,
    /// Smallest one-way delay; unknown in the series.
    pub delay_min_s: Option<f64>,
    /// Median of the one-way delays; unknown in the series.
    pub delay_p50_s: Option<f64>,
    /// 95th percentile of the one-way delays; unknown in the series.
    pub delay_p95_s: Option<f64>,
    /// 99th percentile of the one-way delays; unknown in the series.
    pub delay_p99_s: Option<f64>,
    /// Mean time that data packets waited in queues.
    pub queueing_delay_mean_s: Option<f64>,
    /// Mean interarrival jitter of one-way datagrams; unknown in the series.
    pub jitter_mean_s: Option<f64>,
    /// Fraction of one-way datagrams that were lost; unknown in the series.
    pub lost_share: Option<f64>,
    /// Mouth-to-ear delay of speech; unknown in the series.
    pub mouth_to_ear_s: Option<f64>,
    /// Transmission rating R of the E-model; unknown in the series.
    pub rating: Option<f64>,
    /// Delays of the frames of a media source or trace; unknown in the series.
    pub frames: Option<FrameIntervalStats>,
    /// Whether the flow answers requests.
    pub responds: bool,
    /// Complete responses.
    pub responses: f64,
    /// Mean response time.
    pub response_time_mean_s: Option<f64>,
    /// Median of the response times; unknown in the series.
    pub response_time_p50_s: Option<f64>,
    /// 95th percentile of the response times; unknown in the series.
    pub response_time_p95_s: Option<f64>,
    /// 99th percentile of the response times; unknown in the series.
    pub response_time_p99_s: Option<f64>,
}

impl FlowIntervalStats {
    /// Returns the share of the time during which one of `limits` held. `None` if no limit is
    /// known, or if one of the `lumped` limits held, which can include the ones in question.
    pub(crate) fn limited(&self, limits: &[SendLimit], lumped: &[SendLimit]) -> Option<f64> {
        let of = |limits: &[SendLimit]| limits.iter().map(|it| self.limited_ns[*it as usize]).sum();
        let hidden: f64 = of(lumped);
        if hidden > 0.0 { None } else { ratio(of(limits), self.limited_ns.iter().sum()) }
    }
}

/// Delays of the frames of a media source, or of the writes of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FrameIntervalStats {
    /// Complete frames.
    pub frames: f64,
    /// Fraction of frames that missed their deadline or never arrived.
    pub late: Option<f64>,
    /// Mean frame delay.
    pub mean_s: Option<f64>,
    /// Median frame delay.
    pub p50_s: Option<f64>,
    /// 95th percentile of the frame delays.
    pub p95_s: Option<f64>,
    /// 99th percentile of the frame delays.
    pub p99_s: Option<f64>,
    /// Largest frame delay.
    pub max_s: Option<f64>,
}

/// Statistics of a group of flows in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupIntervalStats {
    /// Whether a flow of the group answers requests.
    pub responds: bool,
    /// Complete responses of all flows.
    pub responses: f64,
    /// Mean response time.
    pub response_time_mean_s: Option<f64>,
    /// Median of the response times; unknown in the series.
    pub response_time_p50_s: Option<f64>,
    /// 95th percentile of the response times; unknown in the series.
    pub response_time_p95_s: Option<f64>,
    /// 99th percentile of the response times; unknown in the series.
    pub response_time_p99_s: Option<f64>,
}

impl GroupIntervalStats {
    /// Aggregates the statistics of the group's flows. Percentiles stay unknown.
    pub(crate) fn of<'a>(flows: impl Iterator<Item = &'a FlowIntervalStats>) -> Self {
        let mut sum = Self::default();
        let mut took_s = 0.0;
        for flow in flows {
            sum.responds |= flow.responds;
            sum.responses += flow.responses;
            took_s += flow.response_time_mean_s.map_or(0.0, |mean_s| mean_s * flow.responses);
        }
        Self { response_time_mean_s: ratio(took_s, sum.responses), ..sum }
    }
}

/// Statistics of a link in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkIntervalStats {
    /// Length of the interval.
    pub length_ns: f64,
    /// Bytes sent.
    pub sent_bytes: f64,
    /// Bytes that the service rate allowed; NaN if unknown.
    pub service_bytes: f64,
    /// Bytes that left the queue, or would have left it if packets had waited all the time: those
    /// that the service rate allowed, and those dropped from the queue. Behind a policer the link's
    /// capacity counts.
    pub drain_bytes: f64,
    /// Time integral of the queue length, in byte nanoseconds.
    pub queue_bytes_ns: f64,
    /// 95th percentile of the queue length over time; unknown in the series.
    pub queue_length_p95_bytes: Option<f64>,
    /// Mean queueing delay of the packets sent.
    pub queueing_delay_mean_s: Option<f64>,
    /// Median queueing delay; unknown in the series.
    pub waited_p50_s: Option<f64>,
    /// 95th percentile of the queueing delay; unknown in the series.
    pub waited_p95_s: Option<f64>,
    /// 99th percentile of the queueing delay; unknown in the series.
    pub waited_p99_s: Option<f64>,
    /// Packets dropped, by reason.
    pub dropped: [f64; REASONS],
    /// Packets marked, by reason.
    pub marked: [f64; REASONS],
    /// Packets duplicated; unknown in the series.
    pub duplicated: Option<f64>,
}

/// Statistics of all flows, groups and links in the same interval.
#[derive(Clone, Debug)]
pub struct IntervalStats {
    /// Flows in the order of the spec.
    pub flows: Vec<FlowIntervalStats>,
    /// Groups in the order of their first flows.
    pub groups: Vec<GroupIntervalStats>,
    /// Links in the order of the spec.
    pub links: Vec<LinkIntervalStats>,
    /// Bins inside the interval in which the active flows had about the same throughput.
    pub fair_bins: FairBins,
    /// Throughput of all flows that count in shares, by contest. Stored because every flow's share
    /// needs it.
    contest_bps: Vec<f64>,
    /// Throughput of all flows that count in shares.
    throughput_bps: f64,
}

impl IntervalStats {
    pub(crate) fn new(
        flows: Vec<FlowIntervalStats>,
        groups: Vec<GroupIntervalStats>,
        links: Vec<LinkIntervalStats>,
        fair_bins: FairBins,
    ) -> Self {
        let contests = flows.iter().map(|flow| flow.contest + 1).max().unwrap_or(0);
        let mut contest_bps = vec![0.0; contests];
        let mut throughput_bps = 0.0;
        for flow in flows.iter().filter(|flow| flow.counts_for_share) {
            let flow_bps = bits_per_s(flow.received_bytes, flow.length_ns);
            contest_bps[flow.contest] += flow_bps;
            throughput_bps += flow_bps;
        }
        Self { flows, groups, links, fair_bins, contest_bps, throughput_bps }
    }

    /// Returns the throughput of all flows that compete with `flow`, including itself, in bit/s.
    pub(crate) fn contest_bps(&self, flow: &FlowIntervalStats) -> f64 {
        self.contest_bps.get(flow.contest).copied().unwrap_or(0.0)
    }

    /// Returns the throughput of all flows that count in shares, in bit/s.
    pub(crate) fn throughput_bps(&self) -> f64 {
        self.throughput_bps
    }

    /// Iterates over the active flows that count in shares.
    pub(crate) fn competitors(&self) -> impl Iterator<Item = &FlowIntervalStats> {
        self.flows.iter().filter(|flow| flow.counts_for_share && flow.is_active)
    }
}

/// Returns the rate at which `bytes` are transferred in `length_ns`.
pub(crate) fn bits_per_s(bytes: f64, length_ns: f64) -> f64 {
    bytes * 8e9 / length_ns
}

/// Returns `part` ÷ `whole`, or `None` if `whole` is not positive or one of them is NaN (unknown).
pub(crate) fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0 && !part.is_nan()).then(|| part / whole)
}

/// Returns the number, or `None` if it is NaN (unknown).
pub(crate) fn known(number: f64) -> Option<f64> {
    (!number.is_nan()).then_some(number)
}
