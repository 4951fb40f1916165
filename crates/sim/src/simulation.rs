//! The simulator's loop.

mod browsing;
mod relays;
mod world;

use jostle_control::Observer;
use jostle_path::{Ecn, Packet};
use jostle_record::{End, RunSpec, Sink};
use jostle_tcp::Segment;
use jostle_tcp::offload::merges;
use jostle_units::{Span, Time};

use crate::Error;
use crate::build::{Flow, PythonControllers};
use crate::endpoints::Endpoints;
use crate::engine::{Deadline, Event, POSITIONS};
use crate::host::{Host, Progress, Times, Transport};
use crate::network::tell;
use crate::packet::{Body, SimPacket};

pub use world::Counts;
pub(crate) use world::World;

/// Events between two looks at whether the run was cancelled: one may take a millisecond, for the
/// delays that a link had while no packet came.
const CANCEL_CHECK_EVENTS: u64 = 1 << 7;

/// Runs `spec` and tells `sink` what happens. `cancelled` is asked now and then.
///
/// # Errors
/// When a part cannot be built from the spec, or when the run was cancelled.
pub fn run(
    spec: &RunSpec,
    sink: &mut impl Sink,
    cancelled: &dyn Fn() -> bool,
) -> Result<Counts, Error> {
    run_with(spec, sink, cancelled, &|flow, _| {
        Err(format!("there is nothing here to make the controller `{}`", flow.controller.name))
    })
}

/// As [`run`], with controllers that no registry has from `python_controllers`.
///
/// # Errors
/// As [`run`], and when `python_controllers` cannot make a controller.
pub fn run_with(
    spec: &RunSpec,
    sink: &mut impl Sink,
    cancelled: &dyn Fn() -> bool,
    python_controllers: PythonControllers<'_>,
) -> Result<Counts, Error> {
    let world = World::new(spec, python_controllers)?;
    let mut simulation = Simulation { world, spec, python_controllers, sink };
    simulation.run_until(Time::NEVER, cancelled)?;
    simulation.world.outcome(spec)
}

/// Whether a card puts a packet together with another one of its flow, the last of `count` that
/// are together already. Full segments have `mss_bytes`.
#[inline]
fn are_merged(mss_bytes: u16, count: u32, first: &SimPacket, second: &SimPacket) -> bool {
    match (&first.body, &second.body) {
        (Body::Tcp(Segment::Data(one)), Body::Tcp(Segment::Data(other))) => {
            first.ecn == second.ecn && merges(mss_bytes, count, one, other)
        }
        _ => false,
    }
}

/// A run that goes on: what it is of, and who hears of it, are borrowed.
pub(crate) struct Simulation<'a, S> {
    /// By value, so that nothing is looked up behind another pointer.
    pub(crate) world: World,
    pub(crate) spec: &'a RunSpec,
    pub(crate) python_controllers: PythonControllers<'a>,
    pub(crate) sink: &'a mut S,
}

/// Passes a controller's internal state on to a sink.
struct Internals<'a, S> {
    sink: &'a mut S,
    now: Time,
    flow: u32,
}

impl<S: Sink> Observer for Internals<'_, S> {
    fn value(&mut self, name: &'static str, value: f64) {
        self.sink.internal(self.now, self.flow, name, value);
    }
}

impl<S: Sink> Simulation<'_, S> {
    /// Runs to the end, or to just before the first event at or after `until`: going on from there
    /// gives what a run without a stop would have given.
    pub(crate) fn run_until(
        &mut self,
        until: Time,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let end = self.world.observations.duration;
        let slice = self.world.slice();
        let World { mut turns, mut slice_end, .. } = self.world;
        // One comparison for both.
        let mut look = slice_end.min(until);
        let mut before = Time::ZERO;
        while let Some((now, event)) = self.world.network.agenda.pop() {
            debug_assert!(now >= before, "{event:?} at {now:?}, after {before:?}");
            before = now;
            if now >= look {
                if now >= until {
                    self.world.network.agenda.put_back(now, event);
                    break;
                }
                slice_end = self.catch_up(slice_end, now, slice, cancelled)?;
                look = slice_end.min(until);
            }
            turns += 1;
            if turns.is_multiple_of(CANCEL_CHECK_EVENTS) && cancelled() {
                return Err(Error::Cancelled);
            }
            if event == Event::Observe {
                if let Some(error) = self.world.broken.take() {
                    return Err(error);
                }
                self.observe(now);
                if now >= end {
                    self.world.over = true;
                    break;
                }
                continue;
            }
            self.world.counts.events += 1;
            self.handle(now, event);
        }
        (self.world.turns, self.world.slice_end) = (turns, slice_end);
        Ok(())
    }

    /// Lets links do what was due before `now`, slice by slice; returns the end of the next slice.
    #[cold]
    fn catch_up(
        &mut self,
        mut slice_end: Time,
        now: Time,
        slice: Span,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Time, Error> {
        while slice_end < now {
            for link in 0..self.world.network.links() {
                self.world.network.pass_time(slice_end, link, self.sink);
                if cancelled() {
                    return Err(Error::Cancelled);
                }
            }
            slice_end += slice;
        }
        Ok(now + slice)
    }

    #[inline]
    fn handle(&mut self, now: Time, event: Event) {
        match event {
            Event::Link(link) => {
                self.world.network.begin_link(now, link);
                while let Some(first) = self.world.network.arrived(now, link, self.sink) {
                    let packet = *first;
                    self.world.network.forget_arrived(link);
                    self.arrive(now, &packet);
                }
                while let Some((packet, _)) = self.world.merging.pop() {
                    self.receive(now, &packet, false);
                }
                if !self.world.network.relayed.is_empty() {
                    self.relay(now);
                }
            }
            Event::Access(line) => {
                while let Some(first) = self.world.network.reached_sender(now, line) {
                    let arriving = *first;
                    self.world.network.forget_reached(line);
                    self.receive_return(now, arriving.flow, &arriving.body);
                }
                if !self.world.network.relayed.is_empty() {
                    self.relay(now);
                }
            }
            Event::Wire => self.cross_wire(now),
            Event::Nic(flow) => {
                self.world.network.on_card(now, flow, self.sink);
                if let Some((endpoints, mut host)) = self.endpoints(now, flow) {
                    endpoints.on_card_drained(&mut host);
                }
            }
            Event::Retransmission(flow) => self.on_deadline(now, flow, Deadline::Retransmission),
            Event::Pacing(flow) => self.on_deadline(now, flow, Deadline::Pacing),
            Event::Acknowledgement(flow) => self.on_deadline(now, flow, Deadline::Acknowledgement),
            Event::Wakeup(flow) => self.on_deadline(now, flow, Deadline::Wakeup),
            Event::Source(flow) => self.act(now, flow),
            Event::Observe => {}
        }
    }

    /// What senders have sent whose way has no link has arrived.
    #[cold]
    fn cross_wire(&mut self, now: Time) {
        while let Some(packet) = self.world.network.off_wire() {
            self.arrive(now, &packet);
        }
        while let Some((packet, _)) = self.world.merging.pop() {
            self.receive(now, &packet, false);
        }
        self.relay(now);
    }

    #[inline]
    fn on_deadline(&mut self, now: Time, flow: u32, deadline: Deadline) {
        if let Some((endpoints, mut host)) = self.endpoints(now, flow) {
            endpoints.on_deadline(deadline, &mut host);
        }
    }

    /// The endpoints of a flow or of a connection, and what they may use; none of a connection that
    /// has ended.
    #[inline]
    fn endpoints(&mut self, now: Time, flow: u32) -> Option<(&mut Endpoints, Host<'_, S>)> {
        let Self { world, sink, .. } = self;
        let World { network, memory, flows, connections, .. } = world;
        let endpoints = match flows.get_mut(flow as usize) {
            Some(flow) => &mut flow.endpoints,
            None => connections.endpoints(flow)?,
        };
        Some((endpoints, Host { now, flow, network, sink, memory }))
    }

    /// A packet has reached a connection that has ended.
    #[cold]
    fn discard(&mut self, body: &Body) {
        if let Some(place) = body.payload_place() {
            self.world.network.payloads.give_back(place);
        }
    }

    /// A packet has reached the receiver's card. One that puts packets together hands on the one
    /// before it: whether alone or as a part is known now. Always a part of the loop over what has
    /// arrived: most cards hold nothing.
    #[inline(always)]
    fn arrive(&mut self, now: Time, packet: &SimPacket) {
        let Some(mss_bytes) = self.world.network.merged_mss_bytes(packet.flow) else {
            self.receive(now, packet, false);
            return;
        };
        // Few flows have packets at the same moment.
        let held = self.world.merging.iter_mut().find(|(held, _)| held.flow == packet.flow);
        let Some((held, place)) = held else {
            self.world.merging.push((*packet, 1));
            return;
        };
        let part = are_merged(mss_bytes, *place, held, packet);
        *place = if part { *place + 1 } else { 1 };
        let before = std::mem::replace(held, *packet);
        self.receive(now, &before, part);
    }

    /// A packet has reached the receiver. `part`: the next one is put together with it.
    #[inline]
    fn receive(&mut self, now: Time, packet: &SimPacket, part: bool) {
        let &Packet { flow, size_bytes, ecn, ref body, .. } = packet;
        if self.sink.wants_segments() {
            tell(self.sink, &self.world.network.payloads, now, flow, End::Receiver, (body, ecn));
        }
        match self.endpoints(now, flow) {
            Some((endpoints, mut host)) => {
                endpoints.receive(body, size_bytes, ecn, part, &mut host);
                if flow as usize >= self.world.flows.len() && !self.world.browsers.is_empty() {
                    self.tell_browser(now, flow);
                }
            }
            None => self.discard(body),
        }
    }

    /// A packet has reached the sender.
    #[inline]
    fn receive_return(&mut self, now: Time, flow: u32, body: &Body) {
        if self.sink.wants_segments() {
            // Of a datagram it is known how it was sent.
            let ecn = body.sent_ecn().unwrap_or(Ecn::NotCapable);
            tell(self.sink, &self.world.network.payloads, now, flow, End::Sender, (body, ecn));
        }
        if let Body::Request(request) = body {
            return self.on_request(now, flow, request.number);
        }
        let Some((endpoints, mut host)) = self.endpoints(now, flow) else {
            return self.discard(body);
        };
        if endpoints.receive_return(body, &mut host) == Progress::Complete {
            self.complete(now, flow);
        }
    }

    /// A flow has sent all it ever will, and all of it was acknowledged.
    #[cold]
    fn complete(&mut self, now: Time, flow: u32) {
        let Some(Flow { times, followers, .. }) = self.world.flows.get_mut(flow as usize) else {
            if let Some(opened) = self.world.connections.close(flow) {
                self.sink.completed(now, flow, now.since(opened));
            }
            return;
        };
        self.sink.completed(now, flow, now.since(times.start));
        for follower in std::mem::take(followers) {
            let times = &mut self.world.flows[follower as usize].times;
            times.start = now + times.wait;
            self.world.network.agenda.schedule(times.start, Event::Source(follower));
        }
    }

    /// The application of a flow starts, acts or stops.
    #[cold]
    fn act(&mut self, now: Time, flow: u32) {
        let times = self.world.flows.get(flow as usize).map(|flow| flow.times);
        let Some(Times { start, stop, .. }) = times else {
            if let Some((endpoints, mut host)) = self.endpoints(now, flow) {
                endpoints.act(Time::NEVER, &mut host);
            }
            return;
        };
        if let Ok(at) = self.world.browsers.binary_search_by_key(&flow, |browser| browser.flow) {
            return self.browse(now, at, (start, stop));
        }
        if self.world.connections.due(flow).is_some() {
            return self.connect(now, flow, stop);
        }
        let Some((endpoints, mut host)) = self.endpoints(now, flow) else { return };
        if now >= stop {
            endpoints.stop();
            return;
        }
        if now == start {
            host.sink.opened(now, flow);
            if stop < Time::NEVER {
                host.schedule_application(stop);
            }
        }
        endpoints.act(stop, &mut host);
    }

    /// The connections of a flow that is many come, if they are due.
    #[cold]
    fn connect(&mut self, now: Time, flow: u32, stop: Time) {
        while let Some(due) = self.world.connections.due(flow) {
            if due > now || now >= stop {
                if due < stop.min(self.world.observations.duration) {
                    self.world.network.agenda.schedule(due, Event::Source(flow));
                }
                return;
            }
            let Some(connection) = self.open(now, flow) else { return };
            if let Some((endpoints, mut host)) = self.endpoints(now, connection) {
                endpoints.act(Time::NEVER, &mut host);
            }
        }
    }

    /// The next connection of a flow that is many is there: its number, unless it cannot be.
    fn open(&mut self, now: Time, flow: u32) -> Option<u32> {
        let connection = self.world.connections.next_number();
        if connection >= POSITIONS {
            self.world.broken = Some(Error::TooMany { most: POSITIONS });
            return None;
        }
        if let Err(error) =
            self.world.connections.open(now, flow, self.spec, self.python_controllers)
        {
            self.world.broken = Some(error);
            return None;
        }
        self.world.network.admit(flow);
        self.sink.connected(now, connection, flow);
        Some(connection)
    }

    /// Shows the state of everything to the sink.
    #[cold]
    fn observe(&mut self, now: Time) {
        self.world.network.advance(now, self.sink);
        if now >= self.world.observations.next_sample {
            for flow in 0..self.world.flows.len() as u32 {
                let many = self.world.connections.due(flow).is_some();
                let in_flight = many.then(|| self.world.connections.in_flight_bytes(flow));
                let Some((endpoints, mut host)) = self.endpoints(now, flow) else { continue };
                endpoints.settle(&mut host);
                let mut state = endpoints.state();
                if let Some(in_flight_bytes) = in_flight {
                    state.in_flight_bytes = in_flight_bytes;
                }
                host.sink.flow_state(now, flow, &state);
                if !many {
                    endpoints.observe(&mut Internals { sink: host.sink, now, flow });
                }
            }
            for (link, (queue_bytes, offered)) in (0..).zip(self.world.network.observe(now)) {
                self.sink.link_state(now, link, queue_bytes, offered);
            }
            let next = now + self.world.observations.interval;
            let end = self.world.observations.duration;
            self.world.observations.next_sample =
                if now >= end { Time::NEVER } else { next.min(end) };
        }
        if now >= self.world.observations.boundary() {
            self.world.observations.offered.clear();
            self.world
                .observations
                .offered
                .extend(self.world.network.observe(now).map(|(_, offered)| offered));
            self.sink.boundary(now, &self.world.observations.offered);
            self.world.observations.next_boundary += 1;
        }
        if now < self.world.observations.duration {
            self.world.network.agenda.schedule(self.world.observations.next(), Event::Observe);
        }
    }
}

#[cfg(test)]
mod tests {
    use jostle_tcp::{Ack, AckTag, Block, Clock, Data, Trip};

    use super::*;

    fn packet(segment: Segment, ecn: Ecn) -> SimPacket {
        let body = Body::Tcp(segment);
        let size_bytes = body.wire_bytes();
        Packet { flow: 0, size_bytes, queued_at: Time::ZERO, ecn, hop: 0, body }
    }

    fn data(number: u32, ecn: Ecn) -> SimPacket {
        let data = Data {
            cwr: false,
            payload_bytes: 1448,
            number,
            tsval_ms: 7,
            tsecr_ms: 3,
            trip: Trip::NONE,
        };
        packet(Segment::Data(data), ecn)
    }

    #[test]
    fn a_card_keeps_apart_what_has_another_ecn_field_or_no_data() {
        let first = data(5, Ecn::Capable);
        assert!(are_merged(1448, 1, &first, &data(6, Ecn::Capable)));
        assert!(!are_merged(1448, 1, &first, &data(6, Ecn::Marked)));
        let ack = Ack {
            tag: AckTag::Ack,
            ece: false,
            duplicate: false,
            block_count: 0,
            marks: 0,
            clock: Clock::at(Time::ZERO),
            number: 6,
            tsecr_ms: 3,
            window: 10,
            blocks: [Block::default(); 3],
        };
        assert!(!are_merged(1448, 1, &first, &packet(Segment::Ack(ack), Ecn::Capable)));
    }
}
