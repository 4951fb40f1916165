//! On which lines of a TOML text its keys stand, for Python.

use jostle_text::{Below, Error, Place, places};
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
///     Key, or position in a list → the line, and the same of what lies below (None for a single
///     value). A table's line is that of its first header or key.
///
/// Raises
/// ------
/// ValueError
///     If it is not TOML.
/// OverflowError
///     If more than a few of its numbers have more than 64 bits: each costs another pass.
/// RecursionError
///     If it nests deeper than a reader can follow: 80 levels.
#[pyfunction]
pub fn toml_lines<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyDict>> {
    let found = places(text).map_err(|error| match error {
        Error::NoToml(said) => PyValueError::new_err(said),
        Error::TooDeep(said) => PyRecursionError::new_err(said),
        Error::TooManyLargeNumbers => PyOverflowError::new_err(error.to_string()),
    })?;
    table(py, &found)
}

fn table<'py>(py: Python<'py>, keys: &[(String, Place)]) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for (key, place) in keys {
        found.set_item(key, (place.line, below(py, &place.below)?))?;
    }
    Ok(found)
}

fn below<'py>(py: Python<'py>, below: &Below) -> PyResult<Option<Bound<'py, PyDict>>> {
    match below {
        Below::Nothing => Ok(None),
        Below::Table(keys) => table(py, keys).map(Some),
        Below::List(elements) => {
            let found = PyDict::new(py);
            for (number, place) in elements.iter().enumerate() {
                found.set_item(number, (place.line, self::below(py, &place.below)?))?;
            }
            Ok(Some(found))
        }
    }
}
