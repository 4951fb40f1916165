//! A flow over a QUIC connection: its two ends, the application, the events of their deadlines.

use jostle_control::Observer as Internals;
use jostle_path::Ecn;
use jostle_quic::{Acknowledged, End, Error, Observer, Transmission};
use jostle_record::{AckRow, End as Side, FlowState, Sink};
use jostle_tcp::Egress;
use jostle_units::{Span, Time};

use crate::engine::{Deadline, Event, Timer};
use crate::host::{Host, Progress, Transport};
use crate::messages::Messages;
use crate::packet::{Body, QuicDatagram, frame_bytes};
use crate::source::{Action, Source};

/// Both ends of a QUIC flow, and its application.
pub struct QuicEnds {
    /// Sends data.
    pub client: End,
    /// Takes them.
    pub server: End,
    /// What the client sends, and when.
    pub source: Source,
    /// The ends' handshake is one of 0-RTT.
    pub early: bool,
}

/// Both ends of a QUIC connection. The client sends data.
pub(crate) struct QuicConnection {
    client: End,
    server: End,
    client_timer: Timer,
    server_timer: Timer,
    source: Source,
    /// What an end gives its host at once.
    buffer: Vec<u8>,
    /// What an end has written down, kept for its memory.
    log: String,
    /// The host has been asked what it remembers of the peer.
    recalled: bool,
    /// Data may leave with the first packet.
    early: bool,
    /// The flow was stopped before everything it had to send was sent.
    cut: bool,
    closed: bool,
    /// Those of which it is measured how long they take.
    messages: Messages,
    failure: Option<Error>,
}

/// Tells a sink what an end tells.
struct Told<'a, S> {
    sink: &'a mut S,
    flow: u32,
}

impl<S: Sink> Observer for Told<'_, S> {
    fn acknowledged(&mut self, now: Time, ack: &Acknowledged) {
        let row = AckRow {
            rtt: ack.rtt,
            cwnd_bytes: ack.cwnd_bytes,
            in_flight_bytes: ack.in_flight_bytes,
            acked_bytes: ack.acked_bytes,
            lost_packets: ack.lost_packets,
        };
        self.sink.acked(now, self.flow, &row);
    }
}

impl QuicConnection {
    pub fn new(ends: QuicEnds) -> Self {
        let QuicEnds { client, server, source, early } = ends;
        Self {
            client,
            server,
            client_timer: Timer::default(),
            server_timer: Timer::default(),
            source,
            buffer: Vec::new(),
            log: String::new(),
            recalled: false,
            early,
            cut: false,
            closed: false,
            messages: Messages::default(),
            failure: None,
        }
    }

    /// Once for each connection, before its controller is told that it is open.
    fn recall<S: Sink>(&mut self, host: &mut Host<'_, S>) {
        if !self.recalled {
            self.recalled = true;
            self.client.recall(host.now, host.memory);
        }
    }

    /// The client sends what it has to send now, and is called again when it next has something to do.
    fn flush_client<S: Sink>(&mut self, host: &mut Host<'_, S>) {
        let now = host.now;
        while let Some(sent) = self.client.transmit(now, &mut self.buffer) {
            self.note_sent(&sent, host);
            for payload in sent.datagrams(&self.buffer) {
                let body =
                    Body::Quic(QuicDatagram::new(&mut host.network.payloads, payload, sent.ecn));
                host.port().send(now, body, sent.ecn);
            }
        }
        let at = soonest(self.client.next_time(), now);
        self.client_timer.arm(at, &mut host.network.agenda, Event::Retransmission(host.flow));
        self.tell_log(Side::Sender, host);
        self.note_failure();
    }

    /// Passes on what an end has written down since it was asked last.
    fn tell_log<S: Sink>(&mut self, side: Side, host: &mut Host<'_, S>) {
        if !host.sink.wants_segments() {
            return;
        }
        let end = if side == Side::Sender { &mut self.client } else { &mut self.server };
        self.log.clear();
        end.take_log(&mut self.log);
        if !self.log.is_empty() {
            host.sink.logged(host.flow, side, &self.log);
        }
    }

    /// Tells of datagrams that are about to leave. As many count as sent again as are needed for the
    /// bytes that were sent before: the frames of one packet are found in others when they are
    /// (RFC 9000 §13.3).
    fn note_sent<S: Sink>(&self, sent: &Transmission, host: &mut Host<'_, S>) {
        let datagrams = sent.datagrams(&self.buffer);
        let packets = datagrams.len() as u32;
        let full_bytes = (sent.datagram_bytes as u32).max(1);
        let again = sent.repeated_bytes.div_ceil(full_bytes).min(packets);
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

    /// The same of the server.
    fn flush_server<S: Sink>(&mut self, host: &mut Host<'_, S>) {
        let now = host.now;
        while let Some(sent) = self.server.transmit(now, &mut self.buffer) {
            for payload in sent.datagrams(&self.buffer) {
                let body = Body::QuicBack(QuicDatagram::new(
                    &mut host.network.payloads,
                    payload,
                    sent.ecn,
                ));
                host.send_back(body, sent.ecn);
            }
        }
        let at = soonest(self.server.next_time(), now);
        self.server_timer.arm(at, &mut host.network.agenda, Event::Acknowledgement(host.flow));
        self.tell_log(Side::Receiver, host);
        self.note_failure();
    }

    /// A connection that was closed is over, whatever its ends say of that: with 0-RTT the server may
    /// hear of it before its handshake is complete (RFC 9000 §10.2.3).
    fn note_failure(&mut self) {
        let error = self.client.take_error().or_else(|| self.server.take_error());
        if let Some(error) = error.filter(|_| !self.closed) {
            self.failure.get_or_insert(error);
        }
    }

    /// So many bytes of messages reached the application.
    fn answer<S: Sink>(&mut self, bytes: u64, host: &mut Host<'_, S>) {
        let &mut Host { now, flow, ref mut sink, .. } = host;
        let Self { messages, source, .. } = self;
        messages.deliver(bytes, now, |after| match source.on_whole(now) {
            None => sink.responded(now, flow, after),
            Some(bitrate_bps) => sink.segment_loaded(now, flow, bitrate_bps),
        });
    }

    /// The connection is over: the host remembers what it found out, and the peer is told.
    fn close<S: Sink>(&mut self, host: &mut Host<'_, S>) {
        if self.closed {
            return;
        }
        self.closed = true;
        self.client.remember(host.now, host.memory);
        self.client.close(host.now);
        self.flush_client(host);
    }

    /// Everything written so far is acknowledged.
    fn on_drained<S: Sink>(&mut self, host: &mut Host<'_, S>) -> Progress {
        if self.cut {
            self.close(host);
            return Progress::Open;
        }
        if host.application_goes_on(&mut self.source) {
            return Progress::Open;
        }
        self.close(host);
        Progress::Complete
    }
}

/// When to look at an end again that wants to be called at `next`: time goes on in between.
fn soonest(next: Time, now: Time) -> Time {
    next.max(now + Span::from_ns(1))
}

impl Transport for QuicConnection {
    type Message = QuicDatagram;

    fn act<S: Sink>(&mut self, stop: Time, host: &mut Host<'_, S>) {
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

    /// Never a part of the loop: what it works out would be worked out for every packet of TCP.
    #[inline(never)]
    fn receive<S: Sink>(
        &mut self,
        datagram: &QuicDatagram,
        wire_bytes: u32,
        ecn: Ecn,
        _part: bool,
        host: &mut Host<'_, S>,
    ) {
        host.received(wire_bytes, &datagram.trip);
        let &mut Host { now, flow, .. } = host;
        let payload = host.network.payloads.get(datagram.place);
        self.server.receive(now, ecn, payload, &mut ());
        host.network.payloads.give_back(datagram.place);
        if host.sink.wants_segments()
            && let Some(secrets) = self.server.take_secrets()
        {
            host.sink.secrets(flow, &secrets);
        }
        let bytes = self.server.take_delivered();
        if bytes > 0 {
            host.sink.delivered(now, flow, bytes);
            if self.messages.are_awaited() {
                self.answer(bytes, host);
            }
        }
        self.flush_server(host);
    }

    #[inline(never)]
    fn receive_return<S: Sink>(
        &mut self,
        datagram: &QuicDatagram,
        host: &mut Host<'_, S>,
    ) -> Progress {
        self.recall(host);
        let drained_before = self.client.is_drained();
        let &mut Host { now, flow, .. } = host;
        let payload = host.network.payloads.get(datagram.place);
        let mut told = Told { sink: &mut *host.sink, flow };
        self.client.receive(now, datagram.ecn, payload, &mut told);
        host.network.payloads.give_back(datagram.place);
        self.flush_client(host);
        if self.client.is_drained() && !drained_before {
            self.on_drained(host)
        } else {
            Progress::Open
        }
    }

    #[inline(never)]
    fn on_deadline<S: Sink>(&mut self, deadline: Deadline, host: &mut Host<'_, S>) {
        let now = host.now;
        match deadline {
            Deadline::Retransmission if self.client_timer.expires(now) => {
                if self.client.next_time() <= now {
                    let mut told = Told { sink: &mut *host.sink, flow: host.flow };
                    self.client.on_time(now, &mut told);
                }
                self.flush_client(host);
            }
            Deadline::Acknowledgement if self.server_timer.expires(now) => {
                if self.server.next_time() <= now {
                    self.server.on_time(now, &mut ());
                }
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
