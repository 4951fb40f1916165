//! Size of a packet on the wire of an access line: overhead per packet, a smallest size, and cells
//! or codewords (`sch_cake.c::cake_calc_overhead`).

use jostle_units::{FULL_PACKET_BYTES, HEADER_BYTES, LINK_HEADER_BYTES};

/// Bytes of an ATM cell, and of its payload (ITU-T I.361).
const CELL_BYTES: u32 = 53;
const CELL_PAYLOAD_BYTES: u32 = 48;
/// Bytes in a codeword of PTM, without the byte that PTM adds (IEEE 802.3, 61.3.3).
const CODEWORD_BYTES: u32 = 64;

/// Cells or codewords into which a line divides its packets. Names as in `tc`.
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
    /// Packets whose mean is a whole number are taken to have one size, others to be full-sized
    /// packets and ACKs. Traffic of other sizes differs by a part of a cell.
    pub fn mean_wire_bytes(&self, mean_bytes: f64) -> f64 {
        let wire_bytes = |size_bytes: u32| f64::from(self.wire_bytes(size_bytes));
        if mean_bytes.fract() == 0.0 {
            return wire_bytes(mean_bytes as u32);
        }
        let (ack_bytes, full_bytes) = (f64::from(HEADER_BYTES), f64::from(FULL_PACKET_BYTES));
        let share = (mean_bytes - ack_bytes) / (full_bytes - ack_bytes);
        if !(0.0..=1.0).contains(&share) {
            return wire_bytes(mean_bytes.ceil() as u32);
        }
        share * wire_bytes(FULL_PACKET_BYTES) + (1.0 - share) * wire_bytes(HEADER_BYTES)
    }
}

#[cfg(test)]
mod tests {
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
    fn a_mean_is_of_one_size_or_of_data_and_acks() {
        let framing = Framing { overhead_bytes: 40, min_bytes: 0, cells: Cells::Atm };
        assert_eq!(framing.mean_wire_bytes(1_514.0), 1_749.0);
        assert_eq!(framing.mean_wire_bytes(800.0), 954.0);
        let mean_bytes = (2.0 * 1_514.0 + 66.0) / 3.0;
        let expected = (2.0 * 1_749.0 + 106.0) / 3.0;
        assert!((framing.mean_wire_bytes(mean_bytes) - expected).abs() < 1e-9);
        // Calls of 214 bytes, one of ten packets, instead of ACKs.
        let estimate = framing.mean_wire_bytes(0.9 * 1_514.0 + 0.1 * 214.0 + 0.01);
        let exact = 0.9 * 1_749.0 + 0.1 * 265.0;
        assert!((estimate / exact - 1.0).abs() < 0.001, "{estimate} {exact}");
    }
}
