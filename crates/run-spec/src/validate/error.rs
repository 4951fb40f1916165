//! Errors of the validation of a RunSpec.

use std::fmt::Display;

use jostle_registry::ParameterError;
use thiserror::Error;

/// Error of an invalid RunSpec. The message contains the path, the value, and the accepted values.
#[derive(Debug, Error)]
pub enum SpecError {
    /// The text is not JSON, or a key is missing, unknown or of the wrong type.
    #[error("not a RunSpec: {0}")]
    Json(#[from] serde_json::Error),
    /// A value is invalid.
    #[error("`{at}` cannot be {given}: expected {expected}")]
    Unfit {
        /// Path of the value, such as `links[0].queue.limit`.
        at: String,
        /// The value.
        given: String,
        /// Accepted values.
        expected: String,
    },
    /// A number is out of range.
    #[error("`{at}` cannot be {given}: expected {min} to {max}")]
    Range {
        /// Path of the number.
        at: String,
        /// The number.
        given: u64,
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
    },
    /// An algorithm has no such parameter, or the value of the parameter is invalid.
    #[error("`{at}`: {source}")]
    Parameter {
        /// Path of the algorithm or link component, such as `flows[0].controller`.
        at: String,
        /// Error of the parameter.
        source: ParameterError,
    },
}

impl SpecError {
    /// Returns the path of the invalid value, such as `links[0].queue.parameters.limit`, or `None`
    /// if the text is not a RunSpec.
    pub fn path(&self) -> Option<String> {
        match self {
            Self::Json(_) => None,
            Self::Unfit { at, .. } | Self::Range { at, .. } => Some(at.clone()),
            Self::Parameter { at, source } => {
                Some(format!("{at}.parameters.{}", source.parameter()))
            }
        }
    }

    pub(super) fn unknown(at: impl Display, given: &str, known: &[&str]) -> Self {
        Self::unfit(at, format!("\"{given}\""), format!("one of {}", known.join(", ")))
    }

    pub(super) fn unfit(
        at: impl Display,
        given: impl Display,
        expected: impl Into<String>,
    ) -> Self {
        Self::Unfit { at: at.to_string(), given: given.to_string(), expected: expected.into() }
    }
}
