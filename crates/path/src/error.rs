//! Why a part of a link cannot be built.

use jostle_catalogue::ParameterError;
use thiserror::Error;

/// Why a part of a link cannot be built from what was given.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Error {
    /// The registry has no such kind.
    #[error("there is no {part} `{given}`: {}", .known.join(", "))]
    Unknown {
        /// What it was to be a kind of.
        part: &'static str,
        /// The kind that was asked for.
        given: String,
        /// All that there are.
        known: Vec<&'static str>,
    },
    /// A parameter does not fit.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// A list has no element.
    #[error("{0} must not be empty")]
    Empty(&'static str),
    /// A list is not in order.
    #[error("{0} must be in order: entry {1} comes before the one ahead of it")]
    Order(&'static str, usize),
    /// A piecewise constant function does not say what it is at the start of the run.
    #[error("the first of {0} must be at time 0")]
    Start(&'static str),
    /// A number is outside the values that make sense.
    #[error("{name} is {given}, but must lie in {min} … {max}")]
    Range {
        /// What the number is.
        name: &'static str,
        /// What was given.
        given: f64,
        /// Smallest sensible value.
        min: f64,
        /// Largest sensible value.
        max: f64,
    },
    /// A number must be more than zero.
    #[error("{0} must be more than zero")]
    Zero(&'static str),
}

/// `given`, if it lies in 0 … 1.
pub(crate) fn probability(name: &'static str, given: f64) -> Result<f64, Error> {
    within(name, given, 0.0, 1.0)
}

/// `given`, if it lies in `min` … `max` (NaN does not).
pub(crate) fn within(name: &'static str, given: f64, min: f64, max: f64) -> Result<f64, Error> {
    if (min..=max).contains(&given) {
        Ok(given)
    } else {
        Err(Error::Range { name, given, min, max })
    }
}
