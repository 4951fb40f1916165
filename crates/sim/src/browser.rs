//! Browsers: pages of objects, loaded over connections that are opened for each page.
//!
//! A browser is at the receiver and decides what is asked for, over which connection, and when. What that
//! takes of the network is a list of [`Step`]s, which whoever asked carries out.

use std::collections::VecDeque;

use jostle_record::{FlowSpec, Page, Pages, SourceSpec};
use jostle_units::{Span, Time};

/// A request of a connection of which no round trip is known is repeated after so long (RFC 6298 §2.1).
const FIRST_TIMEOUT: Span = Span::from_ms(1_000);
/// What Linux waits at least beyond a round trip (`TCP_RTO_MIN`).
const LEAST_VARIATION: Span = Span::from_ms(200);
/// And at most altogether (`TCP_RTO_MAX`).
const LONGEST_TIMEOUT: Span = Span::from_ms(120_000);

/// What a browser wants of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A connection, whose first request leaves at once.
    Open {
        /// The browser's own number of it.
        line: usize,
    },
    /// A request leaves.
    Send { connection: u32, number: u32 },
    /// A connection is needed no more.
    Close { connection: u32 },
    /// A page is asked for.
    Asked,
    /// A page is whole.
    Loaded { after: Span },
    /// The browser is to be called again.
    Wake { at: Time },
}

/// Where a browser is with its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing was asked for yet.
    Closed,
    /// The main object is on its way.
    Main,
    /// The main object is looked through until then.
    Parsing(Time),
    /// The others are on their way.
    Objects,
    /// The page is read until then.
    Reading(Time),
    /// Nothing is asked for any more.
    Over,
}

/// One connection of a page.
#[derive(Debug)]
struct Line {
    connection: u32,
    /// Bytes of the objects that it was asked for.
    asked_bytes: Vec<u64>,
    /// How many of these requests have reached the server, …
    reached: u32,
    /// … and how many of the objects are whole.
    whole: u32,
    /// When requests are repeated that were lost.
    repeat_at: Time,
    timeout: Span,
}

impl Line {
    const fn is_idle(&self) -> bool {
        self.whole as usize == self.asked_bytes.len()
    }
}

/// A browser.
#[derive(Debug)]
pub(crate) struct Browser {
    pub flow: u32,
    /// Of a request.
    pub request_bytes: u16,
    pages: Pages,
    /// Pages that it will still ask for; none if there is no end.
    left: Option<u64>,
    /// Connections of a page, at most.
    connections: usize,
    multiplexed: bool,
    stage: Stage,
    page: Page,
    asked: Time,
    /// Objects that no connection has been free for.
    waiting: VecDeque<u64>,
    lines: Vec<Line>,
    /// What it wants of the network.
    pub steps: Vec<Step>,
}

impl Browser {
    /// That of a flow in a run with `seed`; none if its source is another one.
    pub fn of(flow: u32, spec: &FlowSpec, seed: u64) -> Option<Self> {
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

    /// Time has come to `now`: does what is due.
    pub fn on_time(&mut self, now: Time) {
        match self.stage {
            Stage::Closed => self.begin(now),
            Stage::Parsing(until) if until <= now => self.ask_for_objects(now),
            Stage::Reading(until) if until <= now => self.begin(now),
            _ => {}
        }
        for line in 0..self.lines.len() {
            if self.lines[line].repeat_at <= now {
                self.repeat(line, now);
            }
        }
    }

    /// Nothing more is asked for, and what is on its way is given up.
    pub fn stop(&mut self) {
        self.stage = Stage::Over;
        self.close();
    }

    /// The connection that it wanted for a line is there.
    pub fn opened(&mut self, line: usize, connection: u32) {
        self.lines[line].connection = connection;
    }

    /// A request has reached the server: bytes of what it asks for, unless it did so before or another one
    /// is missing before it.
    pub fn reached(&mut self, connection: u32, number: u32) -> Option<u64> {
        let line = self.lines.iter_mut().find(|line| line.connection == connection)?;
        if line.reached != number {
            return None;
        }
        line.reached += 1;
        line.asked_bytes.get(number as usize).copied()
    }

    /// So many objects of a connection are whole, whose round trip is known by now.
    pub fn whole(&mut self, connection: u32, count: u32, rtt: Span, now: Time) {
        let Some(at) = self.lines.iter().position(|line| line.connection == connection) else {
            return;
        };
        let line = &mut self.lines[at];
        line.whole += count;
        // RFC 6298 §2.2: a client that has sent a packet or two knows little more than one round trip.
        let variation = (rtt + rtt).max(LEAST_VARIATION);
        line.timeout = (rtt + variation).min(LONGEST_TIMEOUT);
        if line.is_idle() {
            line.repeat_at = Time::NEVER;
        }
        if self.stage == Stage::Main {
            let until = now + self.page.parse;
            self.stage = Stage::Parsing(until);
            self.wake(until);
        } else if self.lines[at].is_idle()
            && let Some(bytes) = self.waiting.pop_front()
        {
            self.ask(at, bytes, now);
        } else if self.lines.iter().all(Line::is_idle) {
            self.end(now);
        }
        // Without a time to parse it, what the page refers to is asked for at once.
        self.on_time(now);
    }

    /// Asks for the next page over a connection of its own.
    fn begin(&mut self, now: Time) {
        if self.left == Some(0) {
            self.stage = Stage::Over;
            return;
        }
        self.left = self.left.map(|left| left - 1);
        self.page = self.pages.draw();
        self.stage = Stage::Main;
        self.asked = now;
        self.steps.push(Step::Asked);
        self.open(self.page.main_bytes, now);
    }

    /// Asks for what the main object refers to.
    fn ask_for_objects(&mut self, now: Time) {
        self.stage = Stage::Objects;
        self.waiting = std::mem::take(&mut self.page.objects_bytes).into();
        if self.waiting.is_empty() {
            return self.end(now);
        }
        if self.multiplexed {
            while let Some(bytes) = self.waiting.pop_front() {
                self.ask(0, bytes, now);
            }
            return;
        }
        for line in 0..self.connections {
            let Some(bytes) = self.waiting.pop_front() else { break };
            if line == 0 { self.ask(0, bytes, now) } else { self.open(bytes, now) }
        }
    }

    /// The page is whole.
    fn end(&mut self, now: Time) {
        self.steps.push(Step::Loaded { after: now.since(self.asked) });
        self.close();
        let until = now + self.page.think.max(Span::from_us(1));
        self.stage = Stage::Reading(until);
        self.wake(until);
    }

    fn close(&mut self) {
        let lines = self.lines.drain(..);
        self.steps.extend(lines.map(|line| Step::Close { connection: line.connection }));
    }

    /// Opens a connection with the request for an object.
    fn open(&mut self, bytes: u64, now: Time) {
        let repeat_at = now + FIRST_TIMEOUT;
        self.steps.push(Step::Open { line: self.lines.len() });
        self.lines.push(Line {
            connection: u32::MAX,
            asked_bytes: vec![bytes],
            reached: 0,
            whole: 0,
            repeat_at,
            timeout: FIRST_TIMEOUT,
        });
        self.wake(repeat_at);
    }

    /// Asks for another object over a connection.
    fn ask(&mut self, at: usize, bytes: u64, now: Time) {
        let line = &mut self.lines[at];
        let number = line.asked_bytes.len() as u32;
        line.asked_bytes.push(bytes);
        line.repeat_at = now + line.timeout;
        let (connection, repeat_at) = (line.connection, line.repeat_at);
        self.steps.push(Step::Send { connection, number });
        self.wake(repeat_at);
    }

    /// Repeats the requests that have not reached the server, which takes them in order, and waits twice
    /// as long for the next time (RFC 6298 §5.5).
    fn repeat(&mut self, at: usize, now: Time) {
        let line = &mut self.lines[at];
        let numbers = line.reached..line.asked_bytes.len() as u32;
        if numbers.is_empty() {
            line.repeat_at = Time::NEVER;
            return;
        }
        line.timeout = (line.timeout + line.timeout).min(LONGEST_TIMEOUT);
        line.repeat_at = now + line.timeout;
        let (connection, repeat_at) = (line.connection, line.repeat_at);
        self.steps.extend(numbers.map(|number| Step::Send { connection, number }));
        self.wake(repeat_at);
    }

    fn wake(&mut self, at: Time) {
        self.steps.push(Step::Wake { at });
    }
}
