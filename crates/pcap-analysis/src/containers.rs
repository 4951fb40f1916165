//! Capture files other than pcap and pcapng: which are read, and what the others are.

use std::io::{self, Read};

use crate::netmon::{self, NetMon, Record};
use crate::read_most::{PACKET_MAX_BYTES, read_most};

/// Containers that are read.
pub(crate) const READ: [&str; 5] = [
    "pcap (either byte order, micro- or nanoseconds)",
    "pcapng (either byte order, also the obsolete Packet Block)",
    "pcap with longer packet headers (Kuznetzov, Red Hat 6.1, SuSE 6.3, Nokia)",
    "snoop (RFC 1761)",
    "Microsoft Network Monitor 1 and 2",
];

/// First bytes of file formats that are not read, their names, and what converts them.
const NOT_READ: [(&[u8], &str, Conversion); 17] = [
    (b"TRSNIFF data", "Sniffer (DOS)", Conversion::Editcap),
    (b"XCP\0", "Sniffer (Windows)", Conversion::Editcap),
    (b"\x05VNF", "Visual Networks", Conversion::Editcap),
    (b"iptrace ", "AIX iptrace", Conversion::Editcap),
    (b"\xac\x01\x00\x1c", "IXIA hardware", Conversion::Editcap),
    (b"\xab\x01\x00\x1c", "IXIA software", Conversion::Editcap),
    (b"\x1c\x00\x01\xac", "IXIA hardware", Conversion::Editcap),
    (b"\x1c\x00\x01\xab", "IXIA software", Conversion::Editcap),
    (b"\xaa\xaa\xaa\xaa", "Accellent 5Views", Conversion::Editcap),
    (b"ObserverPkt", "Network Instruments Observer", Conversion::Editcap),
    (b"TR\0d", "HP-UX nettl", Conversion::Editcap),
    (b"+---------+", "Tektronix K12 (text)", Conversion::Editcap),
    (b"\x01\x10\x4c\0\x01\x05Trace", "Novell LANalyzer", Conversion::Editcap),
    (b"BZh", "compressed by bzip2", Conversion::Decompress),
    (b"\xfd7zXZ", "compressed by xz", Conversion::Decompress),
    (b"\x04\x22\x4d\x18", "compressed by lz4", Conversion::Decompress),
    (b"PK\x03\x04", "a ZIP archive", Conversion::Decompress),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Conversion {
    Editcap,
    Decompress,
}

/// Explains why a file is not read, by its first bytes.
pub(crate) fn explain(start: &[u8]) -> String {
    let known = NOT_READ.iter().find(|(magic, ..)| start.starts_with(magic));
    match known {
        Some((_, name, Conversion::Editcap)) => format!(
            "a capture of {name}, which is not read: `editcap -F pcapng FILE CONVERTED.pcapng` converts it"
        ),
        Some((_, name, Conversion::Decompress)) => {
            format!("{name}, which is not read: decompress it first")
        }
        None => {
            "neither pcap nor pcapng (plain, gzip or zstd): its first bytes are of neither. If \
                 Wireshark reads it, `editcap -F pcapng FILE CONVERTED.pcapng` converts it"
                .to_owned()
        }
    }
}

/// Returns the names of the containers that `editcap` has to convert first.
pub(crate) fn convertible() -> impl Iterator<Item = &'static str> {
    let names = NOT_READ.iter().filter(|(.., conversion)| *conversion == Conversion::Editcap);
    names.map(|(_, name, _)| *name)
}

/// Number of bytes that [`explain`] and [`Converted::format`] look at.
pub(crate) const MAGIC_BYTES: usize = 12;

/// A format that is converted to pcap while it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConvertedFormat {
    /// pcap with 4 to 12 more bytes before each packet, by patches of libpcap.
    LongHeaders {
        big_endian: bool,
        more_bytes: usize,
    },
    /// RFC 1761.
    Snoop,
    NetMon,
}

/// First bytes of pcap with microseconds.
const PCAP_LITTLE: [u8; 4] = [0xd4, 0xc3, 0xb2, 0xa1];
const PCAP_BIG: [u8; 4] = [0xa1, 0xb2, 0xc3, 0xd4];

/// Number of bytes that tell variants of pcap apart.
pub(crate) const LOOK_BYTES: usize = 1 << 17;
/// Number of packets that are enough for it.
const ENOUGH_PACKETS: usize = 16;

/// Returns whether packets with headers of 16 and `more_bytes` bytes follow each other from the
/// first to the end of the file, or of the bytes that are known.
fn has_packets(start: &[u8], big_endian: bool, more_bytes: usize) -> bool {
    let mut rest = start.get(24..).unwrap_or_default();
    for _ in 0..ENOUGH_PACKETS {
        if rest.is_empty() {
            return true;
        }
        let Some(header) = rest.first_chunk::<16>() else { return start.len() == LOOK_BYTES };
        let number = |at: usize| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let [micros, kept, size] = [4, 8, 12].map(number);
        if micros >= 1_000_000 || kept == 0 || kept > size || size > PACKET_MAX_BYTES {
            return false;
        }
        let Some(following) = rest.get(16 + more_bytes + kept as usize..) else {
            return start.len() == LOOK_BYTES;
        };
        rest = following;
    }
    true
}

/// Header of a packet with a length that none has: the reader of pcap reports the damage.
const DAMAGED: [u32; 4] = [0, 0, u32::MAX, 0];

/// Converts a stream to pcap in big-endian byte order.
pub(crate) struct Converted<R> {
    from: R,
    format: ConvertedFormat,
    /// Headers that were converted and not yet returned.
    ready: Vec<u8>,
    returned: usize,
    /// Bytes of the packet that follow, and bytes after them that are skipped.
    packet: u64,
    padding: u64,
    has_header: bool,
    netmon: Option<NetMon>,
    is_over: bool,
}

impl<R: Read> Converted<R> {
    /// Returns the format of a file that begins with these bytes.
    pub fn format(start: &[u8]) -> Option<ConvertedFormat> {
        if start.starts_with(b"snoop\0\0\0") {
            return Some(ConvertedFormat::Snoop);
        }
        if netmon::MAGIC.iter().any(|magic| start.starts_with(magic)) {
            return Some(ConvertedFormat::NetMon);
        }
        let (big_endian, choices): (bool, &[usize]) = match *start.first_chunk()? {
            PCAP_LITTLE => (false, &[0, 8, 4]),
            PCAP_BIG => (true, &[0, 8, 4]),
            [0x34, 0xcd, 0xb2, 0xa1] => (false, &[8, 12]),
            [0xa1, 0xb2, 0xcd, 0x34] => (true, &[8, 12]),
            _ => return None,
        };
        // The first bytes do not tell the variants apart, but with wrong headers, no packets follow.
        let fits = |more_bytes: &&usize| has_packets(start, big_endian, **more_bytes);
        let more_bytes = *choices.iter().find(fits).unwrap_or(&choices[0]);
        (more_bytes > 0).then_some(ConvertedFormat::LongHeaders { big_endian, more_bytes })
    }

    /// Returns whether more of a file than [`MAGIC_BYTES`] tells its format.
    pub fn needs_packets(start: &[u8]) -> bool {
        start.starts_with(&PCAP_LITTLE)
            || start.starts_with(&PCAP_BIG)
            || matches!(Self::format(start), Some(ConvertedFormat::LongHeaders { .. }))
    }

    pub fn new(from: R, format: ConvertedFormat) -> Self {
        Self {
            from,
            format,
            ready: Vec::new(),
            returned: 0,
            packet: 0,
            padding: 0,
            has_header: false,
            netmon: None,
            is_over: false,
        }
    }

    /// Reads a header of 32-bit numbers. `None` at the end of the file.
    fn numbers<const COUNT: usize>(&mut self) -> io::Result<Option<[u32; COUNT]>> {
        let mut bytes = [[0; 4]; COUNT];
        let known = read_most(&mut self.from, bytes.as_flattened_mut())?;
        if known < 4 * COUNT {
            self.end(known > 0);
            return Ok(None);
        }
        let little = matches!(self.format, ConvertedFormat::LongHeaders { big_endian: false, .. });
        Ok(Some(bytes.map(if little { u32::from_le_bytes } else { u32::from_be_bytes })))
    }

    /// Ends the converted file: with an incomplete header if the file ends in the middle of one.
    fn end(&mut self, is_cut_off: bool) {
        self.is_over = true;
        self.ready.extend(is_cut_off.then_some(0));
    }

    /// Converts the next header, and of Network Monitor the packet. Returns false at the end.
    fn step(&mut self) -> io::Result<bool> {
        self.ready.clear();
        self.returned = 0;
        if self.is_over {
            return Ok(false);
        }
        io::copy(&mut self.from.by_ref().take(self.padding), &mut io::sink())?;
        self.padding = 0;
        let is_first = !std::mem::replace(&mut self.has_header, true);
        let header = match (self.format, is_first) {
            (ConvertedFormat::LongHeaders { .. }, true) => self.numbers::<6>()?.map(|all| all[5]),
            (ConvertedFormat::Snoop, true) => {
                self.numbers::<4>()?.map(|[.., link]| snoop_link_type(link))
            }
            (ConvertedFormat::NetMon, true) => {
                self.netmon = NetMon::read(&mut self.from)?;
                self.netmon.map(|_| netmon::LINK_TYPE)
            }
            (ConvertedFormat::NetMon, false) => return self.netmon_packet(),
            (ConvertedFormat::LongHeaders { more_bytes, .. }, false) => {
                let Some([seconds, micros, kept, size]) = self.numbers::<4>()? else {
                    return Ok(!self.ready.is_empty());
                };
                if read_most(&mut self.from, &mut [0; 12][..more_bytes])? < more_bytes {
                    self.end(true);
                    return Ok(true);
                }
                return Ok(self.packet_header([seconds, micros, kept, size], 0));
            }
            (ConvertedFormat::Snoop, false) => {
                let Some([size, kept, record, _, seconds, micros]) = self.numbers::<6>()? else {
                    return Ok(!self.ready.is_empty());
                };
                let padding = record.checked_sub(24).and_then(|rest| rest.checked_sub(kept));
                let padding = padding.filter(|padding| *padding <= PACKET_MAX_BYTES);
                // Without padding, the lengths contradict each other.
                return Ok(match padding {
                    Some(padding) => self.packet_header([seconds, micros, kept, size], padding),
                    None => self.packet_header(DAMAGED, 0),
                });
            }
        };
        let Some(link) = header else { return Ok(false) };
        let version = 2 << 16 | 4;
        for number in [0xa1b2_c3d4, version, 0, 0, PACKET_MAX_BYTES, link] {
            self.ready.extend(u32::to_be_bytes(number));
        }
        Ok(true)
    }

    fn netmon_packet(&mut self) -> io::Result<bool> {
        let Some(netmon) = &mut self.netmon else { return Ok(false) };
        let mut frame = Vec::new();
        match netmon.record(&mut self.from, &mut frame)? {
            Record::Frame([seconds, micros, size]) => {
                let size = size + netmon::TYPE_BYTES as u32;
                for number in [seconds, micros, frame.len() as u32, size] {
                    self.ready.extend(number.to_be_bytes());
                }
                self.ready.extend(frame);
            }
            Record::Damaged => return Ok(self.packet_header(DAMAGED, 0)),
            Record::End => self.end(false),
            Record::CutOff => self.end(true),
        }
        Ok(!self.ready.is_empty())
    }

    fn packet_header(&mut self, header: [u32; 4], padding: u32) -> bool {
        self.packet = if header[2] > PACKET_MAX_BYTES { 0 } else { u64::from(header[2]) };
        self.padding = u64::from(padding);
        self.ready.extend(header.iter().flat_map(|number| number.to_be_bytes()));
        true
    }
}

impl<R: Read> Read for Converted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.returned == self.ready.len() && self.packet == 0 && !self.step()? {
            return Ok(0);
        }
        let ready = &self.ready[self.returned..];
        if !ready.is_empty() {
            let count = ready.len().min(into.len());
            into[..count].copy_from_slice(&ready[..count]);
            self.returned += count;
            return Ok(count);
        }
        let read = self.from.by_ref().take(self.packet).read(into)?;
        // The packet is cut off. pcap cut off at the same byte is reported as such.
        self.packet = if read == 0 { 0 } else { self.packet - read as u64 };
        Ok(read)
    }
}

/// Converts a data link type of RFC 1761 to a link type of pcap. Others become numbers that pcap does not
/// use.
fn snoop_link_type(number: u32) -> u32 {
    const UNUSED: u32 = 0x8000;
    match number {
        4 => 1,
        // IPNET of Solaris: without the header of the link layer.
        _ => UNUSED | number & 0x7fff,
    }
}
