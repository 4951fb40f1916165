//! Adaptive streaming: what a viewer's player asks for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A video, kept in segments of equal length at several bitrates, and how a player watches it: it asks
/// for one segment after the other, in its own choice of bitrate, as long as its buffer has room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VideoSpec {
    /// Bitrates of the video, each larger than the one before.
    pub bitrates_bps: Vec<u64>,
    /// Playing time of a segment.
    pub segment_ns: u64,
    /// Segments of the video (absent: there is always another).
    pub segments: Option<u64>,
    /// By which share of its mean size a segment may be larger or smaller, all sizes in between
    /// being as likely. A scene that is hard to encode is so at every bitrate.
    pub variation: f64,
    /// How the player chooses.
    pub choice: VideoChoice,
    /// The player begins, or begins again, when so much is in its buffer.
    pub startup_ns: u64,
    /// It asks for no segment for which its buffer has no room.
    pub buffer_ns: u64,
}

/// How a player chooses the bitrate of the next segment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum VideoChoice {
    /// By what is in its buffer: BBA-0 (Huang et al., SIGCOMM 2014).
    Buffer {
        /// The lowest bitrate, up to here.
        reservoir_ns: u64,
        /// From there the bitrate grows with the buffer, until the highest is reached so much later.
        cushion_ns: u64,
    },
    /// By the throughput of earlier segments: their harmonic mean (Jiang et al., CoNEXT 2012).
    Throughput {
        /// Segments that count, the last ones.
        samples: u32,
        /// The share of that throughput which a bitrate may need.
        safety: f64,
    },
}
