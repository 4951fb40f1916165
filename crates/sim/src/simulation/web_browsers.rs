//! Executes the actions of web browsers, and notifies them.

use jostle_link::Ecn;
use jostle_metrics::EventSink;
use jostle_units::{ConnectionId, Time};

use super::Simulation;
use crate::event_queue::Event;
use crate::packet::{Body, Request};
use crate::transport::Endpoints;
use jostle_traffic::BrowserAction;

impl<S: EventSink> Simulation<'_, S> {
    /// Starts, runs or stops a browser.
    #[cold]
    pub(super) fn browse(&mut self, now: Time, at: usize, (start, stop): (Time, Time)) {
        let browser = &mut self.world.browsers[at];
        if now == start {
            self.sink.opened(now, browser.flow);
            if stop < Time::NEVER {
                self.world.network.agenda.schedule(stop, Event::Source(browser.flow.into()));
            }
        }
        if now >= stop {
            browser.stop()
        } else {
            browser.on_time(now)
        }
        self.carry_out(now, at);
    }

    /// Notifies the browser of a connection whose receiver got a packet, if responses are complete.
    #[cold]
    pub(super) fn notify_browser(&mut self, now: Time, connection: ConnectionId) {
        let Some(at) = self.browser_of(connection) else { return };
        let Some(endpoints) = self.world.connections.endpoints(connection) else { return };
        let completed_responses = endpoints.take_completed_responses();
        if completed_responses > 0 {
            let rtt = endpoints.state().srtt;
            self.world.browsers[at].on_objects_complete(connection, completed_responses, rtt, now);
            self.carry_out(now, at);
        }
    }

    /// Handles a request that reached the sender: sends the response.
    #[cold]
    pub(super) fn on_request(&mut self, now: Time, connection: ConnectionId, number: u32) {
        let Some(at) = self.browser_of(connection) else { return };
        let Some(bytes) = self.world.browsers[at].reached(connection, number) else { return };
        if let Some((endpoints, mut host)) = self.endpoints(now, connection) {
            endpoints.send_response(bytes, &mut host);
        }
    }

    fn browser_of(&self, connection: ConnectionId) -> Option<usize> {
        let flow = self.world.connections.flow_of(connection)?;
        self.world.browsers.binary_search_by_key(&flow, |browser| browser.flow).ok()
    }

    /// Executes the pending actions of a browser.
    fn carry_out(&mut self, now: Time, at: usize) {
        let flow = self.world.browsers[at].flow;
        let mut steps = std::mem::take(&mut self.world.browsers[at].steps);
        for step in steps.drain(..) {
            match step {
                BrowserAction::Open { line } => {
                    let Some(connection) = self.open(now, flow) else { return };
                    self.world.browsers[at].opened(line, connection);
                    self.request(now, at, connection, 0);
                }
                BrowserAction::Send { connection, number } => {
                    self.request(now, at, connection, number)
                }
                BrowserAction::Close { connection } => {
                    self.world.connections.close(connection);
                }
                BrowserAction::Asked => self.sink.page_requested(now, flow),
                BrowserAction::Loaded { after } => self.sink.page_loaded(now, flow, after),
                BrowserAction::Finish => self.complete(now, flow.into()),
                BrowserAction::Wake { at } => {
                    self.world.network.agenda.schedule(at, Event::Source(flow.into()))
                }
            }
        }
        self.world.browsers[at].steps = steps;
    }

    /// Sends a browser's request.
    fn request(&mut self, now: Time, at: usize, connection: ConnectionId, number: u32) {
        let payload_bytes = self.world.browsers[at].request_bytes;
        let body = Body::Request(Request { number, payload_bytes });
        self.world.network.send_back(now, connection, body, Ecn::NotCapable, self.sink);
    }
}
