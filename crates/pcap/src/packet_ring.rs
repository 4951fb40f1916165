//! Converts packets captured by Linux to pcapng. Input: blocks of a packet socket's ring buffer,
//! version 3 (Documentation/networking/packet_mmap.rst, linux/if_packet.h).

use std::io::{self, Read, Write};
use std::net::IpAddr;

use super::{CapturedRun, PROGRAM, begin};
use crate::pcapng_writer::{Interface, Pcapng, Section};
use jostle_metrics::EndpointRole;
use jostle_run_spec::RunSpec;
use jostle_units::FlowId;

/// `struct tpacket_block_desc` with its `struct tpacket_hdr_v1`.
const BLOCK_HEADER_BYTES: usize = 48;
/// `struct tpacket3_hdr` up to `tp_net`.
const PACKET_HEADER_BYTES: usize = 28;
/// `TPACKET_V3`, the version at the start of a block.
const VERSION: u32 = 2;
/// Maximum block size, larger than the blocks of our ring buffers. A larger value means damaged
/// data.
const BLOCK_MAX_BYTES: usize = 1 << 26;

/// Metadata of a ring buffer.
#[derive(Clone, Copy, Debug)]
pub struct PacketRing<'a> {
    /// The flow.
    pub flow: FlowId,
    /// End of the flow at which the packets were captured.
    pub end: EndpointRole,
    /// Version of the kernel.
    pub system: &'a str,
    /// Start of the run on the clock of the packets, in ns.
    pub start_ns: u64,
    /// Packets that passed the socket's filter.
    pub received: u64,
    /// Packets of `received` that were dropped because the ring was full.
    pub dropped: u64,
    /// TLS secrets in `SSLKEYLOGFILE` format; may be empty.
    pub secrets: &'a str,
}

/// Metadata of the ring buffer of a host, which sees the packets of all its connections.
#[derive(Clone, Copy, Debug)]
pub struct HostRing<'a> {
    /// Name of the host.
    pub name: &'a str,
    /// Its address.
    pub address: IpAddr,
    /// Comment of the file.
    pub comment: &'a str,
    /// Version of the kernel.
    pub system: &'a str,
    /// Maximum size of the stored part of a packet.
    pub snap_bytes: u32,
    /// Start of the run on the clock of the packets, in ns.
    pub start_ns: u64,
    /// Length of the run.
    pub duration_ns: u64,
    /// Packets that passed the socket's filter.
    pub received: u64,
    /// Packets of `received` that were dropped because the ring was full.
    pub dropped: u64,
}

/// Writes the packets of a host's ring as a pcapng file and returns their number; see `from_ring`.
///
/// # Errors
/// Returns `InvalidData` if `blocks` is damaged, or an I/O error.
pub fn from_host_ring(ring: &HostRing<'_>, blocks: impl Read, out: impl Write) -> io::Result<u64> {
    let section = Section { comment: ring.comment, system: ring.system, program: PROGRAM };
    let interface =
        Interface { name: ring.name, address: ring.address, snap_bytes: ring.snap_bytes };
    let mut file = Pcapng::begin(out, &section, &interface)?;
    let written = copy_packets(&mut file, blocks, ring.start_ns, ring.duration_ns)?;
    file.finish(ring.duration_ns, ring.received, ring.dropped)?;
    Ok(written)
}

/// Writes the packets of a ring as a pcapng file and returns their number. `blocks` contains the
/// filled blocks one after another. Packets before or after the run are omitted.
///
/// # Errors
/// Returns `InvalidData` if `blocks` is damaged, or an I/O error.
pub fn from_ring(
    spec: &RunSpec,
    ring: &PacketRing<'_>,
    blocks: impl Read,
    out: impl Write,
) -> io::Result<u64> {
    let mut file = begin(out, &CapturedRun::new(spec, ring.system)?, ring.flow, ring.end)?;
    if !ring.secrets.is_empty() {
        file.secrets(ring.secrets)?;
    }
    let written = copy_packets(&mut file, blocks, ring.start_ns, spec.duration_ns)?;
    file.finish(spec.duration_ns, ring.received, ring.dropped)?;
    Ok(written)
}

/// Copies the packets of the run from a ring's blocks to a file, and returns their number.
fn copy_packets<W: Write>(
    file: &mut Pcapng<W>,
    mut blocks: impl Read,
    start_ns: u64,
    duration_ns: u64,
) -> io::Result<u64> {
    let mut block = Vec::new();
    let mut written = 0;
    while read_block(&mut blocks, &mut block)? {
        for packet in Packets::of(&block)? {
            let packet = packet?;
            // `None` if the packet was captured before the start of the run.
            let since_start_ns = packet.time_ns.checked_sub(start_ns);
            if let Some(time_ns) = since_start_ns.filter(|ns| *ns < duration_ns) {
                file.packet(time_ns, packet.kept, packet.size_bytes)?;
                written += 1;
            }
        }
    }
    Ok(written)
}

/// Reads the next complete block. Returns false at the end.
fn read_block(blocks: &mut impl Read, block: &mut Vec<u8>) -> io::Result<bool> {
    block.resize(BLOCK_HEADER_BYTES, 0);
    let mut have = 0;
    while have < BLOCK_HEADER_BYTES {
        match blocks.read(&mut block[have..])? {
            0 if have == 0 => return Ok(false),
            0 => return Err(damaged("it ends within a block")),
            more => have += more,
        }
    }
    let size = word(block, 20)? as usize;
    let is_block = word(block, 0)? == VERSION;
    if !is_block || !(BLOCK_HEADER_BYTES..=BLOCK_MAX_BYTES).contains(&size) {
        return Err(damaged("there is something else where a block should begin"));
    }
    block.resize(size, 0);
    match blocks.read_exact(&mut block[BLOCK_HEADER_BYTES..]) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(damaged("it ends within a block"))
        }
        read => read.map(|()| true),
    }
}

struct Captured<'a> {
    time_ns: u64,
    kept: &'a [u8],
    size_bytes: u32,
}

/// Iterator over the packets of a block.
struct Packets<'a> {
    block: &'a [u8],
    at: usize,
    left: u32,
}

impl<'a> Packets<'a> {
    fn of(block: &'a [u8]) -> io::Result<Self> {
        Ok(Self { block, left: word(block, 12)?, at: word(block, 16)? as usize })
    }

    fn packet(&mut self) -> io::Result<Captured<'a>> {
        let rest = self.block.get(self.at..).unwrap_or_default();
        let header = rest.get(..PACKET_HEADER_BYTES).ok_or_else(outside)?;
        let [next, s, ns, kept_bytes, size_bytes] = [
            word(header, 0)?,
            word(header, 4)?,
            word(header, 8)?,
            word(header, 12)?,
            word(header, 16)?,
        ];
        let start = usize::from(u16::from_ne_bytes([header[24], header[25]]));
        let kept = rest.get(start..start + kept_bytes as usize).ok_or_else(outside)?;
        if next == 0 && self.left > 0 {
            return Err(damaged("a packet without a successor is not the last"));
        }
        self.at += next as usize;
        Ok(Captured { time_ns: u64::from(s) * 1_000_000_000 + u64::from(ns), kept, size_bytes })
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = io::Result<Captured<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some(self.packet())
    }
}

fn word(bytes: &[u8], at: usize) -> io::Result<u32> {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
    word.map(u32::from_ne_bytes).ok_or_else(outside)
}

fn outside() -> io::Error {
    damaged("a packet lies outside its block")
}

fn damaged(how: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the captured packets are damaged: {how}"))
}

#[cfg(test)]
mod tests;
