//! Captures that somebody took, measured for Python.

use std::path::PathBuf;

use jostle_dissect::{Error, Kind, Options, Wanted};
use jostle_record::MeasuredFile;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::record::{Columns, Record};
use crate::run::{Cancelled, Watch};

/// What was measured of captures that belong together.
#[pyclass(frozen, module = "jostle._core")]
pub struct Measurement {
    /// The files, as positions of what was given.
    #[pyo3(get)]
    files: Vec<usize>,
    /// What stands for the specification of a run, as JSON.
    #[pyo3(get)]
    spec: String,
    /// The measures and all columns.
    #[pyo3(get)]
    record: Py<Record>,
    /// What a reader should know.
    #[pyo3(get)]
    notes: Vec<String>,
    /// Packets in the files.
    #[pyo3(get)]
    packets: u64,
}

/// Measures captures (pcap or pcapng, plain or compressed by gzip or zstd).
///
/// Parameters
/// ----------
/// files : list of path
///     Captures; those that belong together become one measurement.
/// flows : int
///     Most flows of a measurement, the largest ones.
/// interval_ns : int
///     Bin of the series.
/// told : callable or None
///     Called every now and then with the bytes read so far (each file is read twice); true stops.
///
/// Raises
/// ------
/// ValueError
///     If a file is no capture, or has nothing that can be measured.
/// OSError
///     If a file cannot be read.
/// Cancelled
///     If `told` said so.
#[pyfunction]
#[pyo3(signature = (files, *, flows, interval_ns, told=None))]
pub fn analyze_captures(
    py: Python<'_>,
    files: Vec<PathBuf>,
    flows: usize,
    interval_ns: u64,
    told: Option<Py<PyAny>>,
) -> PyResult<Vec<Measurement>> {
    let named = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (path, MeasuredFile { name, sha256: String::new() })
    };
    let files: Vec<_> = files.into_iter().map(named).collect();
    let options = Options { flows: flows.max(1), interval_ns: interval_ns.max(1) };
    let found = watched(py, told, |go_on| jostle_dissect::analyze(&files, &options, go_on))?;
    let made = found.into_iter().map(|one| {
        let spec = serde_json::to_string(&one.spec)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let record = Py::new(py, Record::new(py, one.record)?)?;
        let jostle_dissect::Measurement { files, notes, packets, .. } = one;
        Ok(Measurement { files, spec, record, notes, packets })
    });
    made.collect()
}

/// Reads, while `told` is asked whether to go on; other threads of Python run meanwhile.
fn watched<T: Send>(
    py: Python<'_>,
    told: Option<Py<PyAny>>,
    read: impl FnOnce(&dyn Fn(u64) -> bool) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let (found, raised) = py.detach(|| {
        let watch = Watch::new(None);
        let go_on = |bytes| {
            !watch.is_cancelled_with(|py| match &told {
                Some(told) => told.bind(py).call1((bytes,))?.is_truthy(),
                None => Ok(false),
            })
        };
        let found = read(&go_on);
        (found, watch.take_raised())
    });
    match (found, raised) {
        (_, Some(raised)) => Err(raised),
        (Err(error @ Error::Cancelled), None) => Err(Cancelled::new_err(error.to_string())),
        (Err(error @ Error::Read { .. }), None) => Err(PyOSError::new_err(error.to_string())),
        (Err(error), None) => Err(PyValueError::new_err(error.to_string())),
        (Ok(found), None) => Ok(found),
    }
}

/// A flow, packet by packet. Bytes count from the first one of data.
#[pyclass(frozen, module = "jostle._core")]
pub struct Diagram {
    /// The file, as a position of what was given.
    #[pyo3(get)]
    file: usize,
    /// Name of the flow.
    #[pyo3(get)]
    flow: String,
    /// Its controller, if the file says it.
    #[pyo3(get)]
    controller: String,
    /// It was captured near the sender.
    #[pyo3(get)]
    is_near_sender: bool,
    /// When the flow began.
    #[pyo3(get)]
    start_ns: u64,
    /// Part of the clock that the tables cover.
    #[pyo3(get)]
    from_ns: u64,
    #[pyo3(get)]
    to_ns: u64,
    /// There were more rows: `to_ns` is earlier than asked for.
    #[pyo3(get)]
    is_cut: bool,
    /// Names of what `packets["kind"]` counts.
    #[pyo3(get)]
    kinds: Vec<&'static str>,
    /// Packets of data: `time_ns`, `start`, `end`, `kind`.
    #[pyo3(get)]
    packets: Py<PyDict>,
    /// Segments of the receiver: `time_ns`, `acknowledged`, `edge` (NaN where it is not known).
    #[pyo3(get)]
    answers: Py<PyDict>,
    /// Blocks of selective acknowledgements: `time_ns`, `start`, `end`, `is_duplicate`.
    #[pyo3(get)]
    sacks: Py<PyDict>,
}

impl Diagram {
    fn new(py: Python<'_>, one: jostle_dissect::Diagram) -> PyResult<Self> {
        let packets = Columns::new(py)
            .with("time_ns", one.packets.time_ns)?
            .with("start", one.packets.start)?
            .with("end", one.packets.end)?
            .with("kind", one.packets.kind)?;
        let answers = Columns::new(py)
            .with("time_ns", one.answers.time_ns)?
            .with("acknowledged", one.answers.acknowledged)?
            .with("edge", one.answers.edge)?;
        let sacks = Columns::new(py)
            .with("time_ns", one.sacks.time_ns)?
            .with("start", one.sacks.start)?
            .with("end", one.sacks.end)?
            .with("is_duplicate", one.sacks.is_duplicate)?;
        Ok(Self {
            file: one.file,
            flow: one.flow,
            controller: one.controller,
            is_near_sender: one.is_near_sender,
            start_ns: one.start_ns,
            from_ns: one.from_ns,
            to_ns: one.to_ns,
            is_cut: one.is_cut,
            kinds: Kind::NAMES.to_vec(),
            packets: packets.finish(),
            answers: answers.finish(),
            sacks: sacks.finish(),
        })
    }
}

/// Reads a TCP flow of captures packet by packet: what a time–sequence diagram is drawn from.
///
/// Parameters
/// ----------
/// files : list of path
///     Captures; of those that belong together the one near the flow's sender is read.
/// flow : str or None
///     Its name; of each measurement the flow with the most payload if none is given.
/// from_ns, to_ns : int
///     A window on the clock of the measurement, its end excluded.
/// rows : int
///     Rows of each table at most.
/// flows : int
///     Most flows of a measurement, the largest ones, among which the flow is.
/// told : callable or None
///     As in `analyze_captures`.
///
/// Returns
/// -------
/// list of Diagram
///     Of each measurement that has the flow.
///
/// Raises
/// ------
/// ValueError
///     If a file is no capture, or none has the flow.
/// OSError
///     If a file cannot be read.
/// Cancelled
///     If `told` said so.
#[pyfunction]
#[pyo3(signature = (files, *, flow, from_ns, to_ns, rows, flows, told=None))]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub fn sequence_diagrams(
    py: Python<'_>,
    files: Vec<PathBuf>,
    flow: Option<String>,
    from_ns: u64,
    to_ns: u64,
    rows: usize,
    flows: usize,
    told: Option<Py<PyAny>>,
) -> PyResult<Vec<Diagram>> {
    let options = Options { flows: flows.max(1), ..Options::default() };
    let wanted = Wanted { flow, from_ns, to_ns, rows };
    let found =
        watched(py, told, |go_on| jostle_dissect::diagrams(&files, &options, &wanted, go_on))?;
    found.into_iter().map(|one| Diagram::new(py, one)).collect()
}
