//! What learnt controllers can observe and do, and policies on their own.

use std::sync::Mutex;

use jostle_control::learning::{Decide, FEATURES, Network, Observed, parse_design, parse_policy};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Name, description, least and largest value, and the value before the first interval.
type FeatureRow = (&'static str, &'static str, f64, f64, f64);

/// What there is to observe.
///
/// Returns
/// -------
/// tuple
///     The features, each with name, description, least and largest value and the value before the
///     first interval; the names of the values of an interval.
#[pyfunction]
pub fn learning() -> (Vec<FeatureRow>, Vec<&'static str>) {
    let features = FEATURES.iter().map(|it| (it.name, it.about, it.low, it.high, it.rest));
    (features.collect(), Observed::NAMES.to_vec())
}

/// Reads a design.
///
/// Returns
/// -------
/// tuple
///     Numbers in an observation; least and largest value of each number of an action.
///
/// Raises
/// ------
/// ValueError
///     If it is none: what is wrong, and in which line.
#[pyfunction]
pub fn design(text: &str) -> PyResult<(usize, Vec<(f64, f64)>)> {
    let design = parse_design(text).map_err(PyValueError::new_err)?;
    Ok((design.observation_len(), design.action.bounds().to_vec()))
}

/// A policy: what the controller `learned` has in its file.
///
/// Parameters
/// ----------
/// file : bytes
///     Content of the file.
///
/// Raises
/// ------
/// ValueError
///     If it is none: what is wrong, and in which line.
#[pyclass(frozen, module = "jostle._core")]
pub struct Policy {
    network: Mutex<Network>,
    /// Numbers in an observation.
    #[pyo3(get)]
    inputs: usize,
    /// Numbers in an action.
    #[pyo3(get)]
    outputs: usize,
}

#[pymethods]
impl Policy {
    #[new]
    fn new(file: &[u8]) -> PyResult<Self> {
        let (design, network) = parse_policy(file).map_err(PyValueError::new_err)?;
        let (inputs, outputs) = (design.observation_len(), design.action.bounds().len());
        Ok(Self { network: Mutex::new(network), inputs, outputs })
    }

    /// The action for an observation, before it is held within its bounds.
    fn act(&self, observation: PyReadonlyArray1<'_, f32>) -> PyResult<Vec<f64>> {
        let values: Vec<_> = observation.as_array().iter().copied().map(f64::from).collect();
        if values.len() != self.inputs {
            let (found, expected) = (values.len(), self.inputs);
            return Err(PyValueError::new_err(format!("{found} numbers, not {expected}")));
        }
        let mut network = self.network.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Ok(network.decide(&values)[..self.outputs].to_vec())
    }
}
