//! The measures: what each is called, what it is, and how it is computed.
//!
//! Everything that shows, explains or estimates a measure reads it here. Words follow Turkovic,
//! Kuipers, Uhlig, "Interactions between Congestion Control Algorithms", TMA 2019. Every rate of a
//! stretch of time is over its whole length, so a flow that starts late or ends early has less. A
//! measure without data is absent, never zero.

mod arrived;
mod captured;
mod flow;
mod group;
mod link;
mod pings;
mod row;
mod run;
mod transfer;
mod video;
mod web;

pub use arrived::ArrivedSummary;
pub use captured::CapturedSummary;
pub use flow::FlowPhase;
pub use group::GroupPhase;
pub(crate) use group::{
    completion_mean, completion_rate_mean, quantile as completion_quantile,
    unfinished as unfinished_of,
};
pub use link::LinkPhase;
pub use row::{Asked, Compute, Measure, Place, Scope, Unit};
pub use run::{Fairness, Totals, jain};
pub(crate) use transfer::{completion, completion_rate, efficiency, estimate, unfinished};
pub use video::VideoSummary;
pub use web::WebSummary;

/// Every measure: of flows, of links, of runs, of transfers, of groups, of pings, of videos, of
/// browsers, of captures.
pub fn all() -> impl Iterator<Item = &'static Measure> {
    [
        flow::ROWS,
        link::ROWS,
        run::FAIRNESS,
        run::TOTALS,
        transfer::ROWS,
        group::PHASES,
        group::ROWS,
        arrived::ROWS,
        pings::ROWS,
        video::ROWS,
        web::ROWS,
        captured::ROWS,
    ]
    .into_iter()
    .flatten()
}

/// The measure of a name.
pub fn named(name: &str) -> Option<&'static Measure> {
    all().find(|measure| measure.name == name)
}
