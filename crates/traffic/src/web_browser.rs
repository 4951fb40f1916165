//! Web browsers: pages of objects, loaded over connections that are opened for each page.
//!
//! A browser is located at the receiver. It decides on requests, their connections and their times,
//! and lists its network operations as [`BrowserAction`]s, which the caller performs.

use std::collections::VecDeque;

use crate::{Page, Pages};
use jostle_run_spec::{FlowSpec, SourceSpec};
use jostle_units::{ConnectionId, FlowId, Span, Time};

/// Network operation that a browser requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrowserAction {
    /// Open a connection and send its first request.
    Open {
        /// Number of the connection within the browser.
        line: usize,
    },
    /// Send a request.
    Send {
        /// Number of the connection.
        connection: ConnectionId,
    },
    /// Close a connection.
    Close {
        /// Number of the connection.
        connection: ConnectionId,
    },
    /// A page was requested.
    Asked,
    /// A page is complete.
    Loaded {
        /// Time since it was requested.
        after: Span,
    },
    /// The last page is complete.
    Finish,
    /// Call the browser again.
    Wake {
        /// Time of that call.
        at: Time,
    },
}

/// Progress of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing was requested yet.
    Closed,
    /// The main object is being loaded.
    Main,
    /// The main object is parsed until this time.
    Parsing(Time),
    /// The other objects are being loaded.
    Objects,
    /// The user reads the page until this time.
    Reading(Time),
    /// The browser has finished.
    Over,
}

/// Number of a connection that was requested and is not open yet.
const UNOPENED: ConnectionId = ConnectionId(u32::MAX);

/// A connection for the current page.
#[derive(Debug)]
struct BrowserConnection {
    connection: ConnectionId,
    /// Sizes of the requested objects.
    asked_bytes: Vec<u64>,
    /// Number of these requests that reached the server.
    reached: u32,
    /// Number of these objects that are complete.
    whole: u32,
}

impl BrowserConnection {
    const fn is_idle(&self) -> bool {
        self.whole as usize == self.asked_bytes.len()
    }
}

/// A browser.
#[derive(Debug)]
pub struct WebBrowser {
    /// Number of the browser's flow.
    pub flow: FlowId,
    /// Size of a request.
    pub request_bytes: u16,
    pages: Pages,
    /// Number of pages left; `None` if unlimited.
    left: Option<u64>,
    /// Maximum number of connections per page.
    connections: usize,
    multiplexed: bool,
    stage: Stage,
    page: Page,
    asked: Time,
    /// Objects that wait for an idle connection.
    waiting: VecDeque<u64>,
    lines: Vec<BrowserConnection>,
    /// Network operations that the caller has to perform.
    pub steps: Vec<BrowserAction>,
}

impl WebBrowser {
    /// Creates the browser of a flow in a run with `seed`; `None` if the flow has another source.
    pub fn of(flow: FlowId, spec: &FlowSpec, seed: u64) -> Option<Self> {
        let SourceSpec::Web(web) = &spec.source else { return None };
        Some(Self {
            flow,
            request_bytes: web.request_bytes as u16,
            pages: Pages::new(web, seed, &spec.name),
            left: web.pages,
            connections: web.connections as usize,
            multiplexed: web.multiplexed,
            stage: Stage::Closed,
            page: Page::default(),
            asked: Time::ZERO,
            waiting: VecDeque::new(),
            lines: Vec::new(),
            steps: Vec::new(),
        })
    }

    /// Performs all actions that are due at `now`.
    pub fn on_time(&mut self, now: Time) {
        match self.stage {
            Stage::Closed => self.begin(now),
            Stage::Parsing(until) if until <= now => self.ask_for_objects(),
            Stage::Reading(until) if until <= now => self.begin(now),
            _ => {}
        }
    }

    /// Stops the browser and abandons the current page.
    pub fn stop(&mut self) {
        self.stage = Stage::Over;
        self.close();
    }

    /// Records that the requested connection `line` was opened as `connection`.
    pub fn opened(&mut self, line: usize, connection: ConnectionId) {
        self.lines[line].connection = connection;
    }

    /// Handles the next request that reached the server on a connection. Returns the size of the
    /// requested object, unless the page was abandoned.
    pub fn reached(&mut self, connection: ConnectionId) -> Option<u64> {
        let line = self.lines.iter_mut().find(|line| line.connection == connection)?;
        let bytes = line.asked_bytes.get(line.reached as usize).copied();
        line.reached += 1;
        bytes
    }

    /// Returns the size of the oldest object that was requested on a connection and is not complete.
    pub fn awaited_bytes(&self, connection: ConnectionId) -> Option<u64> {
        let line = self.lines.iter().find(|line| line.connection == connection)?;
        line.asked_bytes.get(line.whole as usize).copied()
    }

    /// Handles the completion of objects on a connection.
    pub fn on_objects_complete(&mut self, connection: ConnectionId, count: u32, now: Time) {
        let Some(at) = self.lines.iter().position(|line| line.connection == connection) else {
            return;
        };
        self.lines[at].whole += count;
        if self.stage == Stage::Main && self.page.objects_bytes.is_empty() {
            // The page ends with its last byte. Nothing waits for its parsing.
            self.end(now);
        } else if self.stage == Stage::Main {
            let until = now + self.page.parse;
            self.stage = Stage::Parsing(until);
            self.wake(until);
        } else if self.lines[at].is_idle()
            && let Some(bytes) = self.waiting.pop_front()
        {
            self.ask(at, bytes);
        } else if self.lines.iter().all(BrowserConnection::is_idle) {
            self.end(now);
        }
        // With a parse time of zero the objects are requested immediately.
        self.on_time(now);
    }

    /// Requests the next page over a new connection.
    fn begin(&mut self, now: Time) {
        if self.left == Some(0) {
            self.stage = Stage::Over;
            return;
        }
        self.left = self.left.map(|left| left - 1);
        self.page = self.pages.draw();
        self.stage = Stage::Main;
        self.asked = now;
        self.steps.push(BrowserAction::Asked);
        self.open(self.page.main_bytes);
    }

    /// Requests the objects to which the main object refers.
    fn ask_for_objects(&mut self) {
        self.stage = Stage::Objects;
        self.waiting = std::mem::take(&mut self.page.objects_bytes).into();
        if self.multiplexed {
            while let Some(bytes) = self.waiting.pop_front() {
                self.ask(0, bytes);
            }
            return;
        }
        for line in 0..self.connections {
            let Some(bytes) = self.waiting.pop_front() else { break };
            if line == 0 { self.ask(0, bytes) } else { self.open(bytes) }
        }
    }

    /// Completes the page.
    fn end(&mut self, now: Time) {
        self.steps.push(BrowserAction::Loaded { after: now.since(self.asked) });
        self.close();
        if self.left == Some(0) {
            self.stage = Stage::Over;
            self.steps.push(BrowserAction::Finish);
            return;
        }
        let until = now + self.page.think.max(Span::from_us(1));
        self.stage = Stage::Reading(until);
        self.wake(until);
    }

    fn close(&mut self) {
        let lines = self.lines.drain(..);
        self.steps.extend(lines.map(|line| BrowserAction::Close { connection: line.connection }));
    }

    /// Opens a connection with the request for an object.
    fn open(&mut self, bytes: u64) {
        self.steps.push(BrowserAction::Open { line: self.lines.len() });
        self.lines.push(BrowserConnection {
            connection: UNOPENED,
            asked_bytes: vec![bytes],
            reached: 0,
            whole: 0,
        });
    }

    /// Requests another object over a connection.
    fn ask(&mut self, at: usize, bytes: u64) {
        let line = &mut self.lines[at];
        line.asked_bytes.push(bytes);
        self.steps.push(BrowserAction::Send { connection: line.connection });
    }

    fn wake(&mut self, at: Time) {
        self.steps.push(BrowserAction::Wake { at });
    }
}
