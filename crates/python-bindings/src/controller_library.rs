//! Shared libraries of a user's controllers, for Python.

use std::path::PathBuf;

use jostle_controller_library::{Library, registration_line};
use jostle_run_spec::FlowSpec;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Loads the shared library of a crate, and returns the rows of its controllers as JSON, in the form
/// of `registry`. Loading executes code of the crate.
///
/// Raises
/// ------
/// ValueError
///     If it is no such library, or one of its controllers panicked.
#[pyfunction]
pub fn describe_library(path: PathBuf) -> PyResult<String> {
    let described = Library::load(&path).and_then(|library| library.describe());
    described.map_err(PyValueError::new_err)
}

/// Returns the line that registers the controller of a flow, given as JSON, with its slow start and
/// its peer cache in the kernel module.
///
/// Raises
/// ------
/// ValueError
///     If it is no flow of a RunSpec.
#[pyfunction]
pub fn kernel_registration(flow_json: &str, seed: u64) -> PyResult<String> {
    let flow: FlowSpec = serde_json::from_str(flow_json)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(registration_line(&flow, seed, true))
}
