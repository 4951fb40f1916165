//! Names of runs: hashes of their specifications, of which runs of a condition share most of the text.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use ring::digest::{Context, SHA256, digest};

/// Earliest start of a flow in ns, its name, and its number of possible starts.
type Start = (u64, PyBackedStr, u64);

/// Draws the start of each flow for a seed.
///
/// A start is uniform from the earliest one on, and depends on seed and name only: it is the first
/// 64 bits of SHA-256 over ``"start_jitter/SEED/FLOW"``, scaled.
///
/// Parameters
/// ----------
/// seed : int
///     The seed.
/// starts : list of tuple
///     Earliest start in ns, name, and number of possible starts of each flow.
///
/// Returns
/// -------
/// list of int
///     The starts in ns.
#[pyfunction]
pub fn drawn_starts(seed: u64, starts: Vec<Start>) -> Vec<u64> {
    let mut text = String::new();
    starts.iter().map(|start| drawn(seed, start, &mut text)).collect()
}

fn drawn(seed: u64, (earliest_ns, flow, values): &Start, text: &mut String) -> u64 {
    if *values < 2 {
        return *earliest_ns;
    }
    text.clear();
    text.push_str(&format!("start_jitter/{seed}/{flow}"));
    let digest = digest(&SHA256, text.as_bytes());
    let bits = digest.as_ref()[..8].iter().fold(0, |bits, byte| bits << 8 | u128::from(*byte));
    earliest_ns + ((bits * u128::from(*values)) >> 64) as u64
}

/// Returns the specification of a run as canonical JSON.
///
/// Parameters
/// ----------
/// pieces : list of str
///     The text before, between and after the starts of the flows and the seed.
/// starts : list of tuple
///     As for `drawn_starts`; empty if no start depends on the seed.
/// seed : int
///     The seed.
#[pyfunction]
pub fn run_text(pieces: Vec<PyBackedStr>, starts: Vec<Start>, seed: u64) -> PyResult<String> {
    let (first, rest) = split(&pieces, &starts)?;
    let mut text = first.to_owned();
    push_rest(rest, &starts, seed, &mut text, &mut String::new());
    Ok(text)
}

/// Returns the names of runs that differ in the seed.
///
/// Parameters
/// ----------
/// pieces, starts
///     As for `run_text`.
/// around : tuple of str
///     Text to hash before and after the specification.
/// seeds : list of int
///     The seeds.
#[pyfunction]
pub fn run_names(
    pieces: Vec<PyBackedStr>,
    starts: Vec<Start>,
    around: (PyBackedStr, PyBackedStr),
    seeds: Vec<u64>,
) -> PyResult<Vec<String>> {
    let (first, rest) = split(&pieces, &starts)?;
    let mut shared = Context::new(&SHA256);
    shared.update(around.0.as_bytes());
    shared.update(first.as_bytes());
    let (mut text, mut scratch) = (String::new(), String::new());
    let name_of = |seed| {
        text.clear();
        push_rest(rest, &starts, seed, &mut text, &mut scratch);
        text.push_str(&around.1);
        let mut context = shared.clone();
        context.update(text.as_bytes());
        name(context)
    };
    Ok(seeds.into_iter().map(name_of).collect())
}

/// Returns the names of runs.
///
/// Parameters
/// ----------
/// specs : list of str
///     Their specifications as canonical JSON.
/// around : list of tuple
///     Text to hash before and after each specification.
#[pyfunction]
pub fn names_of_specs(
    py: Python<'_>,
    specs: Vec<PyBackedStr>,
    around: Vec<(PyBackedStr, PyBackedStr)>,
) -> PyResult<Vec<String>> {
    if specs.len() != around.len() {
        return Err(PyValueError::new_err("there are other texts than specifications"));
    }
    let name_of = |(spec, (before, after)): (&PyBackedStr, &(PyBackedStr, PyBackedStr))| {
        let mut context = Context::new(&SHA256);
        for part in [before, spec, after] {
            context.update(part.as_bytes());
        }
        name(context)
    };
    Ok(py.detach(|| specs.iter().zip(&around).map(name_of).collect()))
}

/// Returns the first piece and the others.
fn split<'a>(
    pieces: &'a [PyBackedStr],
    starts: &[Start],
) -> PyResult<(&'a str, &'a [PyBackedStr])> {
    match pieces.split_first() {
        Some((first, rest)) if rest.len() == starts.len() + 1 => Ok((first, rest)),
        _ => Err(PyValueError::new_err("there are other values than pieces")),
    }
}

/// Appends the text of a run after the first piece.
fn push_rest(
    pieces: &[PyBackedStr],
    starts: &[Start],
    seed: u64,
    text: &mut String,
    scratch: &mut String,
) {
    let drawn = starts.iter().map(|start| drawn(seed, start, scratch));
    for (value, piece) in drawn.chain([seed]).zip(pieces) {
        text.push_str(&value.to_string());
        text.push_str(piece);
    }
}

/// Returns the first half of a digest as hexadecimal digits.
fn name(context: Context) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digest = context.finish();
    let half = digest.as_ref()[..16].iter().flat_map(|byte| [byte >> 4, byte & 15]);
    half.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}
