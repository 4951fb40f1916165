//! A sender's access to the network.

use jostle_link::Ecn;
use jostle_metrics::EventSink;
use jostle_tcp::{Segment, SegmentSink};
use jostle_units::{ConnectionId, SendLimit, Time};

use crate::event_queue::Event;
use crate::network::{Network, leave, packet};
use crate::packet::{Body, SimPacket};
use crate::routes::FlowRoute;

/// A sender's access to the network.
pub(crate) struct SenderPort<'a, S> {
    pub network: &'a mut Network,
    pub sink: &'a mut S,
    pub connection: ConnectionId,
}

impl<S: EventSink> SenderPort<'_, S> {
    /// Sends a packet, by the NIC if there is one. Always inlined: the caller knows the kind of
    /// packet and builds it in place.
    #[inline(always)]
    pub fn send(&mut self, now: Time, body: Body, ecn: Ecn) {
        let Self { connection, ref mut network, ref mut sink } = *self;
        let route = network.routes.of(connection);
        let mut packet = packet(connection, route.dscp, body, ecn);
        let Some((hop, link)) = route.path.first().filter(|_| route.nic.is_none()) else {
            return self.send_slow_path(now, packet);
        };
        packet.hop = hop;
        leave(*sink, &network.payloads, now, &mut packet);
        network.push(now, link, packet, *sink);
    }

    /// Sends by a NIC, or along a path without links.
    #[inline(never)]
    fn send_slow_path(&mut self, now: Time, mut packet: SimPacket) {
        if self.network.routes.of(self.connection).nic.is_some() {
            return self.enqueue_at_nic(now, packet);
        }
        leave(self.sink, &self.network.payloads, now, &mut packet);
        let &FlowRoute { delays_data, line, .. } = self.network.routes.of(self.connection);
        if delays_data {
            packet.transport.keep_ecn(packet.ecn);
            self.network.enter_access(now, line, self.connection, packet.transport);
        } else {
            self.network.send_without_links(now, packet);
        }
    }

    fn enqueue_at_nic(&mut self, now: Time, packet: SimPacket) {
        let connection = self.connection;
        let route = self.network.routes.of_mut(connection);
        let Some(nic) = &mut route.nic else { return };
        if nic.queue.is_empty() {
            let at = now + nic.rate.time_for(u64::from(packet.size_bytes));
            self.network.agenda.schedule(at, Event::Nic(connection));
        }
        nic.queued_bytes += u64::from(packet.size_bytes);
        nic.queue.push_back(packet);
    }
}

impl<S: EventSink> SegmentSink for SenderPort<'_, S> {
    #[inline(always)]
    fn transmit(&mut self, now: Time, segment: Segment, ecn: Ecn) {
        self.send(now, Body::Tcp(segment), ecn);
    }

    #[inline]
    fn host_queue_bytes(&self) -> u64 {
        self.network.routes.of(self.connection).nic.as_ref().map_or(0, |nic| nic.queued_bytes)
    }

    #[inline]
    fn note_sent(&mut self, now: Time, packets: u32, wire_bytes: u64, retransmission: bool) {
        self.sink.sent(now, self.connection, packets, wire_bytes, retransmission);
    }

    #[inline]
    fn note_limit(&mut self, now: Time, limit: SendLimit) {
        self.sink.send_limit(now, self.connection, limit);
    }
}
