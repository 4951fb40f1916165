//! On which lines of a TOML text its keys stand, for messages that name them.

use pyo3::exceptions::{PyOverflowError, PyRecursionError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use toml_edit::{Document, Item, TableLike, Value};

/// Numbers beyond 64 bits that a text may hold.
const MOST_LARGE_NUMBERS: usize = 8;

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
    let document = parse(text)?;
    let ends = text.match_indices('\n').map(|(at, _)| at).collect();
    Ok(Lines { py, ends }.table(document.as_table())?.1)
}

/// Parses a text, whatever the size of its numbers: Python's have no bounds.
fn parse(text: &str) -> PyResult<Document<String>> {
    let mut text = text.to_owned();
    for _ in 0..MOST_LARGE_NUMBERS {
        let error = match Document::parse(text.clone()) {
            Ok(document) => return Ok(document),
            Err(error) => error,
        };
        let said = error.message();
        // What the parser calls it: "recursion limit", "cannot recurse further".
        if said.contains("recurs") {
            return Err(PyRecursionError::new_err(said.to_owned()));
        }
        let number = error.span().filter(|_| said.contains("overflow"));
        match number {
            Some(span) if !span.is_empty() => {
                // A width of `format!` has 16 bits: a number may have more digits.
                let zero = format!("0{}", " ".repeat(span.len() - 1));
                text.replace_range(span, &zero);
            }
            _ => return Err(PyValueError::new_err(said.to_owned())),
        }
    }
    Err(PyOverflowError::new_err("too many numbers of more than 64 bits"))
}

/// Line, and what lies below.
type Place<'py> = (usize, Option<Bound<'py, PyDict>>);

struct Lines<'py> {
    py: Python<'py>,
    /// Where lines end, in bytes.
    ends: Vec<usize>,
}

impl<'py> Lines<'py> {
    /// The line of a byte; the last of all for what has no place of its own.
    fn at(&self, place: Option<std::ops::Range<usize>>) -> usize {
        place.map_or(usize::MAX, |span| self.ends.partition_point(|end| *end < span.start) + 1)
    }

    /// The first line of what lies in a table, and all of it.
    fn table(&self, table: &dyn TableLike) -> PyResult<(usize, Bound<'py, PyDict>)> {
        let found = PyDict::new(self.py);
        let mut first = usize::MAX;
        for (name, _) in table.iter() {
            let Some((key, item)) = table.get_key_value(name) else { continue };
            let (below, inner) = self.item(item)?;
            let line = self.at(key.span()).min(below);
            first = first.min(line);
            found.set_item(name, (line, inner))?;
        }
        Ok((first, found))
    }

    fn item(&self, item: &Item) -> PyResult<Place<'py>> {
        match item {
            Item::None => Ok((usize::MAX, None)),
            Item::Value(value) => self.value(value),
            Item::Table(table) => {
                let (first, found) = self.table(table)?;
                Ok((first.min(self.at(table.span())), Some(found)))
            }
            Item::ArrayOfTables(tables) => self.list(tables.iter().map(|table| {
                let (first, found) = self.table(table)?;
                Ok((first.min(self.at(table.span())), Some(found)))
            })),
        }
    }

    fn value(&self, value: &Value) -> PyResult<Place<'py>> {
        let (first, below) = match value {
            Value::Array(array) => self.list(array.iter().map(|element| self.value(element)))?,
            Value::InlineTable(table) => {
                let (first, found) = self.table(table)?;
                (first, Some(found))
            }
            _ => (usize::MAX, None),
        };
        Ok((first.min(self.at(value.span())), below))
    }

    fn list(&self, elements: impl Iterator<Item = PyResult<Place<'py>>>) -> PyResult<Place<'py>> {
        let found = PyDict::new(self.py);
        let mut first = usize::MAX;
        for (number, element) in elements.enumerate() {
            let place = element?;
            first = first.min(place.0);
            found.set_item(number, place)?;
        }
        Ok((first, Some(found)))
    }
}
