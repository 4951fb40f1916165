//! QUIC endpoint on a host of the kernel backend, for Python.

use jostle_quic_endpoint::{Job, carry_out};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Runs one end of a QUIC flow over the sockets of this machine. `job_json` is a
/// `jostle_quic_endpoint::Job`. `hear` is called with the time, in ns of the run, at which all data
/// was acknowledged.
///
/// # Errors
/// `ValueError` for an invalid document, `RuntimeError` if the endpoint failed.
#[pyfunction]
pub fn quic_end(py: Python<'_>, job_json: &str, hear: Py<PyAny>) -> PyResult<()> {
    let job: Job =
        serde_json::from_str(job_json).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let notify = |completed_ns: u64| {
        // If the callback fails, the caller still learns of it from the endpoint's status.
        let _ = Python::attach(|py| hear.call1(py, (completed_ns,)));
    };
    py.detach(|| carry_out(&job, notify))
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
