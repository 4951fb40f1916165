//! Applications of a run, for backends that own sockets, threads and clocks.
//!
//! Times are in ns of the run.

use std::sync::Arc;

use jostle_run_spec::{Arrivals, FlowSpec, RunSpec, nth_connection};
use jostle_traffic::{
    Action, BrowserAction, DatagramTimes, PageRecord, Reader, SocketApplication, WebBrowser,
};
use jostle_units::{ConnectionId, FlowId, Time};
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;

use crate::run::parse;

/// Applications of a run.
///
/// Parameters
/// ----------
/// spec_json : str
///     The RunSpec.
///
/// Raises
/// ------
/// ValueError
///     If it is not valid.
#[pyclass(frozen, module = "jostle._core")]
pub struct Traffic(Arc<RunSpec>);

#[pymethods]
impl Traffic {
    #[new]
    fn new(spec_json: &str) -> PyResult<Self> {
        parse(spec_json).map(|spec| Self(Arc::new(spec)))
    }

    /// Returns the application of a flow, or of one of its connections.
    #[pyo3(signature = (flow, connection=None))]
    fn application(&self, flow: usize, connection: Option<u32>) -> PyResult<Application> {
        let flow = self.flow(flow)?;
        let connection = connection.map(|number| nth_connection(flow, number));
        Ok(Application(SocketApplication::new(connection.as_ref().unwrap_or(flow), &self.0)))
    }

    /// Returns the times at which the connections of a flow open during the run.
    fn arrivals_ns(&self, flow: usize) -> PyResult<Vec<u64>> {
        let arrivals = Arrivals::of(self.flow(flow)?, &self.0);
        let end = Time::from_ns(self.0.duration_ns);
        let stop = self.flow(flow)?.stop_ns.map_or(Time::NEVER, Time::from_ns);
        let times =
            arrivals.into_iter().flat_map(|mut it| std::iter::repeat_with(move || it.next_at()));
        Ok(times.take_while(|at| *at < end.min(stop)).map(Time::as_ns).collect())
    }

    /// Returns the departure times of a flow's datagrams, beginning at `start_ns`.
    fn datagram_times(&self, flow: usize, start_ns: u64) -> PyResult<Departures> {
        DatagramTimes::new(&self.flow(flow)?.source, Time::from_ns(start_ns))
            .map(Departures)
            .ok_or_else(|| PyValueError::new_err("the flow sends no datagrams"))
    }

    /// Returns the slow application at a flow's receiver; None if it reads at once.
    fn reader(&self, flow: usize) -> PyResult<Option<SlowReader>> {
        Ok(self.flow(flow)?.reader.as_ref().map(|reader| SlowReader(Reader::new(reader))))
    }

    /// Returns the browser of a flow.
    fn browser(&self, flow: usize) -> PyResult<Browser> {
        let number = u32::try_from(flow)?;
        let browser = WebBrowser::of(FlowId(number), self.flow(flow)?, self.0.seed)
            .ok_or_else(|| PyValueError::new_err("the flow has no browser"))?;
        Ok(Browser { browser, pages: Vec::new() })
    }
}

impl Traffic {
    fn flow(&self, number: usize) -> PyResult<&FlowSpec> {
        self.0.flows.get(number).ok_or_else(|| PyIndexError::new_err("there is no such flow"))
    }
}

/// Action of an application.
#[pyclass(frozen, get_all, module = "jostle._core")]
pub struct Step {
    /// Whether the application waits before its connection opens.
    waits: bool,
    /// Number of bytes to write.
    write_bytes: Option<u64>,
    /// Whether to write without limit.
    writes_forever: bool,
    /// Whether no message follows before the written bytes are acknowledged.
    is_last: bool,
    /// Time of the next action; None if that depends on acknowledgements or requests.
    next_ns: Option<u64>,
}

/// Application of a connection.
#[pyclass(module = "jostle._core")]
pub struct Application(SocketApplication);

#[pymethods]
impl Application {
    /// Whether the receiver requests each message after the first.
    #[getter]
    fn is_requested_by_receiver(&self) -> bool {
        self.0.is_requested_by_receiver()
    }

    /// Acts when the connection opens, and at each time that the application asked for.
    fn act(&mut self, now_ns: u64) -> Step {
        let (action, next) = self.0.act(Time::from_ns(now_ns));
        let (write_bytes, is_last) = match action {
            Action::Write(bytes) => (Some(bytes), true),
            Action::Append { bytes, last } => (Some(bytes), last),
            _ => (None, false),
        };
        Step {
            waits: action == Action::Wait,
            write_bytes,
            writes_forever: action == Action::WriteForever,
            is_last,
            next_ns: time_ns(next),
        }
    }

    /// Handles the acknowledgement of all messages.
    ///
    /// Returns
    /// -------
    /// int or None
    ///     Time of the next action; None after the last message.
    fn on_acknowledged(&mut self, now_ns: u64, retransmitted_packets: u64) -> Option<u64> {
        self.0.on_acknowledged(Time::from_ns(now_ns), retransmitted_packets).map(Time::as_ns)
    }

    /// Returns the size of the next message that the receiver waits for; None if there is none.
    fn next_message_bytes(&mut self) -> Option<u64> {
        self.0.next_message_bytes()
    }

    /// Handles the completion of the oldest message at the receiver.
    ///
    /// Returns
    /// -------
    /// int or None
    ///     Time at which the receiver requests the next message; None if it requests none.
    fn on_received(&mut self, now_ns: u64) -> Option<u64> {
        self.0.on_received(Time::from_ns(now_ns)).map(Time::as_ns)
    }

    /// Returns the log of all messages, for `record_of_samples`.
    fn messages(&self, retransmitted_packets: u64) -> PyResult<String> {
        json(&self.0.messages(retransmitted_packets))
    }
}

/// Slow application at a receiver.
#[pyclass(module = "jostle._core")]
pub struct SlowReader(Reader);

#[pymethods]
impl SlowReader {
    /// Maximum number of bytes of one read.
    #[getter]
    fn read_bytes(&self) -> u64 {
        self.0.read_bytes()
    }

    /// Returns the time at which it reads data that are available at `now_ns`.
    fn next_read_ns(&self, now_ns: u64) -> u64 {
        self.0.next_read(Time::from_ns(now_ns)).as_ns()
    }

    /// Handles a read of a number of bytes.
    fn on_read(&mut self, now_ns: u64, size_bytes: u64) {
        self.0.on_read(Time::from_ns(now_ns), size_bytes);
    }
}

/// Departure times of datagrams.
#[pyclass(module = "jostle._core")]
pub struct Departures(DatagramTimes);

#[pymethods]
impl Departures {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&mut self) -> Option<u64> {
        self.0.next().map(Time::as_ns)
    }
}

/// Web browser.
#[pyclass(module = "jostle._core")]
pub struct Browser {
    browser: WebBrowser,
    pages: Vec<PageRecord>,
}

/// Name of a step of a browser, and its line, connection or time.
type BrowserStep = (&'static str, u64);

#[pymethods]
impl Browser {
    /// Size of a request.
    #[getter]
    fn request_bytes(&self) -> u16 {
        self.browser.request_bytes
    }

    /// Starts the browser, or performs what is due.
    ///
    /// Returns
    /// -------
    /// list of tuple
    ///     Steps: `("open", line)`, `("send", connection)`, `("close", connection)`,
    ///     `("wake", time)`, and `("finish", 0)` after the last page.
    fn on_time(&mut self, now_ns: u64) -> Vec<BrowserStep> {
        self.browser.on_time(Time::from_ns(now_ns));
        self.steps(now_ns)
    }

    /// Assigns the number `connection` to an opened `line`.
    fn opened(&mut self, line: usize, connection: u32) {
        self.browser.opened(line, ConnectionId(connection));
    }

    /// Returns the size of the object of a request that reached the server; None if the page was
    /// abandoned.
    fn on_request(&mut self, connection: u32) -> Option<u64> {
        self.browser.reached(ConnectionId(connection))
    }

    /// Handles an object that is complete at the browser; returns steps, as `on_time`.
    fn on_object(&mut self, connection: u32, now_ns: u64) -> Vec<BrowserStep> {
        let now = Time::from_ns(now_ns);
        self.browser.on_objects_complete(ConnectionId(connection), 1, now);
        self.steps(now_ns)
    }

    /// Returns the size of the oldest object that was requested on a connection and is not
    /// complete; None if there is none.
    fn awaited_bytes(&self, connection: u32) -> Option<u64> {
        self.browser.awaited_bytes(ConnectionId(connection))
    }

    /// Stops the browser, which abandons its page; returns steps, as `on_time`.
    fn stop(&mut self) -> Vec<BrowserStep> {
        self.browser.stop();
        self.steps(0)
    }

    /// Returns the log of all pages, for `record_of_samples`.
    fn pages(&self) -> PyResult<String> {
        json(&self.pages)
    }
}

impl Browser {
    /// Takes the pending actions, and logs pages.
    fn steps(&mut self, now_ns: u64) -> Vec<BrowserStep> {
        let mut steps = Vec::new();
        for action in std::mem::take(&mut self.browser.steps) {
            steps.push(match action {
                BrowserAction::Open { line } => ("open", line as u64),
                BrowserAction::Send { connection } => ("send", u64::from(connection.0)),
                BrowserAction::Close { connection } => ("close", u64::from(connection.0)),
                BrowserAction::Wake { at } => ("wake", at.as_ns()),
                BrowserAction::Finish => ("finish", 0),
                BrowserAction::Asked => {
                    self.pages.push(PageRecord { requested_ns: now_ns, load_ns: None });
                    continue;
                }
                BrowserAction::Loaded { after } => {
                    if let Some(page) = self.pages.last_mut() {
                        page.load_ns = Some(after.as_ns());
                    }
                    continue;
                }
            });
        }
        steps
    }
}

fn time_ns(at: Time) -> Option<u64> {
    (at < Time::NEVER).then(|| at.as_ns())
}

fn json(log: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(log).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
