//! An end of a QUIC flow, in a host of a kernel.

use jostle_quic_host::{Job, carry_out};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Carries out one end of a QUIC flow over this machine's sockets; see `jostle_quic_host::Job` for the
/// document. `hear` is told the time, in ns of the run, at which everything was acknowledged.
///
/// # Errors
/// `ValueError` for another document, `RuntimeError` when the end cannot do its job.
#[pyfunction]
pub fn quic_end(py: Python<'_>, job_json: &str, hear: Py<PyAny>) -> PyResult<()> {
    let job: Job =
        serde_json::from_str(job_json).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let told = |completed_ns: u64| {
        // Whoever waits for it finds out from the end's status, if this fails.
        let _ = Python::attach(|py| hear.call1(py, (completed_ns,)));
    };
    py.detach(|| carry_out(&job, told)).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
