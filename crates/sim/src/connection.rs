//! A flow over a TCP connection: its two endpoints, the application, the events of their deadlines.

use jostle_control::Observer;
use jostle_path::Ecn;
use jostle_record::{AckRow, FlowState, Sink};
use jostle_tcp::{Ack, Acknowledged, Arrival, Conduct, Data, Deadlines, Receiver, Segment, Sender};
use jostle_units::Time;

use crate::engine::{Agenda, Deadline, Event, Timer};
use crate::host::{Host, Progress, Transport};
use crate::messages::Messages;
use crate::packet::Body;
use crate::port::Port;
use crate::relay::Part;
use crate::source::{Action, Source};

/// Both endpoints of a TCP connection.
pub(crate) struct Connection {
    sender: Sender,
    receiver: Receiver,
    /// What the receiver does otherwise than Linux's.
    conduct: Option<Box<Conduct>>,
    timers: Timers,
    source: Source,
    /// The flow was stopped before everything it had to send was sent.
    cut: bool,
    /// Those of which it is measured how long they take. In a part of a split flow one without an end,
    /// since it has to see whatever arrives.
    messages: Messages,
    /// What it has to do with the proxies that split its flow.
    part: Option<Box<Part>>,
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
            conduct: None,
            timers: Timers::default(),
            source,
            cut: false,
            messages: Messages::default(),
            part: None,
        }
    }

    /// Gives its receiver another conduct than Linux's.
    pub fn conducted(mut self, conduct: Option<Conduct>) -> Self {
        self.conduct = conduct.map(Box::new);
        self
    }

    /// Makes it a part of a flow that proxies split.
    pub fn split(&mut self, part: Part) {
        self.messages.write(u64::MAX, Time::NEVER);
        if part.next.is_some() {
            self.receiver.read_later();
        }
        self.part = Some(Box::new(part));
    }

    /// What it has to do with proxies.
    pub fn part_mut(&mut self) -> Option<&mut Part> {
        self.part.as_deref_mut()
    }

    /// Bytes that the proxy at its receiver can read.
    pub fn unread_bytes(&self) -> u64 {
        self.receiver.unread_bytes()
    }

    /// Bytes that the proxy at its sender may write, in whole segments unless `wanted` are fewer.
    pub fn writable_bytes(&self, wanted: u64) -> u64 {
        let Some(part) = &self.part else { return 0 };
        let held_bytes = part.written_bytes - self.sender.acked_bytes();
        let room_bytes = part.buffer_bytes.saturating_sub(held_bytes);
        let segment_bytes = self.sender.bytes_of(1);
        if wanted <= room_bytes { wanted } else { room_bytes - room_bytes % segment_bytes }
    }

    /// The proxy at its receiver reads.
    pub fn read<S: Sink>(&mut self, bytes: u64, host: &mut Host<'_, S>) {
        let update = self.receiver.read(host.now, bytes);
        self.arm_receiver(host.flow, &mut host.network.agenda);
        self.acknowledge(update, host);
    }

    /// The proxy at its sender writes.
    pub fn write<S: Sink>(&mut self, bytes: u64, host: &mut Host<'_, S>) {
        if let Some(part) = &mut self.part {
            part.written_bytes += bytes;
        }
        let now = host.now;
        self.with_sender(host, |sender, port| sender.supply(now, Some(bytes), port));
    }

    /// Everything written to it is acknowledged, and everything acknowledged is read.
    pub fn is_empty(&self) -> bool {
        self.sender.is_drained() && self.receiver.unread_bytes() == 0
    }

    /// So many bytes of a split flow have reached its receiver; this is the flow's first connection.
    pub fn answered<S: Sink>(&mut self, bytes: u64, host: &mut Host<'_, S>) {
        let &mut Host { now, flow, ref mut sink, .. } = host;
        if let Some(part) = &mut self.part {
            part.messages.deliver(bytes, now, |after| sink.responded(now, flow, after));
        }
    }

    /// Every connection of a split flow is empty; this is the first of them. Once for everything that
    /// its application writes.
    pub fn settle_all<S: Sink>(&mut self, host: &mut Host<'_, S>) -> Progress {
        let settled = self.part.as_mut().map(|part| std::mem::replace(&mut part.is_settled, true));
        if settled == Some(false) { self.finish(host) } else { Progress::Open }
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
    #[inline(never)]
    fn acknowledge<S: Sink>(&mut self, ack: Option<Ack>, host: &mut Host<'_, S>) {
        if let Some(ack) = ack {
            if self.conduct.is_some() {
                return self.answer_otherwise(ack, &mut host.reborrow());
            }
            host.send_back(Body::Tcp(Segment::Ack(ack)), self.receiver.ecn());
        }
    }

    /// What a receiver of another conduct sends in place of an ACK.
    #[cold]
    #[inline(never)]
    fn answer_otherwise<S: Sink>(&mut self, ack: Ack, host: &mut Host<'_, S>) {
        let answers = self.conduct.as_mut().map(|conduct| conduct.answers(ack));
        for answer in answers.into_iter().flatten() {
            host.send_back(Body::Tcp(Segment::Ack(answer)), self.receiver.ecn());
        }
    }

    /// A receiver of another conduct sees a segment.
    #[cold]
    #[inline(never)]
    fn take_otherwise<S: Sink>(
        &mut self,
        data: &Data,
        mut ecn: Ecn,
        part: bool,
        host: &mut Host<'_, S>,
    ) {
        if let Some(conduct) = &mut self.conduct {
            ecn = conduct.seen(ecn);
            if let Some(taken) = conduct.take(host.now, data, part) {
                self.deliver(taken.bytes, host);
                return self.acknowledge(taken.ack, host);
            }
        }
        let arrival = if part {
            self.receiver.on_part(host.now, data, ecn)
        } else {
            self.receiver.on_data(host.now, data, ecn)
        };
        self.take_in(arrival, host);
    }

    /// The application can read so many bytes more.
    #[inline(always)]
    fn deliver<S: Sink>(&mut self, bytes: u64, host: &mut Host<'_, S>) {
        if bytes > 0 {
            host.sink.delivered(host.now, host.flow, bytes);
            if self.messages.are_awaited() {
                self.answer(bytes, host);
            }
        }
    }

    /// What a segment has brought about goes where it belongs.
    #[inline(always)]
    fn take_in<S: Sink>(&mut self, arrival: Arrival, host: &mut Host<'_, S>) {
        let &mut Host { now, flow, .. } = host;
        self.deliver(arrival.bytes, host);
        self.arm_receiver(flow, &mut host.network.agenda);
        if arrival.early {
            let early = self.receiver.take_early();
            self.acknowledge(early, &mut host.reborrow());
        }
        if arrival.answers {
            if self.conduct.is_some() || self.receiver.tells_blocks() {
                let ack = self.receiver.answer(now);
                self.acknowledge(Some(ack), &mut host.reborrow());
            } else {
                // Put together in its place on the way back.
                let ack = self.receiver.plain_answer(now);
                host.send_back(Body::Tcp(Segment::Ack(ack)), self.receiver.ecn());
            }
        }
        if arrival.reopens {
            self.reopen(&mut host.reborrow());
        }
    }

    /// A segment without data has reached the receiver.
    #[cold]
    #[inline(never)]
    fn greet<S: Sink>(&mut self, segment: &Segment, host: &mut Host<'_, S>) {
        let Segment::Syn(syn) = segment else { return };
        let mut answer = self.receiver.on_syn(host.now, syn);
        if let Some(conduct) = &mut self.conduct {
            conduct.greet(host.now, &mut answer);
        }
        if self.part.is_some() {
            host.network.relayed.push(host.flow);
        }
        host.send_back(Body::Tcp(Segment::SynAck(answer)), self.receiver.ecn());
    }

    /// What is no ACK has reached the sender.
    #[cold]
    #[inline(never)]
    fn on_greeting<S: Sink>(&mut self, segment: &Segment, host: &mut Host<'_, S>) {
        let Segment::SynAck(syn_ack) = segment else {
            debug_assert!(false, "a packet that goes the other way");
            return;
        };
        self.sender.recall(host.now, host.memory);
        self.sender.on_syn_ack(host.now, syn_ack, &mut host.port());
    }

    /// The application has read what kept its window closed.
    #[cold]
    #[inline(never)]
    fn reopen<S: Sink>(&mut self, host: &mut Host<'_, S>) {
        let update = self.receiver.reopen(host.now);
        self.arm_receiver(host.flow, &mut host.network.agenda);
        self.acknowledge(Some(update), host);
    }

    /// So many bytes of messages reached the application, or bytes a proxy.
    #[inline(never)]
    fn answer<S: Sink>(&mut self, bytes: u64, host: &mut Host<'_, S>) {
        if let Some(part) = &mut self.part {
            part.arrived_bytes += bytes;
            host.network.relayed.push(host.flow);
            return;
        }
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
        // What a proxy has acknowledged is not yet where it goes to.
        if self.part.is_some() {
            return Progress::Open;
        }
        self.finish(host)
    }

    /// Everything written so far has arrived where it goes to.
    #[cold]
    fn finish<S: Sink>(&mut self, host: &mut Host<'_, S>) -> Progress {
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
        let Self { source, messages, part, .. } = self;
        let messages = part.as_mut().map_or(messages, |part| &mut part.messages);
        let Some(action) = host.application_acts(source, messages, stop) else {
            return;
        };
        if let Some(part) = &mut self.part {
            part.is_settled = false;
        }
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
        let now = host.now;
        let Segment::Data(data) = segment else {
            return self.greet(segment, &mut host.reborrow());
        };
        host.received(wire_bytes, &data.trip);
        if self.conduct.is_some() {
            return self.take_otherwise(data, ecn, part, &mut host.reborrow());
        }
        let arrival = if part {
            self.receiver.on_part(now, data, ecn)
        } else {
            self.receiver.on_data(now, data, ecn)
        };
        self.take_in(arrival, host);
    }

    #[inline]
    fn receive_return<S: Sink>(&mut self, segment: &Segment, host: &mut Host<'_, S>) -> Progress {
        let now = host.now;
        let drained_before = self.sender.is_drained();
        if let Segment::Ack(ack) = segment {
            if let Some(done) = self.sender.on_ack(now, ack, &mut host.port()) {
                host.sink.acked(now, host.flow, &row_of(&done));
            }
        } else {
            self.on_greeting(segment, &mut host.reborrow());
        }
        self.arm_sender(host.flow, &mut host.network.agenda);
        if self.part.is_some() {
            host.network.relayed.push(host.flow);
        }
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
