//! A TCP connection whose both ends send data: two flows share it, each with the data of one
//! direction.
//!
//! Every packet of an end belongs to the flow whose data that end sends, also its ACKs without data.
//! Data carry ACKs, and an ACK is sent alone only if no data carried it (RFC 9293 §3.8.6.3).

mod requests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jostle_congestion::{QuickStartRate, StateObserver};
use jostle_link::Ecn;
use jostle_metrics::{EventSink, FlowState};
use jostle_tcp::{
    Ack, AckTag, DataWithAck, Receiver, ReceiverBehaviour, Segment, SegmentArrival, SegmentSink,
    Sender, SynAck,
};
use jostle_units::{ConnectionId, SendLimit, Time};

use super::{TcpConnection, apply, row_of};
use crate::event_queue::Deadline;
use crate::packet::Body;
use crate::sender_port::SenderPort;
use crate::transport::{EndpointContext, Endpoints, FlowStatus};
use requests::Requests;

pub(crate) use requests::CompletedMessages;

/// The flow whose sender opens the connection, and the flow in the opposite direction.
const OPENING: usize = 0;
const ACCEPTING: usize = 1;

/// Returns the opposite direction.
const fn opposite(direction: usize) -> usize {
    1 - direction
}

/// Both directions of a connection.
struct Directions {
    /// Sender, receiver and application of the data of each direction. The sender of one and the
    /// receiver of the other are one end.
    connections: [TcpConnection; 2],
    ids: [ConnectionId; 2],
    /// Requests of a browser, which the opening end sends, if there is one.
    requests: Option<Requests>,
    /// Rate that the routers granted to the SYN-ACK of a server (RFC 4782).
    granted_rate: QuickStartRate,
}

/// The share of a flow in a connection.
pub(crate) struct SharedConnection {
    directions: Arc<Mutex<Directions>>,
    direction: usize,
}

/// The sender of an end, whose segments carry the ACKs of the receiver of the end.
struct PiggybackingPort<'a, S> {
    port: SenderPort<'a, S>,
    receiver: &'a mut Receiver,
    behaviour: Option<&'a mut ReceiverBehaviour>,
    is_measured: bool,
}

impl<S: EventSink> SegmentSink for PiggybackingPort<'_, S> {
    fn transmit(&mut self, now: Time, segment: Segment, ecn: Ecn) {
        let Segment::Data(mut data) = segment else { return self.port.transmit(now, segment, ecn) };
        let mut ack = self.receiver.build_piggybacked_ack(now, data.payload_bytes > 0);
        if let Some(behaviour) = &mut self.behaviour {
            // The other ACKs would be sent without data.
            ack = behaviour.acks_for(ack).last().unwrap_or(ack);
        }
        data.tsecr_ms = ack.tsecr_ms;
        let option_bytes = ack.option_bytes() as u8;
        if self.is_measured && option_bytes > 0 {
            self.port.sink.options_sent(now, self.port.connection, option_bytes.into());
        }
        let place = self.port.network.payloads.keep_ack(ack);
        let segment = DataWithAck { data, place, option_bytes, ecn };
        self.port.transmit(now, Segment::DataWithAck(segment), ecn);
    }

    fn host_queue_bytes(&self) -> u64 {
        self.port.host_queue_bytes()
    }

    fn note_sent(&mut self, now: Time, packets: u32, wire_bytes: u64, retransmission: bool) {
        if self.is_measured {
            self.port.note_sent(now, packets, wire_bytes, retransmission);
        }
    }

    fn note_limit(&mut self, now: Time, limit: SendLimit) {
        if self.is_measured {
            self.port.note_limit(now, limit);
        }
    }
}

impl SharedConnection {
    /// Joins two connections, of which the first one is opened. Returns the shares of both flows.
    pub fn join(connections: [TcpConnection; 2], ids: [ConnectionId; 2]) -> [Self; 2] {
        Self::of(connections, ids, None)
    }

    fn of(
        connections: [TcpConnection; 2],
        ids: [ConnectionId; 2],
        requests: Option<Requests>,
    ) -> [Self; 2] {
        let granted_rate = QuickStartRate::NONE;
        let directions = Directions { connections, ids, requests, granted_rate };
        let directions = Arc::new(Mutex::new(directions));
        [OPENING, ACCEPTING]
            .map(|direction| Self { directions: Arc::clone(&directions), direction })
    }

    /// Joins the directions of a browser's connection: the client, which opens the connection, sends
    /// requests of `request_bytes`, and the server sends responses. Only the responses are measured.
    /// Returns the shares of the requests and of the responses.
    pub fn of_browser(
        connections: [TcpConnection; 2],
        ids: [ConnectionId; 2],
        request_bytes: u16,
    ) -> [Self; 2] {
        Self::of(connections, ids, Some(Requests::new(request_bytes.into())))
    }

    /// Sends a request of the browser. The first request opens the connection.
    pub fn send_request<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
        let now = host.now;
        let mut directions = self.lock();
        let Some(Requests { bytes, .. }) = directions.requests else { return };
        directions.with_sender(OPENING, host, |sender, port| {
            sender.supply(now, Some(bytes), port);
            sender.open(now, port);
        });
    }

    /// Sends a response of `bytes`.
    pub fn send_response<S: EventSink>(&mut self, bytes: u64, host: &mut EndpointContext<'_, S>) {
        let now = host.now;
        let mut directions = self.lock();
        directions.connections[ACCEPTING].messages.write(bytes, now);
        directions
            .with_sender(ACCEPTING, host, |sender, port| sender.supply(now, Some(bytes), port));
    }

    /// Returns the messages that were completed since the last call.
    pub fn take_completed(&mut self) -> CompletedMessages {
        let mut directions = self.lock();
        let requests = directions.requests.as_mut();
        CompletedMessages {
            requests: requests.map_or(0, |requests| std::mem::take(&mut requests.whole)),
            responses: directions.connections[ACCEPTING].source.take_completed(),
        }
    }

    /// Never waits: one thread runs the simulator.
    fn lock(&self) -> MutexGuard<'_, Directions> {
        self.directions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Directions {
    /// Returns whether the events of a direction are measured. A browser's requests are not.
    const fn is_measured(&self, direction: usize) -> bool {
        direction == ACCEPTING || self.requests.is_none()
    }

    /// Returns the context of a direction.
    fn host<'b, S: EventSink>(
        &self,
        direction: usize,
        host: &'b mut EndpointContext<'_, S>,
    ) -> EndpointContext<'b, S> {
        let mut host = host.reborrow();
        host.connection = self.ids[direction];
        host
    }

    /// Runs `action` on the sender of a direction, then arms the timers of its end.
    fn with_sender<S: EventSink, T>(
        &mut self,
        direction: usize,
        host: &mut EndpointContext<'_, S>,
        action: impl FnOnce(&mut Sender, &mut PiggybackingPort<'_, S>) -> T,
    ) -> T {
        let mut host = self.host(direction, host);
        let is_measured = self.is_measured(direction);
        let [opening, accepting] = &mut self.connections;
        let (own, other) =
            if direction == OPENING { (opening, accepting) } else { (accepting, opening) };
        let mut port = PiggybackingPort {
            port: host.port(),
            receiver: &mut other.receiver,
            behaviour: other.behaviour.as_deref_mut(),
            is_measured,
        };
        let result = action(&mut own.sender, &mut port);
        let agenda = &mut host.network.agenda;
        own.arm_sender(self.ids[direction], agenda);
        other.arm_receiver(self.ids[opposite(direction)], agenda);
        result
    }

    fn run_application<S: EventSink>(
        &mut self,
        direction: usize,
        stop: Time,
        host: &mut EndpointContext<'_, S>,
    ) {
        let now = host.now;
        let mut own = self.host(direction, host);
        let TcpConnection { source, messages, .. } = &mut self.connections[direction];
        let Some(action) = own.application_acts(source, messages, stop) else { return };
        self.with_sender(direction, host, |sender, port| {
            apply(action, sender, now, port);
            if direction == OPENING {
                sender.open(now, port);
            }
        });
    }

    /// Sends an ACK without data, of the data of a direction.
    fn acknowledge<S: EventSink>(
        &mut self,
        direction: usize,
        ack: Option<Ack>,
        host: &mut EndpointContext<'_, S>,
    ) {
        let mut host = self.host(opposite(direction), host);
        let connection = &mut self.connections[direction];
        connection.arm_receiver(self.ids[direction], &mut host.network.agenda);
        let Some(mut ack) = ack else { return };
        ack.tag = AckTag::OfSender;
        let (now, ecn) = (host.now, connection.receiver.ecn());
        let mut send = |ack| host.port().send(now, Body::Tcp(Segment::Ack(ack)), ecn);
        match &mut connection.behaviour {
            None => send(ack),
            Some(behaviour) => behaviour.acks_for(ack).for_each(send),
        }
    }

    fn send_syn_ack<S: EventSink>(&self, mut syn_ack: SynAck, host: &mut EndpointContext<'_, S>) {
        syn_ack.tag = AckTag::OfSender;
        if self.requests.is_some() {
            // A server requests a rate for its responses (RFC 4782 §4.1). The ACK of the SYN-ACK
            // returns it.
            syn_ack.rate = self.connections[ACCEPTING].sender.quick_start_request();
            syn_ack.requests_rate = true;
        }
        let (now, ecn) = (host.now, self.connections[OPENING].receiver.ecn());
        self.host(ACCEPTING, host).port().send(now, Body::Tcp(Segment::SynAck(syn_ack)), ecn);
    }

    /// Handles a packet that the sender of a direction has sent, at the other end.
    fn receive<S: EventSink>(
        &mut self,
        direction: usize,
        segment: &Segment,
        (ecn, is_part): (Ecn, bool),
        host: &mut EndpointContext<'_, S>,
    ) {
        let now = host.now;
        match segment {
            Segment::Syn(syn) => {
                let syn_ack = self.connections[OPENING].receiver.on_syn(now, syn);
                self.connections[ACCEPTING].sender.on_syn(now);
                let agenda = &mut host.network.agenda;
                self.connections[ACCEPTING].arm_sender(self.ids[ACCEPTING], agenda);
                self.send_syn_ack(syn_ack, host);
            }
            Segment::SynAck(syn_ack) => {
                let TcpConnection { receiver, behaviour, .. } = &mut self.connections[ACCEPTING];
                receiver.on_syn_ack(now, syn_ack);
                let mut ack = receiver.build_ack(now);
                if let Some(behaviour) = behaviour {
                    behaviour.on_syn(now, &mut ack.window);
                }
                if syn_ack.requests_rate {
                    self.granted_rate = syn_ack.rate;
                }
                self.acknowledge(ACCEPTING, Some(ack), host);
                self.with_sender(OPENING, host, |sender, port| {
                    sender.on_syn_ack(now, syn_ack, port);
                });
            }
            Segment::Ack(ack) => {
                let TcpConnection { sender, receiver, .. } = &mut self.connections[direction];
                receiver.on_ack_timestamp(now, ack, sender.next_to_send());
                self.process_ack(opposite(direction), ack, false, host);
            }
            Segment::DataWithAck(segment) => {
                let wire_bytes = Segment::DataWithAck(*segment).wire_bytes();
                if self.is_measured(direction) {
                    self.host(direction, host).received(wire_bytes, &segment.data.trip);
                }
                let behaviour = self.connections[direction].behaviour.as_mut();
                let ecn = behaviour.map_or(ecn, |behaviour| {
                    // An optimistic receiver, which would process the data, loads no pages.
                    behaviour.receive_data(now, &segment.data, is_part);
                    behaviour.visible_ecn(ecn)
                });
                match is_part {
                    true => self.receive_gro_segment(direction, segment, ecn, host),
                    false => self.receive_data(direction, segment, ecn, host),
                }
            }
            Segment::Data(_) => debug_assert!(false, "data without an ACK"),
        }
    }

    /// Handles data that the NIC merges with the next segment, which has the same ACK.
    #[cold]
    fn receive_gro_segment<S: EventSink>(
        &mut self,
        direction: usize,
        segment: &DataWithAck,
        ecn: Ecn,
        host: &mut EndpointContext<'_, S>,
    ) {
        let now = host.now;
        host.network.payloads.give_back_ack(segment.place);
        let receiver = &mut self.connections[direction].receiver;
        let arrival = receiver.on_gro_segment(now, &segment.data, ecn);
        self.deliver_and_acknowledge(direction, arrival, host);
    }

    /// Delivers the data of a segment, and sends the ACKs that are due before the ACK in the segment is
    /// processed.
    fn deliver_and_acknowledge<S: EventSink>(
        &mut self,
        direction: usize,
        arrival: SegmentArrival,
        host: &mut EndpointContext<'_, S>,
    ) {
        let now = host.now;
        let receiver = &mut self.connections[direction].receiver;
        let early = if arrival.early { receiver.take_immediate_ack() } else { None };
        let answer = arrival.answers.then(|| receiver.build_ack(now));
        self.deliver(direction, arrival.bytes, host);
        self.acknowledge(direction, early, host);
        self.acknowledge(direction, answer, host);
    }

    /// Handles data with an ACK (`tcp_input.c::tcp_rcv_established`). As long as headers are as
    /// predicted, the data are first. Otherwise the ACK is first, so that what it makes this end
    /// retransmit does not acknowledge the data. New data follow both, and then the decision on a
    /// separate ACK.
    fn receive_data<S: EventSink>(
        &mut self,
        direction: usize,
        segment: &DataWithAck,
        ecn: Ecn,
        host: &mut EndpointContext<'_, S>,
    ) {
        let now = host.now;
        let &DataWithAck { ref data, place, .. } = segment;
        let ack = host.network.payloads.ack(place);
        host.network.payloads.give_back_ack(place);
        let sender = &self.connections[opposite(direction)].sender;
        let receiver = &self.connections[direction].receiver;
        let is_predicted =
            data.payload_bytes > 0 && receiver.predicts(data) && sender.predicts(&ack);
        let has_news = match is_predicted {
            true => ack.number != sender.first_unacked(),
            false => receiver.accepts_ack_of(data),
        };
        if has_news && !is_predicted {
            self.process_ack(opposite(direction), &ack, data.payload_bytes > 0, host);
        }
        let receiver = &mut self.connections[direction].receiver;
        let arrival = receiver.on_data_before_ack(now, data, ecn);
        self.deliver_and_acknowledge(direction, arrival, host);
        if has_news && is_predicted {
            self.process_ack(opposite(direction), &ack, true, host);
        }
        if has_news {
            self.with_sender(opposite(direction), host, |sender, port| {
                sender.write_after_data(now, port);
            });
        }
        let srtt = self.connections[opposite(direction)].sender.srtt();
        let receiver = &mut self.connections[direction].receiver;
        let arrival = receiver.conclude(now, srtt);
        let answer = arrival.answers.then(|| receiver.build_ack(now));
        let update = arrival.reopens.then(|| receiver.build_window_update(now));
        self.acknowledge(direction, answer, host);
        self.acknowledge(direction, update, host);
        self.read_slowly(direction, host);
    }

    /// Reports bytes that the application of a direction can read.
    fn deliver<S: EventSink>(
        &mut self,
        direction: usize,
        bytes: u64,
        host: &mut EndpointContext<'_, S>,
    ) {
        let mut own = self.host(direction, host);
        let is_complete = match &mut self.requests {
            Some(requests) if direction == OPENING => requests.read(bytes),
            requests => {
                self.connections[direction].deliver(bytes, &mut own);
                requests.is_some() && self.connections[direction].source.has_completed()
            }
        };
        if is_complete {
            own.network.relayed.push(self.ids[ACCEPTING]);
        }
    }

    /// Passes an ACK to the sender of a direction.
    fn process_ack<S: EventSink>(
        &mut self,
        direction: usize,
        ack: &Ack,
        has_data: bool,
        host: &mut EndpointContext<'_, S>,
    ) {
        let now = host.now;
        let sender = &self.connections[direction].sender;
        let was_drained = sender.is_drained();
        let awaits_ack = sender.awaits_ack_of_syn();
        let ecn = self.connections[opposite(direction)].receiver.supports_ecn();
        let rate = self.granted_rate;
        let is_measured = self.is_measured(direction);
        let done = self.with_sender(direction, host, |sender, port| {
            if awaits_ack {
                sender.on_ack_of_syn(now, ecn, rate, ack, port);
            }
            match has_data {
                true => sender.on_ack_with_data(now, ack, port),
                false => sender.on_ack(now, ack, port),
            }
        });
        let mut own = self.host(direction, host);
        if let Some(done) = done.filter(|_| is_measured) {
            own.sink.acked(now, own.connection, &row_of(&done));
        }
        let connection = &mut self.connections[direction];
        if connection.sender.is_drained()
            && !(was_drained || awaits_ack)
            && connection.on_drained(&mut own) == FlowStatus::Complete
        {
            // The packet may belong to the flow of the other direction.
            own.network.relayed.push(own.connection);
        }
    }

    /// Lets a slow application of a direction read the data that are due.
    fn read_slowly<S: EventSink>(&mut self, direction: usize, host: &mut EndpointContext<'_, S>) {
        loop {
            let mut own = self.host(direction, host);
            let Some(update) = self.connections[direction].read_next(&mut own) else { return };
            self.acknowledge(direction, update, host);
        }
    }

    fn on_deadline<S: EventSink>(
        &mut self,
        direction: usize,
        deadline: Deadline,
        host: &mut EndpointContext<'_, S>,
    ) {
        let now = host.now;
        let TcpConnection { timers, reader, sender, receiver, .. } =
            &mut self.connections[direction];
        match deadline {
            Deadline::Retransmission if timers.retransmission.expires(now) => {
                if sender.awaits_ack_of_syn() {
                    return self.on_syn_ack_timer(host);
                }
                self.with_sender(direction, host, |sender, port| sender.on_timer(now, port));
            }
            Deadline::Pacing if timers.pacing.expires(now) => {
                self.with_sender(direction, host, |sender, port| sender.on_pacing_timer(now, port));
            }
            Deadline::Wakeup if timers.wakeup.expires(now) => {
                self.with_sender(direction, host, |sender, port| sender.on_wakeup(now, port));
            }
            Deadline::Acknowledgement if timers.acknowledgement.expires(now) => {
                let ack = receiver.on_timer(now);
                self.acknowledge(direction, ack, host);
            }
            Deadline::Reading if reader.as_mut().is_some_and(|reader| reader.expires(now)) => {
                self.read_slowly(direction, host);
            }
            _ => {}
        }
    }

    /// Retransmits the SYN-ACK if its timer has expired.
    #[cold]
    fn on_syn_ack_timer<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
        let is_due = self.connections[ACCEPTING].sender.on_syn_ack_timer(host.now);
        let agenda = &mut host.network.agenda;
        self.connections[ACCEPTING].arm_sender(self.ids[ACCEPTING], agenda);
        if is_due {
            let syn_ack = self.connections[OPENING].receiver.rebuild_syn_ack(host.now);
            self.send_syn_ack(syn_ack, host);
        }
    }
}

impl Endpoints for SharedConnection {
    type Message = Segment;

    #[cold]
    fn run_application<S: EventSink>(&mut self, stop: Time, host: &mut EndpointContext<'_, S>) {
        self.lock().run_application(self.direction, stop, host);
    }

    fn stop(&mut self) {
        self.lock().connections[self.direction].stop();
    }

    /// Handles a packet of the end that opens the connection.
    fn receive<S: EventSink>(
        &mut self,
        segment: &Segment,
        _wire_bytes: u32,
        ecn: Ecn,
        part: bool,
        host: &mut EndpointContext<'_, S>,
    ) {
        self.lock().receive(self.direction, segment, (ecn, part), host);
    }

    /// Handles a packet of the end that accepts the connection.
    fn receive_return<S: EventSink>(
        &mut self,
        segment: &Segment,
        host: &mut EndpointContext<'_, S>,
    ) -> FlowStatus {
        let ecn = match segment {
            Segment::DataWithAck(segment) => segment.ecn,
            _ => Ecn::NotCapable,
        };
        self.lock().receive(self.direction, segment, (ecn, false), host);
        FlowStatus::Open
    }

    fn on_deadline<S: EventSink>(&mut self, deadline: Deadline, host: &mut EndpointContext<'_, S>) {
        self.lock().on_deadline(self.direction, deadline, host);
    }

    fn state(&self) -> FlowState {
        self.lock().connections[self.direction].state()
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        self.lock().connections[self.direction].observe(observer);
    }
}
