//! Packets of the simulated network: TCP segments and datagrams.

use jostle_congestion::QuickStartRate;
use jostle_link::{Ecn, Packet, PacketClass, PureAck, TransportHeader};
use jostle_metrics::{HeaderKind, SegmentHeader};
use jostle_tcp::{Ack, AckTag, Data, DataWithAck, Segment, Syn, SynAck, TransitTimes};
use jostle_units::{DATAGRAM_HEADER_BYTES, LINK_HEADER_BYTES, Time};

/// Smallest Ethernet frame without the frame check sequence, which no packet size includes.
const SMALLEST_FRAME_BYTES: u32 = 60;

/// A ping, its echo, or a CBR datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Sequence number, from 0.
    pub number: u32,
    pub payload_bytes: u16,
    pub trip: TransitTimes,
}

/// A QUIC datagram in either direction, or a UDP datagram of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuicDatagram {
    /// Index of its payload in the [`PayloadPool`].
    pub place: u32,
    pub payload_bytes: u16,
    /// ECN field at departure. The ECN field on arrival at the sender is not simulated.
    pub ecn: Ecn,
    pub trip: TransitTimes,
}

/// The body of a packet. The compiler stores the tag in unused bits of [`Segment`], so that a
/// packet fits into one cache line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// A TCP segment.
    Tcp(Segment),
    /// A ping from the sender.
    Ping(Datagram),
    /// The echo of a ping from the receiver.
    Echo(Datagram),
    /// A CBR datagram from the sender, without reply.
    OneWay(Datagram),
    /// A QUIC datagram from the sender.
    Quic(QuicDatagram),
    /// A QUIC datagram from the receiver.
    QuicBack(QuicDatagram),
    /// A UDP datagram of a tunnel.
    Tunnelled(QuicDatagram),
}

/// A packet of the simulated network.
pub(crate) type SimPacket = Packet<Body>;

impl Body {
    /// Returns whether it travels from the sender to the receiver.
    #[inline]
    pub const fn is_forward(&self) -> bool {
        matches!(
            self,
            Self::Tcp(
                Segment::Syn(_)
                    | Segment::Data(_)
                    | Segment::DataWithAck(_)
                    | Segment::SynAck(SynAck { tag: AckTag::OfSender, .. })
                    | Segment::Ack(Ack { tag: AckTag::OfSender | AckTag::OfHandshake, .. })
            ) | Self::Ping(_)
                | Self::OneWay(_)
                | Self::Quic(_)
                | Self::Tunnelled(_)
        )
    }

    /// Returns the rate that a SYN or SYN-ACK requests (RFC 4782).
    #[inline]
    pub const fn requested_rate_mut(&mut self) -> Option<&mut QuickStartRate> {
        match self {
            Self::Tcp(
                Segment::Syn(Syn { rate, .. })
                | Segment::SynAck(SynAck { rate, requests_rate: true, .. }),
            ) => Some(rate),
            _ => None,
        }
    }

    /// Returns the transit times of a packet in the forward direction.
    #[inline]
    pub const fn trip_mut(&mut self) -> Option<&mut TransitTimes> {
        if let Self::Tcp(Segment::Data(data)) = self {
            return Some(&mut data.trip);
        }
        match self {
            Self::Tcp(Segment::DataWithAck(DataWithAck { data: Data { trip, .. }, .. }))
            | Self::Ping(Datagram { trip, .. })
            | Self::OneWay(Datagram { trip, .. })
            | Self::Quic(QuicDatagram { trip, .. })
            | Self::Tunnelled(QuicDatagram { trip, .. }) => Some(trip),
            _ => None,
        }
    }

    /// Returns the size on the wire, including the link header.
    #[inline]
    pub const fn wire_bytes(&self) -> u32 {
        match self {
            Self::Tcp(segment) => segment.wire_bytes(),
            Self::Ping(Datagram { payload_bytes, .. })
            | Self::Echo(Datagram { payload_bytes, .. })
            | Self::OneWay(Datagram { payload_bytes, .. })
            | Self::Quic(QuicDatagram { payload_bytes, .. })
            | Self::QuicBack(QuicDatagram { payload_bytes, .. })
            | Self::Tunnelled(QuicDatagram { payload_bytes, .. }) => frame_bytes(*payload_bytes),
        }
    }

    /// Returns the size of the IP packet. It has no padding of a link.
    pub const fn ip_bytes(&self) -> u32 {
        match self {
            Self::Tcp(_) => self.wire_bytes() - LINK_HEADER_BYTES,
            Self::Ping(Datagram { payload_bytes, .. })
            | Self::Echo(Datagram { payload_bytes, .. })
            | Self::OneWay(Datagram { payload_bytes, .. })
            | Self::Quic(QuicDatagram { payload_bytes, .. })
            | Self::QuicBack(QuicDatagram { payload_bytes, .. })
            | Self::Tunnelled(QuicDatagram { payload_bytes, .. }) => {
                DATAGRAM_HEADER_BYTES + *payload_bytes as u32
            }
        }
    }

    /// Returns the ECN field at departure, if it is recorded.
    pub const fn sent_ecn(&self) -> Option<Ecn> {
        match self {
            Self::Quic(datagram) | Self::QuicBack(datagram) => Some(datagram.ecn),
            _ => None,
        }
    }

    /// Returns the index of the payload of a datagram, which may carry a packet of a tunnel.
    #[inline]
    pub const fn datagram_place(&self) -> Option<u32> {
        match self {
            Self::Quic(datagram) | Self::QuicBack(datagram) | Self::Tunnelled(datagram) => {
                Some(datagram.place)
            }
            _ => None,
        }
    }

    /// Stores the ECN field of the IP header in a segment that leaves its packet.
    #[cold]
    pub const fn keep_ecn(&mut self, ecn: Ecn) {
        if let Self::Tcp(Segment::DataWithAck(segment)) = self {
            segment.ecn = ecn;
        }
    }
}

impl TransportHeader for Body {
    #[inline]
    fn is_backward(&self) -> bool {
        !self.is_forward()
    }

    #[inline]
    fn pure_ack(&self) -> Option<PureAck> {
        let Self::Tcp(Segment::Ack(ack)) = self else { return None };
        Some(PureAck {
            number: ack.number,
            tsecr_ms: ack.tsecr_ms,
            marks: (ack.ece, ack.accecn.bits()),
            blocks: ack.blocks.map(|block| (block.start, block.end)),
            block_count: ack.block_count,
        })
    }

    fn class(&self) -> PacketClass {
        match self {
            Self::Tcp(Segment::Ack(_)) => PacketClass::Ack,
            Self::Tcp(Segment::Syn(_) | Segment::SynAck(_)) => PacketClass::Handshake,
            _ => PacketClass::Data,
        }
    }
}

/// Returns the size of a datagram on the wire.
pub(crate) const fn frame_bytes(payload_bytes: u16) -> u32 {
    let bytes = LINK_HEADER_BYTES + DATAGRAM_HEADER_BYTES + payload_bytes as u32;
    if bytes < SMALLEST_FRAME_BYTES { SMALLEST_FRAME_BYTES } else { bytes }
}

/// Returns the header of `segment` for sinks that record packets. The packet is captured at `now`
/// with `ecn` in its IP header.
pub(crate) fn header(segment: &Segment, now: Time, ecn: Ecn) -> SegmentHeader {
    let none = SegmentHeader {
        kind: HeaderKind::Syn,
        number: 0,
        payload_bytes: 0,
        ecn,
        ecn_flag: false,
        accecn: None,
        tsval_ms: 0,
        tsecr_ms: 0,
        window_packets: 0,
        blocks: [(0, 0); 3],
        block_count: 0,
    };
    match *segment {
        Segment::Syn(Syn { ecn, tsval_ms, .. }) => {
            SegmentHeader { ecn_flag: ecn, tsval_ms, ..none }
        }
        Segment::SynAck(SynAck { ecn, clock, tsecr_ms, window, .. }) => SegmentHeader {
            kind: HeaderKind::SynAck,
            ecn_flag: ecn,
            tsval_ms: clock.tsval_ms(now),
            tsecr_ms,
            window_packets: window,
            ..none
        },
        Segment::Data(data) | Segment::DataWithAck(DataWithAck { data, .. }) => {
            let Data { cwr, payload_bytes, number, tsval_ms, tsecr_ms, .. } = data;
            SegmentHeader {
                kind: HeaderKind::Data,
                number,
                payload_bytes,
                ecn_flag: cwr,
                tsval_ms,
                tsecr_ms,
                ..none
            }
        }
        Segment::Ack(Ack { tag: AckTag::OfHandshake, clock, tsecr_ms, .. }) => SegmentHeader {
            kind: HeaderKind::HandshakeAck,
            tsval_ms: clock.tsval_ms(now),
            tsecr_ms,
            ..none
        },
        Segment::Ack(ref ack) => ack_header(ack, now, none),
    }
}

/// Returns the header of an ACK without data. `none` has the other fields.
fn ack_header(ack: &Ack, now: Time, none: SegmentHeader) -> SegmentHeader {
    let accecn = ack.accecn;
    SegmentHeader {
        kind: HeaderKind::Ack,
        number: ack.number,
        ecn_flag: ack.ece,
        accecn: accecn.is_used().then_some((accecn.ace() as u8, accecn.option())),
        tsval_ms: ack.clock.tsval_ms(now),
        tsecr_ms: ack.tsecr_ms,
        window_packets: ack.window,
        blocks: ack.blocks.map(|block| (block.start, block.end)),
        block_count: ack.block_count,
        ..none
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_fills_one_cache_line() {
        assert!(size_of::<SimPacket>() <= 64, "{}", size_of::<SimPacket>());
    }

    #[test]
    fn sizes_are_those_of_ethernet_frames() {
        let of = |payload_bytes| Datagram { number: 0, payload_bytes, trip: TransitTimes::NONE };
        assert_eq!(Body::Ping(of(20)).wire_bytes(), 62);
        assert_eq!(Body::Echo(of(1)).wire_bytes(), 60);
    }
}
