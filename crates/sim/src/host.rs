//! What the two endpoints of a flow may use of the simulator, and what it asks of them.

use jostle_control::Observer;
use jostle_control::memory::HostMemory;
use jostle_path::Ecn;
use jostle_record::{FlowState, Sink};
use jostle_tcp::Trip;
use jostle_units::{Span, Time};

use crate::engine::{Deadline, Event};
use crate::messages::Messages;
use crate::network::Network;
use crate::packet::Body;
use crate::port::Port;
use crate::source::{Action, Source};

/// A flow's hosts at one moment: the network, who records, what the sending host remembers.
pub(crate) struct Host<'a, S> {
    pub now: Time,
    pub flow: u32,
    pub network: &'a mut Network,
    pub sink: &'a mut S,
    /// Of the host that all senders run on: peers are told apart by their addresses.
    pub memory: &'a mut HostMemory,
}

impl<S: Sink> Host<'_, S> {
    /// The same once more, for what happens seldom: the compiler keeps in registers what no call is
    /// given the address of.
    #[inline(always)]
    pub fn reborrow(&mut self) -> Host<'_, S> {
        let Self { now, flow, network, sink, memory } = self;
        Host { now: *now, flow: *flow, network, sink, memory }
    }

    /// The sending side's door to the network.
    #[inline]
    pub fn port(&mut self) -> Port<'_, S> {
        Port { network: self.network, sink: self.sink, flow: self.flow }
    }

    /// The receiving side sends.
    #[inline]
    pub fn send_back(&mut self, body: Body, ecn: Ecn) {
        self.network.send_back(self.now, self.flow, body, ecn, self.sink);
    }

    /// A packet of data has reached the receiver.
    #[inline]
    pub fn received(&mut self, wire_bytes: u32, trip: &Trip) {
        self.sink.received(self.now, self.flow, wire_bytes);
        if self.sink.wants_trips() {
            let delay = self.now.since(trip.left());
            self.sink.travelled(self.now, self.flow, delay, trip.waited());
        }
    }

    /// The application of a connection acts: what it does now, which is told, and when it acts
    /// again. None as long as it does not open the connection.
    pub fn application_acts(
        &mut self,
        source: &mut Source,
        messages: &mut Messages,
        stop: Time,
    ) -> Option<Action> {
        let (action, next) = source.act(self.now);
        if next < Time::NEVER {
            self.schedule_application(next.min(stop));
        }
        if action == Action::Wait {
            return None;
        }
        if let Action::Write(bytes) = action {
            self.sink.asked(self.now, self.flow, bytes);
        }
        if let (Action::Write(bytes) | Action::Append { bytes, .. }, true) =
            (action, source.is_asked())
        {
            messages.write(bytes, self.now);
        }
        Some(action)
    }

    /// Everything that the application wrote is acknowledged: whether it goes on.
    pub fn application_goes_on(&mut self, source: &mut Source) -> bool {
        let Ok(next) = source.on_drained(self.now) else { return false };
        if next < Time::NEVER {
            self.schedule_application(next);
        }
        true
    }

    /// The application acts again at `at`.
    pub fn schedule_application(&mut self, at: Time) {
        self.network.agenda.schedule(at, Event::Source(self.flow));
    }
}

/// What came to a flow's sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The flow goes on.
    Open,
    /// The flow has sent all it ever will, and all of it was acknowledged.
    Complete,
}

/// Both endpoints of a flow: their state, and what they do. `Message` is what their packets carry.
pub(crate) trait Transport {
    type Message;

    /// The application opens the flow, or the time has come for which it asked last. Nothing may be
    /// asked for that comes after `stop`.
    fn act<S: Sink>(&mut self, stop: Time, host: &mut Host<'_, S>);

    /// A server is asked for an answer of so many bytes.
    fn answer_with<S: Sink>(&mut self, _bytes: u64, _host: &mut Host<'_, S>) {}

    /// Answers that have become whole at the receiver since this was last asked.
    fn take_whole(&mut self) -> u32 {
        0
    }

    /// The application stops for good.
    fn stop(&mut self) {}

    /// A packet has reached the receiver. `part`: its card puts the next one together with it.
    fn receive<S: Sink>(
        &mut self,
        message: &Self::Message,
        wire_bytes: u32,
        ecn: Ecn,
        part: bool,
        host: &mut Host<'_, S>,
    );

    /// A packet has reached the sender.
    fn receive_return<S: Sink>(
        &mut self,
        message: &Self::Message,
        host: &mut Host<'_, S>,
    ) -> Progress;

    /// A deadline may have come.
    fn on_deadline<S: Sink>(&mut self, _deadline: Deadline, _host: &mut Host<'_, S>) {}

    /// The sender's card has sent a packet.
    fn on_card_drained<S: Sink>(&mut self, _host: &mut Host<'_, S>) {}

    /// The state of the flow is about to be looked at: what has happened silently is told first.
    fn settle<S: Sink>(&mut self, _host: &mut Host<'_, S>) {}

    /// What a record shows of it.
    fn state(&self) -> FlowState;

    /// Values of a controller, if there is one.
    fn observe(&self, _observer: &mut dyn Observer) {}

    /// What broke the flow's connection, if anything did.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// When a flow does something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Opened at, once that is known.
    pub start: Time,
    /// From the completion of the flow before it to the opening of this one, or from time 0.
    pub wait: Span,
    pub stop: Time,
}
