//! The parts of QUIC packets that are not encrypted: their types and sizes.

/// Version 2 has other numbers of types (RFC 9369 §3.2).
const VERSION_2: u32 = 0x6b33_43cf;
const LONG_HEADER: u8 = 0x80;

/// QUIC packets of a datagram, each with its qlog type and its size.
pub(crate) struct QuicPackets<'a>(Option<&'a [u8]>);

impl<'a> QuicPackets<'a> {
    pub fn new(datagram: &'a [u8]) -> Self {
        Self(Some(datagram))
    }
}

impl Iterator for QuicPackets<'_> {
    type Item = (&'static str, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.0.take().filter(|rest| !rest.is_empty())?;
        let (kind, bytes) = read(rest).unwrap_or(("unknown", rest.len()));
        self.0 = rest.get(bytes..);
        Some((kind, bytes))
    }
}

/// Returns the type and size of the first packet. `None` if it is not a QUIC packet.
fn read(datagram: &[u8]) -> Option<(&'static str, usize)> {
    let first = *datagram.first()?;
    if first & LONG_HEADER == 0 {
        // RFC 9000 §17.3: without a length, so it is the last packet of the datagram. The fixed bit
        // may be 0 (RFC 9287 §3.1).
        return Some(("1RTT", datagram.len()));
    }
    let mut reader = Reader(&datagram[1..]);
    let version = u32::from_be_bytes(reader.take(4)?.try_into().ok()?);
    for _ in 0..2 {
        let length = reader.take(1)?[0];
        reader.take(length.into())?;
    }
    if version == 0 {
        return Some(("version_negotiation", datagram.len()));
    }
    let kind = (first >> 4) & 3;
    match if version == VERSION_2 { kind.wrapping_sub(1) & 3 } else { kind } {
        0 => {
            let token_bytes = reader.varint()?;
            reader.take(token_bytes)?;
            Some(("initial", reader.packet_bytes(datagram)?))
        }
        1 => Some(("0RTT", reader.packet_bytes(datagram)?)),
        2 => Some(("handshake", reader.packet_bytes(datagram)?)),
        _ => Some(("retry", datagram.len())),
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads an integer of variable length (RFC 9000 §16).
    fn varint(&mut self) -> Option<usize> {
        let first = *self.0.first()?;
        let bytes = self.take(1 << (first >> 6))?;
        let value = bytes.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
        usize::try_from(value & (u64::MAX >> (66 - 8 * bytes.len()))).ok()
    }

    /// Reads the length of the rest of a packet, and returns the size of the packet.
    fn packet_bytes(&mut self, datagram: &[u8]) -> Option<usize> {
        let length = self.varint()?;
        self.take(length)?;
        Some(datagram.len() - self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(datagram: &[u8]) -> Vec<(&'static str, usize)> {
        QuicPackets::new(datagram).collect()
    }

    /// A packet with a long header, connection IDs of 4 and 0 bytes, and this many bytes after its
    /// length.
    fn long(kind: u8, version: u32, token: &[u8], bytes: usize) -> Vec<u8> {
        let mut packet = vec![0xc0 | kind << 4];
        packet.extend(version.to_be_bytes());
        packet.extend([4, 1, 2, 3, 4, 0]);
        packet.extend(token);
        packet.extend((0x4000 | bytes as u16).to_be_bytes());
        packet.resize(packet.len() + bytes, 0xff);
        packet
    }

    #[test]
    fn coalesced_packets_are_separate() {
        let mut datagram = long(0, 1, &[2, 8, 8], 100);
        datagram.extend(long(2, 1, &[], 300));
        datagram.extend([0x40; 21]);
        assert_eq!(packets(&datagram), [("initial", 116), ("handshake", 313), ("1RTT", 21)]);
    }

    #[test]
    fn version_2_has_other_numbers() {
        let types = |kind, token: &[u8]| packets(&long(kind, VERSION_2, token, 20))[0].0;
        assert_eq!(types(1, &[0]), "initial");
        assert_eq!(types(2, &[]), "0RTT");
        assert_eq!(types(3, &[]), "handshake");
        assert_eq!(types(0, &[]), "retry");
        assert_eq!(packets(&long(0, 0, &[], 8)), [("version_negotiation", 21)]);
    }

    #[test]
    fn damaged_datagrams_have_one_unknown_packet() {
        let whole = long(0, 1, &[0], 100);
        for bytes in 1..whole.len() {
            assert_eq!(packets(&whole[..bytes]), [("unknown", bytes)]);
        }
        assert_eq!(packets(&[]), []);
        // A length of 2⁶² − 1.
        let mut long = whole[..11].to_vec();
        long.extend([0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(packets(&long), [("unknown", 20)]);
    }
}
