//! Rows of the registries: what an algorithm, queue or source is called, where it comes from, and
//! which parameters it takes. Command-line help, documentation, schemas and the test matrix are
//! derived from these rows.

use std::collections::BTreeMap;

use jostle_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

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
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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
    /// One of some words.
    Choice {
        /// Value when a scenario is silent.
        default: &'static str,
        /// The words.
        choices: &'static [&'static str],
    },
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
    /// One of a parameter's words.
    Choice(String),
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
}

/// A value for each parameter of a row. Asking for a name that the row does not have gives the
/// zero of the type, which the registry's tests rule out by building every row.
#[derive(Clone, Debug, PartialEq)]
pub struct Values(BTreeMap<&'static str, Value>);

impl Kind {
    /// The value when a scenario is silent.
    pub fn default_value(&self) -> Value {
        match *self {
            Self::Bool { default } => Value::Bool(default),
            Self::Integer { default, .. } => Value::Integer(default),
            Self::Number { default, .. } => Value::Number(default),
            Self::Span { default_ns, .. } => Value::Integer(default_ns),
            Self::Rate { default_bps, .. } => Value::Integer(default_bps),
            Self::Size { default_bytes, .. } => Value::Integer(default_bytes.unwrap_or(0)),
            Self::Choice { default, .. } => Value::Choice(default.to_owned()),
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
            Self::Choice { choices, .. } => format!("one of {}", choices.join(", ")),
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
            (Self::Number { min, max, .. }, Value::Number(v)) => (min..=max).contains(v),
            // `gain = 2` is as good as `gain = 2.0`.
            (Self::Number { min, max, .. }, Value::Integer(v)) => {
                (min..=max).contains(&(*v as f64))
            }
            (Self::Choice { choices, .. }, Value::Choice(v)) => choices.contains(&v.as_str()),
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
        let mut values = BTreeMap::new();
        for parameter in self.parameters {
            let value = match given.get(parameter.name) {
                None => parameter.kind.default_value(),
                Some(value) if parameter.kind.accepts(value) => value.clone(),
                Some(value) => {
                    return Err(ParameterError::Unfit {
                        row: self.name,
                        name: parameter.name,
                        given: format!("{value:?}"),
                        expected: parameter.kind.expected(),
                    });
                }
            };
            values.insert(parameter.name, value);
        }
        Ok(Values(values))
    }

    /// Every parameter at its default.
    pub fn defaults(&self) -> Values {
        Values(self.parameters.iter().map(|p| (p.name, p.kind.default_value())).collect())
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

    /// A `Number` parameter.
    pub fn number(&self, name: &str) -> f64 {
        match self.0.get(name) {
            Some(Value::Number(v)) => *v,
            Some(Value::Integer(v)) => *v as f64,
            _ => 0.0,
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
            Some(Value::Choice(v)) => v,
            _ => "",
        }
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
        ],
    };

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
        let unfit = ENTRY.resolve(&given("flavour", Value::Choice("cold".into()))).unwrap_err();
        assert!(unfit.to_string().ends_with("one of mild, hot"));
    }
}
