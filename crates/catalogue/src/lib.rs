//! Rows of the registries: what an algorithm, queue or source is called, where it comes from, and
//! which parameters it takes. Command-line help, documentation, schemas and the test matrix are
//! derived from these rows.

mod limit;
mod linux;

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jostle_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

pub use limit::Limit;
pub use linux::Linux;

/// What a registry knows about one of its rows, beside how to build it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Entry {
    /// Name in scenarios, as in Linux where it exists there.
    pub name: &'static str,
    /// One line that says what it is.
    pub summary: &'static str,
    /// Group it is listed under (`loss`, `delay`, `model`, …).
    pub class: &'static str,
    /// Names it builds on, as the literature draws the family tree.
    pub based_on: &'static [&'static str],
    /// RFC, paper or kernel file that specifies it.
    pub source: &'static str,
    /// Parameters in the order they are listed.
    pub parameters: &'static [Parameter],
}

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
const MAX_FILE_BYTES: usize = 1 << 22;

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

/// Why parameters were refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ParameterError {
    /// The row has no such parameter.
    #[error("`{row}` has no parameter `{name}`")]
    Unknown {
        /// Name of the row.
        row: &'static str,
        /// Name that was given.
        name: String,
    },
    /// The row needs a parameter that is not given.
    #[error("`{row}` needs `{name}`: {expected}")]
    Missing {
        /// Name of the row.
        row: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// What would be accepted.
        expected: String,
    },
    /// The value does not fit the parameter's kind or range.
    #[error("`{row}.{name}` cannot be {given}: {expected}")]
    Unfit {
        /// Name of the row.
        row: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// The value that was given.
        given: String,
        /// What would be accepted.
        expected: String,
    },
    /// A file does not hold what it should.
    #[error("`{row}.{name}`: {problem}")]
    Content {
        /// Name of the row.
        row: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// What is wrong, and where.
        problem: String,
    },
}

impl ParameterError {
    /// Name of the parameter.
    pub fn parameter(&self) -> &str {
        match self {
            Self::Unknown { name, .. } => name,
            Self::Missing { name, .. } | Self::Unfit { name, .. } | Self::Content { name, .. } => {
                name
            }
        }
    }
}

/// A value for each parameter of a row. Asking for a name that the row does not have gives the
/// zero of the type, which the registry's tests rule out by building every row.
#[derive(Clone, Debug, PartialEq)]
pub struct Values(BTreeMap<&'static str, Value>);

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

    fn accepts(&self, value: &Value) -> bool {
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

impl Entry {
    /// Checks `given` and fills in defaults for what it does not name.
    ///
    /// # Errors
    /// When a name is unknown or a value does not fit.
    pub fn resolve(&self, given: &BTreeMap<String, Value>) -> Result<Values, ParameterError> {
        if let Some(name) = given.keys().find(|n| self.parameters.iter().all(|p| p.name != **n)) {
            return Err(ParameterError::Unknown { row: self.name, name: name.clone() });
        }
        let values = self.parameters.iter().map(|parameter| {
            let value = match given.get(parameter.name) {
                Some(value) => self.checked(parameter, value)?.clone(),
                None => parameter.kind.default_value().ok_or_else(|| ParameterError::Missing {
                    row: self.name,
                    name: parameter.name,
                    expected: parameter.kind.expected(),
                })?,
            };
            Ok((parameter.name, value))
        });
        Ok(Values(values.collect::<Result<_, _>>()?))
    }

    /// Range of a parameter in whole base units, which is how it holds for specifications that name
    /// the parameters of a row as fields of their own; none for a name without a range.
    pub fn range(&self, name: &str) -> Option<(i64, i64)> {
        self.parameters.iter().find(|parameter| parameter.name == name)?.kind.range()
    }

    fn checked<'a>(
        &self,
        parameter: &Parameter,
        value: &'a Value,
    ) -> Result<&'a Value, ParameterError> {
        if !parameter.kind.accepts(value) {
            return Err(self.unfit(parameter.name, value, parameter.kind.expected()));
        }
        parameter.kind.check_content(&content(value)).map_err(|problem| {
            ParameterError::Content { row: self.name, name: parameter.name, problem }
        })?;
        Ok(value)
    }

    /// The error that a value does not fit, for rows whose parameters depend on each other.
    pub fn unfit(&self, name: &'static str, given: &Value, expected: String) -> ParameterError {
        ParameterError::Unfit { row: self.name, name, given: given.to_string(), expected }
    }

    /// Every parameter at its default; without those that have none.
    pub fn defaults(&self) -> Values {
        let default = |p: &Parameter| Some((p.name, p.kind.default_value()?));
        Values(self.parameters.iter().filter_map(default).collect())
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

/// The content of a file; nothing if `value` has none.
fn content(value: &Value) -> Vec<u8> {
    match value {
        Value::Text(text) => BASE64.decode(text).unwrap_or_default(),
        _ => Vec::new(),
    }
}

impl Values {
    /// A `Bool` parameter.
    pub fn bool(&self, name: &str) -> bool {
        matches!(self.0.get(name), Some(Value::Bool(true)))
    }

    /// An `Integer` parameter.
    pub fn integer(&self, name: &str) -> i64 {
        match self.0.get(name) {
            Some(Value::Integer(v)) => *v,
            _ => 0,
        }
    }

    /// An `Integer` parameter whose range lies in that of `u32`.
    pub fn u32(&self, name: &str) -> u32 {
        u32::try_from(self.integer(name)).unwrap_or(0)
    }

    /// A `Number` or `Probability` parameter.
    pub fn number(&self, name: &str) -> f64 {
        match self.0.get(name) {
            Some(Value::Number(v)) => *v,
            Some(Value::Integer(v)) => *v as f64,
            _ => 0.0,
        }
    }

    /// A `Size` or `Packets` parameter.
    pub fn amount(&self, name: &str) -> u64 {
        u64::try_from(self.integer(name)).unwrap_or(0)
    }

    /// A `Limit` parameter.
    pub fn limit(&self, name: &str) -> Limit {
        match self.0.get(name) {
            Some(Value::Limit(limit)) => *limit,
            _ => Limit::Bytes(0),
        }
    }

    /// A `Span` parameter.
    pub fn span(&self, name: &str) -> Span {
        Span::from_ns(u64::try_from(self.integer(name)).unwrap_or(0))
    }

    /// A `Rate` parameter.
    pub fn rate(&self, name: &str) -> Rate {
        Rate::from_bps(u64::try_from(self.integer(name)).unwrap_or(0))
    }

    /// A `Choice` parameter.
    pub fn choice(&self, name: &str) -> &str {
        match self.0.get(name) {
            Some(Value::Text(v)) => v,
            _ => "",
        }
    }

    /// Content of a `File` parameter.
    pub fn file(&self, name: &str) -> Vec<u8> {
        self.0.get(name).map(content).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Entry = Entry {
        name: "example",
        summary: "",
        class: "",
        based_on: &[],
        source: "",
        parameters: &[
            Parameter {
                name: "gain",
                summary: "",
                kind: Kind::Number { default: 0.5, min: 0.0, max: 2.0 },
            },
            Parameter {
                name: "flavour",
                summary: "",
                kind: Kind::Choice { default: "mild", choices: &["mild", "hot"] },
            },
            Parameter {
                name: "recipe",
                summary: "",
                kind: Kind::File { default: b"salt", content: "a recipe", check: not_sweet },
            },
        ],
    };

    fn not_sweet(content: &[u8]) -> Result<(), String> {
        match content.iter().position(|&byte| byte == b'!') {
            Some(at) => Err(format!("byte {at}: too sweet")),
            None => Ok(()),
        }
    }

    fn given(name: &str, value: Value) -> BTreeMap<String, Value> {
        BTreeMap::from([(name.to_owned(), value)])
    }

    #[test]
    fn silence_means_the_default() {
        let values = ENTRY.resolve(&BTreeMap::new()).unwrap();
        assert_eq!(values, ENTRY.defaults());
        assert_eq!(values.number("gain"), 0.5);
        assert_eq!(values.choice("flavour"), "mild");
    }

    #[test]
    fn whole_numbers_serve_as_real_ones() {
        assert_eq!(ENTRY.resolve(&given("gain", Value::Integer(2))).unwrap().number("gain"), 2.0);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        let unknown = ENTRY.resolve(&given("gian", Value::Number(1.0))).unwrap_err();
        assert_eq!(unknown.to_string(), "`example` has no parameter `gian`");
        for value in [Value::Number(2.5), Value::Number(f64::NAN), Value::Bool(true)] {
            assert!(ENTRY.resolve(&given("gain", value)).is_err());
        }
        let unfit = ENTRY.resolve(&given("flavour", Value::Text("cold".into()))).unwrap_err();
        assert!(unfit.to_string().ends_with("one of mild, hot"));
    }

    #[test]
    fn a_file_is_given_by_its_content() {
        assert_eq!(ENTRY.defaults().file("recipe"), b"salt");
        let values = ENTRY.resolve(&given("recipe", Value::Text("cGVwcGVy".into()))).unwrap();
        assert_eq!(values.file("recipe"), b"pepper");
        let sweet = ENTRY.resolve(&given("recipe", Value::Text("YSE=".into()))).unwrap_err();
        assert_eq!(sweet.to_string(), "`example.recipe`: byte 1: too sweet");
        let path = ENTRY.resolve(&given("recipe", Value::Text("pepper.txt".into()))).unwrap_err();
        assert!(path.to_string().ends_with("a recipe, in Base64"), "{path}");
        let shown = serde_json::to_value(ENTRY).unwrap();
        let expected = serde_json::json!({
            "name": "recipe",
            "summary": "",
            "kind": "file",
            "default": "c2FsdA==",
            "content": "a recipe",
        });
        assert_eq!(shown["parameters"][2], expected);
    }

    #[test]
    fn a_file_has_room_in_a_specification() {
        let recipe = ENTRY.parameters[2].kind;
        assert!(recipe.check_content(&vec![0; MAX_FILE_BYTES]).is_ok());
        let much = recipe.check_content(&vec![0; MAX_FILE_BYTES + 1]);
        assert_eq!(much.unwrap_err(), "larger than 4 MiB");
    }
}
