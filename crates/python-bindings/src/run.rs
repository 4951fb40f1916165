//! Runs one RunSpec for Python.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use jostle_controller_library::Libraries;
use jostle_metrics::{OutOfMemory, Recorder};
use jostle_pcap::CaptureSink;
use jostle_registry::ParameterError;
use jostle_run_spec::{FlowSpec, LinkSpec, RunSpec, SpecError};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::controller::{self, ControllerError, ControllerFailure};
use crate::run_record::{RunRecord, summary_text};

create_exception!(jostle._core, CancelledError, PyException, "A run was cancelled before its end.");

/// Time between two polls of Python for cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Number of polls of a simulation, several per millisecond, between two readings of the clock.
const POLLS_PER_CLOCK_READING: u32 = 8;
/// Maximum length of a spec in an error message.
const SHOWN_BYTES: usize = 4_000;

/// Location, message and accepted range of an error in a RunSpec.
type Problem = (Option<String>, String, Option<(u64, u64, u64)>);

/// Checks a RunSpec given as JSON.
///
/// Raises
/// ------
/// ValueError
///     If it is not valid.
#[pyfunction]
pub fn check(spec_json: &str) -> PyResult<()> {
    parse(spec_json).map(|_| ())
}

/// Returns the first error in a RunSpec given as JSON.
///
/// Returns
/// -------
/// tuple or None
///     The location, such as `links[0].delay.steps[0].delay_ns` (None if the text is no RunSpec);
///     the message; and for a number out of range the number, the minimum and the maximum.
#[pyfunction]
pub fn find_problem(spec_json: &str) -> Option<Problem> {
    let error = RunSpec::from_json(spec_json).err()?;
    let range = match error {
        SpecError::Range { given, min, max, .. } => Some((given, min, max)),
        _ => None,
    };
    let message = match &error {
        SpecError::Unfit { given, expected, .. } => {
            format!("cannot be {given} — expected {expected}")
        }
        SpecError::Range { given, min, max, .. } => {
            format!("cannot be {given} — expected {min} to {max}")
        }
        SpecError::Parameter { source: ParameterError::Unfit { given, expected, .. }, .. } => {
            format!("cannot be {given} — expected {expected}")
        }
        SpecError::Parameter { source, .. } => source.to_string(),
        SpecError::Json(_) => error.to_string(),
    };
    Some((error.path(), message, range))
}

/// Returns the service of a link of a RunSpec, given as JSON.
///
/// Returns
/// -------
/// int or None
///     In bit/s; None if it varies.
///
/// Raises
/// ------
/// ValueError
///     If it is no link.
#[pyfunction]
pub fn constant_service_bps(link_json: &str) -> PyResult<Option<u64>> {
    let link: LinkSpec = serde_json::from_str(link_json)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(link.constant_service().map(|service| service.rate_bps))
}

/// Runs a RunSpec given as JSON, without holding the GIL.
///
/// Parameters
/// ----------
/// spec_json : str
///     The RunSpec.
/// cancelled : callable, optional
///     Polled about every 50 ms; return true to stop.
/// capture_folder : path, optional
///     Empty folder for the capture files, if the spec requests captures.
/// make_controller : callable, optional
///     Creates a controller that is not in the registry. Called with its name (`module:Class`), its
///     parameters as a dict, and a seed; returns the object with the callbacks.
/// libraries : dict, optional
///     Files of the shared libraries of controllers `crate:NAME`, by the digest of their source.
///
/// Returns
/// -------
/// Record
///     Summary and time series.
///
/// Raises
/// ------
/// ValueError
///     If the spec is not valid, or requests a capture without `capture_folder`.
/// OSError
///     If the capture cannot be written.
/// CancelledError
///     If `cancelled` returned true. Exceptions of `cancelled` and Ctrl-C are propagated.
/// MemoryError
///     If there is not enough memory for the record of the run.
/// ControllerError
///     If a user's controller failed. The message names the file and the line.
/// RuntimeError
///     If the simulator failed because of a bug. The message contains all data to reproduce it.
#[pyfunction]
#[pyo3(signature = (spec_json, cancelled=None, capture_folder=None, make_controller=None, libraries=None))]
pub fn run(
    py: Python<'_>,
    spec_json: &str,
    cancelled: Option<Py<PyAny>>,
    capture_folder: Option<PathBuf>,
    make_controller: Option<Py<PyAny>>,
    libraries: Option<BTreeMap<String, PathBuf>>,
) -> PyResult<RunRecord> {
    let own = (make_controller, Libraries::new(libraries.unwrap_or_default()));
    let spec = parse(spec_json)?;
    // Ignored if the spec does not request a capture.
    let folder = capture_folder.as_deref().filter(|_| spec.capture.is_some());
    if spec.capture.is_some() && folder.is_none() {
        return Err(PyValueError::new_err("`capture` needs a folder for its files"));
    }
    let record = attempt(py, (&spec, spec_json), cancelled, &own, |watch, own| {
        let recorder = Recorder::try_new(&spec)?;
        Ok(simulate(&spec, recorder, folder, watch, own)?.finish())
    })?;
    RunRecord::new(py, record)
}

/// Runs a RunSpec without a capture, and returns its summary alone as canonical JSON; see `run`.
#[pyfunction]
#[pyo3(signature = (spec_json, cancelled=None, make_controller=None, libraries=None))]
pub fn run_summary(
    py: Python<'_>,
    spec_json: &str,
    cancelled: Option<Py<PyAny>>,
    make_controller: Option<Py<PyAny>>,
    libraries: Option<BTreeMap<String, PathBuf>>,
) -> PyResult<String> {
    let own = (make_controller, Libraries::new(libraries.unwrap_or_default()));
    let spec = parse(spec_json)?;
    let summary = attempt(py, (&spec, spec_json), cancelled, &own, |watch, own| {
        let recorder = Recorder::try_new(&spec)?.without_series();
        Ok(simulate(&spec, recorder, None, watch, own)?.finish_summary())
    })?;
    drop(spec);
    summary_text(&summary)
}

/// Carries out a run without holding the GIL. Its failures become exceptions.
fn attempt<T: Send>(
    py: Python<'_>,
    (spec, spec_json): (&RunSpec, &str),
    cancelled: Option<Py<PyAny>>,
    (make, libraries): &(Option<Py<PyAny>>, Libraries),
    carry_out: impl FnOnce(&CancellationCheck, &UserControllers<'_>) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    py.detach(|| {
        let watch = CancellationCheck::new(cancelled);
        let own = UserControllers { make: make.as_ref(), libraries };
        match catch_unwind(AssertUnwindSafe(|| carry_out(&watch, &own))) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(Failure::Run(error))) => Err(watch.explain(&error)),
            Ok(Err(Failure::Capture(error))) => Err(error.into()),
            Ok(Err(Failure::Controller(text))) => Err(ControllerError::new_err(text)),
            Ok(Err(Failure::Room(error))) => Err(PyMemoryError::new_err(error.to_string())),
            Err(panic) => Err(bug(spec, spec_json, panic.as_ref())),
        }
    })
}

/// Parses the specification of stored results: of a run, or of measurements without one.
pub(crate) fn parse_of_results(spec_json: &str) -> PyResult<RunSpec> {
    RunSpec::of_results(spec_json)
        .map_err(|error: SpecError| PyValueError::new_err(error.to_string()))
}

pub(crate) fn parse(spec_json: &str) -> PyResult<RunSpec> {
    RunSpec::from_json(spec_json)
        .map_err(|error: SpecError| PyValueError::new_err(error.to_string()))
}

/// Reason why a run returned no record.
enum Failure {
    Run(jostle_sim::Error),
    Capture(io::Error),
    /// A controller of a library failed.
    Controller(String),
    Room(OutOfMemory),
}

impl From<OutOfMemory> for Failure {
    fn from(error: OutOfMemory) -> Self {
        Self::Room(error)
    }
}

impl From<jostle_sim::Error> for Failure {
    fn from(error: jostle_sim::Error) -> Self {
        Self::Run(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Capture(error)
    }
}

/// Where the controllers that are not in the registry come from.
struct UserControllers<'a> {
    make: Option<&'a Py<PyAny>>,
    libraries: &'a Libraries,
}

/// Runs a spec, and returns its recorder.
fn simulate(
    spec: &RunSpec,
    recorder: Recorder,
    folder: Option<&Path>,
    watch: &CancellationCheck,
    own: &UserControllers<'_>,
) -> Result<Recorder, Failure> {
    let capture = folder.map(|folder| CaptureSink::create(spec, folder)).transpose()?;
    let broken = capture.as_ref().map(CaptureSink::broken);
    let is_broken = || broken.as_ref().is_some_and(|broken| broken.load(Ordering::Relaxed));
    let shortage = recorder.shortage();
    let mut sinks = (recorder, capture);
    let user_controllers =
        |flow: &FlowSpec, random| match flow.controller.crate_controller().is_some() {
            true => own.libraries.create(flow, spec.seed),
            false => controller::create(own.make, flow, random, &watch.fault),
        };
    let failure = own.libraries.failure();
    let polls = Cell::new(0_u32);
    let is_due = || {
        polls.set(polls.get().wrapping_add(1));
        polls.get().is_multiple_of(POLLS_PER_CLOCK_READING)
    };
    let give_up = || {
        is_broken()
            || shortage.get().is_some()
            || failure.is_set()
            || watch.fault.is_set()
            || (is_due() && watch.is_cancelled())
    };
    let ran = jostle_sim::run_with(spec, &mut sinks, &give_up, &user_controllers);
    let (recorder, capture) = sinks;
    // If the run was stopped because of the capture, `finish` returns the I/O error.
    if let Some(capture) = capture.filter(|_| ran.is_ok() || is_broken()) {
        capture.finish()?;
    }
    if let Some(shortage) = shortage.get() {
        return Err(shortage.into());
    }
    if let Some(text) = failure.text() {
        return Err(Failure::Controller(text.to_owned()));
    }
    ran?;
    if watch.fault.is_set() {
        // The controller failed after the last poll.
        return Err(jostle_sim::Error::Cancelled.into());
    }
    Ok(recorder)
}

/// Polls Python for cancellation of a run.
pub(crate) struct CancellationCheck {
    cancelled: Option<Py<PyAny>>,
    polled: Cell<Option<Instant>>,
    /// Exception raised during a poll.
    raised: RefCell<Option<PyErr>>,
    /// Failure of the run's controllers.
    fault: ControllerFailure,
}

impl CancellationCheck {
    pub(crate) fn new(cancelled: Option<Py<PyAny>>) -> Self {
        Self {
            cancelled,
            polled: Cell::new(None),
            raised: RefCell::new(None),
            fault: ControllerFailure::default(),
        }
    }

    /// Creates a check whose first poll is after [`POLL_INTERVAL`], for short tasks.
    #[expect(clippy::disallowed_methods, reason = "how long a person waits is no virtual time")]
    pub(crate) fn from_now() -> Self {
        let watch = Self::new(None);
        watch.polled.set(Some(Instant::now()));
        watch
    }

    /// Returns whether to stop. Polls Python at most once per [`POLL_INTERVAL`], because that takes
    /// the GIL.
    pub(crate) fn is_cancelled(&self) -> bool {
        let cancelled = self.cancelled.as_ref();
        self.is_cancelled_with(|py| match cancelled {
            Some(cancelled) => cancelled.bind(py).call0()?.is_truthy(),
            None => Ok(false),
        })
    }

    /// Like [`Self::is_cancelled`], with `ask` as the poll.
    #[expect(clippy::disallowed_methods, reason = "how long a person waits is no virtual time")]
    pub(crate) fn is_cancelled_with(
        &self,
        ask: impl FnOnce(Python<'_>) -> PyResult<bool> + Send,
    ) -> bool {
        if self.fault.is_set() {
            return true;
        }
        if self.polled.get().is_some_and(|polled| polled.elapsed() < POLL_INTERVAL) {
            return false;
        }
        let is_cancelled = Python::attach(|py| {
            py.check_signals()?;
            ask(py)
        });
        // The interval starts after the poll, so that a slow callback does not stop the progress of
        // the run.
        self.polled.set(Some(Instant::now()));
        is_cancelled.unwrap_or_else(|error| {
            self.raised.replace(Some(error));
            true
        })
    }

    /// Takes the exception raised during a poll.
    pub(crate) fn take_raised(&self) -> Option<PyErr> {
        self.raised.take()
    }

    /// Returns the exception for a run that ended with `error`.
    pub(crate) fn explain(&self, error: &jostle_sim::Error) -> PyErr {
        match (error, self.raised.take().or_else(|| self.fault.error())) {
            (_, Some(raised)) => raised,
            (jostle_sim::Error::Cancelled, None) => CancelledError::new_err(error.to_string()),
            (_, None) => PyValueError::new_err(error.to_string()),
        }
    }
}

/// Returns the exception for a panic of the simulator.
fn bug(spec: &RunSpec, spec_json: &str, panic: &(dyn Any + Send)) -> PyErr {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    let end = spec_json.floor_char_boundary(SHOWN_BYTES);
    let more = if end < spec_json.len() { " …" } else { "" };
    PyRuntimeError::new_err(format!(
        "a bug in jostle's engine {}: {message}; seed {}, spec {}{more}",
        env!("JOSTLE_ENGINE_VERSION"),
        spec.seed,
        &spec_json[..end],
    ))
}
