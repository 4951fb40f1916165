//! What travels through the simulated network: a header of TCP, or a datagram.

use jostle_path::{Ecn, Headers, Packet, PureAck};
use jostle_record::{Header, HeaderKind};
use jostle_tcp::{Ack, Data, Segment, Syn, SynAck, Trip};
use jostle_units::{DATAGRAM_HEADER_BYTES, HEADER_BYTES, LINK_HEADER_BYTES, Time};

use crate::payloads::Payloads;

/// Smallest Ethernet frame, without the checksum that no size here counts.
const SMALLEST_FRAME_BYTES: u32 = 60;

/// A datagram of a ping, there or back, or one that nobody answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Counted from 0.
    pub number: u32,
    pub payload_bytes: u16,
    pub trip: Trip,
}

/// A datagram of QUIC, there or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuicDatagram {
    /// Of its payload ([`Payloads`]).
    pub place: u32,
    pub payload_bytes: u16,
    /// As it was sent: no more is known of what has come back.
    pub ecn: Ecn,
    pub trip: Trip,
}

impl QuicDatagram {
    /// Keeps the payload until the datagram has arrived or is dropped.
    pub fn new(payloads: &mut Payloads, payload: &[u8], ecn: Ecn) -> Self {
        let place = payloads.keep(payload);
        Self { place, payload_bytes: payload.len() as u16, ecn, trip: Trip::NONE }
    }
}

/// A browser's request, from the receiver to the sender. The first of a connection opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Counted from 0 on each connection.
    pub number: u32,
    pub payload_bytes: u16,
}

/// The body of a packet. The tag lies in what that of [`Segment`] leaves unused, so that a packet
/// fills one cache line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// A segment of TCP.
    Tcp(Segment),
    /// A datagram, from the sender.
    Ping(Datagram),
    /// The datagram as the receiver sends it back.
    Echo(Datagram),
    /// A datagram that nobody answers.
    OneWay(Datagram),
    /// A datagram of QUIC, from the sender.
    Quic(QuicDatagram),
    /// One from the receiver.
    QuicBack(QuicDatagram),
    /// A browser's request.
    Request(Request),
}

/// A packet of the simulated network.
pub(crate) type SimPacket = Packet<Body>;

impl Body {
    /// Whether it goes from the sender to the receiver.
    #[inline]
    pub const fn is_forward(&self) -> bool {
        matches!(
            self,
            Self::Tcp(Segment::Syn(_) | Segment::Data(_))
                | Self::Ping(_)
                | Self::OneWay(_)
                | Self::Quic(_)
        )
    }

    /// The SYN that it is.
    #[inline]
    pub const fn as_syn_mut(&mut self) -> Option<&mut Syn> {
        match self {
            Self::Tcp(Segment::Syn(syn)) => Some(syn),
            _ => None,
        }
    }

    /// What is noted on the way of data.
    #[inline]
    pub const fn trip_mut(&mut self) -> Option<&mut Trip> {
        if let Self::Tcp(Segment::Data(data)) = self {
            return Some(&mut data.trip);
        }
        match self {
            Self::Ping(Datagram { trip, .. })
            | Self::OneWay(Datagram { trip, .. })
            | Self::Quic(QuicDatagram { trip, .. }) => Some(trip),
            _ => None,
        }
    }

    /// Size on the wire, link header included.
    #[inline]
    pub const fn wire_bytes(&self) -> u32 {
        match self {
            Self::Tcp(segment) => segment.wire_bytes(),
            Self::Request(request) => HEADER_BYTES + request.payload_bytes as u32,
            Self::Ping(Datagram { payload_bytes, .. })
            | Self::Echo(Datagram { payload_bytes, .. })
            | Self::OneWay(Datagram { payload_bytes, .. })
            | Self::Quic(QuicDatagram { payload_bytes, .. })
            | Self::QuicBack(QuicDatagram { payload_bytes, .. }) => frame_bytes(*payload_bytes),
        }
    }

    /// What the header of IP said when it left, if that is still known.
    pub const fn sent_ecn(&self) -> Option<Ecn> {
        match self {
            Self::Quic(datagram) | Self::QuicBack(datagram) => Some(datagram.ecn),
            _ => None,
        }
    }

    /// Place of a payload that has to be given back.
    #[inline]
    pub const fn payload_place(&self) -> Option<u32> {
        match self {
            Self::Quic(datagram) | Self::QuicBack(datagram) => Some(datagram.place),
            _ => None,
        }
    }
}

impl Headers for Body {
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
            marks: (ack.ece, ack.marks),
            blocks: ack.blocks.map(|block| (block.start, block.end)),
            block_count: ack.block_count,
        })
    }
}

/// Size on the wire of a datagram.
pub(crate) const fn frame_bytes(payload_bytes: u16) -> u32 {
    let bytes = LINK_HEADER_BYTES + DATAGRAM_HEADER_BYTES + payload_bytes as u32;
    if bytes < SMALLEST_FRAME_BYTES { SMALLEST_FRAME_BYTES } else { bytes }
}

/// What the headers of `segment` say, for those who record segments; it is seen at `now`, and `ecn`
/// is in the header of IP.
pub(crate) fn header(segment: &Segment, now: Time, ecn: Ecn) -> Header {
    let none = Header {
        kind: HeaderKind::Syn,
        number: 0,
        payload_bytes: 0,
        ecn,
        ecn_flag: false,
        tsval_ms: 0,
        tsecr_ms: 0,
        window_packets: 0,
        blocks: [(0, 0); 3],
        block_count: 0,
    };
    match *segment {
        Segment::Syn(Syn { ecn, tsval_ms, .. }) => Header { ecn_flag: ecn, tsval_ms, ..none },
        Segment::SynAck(SynAck { ecn, clock, tsecr_ms, window, .. }) => Header {
            kind: HeaderKind::SynAck,
            ecn_flag: ecn,
            tsval_ms: clock.tsval_ms(now),
            tsecr_ms,
            window_packets: window,
            ..none
        },
        Segment::Data(Data { cwr, payload_bytes, number, tsval_ms, tsecr_ms, .. }) => Header {
            kind: HeaderKind::Data,
            number,
            payload_bytes,
            ecn_flag: cwr,
            tsval_ms,
            tsecr_ms,
            ..none
        },
        Segment::Ack(Ack { ece, block_count, clock, number, tsecr_ms, window, blocks, .. }) => {
            Header {
                kind: HeaderKind::Ack,
                number,
                ecn_flag: ece,
                tsval_ms: clock.tsval_ms(now),
                tsecr_ms,
                window_packets: window,
                blocks: blocks.map(|block| (block.start, block.end)),
                block_count,
                ..none
            }
        }
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
        let of = |payload_bytes| Datagram { number: 0, payload_bytes, trip: Trip::NONE };
        assert_eq!(Body::Ping(of(20)).wire_bytes(), 62);
        assert_eq!(Body::Echo(of(1)).wire_bytes(), 60);
    }
}
