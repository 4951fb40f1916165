use std::net::IpAddr;

use jostle_link::Ecn;
use proptest::prelude::*;

use super::*;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// RFC 1071, computed over the whole header: the reference for the incremental update.
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// A UDP packet from 10.0.0.1:1000 to 10.0.0.2:2000, with `options` words of IP options.
pub(crate) fn ipv4_packet(tos: u8, fragment: u16, options: u8) -> Vec<u8> {
    let mut packet = vec![0x45 + options, tos, 0, 0, 0x12, 0x34, 0, 0, 64, UDP, 0, 0];
    packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(vec![1; usize::from(options) * 4]);
    packet[6..8].copy_from_slice(&fragment.to_be_bytes());
    let sum = checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend([0x03, 0xe8, 0x07, 0xd0, 0, 8, 0, 0]);
    packet
}

/// The same from fd00::1 to fd00::2 behind the given extension headers.
fn ipv6_packet(traffic_class: u8, next: u8, extensions: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60 | traffic_class >> 4, traffic_class << 4 | 0xa, 0xbc, 0xde];
    packet.extend([0, 0, next, 64]);
    for last in [1, 2] {
        packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(extensions);
    packet.extend([0x03, 0xe8, 0x07, 0xd0, 0, 8, 0, 0]);
    packet
}

#[test]
fn ports_are_found_behind_options() {
    for options in [0, 1, 10] {
        let header = Header::read(&ipv4_packet(0, 0, options)).unwrap();
        let flow = FlowKey {
            protocol: UDP,
            source: address("10.0.0.1"),
            source_port: 1000,
            destination: address("10.0.0.2"),
            destination_port: 2000,
        };
        assert_eq!(header.flow, flow);
    }
}

#[test]
fn ports_are_found_behind_extension_headers() {
    let hop_by_hop = [DESTINATION_OPTIONS, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let options = [UDP, 0, 0, 0, 0, 0, 0, 0];
    let extensions = [&hop_by_hop[..], &options].concat();
    for packet in [ipv6_packet(0, UDP, &[]), ipv6_packet(0, HOP_BY_HOP, &extensions)] {
        let flow = Header::read(&packet).unwrap().flow;
        assert_eq!((flow.protocol, flow.source_port, flow.destination_port), (UDP, 1000, 2000));
        assert_eq!((flow.source, flow.destination), (address("fd00::1"), address("fd00::2")));
    }
}

#[test]
fn all_fragments_of_a_packet_are_one_flow() {
    let ports = |packet: &[u8]| {
        let flow = Header::read(packet).unwrap().flow;
        (flow.protocol, flow.source_port, flow.destination_port)
    };
    // RFC 791: the first has only "more fragments", the last only an offset, and "don't fragment"
    // is no fragment.
    assert_eq!(ports(&ipv4_packet(0, 0x2000, 0)), (UDP, 0, 0));
    assert_eq!(ports(&ipv4_packet(0, 0x00b9, 0)), (UDP, 0, 0));
    assert_eq!(ports(&ipv4_packet(0, 0x4000, 0)), (UDP, 1000, 2000));
    assert_eq!(ports(&ipv6_packet(0, FRAGMENT, &[UDP, 0, 0, 1, 0, 0, 0, 7])), (UDP, 0, 0));
}

#[test]
fn both_fields_are_read_from_both_versions() {
    let expected = [Ecn::NotCapable, Ecn::L4s, Ecn::Capable, Ecn::Marked];
    for (bits, ecn) in (0u8..).zip(expected) {
        for dscp in [0, 1, 34, 46, 56] {
            let class = dscp << 2 | bits;
            for packet in [ipv4_packet(class, 0, 0), ipv6_packet(class, UDP, &[])] {
                let header = Header::read(&packet).unwrap();
                assert_eq!((header.dscp, header.ecn), (dscp, ecn));
            }
        }
    }
}

#[test]
fn a_mark_changes_the_ecn_field_and_nothing_else() {
    let mut packet = ipv6_packet(0xba, UDP, &[]);
    let before = packet.clone();
    mark_congestion(&mut packet);
    assert_eq!((packet[0], packet[1]), (before[0], before[1] | 0x30));
    assert_eq!(packet[2..], before[2..]);
    assert_eq!(Header::read(&packet).unwrap().ecn, Ecn::Marked);
}

#[test]
fn flow_numbers_are_fixed_and_tell_directions_apart() {
    let there = Header::read(&ipv4_packet(0, 0, 0)).unwrap().flow;
    let back = FlowKey {
        source: there.destination,
        source_port: there.destination_port,
        destination: there.source,
        destination_port: there.source_port,
        ..there
    };
    // FNV-1a of 0a000001 0a000002 03e8 07d0 11, computed apart.
    assert_eq!(there.number(), FLOW_NUMBER);
    assert_ne!(there.number(), back.number());
}

const FLOW_NUMBER: u32 = 0x2e51_6e3f;

proptest! {
    #[test]
    fn a_mark_leaves_the_checksum_right(
        tos in any::<u8>(), id in any::<u16>(), ttl in any::<u8>(), source in any::<u32>(),
    ) {
        let mut packet = ipv4_packet(tos, 0, 0);
        packet[4..6].copy_from_slice(&id.to_be_bytes());
        packet[8] = ttl;
        packet[12..16].copy_from_slice(&source.to_be_bytes());
        packet[10..12].fill(0);
        let sum = checksum(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        mark_congestion(&mut packet);
        prop_assert_eq!(checksum(&packet[..20]), 0);
        prop_assert_eq!(Header::read(&packet).unwrap().ecn, Ecn::Marked);
    }

    #[test]
    fn whatever_arrives_is_read_or_left_alone(mut packet in prop::collection::vec(any::<u8>(), 0..120)) {
        let header = Header::read(&packet);
        let length = packet.len();
        mark_congestion(&mut packet);
        prop_assert_eq!(packet.len(), length);
        prop_assert_eq!(header.is_some(), Header::read(&packet).is_some());
    }

    #[test]
    fn truncated_packets_are_no_danger(cut in 0usize..60, options in 0u8..11) {
        let packet = ipv4_packet(0, 0, options);
        let cut = cut.min(packet.len());
        prop_assert_eq!(Header::read(&packet[..cut]).is_some(), cut >= 20);
    }
}
