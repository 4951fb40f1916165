//! What goes into a run and what comes out of it.
//!
//! [`RunSpec`] describes ONE run, fully resolved: base units, no defaults left. Its JSON Schema is
//! the contract with everything that plans runs. A simulator tells a [`Sink`] what happens; the
//! [`Recorder`] is the sink that measures, and [`RunRecord`] is what it leaves behind.

mod arrivals;
mod build;
pub mod capture;
mod captured;
mod connections;
mod datagram_meter;
mod e_model;
mod first_sent;
mod flow_meter;
mod flow_streams;
mod groups;
mod histogram;
mod impairments;
mod link_meter;
pub mod measures;
mod page;
mod ping_meter;
mod playback;
mod quantity;
mod recorder;
mod room;
mod run_record;
mod samples;
mod series;
mod sink;
mod spec;
mod stretch;
mod summary;
mod tables;
mod timeline;
mod transfer;
mod validate;

pub use arrivals::{Arrivals, listed_bytes, nth_connection, rate_per_s};
pub use captured::Captured;
pub use flow_streams::FlowStreams;
pub use histogram::Histogram;
pub use impairments::{DrawnImpairments, LossState};
pub use measures::{
    CapturedSummary, Fairness, FlowPhase, GroupPhase, LinkPhase, Totals, VideoSummary, WebSummary,
    jain,
};
pub use page::{Page, PageLoads, Pages};
pub use ping_meter::Pings;
pub use playback::{Playback, Watched};
pub use quantity::{Sampler, Sizes, responses};
pub use recorder::Recorder;
pub use room::{NoRoom, Shortage};
pub use run_record::RunRecord;
pub use samples::{SampledFlow, SampledLink, Samples};
pub use series::{Facts, Series};
pub use sink::{AckRow, Datagram, End, FlowState, Header, HeaderKind, Nothing, Sink};
pub use spec::*;
pub use stretch::{FlowStretch, FrameStretch, GroupStretch, LinkStretch, Rates, Stretch};
pub use summary::{ByPhase, FlowSummary, GroupSummary, LinkSummary, Summary};
pub use tables::{AckTable, FlowTable, InternalTable, LinkTable, Names, TransferTable};
pub use transfer::{Ideal, Transfer, Transfers};
pub use validate::SpecError;
