//! Parsing of packet headers. Only headers are read, so captures with a short snap length work.

use std::net::{IpAddr, Ipv4Addr};

use etherparse::{IpNumber, LaxIpSlice, TcpHeaderSlice, TcpOptionElement, UdpHeaderSlice};

use crate::capture_file::Frame;
use crate::encapsulation::{Encapsulation, Layer, Position, UnreadHeader, UnreadKind};

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
    /// Whether the IP header states more bytes than the frame has.
    pub is_beyond_frame: bool,
    /// Identification of the IPv4 header, 0 if there is none.
    pub identification: u16,
    /// Hash of the first bytes of a datagram's payload; see [`content`].
    pub content: u32,
    /// Innermost encapsulation around the packet.
    pub inside: Option<Encapsulation>,
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
    /// Whether the snap length cut off options.
    pub is_cut: bool,
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

    /// Returns the first byte of each full-sized packet of the segment, which begins at `start`, with
    /// its time stamp.
    pub fn packet_keys(&self, start: u64, mss_bytes: u32) -> impl Iterator<Item = (u64, u32)> {
        let stamp = self.stamps.map_or(0, |(value, _)| value);
        let end = start + u64::from(self.payload_bytes);
        (start..end).step_by(mss_bytes as usize).map(move |first| (first, stamp))
    }

    /// Sequence numbers that the segment occupies: payload, SYN and FIN.
    pub fn length(&self) -> u32 {
        self.payload_bytes + u32::from(self.syn) + u32::from(self.fin)
    }
}

const HEADER_OF_ETHERNET_BYTES: u32 = jostle_units::LINK_HEADER_BYTES;

impl Packet {
    /// A place for a packet.
    pub const NONE: Self = {
        let nowhere = Endpoint { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), port: 0 };
        Self {
            from: nowhere,
            to: nowhere,
            is_marked: false,
            understands_marks: false,
            wire_bytes: 0,
            is_beyond_frame: false,
            identification: 0,
            content: 0,
            inside: None,
            body: Body::Udp { payload_bytes: 0, is_quic: false },
        }
    };
}

/// Fields that the fragments of a datagram share (RFC 791, RFC 8200 §4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DatagramKey {
    pub from: IpAddr,
    pub to: IpAddr,
    pub protocol: u8,
    pub identification: u32,
}

/// A fragment of a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment {
    pub key: DatagramKey,
    /// Offset of its data, in bytes.
    pub offset: u32,
    /// Length of its data, in bytes.
    pub bytes: u32,
    pub more: bool,
    pub wire_bytes: u32,
    pub is_marked: bool,
    /// The packet with the payload of this fragment, if it is the first one.
    pub packet: Option<Packet>,
}

/// Contents of a frame.
#[derive(Clone, Debug)]
pub(crate) enum Decoded {
    Packet,
    /// A fragment of a TCP or UDP packet.
    Fragment(Box<Fragment>),
    /// A packet inside the first fragment of a tunnel's packet. The other fragments only carry
    /// payload.
    Tunnelled(Box<DatagramKey>),
    /// Another fragment of a tunnel's packet.
    Continuation,
}

/// Parses the headers of a frame. Writes the packet into `packet`.
#[inline]
pub(crate) fn read(frame: &Frame<'_>, packet: &mut Packet) -> Result<Decoded, UnreadKind> {
    // Long: one loop over headers, whose steps share what they found.
    let bytes = frame.bytes;
    let mut position = Position::first(frame.link.0, bytes);
    // End of the data that belongs to the present header: bytes of the frame on the wire.
    let mut end = frame.wire_bytes.max(bytes.len() as u32);
    let mut outer_is_marked = false;
    let mut outer_fragment = None;
    loop {
        position.find_ip(bytes)?;
        let ip_at = position.at;
        let start = bytes.get(ip_at..).unwrap_or_default();
        let Ok((ip, _)) = LaxIpSlice::from_slice(start) else {
            return Err(position.unread(unread_ip(start)));
        };
        let of_frame = end.saturating_sub(ip_at as u32);
        let facts = IpFacts::of(&ip, start);
        // The IP length is 0 in a TSO segment of more than 64 KiB.
        let stated = if facts.stated < facts.header_bytes { of_frame } else { facts.stated };
        let is_beyond_frame = stated > of_frame;
        let ip_bytes = stated.min(of_frame);
        let payload = ip.payload();
        let above = payload.payload;
        let above_at = above.as_ptr() as usize - bytes.as_ptr() as usize;
        // IP header with the extension headers of IPv6.
        let inner_bytes = ip_bytes.saturating_sub((above_at - ip_at) as u32);
        let key = DatagramKey {
            from: ip.source_addr(),
            to: ip.destination_addr(),
            protocol: payload.ip_number.0,
            identification: facts.identification,
        };
        let is_later_fragment = facts.offset != 0;
        let is_fragment = is_later_fragment || facts.more;
        let is_marked = facts.ecn == 3 || (outer_is_marked && facts.ecn != 0);
        let wire_bytes = ip_bytes.saturating_add(HEADER_OF_ETHERNET_BYTES);
        let tunnel = match payload.ip_number {
            IpNumber::IPV4 | IpNumber::IPV6 => Some((Layer::Ip, Encapsulation::IpInIp)),
            IpNumber::GRE => Some((Layer::Gre, Encapsulation::Gre)),
            IpNumber::MPLS_IN_IP => Some((Layer::Mpls, Encapsulation::IpInIp)),
            _ => None,
        };
        if tunnel.is_some() && is_later_fragment {
            return Ok(Decoded::Continuation);
        }
        let transport = match payload.ip_number {
            _ if tunnel.is_some() || is_later_fragment => None,
            IpNumber::TCP => tcp(above, inner_bytes),
            IpNumber::UDP => udp(above, inner_bytes),
            number => return Err(position.unread(UnreadHeader::IpProtocol(number.0))),
        };
        if let Some((layer, inside)) = tunnel {
            position.enter(layer, above_at, inside);
        } else if let Some((ports, body)) = transport {
            let is_tunnel = matches!(body, Body::Udp { .. })
                && position.enter_udp(ports, above.get(8..).unwrap_or_default(), above_at + 8);
            if !is_tunnel {
                *packet = Packet {
                    from: Endpoint { address: key.from, port: ports.0 },
                    to: Endpoint { address: key.to, port: ports.1 },
                    is_marked,
                    understands_marks: facts.ecn != 0,
                    wire_bytes,
                    is_beyond_frame,
                    identification: facts.identification as u16,
                    content: content(&body, above),
                    inside: position.inside,
                    body,
                };
                return Ok(match outer_fragment {
                    _ if is_fragment => Decoded::Fragment(Box::new(Fragment {
                        key,
                        offset: 0,
                        bytes: inner_bytes,
                        more: true,
                        wire_bytes,
                        is_marked,
                        packet: Some(*packet),
                    })),
                    Some(key) => Decoded::Tunnelled(Box::new(key)),
                    None => Decoded::Packet,
                });
            }
        } else if is_later_fragment && matches!(payload.ip_number, IpNumber::TCP | IpNumber::UDP) {
            return Ok(Decoded::Fragment(Box::new(Fragment {
                key,
                offset: facts.offset,
                bytes: inner_bytes,
                more: facts.more,
                wire_bytes,
                is_marked,
                packet: None,
            })));
        } else if is_later_fragment {
            let number = payload.ip_number.0;
            return Err(position.unread(UnreadHeader::IpProtocol(number)));
        } else {
            return Err(position.unread(unread_transport(above)));
        }
        // A tunnel. A packet in a first fragment is longer than the fragment.
        outer_is_marked = is_marked;
        end = if is_fragment { u32::MAX } else { (ip_at as u32).saturating_add(ip_bytes) };
        outer_fragment = is_fragment.then_some(key).or(outer_fragment);
    }
}

/// Fields of an IP header.
struct IpFacts {
    ecn: u8,
    /// Length of the packet, as the header states it. 0 if it does not.
    stated: u32,
    header_bytes: u32,
    identification: u32,
    /// Offset of a fragment, in bytes.
    offset: u32,
    more: bool,
}

impl IpFacts {
    /// Reads the fields of a parsed header, which is at the start of `bytes`.
    #[inline]
    fn of(ip: &LaxIpSlice<'_>, bytes: &[u8]) -> Self {
        match ip {
            LaxIpSlice::Ipv4(ip) => {
                let header = ip.header();
                Self {
                    ecn: header.ecn().value(),
                    stated: u32::from(header.total_len()),
                    header_bytes: header.slice().len() as u32,
                    identification: u32::from(header.identification()),
                    offset: u32::from(header.fragments_offset().value()) * 8,
                    more: header.more_fragments(),
                }
            }
            LaxIpSlice::Ipv6(ip) => {
                let header = ip.header();
                let length = u32::from(header.payload_length());
                let of_fragment = ipv6_fragment(bytes, header.next_header().0);
                let (identification, offset, more) = of_fragment.unwrap_or_default();
                Self {
                    ecn: header.traffic_class() & 3,
                    stated: if length == 0 { 0 } else { length + 40 },
                    header_bytes: 40,
                    identification,
                    offset,
                    more,
                }
            }
        }
    }
}

/// Returns identification, offset in bytes and "more fragments" of an IPv6 packet with a Fragment
/// header (RFC 8200 §4.5). Iterating over the extension headers of a slice of etherparse 0.21 that was
/// parsed laxly reads beyond its end if they are cut off.
fn ipv6_fragment(packet: &[u8], next_header: u8) -> Option<(u32, u32, bool)> {
    const HEADERS_MAX: usize = 16;
    const FRAGMENT: u8 = 44;
    const AUTHENTICATION: u8 = 51;
    let (mut kind, mut at) = (next_header, 40);
    for _ in 0..HEADERS_MAX {
        let header = packet.get(at..)?.first_chunk::<8>()?;
        at += match kind {
            FRAGMENT => {
                let [_, _, high, low, a, b, c, d] = *header;
                let offset = u32::from(u16::from_be_bytes([high, low & !7]));
                return Some((u32::from_be_bytes([a, b, c, d]), offset, low & 1 == 1));
            }
            // Hop-by-hop options, routing, destination options, mobility, HIP, Shim6.
            0 | 43 | 60 | 135 | 139 | 140 => 8 * (usize::from(header[1]) + 1),
            AUTHENTICATION => 4 * (usize::from(header[1]) + 2),
            _ => return None,
        };
        kind = header[0];
    }
    None
}

fn unread_ip(bytes: &[u8]) -> UnreadHeader {
    match bytes.first() {
        Some(first) if first >> 4 == 4 && bytes.len() < usize::from(first & 15) * 4 => {
            UnreadHeader::CutOff
        }
        Some(first) if first >> 4 == 6 && bytes.len() < 40 => UnreadHeader::CutOff,
        None => UnreadHeader::CutOff,
        Some(_) => UnreadHeader::Malformed,
    }
}

fn unread_transport(bytes: &[u8]) -> UnreadHeader {
    if bytes.len() < TCP_HEADER_BYTES { UnreadHeader::CutOff } else { UnreadHeader::Malformed }
}

/// Returns a hash of what tells one datagram from another of the same length: its checksum and the
/// first bytes of its payload. 0 if these are not captured.
fn content(body: &Body, bytes: &[u8]) -> u32 {
    /// Bytes of a QUIC header with the longest connection ID, its packet number included, and the
    /// first ones of the encrypted payload.
    const PAYLOAD_MIN_BYTES: usize = 32;
    const PAYLOAD_MAX_BYTES: usize = 64;
    let Body::Udp { payload_bytes, .. } = body else { return 0 };
    let kept = bytes.get(8..).unwrap_or_default();
    if kept.len() < PAYLOAD_MIN_BYTES.min(*payload_bytes as usize) || *payload_bytes == 0 {
        return 0;
    }
    let kept = &kept[..kept.len().min(PAYLOAD_MAX_BYTES)];
    let all = bytes[6..8].iter().chain(kept);
    // FNV-1a.
    all.fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)) | 1
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
    let is_cut = bytes.len() < header_bytes;
    let mut padded = [0; TCP_HEADER_MAX_BYTES];
    let header = if is_cut {
        padded[..bytes.len()].copy_from_slice(bytes);
        drop_incomplete_option(&mut padded[..header_bytes], bytes.len());
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
        is_cut,
        ..Segment::default()
    };
    // The usual options of a data packet (RFC 7323 §A).
    if let &[1, 1, 8, 10, a, b, c, d, e, f, g, h] = header.options() {
        segment.stamps = Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
        return Some(((header.source_port(), header.destination_port()), Body::Tcp(segment)));
    }
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

/// Overwrites the option of which only a part was captured with zeros. Of SACK blocks (RFC 2018 §3),
/// the complete ones remain.
fn drop_incomplete_option(header: &mut [u8], captured: usize) {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const SACK: u8 = 5;
    const BLOCK_BYTES: usize = 8;
    let mut at = TCP_HEADER_BYTES;
    while at < captured && header[at] != END {
        if header[at] == NO_OPERATION {
            at += 1;
            continue;
        }
        let length = if at + 1 < captured { usize::from(header[at + 1]) } else { usize::MAX };
        // A length below 2 is invalid: what follows is ignored anyway.
        if length < 2 {
            return;
        }
        if length > captured - at {
            let blocks = (captured - at).saturating_sub(2) / BLOCK_BYTES;
            let kept = if header[at] == SACK && blocks > 0 { 2 + blocks * BLOCK_BYTES } else { 0 };
            if kept > 0 {
                header[at + 1] = kept as u8;
            }
            header[at + kept..].fill(END);
            return;
        }
        at += length;
    }
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
