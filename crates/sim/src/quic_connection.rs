//! A flow over a QUIC connection: both endpoints, the application and timer events.

use jostle_congestion::StateObserver as Internals;
use jostle_link::Ecn;
use jostle_metrics::{AckEvent, EndpointRole as Side, EventSink, FlowState};
use jostle_quic::{AckOutcome, Error, QuicEndpoint, SenderObserver, Transmission};
use jostle_tcp::SegmentSink;
use jostle_units::{ConnectionId, SendLimit, Span, Time};

use crate::event_queue::{Deadline, Event, Timer};
use crate::packet::{Body, QuicDatagram, frame_bytes};
use crate::payload_pool::CarriedPacket;
use crate::slow_reader::SlowReader;
use crate::transport::{EndpointContext, Endpoints, FlowStatus};
use crate::tunnel::TunnelDatagrams;
use jostle_traffic::MessageTracker;
use jostle_traffic::{Action, ApplicationInstance};

/// Both endpoints of a QUIC flow, and its application.
pub struct QuicEndpoints {
    /// Endpoint that sends data.
    pub client: QuicEndpoint,
    /// Endpoint that receives data.
    pub server: QuicEndpoint,
    /// Application at the client.
    pub source: ApplicationInstance,
    /// Whether the handshake uses 0-RTT.
    pub early: bool,
}

/// Both endpoints of a QUIC connection. The client sends data.
pub(crate) struct QuicConnection {
    client: QuicEndpoint,
    server: QuicEndpoint,
    client_timer: Timer,
    server_timer: Timer,
    /// Slow application at the server, if any.
    reader: Option<SlowReader>,
    source: ApplicationInstance,
    /// Reusable buffer for the datagrams of one `transmit`.
    buffer: Vec<u8>,
    /// Reusable buffer for qlog records.
    log: String,
    /// Whether the peer cache was queried.
    recalled: bool,
    /// Whether data may be sent with the first packet (0-RTT).
    early: bool,
    /// Whether the flow was stopped before all of its data was sent.
    cut: bool,
    closed: bool,
    /// Limit of the client, as reported.
    limit: Option<SendLimit>,
    /// Messages whose completion time is measured.
    messages: MessageTracker,
    failure: Option<Error>,
    /// Entrance of the tunnel, if the connection is one.
    tunnel: Option<TunnelDatagrams>,
    /// Packet of the tunnel in the datagram that the client has not sent yet.
    unsent: Option<CarriedPacket>,
}

/// Forwards the events of an endpoint to a sink.
struct SinkObserver<'a, S> {
    sink: &'a mut S,
    connection: ConnectionId,
}

impl<S: EventSink> SenderObserver for SinkObserver<'_, S> {
    fn on_ack(&mut self, now: Time, ack: &AckOutcome) {
        let row = AckEvent {
            rtt: ack.rtt,
            cwnd_bytes: ack.cwnd_bytes,
            in_flight_bytes: ack.in_flight_bytes,
            acked_bytes: ack.acked_bytes,
            lost_packets: ack.lost_packets,
        };
        self.sink.acked(now, self.connection, &row);
    }
}

impl QuicConnection {
    pub fn new(ends: QuicEndpoints, reader: Option<SlowReader>) -> Self {
        let QuicEndpoints { client, server, source, early } = ends;
        Self {
            client,
            server,
            client_timer: Timer::default(),
            server_timer: Timer::default(),
            reader,
            source,
            buffer: Vec::new(),
            log: String::new(),
            recalled: false,
            early,
            cut: false,
            closed: false,
            limit: None,
            messages: MessageTracker::default(),
            failure: None,
            tunnel: None,
            unsent: None,
        }
    }

    /// Makes the connection a tunnel, whose datagrams (RFC 9221) carry packets.
    pub fn set_tunnel(&mut self, tunnel: TunnelDatagrams) {
        self.tunnel = Some(tunnel);
    }

    /// Sends the packets that wait at the entrance of the tunnel. One packet at a time is passed to
    /// the stack, so that the others wait in the queue of the entrance when congestion control or
    /// pacing delays it (RFC 9221 §5.4: "MUST delay sending", or drop).
    pub fn carry_packets<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
        while self.unsent.is_none()
            && self.client.is_established()
            && let Some(tunnel) = &self.tunnel
        {
            tunnel.begin_taking(host);
            let Some((carried, payload_bytes)) = tunnel.take_next(host) else { return };
            self.unsent = Some(carried);
            if let Err(error) = self.client.send_datagram(usize::from(payload_bytes)) {
                self.failure.get_or_insert(error);
                return;
            }
            self.send_datagrams(host);
        }
    }

    /// Queries the peer cache once per connection, before the controller is notified of the start.
    fn recall<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
        if !self.recalled {
            self.recalled = true;
            self.client.recall(host.now, host.memory);
        }
    }

    /// Sends pending datagrams of the client and of the tunnel, and arms the client's timer.
    fn flush_client<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
        self.send_datagrams(host);
        if self.tunnel.is_some() {
            self.carry_packets(host);
        }
    }

    fn send_datagrams<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
        let now = host.now;
        while let Some(sent) = self.client.transmit(now, &mut self.buffer) {
            self.note_sent(&sent, host);
            for payload in sent.datagrams(&self.buffer) {
                let datagram = host.network.payloads.datagram(payload, sent.ecn);
                if let Some(carried) = self.unsent.take_if(|_| !self.client.has_unsent_datagram()) {
                    host.network.payloads.carry(datagram.place, carried);
                }
                host.port().send(now, Body::Quic(datagram), sent.ecn);
            }
        }
        let limit = self.client.send_limit();
        if let Some(limit) = limit.filter(|_| limit != self.limit) {
            host.sink.send_limit(now, host.connection, limit);
        }
        self.limit = limit;
        let at = soonest(self.client.next_time(), now);
        self.client_timer.arm(at, &mut host.network.agenda, Event::Retransmission(host.connection));
        self.forward_qlog(Side::Sender, host);
        self.note_failure();
    }

    /// Forwards new qlog records of an endpoint.
    fn forward_qlog<S: EventSink>(&mut self, side: Side, host: &mut EndpointContext<'_, S>) {
        if !host.sink.wants_segments() {
            return;
        }
        let end = if side == Side::Sender { &mut self.client } else { &mut self.server };
        self.log.clear();
        end.take_log(&mut self.log);
        if !self.log.is_empty() {
            host.sink.qlog_records(host.connection, side, &self.log);
        }
    }

    /// Reports datagrams that are about to be sent. The number of retransmitted datagrams is
    /// estimated from the retransmitted bytes, because the frames of a lost packet may be sent in
    /// several new packets (RFC 9000 §13.3).
    fn note_sent<S: EventSink>(&self, sent: &Transmission, host: &mut EndpointContext<'_, S>) {
        let datagrams = sent.datagrams(&self.buffer);
        let packets = datagrams.len() as u32;
        let full_bytes = (sent.datagram_bytes as u32).max(1);
        let again = sent.retransmitted_bytes.div_ceil(full_bytes).min(packets);
        let (now, mut wire_bytes) = (host.now, [0u64; 2]);
        for (payload, left) in datagrams.zip((1..=packets).rev()) {
            wire_bytes[usize::from(left <= again)] += u64::from(frame_bytes(payload.len() as u16));
        }
        let mut port = host.port();
        if again < packets {
            port.note_sent(now, packets - again, wire_bytes[0], false);
        }
        if again > 0 {
            port.note_sent(now, again, wire_bytes[1], true);
        }
    }

    /// Sends the server's pending datagrams and arms its timer.
    fn flush_server<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
        let now = host.now;
        while let Some(sent) = self.server.transmit(now, &mut self.buffer) {
            for payload in sent.datagrams(&self.buffer) {
                let body = Body::QuicBack(host.network.payloads.datagram(payload, sent.ecn));
                host.send_back(body, sent.ecn);
            }
        }
        let at = soonest(self.server.next_time(), now);
        self.server_timer.arm(
            at,
            &mut host.network.agenda,
            Event::Acknowledgement(host.connection),
        );
        self.forward_qlog(Side::Receiver, host);
        self.note_failure();
    }

    /// Records an error of an endpoint. Errors after the close are ignored: with 0-RTT, the server
    /// may receive the close before the handshake is complete (RFC 9000 §10.2.3).
    fn note_failure(&mut self) {
        let error = self.client.take_error().or_else(|| self.server.take_error());
        if let Some(error) = error.filter(|_| !self.closed) {
            self.failure.get_or_insert(error);
        }
    }

    /// Reports the messages that are completed by `bytes` more delivered bytes.
    fn deliver_messages<S: EventSink>(&mut self, bytes: u64, host: &mut EndpointContext<'_, S>) {
        let &mut EndpointContext { now, connection, ref mut sink, .. } = host;
        let Self { messages, source, .. } = self;
        messages.deliver(bytes, now, |after| match source.on_message_complete(now) {
            None => sink.response_complete(now, connection, after),
            Some(bitrate_bps) => sink.segment_loaded(now, connection, bitrate_bps),
        });
    }

    /// Lets a slow application read the data that are due.
    fn read_slowly<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
        while let Some(reader) = &mut self.reader {
            let unread_bytes = self.server.unread_bytes();
            let agenda = &mut host.network.agenda;
            let Some(bytes) = reader.read(host.now, unread_bytes, host.connection, agenda) else {
                return;
            };
            self.server.read(bytes);
            if self.messages.are_awaited() {
                self.deliver_messages(bytes, host);
            }
        }
    }

    /// Lets a packet leave the tunnel, unless the server has discarded its datagram: a duplicate, or
    /// a datagram before the end of the handshake.
    fn leave_tunnel<S: EventSink>(
        &mut self,
        carried: &CarriedPacket,
        host: &mut EndpointContext<'_, S>,
    ) {
        let bytes = self.server.take_datagram_bytes();
        if bytes == 0 {
            return host.network.lose(host.now, carried, host.sink);
        }
        host.sink.delivered(host.now, host.connection, bytes);
        host.network.deliver(host.now, *carried, host.sink);
    }

    /// Closes the connection, and stores its path properties in the peer cache.
    fn close<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
        if self.closed {
            return;
        }
        self.closed = true;
        self.client.remember(host.now, host.memory);
        self.client.close(host.now);
        self.flush_client(host);
    }

    /// Handles the acknowledgement of all data written so far.
    fn on_drained<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) -> FlowStatus {
        if self.cut {
            self.close(host);
            return FlowStatus::Open;
        }
        if host.on_application_drained(&mut self.source) {
            return FlowStatus::Open;
        }
        self.close(host);
        FlowStatus::Complete
    }
}

/// Returns the timer for an endpoint that wants to be called at `next`. At least 1 ns later, so
/// that time advances.
fn soonest(next: Time, now: Time) -> Time {
    next.max(now + Span::from_ns(1))
}

impl Endpoints for QuicConnection {
    type Message = QuicDatagram;

    fn run_application<S: EventSink>(&mut self, stop: Time, host: &mut EndpointContext<'_, S>) {
        let now = host.now;
        let Some(action) = host.application_acts(&mut self.source, &mut self.messages, stop) else {
            return;
        };
        if self.early {
            self.recall(host);
        }
        match action {
            Action::Write(bytes) => self.client.supply(Some(bytes)),
            Action::Append { bytes, last } => self.client.append(bytes, last),
            Action::WriteForever => self.client.supply(None),
            Action::Pause | Action::Finish | Action::Wait => {
                self.client.withdraw();
            }
            Action::Nothing => {}
        }
        if let Err(error) = self.client.open(now) {
            self.failure.get_or_insert(error);
        }
        self.flush_client(host);
    }

    fn stop(&mut self) {
        self.cut |= self.client.withdraw();
    }

    /// Not inlined, to keep its code out of the path of TCP packets.
    #[inline(never)]
    fn receive<S: EventSink>(
        &mut self,
        datagram: &QuicDatagram,
        wire_bytes: u32,
        ecn: Ecn,
        _part: bool,
        host: &mut EndpointContext<'_, S>,
    ) {
        host.received(wire_bytes, &datagram.trip);
        let &mut EndpointContext { now, connection, .. } = host;
        let payload = host.network.payloads.get(datagram.place);
        self.server.receive(now, ecn, payload, &mut ());
        if let Some(mut carried) = host.network.payloads.release(datagram.place) {
            carried.wait(datagram.trip.queueing_delay());
            self.leave_tunnel(&carried, host);
        }
        if host.sink.wants_segments()
            && let Some(secrets) = self.server.take_secrets()
        {
            host.sink.secrets(connection, &secrets);
        }
        let bytes = self.server.take_delivered();
        if bytes > 0 {
            host.sink.delivered(now, connection, bytes);
            if self.messages.are_awaited() && self.reader.is_none() {
                self.deliver_messages(bytes, host);
            }
            self.read_slowly(host);
        }
        self.flush_server(host);
    }

    #[inline(never)]
    fn receive_return<S: EventSink>(
        &mut self,
        datagram: &QuicDatagram,
        host: &mut EndpointContext<'_, S>,
    ) -> FlowStatus {
        self.recall(host);
        let drained_before = self.client.is_drained();
        let &mut EndpointContext { now, connection, .. } = host;
        let payload = host.network.payloads.get(datagram.place);
        let mut observer = SinkObserver { sink: &mut *host.sink, connection };
        self.client.receive(now, datagram.ecn, payload, &mut observer);
        host.network.payloads.give_back(datagram.place);
        self.flush_client(host);
        if self.client.is_drained() && !drained_before {
            self.on_drained(host)
        } else {
            FlowStatus::Open
        }
    }

    #[inline(never)]
    fn on_deadline<S: EventSink>(&mut self, deadline: Deadline, host: &mut EndpointContext<'_, S>) {
        let now = host.now;
        match deadline {
            Deadline::Retransmission if self.client_timer.expires(now) => {
                if self.client.next_time() <= now {
                    let mut observer =
                        SinkObserver { sink: &mut *host.sink, connection: host.connection };
                    self.client.on_time(now, &mut observer);
                }
                self.flush_client(host);
            }
            Deadline::Acknowledgement if self.server_timer.expires(now) => {
                if self.server.next_time() <= now {
                    self.server.on_time(now, &mut ());
                }
                self.flush_server(host);
            }
            Deadline::Reading if self.reader.as_mut().is_some_and(|reader| reader.expires(now)) => {
                self.read_slowly(host);
                self.flush_server(host);
            }
            _ => {}
        }
    }

    fn state(&self) -> FlowState {
        let Some(state) = self.client.state() else {
            debug_assert!(false, "the client is the one that sends");
            return FlowState {
                srtt: Span::ZERO,
                cwnd_bytes: 0,
                ssthresh_bytes: None,
                in_flight_bytes: 0,
                pacing_rate: None,
                mode: "closed",
            };
        };
        FlowState {
            srtt: state.srtt,
            cwnd_bytes: state.cwnd_bytes,
            ssthresh_bytes: state.ssthresh_bytes,
            in_flight_bytes: state.in_flight_bytes,
            pacing_rate: state.pacing_rate,
            mode: state.mode,
        }
    }

    fn observe(&self, observer: &mut dyn Internals) {
        self.client.observe(observer);
    }

    fn failure(&self) -> Option<String> {
        self.failure.as_ref().map(ToString::to_string)
    }
}
