//! The event loop of the simulator.

mod proxies;
mod state;
mod web_browsers;

use jostle_congestion::StateObserver;
use jostle_link::{Ecn, Packet};
use jostle_metrics::{EndpointRole, EventSink};
use jostle_run_spec::{RunSpec, SourceSpec};
use jostle_tcp::Segment;
use jostle_tcp::gro::merges;
use jostle_units::{ConnectionId, FlowId, LinkId, Span, Time};

use crate::Error;
use crate::build::{BuiltFlow, UserControllers};
use crate::endpoints::EndpointKind;
use crate::event_queue::{Deadline, Event, POSITIONS};
use crate::network::emit_packet_event;
use crate::packet::{Body, SimPacket};
use crate::payload_pool::PayloadPool;
use crate::transport::{EndpointContext, Endpoints, FlowStatus, FlowTimes};

pub use state::RunCounts;
pub(crate) use state::SimulationState;

/// Events between two checks for cancellation. An event can take a millisecond, if a link has to
/// update its delay for a long idle period.
const CANCEL_CHECK_EVENTS: u64 = 1 << 7;

/// Runs `spec` and reports the events to `sink`. `cancelled` is polled regularly.
///
/// # Errors
/// Returns an error if the spec cannot be built, or if the run was cancelled.
pub fn run(
    spec: &RunSpec,
    sink: &mut impl EventSink,
    cancelled: &dyn Fn() -> bool,
) -> Result<RunCounts, Error> {
    run_with(spec, sink, cancelled, &|flow, _| {
        Err(format!("there is nothing here to make the controller `{}`", flow.controller.name))
    })
}

/// Like [`run`], with `user_controllers` to create controllers that are not in the registry.
///
/// # Errors
/// See [`run`]. Also returns an error if `user_controllers` cannot create a controller.
pub fn run_with(
    spec: &RunSpec,
    sink: &mut impl EventSink,
    cancelled: &dyn Fn() -> bool,
    user_controllers: UserControllers<'_>,
) -> Result<RunCounts, Error> {
    let world = SimulationState::new(spec, user_controllers)?;
    let mut simulation = Simulation { world, spec, user_controllers, sink };
    simulation.run_until(Time::NEVER, cancelled)?;
    simulation.world.outcome(spec)
}

/// Returns whether GRO of the receiver's NIC merges two packets of a flow. `first` is the last of
/// `count` packets that were merged so far. Full-sized segments carry `mss_bytes`.
#[inline]
fn are_merged(
    (mss_bytes, payloads): (u16, &PayloadPool),
    count: u32,
    first: &SimPacket,
    second: &SimPacket,
) -> bool {
    match (&first.transport, &second.transport) {
        (Body::Tcp(Segment::Data(one)), Body::Tcp(Segment::Data(other))) => {
            first.ecn == second.ecn && merges(mss_bytes, count, one, other)
        }
        (Body::Tcp(Segment::DataWithAck(one)), Body::Tcp(Segment::DataWithAck(other))) => {
            first.ecn == second.ecn
                && merges(mss_bytes, count, &one.data, &other.data)
                && payloads.have_equal_acks(one.place, other.place)
        }
        _ => false,
    }
}

/// A run in progress: its state, and references to its specification and its sink.
pub(crate) struct Simulation<'a, S> {
    /// Stored by value to avoid another pointer indirection.
    pub(crate) world: SimulationState,
    pub(crate) spec: &'a RunSpec,
    pub(crate) user_controllers: UserControllers<'a>,
    pub(crate) sink: &'a mut S,
}

/// Forwards a controller's internal state to a sink.
struct StateForwarder<'a, S> {
    sink: &'a mut S,
    now: Time,
    flow: FlowId,
}

impl<S: EventSink> StateObserver for StateForwarder<'_, S> {
    fn record_value(&mut self, name: &'static str, value: f64) {
        self.sink.controller_state(self.now, self.flow, name, value);
    }
}

impl<S: EventSink> Simulation<'_, S> {
    /// Runs to the end, or until the first event at or after `until`. Stopping and continuing does
    /// not change the result.
    pub(crate) fn run_until(
        &mut self,
        until: Time,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let end = self.world.observations.duration;
        let slice = self.world.slice();
        let SimulationState { mut turns, mut slice_end, .. } = self.world;
        // The earlier of both, so that the loop needs one comparison.
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

    /// Advances all links to the time before `now`, slice by slice. Returns the end of the next
    /// slice.
    #[cold]
    fn catch_up(
        &mut self,
        mut slice_end: Time,
        now: Time,
        slice: Span,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Time, Error> {
        while slice_end < now {
            for link in self.world.network.links() {
                self.world.network.advance_link(slice_end, link, self.sink);
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
            Event::DelayLine(line) => {
                while let Some(first) = self.world.network.reached_sender(now, line) {
                    let arriving = *first;
                    self.world.network.forget_reached(line);
                    self.receive_return(now, arriving.connection, &arriving.body);
                }
                if !self.world.network.relayed.is_empty() {
                    self.relay(now);
                }
            }
            Event::ZeroLinkPath => self.cross_wire(now),
            Event::Nic(connection) => {
                self.world.network.on_nic_sent(now, connection, self.sink);
                if let Some((endpoints, mut host)) = self.endpoints(now, connection) {
                    endpoints.on_nic_sent(&mut host);
                }
            }
            Event::Retransmission(connection) => {
                self.on_deadline(now, connection, Deadline::Retransmission)
            }
            Event::Pacing(connection) => self.on_deadline(now, connection, Deadline::Pacing),
            Event::Acknowledgement(connection) => {
                self.on_deadline(now, connection, Deadline::Acknowledgement)
            }
            Event::Wakeup(connection) => self.on_deadline(now, connection, Deadline::Wakeup),
            Event::Reading(connection) => {
                self.on_deadline(now, connection, Deadline::Reading);
                self.relay(now);
            }
            Event::Source(connection) => self.act(now, connection),
            Event::RouteChange => self.world.network.change_routes(now),
            Event::Tunnel(connection) => self.enter_tunnel(now, connection),
            Event::Observe => {}
        }
    }

    /// Delivers packets whose path has no link.
    #[cold]
    fn cross_wire(&mut self, now: Time) {
        while let Some(packet) = self.world.network.next_without_links() {
            self.arrive(now, &packet);
        }
        while let Some((packet, _)) = self.world.merging.pop() {
            self.receive(now, &packet, false);
        }
        self.relay(now);
    }

    #[inline]
    fn on_deadline(&mut self, now: Time, connection: ConnectionId, deadline: Deadline) {
        if let Some((endpoints, mut host)) = self.endpoints(now, connection) {
            endpoints.on_deadline(deadline, &mut host);
        }
    }

    /// Returns the endpoints and the context of a flow or connection. `None` if the connection was
    /// closed.
    #[inline]
    fn endpoints(
        &mut self,
        now: Time,
        connection: ConnectionId,
    ) -> Option<(&mut EndpointKind, EndpointContext<'_, S>)> {
        let Self { world, sink, .. } = self;
        let SimulationState { network, memory, flows, connections, .. } = world;
        let endpoints = match flows.get_mut(connection.index()) {
            Some(flow) => &mut flow.endpoints,
            None => connections.endpoints(connection)?,
        };
        Some((endpoints, EndpointContext { now, connection, network, sink, memory }))
    }

    /// Frees the payload of a packet for a closed connection.
    #[cold]
    fn discard(&mut self, body: &Body) {
        self.world.network.payloads.free(body);
    }

    /// Handles a packet that reaches the receiver's NIC. With GRO, a packet is held until the next
    /// one shows whether both are merged; then the held packet is received. Always inlined into the
    /// loop over arrived packets, because most NICs hold no packets.
    #[inline(always)]
    fn arrive(&mut self, now: Time, packet: &SimPacket) {
        let Some(mss_bytes) = self.world.network.merged_mss_bytes(packet.connection) else {
            self.receive(now, packet, false);
            return;
        };
        // Few flows receive packets at the same time.
        let held =
            self.world.merging.iter_mut().find(|(held, _)| held.connection == packet.connection);
        let Some((held, place)) = held else {
            self.world.merging.push((*packet, 1));
            return;
        };
        let payloads = &self.world.network.payloads;
        let part = are_merged((mss_bytes, payloads), *place, held, packet);
        *place = if part { *place + 1 } else { 1 };
        let before = std::mem::replace(held, *packet);
        self.receive(now, &before, part);
    }

    /// Delivers a packet to the receiver. `part` is true if GRO merges the next packet with it.
    #[inline]
    fn receive(&mut self, now: Time, packet: &SimPacket, part: bool) {
        let &Packet { connection, size_bytes, ecn, transport: ref body, .. } = packet;
        if self.sink.wants_segments() {
            emit_packet_event(
                self.sink,
                &self.world.network.payloads,
                now,
                connection,
                EndpointRole::Receiver,
                (body, ecn),
            );
        }
        match self.endpoints(now, connection) {
            Some((endpoints, mut host)) => {
                endpoints.receive(body, size_bytes, ecn, part, &mut host);
            }
            None => self.discard(body),
        }
    }

    /// Delivers a packet to the sender.
    #[inline]
    fn receive_return(&mut self, now: Time, connection: ConnectionId, body: &Body) {
        if self.sink.wants_segments() {
            // Only of a datagram the ECN field at departure is known.
            let ecn = body.sent_ecn().unwrap_or(Ecn::NotCapable);
            let end = if body.is_forward() { EndpointRole::Receiver } else { EndpointRole::Sender };
            let payloads = &self.world.network.payloads;
            emit_packet_event(self.sink, payloads, now, connection, end, (body, ecn));
        }
        let Some((endpoints, mut host)) = self.endpoints(now, connection) else {
            return self.discard(body);
        };
        if endpoints.receive_return(body, &mut host) == FlowStatus::Complete {
            self.complete(now, connection);
        }
    }

    /// Completes a flow or connection, after all of its data was acknowledged or its last web page
    /// was loaded, and schedules the
    /// flows that start after it.
    #[cold]
    fn complete(&mut self, now: Time, connection: ConnectionId) {
        let Some(BuiltFlow { times, followers, .. }) = self.world.flows.get_mut(connection.index())
        else {
            if let Some(opened) = self.world.connections.close(connection) {
                self.sink.flow_completed(now, connection, now.since(opened));
            }
            return;
        };
        self.sink.flow_completed(now, connection, now.since(times.start));
        for follower in std::mem::take(followers) {
            let times = &mut self.world.flows[follower.index()].times;
            times.start = now + times.wait;
            self.world.network.agenda.schedule(times.start, Event::Source(follower.into()));
        }
    }

    /// Starts, runs or stops the application of a flow.
    #[cold]
    fn act(&mut self, now: Time, connection: ConnectionId) {
        let Some(flow) = connection.own_flow(self.world.flows.len()) else {
            if let Some((endpoints, mut host)) = self.endpoints(now, connection) {
                endpoints.run_application(Time::NEVER, &mut host);
            }
            return;
        };
        let FlowTimes { start, stop, .. } = self.world.flows[flow.index()].times;
        if let Ok(at) = self.world.browsers.binary_search_by_key(&flow, |browser| browser.flow) {
            return self.browse(now, at, (start, stop));
        }
        if self.world.connections.due(flow).is_some() {
            return self.connect(now, flow, stop);
        }
        let Some((endpoints, mut host)) = self.endpoints(now, connection) else { return };
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
        endpoints.run_application(stop, &mut host);
    }

    /// Opens the due connections of a multi-connection flow.
    #[cold]
    fn connect(&mut self, now: Time, flow: FlowId, stop: Time) {
        while let Some(due) = self.world.connections.due(flow) {
            if due > now || now >= stop {
                if due < stop.min(self.world.observations.duration) {
                    self.world.network.agenda.schedule(due, Event::Source(flow.into()));
                }
                return;
            }
            let Some(connection) = self.open(now, flow) else { return };
            if let Some((endpoints, mut host)) = self.endpoints(now, connection) {
                endpoints.run_application(Time::NEVER, &mut host);
            }
        }
    }

    /// Opens the next connection of a multi-connection flow. Returns its number, or `None` on
    /// failure.
    fn open(&mut self, now: Time, flow: FlowId) -> Option<ConnectionId> {
        let connection = self.world.connections.next_number();
        // A browser's connection has two numbers.
        if connection.0 + 1 >= POSITIONS {
            self.world.broken = Some(Error::TooMany { most: POSITIONS });
            return None;
        }
        if let Err(error) = self.world.connections.open(now, flow, self.spec, self.user_controllers)
        {
            self.world.broken = Some(error);
            return None;
        }
        let routed = self.world.network.admit(flow);
        debug_assert_eq!(routed, connection, "a connection on the route of another");
        self.sink.connection_opened(now, connection, flow);
        if matches!(self.spec.flows[flow.index()].source, SourceSpec::Web(_)) {
            let requests = self.world.network.admit_requests(flow);
            self.sink.connection_opened(now, requests, flow);
        }
        Some(connection)
    }

    /// Reports the state of all flows and links to the sink.
    #[cold]
    fn observe(&mut self, now: Time) {
        self.world.network.advance(now, self.sink);
        if now >= self.world.observations.next_sample {
            for flow in (0..self.world.flows.len()).map(FlowId::at) {
                let many = self.world.connections.due(flow).is_some();
                let in_flight = many.then(|| self.world.connections.in_flight_bytes(flow));
                let Some((endpoints, mut host)) = self.endpoints(now, flow.into()) else {
                    continue;
                };
                endpoints.flush_events(&mut host);
                let mut state = endpoints.state();
                if let Some(in_flight_bytes) = in_flight {
                    state.in_flight_bytes = in_flight_bytes;
                }
                host.sink.flow_state(now, flow, &state);
                if !many {
                    endpoints.observe(&mut StateForwarder { sink: host.sink, now, flow });
                }
            }
            for (link, (queue_bytes, service)) in
                (0..).map(LinkId).zip(self.world.network.observe(now))
            {
                self.sink.link_state(now, link, queue_bytes, service);
            }
            let next = now + self.world.observations.interval;
            let end = self.world.observations.duration;
            self.world.observations.next_sample =
                if now >= end { Time::NEVER } else { next.min(end) };
        }
        if now >= self.world.observations.boundary() {
            let services = &mut self.world.observations.services;
            services.clear();
            services.extend(self.world.network.observe(now).map(|(_, service)| service));
            self.sink.phase_boundary(now, services);
            self.world.observations.next_boundary += 1;
        }
        if now < self.world.observations.duration {
            self.world.network.agenda.schedule_observation(self.world.observations.next());
        }
    }
}

#[cfg(test)]
mod tests {
    use jostle_tcp::{AccEcnFeedback, Ack, AckTag, Data, SackBlock, TimestampClock, TransitTimes};

    use super::*;

    fn packet(segment: Segment, ecn: Ecn) -> SimPacket {
        let body = Body::Tcp(segment);
        let size_bytes = body.wire_bytes();
        Packet {
            connection: ConnectionId(0),
            size_bytes,
            queued_at: Time::ZERO,
            ecn,
            hop: 0,
            is_corrupted: false,
            dscp: 0,
            transport: body,
        }
    }

    fn data(number: u32, ecn: Ecn) -> SimPacket {
        let data = Data {
            cwr: false,
            payload_bytes: 1448,
            number,
            tsval_ms: 7,
            tsecr_ms: 3,
            trip: TransitTimes::NONE,
        };
        packet(Segment::Data(data), ecn)
    }

    #[test]
    fn a_card_keeps_apart_what_has_another_ecn_field_or_no_data() {
        let payloads = PayloadPool::default();
        let first = data(5, Ecn::Capable);
        assert!(are_merged((1448, &payloads), 1, &first, &data(6, Ecn::Capable)));
        assert!(!are_merged((1448, &payloads), 1, &first, &data(6, Ecn::Marked)));
        let ack = Ack {
            tag: AckTag::Ack,
            ece: false,
            duplicate: false,
            block_count: 0,
            accecn: AccEcnFeedback::NONE,
            clock: TimestampClock::at(Time::ZERO),
            number: 6,
            tsecr_ms: 3,
            window: 10,
            blocks: [SackBlock::default(); 3],
        };
        assert!(!are_merged(
            (1448, &payloads),
            1,
            &first,
            &packet(Segment::Ack(ack), Ecn::Capable)
        ));
    }
}
