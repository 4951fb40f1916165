//! Tunnels: connections that carry the packets of other flows.
//!
//! One direction of a tunnel is a flow of the network, and a link that this flow serves. Inner
//! packets wait in the queue of the link, the entrance of the tunnel. When the connection accepts
//! data, the next packet is taken from the queue. At the other end it leaves the link and continues
//! on its path. TCP carries the packets in its byte stream, so that a lost segment delays all packets
//! behind it. A datagram of QUIC or UDP carries one packet, and both are lost together.

use std::collections::VecDeque;

use jostle_link::Ecn;
use jostle_metrics::{EventSink, FlowState};
use jostle_run_spec::TunnelSpec;
use jostle_tcp::{SegmentSink, TransitTimes};
use jostle_units::{LinkId, Span, Time};

use crate::packet::{Body, QuicDatagram, SimPacket};
use crate::payload_pool::CarriedPacket;
use crate::transport::{EndpointContext, Endpoints, FlowStatus};

/// Packets in the byte stream of a TCP connection.
#[derive(Debug)]
pub(crate) struct TunnelStream {
    pub link: LinkId,
    header_bytes: u32,
    /// Packets that were written and have not left the tunnel, with the offset of their end.
    packets: VecDeque<(u64, SimPacket)>,
    written_bytes: u64,
    delivered_bytes: u64,
    /// Queueing delay of the last segment that arrived.
    segment_queueing_delay: Span,
}

impl TunnelStream {
    pub fn new(spec: &TunnelSpec) -> Self {
        Self {
            link: spec.link,
            header_bytes: spec.header_bytes,
            packets: VecDeque::new(),
            written_bytes: 0,
            delivered_bytes: 0,
            segment_queueing_delay: Span::ZERO,
        }
    }

    /// Records the arrival of a segment.
    pub const fn note_segment(&mut self, trip: &TransitTimes) {
        self.segment_queueing_delay = trip.queueing_delay();
    }

    /// Appends a packet to the stream. Returns the bytes to write.
    pub fn write(&mut self, packet: SimPacket) -> u64 {
        let bytes = u64::from(packet.transport.ip_bytes() + self.header_bytes);
        self.written_bytes += bytes;
        self.packets.push_back((self.written_bytes, packet));
        bytes
    }

    /// Records that `bytes` more were delivered in order.
    pub const fn read(&mut self, bytes: u64) {
        self.delivered_bytes += bytes;
    }

    /// Returns the next packet that has arrived completely. Its queueing delay includes the
    /// delay of the segment that completed it.
    pub fn next_complete(&mut self) -> Option<CarriedPacket> {
        let complete = |&mut (end, _): &mut (u64, _)| end <= self.delivered_bytes;
        let (_, packet) = self.packets.pop_front_if(complete)?;
        let mut carried = CarriedPacket { link: self.link, packet };
        carried.wait(self.segment_queueing_delay);
        Some(carried)
    }
}

/// Entrance of a tunnel whose datagrams carry one packet each.
#[derive(Debug)]
pub(crate) struct TunnelDatagrams {
    link: LinkId,
    header_bytes: u32,
}

impl TunnelDatagrams {
    pub const fn new(spec: &TunnelSpec) -> Self {
        Self { link: spec.link, header_bytes: spec.header_bytes }
    }

    /// See [`Network::begin_taking`](crate::network::Network::begin_taking).
    pub fn begin_taking<S: EventSink>(&self, host: &mut EndpointContext<'_, S>) {
        host.network.begin_taking(self.link);
    }

    /// Takes the next packet from the entrance. Returns it with the payload of its datagram.
    pub fn take_next<S: EventSink>(
        &self,
        host: &mut EndpointContext<'_, S>,
    ) -> Option<(CarriedPacket, u16)> {
        let packet = host.network.take_next(host.now, self.link, host.sink)?;
        let payload_bytes = packet.transport.ip_bytes() + self.header_bytes;
        Some((CarriedPacket { link: self.link, packet }, payload_bytes as u16))
    }
}

/// A tunnel over UDP, without congestion control: the sender passes packets on at once.
#[derive(Debug)]
pub(crate) struct UdpTunnel {
    entrance: TunnelDatagrams,
    /// Whether the outer packets have the ECN field of the inner ones (the normal mode of RFC 6040
    /// §4.1), or none (its compatibility mode).
    copies_ecn: bool,
}

impl UdpTunnel {
    pub const fn new(spec: &TunnelSpec, copies_ecn: bool) -> Self {
        Self { entrance: TunnelDatagrams::new(spec), copies_ecn }
    }

    /// Sends all packets that wait at the entrance.
    pub fn send_waiting<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
        self.entrance.begin_taking(host);
        while let Some((carried, payload_bytes)) = self.entrance.take_next(host) {
            let ecn = if self.copies_ecn { carried.packet.ecn } else { Ecn::NotCapable };
            let mut datagram = host.network.payloads.datagram(&[], ecn);
            datagram.payload_bytes = payload_bytes;
            host.network.payloads.carry(datagram.place, carried);
            let (now, body) = (host.now, Body::Tunnelled(datagram));
            let mut port = host.port();
            port.note_sent(now, 1, u64::from(body.wire_bytes()), false);
            port.send(now, body, ecn);
        }
    }
}

/// Returns the ECN field of an inner packet whose outer packet arrives with `outer` (RFC 6040 §4.2,
/// figure 4), or `None` if it has to be dropped.
const fn decapsulated_ecn(inner: Ecn, outer: Ecn) -> Option<Ecn> {
    match (inner, outer) {
        (Ecn::NotCapable, Ecn::Marked) => None,
        (Ecn::Capable | Ecn::L4s, Ecn::Marked) => Some(Ecn::Marked),
        (Ecn::Capable, Ecn::L4s) => Some(Ecn::L4s),
        (inner, _) => Some(inner),
    }
}

impl Endpoints for UdpTunnel {
    type Message = QuicDatagram;

    fn run_application<S: EventSink>(&mut self, _: Time, host: &mut EndpointContext<'_, S>) {
        self.send_waiting(host);
    }

    fn receive<S: EventSink>(
        &mut self,
        datagram: &QuicDatagram,
        wire_bytes: u32,
        ecn: Ecn,
        _part: bool,
        host: &mut EndpointContext<'_, S>,
    ) {
        host.received(wire_bytes, &datagram.trip);
        let &mut EndpointContext { now, connection, .. } = host;
        host.sink.delivered(now, connection, u64::from(datagram.payload_bytes));
        let Some(mut carried) = host.network.payloads.release(datagram.place) else { return };
        carried.wait(datagram.trip.queueing_delay());
        match decapsulated_ecn(carried.packet.ecn, ecn) {
            Some(ecn) => {
                carried.packet.ecn = ecn;
                host.network.deliver(now, carried, host.sink);
            }
            None => host.network.lose(now, &carried, host.sink),
        }
    }

    fn receive_return<S: EventSink>(
        &mut self,
        _: &QuicDatagram,
        _: &mut EndpointContext<'_, S>,
    ) -> FlowStatus {
        debug_assert!(false, "nobody answers");
        FlowStatus::Open
    }

    fn state(&self) -> FlowState {
        FlowState::DATAGRAMS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6040, figure 4, without the codepoints that differ from it only for currently unused
    /// combinations.
    #[test]
    fn a_mark_of_the_outer_packet_marks_or_drops_the_inner_one() {
        let all = [Ecn::NotCapable, Ecn::Capable, Ecn::L4s, Ecn::Marked];
        for inner in all {
            assert_eq!(decapsulated_ecn(inner, Ecn::NotCapable), Some(inner));
            assert_eq!(decapsulated_ecn(inner, inner), Some(inner));
        }
        assert_eq!(decapsulated_ecn(Ecn::NotCapable, Ecn::Marked), None);
        assert_eq!(decapsulated_ecn(Ecn::Capable, Ecn::Marked), Some(Ecn::Marked));
        assert_eq!(decapsulated_ecn(Ecn::L4s, Ecn::Marked), Some(Ecn::Marked));
        assert_eq!(decapsulated_ecn(Ecn::Capable, Ecn::L4s), Some(Ecn::L4s));
        assert_eq!(decapsulated_ecn(Ecn::Marked, Ecn::Capable), Some(Ecn::Marked));
    }
}
