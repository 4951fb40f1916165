//! Parsing of IP packets for the links: flow, DSCP and ECN field.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use jostle_link::{Ecn, PacketClass};

const DCCP: u8 = 33;
const SCTP: u8 = 132;
const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_LITE: u8 = 136;

/// IPv6 extension headers with a length in units of 8 bytes, and the fragment header (RFC 8200, 4).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

/// Fragment bits of the IPv4 header (RFC 791 §3.1): more fragments, or a nonzero offset.
const IPV4_FRAGMENT: u16 = 0x3fff;

/// CE codepoint: both bits set (RFC 3168, 5).
const CONGESTION_EXPERIENCED: u8 = Ecn::Marked.bits();

/// Flow of a packet: protocol, addresses and ports. Ports are 0 for protocols without ports, and
/// for all fragments: only the first fragment contains ports, and all should belong to one flow (as
/// in Linux's flow dissector).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    /// Protocol number above IP, after IPv6 extension headers.
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
    /// Returns a number for queue disciplines with flow queues: 32-bit FNV-1a. Unlike Linux, the
    /// hash is not randomised, so that a seed determines the run.
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

/// Properties of a packet that links use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Flow of the packet.
    pub flow: FlowKey,
    /// Differentiated services codepoint.
    pub dscp: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// Class by which faults count packets.
    pub class: PacketClass,
}

impl Header {
    /// Parses an IPv4 or IPv6 packet. `None` if it is neither, or too short.
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
        dscp: header[1] >> 2,
        ecn: Ecn::from_bits(header[1]),
        class: class(protocol, above, fragment),
    })
}

fn four(header: &[u8; 20], at: usize) -> [u8; 4] {
    [header[at], header[at + 1], header[at + 2], header[at + 3]]
}

fn ipv6(packet: &[u8]) -> Option<Header> {
    let (header, mut above) = packet.split_first_chunk::<40>()?;
    let mut protocol = header[6];
    let mut fragment = false;
    // Every iteration consumes at least 8 bytes, so the loop ends.
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
        // The traffic class spans the first two bytes (RFC 8200, 3).
        dscp: header[0] << 2 & 0b11_1100 | header[1] >> 6,
        ecn: Ecn::from_bits(header[1] >> 4),
        class: class(protocol, above, fragment),
    })
}

/// Returns the class of a packet from the data offset and the flags of TCP (RFC 9293 §3.1).
fn class(protocol: u8, above: &[u8], fragment: bool) -> PacketClass {
    const SYN: u8 = 0b10;
    let Some(header) = above.first_chunk::<20>().filter(|_| protocol == TCP && !fragment) else {
        return PacketClass::Data;
    };
    if header[13] & SYN != 0 {
        return PacketClass::Handshake;
    }
    let header_bytes = usize::from(header[12] >> 4) * 4;
    if above.len() > header_bytes { PacketClass::Data } else { PacketClass::Ack }
}

/// Flips a bit in the last byte of a packet, which the checksum of TCP or UDP covers.
pub(crate) fn corrupt(packet: &mut [u8]) {
    if let Some(last) = packet.last_mut() {
        *last ^= 1;
    }
}

/// Returns the ports. All of these protocols begin with the source and destination port.
fn ports(protocol: u8, above: &[u8], fragment: bool) -> (u16, u16) {
    let has_ports = matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE) && !fragment;
    match above.first_chunk::<4>() {
        Some(&[a, b, c, d]) if has_ports => {
            (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
        }
        _ => (0, 0),
    }
}

/// Sets the ECN field of a packet to CE and updates the IPv4 header checksum. Transport checksums
/// do not change, because no pseudo-header contains the ECN field.
pub fn mark_congestion(packet: &mut [u8]) {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) if packet.len() >= 20 => {
            let before = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= CONGESTION_EXPERIENCED;
            let after = u16::from_be_bytes([packet[0], packet[1]]);
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            let updated = updated_checksum(checksum, before, after);
            packet[10..12].copy_from_slice(&updated.to_be_bytes());
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
