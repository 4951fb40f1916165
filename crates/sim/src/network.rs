//! The network between the endpoints: links, delay lines, and what passes on them.

use std::collections::VecDeque;

use jostle_control::RateCode;
use jostle_path::{Ecn, Link, Packet, Probe, Reason};
use jostle_record::{Datagram, End, FlowSpec, LinkSpec, Sink};
use jostle_units::{Ring, Span, Time};

use crate::engine::{Agenda, Event};
use crate::packet::{Body, SimPacket, header};
use crate::payloads::Payloads;
use crate::quick_start::Router;
use crate::routes::Routes;

/// A link, the router before it, and when its event is due.
struct Hop {
    link: Link<Body>,
    due: Time,
    /// It knows Quick-Start.
    router: Option<Box<Router>>,
}

impl Hop {
    /// Schedules the link's event if it is due earlier than before. Always a part of its callers: every
    /// other time there is nothing to schedule.
    #[inline(always)]
    fn arrange(&mut self, link: u32, agenda: &mut Agenda) {
        let next = self.link.next_time();
        if next < self.due {
            self.due = next;
            agenda.schedule(next, Event::Link(link));
        }
    }
}

/// What flows with the same access delay have on their last way back, in order: one line for all
/// of them, so that they need one event together.
struct DelayLine {
    delay: Span,
    travelling: Ring<Arriving>,
}

/// What is on a delay line, and when it leaves.
#[derive(Clone, Copy)]
pub(crate) struct Arriving {
    exit: Time,
    pub flow: u32,
    pub body: Body,
}

/// Everything between the endpoints, and the agenda of what happens next.
pub(crate) struct Network {
    hops: Vec<Hop>,
    lines: Vec<DelayLine>,
    pub routes: Routes,
    /// Packets of senders whose way has no link: what they send arrives at once, but not before they
    /// have sent it.
    wire: VecDeque<SimPacket>,
    /// Connections of split flows to which something has come; see `relay.rs`.
    pub relayed: Vec<u32>,
    pub agenda: Agenda,
    /// What is in the datagrams on their way.
    pub payloads: Payloads,
    /// Packets that reached the far end of a link.
    pub link_packets: u64,
}

/// Tells a sink what happens on a link.
struct LinkProbe<'a, S> {
    sink: &'a mut S,
    payloads: &'a mut Payloads,
    link: u32,
}

impl<S: Sink> Probe<Body> for LinkProbe<'_, S> {
    #[inline]
    fn queue_changed(&mut self, now: Time, bytes: u64, packets: u64) {
        self.sink.queue_changed(now, self.link, bytes, packets);
    }

    #[inline]
    fn sent(&mut self, start: Time, finish: Time, packet: &mut SimPacket) {
        let waited = start.since(packet.queued_at);
        if self.sink.wants_trips()
            && let Some(trip) = packet.body.trip_mut()
        {
            trip.wait(waited);
        }
        self.sink.link_sent(start, finish, self.link, packet.size_bytes, waited);
    }

    /// Never a part of who drops: a packet that is looked into would be taken apart, and all others with
    /// it.
    #[cold]
    #[inline(never)]
    fn dropped(&mut self, now: Time, packet: &SimPacket, reason: Reason) {
        self.sink.dropped(now, self.link, packet.flow, reason as u8);
        if let Some(place) = packet.body.payload_place() {
            self.payloads.give_back(place);
        }
    }

    #[inline]
    fn marked(&mut self, now: Time, packet: &SimPacket, reason: Reason) {
        self.sink.marked(now, self.link, packet.flow, reason as u8);
    }
}

impl Network {
    pub fn new(links: Vec<Link<Body>>, specs: &[LinkSpec], flows: &[FlowSpec]) -> Self {
        let hop = |(link, spec): (_, &LinkSpec)| {
            let router = spec.quick_start.as_ref().map(|spec| Box::new(Router::new(spec)));
            Hop { link, due: Time::NEVER, router }
        };
        let hops = links.into_iter().zip(specs).map(hop).collect();
        let mut delays: Vec<_> = flows.iter().map(|flow| flow.access_delay_ns).collect();
        delays.sort_unstable();
        delays.dedup();
        let routes = Routes::new(flows, &delays);
        let line = |ns: &u64| DelayLine { delay: Span::from_ns(*ns), travelling: Ring::default() };
        let lines = delays.iter().map(line).collect();
        let (agenda, payloads) = (Agenda::default(), Payloads::default());
        let (wire, relayed) = (VecDeque::new(), Vec::new());
        Self { hops, lines, routes, wire, relayed, agenda, payloads, link_packets: 0 }
    }

    /// A packet that has left its sender's host goes on its way, which has no link.
    #[cold]
    pub fn enter_wire(&mut self, now: Time, mut packet: SimPacket) {
        if let Some(syn) = packet.body.as_syn_mut() {
            syn.rate = RateCode::NONE;
        }
        if self.wire.is_empty() {
            self.agenda.schedule(now, Event::Wire);
        }
        self.wire.push_back(packet);
    }

    /// The event of ways without links came up: the next packet that has reached its receiver.
    pub fn off_wire(&mut self) -> Option<SimPacket> {
        self.wire.pop_front()
    }

    /// The next connection of a flow that is many has its way.
    pub fn admit(&mut self, flow: u32) {
        let connection = self.routes.admit(flow);
        let route = self.routes.of(flow);
        for link in route.path.links.iter().chain(&route.reverse_path.links) {
            self.hops[*link as usize].link.admit(connection, flow);
        }
    }

    /// A packet goes on to its next link; it has one. Always a part of its callers: who sends puts a packet
    /// together in its place in the link. Nothing but what is seldom called is given its address.
    #[inline(always)]
    pub fn push<S: Sink>(&mut self, now: Time, link: u32, mut packet: SimPacket, sink: &mut S) {
        let Self { hops, agenda, payloads, .. } = self;
        let hop = &mut hops[link as usize];
        match &mut hop.router {
            Some(router) => {
                let mut passing = packet;
                router.pass(now, &mut passing);
                packet = passing;
            }
            // RFC 4782: a router that does not decrement the option's TTL has not agreed.
            None => {
                if let Some(syn) = packet.body.as_syn_mut() {
                    syn.rate = RateCode::NONE;
                }
            }
        }
        hop.link.push(now, packet, &mut LinkProbe { sink, payloads, link });
        hop.arrange(link, agenda);
    }

    /// A link's event came up: begins to take what has arrived at its far end.
    #[inline]
    pub fn begin_link(&mut self, now: Time, link: u32) {
        let hop = &mut self.hops[link as usize];
        if now >= hop.due {
            hop.due = Time::NEVER;
        }
    }

    /// The next packet that has arrived at the far end of `link` and at its receiver, until
    /// [`forget_arrived`](Self::forget_arrived) takes it out; those that have another link ahead, or only
    /// a delay line, are passed on. Once there is none, the link's next event is scheduled.
    ///
    /// It is for the caller to copy: what is returned within an `Option` is copied in overlapping pieces,
    /// and each piece waits until the one before it has been written.
    #[inline]
    pub fn arrived<S: Sink>(&mut self, now: Time, link: u32, sink: &mut S) -> Option<&SimPacket> {
        while !self.is_for_receiver(now, link, sink)? {}
        self.hops[link as usize].link.head()
    }

    /// Whether the packet that has arrived first at the far end of `link` is for its receiver; one that
    /// is not is passed on. None has arrived: none.
    #[inline(always)]
    fn is_for_receiver<S: Sink>(&mut self, now: Time, link: u32, sink: &mut S) -> Option<bool> {
        let Self { hops, agenda, payloads, .. } = self;
        let hop = &mut hops[link as usize];
        let Some(first) = hop.link.first(now, &mut LinkProbe { sink, payloads, link }) else {
            hop.arrange(link, agenda);
            return None;
        };
        self.link_packets += 1;
        let route = self.routes.of(first.flow);
        let forward = first.body.is_forward();
        let path = if forward { &route.path } else { &route.reverse_path };
        let next = path.get(first.hop + 1);
        if forward && next.is_none() {
            return Some(true);
        }
        let line = route.line;
        let mut packet = *first;
        hop.link.forget_first();
        match next {
            Some(next) => {
                packet.hop += 1;
                self.push(now, next, packet, sink);
            }
            None => self.enter_access(now, line, packet.flow, packet.body),
        }
        Some(false)
    }

    /// The packet that has [`arrived`](Self::arrived) is taken out of its link.
    #[inline]
    pub fn forget_arrived(&mut self, link: u32) {
        self.hops[link as usize].link.forget_first();
    }

    /// Payload of the full-sized segments that the receiver's card of `flow` puts together, if it
    /// does. Its way is at hand when a packet has arrived, its endpoints are not.
    #[inline]
    pub fn merged_mss_bytes(&self, flow: u32) -> Option<u16> {
        if self.routes.merge { self.routes.of(flow).merged_mss_bytes } else { None }
    }

    /// The receiver of `flow` sends. Always a part of its callers: an ACK is put together in place.
    #[inline(always)]
    pub fn send_back<S: Sink>(&mut self, now: Time, flow: u32, body: Body, ecn: Ecn, sink: &mut S) {
        if sink.wants_segments() {
            tell(sink, &self.payloads, now, flow, End::Receiver, (&body, ecn));
        }
        let route = self.routes.of(flow);
        match route.reverse_path.get(0) {
            None => {
                let line = route.line;
                self.enter_access(now, line, flow, body);
            }
            Some(link) => self.push(now, link, packet(flow, body, ecn), sink),
        }
    }

    /// A packet goes on to the delay line of its flow, the last part of its way. Always a part of its
    /// callers: an ACK is put together there.
    #[inline(always)]
    fn enter_access(&mut self, now: Time, number: u32, flow: u32, body: Body) {
        let line = &mut self.lines[number as usize];
        let exit = now + line.delay;
        if line.travelling.is_empty() {
            self.agenda.schedule(exit, Event::Access(number));
        }
        line.travelling.push_back(Arriving { exit, flow, body });
    }

    /// The event of a delay line came up: the next packet that has reached its sender, until
    /// [`forget_reached`](Self::forget_reached) takes it out. Once there is none, the next event is
    /// scheduled. The caller copies it, as it does what has [`arrived`](Self::arrived).
    #[inline(always)]
    pub fn reached_sender(&mut self, now: Time, line: u32) -> Option<&Arriving> {
        let first = self.lines[line as usize].travelling.front()?;
        if first.exit > now {
            self.agenda.schedule(first.exit, Event::Access(line));
            return None;
        }
        Some(first)
    }

    /// The packet that has [`reached`](Self::reached_sender) its sender is taken out of its delay line.
    #[inline(always)]
    pub fn forget_reached(&mut self, line: u32) {
        self.lines[line as usize].travelling.forget_front();
    }

    /// A network card has sent a packet: passes it on.
    pub fn on_card<S: Sink>(&mut self, now: Time, flow: u32, sink: &mut S) {
        let route = self.routes.of_mut(flow);
        let first = route.path.get(0);
        let Some(card) = &mut route.card else { return };
        let Some(mut packet) = card.queue.pop_front() else { return };
        card.queued_bytes -= u64::from(packet.size_bytes);
        if let Some(next) = card.queue.front() {
            let at = now + card.rate.time_for(u64::from(next.size_bytes));
            self.agenda.schedule(at, Event::Nic(flow));
        }
        leave(sink, &self.payloads, now, &mut packet);
        match first {
            Some(link) => self.push(now, link, packet, sink),
            None => self.enter_wire(now, packet),
        }
    }

    /// Brings every link up to `now`, so that nothing before `now` remains to be told.
    pub fn advance<S: Sink>(&mut self, now: Time, sink: &mut S) {
        for link in 0..self.links() {
            self.pass_time(now, link, sink);
        }
    }

    /// Number of links.
    pub fn links(&self) -> u32 {
        self.hops.len() as u32
    }

    /// Lets one link do, draw and update what is due by `now`.
    pub fn pass_time<S: Sink>(&mut self, now: Time, link: u32, sink: &mut S) {
        self.hops[link as usize]
            .link
            .pass(now, &mut LinkProbe { sink, payloads: &mut self.payloads, link });
    }

    /// Bytes that wait at each link, and those that its capacity could have carried so far.
    pub fn observe(&mut self, now: Time) -> impl Iterator<Item = (u64, f64)> {
        self.hops.iter_mut().map(move |hop| (hop.link.queue_bytes(), hop.link.offered_bytes(now)))
    }
}

/// Tells a sink of a packet at one end of its flow. Hardly any run wants that: it stays out of the
/// way of those that do not.
#[cold]
#[inline(never)]
pub(crate) fn tell<S: Sink>(
    sink: &mut S,
    payloads: &Payloads,
    now: Time,
    flow: u32,
    end: End,
    (body, ecn): (&Body, Ecn),
) {
    let (from, place) = match body {
        Body::Tcp(segment) => return sink.segment(now, flow, end, &header(segment, now, ecn)),
        Body::Quic(datagram) => (End::Sender, datagram.place),
        Body::QuicBack(datagram) => (End::Receiver, datagram.place),
        Body::Ping(_) | Body::Echo(_) | Body::OneWay(_) | Body::Request(_) => return,
    };
    sink.datagram(now, flow, end, &Datagram { from, ecn, payload: payloads.get(place) });
}

/// A packet leaves its sender's host. It is told of by a copy: always a part of its callers, it gives
/// away the address of nothing that is still being put together.
#[inline(always)]
pub(crate) fn leave<S: Sink>(sink: &mut S, payloads: &Payloads, now: Time, packet: &mut SimPacket) {
    if sink.wants_segments() {
        let seen = (&{ packet.body }, packet.ecn);
        tell(sink, payloads, now, packet.flow, End::Sender, seen);
    }
    if sink.wants_trips()
        && let Some(trip) = packet.body.trip_mut()
    {
        trip.leave(now);
    }
}

/// A packet as it leaves.
#[inline]
pub(crate) fn packet(flow: u32, body: Body, ecn: Ecn) -> SimPacket {
    Packet { flow, size_bytes: body.wire_bytes(), queued_at: Time::ZERO, ecn, hop: 0, body }
}
