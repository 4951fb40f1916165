//! Measures of the transfers of multi-connection flows over the complete run.

use super::definition::{
    Measure, MeasureFunction, NUMBER, RATE, Scope, SummaryLocation, TIME, TRANSFERS,
};
use super::group::ranked;
use super::transfer::mean;
use crate::transfer_stats::{GroupTransfers, SizeClass, TransfersBySize};

const ALL: usize = 0;
const SMALL: usize = 1;
const MEDIUM: usize = 2;
const LARGE: usize = 3;

/// Defines the struct in the summary of a group and the registry entries: key, name, title, unit,
/// definition, and the computation from the transfers.
macro_rules! arrived {
    ($($key:ident, $name:literal, $title:literal, $unit:ident, $definition:literal, $compute:expr;)+) => {
        /// Transfers of the multi-connection flows of a group.
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        pub struct ArrivedSummary {
            $(#[doc = $definition] pub $key: Option<f64>,)+
        }

        impl ArrivedSummary {
            pub(crate) fn of(all: &TransfersBySize) -> Self {
                Self {$(
                    $key: {
                        let compute: fn(&TransfersBySize) -> Option<f64> = $compute;
                        compute(all)
                    },
                )+}
            }
        }

        pub(super) const ROWS: &[Measure] = &[$(
            Measure {
                name: $name,
                title: $title,
                key: stringify!($key),
                unit: $unit,
                scope: Scope::Group,
                place: SummaryLocation::Group,
                any_window: false,
                column: None,
                definition: $definition,
                compute: MeasureFunction::Group(|all: &GroupTransfers| {
                    let compute: fn(&TransfersBySize) -> Option<f64> = $compute;
                    compute(all.arrived.as_ref()?)
                }),
            },
        )+];
    };
}

arrived! {
    transfers, "transfers", "transfers", TRANSFERS,
        "Transfers that began, of a flow that is many connections.",
        |all| Some(all.classes[ALL].began as f64);
    transfers_finished, "transfers_finished", "finished transfers", TRANSFERS,
        "Transfers that were over by the end of the run.",
        |all| Some(all.classes[ALL].completions_s.len() as f64);
    offered_rate_bps, "offered_rate", "offered rate", RATE,
        "Payload of all transfers that began ÷ the length of the run; the part that was delivered is the goodput.",
        |all| Some(all.classes[ALL].bytes as f64 * 8.0 / all.duration_s);
    slowdown_mean, "slowdown", "mean slowdown", NUMBER,
        "Mean over the transfers that were over of completion time ÷ what it would be on an empty path: the handshake (none with 0-RTT), all packets with their headers at the rate of the slowest link, the propagation delay, and, except for responses, the propagation delay of the last ACK.",
        |all| slowdown(&all.classes[ALL]);
    slowdown_p50, "slowdown_p50", "median slowdown", NUMBER,
        "Median of the slowdown of transfers; one that was not over counts as longer than all others.",
        |all| slowdown_quantile(&all.classes[ALL], 0.5);
    slowdown_p95, "slowdown_p95", "p95 slowdown", NUMBER,
        "95th percentile of the slowdown of transfers; as the median.",
        |all| slowdown_quantile(&all.classes[ALL], 0.95);
    slowdown_p99, "slowdown_p99", "p99 slowdown", NUMBER,
        "99th percentile of the slowdown of transfers; as the median.",
        |all| slowdown_quantile(&all.classes[ALL], 0.99);
    small_transfers, "small_transfers", "small transfers", TRANSFERS,
        "Transfers of up to 100 kB that began.",
        |all| Some(all.classes[SMALL].began as f64);
    small_completion_time_mean_s, "small_completion_time", "mean completion time of small transfers", TIME,
        "Mean completion time of transfers of up to 100 kB that were over.",
        |all| completion(&all.classes[SMALL]);
    small_completion_time_p99_s, "small_completion_time_p99", "p99 completion time of small transfers", TIME,
        "99th percentile of the completion time of transfers of up to 100 kB; one that was not over counts as longest.",
        |all| completion_quantile(&all.classes[SMALL], 0.99);
    small_slowdown_mean, "small_slowdown", "mean slowdown of small transfers", NUMBER,
        "Mean slowdown of transfers of up to 100 kB that were over.",
        |all| slowdown(&all.classes[SMALL]);
    small_slowdown_p99, "small_slowdown_p99", "p99 slowdown of small transfers", NUMBER,
        "99th percentile of the slowdown of transfers of up to 100 kB; one that was not over counts as longest.",
        |all| slowdown_quantile(&all.classes[SMALL], 0.99);
    medium_transfers, "medium_transfers", "medium transfers", TRANSFERS,
        "Transfers of more than 100 kB and up to 10 MB that began.",
        |all| Some(all.classes[MEDIUM].began as f64);
    medium_completion_time_mean_s, "medium_completion_time", "mean completion time of medium transfers", TIME,
        "Mean completion time of transfers of more than 100 kB and up to 10 MB that were over.",
        |all| completion(&all.classes[MEDIUM]);
    medium_slowdown_mean, "medium_slowdown", "mean slowdown of medium transfers", NUMBER,
        "Mean slowdown of transfers of more than 100 kB and up to 10 MB that were over.",
        |all| slowdown(&all.classes[MEDIUM]);
    large_transfers, "large_transfers", "large transfers", TRANSFERS,
        "Transfers of more than 10 MB that began.",
        |all| Some(all.classes[LARGE].began as f64);
    large_completion_time_mean_s, "large_completion_time", "mean completion time of large transfers", TIME,
        "Mean completion time of transfers of more than 10 MB that were over.",
        |all| completion(&all.classes[LARGE]);
    large_slowdown_mean, "large_slowdown", "mean slowdown of large transfers", NUMBER,
        "Mean slowdown of transfers of more than 10 MB that were over.",
        |all| slowdown(&all.classes[LARGE]);
}

fn completion(class: &SizeClass) -> Option<f64> {
    mean(class.completions_s.iter().copied())
}

fn slowdown(class: &SizeClass) -> Option<f64> {
    mean(class.slowdowns.iter().copied())
}

fn completion_quantile(class: &SizeClass, p: f64) -> Option<f64> {
    ranked(&class.completions_s, class.unfinished(), p)
}

fn slowdown_quantile(class: &SizeClass, p: f64) -> Option<f64> {
    // Without a constant rate no transfer has a slowdown, complete or not.
    let known = !class.slowdowns.is_empty();
    known.then(|| ranked(&class.slowdowns, class.unfinished(), p)).flatten()
}
