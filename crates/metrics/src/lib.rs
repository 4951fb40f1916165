//! Recording of a run: events, meters, measures and time series.
//!
//! A simulator reports events to an [`EventSink`]. The [`Recorder`] is the sink that measures; its
//! result is a [`RunRecord`].

mod capture_counters;
mod contest;
mod datagram_meter;
mod departures;
mod e_model;
mod event_sink;
mod fair_bins;
mod first_transmission;
mod flow_groups;
mod flow_meter;
mod histogram;
mod interval_stats;
mod kernel_samples;
mod kernel_services;
mod link_meter;
pub mod measures;
mod memory_limit;
mod ping_meter;
mod recorder;
mod run_record;
mod summary;
mod tables;
mod time_series;
mod timeline;
mod transfer_log;
mod transfer_stats;

pub use capture_counters::CaptureCounters;
pub use contest::contest_names;
pub use event_sink::{
    AckEvent, Datagram, EndpointRole, EventSink, FlowState, HeaderKind, NullSink, SegmentHeader,
};
pub use fair_bins::FairBins;
pub use histogram::Histogram;
pub use interval_stats::{
    FlowIntervalStats, FrameIntervalStats, GroupIntervalStats, IntervalStats, LinkIntervalStats,
};
pub use kernel_samples::{KernelSamples, SampledFlow, SampledLink};
pub use measures::{
    CapturedSummary, Fairness, FlowPhase, GroupPhase, LinkPhase, Totals, VideoSummary, WebSummary,
    jain,
};
pub use memory_limit::{MemoryShortage, OutOfMemory};
pub use ping_meter::Pings;
pub use recorder::Recorder;
pub use run_record::RunRecord;
pub use summary::{ByPhase, FlowSummary, GroupSummary, LinkSummary, Summary};
pub use tables::{
    AckTable, ControllerStateTable, FlowTable, LinkTable, StringTable, TransferTable,
};
pub use time_series::{FlowFacts, TimeSeries};
pub use transfer_stats::{GroupTransfers, IdealTransfer, TransferOutcome};
