//! Streaming reader of capture files: pcap, pcapng and what is converted to pcap, plain or compressed
//! with gzip or zstd.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use pcap_parser::pcapng::{Block, InterfaceStatisticsBlock};
use pcap_parser::{
    LegacyPcapReader, Linktype, PcapBlockOwned, PcapError, PcapNGReader, traits::PcapReaderIterator,
};
use ruzstd::decoding::StreamingDecoder;

use crate::containers::{self, Converted, LOOK_BYTES, MAGIC_BYTES};
use crate::error::Error;
use crate::read_most::{Failure, PACKET_MAX_BYTES, read_ahead, read_most};

/// Longest supported block. Wireshark stores at most 256 KiB of a packet, and comments are short.
const BUFFER_BYTES: usize = 1 << 20;
/// Bytes read from the file at a time.
const CHUNK_BYTES: usize = 1 << 18;

/// Maximum ratio of decompressed to compressed bytes. Deflate cannot exceed 1032. zstd has no
/// limit, so that a file of 1 MB could take minutes.
const MOST_UNPACKED: u64 = 1100;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Line that `jostle` writes into the comment of a capture whose time 0 is the start of the run.
const OWN_CLOCKS: [&str; 2] =
    ["time 0 is the start of the run", "time 0 is the start of the commands"];

/// A captured frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// Nanoseconds since the epoch of the file, in general 1970.
    pub time_ns: u64,
    /// Link type: which header the frame begins with.
    pub link: Linktype,
    /// Captured bytes of the frame.
    pub bytes: &'a [u8],
    /// Original length of the frame.
    pub wire_bytes: u32,
}

/// Metadata of a capture file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CaptureInfo {
    /// Comment of the section header.
    pub comment: String,
    /// Packets that the capture program dropped, if the file records them.
    pub dropped: u64,
    /// End time of the capture, if the file records it.
    pub ended_ns: Option<u64>,
    /// Whether the file ends in the middle of a packet.
    pub is_cut_off: bool,
    /// Description of the damage that ends the readable part of the file.
    pub damage: Option<String>,
    /// Packets without times (Simple Packet Blocks), which are left out.
    pub timeless: u64,
    /// Whether time 0 of the file is the start of a jostle run.
    pub has_own_clock: bool,
}

impl CaptureInfo {
    /// Returns the value of a key in the comment of a capture by jostle.
    pub fn says(&self, key: &str) -> Option<&str> {
        if !self.has_own_clock {
            return None;
        }
        self.comment.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
    }
}

/// Link type and clock of a pcapng interface.
#[derive(Clone, Copy, Debug)]
struct Clock {
    link: Linktype,
    /// Time units per second.
    resolution: u64,
    /// Seconds to add to each time.
    offset_s: i64,
}

impl Clock {
    fn ns(&self, high: u32, low: u32) -> u64 {
        let units = u128::from((u64::from(high) << 32) | u64::from(low));
        let ns = units * 1_000_000_000 / u128::from(self.resolution.max(1));
        let offset_ns = i128::from(self.offset_s) * 1_000_000_000;
        let ns = i128::try_from(ns).unwrap_or(i128::MAX).saturating_add(offset_ns);
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}

/// Number of bytes read, shared with a progress display.
pub(crate) type Position = Arc<AtomicU64>;

/// A file that counts the bytes read.
struct CountingReader {
    file: File,
    position: Position,
}

impl Read for CountingReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.position.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// A decompressor with a limit on its output.
struct Limited<R> {
    packed: R,
    left: u64,
    is_exceeded: Arc<AtomicBool>,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.packed.read(into)?;
        let Some(left) = self.left.checked_sub(read as u64) else {
            self.is_exceeded.store(true, Ordering::Relaxed);
            return Err(io::Error::other("more bytes than the limit"));
        };
        self.left = left;
        Ok(read)
    }
}

/// Iterator over the packets of a file.
pub(crate) struct Packets {
    path: PathBuf,
    reader: Box<dyn PcapReaderIterator + Send>,
    /// Of a pcap file: link type, and nanoseconds per unit of the sub-second field.
    legacy: Option<(Linktype, u64)>,
    interfaces: Vec<Clock>,
    big_endian: bool,
    /// Size of the current block, which is released when the next packet is read.
    consumed: usize,
    /// Set when the decompressor exceeds its limit.
    is_exceeded: Arc<AtomicBool>,
    /// Packets read so far.
    count: u64,
    pub about: CaptureInfo,
}

impl Packets {
    /// Opens a file. `position` is increased by the number of bytes read.
    pub fn open(path: &Path, position: Position) -> Result<Self, Error> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(Error::format(path, "not a regular file"));
        }
        let mut magic = [0; 4];
        let known = read_most(&mut file, &mut magic).map_err(failed)?;
        file.rewind().map_err(failed)?;
        let plain = BufReader::with_capacity(CHUNK_BYTES, CountingReader { file, position });
        let magic = &magic[..known];
        if magic.starts_with(&GZIP) {
            Self::of(path, MultiGzDecoder::new(plain))
        } else if magic.starts_with(&ZSTD) {
            let decoder = StreamingDecoder::new(plain)
                .map_err(|error| Error::format(path, format!("damaged zstd: {error}")))?;
            let left = metadata.len().saturating_mul(MOST_UNPACKED);
            let is_exceeded = Arc::new(AtomicBool::new(false));
            let limited = Limited { packed: decoder, left, is_exceeded: is_exceeded.clone() };
            Ok(Self { is_exceeded, ..Self::of(path, limited)? })
        } else {
            Self::of(path, plain)
        }
    }

    /// Reads a stream that is not compressed.
    pub fn of(path: &Path, mut from: impl Read + Send + 'static) -> Result<Self, Error> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        let mut start = vec![0; LOOK_BYTES];
        let mut known = read_most(&mut from, &mut start[..MAGIC_BYTES]).map_err(failed)?;
        let mut ahead = (0, Failure::default());
        if Converted::<io::Empty>::needs_packets(&start[..known]) {
            ahead = read_ahead(&mut from, &mut start[known..]);
            known += ahead.0;
        }
        let start = &start[..known];
        let stream = io::Cursor::new(start.to_vec()).chain(ahead.1).chain(from);
        match Converted::<io::Empty>::format(start) {
            Some(format) => Self::of_pcap(path, start, Converted::new(stream, format)),
            None => Self::of_pcap(path, start, stream),
        }
    }

    /// Reads a stream of pcap or pcapng. `start` are the first bytes of the file.
    fn of_pcap(
        path: &Path,
        start: &[u8],
        stream: impl Read + Send + 'static,
    ) -> Result<Self, Error> {
        // The pcap readers expect a complete header from one read, but a decompressor may return
        // less.
        let stream = FullReader(stream);
        let refused = |error: PcapError<&[u8]>| Error::format(path, words(&error));
        let is_converted = Converted::<io::Empty>::format(start).is_some();
        let (reader, legacy): (Box<dyn PcapReaderIterator + Send>, _) = match start {
            [] => return Err(Error::format(path, "the file is empty")),
            [0x0a, 0x0d, 0x0d, 0x0a, ..] => {
                (Box::new(PcapNGReader::new(BUFFER_BYTES, stream).map_err(refused)?), None)
            }
            [0xd4, 0xc3, 0xb2, 0xa1, ..] | [0xa1, 0xb2, 0xc3, 0xd4, ..] => (
                Box::new(LegacyPcapReader::new(BUFFER_BYTES, stream).map_err(refused)?),
                Some((Linktype(0), 1_000)),
            ),
            _ if is_converted => (
                Box::new(LegacyPcapReader::new(BUFFER_BYTES, stream).map_err(refused)?),
                Some((Linktype(0), 1_000)),
            ),
            [0x4d, 0x3c, 0xb2, 0xa1, ..] | [0xa1, 0xb2, 0x3c, 0x4d, ..] => (
                Box::new(LegacyPcapReader::new(BUFFER_BYTES, stream).map_err(refused)?),
                Some((Linktype(0), 1)),
            ),
            _ => return Err(Error::format(path, containers::explain(start))),
        };
        Ok(Self {
            path: path.to_owned(),
            reader,
            legacy,
            interfaces: Vec::new(),
            big_endian: false,
            consumed: 0,
            is_exceeded: Arc::default(),
            count: 0,
            about: CaptureInfo::default(),
        })
    }

    /// Returns the next packet. `None` at the end of the file.
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, Error> {
        // The borrow checker does not allow the loop in `find` to return a frame, so `find` returns
        // the position of the frame in the buffer.
        let Some(found) = self.find()? else { return Ok(None) };
        let bytes = &self.reader.data()[found.from..found.from + found.kept];
        Ok(Some(Frame {
            time_ns: found.time_ns,
            link: found.link,
            bytes,
            wire_bytes: found.wire_bytes,
        }))
    }

    fn find(&mut self) -> Result<Option<PacketSlice>, Error> {
        if self.consumed > 0 {
            self.reader.consume_noshift(std::mem::take(&mut self.consumed));
        }
        if self.about.damage.is_some() {
            return Ok(None);
        }
        loop {
            let before = self.reader.data().as_ptr() as usize;
            let failure = match self.reader.next() {
                Ok((size, block)) => {
                    let found = look(
                        &block,
                        &mut self.legacy,
                        &mut self.interfaces,
                        &mut self.big_endian,
                        &mut self.about,
                        before,
                    );
                    drop(block);
                    match found {
                        Ok(Some(found)) => {
                            self.consumed = size;
                            self.count += 1;
                            return Ok(Some(found));
                        }
                        Ok(None) => {
                            self.reader.consume_noshift(size);
                            continue;
                        }
                        Err(what) => Some(what),
                    }
                }
                Err(PcapError::Incomplete(_)) => None,
                Err(PcapError::Eof) => return Ok(None),
                Err(PcapError::UnexpectedEof) => {
                    self.about.is_cut_off = true;
                    return Ok(None);
                }
                Err(error) => Some(words(&error)),
            };
            if let Some(what) = failure {
                if self.count > 0 {
                    // The packets before the damage are valid.
                    self.about.damage = Some(what);
                    return Ok(None);
                }
                let at = self.reader.consumed();
                return Err(Error::format(&self.path, format!("byte {at}: {what}")));
            }
            if self.reader.refill().is_err() {
                if self.is_exceeded.load(Ordering::Relaxed) {
                    let what = format!(
                        "it decompresses to more than {MOST_UNPACKED} times its size, the most that is \
                         read — decompress it first if you trust it"
                    );
                    return Err(Error::format(&self.path, what));
                }
                // A truncated compressed file: the packets before its end are valid.
                self.about.is_cut_off = true;
                return Ok(None);
            }
        }
    }
}

/// Position of a packet in the reader's buffer.
struct PacketSlice {
    time_ns: u64,
    link: Linktype,
    from: usize,
    kept: usize,
    wire_bytes: u32,
}

/// Type of the Packet Block of pcapng, which the Enhanced Packet Block replaced, in both byte
/// orders: the reader does not swap unknown types.
const OBSOLETE_PACKET: [u32; 2] = [2, 2_u32.swap_bytes()];

/// Parses a block. `buffer` is the address of the reader's data.
fn look(
    block: &PcapBlockOwned<'_>,
    legacy: &mut Option<(Linktype, u64)>,
    interfaces: &mut Vec<Clock>,
    big_endian: &mut bool,
    about: &mut CaptureInfo,
    buffer: usize,
) -> Result<Option<PacketSlice>, String> {
    // Long: an arm for each kind of block.
    let place = |bytes: &[u8], kept: u32| {
        (bytes.as_ptr() as usize - buffer, bytes.len().min(kept as usize))
    };
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            if let Some((link, _)) = legacy {
                // The upper 16 bits contain other fields, such as the length of the frame check
                // sequence.
                *link = Linktype(header.network.0 & 0xffff);
            }
            Ok(None)
        }
        PcapBlockOwned::Legacy(frame) => {
            let Some((link, unit_ns)) = *legacy else { return Ok(None) };
            // The reader has no other way to recognise a damaged header.
            if frame.caplen > PACKET_MAX_BYTES || frame.ts_usec >= 1_000_000_000 {
                return Err("damaged: the header of a packet".to_owned());
            }
            let (from, kept) = place(frame.data, frame.caplen);
            let time_ns =
                u64::from(frame.ts_sec) * 1_000_000_000 + u64::from(frame.ts_usec) * unit_ns;
            Ok(Some(PacketSlice { time_ns, link, from, kept, wire_bytes: frame.origlen }))
        }
        PcapBlockOwned::NG(Block::SectionHeader(section)) => {
            interfaces.clear();
            *big_endian = section.big_endian();
            const COMMENT: u16 = 1;
            if let Some(comment) = section.options.iter().find(|option| option.code.0 == COMMENT) {
                let text = comment.as_bytes().unwrap_or_default();
                about.comment = String::from_utf8_lossy(text).trim_end_matches('\0').to_owned();
                about.has_own_clock =
                    about.comment.lines().any(|line| OWN_CLOCKS.contains(&line.trim()));
            }
            Ok(None)
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
            let resolution = units_per_second(interface.if_tsresol)
                .ok_or("an interface whose clock has no possible resolution (if_tsresol)")?;
            let offset_s = interface.ts_offset();
            interfaces.push(Clock { link: interface.linktype, resolution, offset_s });
            Ok(None)
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let Some(clock) = interfaces.get(packet.if_id as usize) else {
                let number = packet.if_id;
                return Err(format!("a packet of interface {number}, which is not described"));
            };
            let (from, kept) = place(packet.data, packet.caplen);
            let time_ns = clock.ns(packet.ts_high, packet.ts_low);
            let (link, wire_bytes) = (clock.link, packet.origlen);
            Ok(Some(PacketSlice { time_ns, link, from, kept, wire_bytes }))
        }
        PcapBlockOwned::NG(Block::SimplePacket(_)) => {
            about.timeless += 1;
            Ok(None)
        }
        PcapBlockOwned::NG(Block::Unknown(block))
            if OBSOLETE_PACKET.contains(&block.block_type) =>
        {
            let Some((header, data)) = block.data.split_first_chunk::<20>() else {
                return Err("damaged: a short Packet Block".to_owned());
            };
            let word = |at: usize| {
                let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
                if *big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
            };
            // Interface and number of dropped packets, of 16 bits each.
            let number = if *big_endian { word(0) >> 16 } else { word(0) & 0xffff };
            let Some(clock) = interfaces.get(number as usize) else {
                return Err(format!("a packet of interface {number}, which is not described"));
            };
            let (from, kept) = place(data, word(12));
            let (link, wire_bytes) = (clock.link, word(16));
            let time_ns = clock.ns(word(4), word(8));
            Ok(Some(PacketSlice { time_ns, link, from, kept, wire_bytes }))
        }
        PcapBlockOwned::NG(Block::InterfaceStatistics(statistics)) => {
            about.dropped = about.dropped.max(dropped(statistics, *big_endian));
            if let Some(clock) = interfaces.get(statistics.if_id as usize) {
                about.ended_ns = Some(clock.ns(statistics.ts_high, statistics.ts_low));
            }
            Ok(None)
        }
        PcapBlockOwned::NG(_) => Ok(None),
    }
}

/// Decodes `if_tsresol` (draft-ietf-opsawg-pcapng): "If the Most Significant Bit is equal to zero,
/// the remaining bits indicate the resolution of the timestamp as a negative power of 10";
/// otherwise of 2.
fn units_per_second(tsresol: u8) -> Option<u64> {
    let power = u32::from(tsresol & 0x7f);
    if tsresol & 0x80 == 0 { 10_u64.checked_pow(power) } else { 1_u64.checked_shl(power) }
}

/// Returns the packets that an interface or the operating system dropped.
fn dropped(statistics: &InterfaceStatisticsBlock<'_>, big_endian: bool) -> u64 {
    const DROPPED: u16 = 5;
    const OS_DROPPED: u16 = 7;
    let drop_options =
        statistics.options.iter().filter(|it| matches!(it.code.0, DROPPED | OS_DROPPED));
    let counts = drop_options.filter_map(|option| {
        let bytes = <[u8; 8]>::try_from(option.as_bytes().ok()?).ok()?;
        Some(if big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    });
    counts.max().unwrap_or(0)
}

/// Describes a parse error for the user.
fn words<I: AsRef<[u8]>>(error: &PcapError<I>) -> String {
    match error {
        PcapError::BufferTooSmall => {
            format!("a block of more than {BUFFER_BYTES} bytes: the file is damaged")
        }
        PcapError::Incomplete(_) | PcapError::UnexpectedEof | PcapError::Eof => {
            "the file ends within its header".to_owned()
        }
        PcapError::ReadError => {
            "the file cannot be read, or what compressed it is damaged".to_owned()
        }
        _ => "damaged: a block whose parts contradict each other".to_owned(),
    }
}

/// A reader that returns short reads only at the end of the file.
struct FullReader<R>(R);

impl<R: Read> Read for FullReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Bytes read before an error are returned first. The next read returns the error.
        let mut filled = 0;
        while filled < into.len() {
            match self.0.read(&mut into[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) if filled > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_count_in_powers_of_ten_and_of_two() {
        let known = [6, 9, 0x80, 0x80 | 30, 19].map(units_per_second);
        let expected = [1_000_000, 1_000_000_000, 1, 1 << 30, 10_000_000_000_000_000_000];
        assert_eq!(known, expected.map(Some));
        assert_eq!([20, 0x7f, 0x80 | 64, 0xff].map(units_per_second), [None; 4]);
    }
}
