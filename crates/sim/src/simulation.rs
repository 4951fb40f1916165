//! The simulator's loop.

mod browsing;
mod relays;

use jostle_control::Observer;
use jostle_control::memory::HostMemory;
use jostle_path::{Ecn, Packet};
use jostle_record::{End, RunSpec, Sink};
use jostle_tcp::Segment;
use jostle_tcp::offload::merges;
use jostle_units::{Span, Time};

use crate::Error;
use crate::browser::Browser;
use crate::build::{self, Flow, PythonControllers};
use crate::connections::Connections;
use crate::endpoints::Endpoints;
use crate::engine::{Deadline, Event, POSITIONS};
use crate::host::{Host, Progress, Times, Transport};
use crate::network::{Network, tell};
use crate::packet::{Body, SimPacket};

/// Events between two looks at whether the run was cancelled: one may take a millisecond, for the
/// delays that a link had while no packet came.
const CANCEL_CHECK_EVENTS: u64 = 1 << 7;
/// So often in a run every link does what is due, with a look after each: nobody else may call one
/// for long, and what it draws and updates meanwhile takes time.
const SLICES: u64 = 1_000;

/// How much a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events taken from the queue.
    pub events: u64,
    /// Packets that reached the far end of a link, data and acknowledgements.
    pub link_packets: u64,
}

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
    if spec.flows.len().max(spec.links.len()) >= POSITIONS as usize {
        return Err(Error::TooMany { most: POSITIONS });
    }
    let links =
        spec.links.iter().map(|link| build::link(link, spec.seed)).collect::<Result<_, _>>()?;
    let mut simulation = Simulation {
        network: Network::new(links, &spec.links, &spec.flows),
        flows: build::flows(spec, python_controllers)?,
        connections: Connections::new(spec),
        browsers: (0..)
            .zip(&spec.flows)
            .filter_map(|(flow, it)| Browser::of(flow, it, spec.seed))
            .collect(),
        merging: Vec::new(),
        memory: HostMemory::default(),
        spec,
        python_controllers,
        broken: None,
        observations: Observations::new(spec),
        sink,
        counts: Counts::default(),
    };
    simulation.run(cancelled)?;
    let Simulation { network, counts, flows, .. } = simulation;
    let mut named = flows.iter().zip(&spec.flows);
    if let Some((why, name)) =
        named.find_map(|(flow, it)| Some((flow.endpoints.failure()?, &it.name)))
    {
        return Err(Error::Broken { flow: name.clone(), why });
    }
    Ok(Counts { link_packets: network.link_packets, ..counts })
}

/// Instants at which the state of everything is shown to the sink: ends of intervals and
/// boundaries of phases.
struct Observations {
    duration: Time,
    interval: Span,
    next_sample: Time,
    boundaries: Vec<Time>,
    next_boundary: usize,
    offered: Vec<f64>,
}

impl Observations {
    fn new(spec: &RunSpec) -> Self {
        let mut boundaries: Vec<_> = spec
            .phases
            .iter()
            .flat_map(|phase| [phase.from_ns, phase.to_ns])
            .chain([0, spec.duration_ns])
            .map(Time::from_ns)
            .collect();
        boundaries.sort_unstable();
        boundaries.dedup();
        let interval = Span::from_ns(spec.interval_ns);
        Self {
            duration: Time::from_ns(spec.duration_ns),
            interval,
            next_sample: (Time::ZERO + interval).min(Time::from_ns(spec.duration_ns)),
            boundaries,
            next_boundary: 0,
            offered: Vec::new(),
        }
    }

    fn boundary(&self) -> Time {
        self.boundaries.get(self.next_boundary).copied().unwrap_or(Time::NEVER)
    }

    fn next(&self) -> Time {
        self.next_sample.min(self.boundary())
    }
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

struct Simulation<'a, S> {
    network: Network,
    flows: Vec<Flow>,
    /// Those of flows that are many.
    connections: Connections,
    /// Those of flows whose connections they open, by flow.
    browsers: Vec<Browser>,
    /// Packets that cards hold until what arrives at this moment has arrived, one per flow, with its
    /// place in what is being put together. Here, and not with the flows, which would all be larger
    /// for it.
    merging: Vec<(SimPacket, u32)>,
    memory: HostMemory,
    spec: &'a RunSpec,
    python_controllers: PythonControllers<'a>,
    /// Why the run cannot go on.
    broken: Option<Error>,
    observations: Observations,
    sink: &'a mut S,
    counts: Counts,
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
    fn run(&mut self, cancelled: &dyn Fn() -> bool) -> Result<(), Error> {
        self.network.agenda.schedule(self.observations.next(), Event::Observe);
        for (flow, &Flow { times, .. }) in (0..).zip(&self.flows) {
            let start = times.start;
            if start < Time::NEVER {
                self.network.agenda.schedule(start, Event::Source(flow));
            }
        }
        let end = self.observations.duration;
        let slice = Span::from_ns((end.as_ns() / SLICES).max(1));
        let (mut turns, mut slice_end) = (0u64, Time::ZERO + slice);
        while let Some((now, event)) = self.network.agenda.pop() {
            if now >= slice_end {
                slice_end = self.catch_up(slice_end, now, slice, cancelled)?;
            }
            turns += 1;
            if turns.is_multiple_of(CANCEL_CHECK_EVENTS) && cancelled() {
                return Err(Error::Cancelled);
            }
            if event == Event::Observe {
                if let Some(error) = self.broken.take() {
                    return Err(error);
                }
                self.observe(now);
                if now >= end {
                    break;
                }
                continue;
            }
            self.counts.events += 1;
            self.handle(now, event);
        }
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
            for link in 0..self.network.links() {
                self.network.pass_time(slice_end, link, self.sink);
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
                self.network.begin_link(now, link);
                while let Some(packet) = self.network.arrived(now, link, self.sink) {
                    self.arrive(now, &packet);
                }
                while let Some((packet, _)) = self.merging.pop() {
                    self.receive(now, &packet, false);
                }
                if !self.network.relayed.is_empty() {
                    self.relay(now);
                }
            }
            Event::Access(line) => {
                while let Some(arriving) = self.network.reached_sender(now, line) {
                    self.receive_return(now, arriving.flow, &arriving.body);
                }
                if !self.network.relayed.is_empty() {
                    self.relay(now);
                }
            }
            Event::Wire => self.cross_wire(now),
            Event::Nic(flow) => {
                self.network.on_card(now, flow, self.sink);
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
        while let Some(packet) = self.network.off_wire() {
            self.arrive(now, &packet);
        }
        while let Some((packet, _)) = self.merging.pop() {
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
        let Self { network, sink, memory, flows, connections, .. } = self;
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
            self.network.payloads.give_back(place);
        }
    }

    /// A packet has reached the receiver's card. One that puts packets together hands on the one
    /// before it: whether alone or as a part is known now.
    #[inline]
    fn arrive(&mut self, now: Time, packet: &SimPacket) {
        let Some(mss_bytes) = self.network.merged_mss_bytes(packet.flow) else {
            self.receive(now, packet, false);
            return;
        };
        // Few flows have packets at the same moment.
        let held = self.merging.iter_mut().find(|(held, _)| held.flow == packet.flow);
        let Some((held, place)) = held else {
            self.merging.push((*packet, 1));
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
            tell(self.sink, &self.network.payloads, now, flow, End::Receiver, (body, ecn));
        }
        match self.endpoints(now, flow) {
            Some((endpoints, mut host)) => {
                endpoints.receive(body, size_bytes, ecn, part, &mut host);
                if flow as usize >= self.flows.len() {
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
            tell(self.sink, &self.network.payloads, now, flow, End::Sender, (body, ecn));
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
        let Some(Flow { times, followers, .. }) = self.flows.get_mut(flow as usize) else {
            if let Some(opened) = self.connections.close(flow) {
                self.sink.completed(now, flow, now.since(opened));
            }
            return;
        };
        self.sink.completed(now, flow, now.since(times.start));
        for follower in std::mem::take(followers) {
            let times = &mut self.flows[follower as usize].times;
            times.start = now + times.wait;
            self.network.agenda.schedule(times.start, Event::Source(follower));
        }
    }

    /// The application of a flow starts, acts or stops.
    #[cold]
    fn act(&mut self, now: Time, flow: u32) {
        let times = self.flows.get(flow as usize).map(|flow| flow.times);
        let Some(Times { start, stop, .. }) = times else {
            if let Some((endpoints, mut host)) = self.endpoints(now, flow) {
                endpoints.act(Time::NEVER, &mut host);
            }
            return;
        };
        if let Ok(at) = self.browsers.binary_search_by_key(&flow, |browser| browser.flow) {
            return self.browse(now, at, (start, stop));
        }
        if self.connections.due(flow).is_some() {
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
        while let Some(due) = self.connections.due(flow) {
            if due > now || now >= stop {
                if due < stop.min(self.observations.duration) {
                    self.network.agenda.schedule(due, Event::Source(flow));
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
        let connection = self.connections.next_number();
        if connection >= POSITIONS {
            self.broken = Some(Error::TooMany { most: POSITIONS });
            return None;
        }
        if let Err(error) = self.connections.open(now, flow, self.spec, self.python_controllers) {
            self.broken = Some(error);
            return None;
        }
        self.network.admit(flow);
        self.sink.connected(now, connection, flow);
        Some(connection)
    }

    /// Shows the state of everything to the sink.
    #[cold]
    fn observe(&mut self, now: Time) {
        self.network.advance(now, self.sink);
        if now >= self.observations.next_sample {
            for flow in 0..self.flows.len() as u32 {
                let many = self.connections.due(flow).is_some();
                let in_flight = many.then(|| self.connections.in_flight_bytes(flow));
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
            for (link, (queue_bytes, offered)) in (0..).zip(self.network.observe(now)) {
                self.sink.link_state(now, link, queue_bytes, offered);
            }
            let next = now + self.observations.interval;
            let end = self.observations.duration;
            self.observations.next_sample = if now >= end { Time::NEVER } else { next.min(end) };
        }
        if now >= self.observations.boundary() {
            self.observations.offered.clear();
            self.observations.offered.extend(self.network.observe(now).map(|(_, offered)| offered));
            self.sink.boundary(now, &self.observations.offered);
            self.observations.next_boundary += 1;
        }
        if now < self.observations.duration {
            self.network.agenda.schedule(self.observations.next(), Event::Observe);
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
