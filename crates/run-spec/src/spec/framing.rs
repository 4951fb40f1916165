//! Framing of packets on the wire.

use jostle_link::{Cells, Framing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
