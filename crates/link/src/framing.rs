//! Size of a packet on the wire of an access line: overhead per packet, a smallest size, and cells
//! or codewords (`sch_cake.c::cake_calc_overhead`).

use jostle_units::LINK_HEADER_BYTES;

/// Bytes of an ATM cell, and of its payload (ITU-T I.361).
const CELL_BYTES: u32 = 53;
const CELL_PAYLOAD_BYTES: u32 = 48;
/// Bytes in a codeword of PTM, without the byte that PTM adds (IEEE 802.3, 61.3.3).
const CODEWORD_BYTES: u32 = 64;

/// Cells or codewords into which a line divides its packets. The names are those of `tc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cells {
    /// None.
    #[default]
    None,
    /// ATM: the last cell of a packet is padded.
    Atm,
    /// PTM: one byte per 64 bytes or part of them. This is what CAKE counts. The encoding itself
    /// adds one byte per 64 bytes of the stream.
    Ptm,
}

impl Cells {
    /// Values of the parameter `atm`, in the order of the variants.
    pub(crate) const NAMES: &[&str] = &["noatm", "atm", "ptm"];

    pub(crate) fn of(name: &str) -> Self {
        match name {
            "atm" => Self::Atm,
            "ptm" => Self::Ptm,
            _ => Self::None,
        }
    }
}

/// Framing of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Bytes in addition to the IP packet. 14 is the Ethernet header, which all sizes include.
    pub overhead_bytes: i32,
    /// Smallest size, including the overhead.
    pub min_bytes: u32,
    /// Cells.
    pub cells: Cells,
}

impl Framing {
    /// The sizes of packets are those on the wire.
    pub const NONE: Self =
        Self { overhead_bytes: LINK_HEADER_BYTES as i32, min_bytes: 0, cells: Cells::None };

    /// Returns the size on the wire of a packet whose size includes the Ethernet header.
    #[inline]
    pub fn wire_bytes(&self, size_bytes: u32) -> u32 {
        let bytes =
            i64::from(size_bytes) - i64::from(LINK_HEADER_BYTES) + i64::from(self.overhead_bytes);
        let bytes = u32::try_from(bytes.max(i64::from(self.min_bytes))).unwrap_or(u32::MAX);
        match self.cells {
            Cells::None => bytes,
            Cells::Atm => bytes.div_ceil(CELL_PAYLOAD_BYTES).saturating_mul(CELL_BYTES),
            Cells::Ptm => bytes.saturating_add(bytes.div_ceil(CODEWORD_BYTES)),
        }
    }

    /// Returns the mean size on the wire of packets with this mean size.
    ///
    /// Packets whose mean is a whole number are taken to have one size. Otherwise their sizes
    /// differ, and the last cell or codeword is on average half full.
    pub fn mean_wire_bytes(&self, mean_bytes: f64) -> f64 {
        if mean_bytes.fract() == 0.0 {
            return f64::from(self.wire_bytes(mean_bytes as u32));
        }
        let bytes = mean_bytes - f64::from(LINK_HEADER_BYTES) + f64::from(self.overhead_bytes);
        let bytes = bytes.max(f64::from(self.min_bytes));
        let padded = |payload_bytes: u32| bytes + f64::from(payload_bytes - 1) / 2.0;
        match self.cells {
            Cells::None => bytes,
            Cells::Atm => {
                padded(CELL_PAYLOAD_BYTES) * f64::from(CELL_BYTES) / f64::from(CELL_PAYLOAD_BYTES)
            }
            Cells::Ptm => bytes + padded(CODEWORD_BYTES) / f64::from(CODEWORD_BYTES),
        }
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::FULL_PACKET_BYTES;

    use super::*;

    /// A full packet and a TCP ACK of 52 bytes on lines that `tc-cake(8)` describes.
    #[test]
    fn packets_have_the_sizes_of_known_lines() {
        for (overhead_bytes, min_bytes, cells, full_bytes, ack_bytes) in [
            // pppoe-llcsnap: 1540 bytes in 33 cells, 92 bytes in 2.
            (40, 0, Cells::Atm, 1_749, 106),
            // pppoa-vcmux: 1510 bytes in 32 cells, 62 in 2.
            (10, 0, Cells::Atm, 1_696, 106),
            // bridged-ptm: 1522 and 24 codewords, 74 and 2.
            (22, 0, Cells::Ptm, 1_546, 76),
            // docsis, ethernet.
            (18, 64, Cells::None, 1_518, 70),
            (38, 84, Cells::None, 1_538, 90),
            (-64, 0, Cells::None, 1_436, 0),
        ] {
            let framing = Framing { overhead_bytes, min_bytes, cells };
            assert_eq!(framing.wire_bytes(FULL_PACKET_BYTES), full_bytes);
            assert_eq!(framing.wire_bytes(66), ack_bytes);
        }
        assert_eq!(Framing::NONE.wire_bytes(FULL_PACKET_BYTES), FULL_PACKET_BYTES);
    }

    #[test]
    fn a_mean_of_several_sizes_has_half_a_cell_of_padding() {
        let framing = Framing { overhead_bytes: 40, min_bytes: 0, cells: Cells::Atm };
        assert_eq!(framing.mean_wire_bytes(1_514.0), 1_749.0);
        let sizes = 66..1_514;
        let total: u64 = sizes.clone().map(|size| u64::from(framing.wire_bytes(size))).sum();
        let mean = total as f64 / sizes.len() as f64;
        let estimate = framing.mean_wire_bytes(789.5);
        assert!((estimate / mean - 1.0).abs() < 0.002, "{estimate} {mean}");
    }
}
