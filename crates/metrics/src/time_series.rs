//! Measures of a run over any interval, computed from its time series.
//!
//! The summary contains measures of phases, computed from all events. For any other interval, the
//! same functions compute measures from sums over the rows of the series. A row that is partly
//! inside the interval counts in proportion.

use std::ops::Range;

use jostle_link::DropReason;
use jostle_units::{Span, Time};

use crate::contest::Contests;
use crate::fair_bins::{self, FairBins};
use crate::flow_groups::Group;
use crate::interval_stats::{
    FlowIntervalStats, GroupIntervalStats, IntervalStats, LinkIntervalStats, ratio,
};
use crate::measures::{Measure, MeasureArguments, MeasureFunction, Scope};
use crate::ping_meter::Pings;
use crate::run_record::FlowIdentity;
use crate::tables::{FlowTable, LinkTable};
use jostle_run_spec::RunSpec;

/// Maximum number of bins of a measure.
const MAX_BINS: f64 = 1e7;

/// Values of a flow's summary outside its phases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowFacts {
    /// Time of the start, if the flow started.
    pub start_s: Option<f64>,
    /// Flow completion time, if the flow completed.
    pub completion_time_s: Option<f64>,
    /// Ping statistics.
    pub pings: Option<Pings>,
}

/// Time series of a run.
#[derive(Clone, Debug)]
pub struct TimeSeries {
    identities: Vec<FlowIdentity>,
    contests: Contests,
    groups: Vec<Group>,
    facts: Vec<FlowFacts>,
    links: usize,
    flow_table: FlowTable,
    link_table: LinkTable,
}

impl TimeSeries {
    /// Creates the series of a run of `spec`. `facts` has one entry per flow.
    ///
    /// # Errors
    /// If the tables or facts do not belong to such a run.
    pub fn new(
        spec: &RunSpec,
        facts: Vec<FlowFacts>,
        flow_table: FlowTable,
        link_table: LinkTable,
    ) -> Result<Self, String> {
        let (flows, links) = (spec.flows.len(), spec.links.len());
        let rows = flow_table.time_s.len();
        if facts.len() != flows || !rows.is_multiple_of(flows.max(1)) {
            return Err(format!("{rows} rows and {} facts of {flows} flows", facts.len()));
        }
        if !link_table.time_s.len().is_multiple_of(links.max(1)) {
            return Err(format!("{} rows of {links} links", link_table.time_s.len()));
        }
        // Check all columns here, because later code indexes every column with every row.
        if flow_columns(&flow_table).iter().any(|length| *length != rows) {
            return Err(format!("columns of {rows} rows of flows have other lengths"));
        }
        let rows = link_table.time_s.len();
        if link_columns(&link_table).any(|length| length != rows) {
            return Err(format!("columns of {rows} rows of links have other lengths"));
        }
        let mut identities = FlowIdentity::all(spec);
        for (identity, facts) in identities.iter_mut().zip(&facts) {
            identity.start = facts.start_s.map_or(Time::NEVER, time);
        }
        let groups = Group::all(identities.iter().map(|flow| flow.group.as_str()));
        let contests = Contests::new(spec);
        Ok(Self { identities, contests, groups, facts, links, flow_table, link_table })
    }

    /// Returns the position of a flow.
    pub fn flow(&self, name: &str) -> Option<usize> {
        self.identities.iter().position(|flow| flow.name == name)
    }

    /// Checks whether a measure can be computed for the flow or link at `position` in a time range.
    ///
    /// # Errors
    /// If there is no such flow or link, or the time range is invalid.
    pub fn check(
        &self,
        measure: &Measure,
        position: usize,
        (from_s, to_s): (f64, f64),
    ) -> Result<(), String> {
        let (what, count) = match measure.scope {
            Scope::Flow => ("flows", self.identities.len()),
            Scope::Group => ("groups", self.groups.len()),
            Scope::Link => ("links", self.links),
            Scope::Run => ("runs", 1),
        };
        if position >= count {
            return Err(format!("position {position} of {count} {what}"));
        }
        if !(from_s.is_finite() && to_s.is_finite() && from_s <= to_s) {
            return Err(format!("from {from_s} s to {to_s} s is no stretch of time"));
        }
        Ok(())
    }

    /// Returns the statistics of a time range.
    pub fn interval_stats(&self, from_s: f64, to_s: f64) -> IntervalStats {
        let count = self.identities.len();
        let contests = self.contests.between(time(from_s), time(to_s));
        let flows: Vec<_> = (0..count)
            .map(|at| FlowIntervalStats {
                contest: contests[at],
                ..self.flow_stats(at, from_s, to_s)
            })
            .collect();
        let members =
            |group: &Group| GroupIntervalStats::of(group.members.iter().map(|at| &flows[*at]));
        let groups = self.groups.iter().map(members).collect();
        IntervalStats::new(
            flows,
            groups,
            (0..self.links).map(|at| self.link_stats(at, from_s, to_s)).collect(),
            self.fair_bins(from_s, to_s),
        )
    }

    /// Returns the seconds in a time range in which the flows had about the same throughput; if the
    /// sampling interval is longer than a second, its intervals.
    fn fair_bins(&self, from_s: f64, to_s: f64) -> FairBins {
        let (ends_s, flows) = (&self.flow_table.time_s, self.identities.len());
        let (Some(interval_s), Some(end_s)) = (ends_s.first(), ends_s.last()) else {
            return FairBins::default();
        };
        let bin_s = fair_bins::BIN.as_secs_f64().max(*interval_s);
        let mut bins = FairBins::new(bin_s);
        let counts =
            |flow: &usize| self.identities[*flow].competes() && self.is_there(*flow, from_s, to_s);
        let counted = || (0..flows).filter(counts);
        for number in fair_bins::numbers_between(bin_s, from_s, to_s.min(*end_s)) {
            let range_s = (number as f64 * bin_s, (number + 1) as f64 * bin_s);
            bins.push(number, counted().map(|flow| self.received_bytes(flow, range_s)));
        }
        bins
    }

    /// Returns whether a flow was active during part of a time range.
    fn is_there(&self, flow: usize, from_s: f64, to_s: f64) -> bool {
        let completion = self.facts[flow].completion_time_s;
        let completion = completion.map(|s| Span::from_ns((s * 1e9).round() as u64));
        self.identities[flow].is_there(completion, time(from_s), time(to_s))
    }

    fn received_bytes(&self, flow: usize, range_s: (f64, f64)) -> f64 {
        let rows = inside(&self.flow_table.time_s, self.identities.len(), flow, range_s);
        rows.map(|(it, inside_s)| self.flow_table.throughput_bps[it.row] / 8.0 * inside_s).sum()
    }

    /// Returns a measure for each bin of length `bin_s` in a time range, or for each interval of
    /// the series if `bin_s` is `None`; NaN if there is no value. An incomplete bin at the end is
    /// omitted.
    ///
    /// # Errors
    /// As [`TimeSeries::check`], and if the bin length is not positive or there are too many bins.
    pub fn bins(
        &self,
        measure: &Measure,
        position: usize,
        (from_s, to_s): (f64, f64),
        bin_s: Option<f64>,
    ) -> Result<Vec<f64>, String> {
        self.check(measure, position, (from_s, to_s))?;
        let edges: Vec<f64> = match bin_s {
            Some(bin_s) => {
                // A tolerance of 10⁻⁶ bins compensates for rounding in the division.
                let bins = (to_s - from_s) / bin_s + 1e-6;
                if !(bin_s > 0.0 && bins <= MAX_BINS) {
                    return Err(format!("bins of {bin_s} s: at most {MAX_BINS} of them"));
                }
                (0..=bins as u64).map(|bin| from_s + bin as f64 * bin_s).collect()
            }
            None => self.interval_ends_s(from_s, to_s),
        };
        let pairs = edges.windows(2).map(|pair| self.interval_stats(pair[0], pair[1]));
        Ok(pairs.map(|all| measure.over(&all, position).unwrap_or(f64::NAN)).collect())
    }

    /// Returns the times at which a flow had delivered two fractions, 0 … 1, of its payload.
    ///
    /// # Errors
    /// If there is no such flow.
    pub fn span_of_shares(&self, flow: usize, from: f64, to: f64) -> Result<(f64, f64), String> {
        if flow >= self.identities.len() {
            return Err(format!("position {flow} of {} flows", self.identities.len()));
        }
        let delivered = self.delivered(flow);
        let all = delivered.last().map_or(0.0, |point| point.1);
        Ok((when(&delivered, from * all), when(&delivered, to * all)))
    }

    /// Returns a measure of the complete run that the summary does not contain, for the flow
    /// `name`.
    pub fn run_measure(
        &self,
        measure: &Measure,
        name: &str,
        asked: &MeasureArguments,
    ) -> Option<f64> {
        match measure.compute {
            MeasureFunction::Pings(compute) => {
                compute(self.facts[self.flow(name)?].pings.as_ref()?, asked)
            }
            MeasureFunction::Download => {
                self.download_s(self.flow(name)?, asked.size_bytes? as f64)
            }
            MeasureFunction::Interval(_)
            | MeasureFunction::Transfer(_)
            | MeasureFunction::Group(_)
            | MeasureFunction::Video(_)
            | MeasureFunction::Pages(_)
            | MeasureFunction::Captured(_)
            | MeasureFunction::Conditions => None,
        }
    }

    fn download_s(&self, flow: usize, bytes: f64) -> Option<f64> {
        let delivered = self.delivered(flow);
        // Sums of rate × interval are not exact, while bytes are integers.
        if delivered.last()?.1.round() < bytes {
            return None;
        }
        Some(when(&delivered, bytes) - self.facts[flow].start_s?)
    }

    /// Returns the ends of the intervals and the bytes delivered until then, starting at 0 and
    /// ending with the interval in which the last byte arrived.
    fn delivered(&self, flow: usize) -> Vec<(f64, f64)> {
        let (mut points, mut total, mut busy) = (vec![(0.0, 0.0)], 0.0, 1);
        for Interval { row, start_s, end_s } in
            intervals(&self.flow_table.time_s, self.identities.len(), flow, 0)
        {
            let bytes = self.flow_table.goodput_bps[row] / 8.0 * (end_s - start_s);
            total += bytes;
            points.push((end_s, total));
            if bytes > 0.0 {
                busy = points.len();
            }
        }
        points.truncate(busy);
        points
    }

    /// Returns the start of the first interval whose midpoint is in the time range, then the ends
    /// of all.
    fn interval_ends_s(&self, from_s: f64, to_s: f64) -> Vec<f64> {
        let flows = self.identities.len();
        let rows = rows(&self.flow_table.time_s, flows, from_s, to_s);
        let ends: Vec<f64> =
            self.flow_table.time_s[rows].iter().step_by(flows.max(1)).copied().collect();
        let first_s = ends.first().map(|first_s| {
            let before = self.flow_table.time_s.partition_point(|end_s| end_s < first_s);
            before.checked_sub(1).map_or(0.0, |row| self.flow_table.time_s[row])
        });
        first_s.into_iter().chain(ends).collect()
    }

    fn flow_stats(&self, at: usize, from_s: f64, to_s: f64) -> FlowIntervalStats {
        let (table, identity) = (&self.flow_table, &self.identities[at]);
        let mut sum = FlowIntervalStats {
            counts_for_share: identity.competes(),
            carries_other_flows: identity.carries_other_flows,
            is_active: self.is_there(at, from_s, to_s),
            responds: identity.responds,
            is_bulk: identity.is_bulk,
            segment_bytes: f64::from(identity.segment_bytes),
            ..FlowIntervalStats::default()
        };
        let (mut rtt, mut segment_rtt, mut cwnd, mut response) =
            <(Mean, Mean, Mean, Mean)>::default();
        let (mut delay, mut waited) = <(Mean, Mean)>::default();
        let flows = self.identities.len();
        for (interval, inside_s) in inside(&table.time_s, flows, at, (from_s, to_s)) {
            let row = interval.row;
            let share = inside_s / (interval.end_s - interval.start_s);
            sum.length_ns += inside_s * 1e9;
            sum.sent_bytes += table.sending_rate_bps[row] / 8.0 * inside_s;
            sum.received_bytes += table.throughput_bps[row] / 8.0 * inside_s;
            sum.delivered_bytes += table.goodput_bps[row] / 8.0 * inside_s;
            sum.sent_packets += f64::from(table.sent_packets[row]) * share;
            sum.retransmitted_packets += f64::from(table.retransmitted_packets[row]) * share;
            rtt.add(table.rtt_mean_s[row], f64::from(table.rtt_samples[row]) * share);
            let segment_rtt_samples = f64::from(table.segment_rtt_samples[row]);
            segment_rtt.add(table.segment_rtt_mean_s[row], segment_rtt_samples * share);
            sum.responses += f64::from(table.responses[row]) * share;
            response.add(table.response_time_mean_s[row], f64::from(table.responses[row]) * share);
            let received = f64::from(table.received_packets[row]) * share;
            delay.add(table.one_way_delay_mean_s[row], received);
            waited.add(table.queueing_delay_mean_s[row], received);
            cwnd.add(table.cwnd_mean_bytes[row], table.lived_s[row] * share);
        }
        sum.delivered_bytes = identity.delivered(sum.delivered_bytes);
        sum.retransmitted_packets = identity.retransmitted(sum.retransmitted_packets);
        FlowIntervalStats {
            rtt_mean_s: rtt.value(),
            segment_rtt_mean_s: segment_rtt.value(),
            cwnd_mean_bytes: cwnd.value(),
            responses: identity.responses(sum.responses),
            response_time_mean_s: identity.response_s(response.value()),
            delay_mean_s: delay.value(),
            queueing_delay_mean_s: waited.value(),
            ..sum
        }
    }

    fn link_stats(&self, at: usize, from_s: f64, to_s: f64) -> LinkIntervalStats {
        let table = &self.link_table;
        let (mut sum, mut waited) = (LinkIntervalStats::default(), Mean::default());
        for (interval, inside_s) in inside(&table.time_s, self.links, at, (from_s, to_s)) {
            let row = interval.row;
            let share = inside_s / (interval.end_s - interval.start_s);
            let sent_packets = f64::from(table.sent_packets[row]) * share;
            waited.add(table.queueing_delay_mean_s[row], sent_packets);
            sum.length_ns += inside_s * 1e9;
            sum.sent_bytes += table.throughput_bps[row] / 8.0 * inside_s;
            let service_bytes = table.capacity_bps[row] / 8.0 * inside_s;
            let queue_bytes_s = table.queue_length_mean_bytes[row] * inside_s;
            let estimate_s = table.queue_delay_estimate_mean_s[row];
            sum.service_bytes += service_bytes;
            // The capacity of a tunnel is unknown.
            let drain_bytes = if service_bytes.is_nan() { 0.0 } else { service_bytes };
            sum.drain_bytes +=
                if estimate_s > 0.0 { queue_bytes_s / estimate_s } else { drain_bytes };
            sum.queue_bytes_ns += queue_bytes_s * 1e9;
            for reason in 0..DropReason::ALL.len() {
                sum.dropped[reason] += f64::from(table.dropped[reason][row]) * share;
                sum.marked[reason] += f64::from(table.marked[reason][row]) * share;
            }
        }
        LinkIntervalStats { queueing_delay_mean_s: waited.value(), ..sum }
    }
}

/// Returns the rows of the intervals whose midpoint is in `from_s .. to_s`, in a table with
/// `per_interval` rows per interval.
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

/// Returns the lengths of the columns from which measures are computed.
fn flow_columns(table: &FlowTable) -> [usize; 16] {
    [
        table.sending_rate_bps.len(),
        table.received_packets.len(),
        table.one_way_delay_mean_s.len(),
        table.queueing_delay_mean_s.len(),
        table.responses.len(),
        table.response_time_mean_s.len(),
        table.throughput_bps.len(),
        table.goodput_bps.len(),
        table.rtt_mean_s.len(),
        table.rtt_samples.len(),
        table.segment_rtt_mean_s.len(),
        table.segment_rtt_samples.len(),
        table.cwnd_mean_bytes.len(),
        table.lived_s.len(),
        table.sent_packets.len(),
        table.retransmitted_packets.len(),
    ]
}

fn link_columns(table: &LinkTable) -> impl Iterator<Item = usize> {
    let others = [
        table.throughput_bps.len(),
        table.capacity_bps.len(),
        table.queue_length_mean_bytes.len(),
        table.queue_delay_estimate_mean_s.len(),
        table.sent_packets.len(),
        table.queueing_delay_mean_s.len(),
    ];
    others.into_iter().chain(table.dropped.iter().chain(&table.marked).map(Vec::len))
}

/// Weighted mean of the values that are present.
#[derive(Default)]
struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    fn add(&mut self, value: f64, weight: f64) {
        if weight > 0.0 && !value.is_nan() {
            self.sum += value * weight;
            self.weight += weight;
        }
    }

    fn value(&self) -> Option<f64> {
        ratio(self.sum, self.weight)
    }
}

/// Interval of one flow or link.
#[derive(Clone, Copy)]
struct Interval {
    row: usize,
    start_s: f64,
    end_s: f64,
}

/// Returns the intervals of the flow or link at `position` of `count`, from interval `first`.
fn intervals(
    end_s: &[f64],
    count: usize,
    position: usize,
    first: usize,
) -> impl Iterator<Item = Interval> {
    let row = |interval: usize| interval * count + position;
    let mut start_s = first.checked_sub(1).map_or(0.0, |before| end_s[row(before)]);
    (row(first)..end_s.len()).step_by(count.max(1)).map(move |row| {
        let interval = Interval { row, start_s, end_s: end_s[row] };
        start_s = interval.end_s;
        interval
    })
}

/// Returns the intervals that overlap a time range, with the length of the overlap.
fn inside(
    end_s: &[f64],
    count: usize,
    position: usize,
    (from_s, to_s): (f64, f64),
) -> impl Iterator<Item = (Interval, f64)> {
    let (mut first, mut after) = (0, end_s.len().checked_div(count).unwrap_or(0));
    while first < after {
        let middle = usize::midpoint(first, after);
        if end_s[middle * count] <= from_s { first = middle + 1 } else { after = middle }
    }
    intervals(end_s, count, position, first)
        .take_while(move |it| it.start_s < to_s)
        .map(move |it| (it, it.end_s.min(to_s) - it.start_s.max(from_s)))
}

/// Returns the time at which a growing amount is reached, by linear interpolation.
fn when(points: &[(f64, f64)], amount: f64) -> f64 {
    let after = points.partition_point(|point| point.1 < amount);
    let Some(&(end_s, end)) = points.get(after) else {
        return points.last().map_or(0.0, |point| point.0);
    };
    match after.checked_sub(1).map(|before| points[before]) {
        Some((start_s, start)) => start_s + (end_s - start_s) * (amount - start) / (end - start),
        None => end_s,
    }
}

fn time(s: f64) -> Time {
    Time::from_ns((s * 1e9).round() as u64)
}
