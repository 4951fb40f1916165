//! Interface between the simulator and the endpoints of a flow.

use jostle_congestion::StateObserver;
use jostle_congestion::peer_cache::PeerCache;
use jostle_link::Ecn;
use jostle_metrics::{EventSink, FlowState};
use jostle_tcp::TransitTimes;
use jostle_units::{ConnectionId, Span, Time};

use crate::event_queue::{Deadline, Event};
use crate::network::Network;
use crate::packet::Body;
use crate::sender_port::SenderPort;
use jostle_traffic::MessageTracker;
use jostle_traffic::{Action, ApplicationInstance};

/// Context of a flow's endpoints at one time: network, sink and peer cache.
pub(crate) struct EndpointContext<'a, S> {
    pub now: Time,
    pub connection: ConnectionId,
    pub network: &'a mut Network,
    pub sink: &'a mut S,
    /// Peer cache of the sending host. All senders share one host; peers are distinguished by
    /// address.
    pub memory: &'a mut PeerCache,
}

impl<S: EventSink> EndpointContext<'_, S> {
    /// Returns a second context for rarely called functions. The compiler keeps in registers only
    /// values whose address is not passed to a call.
    #[inline(always)]
    pub fn reborrow(&mut self) -> EndpointContext<'_, S> {
        let Self { now, connection, network, sink, memory } = self;
        EndpointContext { now: *now, connection: *connection, network, sink, memory }
    }

    /// Returns the sender's access to the network.
    #[inline]
    pub fn port(&mut self) -> SenderPort<'_, S> {
        SenderPort { network: self.network, sink: self.sink, connection: self.connection }
    }

    /// Sends a packet from the receiver.
    #[inline]
    pub fn send_back(&mut self, body: Body, ecn: Ecn) {
        self.network.send_back(self.now, self.connection, body, ecn, self.sink);
    }

    /// Reports a data packet that reached the receiver.
    #[inline]
    pub fn received(&mut self, wire_bytes: u32, trip: &TransitTimes) {
        self.sink.received(self.now, self.connection, wire_bytes);
        if self.sink.wants_transit_times() {
            let delay = self.now.since(trip.departure_time());
            self.sink.packet_transit(self.now, self.connection, delay, trip.queueing_delay());
        }
    }

    /// Runs the application of a connection: reports its action and schedules the next one. Returns
    /// `None` until the application opens the connection.
    pub fn application_acts(
        &mut self,
        source: &mut ApplicationInstance,
        messages: &mut MessageTracker,
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
            self.sink.transfer_requested(self.now, self.connection, bytes);
        }
        if let (Action::Write(bytes) | Action::Append { bytes, .. }, true) =
            (action, source.measures_messages())
        {
            messages.write(bytes, self.now);
        }
        Some(action)
    }

    /// Notifies the application that all written data is acknowledged. Returns whether it
    /// continues.
    pub fn on_application_drained(&mut self, source: &mut ApplicationInstance) -> bool {
        let Ok(next) = source.on_drained(self.now) else { return false };
        if next < Time::NEVER {
            self.schedule_application(next);
        }
        true
    }

    /// Schedules the next action of the application.
    pub fn schedule_application(&mut self, at: Time) {
        self.network.agenda.schedule(at, Event::Source(self.connection));
    }
}

/// Whether a flow is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowStatus {
    /// More data may follow.
    Open,
    /// All data of the flow was sent and acknowledged.
    Complete,
}

/// Both endpoints of a flow. `Message` is the content of their packets.
pub(crate) trait Endpoints {
    type Message;

    /// Runs the application, at the start of the flow and at the times it scheduled. Nothing may be
    /// scheduled after `stop`.
    fn run_application<S: EventSink>(&mut self, stop: Time, host: &mut EndpointContext<'_, S>);

    /// Stops the application permanently.
    fn stop(&mut self) {}

    /// Handles a packet at the receiver. `part` is true if GRO merges the next packet with it.
    fn receive<S: EventSink>(
        &mut self,
        message: &Self::Message,
        wire_bytes: u32,
        ecn: Ecn,
        part: bool,
        host: &mut EndpointContext<'_, S>,
    );

    /// Handles a packet at the sender.
    fn receive_return<S: EventSink>(
        &mut self,
        message: &Self::Message,
        host: &mut EndpointContext<'_, S>,
    ) -> FlowStatus;

    /// Handles a timer event. The deadline may have moved.
    fn on_deadline<S: EventSink>(
        &mut self,
        _deadline: Deadline,
        _host: &mut EndpointContext<'_, S>,
    ) {
    }

    /// Handles the departure of a packet from the sender's NIC.
    fn on_nic_sent<S: EventSink>(&mut self, _host: &mut EndpointContext<'_, S>) {}

    /// Reports pending events before the state of the flow is sampled.
    fn flush_events<S: EventSink>(&mut self, _host: &mut EndpointContext<'_, S>) {}

    /// Returns the state of the flow for the time series.
    fn state(&self) -> FlowState;

    /// Reports the controller's internal values, if there is a controller.
    fn observe(&self, _observer: &mut dyn StateObserver) {}

    /// Returns the error of the flow's connection, if it failed.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// Start and stop times of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowTimes {
    /// Start time, or [`Time::NEVER`] if it is not yet known.
    pub start: Time,
    /// Delay from the completion of the preceding flow to the start, or the start time itself.
    pub wait: Span,
    pub stop: Time,
}
