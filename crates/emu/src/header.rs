//! What a link has to know of an IP packet: its flow and its ECN field.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use jostle_path::Ecn;

const DCCP: u8 = 33;
const SCTP: u8 = 132;
const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_LITE: u8 = 136;

/// RFC 8200, 4: extension headers with a length in units of 8 bytes, and the fragment header.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

/// RFC 791, 3.1: more fragments, or an offset.
const IPV4_FRAGMENT: u16 = 0x3fff;

/// RFC 3168, 5: CE, the codepoint with both bits set.
const CONGESTION_EXPERIENCED: u8 = 0b11;

/// What tells flows apart. Ports are 0 for protocols without them, and for fragments: those beyond
/// the first carry none, and a flow should not be two (Linux dissects flows in the same way).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    /// Number of the protocol above IP, behind any extension headers of IPv6.
    pub protocol: u8,
    /// Address of the sender.
    pub source: IpAddr,
    /// Port of the sender.
    pub source_port: u16,
    /// Address of the receiver.
    pub destination: IpAddr,
    /// Port of the receiver.
    pub destination_port: u16,
}

impl FlowKey {
    /// Number of the flow for disciplines that tell flows apart: 32-bit FNV-1a, the same in every
    /// run. Linux perturbs its hash; here a seed has to mean something.
    pub fn number(&self) -> u32 {
        let hash = |hash, bytes: &[u8]| {
            bytes
                .iter()
                .fold(hash, |hash: u32, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
        };
        let address = |so_far, address| match address {
            IpAddr::V4(address) => hash(so_far, &Ipv4Addr::octets(&address)),
            IpAddr::V6(address) => hash(so_far, &Ipv6Addr::octets(&address)),
        };
        let addresses = address(address(0x811c_9dc5, self.source), self.destination);
        let ports = hash(addresses, &self.source_port.to_be_bytes());
        hash(hash(ports, &self.destination_port.to_be_bytes()), &[self.protocol])
    }
}

/// What a link has to know of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Flow of the packet.
    pub flow: FlowKey,
    /// ECN field.
    pub ecn: Ecn,
}

impl Header {
    /// Reads the header of an IPv4 or IPv6 packet; none if it is neither or too short for it.
    pub fn read(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => ipv4(packet),
            6 => ipv6(packet),
            _ => None,
        }
    }
}

fn ipv4(packet: &[u8]) -> Option<Header> {
    let header = packet.first_chunk::<20>()?;
    let header_bytes = usize::from(header[0] & 0xf) * 4;
    if header_bytes < header.len() {
        return None;
    }
    let fragment = u16::from_be_bytes([header[6], header[7]]) & IPV4_FRAGMENT != 0;
    let protocol = header[9];
    let above = packet.get(header_bytes..).unwrap_or_default();
    let (source_port, destination_port) = ports(protocol, above, fragment);
    let address = |at| Ipv4Addr::from_bits(u32::from_be_bytes(four(header, at)));
    Some(Header {
        flow: FlowKey {
            protocol,
            source: address(12).into(),
            source_port,
            destination: address(16).into(),
            destination_port,
        },
        ecn: ecn(header[1]),
    })
}

fn four(header: &[u8; 20], at: usize) -> [u8; 4] {
    [header[at], header[at + 1], header[at + 2], header[at + 3]]
}

fn ipv6(packet: &[u8]) -> Option<Header> {
    let (header, mut above) = packet.split_first_chunk::<40>()?;
    let mut protocol = header[6];
    let mut fragment = false;
    // Every turn takes at least 8 bytes off, so this ends.
    while let Some(extension) = above.first_chunk::<8>() {
        let length_bytes = match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => (usize::from(extension[1]) + 1) * 8,
            FRAGMENT => {
                fragment = true;
                8
            }
            _ => break,
        };
        protocol = extension[0];
        above = above.get(length_bytes..).unwrap_or_default();
        if fragment {
            break;
        }
    }
    let (source_port, destination_port) = ports(protocol, above, fragment);
    let address = |bytes: &[u8]| {
        let mut octets = [0; 16];
        octets.copy_from_slice(bytes);
        Ipv6Addr::from(octets)
    };
    Some(Header {
        flow: FlowKey {
            protocol,
            source: address(&header[8..24]).into(),
            source_port,
            destination: address(&header[24..40]).into(),
            destination_port,
        },
        // The traffic class lies across the first two bytes (RFC 8200, 3).
        ecn: ecn(header[1] >> 4),
    })
}

/// All of these begin with the source and the destination port.
fn ports(protocol: u8, above: &[u8], fragment: bool) -> (u16, u16) {
    let has_ports = matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE) && !fragment;
    match above.first_chunk::<4>() {
        Some(&[a, b, c, d]) if has_ports => {
            (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
        }
        _ => (0, 0),
    }
}

/// RFC 3168, 5, and RFC 9331 for what ECT(1) means.
const fn ecn(traffic_class: u8) -> Ecn {
    match traffic_class & 0b11 {
        0b00 => Ecn::NotCapable,
        0b01 => Ecn::L4s,
        0b10 => Ecn::Capable,
        _ => Ecn::Marked,
    }
}

/// Sets the ECN field of a packet to "congestion experienced" and mends the checksum that covers
/// it. Checksums of the transport do not: neither pseudo-header has the field in it.
pub fn mark_congestion(packet: &mut [u8]) {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) if packet.len() >= 20 => {
            let before = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= CONGESTION_EXPERIENCED;
            let after = u16::from_be_bytes([packet[0], packet[1]]);
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            let mended = updated_checksum(checksum, before, after);
            packet[10..12].copy_from_slice(&mended.to_be_bytes());
        }
        Some(6) if packet.len() >= 40 => packet[1] |= CONGESTION_EXPERIENCED << 4,
        _ => {}
    }
}

/// RFC 1624, equation 3: HC' = ~(~HC + ~m + m') in one's complement.
fn updated_checksum(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
pub(crate) mod tests;
