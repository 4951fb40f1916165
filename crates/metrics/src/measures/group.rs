//! Measures of a group: the flows that one scenario entry created.

use super::definition::{
    DisplayUnit, FLOWS, Measure, MeasureFunction, RATE, Scope, SummaryLocation, TIME,
};
use super::transfer::mean;
use crate::interval_stats::GroupIntervalStats;
use crate::transfer_stats::GroupTransfers;

super::definition::measures! {
    /// The measures of a group in a phase.
    GroupPhase, rows PHASES, Group in Phases;
    of GroupIntervalStats, at |all, at| &all.groups[at];

    /// Mean of the response times of all flows of a group.
    response_time_mean_s: Option<f64>, "group_response_time", "response time", ROUND_TRIP, any;
    |group, _| group.response_time_mean_s;

    /// Median of the response times of all flows of a group, with an error below 1.6 %.
    response_time_p50_s: Option<f64>, "group_response_time_p50", "median response time", ROUND_TRIP, phase;
    |group, _| group.response_time_p50_s;

    /// 95th percentile of the response times of all flows of a group, with an error below 1.6 %.
    response_time_p95_s: Option<f64>, "group_response_time_p95", "p95 response time",
        ROUND_TRIP, phase;
    |group, _| group.response_time_p95_s;

    /// 99th percentile of the response times of all flows of a group, with an error below 1.6 %.
    response_time_p99_s: Option<f64>, "group_response_time_p99", "p99 response time",
        ROUND_TRIP, phase;
    |group, _| group.response_time_p99_s;

    /// Complete responses of all flows of a group; absent if no flow has requests.
    responses: Option<u64>, "group_responses", "responses", NUMBER, any;
    |group, _| group.responds.then_some(group.responses);
}

const fn row(
    name: &'static str,
    title: &'static str,
    key: &'static str,
    unit: DisplayUnit,
    definition: &'static str,
    compute: fn(&GroupTransfers) -> Option<f64>,
) -> Measure {
    Measure {
        name,
        title,
        key,
        unit,
        scope: Scope::Group,
        place: SummaryLocation::Group,
        any_window: false,
        column: None,
        definition,
        compute: MeasureFunction::Group(compute),
    }
}

pub(super) const ROWS: &[Measure] = &[
    row(
        "group_completion_time",
        "mean flow completion time",
        "completion_time_mean_s",
        TIME,
        "Mean completion time of those flows of a group that were complete; how many were not says
        `group_unfinished`.",
        completion_mean,
    ),
    row(
        "completion_time_p50",
        "median flow completion time",
        "completion_time_p50_s",
        TIME,
        "Median completion time of a group's flows. One that was not complete counts as longer than
        all others: absent where the median falls among them.",
        |all| quantile(all, 0.5),
    ),
    row(
        "completion_time_p95",
        "p95 flow completion time",
        "completion_time_p95_s",
        TIME,
        "95th percentile of the completion times of a group's flows; as the median.",
        |all| quantile(all, 0.95),
    ),
    row(
        "completion_time_p99",
        "p99 flow completion time",
        "completion_time_p99_s",
        TIME,
        "99th percentile of the completion times of a group's flows; as the median.",
        |all| quantile(all, 0.99),
    ),
    row(
        "group_completion_rate",
        "mean completion rate",
        "completion_rate_mean_bps",
        RATE,
        "Mean of payload ÷ completion time over those flows of a group that were complete.",
        completion_rate_mean,
    ),
    row(
        "group_unfinished",
        "unfinished flows",
        "unfinished",
        FLOWS,
        "Flows of a group that should have ended by themselves and were not complete at the end of
        the run; absent of a group whose flows never end by themselves.",
        unfinished,
    ),
];

pub(crate) fn completion_mean(all: &GroupTransfers) -> Option<f64> {
    mean(all.completions_s.iter().copied())
}

pub(crate) fn completion_rate_mean(all: &GroupTransfers) -> Option<f64> {
    let count = all.completions_s.len();
    (count > 0 && !all.rates_bps.is_nan()).then(|| all.rates_bps / count as f64)
}

pub(crate) fn unfinished(all: &GroupTransfers) -> Option<f64> {
    let ends = !all.completions_s.is_empty() || all.unfinished > 0;
    ends.then_some(all.unfinished as f64)
}

/// Returns the quantile `p` of the completion times, interpolated linearly between the values next
/// to rank p·(n − 1), like the default of NumPy. Unfinished transfers rank above all complete ones.
pub(crate) fn quantile(all: &GroupTransfers, p: f64) -> Option<f64> {
    ranked(&all.completions_s, all.unfinished, p)
}

/// Returns the quantile `p` of the sorted values `known` and `larger` further values above all of
/// them. `None` if the quantile is not among the known values.
pub(super) fn ranked(known: &[f64], larger: u64, p: f64) -> Option<f64> {
    let last = (known.len() as u64 + larger).checked_sub(1)?;
    let rank = p * last as f64;
    let below = rank as usize;
    let low = *known.get(below)?;
    let share = rank - below as f64;
    if share == 0.0 {
        return Some(low);
    }
    Some(low + (known.get(below + 1)? - low) * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(completions_s: &[f64], unfinished: u64) -> GroupTransfers {
        GroupTransfers {
            completions_s: completions_s.to_vec(),
            unfinished,
            ..GroupTransfers::default()
        }
    }

    #[test]
    fn percentiles_lie_between_values() {
        let all = of(&[1.0, 2.0, 4.0, 8.0, 16.0], 0);
        assert_eq!(quantile(&all, 0.5), Some(4.0));
        assert_eq!(quantile(&all, 0.875), Some(12.0));
        assert_eq!((completion_mean(&all), unfinished(&all)), (Some(6.2), Some(0.0)));
        assert_eq!(quantile(&of(&[3.0], 0), 0.99), Some(3.0));
    }

    #[test]
    fn what_is_unfinished_counts_as_longest() {
        let all = of(&[1.0, 2.0, 3.0], 2);
        assert_eq!(quantile(&all, 0.5), Some(3.0));
        assert_eq!(quantile(&all, 0.95), None);
        assert_eq!(unfinished(&all), Some(2.0));
        let none = of(&[], 0);
        assert_eq!(
            (quantile(&none, 0.5), completion_mean(&none), unfinished(&none)),
            (None, None, None)
        );
        let late = of(&[], 3);
        assert_eq!((quantile(&late, 0.5), unfinished(&late)), (None, Some(3.0)));
    }
}
