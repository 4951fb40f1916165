//! What a parameter is, and what values it takes.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::limit::Limit;

/// A parameter of a row.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Parameter {
    /// Name in scenarios.
    pub name: &'static str,
    /// One line that says what it does.
    pub summary: &'static str,
    /// What values it takes.
    #[serde(flatten)]
    pub kind: Kind,
}

/// Type, default and range of a parameter. Ranges include both ends.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kind {
    /// On or off.
    Bool {
        /// Value when a scenario is silent.
        default: bool,
    },
    /// A whole number.
    Integer {
        /// Value when a scenario is silent.
        default: i64,
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// A real number.
    Number {
        /// Value when a scenario is silent.
        default: f64,
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// A span of time: written with a unit in scenarios, whole nanoseconds everywhere else.
    Span {
        /// Value when a scenario is silent.
        default_ns: i64,
        /// Smallest value.
        min_ns: i64,
        /// Largest value.
        max_ns: i64,
    },
    /// A rate: written with a unit in scenarios, whole bits per second everywhere else.
    Rate {
        /// Value when a scenario is silent.
        default_bps: i64,
        /// Smallest value.
        min_bps: i64,
        /// Largest value.
        max_bps: i64,
    },
    /// An amount of data: written with a unit in scenarios, whole bytes everywhere else.
    Size {
        /// Value when a scenario is silent; absent where it follows from other keys.
        default_bytes: Option<i64>,
        /// Smallest value.
        min_bytes: i64,
        /// Largest value.
        max_bytes: i64,
    },
    /// A probability: in scenarios a number from 0 to 1 or a percentage.
    Probability {
        /// Value when a scenario is silent; absent where a scenario has to give one.
        default: Option<f64>,
    },
    /// The most that a queue holds, in bytes or in packets of any size.
    Limit {
        /// Value when a scenario is silent; absent where a scenario has to give one.
        default: Option<Limit>,
        /// Smallest value; a limit in packets counts as so many full ones.
        min_bytes: i64,
        /// Largest value.
        max_bytes: i64,
    },
    /// A number of packets; an amount of data in scenarios is as many full ones as hold it.
    Packets {
        /// Value when a scenario is silent.
        default: i64,
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// One of some words.
    Choice {
        /// Value when a scenario is silent.
        default: &'static str,
        /// The words.
        choices: &'static [&'static str],
    },
    /// What a file holds: named by its path in scenarios, its content everywhere else, so that a run
    /// depends on nothing outside of its specification.
    File {
        /// Content when a scenario is silent.
        #[serde(serialize_with = "in_base64")]
        default: &'static [u8],
        /// What it holds, in words.
        content: &'static str,
        /// Finds what is wrong with a content, and where.
        #[serde(skip)]
        check: fn(&[u8]) -> Result<(), String>,
    },
}

/// Largest content of a file, in bytes. It is part of the specification of every run.
pub(crate) const MAX_FILE_BYTES: usize = 1 << 22;

fn in_base64<S: Serializer>(bytes: &&[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64.encode(bytes))
}

/// Value of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// On or off.
    Bool(bool),
    /// A whole number; also a span in nanoseconds or a rate in bit/s.
    Integer(i64),
    /// A real number.
    Number(f64),
    /// The most that a queue holds.
    Limit(Limit),
    /// One of a parameter's words, or the content of a file in Base64 (RFC 4648, with padding).
    Text(String),
}

impl Kind {
    /// The value when a scenario is silent; nothing where it has to give one.
    pub fn default_value(&self) -> Option<Value> {
        Some(match *self {
            Self::Bool { default } => Value::Bool(default),
            Self::Integer { default, .. } => Value::Integer(default),
            Self::Number { default, .. } => Value::Number(default),
            Self::Span { default_ns, .. } => Value::Integer(default_ns),
            Self::Rate { default_bps, .. } => Value::Integer(default_bps),
            Self::Size { default_bytes, .. } => Value::Integer(default_bytes?),
            Self::Probability { default } => Value::Number(default?),
            Self::Limit { default, .. } => Value::Limit(default?),
            Self::Packets { default, .. } => Value::Integer(default),
            Self::Choice { default, .. } => Value::Text(default.to_owned()),
            Self::File { default, .. } => Value::Text(BASE64.encode(default)),
        })
    }

    /// Whether a scenario may be silent.
    pub const fn has_default(&self) -> bool {
        !matches!(
            self,
            Self::Size { default_bytes: None, .. }
                | Self::Probability { default: None }
                | Self::Limit { default: None, .. }
        )
    }

    /// Smallest and largest value of what is a whole number in base units.
    pub fn range(&self) -> Option<(i64, i64)> {
        match *self {
            Self::Integer { min, max, .. } | Self::Packets { min, max, .. } => Some((min, max)),
            Self::Span { min_ns, max_ns, .. } => Some((min_ns, max_ns)),
            Self::Rate { min_bps, max_bps, .. } => Some((min_bps, max_bps)),
            Self::Size { min_bytes, max_bytes, .. } => Some((min_bytes, max_bytes)),
            _ => None,
        }
    }

    /// What values are accepted, in words.
    pub fn expected(&self) -> String {
        match *self {
            Self::Bool { .. } => "true or false".to_owned(),
            Self::Integer { min, max, .. } => format!("a whole number from {min} to {max}"),
            Self::Number { min, max, .. } => format!("a number from {min} to {max}"),
            Self::Span { min_ns, max_ns, .. } => format!("{min_ns} to {max_ns} ns"),
            Self::Rate { min_bps, max_bps, .. } => format!("{min_bps} to {max_bps} bit/s"),
            Self::Size { min_bytes, max_bytes, .. } => format!("{min_bytes} to {max_bytes} bytes"),
            Self::Probability { .. } => "a probability from 0 to 1".to_owned(),
            Self::Limit { min_bytes, max_bytes, .. } => {
                format!("{min_bytes} to {max_bytes} bytes, or as many full packets")
            }
            Self::Packets { min, max, .. } => format!("{min} to {max} packets"),
            Self::Choice { choices, .. } => format!("one of {}", choices.join(", ")),
            Self::File { content, .. } => format!("{content}, in Base64"),
        }
    }

    /// What is wrong with the content of a file; nothing for a parameter of another kind.
    ///
    /// # Errors
    /// When the content is too large, or is not what it should be.
    pub fn check_content(&self, content: &[u8]) -> Result<(), String> {
        match *self {
            Self::File { .. } if content.len() > MAX_FILE_BYTES => {
                Err(format!("larger than {} MiB", MAX_FILE_BYTES >> 20))
            }
            Self::File { check, .. } => check(content),
            _ => Ok(()),
        }
    }

    pub(crate) fn accepts(&self, value: &Value) -> bool {
        match (*self, value) {
            (Self::Bool { .. }, Value::Bool(_)) => true,
            (Self::Integer { min, max, .. }, Value::Integer(v)) => (min..=max).contains(v),
            (Self::Span { min_ns, max_ns, .. }, Value::Integer(v)) => (min_ns..=max_ns).contains(v),
            (Self::Rate { min_bps, max_bps, .. }, Value::Integer(v)) => {
                (min_bps..=max_bps).contains(v)
            }
            (Self::Size { min_bytes, max_bytes, .. }, Value::Integer(v)) => {
                (min_bytes..=max_bytes).contains(v)
            }
            (Self::Packets { min, max, .. }, Value::Integer(v)) => (min..=max).contains(v),
            (Self::Limit { min_bytes, max_bytes, .. }, Value::Limit(v)) => {
                i64::try_from(v.full_bytes()).is_ok_and(|v| (min_bytes..=max_bytes).contains(&v))
            }
            (Self::Probability { .. }, Value::Number(v)) => (0.0..=1.0).contains(v),
            (Self::Probability { .. }, Value::Integer(v)) => (0..=1).contains(v),
            (Self::Number { min, max, .. }, Value::Number(v)) => (min..=max).contains(v),
            // `gain = 2` is as good as `gain = 2.0`.
            (Self::Number { min, max, .. }, Value::Integer(v)) => {
                (min..=max).contains(&(*v as f64))
            }
            (Self::Choice { choices, .. }, Value::Text(v)) => choices.contains(&v.as_str()),
            (Self::File { .. }, Value::Text(v)) => BASE64.decode(v).is_ok(),
            _ => false,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Limit(Limit::Bytes(bytes)) => write!(f, "{bytes} bytes"),
            Self::Limit(Limit::Packets(packets)) => write!(f, "{packets} packets"),
            Self::Text(text) => write!(f, "\"{text}\""),
        }
    }
}
