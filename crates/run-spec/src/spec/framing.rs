//! Framing of packets on the wire, and frames of several packets.

use jostle_link::{Cells, Framing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Quantile;

/// Sizes of packets on the wire of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FramingSpec {
    /// Bytes in addition to the IP packet.
    pub overhead_bytes: i32,
    /// Smallest size, including the overhead.
    pub mpu_bytes: u32,
    /// Cells or codewords into which the line divides a packet with its overhead.
    pub cells: CellsSpec,
}

/// Cells of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellsSpec {
    /// None.
    None,
    /// ATM: cells of 53 bytes with a payload of 48 bytes.
    Atm,
    /// PTM: one byte per 64 bytes or part of them.
    Ptm,
}

/// Frame aggregation: packets that a link sends together, after waiting for the medium.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FramesSpec {
    /// Maximum packets per frame.
    pub packets: u32,
    /// Maximum bytes per frame; a frame has at least one packet.
    pub bytes: u64,
    /// Waiting time for the medium before each frame, as points of its quantile function, drawn for
    /// each frame.
    pub contention: Vec<Quantile>,
}

impl From<FramingSpec> for Framing {
    fn from(spec: FramingSpec) -> Self {
        let FramingSpec { overhead_bytes, mpu_bytes: min_bytes, cells } = spec;
        let cells = match cells {
            CellsSpec::None => Cells::None,
            CellsSpec::Atm => Cells::Atm,
            CellsSpec::Ptm => Cells::Ptm,
        };
        Self { overhead_bytes, min_bytes, cells }
    }
}
