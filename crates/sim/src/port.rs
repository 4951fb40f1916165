//! A sender's door to the network.

use jostle_path::Ecn;
use jostle_record::Sink;
use jostle_tcp::{Egress, Segment};
use jostle_units::Time;

use crate::engine::Event;
use crate::network::{Network, leave, packet};
use crate::packet::{Body, SimPacket};

/// A sender's door to the network.
pub(crate) struct Port<'a, S> {
    pub network: &'a mut Network,
    pub sink: &'a mut S,
    pub flow: u32,
}

impl<S: Sink> Port<'_, S> {
    /// A packet leaves the host, by its network card if it has one. Always a part of its callers: who
    /// sends knows what kind of packet it is, and puts it together in place.
    #[inline(always)]
    pub fn send(&mut self, now: Time, body: Body, ecn: Ecn) {
        let Self { flow, ref mut network, ref mut sink } = *self;
        let mut packet = packet(flow, body, ecn);
        let route = network.routes.of(flow);
        let Some(link) = route.path.get(0).filter(|_| route.card.is_none()) else {
            return self.send_otherwise(now, packet);
        };
        leave(*sink, &network.payloads, now, &mut packet);
        network.push(now, link, packet, *sink);
    }

    /// The same by a card, or where the way has no link.
    #[inline(never)]
    fn send_otherwise(&mut self, now: Time, mut packet: SimPacket) {
        if self.network.routes.of(self.flow).card.is_some() {
            return self.queue_on_card(now, packet);
        }
        leave(self.sink, &self.network.payloads, now, &mut packet);
        self.network.enter_wire(now, packet);
    }

    fn queue_on_card(&mut self, now: Time, packet: SimPacket) {
        let flow = self.flow;
        let route = self.network.routes.of_mut(flow);
        let Some(card) = &mut route.card else { return };
        if card.queue.is_empty() {
            let at = now + card.rate.time_for(u64::from(packet.size_bytes));
            self.network.agenda.schedule(at, Event::Nic(flow));
        }
        card.queued_bytes += u64::from(packet.size_bytes);
        card.queue.push_back(packet);
    }
}

impl<S: Sink> Egress for Port<'_, S> {
    #[inline(always)]
    fn transmit(&mut self, now: Time, segment: Segment, ecn: Ecn) {
        self.send(now, Body::Tcp(segment), ecn);
    }

    #[inline]
    fn host_queue_bytes(&self) -> u64 {
        self.network.routes.of(self.flow).card.as_ref().map_or(0, |card| card.queued_bytes)
    }

    #[inline]
    fn note_sent(&mut self, now: Time, packets: u32, wire_bytes: u64, retransmission: bool) {
        self.sink.sent(now, self.flow, packets, wire_bytes, retransmission);
    }
}
