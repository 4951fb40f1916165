//! Why a RunSpec is refused.

use std::fmt::Display;

use jostle_catalogue::ParameterError;
use thiserror::Error;

/// Why a RunSpec is refused. The message says where, what, and what would be accepted.
#[derive(Debug, Error)]
pub enum SpecError {
    /// It is not JSON, or lacks a key, has one too many, or one of the wrong type.
    #[error("not a RunSpec: {0}")]
    Json(#[from] serde_json::Error),
    /// A value does not fit.
    #[error("`{at}` cannot be {given}: expected {expected}")]
    Unfit {
        /// Place of the value, such as `links[0].queue.limit`.
        at: String,
        /// The value.
        given: String,
        /// What would be accepted.
        expected: String,
    },
    /// A number is out of range.
    #[error("`{at}` cannot be {given}: expected {min} to {max}")]
    Range {
        /// Place of the number.
        at: String,
        /// The number.
        given: u64,
        /// Smallest one that is accepted.
        min: u64,
        /// Largest one.
        max: u64,
    },
    /// An algorithm has no such parameter, or the parameter no such value.
    #[error("`{at}`: {source}")]
    Parameter {
        /// Place of the algorithm or the part of a link, such as `flows[0].controller`.
        at: String,
        /// What does not fit.
        source: ParameterError,
    },
}

impl SpecError {
    /// Place of what is wrong, such as `links[0].queue.parameters.limit`; none if it is no RunSpec.
    pub fn place(&self) -> Option<String> {
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
