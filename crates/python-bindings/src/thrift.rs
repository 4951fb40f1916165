//! Structures of Thrift's compact protocol, in which Parquet files describe themselves.

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

/// Structures in each other: a footer has seven levels.
const DEEPEST: usize = 16;

/// Reads the fields of a structure.
///
/// Parameters
/// ----------
/// content : bytes
///     Begins with the structure.
///
/// Returns
/// -------
/// tuple
///     Its values by field number, and its length. Text and floating-point numbers are bytes.
///
/// Raises
/// ------
/// ValueError
///     If it is nested too deeply, or is no structure.
/// IndexError
///     If the content ends before the structure.
#[pyfunction]
pub fn thrift_structure<'py>(
    py: Python<'py>,
    content: &[u8],
) -> PyResult<(Bound<'py, PyDict>, usize)> {
    let mut reader = Reader { py, content, at: 0 };
    let fields = reader.structure(0)?;
    Ok((fields, reader.at))
}

struct Reader<'py, 'a> {
    py: Python<'py>,
    content: &'a [u8],
    at: usize,
}

impl<'py> Reader<'py, '_> {
    fn structure(&mut self, depth: usize) -> PyResult<Bound<'py, PyDict>> {
        if depth > DEEPEST {
            return Err(PyValueError::new_err("its footer is nested too deeply"));
        }
        let fields = PyDict::new(self.py);
        let mut number = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(fields);
            }
            number = match head >> 4 {
                0 => self.integer()?,
                step => number.saturating_add(i64::from(step)),
            };
            fields.set_item(number, self.value(head & 15, depth)?)?;
        }
    }

    fn value(&mut self, kind: u8, depth: usize) -> PyResult<Bound<'py, PyAny>> {
        Ok(match kind {
            1 | 2 => (kind == 1).into_pyobject(self.py)?.to_owned().into_any(),
            3 => self.byte()?.into_pyobject(self.py)?.into_any(),
            4..=6 => self.integer()?.into_pyobject(self.py)?.into_any(),
            7 => self.bytes(8)?.into_any(),
            8 => {
                let length = self.varint()?;
                self.bytes(length)?.into_any()
            }
            9 | 10 => self.list(depth + 1)?.into_any(),
            12 => self.structure(depth + 1)?.into_any(),
            _ => return Err(PyValueError::new_err("its footer is damaged")),
        })
    }

    fn list(&mut self, depth: usize) -> PyResult<Bound<'py, PyList>> {
        let head = self.byte()?;
        let length = match head >> 4 {
            15 => self.varint()?,
            length => u64::from(length),
        };
        let values = PyList::empty(self.py);
        for _ in 0..length {
            values.append(match head & 15 {
                // Unlike a field, an element has a byte for its value.
                1 | 2 => (self.byte()? == 1).into_pyobject(self.py)?.to_owned().into_any(),
                kind => self.value(kind, depth)?,
            })?;
        }
        Ok(values)
    }

    fn byte(&mut self) -> PyResult<u8> {
        let byte =
            self.content.get(self.at).ok_or_else(|| PyIndexError::new_err("the bytes end"))?;
        self.at += 1;
        Ok(*byte)
    }

    fn bytes(&mut self, length: u64) -> PyResult<Bound<'py, PyBytes>> {
        let end = usize::try_from(length).ok().and_then(|length| self.at.checked_add(length));
        let bytes = end
            .and_then(|end| self.content.get(self.at..end))
            .ok_or_else(|| PyIndexError::new_err("the bytes end in a text"))?;
        self.at += bytes.len();
        Ok(PyBytes::new(self.py, bytes))
    }

    fn integer(&mut self) -> PyResult<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn varint(&mut self) -> PyResult<u64> {
        let mut value = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 127);
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte < 128 {
                return Ok(value);
            }
        }
        Err(PyValueError::new_err("its footer has a number beyond 64 bits"))
    }
}
