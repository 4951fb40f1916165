//! Captures of packets that somebody took, measured as runs are.
//!
//! A file is read twice, in a stream: first to find its connections, then to follow the largest of them,
//! packet by packet, and to tell the same [`Recorder`](jostle_record::Recorder) that measures runs what
//! happened. Memory depends on the number of connections and on what is in flight, not on the length
//! of the file. What leaves a [`Recorder`](jostle_record::Recorder) is a
//! [`RunRecord`](jostle_record::RunRecord): everything that shows runs shows captures.

mod closely;
mod connections;
mod diagram;
mod error;
mod file;
mod measure;
mod outstanding;
mod packet;
mod plan;
mod ranges;
mod receiving;
mod sending;
mod sequence;
mod survey;

pub use closely::{diagrams, look_closely};
pub use diagram::{AnswerColumns, Diagram, Kind, PacketColumns, SackColumns, Wanted};
pub use error::Error;
pub use measure::{Measurement, analyze, look};

/// What is to be measured.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Most flows of a measurement: the largest ones.
    pub flows: usize,
    /// Bin of the series; longer if there were too many of them.
    pub interval_ns: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { flows: 20, interval_ns: 100_000_000 }
    }
}
