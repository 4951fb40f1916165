//! A flow over a TCP connection: its two endpoints, the application, the events of their deadlines.

use jostle_control::Observer;
use jostle_path::Ecn;
use jostle_record::{AckRow, FlowState, Sink};
use jostle_tcp::{Ack, Acknowledged, Deadlines, Receiver, Segment, Sender};
use jostle_units::Time;

use crate::engine::{Agenda, Deadline, Event, Timer};
use crate::host::{Host, Progress, Transport};
use crate::messages::Messages;
use crate::network::Port;
use crate::packet::Body;
use crate::source::{Action, Source};

/// Both endpoints of a TCP connection.
pub(crate) struct Connection {
    sender: Sender,
    receiver: Receiver,
    timers: Timers,
    source: Source,
    /// The flow was stopped before everything it had to send was sent.
    cut: bool,
    /// Those of which it is measured how long they take.
    messages: Messages,
}

/// The events of the deadlines.
#[derive(Default)]
struct Timers {
    retransmission: Timer,
    pacing: Timer,
    wakeup: Timer,
    acknowledgement: Timer,
}

impl Connection {
    pub fn new(sender: Sender, receiver: Receiver, source: Source) -> Self {
        Self {
            sender,
            receiver,
            timers: Timers::default(),
            source,
            cut: false,
            messages: Messages::default(),
        }
    }

    /// Schedules whatever deadline of the sender moved forward.
    #[inline]
    fn arm_sender(&mut self, flow: u32, agenda: &mut Agenda) {
        let &Deadlines { retransmission, pacing, wakeup } = self.sender.deadlines();
        self.timers.retransmission.arm(retransmission, agenda, Event::Retransmission(flow));
        self.timers.pacing.arm(pacing, agenda, Event::Pacing(flow));
        self.timers.wakeup.arm(wakeup, agenda, Event::Wakeup(flow));
    }

    /// Schedules the receiver's deadline if it moved forward.
    #[inline]
    fn arm_receiver(&mut self, flow: u32, agenda: &mut Agenda) {
        let event = Event::Acknowledgement(flow);
        self.timers.acknowledgement.arm(self.receiver.deadline(), agenda, event);
    }

    /// Lets the sender do something, then schedules its deadlines.
    #[inline]
    fn with_sender<S: Sink>(
        &mut self,
        host: &mut Host<'_, S>,
        action: impl FnOnce(&mut Sender, &mut Port<'_, S>),
    ) {
        action(&mut self.sender, &mut host.port());
        self.arm_sender(host.flow, &mut host.network.agenda);
    }

    /// The receiver's ACK leaves, if there is one.
    #[inline]
    fn acknowledge<S: Sink>(&self, ack: Option<Ack>, host: &mut Host<'_, S>) {
        if let Some(ack) = ack {
            host.send_back(Body::Tcp(Segment::Ack(ack)), self.receiver.ecn());
        }
    }

    /// The application has read what kept its window closed.
    #[cold]
    #[inline(never)]
    fn reopen<S: Sink>(&mut self, host: &mut Host<'_, S>) {
        let update = self.receiver.reopen(host.now);
        self.arm_receiver(host.flow, &mut host.network.agenda);
        self.acknowledge(Some(update), host);
    }

    /// So many bytes of messages reached the application.
    #[inline(never)]
    fn answer<S: Sink>(&mut self, bytes: u64, host: &mut Host<'_, S>) {
        let &mut Host { now, flow, ref mut sink, .. } = host;
        let Self { messages, source, .. } = self;
        messages.deliver(bytes, now, |after| match source.on_whole(now) {
            None => sink.responded(now, flow, after),
            Some(bitrate_bps) => sink.segment_loaded(now, flow, bitrate_bps),
        });
    }

    /// Everything written so far is acknowledged.
    #[cold]
    fn on_drained<S: Sink>(&mut self, host: &mut Host<'_, S>) -> Progress {
        if self.cut {
            self.sender.close(host.now, host.memory);
            return Progress::Open;
        }
        if host.application_goes_on(&mut self.source) {
            return Progress::Open;
        }
        self.sender.close(host.now, host.memory);
        Progress::Complete
    }
}

impl Transport for Connection {
    type Message = Segment;

    #[cold]
    fn act<S: Sink>(&mut self, stop: Time, host: &mut Host<'_, S>) {
        let now = host.now;
        let Some(action) = host.application_acts(&mut self.source, &mut self.messages, stop) else {
            return;
        };
        self.with_sender(host, |sender, port| {
            match action {
                Action::Write(bytes) | Action::Append { bytes, .. } => {
                    sender.supply(now, Some(bytes), port);
                }
                Action::WriteForever => sender.supply(now, None, port),
                Action::Pause | Action::Finish | Action::Wait => {
                    sender.withdraw();
                }
                Action::Nothing => {}
            }
            sender.open(now, port);
        });
    }

    fn answer_with<S: Sink>(&mut self, bytes: u64, host: &mut Host<'_, S>) {
        let now = host.now;
        self.messages.write(bytes, now);
        self.with_sender(host, |sender, port| {
            sender.supply(now, Some(bytes), port);
            sender.open(now, port);
        });
    }

    fn take_whole(&mut self) -> u32 {
        self.source.take_whole()
    }

    fn stop(&mut self) {
        self.cut |= self.sender.withdraw();
    }

    #[inline]
    fn receive<S: Sink>(
        &mut self,
        segment: &Segment,
        wire_bytes: u32,
        ecn: Ecn,
        part: bool,
        host: &mut Host<'_, S>,
    ) {
        let &mut Host { now, flow, .. } = host;
        let data = match segment {
            Segment::Data(data) => data,
            Segment::Syn(syn) => {
                let answer = Segment::SynAck(self.receiver.on_syn(now, syn));
                return host.send_back(Body::Tcp(answer), self.receiver.ecn());
            }
            Segment::SynAck(_) | Segment::Ack(_) => return,
        };
        host.received(wire_bytes, &data.trip);
        let arrival = if part {
            self.receiver.on_part(now, data, ecn)
        } else {
            self.receiver.on_data(now, data, ecn)
        };
        if arrival.bytes > 0 {
            host.sink.delivered(now, flow, arrival.bytes);
            if self.messages.are_awaited() {
                self.answer(arrival.bytes, host);
            }
        }
        self.arm_receiver(flow, &mut host.network.agenda);
        self.acknowledge(arrival.early, host);
        self.acknowledge(arrival.ack, host);
        if arrival.reopens {
            self.reopen(&mut host.reborrow());
        }
    }

    #[inline]
    fn receive_return<S: Sink>(&mut self, segment: &Segment, host: &mut Host<'_, S>) -> Progress {
        let now = host.now;
        let drained_before = self.sender.is_drained();
        match segment {
            Segment::Ack(ack) => {
                if let Some(done) = self.sender.on_ack(now, ack, &mut host.port()) {
                    host.sink.acked(now, host.flow, &row_of(&done));
                }
            }
            Segment::SynAck(syn_ack) => {
                self.sender.recall(now, host.memory);
                self.sender.on_syn_ack(now, syn_ack, &mut host.port());
            }
            Segment::Data(_) | Segment::Syn(_) => return Progress::Open,
        }
        self.arm_sender(host.flow, &mut host.network.agenda);
        if self.sender.is_drained() && !drained_before {
            self.on_drained(&mut host.reborrow())
        } else {
            Progress::Open
        }
    }

    #[inline]
    fn on_deadline<S: Sink>(&mut self, deadline: Deadline, host: &mut Host<'_, S>) {
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
                self.arm_receiver(host.flow, &mut host.network.agenda);
                self.acknowledge(ack, host);
            }
            _ => {}
        }
    }

    #[inline]
    fn on_card_drained<S: Sink>(&mut self, host: &mut Host<'_, S>) {
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

    fn observe(&self, observer: &mut dyn Observer) {
        self.sender.controller().observe(observer);
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
