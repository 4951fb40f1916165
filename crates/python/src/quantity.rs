//! Draws of a RunSpec's quantities, for who plays a run elsewhere.

use jostle_record::{Quantity, Sampler};
use jostle_units::Stream;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

fn parse(quantity_json: &str) -> PyResult<Quantity> {
    let error = |problem: String| PyValueError::new_err(problem);
    let quantity: Quantity =
        serde_json::from_str(quantity_json).map_err(|e| error(e.to_string()))?;
    quantity.validate().map_err(|e| error(e.to_string()))?;
    Ok(quantity)
}

/// Draws so many values of quantities given as JSON from a named stream, in turn: the same that a
/// simulation with that seed draws.
///
/// Parameters
/// ----------
/// quantities_json : list of str
///     The quantities.
/// seed : int
///     Of the run.
/// name : str
///     Of the stream, as `flow/web/sizes`.
/// count : int
///     How many values.
///
/// Returns
/// -------
/// list of int
///     Whole bytes or nanoseconds.
///
/// Raises
/// ------
/// ValueError
///     If one is none, or makes no sense.
#[pyfunction]
pub fn draw_quantities(
    quantities_json: Vec<String>,
    seed: u64,
    name: &str,
    count: usize,
) -> PyResult<Vec<u64>> {
    let quantities: PyResult<Vec<_>> = quantities_json.iter().map(|one| parse(one)).collect();
    let samplers: Vec<_> = quantities?.into_iter().map(Sampler::new).collect();
    let mut random = Stream::new(seed, name);
    let turns = samplers.iter().cycle().take(count);
    Ok(turns.map(|sampler| sampler.span(&mut random).as_ns()).collect())
}
