//! The simulator's loop.

use jostle_control::Observer;
use jostle_control::memory::HostMemory;
use jostle_path::{Ecn, Packet};
use jostle_record::{End, FlowState, RunSpec, Sink};
use jostle_units::{FULL_PAYLOAD_BYTES, Span, Time};

use crate::Error;
use crate::build::{self, Connection, Ends, Pings, PythonControllers, Times};
use crate::engine::{Event, POSITIONS};
use crate::network::{Network, tell};
use crate::offload::{MERGED_MAX, merges};
use crate::segment::{Kind, Segment, SimPacket};
use crate::sender::Egress;
use crate::source::Action;

/// Events between two looks at whether the run was cancelled.
const CANCEL_CHECK_EVENTS: u64 = 1 << 16;

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
        flows: build::all_ends(spec, python_controllers)?,
        merging: Vec::new(),
        memory: HostMemory::default(),
        observations: Observations::new(spec),
        sink,
        counts: Counts::default(),
    };
    simulation.run(cancelled)?;
    let Simulation { network, counts, .. } = simulation;
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

/// Pings have no window, and take no notice of the path.
const fn state_of_pings(in_flight_bytes: u64) -> FlowState {
    FlowState {
        srtt: Span::ZERO,
        cwnd_bytes: 0,
        ssthresh_bytes: None,
        in_flight_bytes,
        pacing_rate: None,
        mode: "pings",
    }
}

struct Simulation<'a, S> {
    network: Network,
    flows: Vec<Ends>,
    /// Packets that cards hold until what arrives at this moment has arrived, one per flow, with its
    /// place in what is being put together. Here, and not with the flows, which would all be larger
    /// for it.
    merging: Vec<(SimPacket, u32)>,
    /// Of the host that all senders run on: peers are told apart by their addresses.
    memory: HostMemory,
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
        for (flow, ends) in (0..).zip(&mut self.flows) {
            let start = ends.times().start;
            if start < Time::NEVER {
                self.network.agenda.schedule(start, Event::Source(flow));
            }
        }
        let end = self.observations.duration;
        while let Some((now, event)) = self.network.agenda.pop() {
            if event == Event::Observe {
                self.observe(now);
                if now >= end {
                    break;
                }
                continue;
            }
            self.counts.events += 1;
            if self.counts.events.is_multiple_of(CANCEL_CHECK_EVENTS) && cancelled() {
                return Err(Error::Cancelled);
            }
            self.handle(now, event);
        }
        Ok(())
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
            }
            Event::Access(line) => {
                while let Some(arriving) = self.network.reached_sender(now, line) {
                    self.acknowledge(now, arriving.flow, &arriving.segment);
                }
            }
            Event::Nic(flow) => {
                self.network.on_card(now, flow, self.sink);
                self.with_sender(flow, |sender, port| sender.on_host_queue_drained(now, port));
            }
            Event::Retransmission(flow) => {
                self.with_sender(flow, |sender, port| sender.on_timer(now, port));
            }
            Event::Pacing(flow) => {
                self.with_sender(flow, |sender, port| sender.on_pacing_timer(now, port));
            }
            Event::Wakeup(flow) => {
                self.with_sender(flow, |sender, port| sender.on_wakeup(now, port));
            }
            Event::Acknowledgement(flow) => {
                let Ends::Connection(Connection { receiver, .. }) = &mut self.flows[flow as usize]
                else {
                    return;
                };
                let ack = receiver.on_timer(now);
                receiver.arrange(&mut self.network.agenda);
                let ecn = receiver.ecn();
                if let Some(ack) = ack {
                    self.network.send_back(now, flow, ack, ecn, self.sink);
                }
            }
            Event::Source(flow) => self.act(now, flow),
            Event::Observe => {}
        }
    }

    /// Lets a flow's sender do something, then schedules its timers.
    #[inline]
    fn with_sender(
        &mut self,
        flow: u32,
        action: impl FnOnce(&mut crate::sender::Sender, &mut crate::network::Port<'_, S>),
    ) {
        let Ends::Connection(Connection { sender, .. }) = &mut self.flows[flow as usize] else {
            return;
        };
        action(sender, &mut self.network.port(flow, self.sink));
        sender.arrange(&mut self.network.agenda);
    }

    /// A packet has reached the receiver's card. One that puts packets together hands on the one
    /// before it: whether alone or as a part is known now.
    #[inline]
    fn arrive(&mut self, now: Time, packet: &SimPacket) {
        if !self.network.merges(packet.flow) {
            self.receive(now, packet, false);
            return;
        }
        // Few flows have packets at the same moment.
        let held = self.merging.iter_mut().find(|(held, _)| held.flow == packet.flow);
        let Some((held, place)) = held else {
            self.merging.push((*packet, 1));
            return;
        };
        let part = *place < MERGED_MAX && merges(held, packet);
        *place = if part { *place + 1 } else { 1 };
        let before = std::mem::replace(held, *packet);
        self.receive(now, &before, part);
    }

    /// A packet has reached the receiver. `part`: the next one is put together with it.
    #[inline]
    fn receive(&mut self, now: Time, packet: &SimPacket, part: bool) {
        let &Packet { flow, size_bytes, ecn, ref body, .. } = packet;
        if self.sink.wants_segments() {
            tell(self.sink, now, flow, End::Receiver, body, ecn);
        }
        let Ends::Connection(Connection { receiver, .. }) = &mut self.flows[flow as usize] else {
            self.sink.received(now, flow, size_bytes);
            self.sink.delivered(now, flow, u64::from(body.payload));
            self.network.send_back(now, flow, body.echo(), ecn, self.sink);
            return;
        };
        let mut reopens = false;
        let ack = if body.kind == Kind::Data {
            self.sink.received(now, flow, size_bytes);
            let arrival = if part {
                receiver.on_part(now, body, ecn)
            } else {
                receiver.on_data(now, body, ecn)
            };
            if arrival.bytes > 0 {
                self.sink.delivered(now, flow, arrival.bytes);
            }
            receiver.arrange(&mut self.network.agenda);
            if let Some(ack) = arrival.early {
                self.network.send_back(now, flow, ack, receiver.ecn(), self.sink);
            }
            reopens = arrival.reopens;
            arrival.ack
        } else {
            Some(receiver.on_syn(body))
        };
        if let Some(ack) = ack {
            self.network.send_back(now, flow, ack, receiver.ecn(), self.sink);
        }
        if reopens {
            self.reopen(now, flow);
        }
    }

    /// The application of a flow has read what kept its window closed.
    #[cold]
    #[inline(never)]
    fn reopen(&mut self, now: Time, flow: u32) {
        let Ends::Connection(Connection { receiver, .. }) = &mut self.flows[flow as usize] else {
            return;
        };
        let update = receiver.reopen();
        receiver.arrange(&mut self.network.agenda);
        self.network.send_back(now, flow, update, receiver.ecn(), self.sink);
    }

    /// A segment has reached the sender.
    #[inline]
    fn acknowledge(&mut self, now: Time, flow: u32, segment: &Segment) {
        if self.sink.wants_segments() {
            tell(self.sink, now, flow, End::Sender, segment, Ecn::NotCapable);
        }
        let connection = match &mut self.flows[flow as usize] {
            Ends::Connection(connection) => connection,
            Ends::Pings(Pings { pinger, .. }) => {
                if let Some(rtt) = pinger.on_echo(now, segment.number) {
                    self.sink.echoed(now, flow, rtt);
                }
                return;
            }
        };
        let Connection { sender, source, times, cut, .. } = connection;
        let drained_before = sender.is_drained();
        if segment.kind == Kind::SynAck {
            sender.recall(now, &mut self.memory);
            sender.on_syn_ack(now, segment, &mut self.network.port(flow, self.sink));
        } else {
            let row = sender.on_ack(now, segment, &mut self.network.port(flow, self.sink));
            if let Some(row) = row {
                self.sink.acked(now, flow, &row);
            }
        }
        sender.arrange(&mut self.network.agenda);
        if !sender.is_drained() || drained_before {
            return;
        }
        if *cut {
            sender.close(now, &mut self.memory);
            return;
        }
        match source.on_drained(now) {
            Ok(next) if next < Time::NEVER => {
                self.network.agenda.schedule(next, Event::Source(flow));
            }
            Ok(_) => {}
            Err(_) => {
                sender.close(now, &mut self.memory);
                let after = now.since(times.start);
                self.complete(now, flow, after);
            }
        }
    }

    /// A flow has sent all it ever will, and all of it was acknowledged.
    #[cold]
    fn complete(&mut self, now: Time, flow: u32, after: Span) {
        self.sink.completed(now, flow, after);
        let Ends::Connection(Connection { followers, .. }) = &mut self.flows[flow as usize] else {
            return;
        };
        for follower in std::mem::take(followers) {
            let times = self.flows[follower as usize].times();
            times.start = now + times.wait;
            self.network.agenda.schedule(times.start, Event::Source(follower));
        }
    }

    /// The application of a flow starts, acts or stops.
    #[cold]
    fn act(&mut self, now: Time, flow: u32) {
        let ends = &mut self.flows[flow as usize];
        let &mut Times { start, stop, .. } = ends.times();
        if now >= stop {
            if let Ends::Connection(connection) = ends {
                connection.cut |= connection.sender.withdraw();
            }
            return;
        }
        if now == start {
            self.sink.opened(now, flow);
            if stop < Time::NEVER {
                self.network.agenda.schedule(stop, Event::Source(flow));
            }
        }
        let connection = match ends {
            Ends::Connection(connection) => connection,
            Ends::Pings(Pings { pinger, .. }) => {
                while let Some(number) = pinger.expired(now) {
                    self.sink.unanswered(now, flow, number);
                }
                let (datagram, next) = pinger.ping(now);
                if next < stop {
                    self.network.agenda.schedule(next, Event::Source(flow));
                }
                let mut port = self.network.port(flow, self.sink);
                port.note_sent(now, 1, u64::from(datagram.wire_bytes()), false);
                port.transmit(now, datagram, Ecn::NotCapable);
                return;
            }
        };
        let (action, next) = connection.source.act(now);
        if next < Time::NEVER {
            self.network.agenda.schedule(next.min(stop), Event::Source(flow));
        }
        self.with_sender(flow, |sender, port| {
            match action {
                Action::Write(bytes) => sender.supply(now, Some(bytes), port),
                Action::WriteForever => sender.supply(now, None, port),
                Action::Pause | Action::Finish => {
                    sender.withdraw();
                }
            }
            sender.open(now, port);
        });
    }

    /// Shows the state of everything to the sink.
    #[cold]
    fn observe(&mut self, now: Time) {
        self.network.advance(now, self.sink);
        if now >= self.observations.next_sample {
            for (flow, ends) in (0..).zip(&mut self.flows) {
                let sender = match ends {
                    Ends::Connection(connection) => &connection.sender,
                    Ends::Pings(Pings { pinger, .. }) => {
                        while let Some(number) = pinger.expired(now) {
                            self.sink.unanswered(now, flow, number);
                        }
                        let state = state_of_pings(pinger.waiting_bytes());
                        self.sink.flow_state(now, flow, &state);
                        continue;
                    }
                };
                let bytes = |packets: u32| u64::from(packets) * u64::from(FULL_PAYLOAD_BYTES);
                let state = FlowState {
                    srtt: sender.srtt(),
                    cwnd_bytes: bytes(sender.cwnd()),
                    ssthresh_bytes: sender.controller().ssthresh().map(bytes),
                    in_flight_bytes: bytes(sender.in_flight()),
                    pacing_rate: sender.visible_pacing_rate(),
                    mode: sender.mode(),
                };
                self.sink.flow_state(now, flow, &state);
                sender.controller().observe(&mut Internals { sink: self.sink, now, flow });
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
