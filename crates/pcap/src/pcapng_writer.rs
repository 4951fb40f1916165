//! Writer for pcapng files with one interface (draft-ietf-opsawg-pcapng): section header, interface
//! description, packets, decryption secrets and interface statistics.

use std::io::{self, Write};
use std::net::IpAddr;

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 10;

/// Secrets Type of the Decryption Secrets Block: "TLS Key Log".
const TLS_KEY_LOG: u32 = 0x544c_534b;

const LINKTYPE_ETHERNET: u16 = 1;
/// `if_tsresol` for 10⁻⁹ s.
const NANOSECONDS: u8 = 9;

/// Option codes. Codes from 2 on depend on the kind of block.
mod option {
    pub const END: u16 = 0;
    pub const COMMENT: u16 = 1;
    pub const SHB_OS: u16 = 3;
    pub const SHB_USERAPPL: u16 = 4;
    pub const IF_NAME: u16 = 2;
    pub const IF_IPV4ADDR: u16 = 4;
    pub const IF_IPV6ADDR: u16 = 5;
    pub const IF_TSRESOL: u16 = 9;
    pub const ISB_IFRECV: u16 = 4;
    pub const ISB_IFDROP: u16 = 5;
}

/// Contents of the section header.
pub(super) struct Section<'a> {
    pub comment: &'a str,
    /// System that processed the packets.
    pub system: &'a str,
    pub program: &'a str,
}

/// Interface at which the packets were captured.
pub(super) struct Interface<'a> {
    pub name: &'a str,
    pub address: IpAddr,
    /// Snap length.
    pub snap_bytes: u32,
}

/// A capture file with the packets of one interface.
pub(super) struct Pcapng<W: Write> {
    out: W,
    /// Body of the current block; reusable buffer.
    body: Vec<u8>,
}

impl<W: Write> Pcapng<W> {
    /// Creates a file with its section header and interface description.
    pub fn begin(out: W, section: &Section<'_>, interface: &Interface<'_>) -> io::Result<Self> {
        let mut file = Self { out, body: Vec::with_capacity(512) };
        file.put_u32(BYTE_ORDER_MAGIC);
        file.put_u16(1);
        file.put_u16(0);
        // "Section Length: … If the Section Length is −1, this means that the size of the section
        // is not specified".
        file.put_u64(u64::MAX);
        file.put_option(option::COMMENT, section.comment.as_bytes());
        file.put_option(option::SHB_OS, section.system.as_bytes());
        file.put_option(option::SHB_USERAPPL, section.program.as_bytes());
        file.put_option(option::END, &[]);
        file.end_block(SECTION_HEADER)?;

        file.put_u16(LINKTYPE_ETHERNET);
        file.put_u16(0);
        file.put_u32(interface.snap_bytes);
        file.put_option(option::IF_NAME, interface.name.as_bytes());
        match interface.address {
            IpAddr::V4(address) => {
                let [a, b, c, d] = address.octets();
                file.put_option(option::IF_IPV4ADDR, &[a, b, c, d, 255, 255, 255, 255]);
            }
            IpAddr::V6(address) => {
                let mut value = [128; 17];
                value[..16].copy_from_slice(&address.octets());
                file.put_option(option::IF_IPV6ADDR, &value);
            }
        }
        file.put_option(option::IF_TSRESOL, &[NANOSECONDS]);
        file.put_option(option::END, &[]);
        file.end_block(INTERFACE_DESCRIPTION)?;
        Ok(file)
    }

    /// Adds a packet with its captured bytes `kept` and its size on the wire.
    pub fn packet(&mut self, time_ns: u64, kept: &[u8], size_bytes: u32) -> io::Result<()> {
        self.put_u32(0);
        self.put_time(time_ns);
        self.put_u32(kept.len() as u32);
        self.put_u32(size_bytes);
        self.body.extend_from_slice(kept);
        self.pad();
        self.end_block(ENHANCED_PACKET)
    }

    /// Adds TLS secrets for the packets that follow. Wireshark decrypts a file while it reads it
    /// for the first time, so secrets must come first.
    pub fn secrets(&mut self, lines: &str) -> io::Result<()> {
        self.put_u32(TLS_KEY_LOG);
        self.put_u32(lines.len() as u32);
        self.body.extend_from_slice(lines.as_bytes());
        self.pad();
        self.end_block(DECRYPTION_SECRETS)
    }

    /// Ends the file with statistics: the packets of the interface until `time_ns`, and how many of
    /// them were dropped because the buffer was full.
    pub fn finish(mut self, time_ns: u64, received: u64, dropped: u64) -> io::Result<()> {
        self.put_u32(0);
        self.put_time(time_ns);
        self.put_option(option::ISB_IFRECV, &received.to_le_bytes());
        self.put_option(option::ISB_IFDROP, &dropped.to_le_bytes());
        self.put_option(option::END, &[]);
        self.end_block(INTERFACE_STATISTICS)?;
        self.out.flush()
    }

    fn put_u16(&mut self, value: u16) {
        self.body.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.body.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.body.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes a timestamp. The upper half comes first in both byte orders.
    fn put_time(&mut self, time_ns: u64) {
        self.put_u32((time_ns >> 32) as u32);
        self.put_u32(time_ns as u32);
    }

    /// Writes an option. Values above the maximum length are truncated.
    fn put_option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.put_u16(code);
        self.put_u16(value.len() as u16);
        self.body.extend_from_slice(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    /// Writes the block with the current body.
    fn end_block(&mut self, kind: u32) -> io::Result<()> {
        let total = (self.body.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&total)?;
        self.out.write_all(&self.body)?;
        self.out.write_all(&total)?;
        self.body.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(file: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(file[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn blocks_are_framed_by_their_length() {
        let mut out = Vec::new();
        let section = Section { comment: "five!", system: "a", program: "b" };
        let interface = Interface { name: "one", address: [10, 1, 0, 1].into(), snap_bytes: 134 };
        let mut file = Pcapng::begin(&mut out, &section, &interface).unwrap();
        file.packet((7 << 32) + 9, &[1, 2, 3, 4, 5], 1514).unwrap();
        file.finish(8, 3, 2).unwrap();

        let mut kinds = Vec::new();
        let mut at = 0;
        while at < out.len() {
            let size = word(&out, at + 4) as usize;
            assert_eq!(size % 4, 0);
            assert_eq!(word(&out, at + size - 4) as usize, size);
            kinds.push((word(&out, at), at));
            at += size;
        }
        let (blocks, places): (Vec<_>, Vec<_>) = kinds.into_iter().unzip();
        assert_eq!(blocks, [0x0A0D_0D0A, 1, 6, 5]);

        let packet = places[2];
        // Interface, time (high, low), kept and whole size, the bytes and three of padding.
        assert_eq!(word(&out, packet + 4), 12 + 20 + 8);
        let words: Vec<_> = (2..7).map(|i| word(&out, packet + 4 * i)).collect();
        assert_eq!(words, [0, 7, 9, 5, 1514]);
        assert_eq!(out[packet + 28..packet + 36], [1, 2, 3, 4, 5, 0, 0, 0]);

        // opt_comment of five bytes, padded to eight, is the section's first option.
        assert_eq!(out[24..36], [1, 0, 5, 0, b'f', b'i', b'v', b'e', b'!', 0, 0, 0]);
        let statistics = &out[places[3]..];
        assert_eq!(statistics[20..32], [4, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(statistics[32..44], [5, 0, 8, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    }
}
