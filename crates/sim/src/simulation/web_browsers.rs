//! Executes the actions of web browsers, and notifies them.

use jostle_metrics::EventSink;
use jostle_units::{ConnectionId, Time};

use super::Simulation;
use crate::endpoints::EndpointKind;
use crate::event_queue::Event;
use crate::tcp_connection::CompletedMessages;
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

    /// Handles requests that are complete at the server of a connection, and responses that are
    /// complete at its browser.
    #[cold]
    pub(super) fn on_messages_complete(&mut self, now: Time, connection: ConnectionId) {
        let Some((EndpointKind::Shared(shared), _)) = self.endpoints(now, connection) else {
            return;
        };
        let CompletedMessages { requests, responses } = shared.take_completed();
        let Some(at) = self.browser_of(connection) else { return };
        for _ in 0..requests {
            let Some(bytes) = self.world.browsers[at].reached(connection) else { break };
            if let Some((EndpointKind::Shared(shared), mut host)) = self.endpoints(now, connection)
            {
                shared.send_response(bytes, &mut host);
            }
        }
        if responses > 0 {
            self.world.browsers[at].on_objects_complete(connection, responses, now);
            self.carry_out(now, at);
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
                    self.send_request(now, connection);
                }
                BrowserAction::Send { connection } => self.send_request(now, connection),
                BrowserAction::Close { connection } => {
                    self.world.connections.close_browser_connection(connection);
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
    fn send_request(&mut self, now: Time, connection: ConnectionId) {
        if let Some((EndpointKind::Shared(shared), mut host)) = self.endpoints(now, connection) {
            shared.send_request(&mut host);
        }
    }
}
