//! Failures of controllers written in Python.

use std::sync::{Arc, OnceLock};

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;

create_exception!(
    jostle._core,
    ControllerError,
    PyException,
    "A controller of the user failed; the text names the file and the line."
);

/// The first failure of any controller of a run, shared with the owner of the run.
#[derive(Clone, Default)]
pub struct ControllerFailure(Arc<OnceLock<PyErr>>);

impl ControllerFailure {
    /// Returns whether a controller failed.
    pub fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// Returns the failure as an exception.
    pub fn error(&self) -> Option<PyErr> {
        self.0.get().map(|error| Python::attach(|py| error.clone_ref(py)))
    }

    /// Stores `error` of `method` of the controller of `flow`, unless an earlier failure is stored.
    pub fn set(
        &self,
        py: Python<'_>,
        error: &PyErr,
        method: Option<&Bound<'_, PyAny>>,
        flow: &str,
    ) {
        let kept = if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            error.clone_ref(py)
        } else {
            let text = describe(py, error, method);
            let kept = ControllerError::new_err(format!("{text} (controller of \"{flow}\")"));
            kept.set_cause(py, Some(error.clone_ref(py)));
            kept
        };
        // The first failure stays.
        let _ = self.0.set(kept);
    }
}

/// Describes an exception in one line: location of the innermost frame, type and message. If Python
/// code did not raise it, the location is the first line of `method`.
pub fn describe(py: Python<'_>, error: &PyErr, method: Option<&Bound<'_, PyAny>>) -> String {
    let place = raised_at(py, error)
        .ok()
        .flatten()
        .or_else(|| method.and_then(|method| defined_at(method).ok()));
    let name = error.get_type(py).name().map_or_else(|_| "error".to_owned(), |it| it.to_string());
    let value = error.value(py);
    match place {
        Some(place) => format!("{place}: {name}: {value}"),
        None => format!("{name}: {value}"),
    }
}

fn raised_at(py: Python<'_>, error: &PyErr) -> PyResult<Option<String>> {
    let Some(mut traceback) = error.traceback(py).map(Bound::into_any) else { return Ok(None) };
    loop {
        let next = traceback.getattr("tb_next")?;
        if next.is_none() {
            break;
        }
        traceback = next;
    }
    let code = traceback.getattr("tb_frame")?.getattr("f_code")?;
    let line: u32 = traceback.getattr("tb_lineno")?.extract()?;
    code_location(&code, line).map(Some)
}

fn defined_at(method: &Bound<'_, PyAny>) -> PyResult<String> {
    let code = method.getattr("__code__")?;
    let line = code.getattr("co_firstlineno")?.extract()?;
    code_location(&code, line)
}

fn code_location(code: &Bound<'_, PyAny>, line: u32) -> PyResult<String> {
    let file: String = code.getattr("co_filename")?.extract()?;
    let function: String = code.getattr("co_name")?.extract()?;
    Ok(format!("{file}, line {line}, in {function}"))
}
