//! A flow over a TCP connection: both endpoints, the application and timer events.

use jostle_congestion::StateObserver;
use jostle_link::Ecn;
use jostle_metrics::{AckEvent, EventSink, FlowState};
use jostle_tcp::{
    Ack, AckOutcome, Data, Receiver, ReceiverBehaviour, Segment, SegmentArrival, SegmentSink,
    Sender, SenderTimers,
};
use jostle_units::{ConnectionId, Time};

use crate::event_queue::{Deadline, Event, EventQueue, Timer};
use crate::packet::Body;
use crate::proxy::ProxyLeg;
use crate::sender_port::SenderPort;
use crate::slow_reader::SlowReader;
use crate::transport::{EndpointContext, Endpoints, FlowStatus};
use jostle_traffic::MessageTracker;
use jostle_traffic::{Action, ApplicationInstance};

mod shared;
pub(crate) use shared::{CompletedMessages, SharedConnection};

/// Both endpoints of a TCP connection.
pub(crate) struct TcpConnection {
    sender: Sender,
    receiver: Receiver,
    /// Deviation of the receiver from Linux, if any.
    behaviour: Option<Box<ReceiverBehaviour>>,
    /// Slow application at the receiver, if any.
    reader: Option<Box<SlowReader>>,
    timers: Timers,
    source: ApplicationInstance,
    /// Whether the flow was stopped before all of its data was sent.
    cut: bool,
    /// Messages whose completion time is measured. In a proxy leg, one endless message, so that
    /// every arrival is reported.
    messages: MessageTracker,
    /// Role in a flow that proxies split.
    part: Option<Box<ProxyLeg>>,
}

/// Timer events of both endpoints.
#[derive(Default)]
struct Timers {
    retransmission: Timer,
    pacing: Timer,
    wakeup: Timer,
    acknowledgement: Timer,
}

impl TcpConnection {
    pub fn new(sender: Sender, receiver: Receiver, source: ApplicationInstance) -> Self {
        Self {
            sender,
            receiver,
            behaviour: None,
            reader: None,
            timers: Timers::default(),
            source,
            cut: false,
            messages: MessageTracker::default(),
            part: None,
        }
    }

    /// Sets a receiver behaviour that deviates from Linux.
    pub fn with_behaviour(mut self, behaviour: Option<ReceiverBehaviour>) -> Self {
        self.behaviour = behaviour.map(Box::new);
        self
    }

    /// Sets a slow application at the receiver.
    pub fn with_reader(mut self, reader: Option<SlowReader>) -> Self {
        if reader.is_some() {
            self.receiver.read_slowly();
        }
        self.reader = reader.map(Box::new);
        self
    }

    /// Makes the connection a leg of a split flow, or a tunnel.
    pub fn set_proxy_leg(&mut self, part: ProxyLeg) {
        self.messages.write(u64::MAX, Time::NEVER);
        if part.next.is_some() {
            self.receiver.read_later();
        }
        self.part = Some(Box::new(part));
    }

    /// Returns the role in a split flow.
    pub fn proxy_leg_mut(&mut self) -> Option<&mut ProxyLeg> {
        self.part.as_deref_mut()
    }

    /// Returns the bytes that the proxy at the receiver can read.
    pub fn unread_bytes(&self) -> u64 {
        self.receiver.unread_bytes()
    }

    /// Returns the bytes that the proxy at the sender may write: full segments, unless all `wanted`
    /// bytes fit.
    pub fn writable_bytes(&self, wanted: u64) -> u64 {
        let Some(part) = &self.part else { return 0 };
        let held_bytes = part.written_bytes - self.sender.acked_bytes();
        let room_bytes = part.buffer_bytes.saturating_sub(held_bytes);
        let segment_bytes = self.sender.bytes_of(1);
        if wanted <= room_bytes { wanted } else { room_bytes - room_bytes % segment_bytes }
    }

    /// Reads data at the receiver.
    pub fn read<S: EventSink>(&mut self, bytes: u64, host: &mut EndpointContext<'_, S>) {
        let update = self.receiver.read(host.now, bytes);
        self.arm_receiver(host.connection, &mut host.network.agenda);
        self.acknowledge(update, host);
    }

    /// Writes data at the sender's proxy.
    pub fn write<S: EventSink>(&mut self, bytes: u64, host: &mut EndpointContext<'_, S>) {
        if let Some(part) = &mut self.part {
            part.written_bytes += bytes;
        }
        let now = host.now;
        self.with_sender(host, |sender, port| sender.supply(now, Some(bytes), port));
    }

    /// Lets the packets that have arrived leave the tunnel, and writes waiting packets as long as the
    /// send buffer has room, as `sk_stream_memory_free` of Linux.
    #[cold]
    pub fn carry_packets<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
        let Some(part) = &mut self.part else { return };
        let (acked_bytes, arrived_bytes) =
            (self.sender.acked_bytes(), std::mem::take(&mut part.arrived_bytes));
        let Some(tunnel) = &mut part.tunnel else { return };
        let link = tunnel.link;
        tunnel.read(arrived_bytes);
        while let Some(carried) = tunnel.next_complete() {
            host.network.deliver(host.now, carried, host.sink);
        }
        let mut bytes = 0;
        host.network.begin_taking(link);
        while part.written_bytes + bytes < acked_bytes + part.buffer_bytes
            && let Some(packet) = host.network.take_next(host.now, link, host.sink)
        {
            bytes += tunnel.write(packet);
        }
        if bytes > 0 {
            self.write(bytes, host);
        }
    }

    /// Returns whether all written data is acknowledged and read.
    pub fn is_empty(&self) -> bool {
        self.sender.is_drained() && self.receiver.unread_bytes() == 0
    }

    /// Reports messages of a split flow after `bytes` reached the flow's receiver. Called on the
    /// first leg.
    pub fn answered<S: EventSink>(&mut self, bytes: u64, host: &mut EndpointContext<'_, S>) {
        let &mut EndpointContext { now, connection, ref mut sink, .. } = host;
        if let Some(part) = &mut self.part {
            part.messages
                .deliver(bytes, now, |after| sink.response_complete(now, connection, after));
        }
    }

    /// Completes a split flow once all legs are empty. Called on the first leg; has an effect once
    /// per write of the application.
    pub fn complete_split_flow<S: EventSink>(
        &mut self,
        host: &mut EndpointContext<'_, S>,
    ) -> FlowStatus {
        let was_reported = self
            .part
            .as_mut()
            .map(|part| std::mem::replace(&mut part.is_completion_reported, true));
        if was_reported == Some(false) { self.finish(host) } else { FlowStatus::Open }
    }

    /// Arms the sender's timers whose deadlines moved forward.
    #[inline]
    fn arm_sender(&mut self, connection: ConnectionId, agenda: &mut EventQueue) {
        let &SenderTimers { retransmission, pacing, wakeup } = self.sender.deadlines();
        self.timers.retransmission.arm(retransmission, agenda, Event::Retransmission(connection));
        self.timers.pacing.arm(pacing, agenda, Event::Pacing(connection));
        self.timers.wakeup.arm(wakeup, agenda, Event::Wakeup(connection));
    }

    /// Arms the receiver's timer if its deadline moved forward.
    #[inline]
    fn arm_receiver(&mut self, connection: ConnectionId, agenda: &mut EventQueue) {
        let event = Event::Acknowledgement(connection);
        self.timers.acknowledgement.arm(self.receiver.deadline(), agenda, event);
    }

    /// Runs `action` on the sender, then arms its timers.
    #[inline]
    fn with_sender<S: EventSink>(
        &mut self,
        host: &mut EndpointContext<'_, S>,
        action: impl FnOnce(&mut Sender, &mut SenderPort<'_, S>),
    ) {
        action(&mut self.sender, &mut host.port());
        self.arm_sender(host.connection, &mut host.network.agenda);
    }

    /// Sends an ACK of the receiver, if there is one.
    #[inline(never)]
    fn acknowledge<S: EventSink>(&mut self, ack: Option<Ack>, host: &mut EndpointContext<'_, S>) {
        if let Some(ack) = ack {
            if self.behaviour.is_some() {
                return self.send_forged_acks(ack, &mut host.reborrow());
            }
            host.send_back(Body::Tcp(Segment::Ack(ack)), self.receiver.ecn());
        }
    }

    /// Sends the ACKs by which a deviating receiver replaces an ACK.
    #[cold]
    #[inline(never)]
    fn send_forged_acks<S: EventSink>(&mut self, ack: Ack, host: &mut EndpointContext<'_, S>) {
        let acks = self.behaviour.as_mut().map(|behaviour| behaviour.acks_for(ack));
        for ack in acks.into_iter().flatten() {
            host.send_back(Body::Tcp(Segment::Ack(ack)), self.receiver.ecn());
        }
    }

    /// Handles a data segment at a deviating receiver.
    #[cold]
    #[inline(never)]
    fn receive_with_behaviour<S: EventSink>(
        &mut self,
        data: &Data,
        mut ecn: Ecn,
        part: bool,
        host: &mut EndpointContext<'_, S>,
    ) {
        if let Some(behaviour) = &mut self.behaviour {
            ecn = behaviour.visible_ecn(ecn);
            if let Some(taken) = behaviour.receive_data(host.now, data, part) {
                self.deliver(taken.bytes, host);
                return self.acknowledge(taken.ack, host);
            }
        }
        let arrival = if part {
            self.receiver.on_gro_segment(host.now, data, ecn)
        } else {
            self.receiver.on_data(host.now, data, ecn)
        };
        self.take_in(arrival, host);
        if !part {
            self.read_slowly(host);
        }
    }

    /// Reports bytes that the application can read.
    #[inline(always)]
    fn deliver<S: EventSink>(&mut self, bytes: u64, host: &mut EndpointContext<'_, S>) {
        if bytes > 0 {
            host.sink.delivered(host.now, host.connection, bytes);
            if self.messages.are_awaited() && self.reader.is_none() {
                self.on_messages_read(bytes, host);
            }
        }
    }

    /// Lets a slow application read the data that are due.
    #[cold]
    #[inline(never)]
    fn read_slowly<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
        while let Some(update) = self.read_next(host) {
            self.acknowledge(update, &mut host.reborrow());
        }
    }

    /// Lets a slow application make the next read, if it is due. Returns the ACK that it causes, if any.
    fn read_next<S: EventSink>(
        &mut self,
        host: &mut EndpointContext<'_, S>,
    ) -> Option<Option<Ack>> {
        let unread_bytes = self.receiver.unread_bytes();
        let agenda = &mut host.network.agenda;
        let reader = self.reader.as_mut()?;
        let bytes = reader.read(host.now, unread_bytes, host.connection, agenda)?;
        let update = self.receiver.read(host.now, bytes);
        self.arm_receiver(host.connection, &mut host.network.agenda);
        if self.messages.are_awaited() {
            self.on_messages_read(bytes, host);
        }
        Some(update)
    }

    /// Applies the result of a segment: delivered data, ACKs and window updates.
    #[inline(always)]
    fn take_in<S: EventSink>(
        &mut self,
        arrival: SegmentArrival,
        host: &mut EndpointContext<'_, S>,
    ) {
        let &mut EndpointContext { now, connection, .. } = host;
        self.deliver(arrival.bytes, host);
        self.arm_receiver(connection, &mut host.network.agenda);
        if arrival.early {
            let early = self.receiver.take_immediate_ack();
            self.acknowledge(early, &mut host.reborrow());
        }
        if arrival.answers {
            if self.behaviour.is_some() || self.receiver.has_sack_blocks() {
                let ack = self.receiver.build_ack(now);
                self.acknowledge(Some(ack), &mut host.reborrow());
            } else {
                // Built in place in the queue of the reverse path.
                let ack = self.receiver.build_plain_ack(now);
                host.send_back(Body::Tcp(Segment::Ack(ack)), self.receiver.ecn());
            }
        }
        if arrival.reopens {
            self.send_window_update(&mut host.reborrow());
        }
    }

    /// Handles a SYN at the receiver.
    #[cold]
    #[inline(never)]
    fn on_control_segment<S: EventSink>(
        &mut self,
        segment: &Segment,
        host: &mut EndpointContext<'_, S>,
    ) {
        let Segment::Syn(syn) = segment else { return };
        let mut syn_ack = self.receiver.on_syn(host.now, syn);
        if let Some(behaviour) = &mut self.behaviour {
            behaviour.on_syn(host.now, &mut syn_ack.window);
        }
        if self.part.is_some() {
            host.network.relayed.push(host.connection);
        }
        host.send_back(Body::Tcp(Segment::SynAck(syn_ack)), self.receiver.ecn());
    }

    /// Handles a SYN-ACK at the sender.
    #[cold]
    #[inline(never)]
    fn on_syn_ack<S: EventSink>(&mut self, segment: &Segment, host: &mut EndpointContext<'_, S>) {
        let Segment::SynAck(syn_ack) = segment else {
            debug_assert!(false, "a packet that goes the other way");
            return;
        };
        let now = host.now;
        self.sender.recall(now, host.memory);
        if let Some((ack, ecn)) = self.sender.handshake_ack(now, syn_ack) {
            host.port().send(now, Body::Tcp(Segment::Ack(ack)), ecn);
        }
        self.sender.on_syn_ack(now, syn_ack, &mut host.port());
    }

    /// Sends a window update after the application has read from a full buffer.
    #[cold]
    #[inline(never)]
    fn send_window_update<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
        let update = self.receiver.build_window_update(host.now);
        self.arm_receiver(host.connection, &mut host.network.agenda);
        self.acknowledge(Some(update), host);
    }

    /// Reports delivered messages, or the arrival of data at a proxy.
    #[inline(never)]
    fn on_messages_read<S: EventSink>(&mut self, bytes: u64, host: &mut EndpointContext<'_, S>) {
        if let Some(part) = &mut self.part {
            part.arrived_bytes += bytes;
            host.network.relayed.push(host.connection);
            return;
        }
        let &mut EndpointContext { now, connection, ref mut sink, .. } = host;
        let Self { messages, source, .. } = self;
        messages.deliver(bytes, now, |after| match source.on_message_complete(now) {
            None => sink.response_complete(now, connection, after),
            Some(bitrate_bps) => sink.segment_loaded(now, connection, bitrate_bps),
        });
    }

    /// Handles the acknowledgement of all data written so far.
    #[cold]
    fn on_drained<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) -> FlowStatus {
        // Data acknowledged by a proxy has not yet reached the flow's receiver.
        if self.part.is_some() {
            return FlowStatus::Open;
        }
        self.finish(host)
    }

    /// Handles the arrival of all written data at the flow's receiver.
    #[cold]
    fn finish<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) -> FlowStatus {
        if self.cut {
            self.sender.close(host.now, host.memory);
            return FlowStatus::Open;
        }
        if host.on_application_drained(&mut self.source) {
            return FlowStatus::Open;
        }
        self.sender.close(host.now, host.memory);
        FlowStatus::Complete
    }
}

impl Endpoints for TcpConnection {
    type Message = Segment;

    #[cold]
    fn run_application<S: EventSink>(&mut self, stop: Time, host: &mut EndpointContext<'_, S>) {
        let now = host.now;
        let Self { source, messages, part, .. } = self;
        let messages = part.as_mut().map_or(messages, |part| &mut part.messages);
        let Some(action) = host.application_acts(source, messages, stop) else {
            return;
        };
        if let Some(part) = &mut self.part {
            part.is_completion_reported = false;
        }
        self.with_sender(host, |sender, port| {
            apply(action, sender, now, port);
            sender.open(now, port);
        });
    }

    fn stop(&mut self) {
        self.cut |= self.sender.withdraw();
    }

    #[inline]
    fn receive<S: EventSink>(
        &mut self,
        segment: &Segment,
        wire_bytes: u32,
        ecn: Ecn,
        part: bool,
        host: &mut EndpointContext<'_, S>,
    ) {
        let now = host.now;
        let Segment::Data(data) = segment else {
            return self.on_control_segment(segment, &mut host.reborrow());
        };
        host.received(wire_bytes, &data.trip);
        if let Some(tunnel) = self.part.as_mut().and_then(|part| part.tunnel.as_mut()) {
            tunnel.note_segment(&data.trip);
        }
        if self.behaviour.is_some() {
            return self.receive_with_behaviour(data, ecn, part, &mut host.reborrow());
        }
        let arrival = if part {
            self.receiver.on_gro_segment(now, data, ecn)
        } else {
            self.receiver.on_data(now, data, ecn)
        };
        self.take_in(arrival, host);
        if self.reader.is_some() && !part {
            self.read_slowly(host);
        }
    }

    #[inline]
    fn receive_return<S: EventSink>(
        &mut self,
        segment: &Segment,
        host: &mut EndpointContext<'_, S>,
    ) -> FlowStatus {
        let now = host.now;
        let drained_before = self.sender.is_drained();
        if let Segment::Ack(ack) = segment {
            if let Some(done) = self.sender.on_ack(now, ack, &mut host.port()) {
                host.sink.acked(now, host.connection, &row_of(&done));
            }
        } else {
            self.on_syn_ack(segment, &mut host.reborrow());
        }
        self.arm_sender(host.connection, &mut host.network.agenda);
        if self.part.is_some() {
            host.network.relayed.push(host.connection);
        }
        if self.sender.is_drained() && !drained_before {
            self.on_drained(&mut host.reborrow())
        } else {
            FlowStatus::Open
        }
    }

    #[inline]
    fn on_deadline<S: EventSink>(&mut self, deadline: Deadline, host: &mut EndpointContext<'_, S>) {
        let now = host.now;
        let timers = &mut self.timers;
        match deadline {
            Deadline::Retransmission if timers.retransmission.expires(now) => {
                self.with_sender(host, |sender, port| sender.on_timer(now, port));
            }
            Deadline::Pacing if timers.pacing.expires(now) => {
                self.with_sender(host, |sender, port| sender.on_pacing_timer(now, port));
            }
            Deadline::Wakeup if timers.wakeup.expires(now) => {
                self.with_sender(host, |sender, port| sender.on_wakeup(now, port));
            }
            Deadline::Acknowledgement if timers.acknowledgement.expires(now) => {
                let ack = self.receiver.on_timer(now);
                self.arm_receiver(host.connection, &mut host.network.agenda);
                self.acknowledge(ack, host);
            }
            Deadline::Reading if self.reader.as_mut().is_some_and(|reader| reader.expires(now)) => {
                self.read_slowly(host);
            }
            _ => {}
        }
    }

    #[inline]
    fn on_nic_sent<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
        let now = host.now;
        self.with_sender(host, |sender, port| sender.on_host_queue_drained(now, port));
    }

    fn state(&self) -> FlowState {
        let sender = &self.sender;
        let bytes = |packets| sender.bytes_of(packets);
        FlowState {
            srtt: sender.srtt(),
            cwnd_bytes: bytes(sender.cwnd()),
            ssthresh_bytes: sender.controller().ssthresh().map(bytes),
            in_flight_bytes: bytes(sender.in_flight()),
            pacing_rate: sender.visible_pacing_rate(),
            mode: sender.mode(),
        }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        self.sender.controller().observe(observer);
    }
}

/// Applies an action of the application to its sender.
fn apply(action: Action, sender: &mut Sender, now: Time, port: &mut impl SegmentSink) {
    match action {
        Action::Write(bytes) | Action::Append { bytes, .. } => {
            sender.supply(now, Some(bytes), port);
        }
        Action::WriteForever => sender.supply(now, None, port),
        Action::Pause => sender.stop_writing(),
        Action::Finish | Action::Wait | Action::Nothing => {}
    }
}

/// Returns the recorded values of an ACK.
#[inline]
const fn row_of(done: &AckOutcome) -> AckEvent {
    AckEvent {
        rtt: done.rtt,
        cwnd_bytes: done.cwnd_bytes,
        in_flight_bytes: done.in_flight_bytes,
        acked_bytes: done.acked_bytes,
        lost_packets: done.lost_packets,
    }
}
