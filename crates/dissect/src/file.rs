//! One file of packets, read in a stream: pcap and pcapng, plain or compressed.

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

use crate::error::Error;

/// Longest block that is read: Wireshark takes 256 KiB of a packet at most, and comments are short.
const BUFFER_BYTES: usize = 1 << 20;
/// Read from the file at once.
const CHUNK_BYTES: usize = 1 << 18;

/// Decompressed bytes per byte of a compressed file. Deflate cannot exceed 1032; zstd has no limit, and
/// reading a megabyte of it could take minutes.
const MOST_UNPACKED: u64 = 1100;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// What `jostle` writes into the comment of a capture whose clock is that of the run.
const OWN_CLOCK: &str = "time 0 is the start of the run";

/// A packet as the file has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// Nanoseconds since the file's zero, in general 1970.
    pub time_ns: u64,
    /// What its bytes begin with.
    pub link: Linktype,
    /// What was kept of it.
    pub bytes: &'a [u8],
    /// What it was on the wire.
    pub wire_bytes: u32,
}

/// What a file says beside its packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct About {
    /// Comment of its section.
    pub comment: String,
    /// Packets that came too fast for whoever captured, if that is told.
    pub dropped: u64,
    /// When the capture ended, if that is told.
    pub ended_ns: Option<u64>,
    /// It ends in the middle of a packet.
    pub is_cut_off: bool,
}

impl About {
    /// Whether the clock of the file is that of one of our runs.
    pub fn has_own_clock(&self) -> bool {
        self.comment.lines().any(|line| line.trim() == OWN_CLOCK)
    }

    /// What the comment of one of our captures says of a key.
    pub fn says(&self, key: &str) -> Option<&str> {
        if !self.has_own_clock() {
            return None;
        }
        self.comment.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
    }
}

/// Times of an interface of pcapng.
#[derive(Clone, Copy, Debug)]
struct Clock {
    link: Linktype,
    /// Units per second.
    resolution: u64,
    /// Seconds to add.
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

/// How far a file was read, for whoever shows progress.
pub(crate) type Position = Arc<AtomicU64>;

/// Counts bytes.
struct Counted {
    file: File,
    position: Position,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.position.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Reads a decompressor up to a limit of bytes.
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

/// The packets of a file, one after the other.
pub(crate) struct Packets {
    path: PathBuf,
    reader: Box<dyn PcapReaderIterator + Send>,
    /// pcap: what all packets are like; nanoseconds of one unit of the fraction of a second.
    legacy: Option<(Linktype, u64)>,
    interfaces: Vec<Clock>,
    big_endian: bool,
    /// Of the packet that was given last, until the next one is asked for.
    consumed: usize,
    /// Set when the decompressor exceeds its limit.
    is_exceeded: Arc<AtomicBool>,
    pub about: About,
}

impl Packets {
    /// Opens a file; `position` grows with what was read of it.
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
        let plain = BufReader::with_capacity(CHUNK_BYTES, Counted { file, position });
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

    /// Reads a file whose content is not compressed.
    pub fn of(path: &Path, mut from: impl Read + Send + 'static) -> Result<Self, Error> {
        let mut magic = [0; 4];
        let known = read_most(&mut from, &mut magic)
            .map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let whole = io::Cursor::new(magic[..known].to_vec()).chain(from);
        // Its readers ask for a header at once, of which a decompressor may give only a part.
        let whole = Full(whole);
        let refused = |error: PcapError<&[u8]>| Error::format(path, words(&error));
        let (reader, legacy): (Box<dyn PcapReaderIterator + Send>, _) = match magic {
            _ if known == 0 => return Err(Error::format(path, "the file is empty")),
            [0x0a, 0x0d, 0x0d, 0x0a] => {
                (Box::new(PcapNGReader::new(BUFFER_BYTES, whole).map_err(refused)?), None)
            }
            [0xd4, 0xc3, 0xb2, 0xa1] | [0xa1, 0xb2, 0xc3, 0xd4] => (
                Box::new(LegacyPcapReader::new(BUFFER_BYTES, whole).map_err(refused)?),
                Some((Linktype(0), 1_000)),
            ),
            [0x4d, 0x3c, 0xb2, 0xa1] | [0xa1, 0xb2, 0x3c, 0x4d] => (
                Box::new(LegacyPcapReader::new(BUFFER_BYTES, whole).map_err(refused)?),
                Some((Linktype(0), 1)),
            ),
            _ => {
                return Err(Error::format(
                    path,
                    "neither pcap nor pcapng (plain, gzip or zstd): its first bytes are of neither",
                ));
            }
        };
        Ok(Self {
            path: path.to_owned(),
            reader,
            legacy,
            interfaces: Vec::new(),
            big_endian: false,
            consumed: 0,
            is_exceeded: Arc::default(),
            about: About::default(),
        })
    }

    /// Steps to the next packet; false at the end of the file.
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, Error> {
        // The borrow checker lets a frame leave only where nothing is done after it was found: so
        // blocks are first looked at, then the frame's place in the buffer is taken once more.
        let Some(found) = self.find()? else { return Ok(None) };
        let bytes = &self.reader.data()[found.from..found.from + found.kept];
        Ok(Some(Frame {
            time_ns: found.time_ns,
            link: found.link,
            bytes,
            wire_bytes: found.wire_bytes,
        }))
    }

    fn find(&mut self) -> Result<Option<Found>, Error> {
        if self.consumed > 0 {
            self.reader.consume_noshift(std::mem::take(&mut self.consumed));
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
                    )
                    .map_err(|what| Error::format(&self.path, what))?;
                    drop(block);
                    if let Some(found) = found {
                        self.consumed = size;
                        return Ok(Some(found));
                    }
                    self.reader.consume_noshift(size);
                    continue;
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
                // A compressed file that was cut off: what came before is whole.
                self.about.is_cut_off = true;
                return Ok(None);
            }
        }
    }
}

/// Where a packet lies in the reader's buffer.
struct Found {
    time_ns: u64,
    link: Linktype,
    from: usize,
    kept: usize,
    wire_bytes: u32,
}

/// Takes from a block what it says; `buffer` is where the reader's data begin.
fn look(
    block: &PcapBlockOwned<'_>,
    legacy: &mut Option<(Linktype, u64)>,
    interfaces: &mut Vec<Clock>,
    big_endian: &mut bool,
    about: &mut About,
    buffer: usize,
) -> Result<Option<Found>, String> {
    let place = |bytes: &[u8], kept: u32| {
        (bytes.as_ptr() as usize - buffer, bytes.len().min(kept as usize))
    };
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            if let Some((link, _)) = legacy {
                // Above 16 bits stand other things (the length of a frame check sequence).
                *link = Linktype(header.network.0 & 0xffff);
            }
            Ok(None)
        }
        PcapBlockOwned::Legacy(frame) => {
            let Some((link, unit_ns)) = *legacy else { return Ok(None) };
            let (from, kept) = place(frame.data, frame.caplen);
            let time_ns =
                u64::from(frame.ts_sec) * 1_000_000_000 + u64::from(frame.ts_usec) * unit_ns;
            Ok(Some(Found { time_ns, link, from, kept, wire_bytes: frame.origlen }))
        }
        PcapBlockOwned::NG(Block::SectionHeader(section)) => {
            interfaces.clear();
            *big_endian = section.big_endian();
            const COMMENT: u16 = 1;
            if let Some(comment) = section.options.iter().find(|option| option.code.0 == COMMENT) {
                let text = comment.as_bytes().unwrap_or_default();
                about.comment = String::from_utf8_lossy(text).trim_end_matches('\0').to_owned();
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
                return Err(format!(
                    "a packet of interface {}, which is not described",
                    packet.if_id
                ));
            };
            let (from, kept) = place(packet.data, packet.caplen);
            let time_ns = clock.ns(packet.ts_high, packet.ts_low);
            Ok(Some(Found { time_ns, link: clock.link, from, kept, wire_bytes: packet.origlen }))
        }
        // "Simple" packets have no time, and nothing can be measured without.
        PcapBlockOwned::NG(Block::SimplePacket(_)) => {
            Err("packets without times (Simple Packet Blocks): nothing can be measured".to_owned())
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

/// What one byte says of a clock (draft-ietf-opsawg-pcapng, `if_tsresol`): "If the Most Significant Bit
/// is equal to zero, the remaining bits indicate the resolution of the timestamp as a negative power of
/// 10"; else of 2.
fn units_per_second(tsresol: u8) -> Option<u64> {
    let power = u32::from(tsresol & 0x7f);
    if tsresol & 0x80 == 0 { 10_u64.checked_pow(power) } else { 1_u64.checked_shl(power) }
}

/// Packets that came too fast for an interface, or for the system behind it.
fn dropped(statistics: &InterfaceStatisticsBlock<'_>, big_endian: bool) -> u64 {
    const DROPPED: u16 = 5;
    const OS_DROPPED: u16 = 7;
    let told = statistics.options.iter().filter(|it| matches!(it.code.0, DROPPED | OS_DROPPED));
    let counts = told.filter_map(|option| {
        let bytes = <[u8; 8]>::try_from(option.as_bytes().ok()?).ok()?;
        Some(if big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    });
    counts.max().unwrap_or(0)
}

/// What is wrong, for a person.
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

/// Fills `into` as far as the file reaches.
fn read_most(from: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match from.read(&mut into[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Gives as much as is asked for, unless the file ends.
struct Full<R>(R);

impl<R: Read> Read for Full<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // What was read before an error is given first; the error comes again.
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
