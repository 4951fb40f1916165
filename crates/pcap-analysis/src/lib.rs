//! Analysis of packet captures, with the same measures as for runs.
//!
//! A file is read twice as a stream. The first pass finds its connections. The second pass follows
//! the largest ones packet by packet and reports to the [`Recorder`](jostle_metrics::Recorder) that
//! also measures runs. Memory depends on the number of connections and on the data in flight, not
//! on the length of the file. The result is a [`RunRecord`](jostle_metrics::RunRecord), so all code
//! that shows runs can show captures.

mod byte_ranges;
mod capture_file;
mod connection_scan;
mod connection_table;
mod containers;
mod copies;
mod encapsulation;
mod error;
mod flow_packets;
mod flow_selection;
mod formats;
mod fragments;
mod handshake_times;
mod measurement;
mod netmon;
mod packet;
mod packet_stream;
mod read_most;
mod receiver;
mod scoreboard;
mod sender;
mod sequence_number;
mod time_sequence;
mod transit;

pub use error::Error;
pub use flow_packets::{diagrams, extract_flow_packets};
pub use formats::formats;
pub use measurement::{Measurement, analyze, look};
pub use time_sequence::{
    AckColumns, Kind, PacketColumns, SackColumns, TimeSequence, TimeSequenceOptions,
};

/// Options of the analysis.
#[derive(Clone, Copy, Debug)]
pub struct AnalysisOptions {
    /// Maximum number of flows. The largest ones are measured.
    pub flows: usize,
    /// Sampling interval of the time series. It is lengthened if the series would be too long.
    pub interval_ns: u64,
}

impl Default for AnalysisOptions {
    fn default() -> Self {
        Self { flows: 20, interval_ns: 100_000_000 }
    }
}
