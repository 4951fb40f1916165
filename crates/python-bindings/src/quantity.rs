//! Draws values of a RunSpec's random quantities, for other backends.

use jostle_run_spec::{Quantity, QuantitySampler};
use jostle_units::RandomStream;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

fn parse(quantity_json: &str) -> PyResult<Quantity> {
    let error = |problem: String| PyValueError::new_err(problem);
    let quantity: Quantity =
        serde_json::from_str(quantity_json).map_err(|e| error(e.to_string()))?;
    quantity.validate().map_err(|e| error(e.to_string()))?;
    Ok(quantity)
}

/// Draws `count` values from a named random stream, cycling through quantities given as JSON. A
/// simulation with the same seed draws the same values.
///
/// Parameters
/// ----------
/// quantities_json : list of str
///     The quantities.
/// seed : int
///     Seed of the run.
/// name : str
///     Name of the stream, such as `flow/web/sizes`.
/// count : int
///     Number of values.
///
/// Returns
/// -------
/// list of int
///     Bytes or nanoseconds, as integers.
///
/// Raises
/// ------
/// ValueError
///     If a quantity is not valid.
#[pyfunction]
pub fn draw_quantities(
    quantities_json: Vec<String>,
    seed: u64,
    name: &str,
    count: usize,
) -> PyResult<Vec<u64>> {
    let quantities: PyResult<Vec<_>> = quantities_json.iter().map(|one| parse(one)).collect();
    let samplers: Vec<_> = quantities?.into_iter().map(QuantitySampler::new).collect();
    let mut random = RandomStream::new(seed, name);
    let turns = samplers.iter().cycle().take(count);
    Ok(turns.map(|sampler| sampler.span(&mut random).as_ns()).collect())
}
