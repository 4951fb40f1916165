//! The simulator's loop.

use jostle_control::Observer;
use jostle_control::memory::HostMemory;
use jostle_path::{Ecn, Packet};
use jostle_record::{AckRow, End, FlowState, RunSpec, Sink};
use jostle_tcp::offload::{MERGED_MAX, merges};
use jostle_tcp::{Acknowledged, Egress, Kind, Segment, Sender};
use jostle_units::{FULL_PAYLOAD_BYTES, Span, Time};

use crate::Error;
use crate::build::{self, Alarms, Connection, Ends, Pings, PythonControllers, Times};
use crate::engine::{Alarm, Event, POSITIONS};
use crate::network::{Network, tell};
use crate::packet::{Body, SimPacket};
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

/// A segment leaves the receiver's end.
#[inline]
fn answer<S: Sink>(
    network: &mut Network,
    sink: &mut S,
    now: Time,
    flow: u32,
    mut segment: Segment,
    ecn: Ecn,
) {
    segment.stamp(now);
    network.send_back(now, flow, Body::Tcp(segment), ecn, sink);
}

/// Whether a card puts two packets together.
#[inline]
fn are_merged(first: &SimPacket, second: &SimPacket) -> bool {
    match (&first.body, &second.body) {
        (Body::Tcp(one), Body::Tcp(other)) => merges((one, first.ecn), (other, second.ecn)),
        _ => false,
    }
}

/// What is recorded of an ACK.
#[inline]
const fn row_of(done: &Acknowledged) -> AckRow {
    AckRow {
        rtt: done.rtt,
        cwnd_bytes: done.cwnd_bytes,
        in_flight_bytes: done.in_flight_bytes,
        acked_bytes: done.acked_bytes,
        lost_packets: done.lost_packets,
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
                    self.acknowledge(now, arriving.flow, &arriving.body);
                }
            }
            Event::Nic(flow) => {
                self.network.on_card(now, flow, self.sink);
                self.with_sender(flow, |sender, port| sender.on_host_queue_drained(now, port));
            }
            Event::Retransmission(flow) => {
                if self.rings(now, flow, |alarms| &mut alarms.retransmission) {
                    self.with_sender(flow, |sender, port| sender.on_timer(now, port));
                }
            }
            Event::Pacing(flow) => {
                if self.rings(now, flow, |alarms| &mut alarms.pacing) {
                    self.with_sender(flow, |sender, port| sender.on_pacing_timer(now, port));
                }
            }
            Event::Wakeup(flow) => {
                if self.rings(now, flow, |alarms| &mut alarms.wakeup) {
                    self.with_sender(flow, |sender, port| sender.on_wakeup(now, port));
                }
            }
            Event::Acknowledgement(flow) => {
                if !self.rings(now, flow, |alarms| &mut alarms.acknowledgement) {
                    return;
                }
                let Ends::Connection(connection) = &mut self.flows[flow as usize] else {
                    return;
                };
                let ack = connection.receiver.on_timer(now);
                connection.arrange_receiver(flow, &mut self.network.agenda);
                let ecn = connection.receiver.ecn();
                if let Some(ack) = ack {
                    answer(&mut self.network, self.sink, now, flow, ack, ecn);
                }
            }
            Event::Source(flow) => self.act(now, flow),
            Event::Observe => {}
        }
    }

    /// Whether an event means the deadline that its alarm stands for.
    #[inline]
    fn rings(&mut self, now: Time, flow: u32, alarm: fn(&mut Alarms) -> &mut Alarm) -> bool {
        match &mut self.flows[flow as usize] {
            Ends::Connection(connection) => alarm(&mut connection.alarms).rings(now),
            Ends::Pings(_) => false,
        }
    }

    /// Lets a flow's sender do something, then schedules its timers.
    #[inline]
    fn with_sender(
        &mut self,
        flow: u32,
        action: impl FnOnce(&mut Sender, &mut crate::network::Port<'_, S>),
    ) {
        let Ends::Connection(connection) = &mut self.flows[flow as usize] else {
            return;
        };
        action(&mut connection.sender, &mut self.network.port(flow, self.sink));
        connection.arrange_sender(flow, &mut self.network.agenda);
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
        let part = *place < MERGED_MAX && are_merged(held, packet);
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
        let (connection, body) = match (&mut self.flows[flow as usize], body) {
            (Ends::Connection(connection), Body::Tcp(segment)) => (connection, segment),
            (_, &Body::Ping(datagram)) => {
                self.sink.received(now, flow, size_bytes);
                self.sink.delivered(now, flow, u64::from(datagram.payload_bytes));
                self.network.send_back(now, flow, Body::Echo(datagram), ecn, self.sink);
                return;
            }
            _ => return,
        };
        let receiver = &mut connection.receiver;
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
            connection.arrange_receiver(flow, &mut self.network.agenda);
            if let Some(ack) = arrival.early {
                let ecn = connection.receiver.ecn();
                answer(&mut self.network, self.sink, now, flow, ack, ecn);
            }
            reopens = arrival.reopens;
            arrival.ack
        } else {
            Some(receiver.on_syn(body))
        };
        if let Some(ack) = ack {
            let ecn = connection.receiver.ecn();
            answer(&mut self.network, self.sink, now, flow, ack, ecn);
        }
        if reopens {
            self.reopen(now, flow);
        }
    }

    /// The application of a flow has read what kept its window closed.
    #[cold]
    #[inline(never)]
    fn reopen(&mut self, now: Time, flow: u32) {
        let Ends::Connection(connection) = &mut self.flows[flow as usize] else {
            return;
        };
        let update = connection.receiver.reopen();
        connection.arrange_receiver(flow, &mut self.network.agenda);
        let ecn = connection.receiver.ecn();
        answer(&mut self.network, self.sink, now, flow, update, ecn);
    }

    /// A packet has reached the sender.
    #[inline]
    fn acknowledge(&mut self, now: Time, flow: u32, body: &Body) {
        if self.sink.wants_segments() {
            tell(self.sink, now, flow, End::Sender, body, Ecn::NotCapable);
        }
        let (connection, segment) = match (&mut self.flows[flow as usize], body) {
            (Ends::Connection(connection), Body::Tcp(segment)) => (connection, segment),
            (Ends::Pings(Pings { pinger, .. }), Body::Echo(datagram)) => {
                if let Some(rtt) = pinger.on_echo(now, datagram.number) {
                    self.sink.echoed(now, flow, rtt);
                }
                return;
            }
            _ => return,
        };
        let drained_before = connection.sender.is_drained();
        let sender = &mut connection.sender;
        if segment.kind == Kind::SynAck {
            sender.recall(now, &mut self.memory);
            sender.on_syn_ack(now, segment, &mut self.network.port(flow, self.sink));
        } else {
            let done = sender.on_ack(now, segment, &mut self.network.port(flow, self.sink));
            if let Some(done) = done {
                self.sink.acked(now, flow, &row_of(&done));
            }
        }
        connection.arrange_sender(flow, &mut self.network.agenda);
        let Connection { sender, source, times, cut, .. } = connection;
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
                let ping = Body::Ping(datagram);
                port.note_sent(now, 1, u64::from(ping.wire_bytes()), false);
                port.send(now, ping, Ecn::NotCapable);
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
