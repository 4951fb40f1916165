//! Analysis of packet captures, for Python.

use std::path::PathBuf;

use jostle_pcap_analysis::{AnalysisOptions, Error, Kind, TimeSequenceOptions};
use jostle_run_spec::MeasuredFile;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::run::{CancellationCheck, CancelledError};
use crate::run_record::{Columns, RunRecord};

/// Measures of one capture, or of captures that belong together.
#[pyclass(frozen, module = "jostle._core")]
pub struct Measurement {
    /// Indices of the files in the list passed to `analyze_captures`.
    #[pyo3(get)]
    files: Vec<usize>,
    /// Run specification that describes the flows, as JSON.
    #[pyo3(get)]
    spec: String,
    /// Summary and time series.
    #[pyo3(get)]
    record: Py<RunRecord>,
    /// Notes for the user, for example about truncated files.
    #[pyo3(get)]
    notes: Vec<String>,
    /// Number of packets in the files.
    #[pyo3(get)]
    packets: u64,
}

/// Kinds of formats of captures with the formats of each kind that are read, for the documentation.
#[pyfunction]
pub fn capture_formats() -> Vec<(&'static str, Vec<String>)> {
    jostle_pcap_analysis::formats()
}

/// Measures packet captures, plain or compressed with gzip or zstd.
///
/// Parameters
/// ----------
/// files : list of path
///     Captures. Captures of both ends of a connection become one measurement.
/// flows : int
///     Maximum number of flows per measurement. The largest ones are measured.
/// interval_ns : int
///     Sampling interval of the time series.
/// progress_callback : callable or None
///     Called regularly with the bytes read so far (each file is read twice). Return true to stop.
///
/// Raises
/// ------
/// ValueError
///     If a file is not a capture, or contains no flow with data.
/// OSError
///     If a file cannot be read.
/// CancelledError
///     If `progress_callback` returned true.
#[pyfunction]
#[pyo3(signature = (files, *, flows, interval_ns, progress_callback=None))]
pub fn analyze_captures(
    py: Python<'_>,
    files: Vec<PathBuf>,
    flows: usize,
    interval_ns: u64,
    progress_callback: Option<Py<PyAny>>,
) -> PyResult<Vec<Measurement>> {
    let named = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (path, MeasuredFile { name, sha256: String::new() })
    };
    let files: Vec<_> = files.into_iter().map(named).collect();
    let options = AnalysisOptions { flows: flows.max(1), interval_ns: interval_ns.max(1) };
    let analyzed = watched(py, progress_callback, |go_on| {
        jostle_pcap_analysis::analyze(&files, &options, go_on)
    })?;
    let measurements = analyzed.into_iter().map(|one| {
        let spec = serde_json::to_string(&one.spec)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let record = Py::new(py, RunRecord::new(py, one.record)?)?;
        let jostle_pcap_analysis::Measurement { files, notes, packets, .. } = one;
        Ok(Measurement { files, spec, record, notes, packets })
    });
    measurements.collect()
}

/// Runs `read` without the GIL, and calls `progress_callback` regularly.
fn watched<T: Send>(
    py: Python<'_>,
    progress_callback: Option<Py<PyAny>>,
    read: impl FnOnce(&dyn Fn(u64) -> bool) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let (found, raised) = py.detach(|| {
        let watch = CancellationCheck::new(None);
        let go_on = |bytes| {
            !watch.is_cancelled_with(|py| match &progress_callback {
                Some(progress_callback) => progress_callback.bind(py).call1((bytes,))?.is_truthy(),
                None => Ok(false),
            })
        };
        let found = read(&go_on);
        (found, watch.take_raised())
    });
    match (found, raised) {
        (_, Some(raised)) => Err(raised),
        (Err(error @ Error::Cancelled), None) => Err(CancelledError::new_err(error.to_string())),
        (Err(error @ Error::Read { .. }), None) => Err(PyOSError::new_err(error.to_string())),
        (Err(error), None) => Err(PyValueError::new_err(error.to_string())),
        (Ok(found), None) => Ok(found),
    }
}

/// Packets and ACKs of one flow. Bytes are counted from the first byte of data.
#[pyclass(frozen, module = "jostle._core")]
pub struct TimeSequence {
    /// Index of the file in the list of files.
    #[pyo3(get)]
    file: usize,
    /// Name of the flow.
    #[pyo3(get)]
    flow: String,
    /// Congestion controller, if the file names it, else `unknown`.
    #[pyo3(get)]
    controller: String,
    /// Whether it was captured near the sender.
    #[pyo3(get)]
    is_near_sender: bool,
    /// Start of the flow.
    #[pyo3(get)]
    start_ns: u64,
    /// Start of the time that the tables cover; `to_ns` is its end.
    #[pyo3(get)]
    from_ns: u64,
    #[pyo3(get)]
    to_ns: u64,
    /// Whether rows were omitted because a table was full. Then `to_ns` is earlier than requested.
    #[pyo3(get)]
    is_cut: bool,
    /// Names of the codes in `packets["kind"]`.
    #[pyo3(get)]
    kinds: Vec<&'static str>,
    /// Data packets: `time_ns`, `start`, `end`, `kind`.
    #[pyo3(get)]
    packets: Py<PyDict>,
    /// ACKs of the receiver: `time_ns`, `acknowledged`, `edge` (NaN if the window scale is
    /// unknown).
    #[pyo3(get)]
    answers: Py<PyDict>,
    /// SACK blocks: `time_ns`, `start`, `end`, `is_duplicate`.
    #[pyo3(get)]
    sacks: Py<PyDict>,
}

impl TimeSequence {
    fn new(py: Python<'_>, one: jostle_pcap_analysis::TimeSequence) -> PyResult<Self> {
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

/// Reads the packets and ACKs of TCP flows in captures, the data of time–sequence diagrams.
///
/// Parameters
/// ----------
/// files : list of path
///     Captures. If both ends were captured, the capture near the flow's sender is used.
/// flow : str or None
///     Name of the flow. None: the largest TCP flow of each file.
/// from_ns, to_ns : int
///     Time window on the clock of the measurement; the end is exclusive.
/// rows : int
///     Maximum number of rows per table.
/// flows : int
///     Maximum number of flows per measurement. The flow must be among the largest ones.
/// progress_callback : callable or None
///     As in `analyze_captures`.
///
/// Returns
/// -------
/// list of TimeSequence
///     The flow in each measurement that contains it.
///
/// Raises
/// ------
/// ValueError
///     If a file is not a capture, or none contains the flow.
/// OSError
///     If a file cannot be read.
/// CancelledError
///     If `progress_callback` returned true.
#[pyfunction]
#[pyo3(signature = (files, *, flow, from_ns, to_ns, rows, flows, progress_callback=None))]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub fn sequence_diagrams(
    py: Python<'_>,
    files: Vec<PathBuf>,
    flow: Option<String>,
    from_ns: u64,
    to_ns: u64,
    rows: usize,
    flows: usize,
    progress_callback: Option<Py<PyAny>>,
) -> PyResult<Vec<TimeSequence>> {
    let options = AnalysisOptions { flows: flows.max(1), ..AnalysisOptions::default() };
    let wanted = TimeSequenceOptions { flow, from_ns, to_ns, rows };
    let found = watched(py, progress_callback, |go_on| {
        jostle_pcap_analysis::diagrams(&files, &options, &wanted, go_on)
    })?;
    found.into_iter().map(|one| TimeSequence::new(py, one)).collect()
}
