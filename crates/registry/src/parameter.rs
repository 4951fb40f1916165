//! Types and values of parameters.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::ops::RangeInclusive;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jostle_units::{Rate, Span};
use serde::{Deserialize, Serialize, Serializer};

use crate::queue_limit::QueueLimit;

/// A parameter of a registry entry.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Parameter {
    /// Name in scenarios.
    pub name: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// Type, default and range.
    #[serde(flatten)]
    pub kind: ParameterType,
}

/// Type, default and range of a parameter. Ranges include both ends.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ParameterType {
    /// A Boolean.
    Bool {
        /// Default.
        default: bool,
    },
    /// A whole number.
    Integer {
        /// Default.
        default: i64,
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// A real number.
    Number {
        /// Default.
        default: f64,
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// A duration: with a unit in scenarios, in nanoseconds elsewhere.
    Span {
        /// Default.
        default_ns: i64,
        /// Smallest value.
        min_ns: i64,
        /// Largest value.
        max_ns: i64,
    },
    /// A rate: with a unit in scenarios, in bits per second elsewhere.
    Rate {
        /// Default.
        default_bps: i64,
        /// Smallest value.
        min_bps: i64,
        /// Largest value.
        max_bps: i64,
    },
    /// An amount of data: with a unit in scenarios, in bytes elsewhere.
    Size {
        /// Default; `None` if it depends on other keys.
        default_bytes: Option<i64>,
        /// Smallest value.
        min_bytes: i64,
        /// Largest value.
        max_bytes: i64,
    },
    /// A probability: a number from 0 to 1 or a percentage in scenarios.
    Probability {
        /// Default; `None` if a scenario must set the parameter.
        default: Option<f64>,
    },
    /// Capacity of a queue, in bytes or in packets of any size.
    Limit {
        /// Default; `None` if a scenario must set the parameter.
        default: Option<QueueLimit>,
        /// Smallest value. A limit in packets is converted with full-sized packets.
        min_bytes: i64,
        /// Largest value.
        max_bytes: i64,
    },
    /// A number of packets. An amount of data in scenarios is rounded up to full-sized packets.
    Packets {
        /// Default.
        default: i64,
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// One of a list of words.
    Choice {
        /// Default.
        default: &'static str,
        /// Allowed words.
        choices: &'static [&'static str],
    },
    /// The content of a file. Scenarios give its path. Run specifications contain its content, so
    /// that a run depends on nothing outside of its specification.
    File {
        /// Default content.
        #[serde(serialize_with = "in_base64")]
        default: &'static [u8],
        /// Description of the content.
        content: &'static str,
        /// Checks the content. The error describes the problem and its position.
        #[serde(skip)]
        check: fn(&[u8]) -> Result<(), String>,
    },
}

/// Largest size of a file, in bytes. The content is part of the specification of each run.
pub(crate) const MAX_FILE_BYTES: usize = 1 << 22;

fn in_base64<S: Serializer>(bytes: &&[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64.encode(bytes))
}

/// Value of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ParameterValue {
    /// A Boolean.
    Bool(bool),
    /// A whole number, a duration in nanoseconds or a rate in bit/s.
    Integer(i64),
    /// A real number.
    Number(f64),
    /// Capacity of a queue.
    Limit(QueueLimit),
    /// A word of a `Choice` parameter, or the content of a file in Base64 (RFC 4648, with padding).
    Text(String),
}

/// Constructors; [`summary`](Self::summary) completes them.
impl Parameter {
    const fn new(name: &'static str, kind: ParameterType) -> Self {
        Self { name, summary: "", kind }
    }

    /// Returns the parameter with a description.
    #[must_use]
    pub const fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// Returns a `Bool` parameter.
    pub const fn bool(name: &'static str, default: bool) -> Self {
        Self::new(name, ParameterType::Bool { default })
    }

    /// Returns an `Integer` parameter.
    pub const fn integer(name: &'static str, default: i64, range: RangeInclusive<i64>) -> Self {
        let (min, max) = (*range.start(), *range.end());
        Self::new(name, ParameterType::Integer { default, min, max })
    }

    /// Returns a `Number` parameter.
    pub const fn number(name: &'static str, default: f64, range: RangeInclusive<f64>) -> Self {
        let (min, max) = (*range.start(), *range.end());
        Self::new(name, ParameterType::Number { default, min, max })
    }

    /// Returns a `Span` parameter.
    pub const fn span(name: &'static str, default: Span, range: RangeInclusive<Span>) -> Self {
        let (min_ns, max_ns) = (range.start().as_ns() as i64, range.end().as_ns() as i64);
        let default_ns = default.as_ns() as i64;
        Self::new(name, ParameterType::Span { default_ns, min_ns, max_ns })
    }

    /// Returns a `Rate` parameter.
    pub const fn rate(name: &'static str, default: Rate, range: RangeInclusive<Rate>) -> Self {
        let (min_bps, max_bps) = (range.start().as_bps() as i64, range.end().as_bps() as i64);
        let default_bps = default.as_bps() as i64;
        Self::new(name, ParameterType::Rate { default_bps, min_bps, max_bps })
    }

    /// Returns a `Size` parameter, in bytes. Without a default, it depends on other keys.
    pub const fn size(
        name: &'static str,
        default_bytes: Option<i64>,
        range: RangeInclusive<i64>,
    ) -> Self {
        let (min_bytes, max_bytes) = (*range.start(), *range.end());
        Self::new(name, ParameterType::Size { default_bytes, min_bytes, max_bytes })
    }

    /// Returns a `Probability` parameter. Without a default, a scenario must set it.
    pub const fn probability(name: &'static str, default: Option<f64>) -> Self {
        Self::new(name, ParameterType::Probability { default })
    }

    /// Returns a `Limit` parameter with a range in bytes. Without a default, a scenario must set it.
    pub const fn limit(
        name: &'static str,
        default: Option<QueueLimit>,
        range: RangeInclusive<i64>,
    ) -> Self {
        let (min_bytes, max_bytes) = (*range.start(), *range.end());
        Self::new(name, ParameterType::Limit { default, min_bytes, max_bytes })
    }

    /// Returns a `Packets` parameter.
    pub const fn packets(name: &'static str, default: i64, range: RangeInclusive<i64>) -> Self {
        let (min, max) = (*range.start(), *range.end());
        Self::new(name, ParameterType::Packets { default, min, max })
    }

    /// Returns a `Choice` parameter.
    pub const fn choice(
        name: &'static str,
        default: &'static str,
        choices: &'static [&'static str],
    ) -> Self {
        Self::new(name, ParameterType::Choice { default, choices })
    }

    /// Returns a `File` parameter.
    pub const fn file(
        name: &'static str,
        default: &'static [u8],
        content: &'static str,
        check: fn(&[u8]) -> Result<(), String>,
    ) -> Self {
        Self::new(name, ParameterType::File { default, content, check })
    }
}

impl ParameterType {
    /// Returns the default, or `None` if a scenario must set the parameter.
    pub fn default_value(&self) -> Option<ParameterValue> {
        Some(match *self {
            Self::Bool { default } => ParameterValue::Bool(default),
            Self::Integer { default, .. } => ParameterValue::Integer(default),
            Self::Number { default, .. } => ParameterValue::Number(default),
            Self::Span { default_ns, .. } => ParameterValue::Integer(default_ns),
            Self::Rate { default_bps, .. } => ParameterValue::Integer(default_bps),
            Self::Size { default_bytes, .. } => ParameterValue::Integer(default_bytes?),
            Self::Probability { default } => ParameterValue::Number(default?),
            Self::Limit { default, .. } => ParameterValue::Limit(default?),
            Self::Packets { default, .. } => ParameterValue::Integer(default),
            Self::Choice { default, .. } => ParameterValue::Text(default.to_owned()),
            Self::File { default, .. } => ParameterValue::Text(BASE64.encode(default)),
        })
    }

    /// Returns whether there is a default.
    pub const fn has_default(&self) -> bool {
        !matches!(
            self,
            Self::Size { default_bytes: None, .. }
                | Self::Probability { default: None }
                | Self::Limit { default: None, .. }
        )
    }

    /// Returns the smallest and largest value of a type with whole numbers in base units.
    pub fn range(&self) -> Option<(i64, i64)> {
        match *self {
            Self::Integer { min, max, .. } | Self::Packets { min, max, .. } => Some((min, max)),
            Self::Span { min_ns, max_ns, .. } => Some((min_ns, max_ns)),
            Self::Rate { min_bps, max_bps, .. } => Some((min_bps, max_bps)),
            Self::Size { min_bytes, max_bytes, .. } => Some((min_bytes, max_bytes)),
            _ => None,
        }
    }

    /// Describes the valid values.
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

    /// Checks the content of a file. Accepts everything for other types.
    ///
    /// # Errors
    /// If the content is too large or invalid.
    pub fn check_content(&self, content: &[u8]) -> Result<(), String> {
        match *self {
            Self::File { .. } if content.len() > MAX_FILE_BYTES => {
                Err(format!("larger than {} MiB", MAX_FILE_BYTES >> 20))
            }
            Self::File { check, .. } => check(content),
            _ => Ok(()),
        }
    }

    pub(crate) fn accepts(&self, value: &ParameterValue) -> bool {
        match (*self, value) {
            (Self::Bool { .. }, ParameterValue::Bool(_)) => true,
            (Self::Limit { min_bytes, max_bytes, .. }, ParameterValue::Limit(v)) => {
                i64::try_from(v.full_bytes()).is_ok_and(|v| (min_bytes..=max_bytes).contains(&v))
            }
            (Self::Probability { .. }, ParameterValue::Number(v)) => (0.0..=1.0).contains(v),
            (Self::Probability { .. }, ParameterValue::Integer(v)) => (0..=1).contains(v),
            (Self::Number { min, max, .. }, ParameterValue::Number(v)) => (min..=max).contains(v),
            // `gain = 2` is equivalent to `gain = 2.0`.
            (Self::Number { min, max, .. }, ParameterValue::Integer(v)) => {
                (min..=max).contains(&(*v as f64))
            }
            (Self::Choice { choices, .. }, ParameterValue::Text(v)) => {
                choices.contains(&v.as_str())
            }
            (Self::File { .. }, ParameterValue::Text(v)) => BASE64.decode(v).is_ok(),
            (_, ParameterValue::Integer(v)) => {
                self.range().is_some_and(|(min, max)| (min..=max).contains(v))
            }
            _ => false,
        }
    }
}

impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Limit(QueueLimit::Bytes(bytes)) => write!(f, "{bytes} bytes"),
            Self::Limit(QueueLimit::Packets(packets)) => write!(f, "{packets} packets"),
            Self::Text(text) => write!(f, "\"{text}\""),
        }
    }
}
