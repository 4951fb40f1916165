//! Adaptive video streaming: the requests of a player.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A video with segments of equal duration at several bitrates, and its player. The player requests
/// one segment after the other at a bitrate of its choice, while its buffer has room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VideoSpec {
    /// Bitrates of the video, in increasing order.
    pub bitrates_bps: Vec<u64>,
    /// Duration of a segment.
    pub segment_ns: u64,
    /// Number of segments (absent: unlimited).
    pub segments: Option<u64>,
    /// Maximum relative deviation of a segment's size from its mean, uniformly distributed. A scene
    /// has the same deviation at every bitrate.
    pub variation: f64,
    /// Bitrate selection of the player.
    pub choice: VideoChoice,
    /// Buffered duration at which playback starts, or resumes after a stall.
    pub startup_ns: u64,
    /// Size of the buffer. The player requests a segment only if the buffer has room for it.
    pub buffer_ns: u64,
}

/// Selection of the bitrate of the next segment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum VideoChoice {
    /// Buffer-based: BBA-0 (Huang et al., SIGCOMM 2014).
    Buffer {
        /// Buffered duration up to which the lowest bitrate is selected.
        reservoir_ns: u64,
        /// Buffered duration above the reservoir at which the highest bitrate is reached.
        cushion_ns: u64,
    },
    /// Throughput-based: harmonic mean over earlier segments (Jiang et al., CoNEXT 2012).
    Throughput {
        /// Number of most recent segments that count.
        samples: u32,
        /// Fraction of that throughput that a bitrate may use.
        safety: f64,
    },
}
