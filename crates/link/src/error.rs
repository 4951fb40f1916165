//! Errors of the construction of a link.

use jostle_registry::ParameterError;
use thiserror::Error;

/// Error of the construction of a link component.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Error {
    /// The registry has no entry of this name.
    #[error("there is no {part} `{given}`: {}", .known.join(", "))]
    Unknown {
        /// Type of the component.
        part: &'static str,
        /// Name that was requested.
        given: String,
        /// All names of the registry.
        known: Vec<&'static str>,
    },
    /// A parameter is invalid.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// A list is empty.
    #[error("{0} must not be empty")]
    Empty(&'static str),
    /// A list is not in order.
    #[error("{0} must be in order: entry {1} comes before the one ahead of it")]
    Order(&'static str, usize),
    /// A piecewise constant function has no value for the start of the run.
    #[error("the first of {0} must be at time 0")]
    Start(&'static str),
    /// A number is out of range.
    #[error("{name} is {given}, but must lie in {min} … {max}")]
    Range {
        /// Name of the number.
        name: &'static str,
        /// Value of the number.
        given: f64,
        /// Smallest valid value.
        min: f64,
        /// Largest valid value.
        max: f64,
    },
    /// A number must be positive.
    #[error("{0} must be more than zero")]
    Zero(&'static str),
}

/// Returns `given` if it is in 0 … 1.
pub(crate) fn probability(name: &'static str, given: f64) -> Result<f64, Error> {
    within(name, given, 0.0, 1.0)
}

/// Returns `given` if it is in `min` … `max` (NaN is not).
pub(crate) fn within(name: &'static str, given: f64, min: f64, max: f64) -> Result<f64, Error> {
    if (min..=max).contains(&given) {
        Ok(given)
    } else {
        Err(Error::Range { name, given, min, max })
    }
}
