//! Captures that somebody took, measured for Python.

use std::path::PathBuf;

use jostle_dissect::{Error, Options};
use jostle_record::MeasuredFile;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::record::Record;
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
    let (found, raised) = py.detach(|| {
        let watch = Watch::new(None);
        let go_on = |bytes| {
            !watch.is_cancelled_with(|py| match &told {
                Some(told) => told.bind(py).call1((bytes,))?.is_truthy(),
                None => Ok(false),
            })
        };
        let found = jostle_dissect::analyze(&files, &options, &go_on);
        (found, watch.take_raised())
    });
    let found = match (found, raised) {
        (_, Some(raised)) => return Err(raised),
        (Err(error @ Error::Cancelled), None) => return Err(Cancelled::new_err(error.to_string())),
        (Err(error @ Error::Read { .. }), None) => {
            return Err(PyOSError::new_err(error.to_string()));
        }
        (Err(error), None) => return Err(PyValueError::new_err(error.to_string())),
        (Ok(found), None) => found,
    };
    let made = found.into_iter().map(|one| {
        let spec = serde_json::to_string(&one.spec)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let record = Py::new(py, Record::new(py, one.record)?)?;
        let jostle_dissect::Measurement { files, notes, packets, .. } = one;
        Ok(Measurement { files, spec, record, notes, packets })
    });
    made.collect()
}
