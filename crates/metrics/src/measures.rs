//! Definitions of all measures: name, meaning and computation.
//!
//! Tables, help texts and estimates read the definitions here. Terms follow Turkovic, Kuipers,
//! Uhlig, "Interactions between Congestion Control Algorithms", TMA 2019. A rate in an interval is
//! averaged over the complete interval, so a flow that starts late or ends early has a lower rate.
//! A measure without data is absent, never zero.

mod capture;
mod definition;
mod flow;
mod group;
mod link;
mod pings;
mod run;
mod transfer;
mod transfers_by_size;
mod video;
mod web;

pub use capture::CapturedSummary;
pub use definition::{
    DisplayUnit, Measure, MeasureArguments, MeasureFunction, Scope, SummaryLocation,
};
pub use flow::FlowPhase;
pub use group::GroupPhase;
pub(crate) use group::{
    completion_mean, completion_rate_mean, quantile as completion_quantile,
    unfinished as unfinished_of,
};
pub use link::LinkPhase;
pub(crate) use pings::lost as pings_lost;
pub use run::{Fairness, Totals, jain};
pub(crate) use transfer::{completion, completion_rate, efficiency, estimate, unfinished};
pub use transfers_by_size::ArrivedSummary;
pub use video::VideoSummary;
pub use web::WebSummary;

/// Returns all measures: of flows, links, runs, transfers, groups, pings, videos, browsers and
/// captures.
pub fn all() -> impl Iterator<Item = &'static Measure> {
    [
        flow::ROWS,
        link::ROWS,
        run::FAIRNESS,
        run::TOTALS,
        transfer::ROWS,
        group::PHASES,
        group::ROWS,
        transfers_by_size::ROWS,
        pings::ROWS,
        video::ROWS,
        web::ROWS,
        capture::ROWS,
    ]
    .into_iter()
    .flatten()
}

/// Returns the measure with this name.
pub fn named(name: &str) -> Option<&'static Measure> {
    all().find(|measure| measure.name == name)
}
