//! What browsers want of the network, and what they are told.

use jostle_path::Ecn;
use jostle_record::Sink;
use jostle_units::Time;

use super::Simulation;
use crate::browser::Step;
use crate::engine::Event;
use crate::host::Transport;
use crate::packet::{Body, Request};

impl<S: Sink> Simulation<'_, S> {
    /// A browser starts, acts or stops.
    #[cold]
    pub(super) fn browse(&mut self, now: Time, at: usize, (start, stop): (Time, Time)) {
        let browser = &mut self.world.browsers[at];
        if now == start {
            self.sink.opened(now, browser.flow);
            if stop < Time::NEVER {
                self.world.network.agenda.schedule(stop, Event::Source(browser.flow));
            }
        }
        if now >= stop {
            browser.stop()
        } else {
            browser.on_time(now)
        }
        self.carry_out(now, at);
    }

    /// Something has reached the receiver of a connection, which may have been what a browser waits for.
    #[cold]
    pub(super) fn tell_browser(&mut self, now: Time, connection: u32) {
        let Some(at) = self.browser_of(connection) else { return };
        let Some(endpoints) = self.world.connections.endpoints(connection) else { return };
        let whole = endpoints.take_whole();
        if whole > 0 {
            let rtt = endpoints.state().srtt;
            self.world.browsers[at].whole(connection, whole, rtt, now);
            self.carry_out(now, at);
        }
    }

    /// A request has reached the sender.
    #[cold]
    pub(super) fn on_request(&mut self, now: Time, connection: u32, number: u32) {
        let Some(at) = self.browser_of(connection) else { return };
        let Some(bytes) = self.world.browsers[at].reached(connection, number) else { return };
        if let Some((endpoints, mut host)) = self.endpoints(now, connection) {
            endpoints.answer_with(bytes, &mut host);
        }
    }

    fn browser_of(&self, connection: u32) -> Option<usize> {
        let flow = self.world.connections.flow_of(connection)?;
        self.world.browsers.binary_search_by_key(&flow, |browser| browser.flow).ok()
    }

    /// Does what a browser wants of the network.
    fn carry_out(&mut self, now: Time, at: usize) {
        let flow = self.world.browsers[at].flow;
        let mut steps = std::mem::take(&mut self.world.browsers[at].steps);
        for step in steps.drain(..) {
            match step {
                Step::Open { line } => {
                    let Some(connection) = self.open(now, flow) else { return };
                    self.world.browsers[at].opened(line, connection);
                    self.request(now, at, connection, 0);
                }
                Step::Send { connection, number } => self.request(now, at, connection, number),
                Step::Close { connection } => {
                    self.world.connections.close(connection);
                }
                Step::Asked => self.sink.page_asked(now, flow),
                Step::Loaded { after } => self.sink.page_loaded(now, flow, after),
                Step::Wake { at } => self.world.network.agenda.schedule(at, Event::Source(flow)),
            }
        }
        self.world.browsers[at].steps = steps;
    }

    /// A browser's request leaves.
    fn request(&mut self, now: Time, at: usize, connection: u32, number: u32) {
        let payload_bytes = self.world.browsers[at].request_bytes;
        let body = Body::Request(Request { number, payload_bytes });
        self.world.network.send_back(now, connection, body, Ecn::NotCapable, self.sink);
    }
}
