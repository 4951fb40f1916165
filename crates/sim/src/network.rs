//! The network between the endpoints: links, delay lines and the packets in transit.

use std::collections::VecDeque;

use jostle_congestion::QuickStartRate;
use jostle_link::{DropReason, Ecn, Link, LinkObserver, Packet, Service};
use jostle_metrics::{Datagram, EndpointRole, EventSink};
use jostle_run_spec::{CapacitySpec, FlowSpec, LinkSpec};
use jostle_units::{ConnectionId, FlowId, LinkId, RingBuffer, Span, Time};

use crate::event_queue::{Event, EventQueue};
use crate::packet::{Body, SimPacket, header};
use crate::payload_pool::{CarriedPacket, PayloadPool};
use crate::quick_start_router::QuickStartRouter;
use crate::routes::Routes;

/// A link with its entrance and the time of its scheduled event.
struct Hop {
    link: Link<Body>,
    due: Time,
    entrance: Entrance,
}

/// Actions on packets that arrive at a link.
enum Entrance {
    Plain,
    /// The link supports Quick-Start.
    QuickStart(Box<QuickStartRouter>),
    /// The connection of a tunnel takes the packets.
    Tunnel {
        connection: ConnectionId,
        /// Whether the connection will be called.
        is_scheduled: bool,
    },
}

impl Hop {
    /// Schedules the link's event if it is due earlier than the scheduled one. Always inlined: in
    /// every second call nothing is scheduled.
    #[inline(always)]
    fn arrange(&mut self, link: LinkId, agenda: &mut EventQueue) {
        let next = self.link.next_time();
        if next < self.due {
            self.due = next;
            agenda.schedule(next, Event::Link(link));
        }
    }
}

/// Packets on the access delay, the last hop to the sender, in order. Flows with equal access
/// delays share one line, so that they need only one scheduled event.
struct DelayLine {
    delay: Span,
    travelling: RingBuffer<DelayedPacket>,
}

/// A packet on a delay line, and the time when it leaves.
#[derive(Clone, Copy)]
pub(crate) struct DelayedPacket {
    exit: Time,
    pub connection: ConnectionId,
    pub body: Body,
}

/// All links and delay lines, and the event queue.
pub(crate) struct Network {
    hops: Vec<Hop>,
    lines: Vec<DelayLine>,
    pub routes: Routes,
    /// Packets whose path has no link. They arrive at the time of sending, but after the sender has
    /// finished its event.
    wire: VecDeque<SimPacket>,
    /// Proxy legs that received a packet (see `proxy.rs`), flows of shared connections that are
    /// complete, and connections of browsers on which requests or responses are complete.
    pub relayed: Vec<ConnectionId>,
    pub agenda: EventQueue,
    /// Payloads of the datagrams in transit.
    pub payloads: PayloadPool,
    /// Number of packets that reached the far end of a link.
    pub link_packets: u64,
}

/// Forwards the events of a link to a sink.
struct LinkProbe<'a, S> {
    sink: &'a mut S,
    payloads: &'a mut PayloadPool,
    link: LinkId,
}

impl<S: EventSink> LinkObserver<Body> for LinkProbe<'_, S> {
    #[inline]
    fn queue_changed(&mut self, now: Time, bytes: u64, packets: u64) {
        self.sink.queue_changed(now, self.link, bytes, packets);
    }

    #[inline]
    fn sent(&mut self, dequeued: Time, start: Time, finish: Time, packet: &mut SimPacket) {
        let waited = dequeued.since(packet.queued_at);
        if self.sink.wants_transit_times()
            && let Some(trip) = packet.transport.trip_mut()
        {
            trip.wait(waited);
        }
        self.sink.link_sent(start, finish, self.link, packet.size_bytes, waited);
    }

    /// Not inlined: the compiler would split the packet into its fields here, and with it every
    /// packet of the caller.
    #[cold]
    #[inline(never)]
    fn dropped(&mut self, now: Time, packet: &SimPacket, reason: DropReason) {
        let waited = !reason.is_after_queue() && packet.queued_at < now;
        let queued_bytes = if waited { packet.size_bytes } else { 0 };
        // The link that corrupted a packet has reported it as dropped.
        if !packet.is_corrupted {
            self.sink.dropped(now, self.link, packet.connection, reason, queued_bytes);
        }
        drop_payload(self.sink, self.payloads, now, packet);
    }

    #[inline]
    fn marked(&mut self, now: Time, packet: &SimPacket, reason: DropReason) {
        self.sink.marked(now, self.link, packet.connection, reason);
    }

    #[cold]
    fn corrupted(&mut self, now: Time, packet: &SimPacket) {
        self.sink.dropped(now, self.link, packet.connection, DropReason::Corruption, 0);
    }

    #[cold]
    fn duplicated(&mut self, now: Time, copy: &mut SimPacket) {
        self.payloads.copy_of(&mut copy.transport);
        let place = copy.transport.datagram_place();
        if let Some(carried) = place.and_then(|place| self.payloads.carried(place)) {
            self.sink.duplicated(now, carried.link, carried.packet.connection);
        }
        if !copy.is_corrupted {
            self.sink.duplicated(now, self.link, copy.connection);
        }
    }
}

impl Network {
    pub fn new(links: Vec<Link<Body>>, specs: &[LinkSpec], flows: &[FlowSpec]) -> Self {
        let hop = |(link, spec): (_, &LinkSpec)| {
            let entrance = match (&spec.quick_start, &spec.capacity) {
                (Some(spec), _) => Entrance::QuickStart(Box::new(QuickStartRouter::new(spec))),
                (None, CapacitySpec::Tunnel { flow }) => {
                    Entrance::Tunnel { connection: (*flow).into(), is_scheduled: false }
                }
                (None, _) => Entrance::Plain,
            };
            Hop { link, due: Time::NEVER, entrance }
        };
        let hops = links.into_iter().zip(specs).map(hop).collect();
        let mut delays: Vec<_> = flows.iter().map(|flow| flow.base_delay_ns).collect();
        delays.sort_unstable();
        delays.dedup();
        let routes = Routes::new(flows, &delays);
        let line =
            |ns: &u64| DelayLine { delay: Span::from_ns(*ns), travelling: RingBuffer::default() };
        let lines = delays.iter().map(line).collect();
        let (agenda, payloads) = (EventQueue::default(), PayloadPool::default());
        let (wire, relayed) = (VecDeque::new(), Vec::new());
        Self { hops, lines, routes, wire, relayed, agenda, payloads, link_packets: 0 }
    }

    /// Sends a packet whose path has no link.
    #[cold]
    pub fn send_without_links(&mut self, now: Time, mut packet: SimPacket) {
        if let Some(rate) = packet.transport.requested_rate_mut() {
            *rate = QuickStartRate::NONE;
        }
        if self.wire.is_empty() {
            self.agenda.schedule(now, Event::ZeroLinkPath);
        }
        self.wire.push_back(packet);
    }

    /// Returns the next packet that crossed a path without links.
    pub fn next_without_links(&mut self) -> Option<SimPacket> {
        self.wire.pop_front()
    }

    /// Makes the changes of routes that are due, and schedules the next one.
    #[cold]
    pub fn change_routes(&mut self, now: Time) {
        self.routes.change(now);
        if let Some(at) = self.routes.next_change() {
            self.agenda.schedule(at, Event::RouteChange);
        }
    }

    /// Assigns the route of `flow` to the next connection, and returns that connection.
    pub fn admit(&mut self, flow: FlowId) -> ConnectionId {
        let connection = self.routes.admit(flow);
        self.register(connection, flow, false)
    }

    /// Assigns the route of the requests of `flow`, which a browser sends, to the next connection, and
    /// returns that connection.
    pub fn admit_requests(&mut self, flow: FlowId) -> ConnectionId {
        let connection = self.routes.admit_requests(flow);
        self.register(connection, flow, true)
    }

    /// Registers a connection at its links.
    fn register(
        &mut self,
        connection: ConnectionId,
        flow: FlowId,
        is_opposite: bool,
    ) -> ConnectionId {
        let route = self.routes.of(connection);
        for link in route.path.links().chain(route.reverse_path.links()) {
            self.hops[link.index()].link.admit(connection, flow, is_opposite);
        }
        connection
    }

    /// Sends a packet to a link. Always inlined, so that the sender builds the packet directly in
    /// the link's queue. The address of the packet is passed only to rarely called functions.
    #[inline(always)]
    pub fn push<S: EventSink>(
        &mut self,
        now: Time,
        link: LinkId,
        mut packet: SimPacket,
        sink: &mut S,
    ) {
        let Self { hops, agenda, payloads, .. } = self;
        let hop = &mut hops[link.index()];
        match &mut hop.entrance {
            Entrance::QuickStart(router) => {
                let mut passing = packet;
                router.pass(now, &mut passing);
                packet = passing;
            }
            // RFC 4782: a router that does not decrement the TTL of the option has not approved the
            // request.
            other => {
                if let Some(rate) = packet.transport.requested_rate_mut() {
                    *rate = QuickStartRate::NONE;
                }
                if let Entrance::Tunnel { connection, is_scheduled: is_scheduled @ false } = other {
                    *is_scheduled = true;
                    agenda.schedule(now, Event::Tunnel(*connection));
                }
            }
        }
        hop.link.push(now, packet, &mut LinkProbe { sink, payloads, link });
        hop.arrange(link, agenda);
    }

    /// Begins to handle a link's event; [`arrived`](Self::arrived) then returns the packets.
    #[inline]
    pub fn begin_link(&mut self, now: Time, link: LinkId) {
        let hop = &mut self.hops[link.index()];
        if now >= hop.due {
            hop.due = Time::NEVER;
        }
    }

    /// Returns the next packet that has reached its receiver at the far end of `link`.
    /// [`forget_arrived`](Self::forget_arrived) removes it. Packets with another link or a delay
    /// line ahead are forwarded. When no packet is left, the link's next event is scheduled.
    ///
    /// The caller copies the packet: an `Option` of a packet by value would be copied in
    /// overlapping pieces, with a store-forwarding stall for each.
    #[inline]
    pub fn arrived<S: EventSink>(
        &mut self,
        now: Time,
        link: LinkId,
        sink: &mut S,
    ) -> Option<&SimPacket> {
        while !self.is_for_receiver(now, link, sink)? {}
        self.hops[link.index()].link.head()
    }

    /// Returns whether the first packet at the far end of `link` is for the receiver; if not,
    /// forwards it. Returns `None` if no packet has arrived.
    #[inline(always)]
    fn is_for_receiver<S: EventSink>(
        &mut self,
        now: Time,
        link: LinkId,
        sink: &mut S,
    ) -> Option<bool> {
        let Self { hops, agenda, payloads, .. } = self;
        let hop = &mut hops[link.index()];
        let Some(first) = hop.link.first(now, &mut LinkProbe { sink, payloads, link }) else {
            hop.arrange(link, agenda);
            return None;
        };
        self.link_packets += 1;
        let route = self.routes.of(first.connection);
        let forward = first.transport.is_forward();
        let path = if forward { &route.path } else { &route.reverse_path };
        let next = path.after(first.hop);
        if first.is_corrupted && next.is_none() {
            // The checksum at the receiver is wrong.
            drop_payload(sink, payloads, now, first);
            hop.link.forget_first();
            return Some(false);
        }
        if next.is_none() && forward != route.delays_data {
            return Some(true);
        }
        let line = route.line;
        let mut packet = *first;
        hop.link.forget_first();
        match next {
            Some((hop, next)) => {
                packet.hop = hop;
                self.push(now, next, packet, sink);
            }
            None => {
                if forward {
                    packet.transport.keep_ecn(packet.ecn);
                }
                self.enter_access(now, line, packet.connection, packet.transport);
            }
        }
        Some(false)
    }

    /// Removes the packet that [`arrived`](Self::arrived) returned.
    #[inline]
    pub fn forget_arrived(&mut self, link: LinkId) {
        self.hops[link.index()].link.forget_first();
    }

    /// Returns the MSS if the receiver's NIC merges packets of `flow` (GRO). The route is in the
    /// cache when a packet arrives, the endpoints are not.
    #[inline]
    pub fn merged_mss_bytes(&self, connection: ConnectionId) -> Option<u16> {
        if self.routes.merge { self.routes.of(connection).merged_mss_bytes } else { None }
    }

    /// Sends a packet from the receiver of `flow`. Always inlined, so that an ACK is built in
    /// place.
    #[inline(always)]
    pub fn send_back<S: EventSink>(
        &mut self,
        now: Time,
        connection: ConnectionId,
        body: Body,
        ecn: Ecn,
        sink: &mut S,
    ) {
        if sink.wants_segments() {
            emit_packet_event(
                sink,
                &self.payloads,
                now,
                connection,
                EndpointRole::Receiver,
                (&body, ecn),
            );
        }
        let route = self.routes.of(connection);
        match route.reverse_path.first() {
            None => {
                let line = route.line;
                self.enter_access(now, line, connection, body);
            }
            Some((hop, link)) => {
                let mut packet = packet(connection, route.dscp, body, ecn);
                packet.hop = hop;
                self.push(now, link, packet, sink);
            }
        }
    }

    /// Puts a packet on the delay line of its connection, the last hop to the sender. Always inlined, so
    /// that an ACK is built in place.
    #[inline(always)]
    pub fn enter_access(&mut self, now: Time, number: u32, connection: ConnectionId, body: Body) {
        let line = &mut self.lines[number as usize];
        let exit = now + line.delay;
        if line.travelling.is_empty() {
            self.agenda.schedule(exit, Event::DelayLine(number));
        }
        debug_assert!(line.travelling.front().is_none_or(|first| first.exit <= exit), "overtaken");
        line.travelling.push_back(DelayedPacket { exit, connection, body });
    }

    /// Returns the next packet that has reached its sender from a delay line.
    /// [`forget_reached`](Self::forget_reached) removes it. When no packet is left, the next event
    /// is scheduled. The caller copies the packet, as with [`arrived`](Self::arrived).
    #[inline(always)]
    pub fn reached_sender(&mut self, now: Time, line: u32) -> Option<&DelayedPacket> {
        let first = self.lines[line as usize].travelling.front()?;
        if first.exit > now {
            self.agenda.schedule(first.exit, Event::DelayLine(line));
            return None;
        }
        Some(first)
    }

    /// Removes the packet that [`reached_sender`](Self::reached_sender) returned.
    #[inline(always)]
    pub fn forget_reached(&mut self, line: u32) {
        self.lines[line as usize].travelling.forget_front();
    }

    /// Forwards the packet that a NIC has finished sending, and starts to send the next one.
    pub fn on_nic_sent<S: EventSink>(&mut self, now: Time, connection: ConnectionId, sink: &mut S) {
        let route = self.routes.of_mut(connection);
        let first = route.path.first();
        let Some(nic) = &mut route.nic else { return };
        let Some(mut packet) = nic.queue.pop_front() else { return };
        nic.queued_bytes -= u64::from(packet.size_bytes);
        if let Some(next) = nic.queue.front() {
            let at = now + nic.rate.time_for(u64::from(next.size_bytes));
            self.agenda.schedule(at, Event::Nic(connection));
        }
        leave(sink, &self.payloads, now, &mut packet);
        match first {
            Some((hop, link)) => {
                packet.hop = hop;
                self.push(now, link, packet, sink);
            }
            None => self.send_without_links(now, packet),
        }
    }

    /// Begins to take packets at the entrance of a tunnel; [`take_next`](Self::take_next) then
    /// returns them. Later arrivals call the connection again.
    pub fn begin_taking(&mut self, link: LinkId) {
        if let Entrance::Tunnel { is_scheduled, .. } = &mut self.hops[link.index()].entrance {
            *is_scheduled = false;
        }
    }

    /// Takes the next packet that waits at the entrance of a tunnel.
    pub fn take_next<S: EventSink>(
        &mut self,
        now: Time,
        link: LinkId,
        sink: &mut S,
    ) -> Option<SimPacket> {
        let Self { hops, payloads, .. } = self;
        hops[link.index()].link.take_next(now, &mut LinkProbe { sink, payloads, link })
    }

    /// Delivers a packet that a tunnel has carried.
    pub fn deliver<S: EventSink>(&mut self, now: Time, carried: CarriedPacket, sink: &mut S) {
        let Self { hops, agenda, payloads, .. } = self;
        let CarriedPacket { link, packet } = carried;
        let hop = &mut hops[link.index()];
        hop.link.deliver(now, packet, &mut LinkProbe { sink, payloads, link });
        hop.arrange(link, agenda);
    }

    /// Reports a packet that was lost in a tunnel.
    #[cold]
    pub fn lose<S: EventSink>(&mut self, now: Time, carried: &CarriedPacket, sink: &mut S) {
        lose_carried(sink, &mut self.payloads, now, carried);
    }

    /// Advances all links to `now`, so that all their events before `now` are reported.
    pub fn advance<S: EventSink>(&mut self, now: Time, sink: &mut S) {
        for link in self.links() {
            self.advance_link(now, link, sink);
        }
    }

    /// Returns all links.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.hops.len()).map(LinkId::at)
    }

    /// Advances one link to `now`.
    pub fn advance_link<S: EventSink>(&mut self, now: Time, link: LinkId, sink: &mut S) {
        self.hops[link.index()]
            .link
            .pass(now, &mut LinkProbe { sink, payloads: &mut self.payloads, link });
    }

    /// Returns the queue length in bytes and the service so far, for each link.
    pub fn observe(&mut self, now: Time) -> impl Iterator<Item = (u64, Service)> {
        self.hops.iter_mut().map(move |hop| (hop.link.queue_bytes(), hop.link.service(now)))
    }
}

/// Reports a packet at one end of its flow. Not inlined, because few runs record packets.
#[cold]
#[inline(never)]
pub(crate) fn emit_packet_event<S: EventSink>(
    sink: &mut S,
    payloads: &PayloadPool,
    now: Time,
    connection: ConnectionId,
    end: EndpointRole,
    (body, ecn): (&Body, Ecn),
) {
    let (from, place) = match body {
        Body::Tcp(segment) => {
            return sink.segment(now, connection, end, &header(segment, now, ecn));
        }
        Body::Quic(datagram) => (EndpointRole::Sender, datagram.place),
        Body::QuicBack(datagram) => (EndpointRole::Receiver, datagram.place),
        Body::Ping(_) | Body::Echo(_) | Body::OneWay(_) | Body::Tunnelled(_) => return,
    };
    sink.datagram(now, connection, end, &Datagram { from, ecn, payload: payloads.get(place) });
}

/// Frees the payload of a packet that was dropped. A packet that a datagram of a tunnel carries is
/// lost with it.
#[inline(always)]
fn drop_payload<S: EventSink>(
    sink: &mut S,
    payloads: &mut PayloadPool,
    now: Time,
    packet: &SimPacket,
) {
    match packet.transport.datagram_place() {
        Some(place) => {
            if let Some(carried) = payloads.release(place) {
                lose_carried(sink, payloads, now, &carried);
            }
        }
        None => payloads.free(&packet.transport),
    }
}

#[cold]
#[inline(never)]
fn lose_carried<S: EventSink>(
    sink: &mut S,
    payloads: &mut PayloadPool,
    now: Time,
    carried: &CarriedPacket,
) {
    let CarriedPacket { link, packet } = carried;
    sink.dropped(now, *link, packet.connection, DropReason::Loss, 0);
    payloads.free(&packet.transport);
}

/// Reports a packet that leaves the sender's host. Always inlined and reports a copy, so that the
/// packet can stay in registers.
#[inline(always)]
pub(crate) fn leave<S: EventSink>(
    sink: &mut S,
    payloads: &PayloadPool,
    now: Time,
    packet: &mut SimPacket,
) {
    if sink.wants_segments() {
        let seen = (&{ packet.transport }, packet.ecn);
        emit_packet_event(sink, payloads, now, packet.connection, EndpointRole::Sender, seen);
    }
    if sink.wants_transit_times()
        && let Some(trip) = packet.transport.trip_mut()
    {
        trip.leave(now);
    }
}

/// Builds a packet that has not yet crossed a link.
#[inline]
pub(crate) fn packet(connection: ConnectionId, dscp: u8, body: Body, ecn: Ecn) -> SimPacket {
    Packet {
        connection,
        size_bytes: body.wire_bytes(),
        queued_at: Time::ZERO,
        ecn,
        hop: 0,
        is_corrupted: false,
        dscp,
        transport: body,
    }
}
