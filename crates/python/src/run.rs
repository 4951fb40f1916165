//! Running one RunSpec for Python.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jostle_catalogue::ParameterError;
use jostle_record::capture::Capture;
use jostle_record::{NoRoom, Recorder, RunRecord, RunSpec, SpecError};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::controller::{self, Fault};
use crate::record::Record;

create_exception!(jostle._core, Cancelled, PyException, "A run was cancelled before its end.");

/// Time between two looks at whether Python wants the run no more.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How much of a spec an error message shows.
const SHOWN_BYTES: usize = 4_000;

/// Place, message and range of what is wrong with a RunSpec.
type Problem = (Option<String>, String, Option<(u64, u64, u64)>);

/// Checks a RunSpec given as JSON.
///
/// Raises
/// ------
/// ValueError
///     If it is none, or makes no sense.
#[pyfunction]
pub fn check(spec_json: &str) -> PyResult<()> {
    parse(spec_json).map(|_| ())
}

/// Finds out what is wrong with a RunSpec given as JSON.
///
/// Returns
/// -------
/// tuple or None
///     The place, such as `links[0].delay.steps[0].delay_ns` (None if the text is no RunSpec); the
///     message; and for a number out of range the number, the smallest and the largest accepted.
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
    Some((error.place(), message, range))
}

/// Runs a RunSpec given as JSON, without holding the interpreter's lock.
///
/// Parameters
/// ----------
/// spec_json : str
///     The RunSpec.
/// cancelled : callable, optional
///     Asked every 50 ms or so whether to give up.
/// capture_folder : path, optional
///     Where the packets' headers go, if the spec asks for them: an empty folder.
/// make_controller : callable, optional
///     Makes a controller that no registry has: given its name (`module:Class`), its parameters as a
///     dict, and a seed of its own, the object that has its callbacks.
///
/// Returns
/// -------
/// Record
///     Measures and columns.
///
/// Raises
/// ------
/// ValueError
///     If the spec is none, or makes no sense, or asks for a capture without a folder for it.
/// OSError
///     If the capture cannot be written.
/// Cancelled
///     If `cancelled` returned true. What it raises is passed on, as is Ctrl-C.
/// MemoryError
///     If there is no room for what the run records.
/// ControllerError
///     If a controller written in Python failed. The text names the file and the line.
/// RuntimeError
///     If the simulator failed. That is a bug; the message has all it takes to repeat it.
#[pyfunction]
#[pyo3(signature = (spec_json, cancelled=None, capture_folder=None, make_controller=None))]
pub fn run(
    py: Python<'_>,
    spec_json: &str,
    cancelled: Option<Py<PyAny>>,
    capture_folder: Option<PathBuf>,
    make_controller: Option<Py<PyAny>>,
) -> PyResult<Record> {
    let spec = parse(spec_json)?;
    // A folder is of no use to a spec that asks for nothing.
    let capture_folder = capture_folder.filter(|_| spec.capture.is_some());
    if spec.capture.is_some() && capture_folder.is_none() {
        return Err(PyValueError::new_err("`capture` needs a folder for its files"));
    }
    let record = py.detach(|| {
        let watch = Watch::new(cancelled);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            simulate(&spec, capture_folder.as_deref(), &watch, make_controller.as_ref())
        }));
        match outcome {
            Ok(Ok(record)) => Ok(record),
            Ok(Err(Failure::Run(error))) => Err(watch.explain(&error)),
            Ok(Err(Failure::Capture(error))) => Err(error.into()),
            Ok(Err(Failure::Room(error))) => Err(PyMemoryError::new_err(error.to_string())),
            Err(panic) => Err(bug(&spec, spec_json, panic.as_ref())),
        }
    })?;
    Record::new(py, record)
}

/// What stands beside results: of a run, or of what was measured without one.
pub(crate) fn parse_of_results(spec_json: &str) -> PyResult<RunSpec> {
    RunSpec::of_results(spec_json)
        .map_err(|error: SpecError| PyValueError::new_err(error.to_string()))
}

pub(crate) fn parse(spec_json: &str) -> PyResult<RunSpec> {
    RunSpec::from_json(spec_json)
        .map_err(|error: SpecError| PyValueError::new_err(error.to_string()))
}

/// Why there is no record.
enum Failure {
    Run(jostle_sim::Error),
    Capture(io::Error),
    Room(NoRoom),
}

impl From<NoRoom> for Failure {
    fn from(error: NoRoom) -> Self {
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

fn simulate(
    spec: &RunSpec,
    folder: Option<&Path>,
    watch: &Watch,
    make_controller: Option<&Py<PyAny>>,
) -> Result<RunRecord, Failure> {
    let capture = folder.map(|folder| Capture::create(spec, folder)).transpose()?;
    let broken = capture.as_ref().map(Capture::broken);
    let is_broken = || broken.as_ref().is_some_and(|broken| broken.get());
    let recorder = Recorder::with_room(spec)?;
    let shortage = recorder.shortage();
    let mut sinks = (recorder, capture);
    let python_controllers =
        |flow: &_, random| controller::create(make_controller, flow, random, &watch.fault);
    let give_up = || is_broken() || shortage.get().is_some() || watch.is_cancelled();
    let ran = jostle_sim::run_with(spec, &mut sinks, &give_up, &python_controllers);
    let (recorder, capture) = sinks;
    // What broke the capture is why the run was given up.
    if let Some(capture) = capture.filter(|_| ran.is_ok() || is_broken()) {
        capture.finish()?;
    }
    if let Some(shortage) = shortage.get() {
        return Err(shortage.into());
    }
    ran?;
    if watch.fault.is_set() {
        // It came after the last look.
        return Err(jostle_sim::Error::Cancelled.into());
    }
    Ok(recorder.finish())
}

/// Watches whether Python wants the run no more.
pub(crate) struct Watch {
    cancelled: Option<Py<PyAny>>,
    polled: Cell<Option<Instant>>,
    /// What was raised meanwhile.
    raised: RefCell<Option<PyErr>>,
    /// Of the run's controllers.
    fault: Fault,
}

impl Watch {
    pub(crate) fn new(cancelled: Option<Py<PyAny>>) -> Self {
        Self {
            cancelled,
            polled: Cell::new(None),
            raised: RefCell::new(None),
            fault: Fault::default(),
        }
    }

    /// Asks Python, unless it was asked just before: that takes the interpreter's lock.
    pub(crate) fn is_cancelled(&self) -> bool {
        let cancelled = self.cancelled.as_ref();
        self.is_cancelled_with(|py| match cancelled {
            Some(cancelled) => cancelled.bind(py).call0()?.is_truthy(),
            None => Ok(false),
        })
    }

    /// The same where something else is to be asked.
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
        let answer = Python::attach(|py| {
            py.check_signals()?;
            ask(py)
        });
        // Measured from the answer on, so that a slow one cannot bring the run to a halt.
        self.polled.set(Some(Instant::now()));
        answer.unwrap_or_else(|error| {
            self.raised.replace(Some(error));
            true
        })
    }

    /// What was raised meanwhile.
    pub(crate) fn take_raised(&self) -> Option<PyErr> {
        self.raised.take()
    }

    /// The exception for a run that ended with `error`.
    pub(crate) fn explain(&self, error: &jostle_sim::Error) -> PyErr {
        match (error, self.raised.take().or_else(|| self.fault.take())) {
            (_, Some(raised)) => raised,
            (jostle_sim::Error::Cancelled, None) => Cancelled::new_err(error.to_string()),
            (_, None) => PyValueError::new_err(error.to_string()),
        }
    }
}

/// The exception for a panic of the simulator.
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
