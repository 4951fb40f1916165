//! Line numbers of the keys of a TOML document, for Python.

use jostle_toml_lines::{Children, Error, LinePosition, key_lines};
use pyo3::exceptions::{PyOverflowError, PyRecursionError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Returns the lines, counted from 1, of all tables, keys and elements of a TOML text.
///
/// Parameters
/// ----------
/// text : str
///     The document; its lines end with a line feed.
///
/// Returns
/// -------
/// dict
///     Key or list index → line number, and the same mapping for its children (None for a
///     scalar). The line of a table is the line of its first header or key.
///
/// Raises
/// ------
/// ValueError
///     If the text is not TOML.
/// OverflowError
///     If several numbers exceed 64 bits: each requires another pass.
/// RecursionError
///     If it is nested deeper than 80 levels.
#[pyfunction]
pub fn toml_lines<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyDict>> {
    let found = key_lines(text).map_err(|error| match error {
        Error::NoToml(said) => PyValueError::new_err(said),
        Error::TooDeep(said) => PyRecursionError::new_err(said),
        Error::TooManyLargeNumbers => PyOverflowError::new_err(error.to_string()),
    })?;
    table(py, &found)
}

fn table<'py>(py: Python<'py>, keys: &[(String, LinePosition)]) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for (key, place) in keys {
        found.set_item(key, (place.line, below(py, &place.below)?))?;
    }
    Ok(found)
}

fn below<'py>(py: Python<'py>, below: &Children) -> PyResult<Option<Bound<'py, PyDict>>> {
    match below {
        Children::Nothing => Ok(None),
        Children::Table(keys) => table(py, keys).map(Some),
        Children::List(elements) => {
            let found = PyDict::new(py);
            for (number, place) in elements.iter().enumerate() {
                found.set_item(number, (place.line, self::below(py, &place.below)?))?;
            }
            Ok(Some(found))
        }
    }
}
