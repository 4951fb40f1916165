//! Features of learned controllers, and evaluation of policies.

use std::sync::Mutex;

use jostle_controllers::learning::{
    FEATURES, IntervalObservation, NeuralNetwork, Policy as _, parse_design, parse_policy,
};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Name, description, minimum, maximum, and the value before the first interval.
type FeatureRow = (&'static str, &'static str, f64, f64, f64);

/// Returns the features that an observation can contain.
///
/// Returns
/// -------
/// tuple
///     The features, each with name, description, minimum, maximum, and the value before the first
///     interval; and the names of the values of an interval.
#[pyfunction]
pub fn learning_features() -> (Vec<FeatureRow>, Vec<&'static str>) {
    let features = FEATURES.iter().map(|it| (it.name, it.about, it.low, it.high, it.rest));
    (features.collect(), IntervalObservation::NAMES.to_vec())
}

/// Parses a design.
///
/// Returns
/// -------
/// tuple
///     Length of an observation; minimum and maximum of each component of an action.
///
/// Raises
/// ------
/// ValueError
///     If the design is not valid, with the line and the problem.
#[pyfunction]
pub fn design(text: &str) -> PyResult<(usize, Vec<(f64, f64)>)> {
    let design = parse_design(text).map_err(PyValueError::new_err)?;
    Ok((design.observation_len(), design.action.bounds().to_vec()))
}

/// A policy, the content of a file of the controller `learned`.
///
/// Parameters
/// ----------
/// file : bytes
///     Content of the file.
///
/// Raises
/// ------
/// ValueError
///     If the file is not valid, with the line and the problem.
#[pyclass(frozen, module = "jostle._core")]
pub struct Policy {
    network: Mutex<NeuralNetwork>,
    /// Length of an observation.
    #[pyo3(get)]
    inputs: usize,
    /// Length of an action.
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

    /// Returns the action for an observation, before it is clamped to its bounds.
    fn act(&self, observation: PyReadonlyArray1<'_, f32>) -> PyResult<Vec<f64>> {
        let values: Vec<_> = observation.as_array().iter().copied().map(f64::from).collect();
        if values.len() != self.inputs {
            let (found, expected) = (values.len(), self.inputs);
            return Err(PyValueError::new_err(format!("{found} numbers, not {expected}")));
        }
        let mut network = self.network.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Ok(network.act(&values)[..self.outputs].to_vec())
    }
}
