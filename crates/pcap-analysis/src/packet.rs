//! Parsing of packet headers. Only headers are read, so captures with a short snap length work.

use std::net::IpAddr;

use etherparse::{IpNumber, LaxIpSlice, TcpHeaderSlice, TcpOptionElement, UdpHeaderSlice};
use pcap_parser::Linktype;

use crate::capture_file::Frame;

/// Maximum number of SACK blocks in a header (RFC 2018 §3: four without other options).
const BLOCKS_MAX: usize = 4;

/// IP address and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Endpoint {
    pub address: IpAddr,
    pub port: u16,
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.address {
            IpAddr::V4(address) => write!(to, "{address}:{}", self.port),
            IpAddr::V6(address) => write!(to, "[{address}]:{}", self.port),
        }
    }
}

/// A TCP or UDP packet over IP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub from: Endpoint,
    pub to: Endpoint,
    /// Whether it carries a CE mark (RFC 3168).
    pub is_marked: bool,
    /// Whether its sender supports ECN: ECT or CE.
    pub understands_marks: bool,
    /// IP bytes plus an Ethernet header, for every link type of the capture.
    pub wire_bytes: u32,
    pub body: Body,
}

/// Transport header and payload size.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    Tcp(Segment),
    /// `is_quic` is true for a long header of QUIC.
    Udp {
        payload_bytes: u32,
        is_quic: bool,
    },
}

/// A TCP segment without its payload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segment {
    pub sequence: u32,
    pub acknowledgment: u32,
    pub payload_bytes: u32,
    /// Window field of the header, not scaled.
    pub window: u16,
    pub syn: bool,
    pub ack: bool,
    pub fin: bool,
    pub rst: bool,
    pub ece: bool,
    /// TSval and TSecr (RFC 7323).
    pub stamps: Option<(u32, u32)>,
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    blocks: [(u32, u32); BLOCKS_MAX],
    block_count: u8,
}

impl Segment {
    /// SACK blocks as (start, end); the end is exclusive.
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.block_count)]
    }

    /// Sequence numbers that the segment occupies: payload, SYN and FIN.
    pub fn length(&self) -> u32 {
        self.payload_bytes + u32::from(self.syn) + u32::from(self.fin)
    }
}

const HEADER_OF_ETHERNET_BYTES: u32 = jostle_units::LINK_HEADER_BYTES;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// EtherTypes of VLAN tags: 802.1Q, 802.1ad and a pre-standard value.
const VLANS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// Returns the offset of the IP header. `None` if the frame carries another protocol.
fn ip_of(frame: &Frame<'_>) -> Option<usize> {
    let bytes = frame.bytes;
    let word = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    // https://www.tcpdump.org/linktypes.html
    let (mut at, mut kind) = match frame.link.0 {
        1 => (14, word(12)?),
        // NULL and LOOP: a 4-byte address family whose value depends on the operating system.
        0 | 108 => return Some(4),
        // RAW (three numbers), IPV4 and IPV6.
        12 | 14 | 101 | 228 | 229 => return Some(0),
        // LINUX_SLL and LINUX_SLL2.
        113 => (16, word(14)?),
        276 => (20, word(0)?),
        // PPP (RFC 1661) and PPPoE session frames are not supported.
        _ => return None,
    };
    while VLANS.contains(&kind) {
        kind = word(at + 2)?;
        at += 4;
    }
    (kind == IPV4 || kind == IPV6).then_some(at)
}

/// Returns whether frames of this link type are supported.
pub(crate) fn is_known(link: Linktype) -> bool {
    matches!(link.0, 0 | 1 | 12 | 14 | 101 | 108 | 113 | 228 | 229 | 276)
}

/// Parses the headers of a frame. `None` if it is not TCP or UDP, or if the headers are incomplete.
pub(crate) fn read(frame: &Frame<'_>) -> Option<Packet> {
    let at = ip_of(frame)?;
    let (ip, _) = LaxIpSlice::from_slice(frame.bytes.get(at..)?).ok()?;
    // Length by the frame, used if the IP length is 0: a TSO segment of more than 64 KiB.
    let of_frame = frame.wire_bytes.saturating_sub(at as u32);
    let (ecn, said, headers) = match &ip {
        LaxIpSlice::Ipv4(ip) => {
            let header = ip.header();
            // Only the first fragment contains ports. The others are ignored.
            if header.fragments_offset().value() != 0 {
                return None;
            }
            (header.ecn().value(), u32::from(header.total_len()), header.slice().len() as u32)
        }
        LaxIpSlice::Ipv6(ip) => {
            let header = ip.header();
            let length = u32::from(header.payload_length());
            let said = if length == 0 { 0 } else { length + 40 };
            (header.traffic_class() & 3, said, 40)
        }
    };
    let ip_bytes = if said < headers { of_frame } else { said };
    let payload = ip.payload();
    let above = payload.payload;
    // Bytes of IPv6 extension headers.
    let extensions = (above.as_ptr() as usize)
        .saturating_sub(frame.bytes.as_ptr() as usize + at + headers as usize)
        as u32;
    let inner_bytes = ip_bytes.saturating_sub(headers + extensions);
    let (ports, body) = match payload.ip_number {
        IpNumber::TCP => tcp(above, inner_bytes)?,
        IpNumber::UDP => udp(above, inner_bytes)?,
        _ => return None,
    };
    Some(Packet {
        from: Endpoint { address: ip.source_addr(), port: ports.0 },
        to: Endpoint { address: ip.destination_addr(), port: ports.1 },
        is_marked: ecn == 3,
        understands_marks: ecn != 0,
        wire_bytes: ip_bytes.saturating_add(HEADER_OF_ETHERNET_BYTES),
        body,
    })
}

/// Longest TCP header.
const TCP_HEADER_MAX_BYTES: usize = 60;
const TCP_HEADER_BYTES: usize = 20;

fn tcp(bytes: &[u8], inner_bytes: u32) -> Option<((u16, u16), Body)> {
    let header_bytes = usize::from(bytes.get(12)? >> 4) * 4;
    if header_bytes < TCP_HEADER_BYTES || bytes.len() < TCP_HEADER_BYTES {
        return None;
    }
    // Truncated options are padded with zeros, which mean "end of option list".
    let mut padded = [0; TCP_HEADER_MAX_BYTES];
    let header = if bytes.len() < header_bytes {
        padded[..bytes.len()].copy_from_slice(bytes);
        &padded[..header_bytes]
    } else {
        &bytes[..header_bytes]
    };
    let header = TcpHeaderSlice::from_slice(header).ok()?;
    let mut segment = Segment {
        sequence: header.sequence_number(),
        acknowledgment: header.acknowledgment_number(),
        payload_bytes: inner_bytes.saturating_sub(header_bytes as u32),
        window: header.window_size(),
        syn: header.syn(),
        ack: header.ack(),
        fin: header.fin(),
        rst: header.rst(),
        ece: header.ece(),
        ..Segment::default()
    };
    // Options after an invalid option are ignored.
    for option in header.options_iterator().map_while(Result::ok) {
        match option {
            TcpOptionElement::MaximumSegmentSize(mss) => segment.mss = Some(mss),
            TcpOptionElement::WindowScale(scale) => segment.scale = Some(scale),
            TcpOptionElement::Timestamp(value, echo) => segment.stamps = Some((value, echo)),
            TcpOptionElement::SelectiveAcknowledgement(first, more) => {
                let every = [Some(first), more[0], more[1], more[2]];
                for (place, block) in segment.blocks.iter_mut().zip(every.into_iter().flatten()) {
                    *place = block;
                    segment.block_count += 1;
                }
            }
            _ => {}
        }
    }
    Some(((header.source_port(), header.destination_port()), Body::Tcp(segment)))
}

fn udp(bytes: &[u8], inner_bytes: u32) -> Option<((u16, u16), Body)> {
    let header = UdpHeaderSlice::from_slice(bytes.get(..8)?).ok()?;
    // RFC 9000 §17.2: long headers begin with two one-bits. Versions 1 and 2 (RFC 9369).
    const VERSIONS: [u32; 2] = [1, 0x6b33_43cf];
    let is_quic = match bytes.get(8..13) {
        Some(&[first, a, b, c, d]) => {
            first & 0xc0 == 0xc0 && VERSIONS.contains(&u32::from_be_bytes([a, b, c, d]))
        }
        _ => false,
    };
    let body = Body::Udp { payload_bytes: inner_bytes.saturating_sub(8), is_quic };
    Some(((header.source_port(), header.destination_port()), body))
}
