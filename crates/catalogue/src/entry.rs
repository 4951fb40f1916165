//! What a registry knows of a row, and how it takes what a scenario gives.

use std::collections::BTreeMap;

use serde::Serialize;
use thiserror::Error;

use crate::parameter::{Parameter, Value};
use crate::values::{self, Values};

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

impl Entry {
    /// Checks `given`.
    ///
    /// # Errors
    /// When a name is unknown, a value does not fit, or one is missing that has no default.
    pub fn check(&self, given: &BTreeMap<String, Value>) -> Result<(), ParameterError> {
        if let Some(name) = given.keys().find(|n| self.parameters.iter().all(|p| p.name != **n)) {
            return Err(ParameterError::Unknown { row: self.name, name: name.clone() });
        }
        for parameter in self.parameters {
            match given.get(parameter.name) {
                Some(value) => self.check_value(parameter, value)?,
                None if parameter.kind.has_default() => {}
                None => {
                    return Err(ParameterError::Missing {
                        row: self.name,
                        name: parameter.name,
                        expected: parameter.kind.expected(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Checks `given` and fills in defaults for what it does not name.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn resolve(&self, given: &BTreeMap<String, Value>) -> Result<Values, ParameterError> {
        self.check(given)?;
        let value = |parameter: &Parameter| {
            given.get(parameter.name).cloned().or_else(|| parameter.kind.default_value())
        };
        Ok(Values::new(self.name, self.parameters, self.parameters.iter().map(value).collect()))
    }

    /// Range of a parameter in whole base units, which is how it holds for specifications that name
    /// the parameters of a row as fields of their own; none for a name without a range.
    pub fn range(&self, name: &str) -> Option<(i64, i64)> {
        self.parameters.iter().find(|parameter| parameter.name == name)?.kind.range()
    }

    fn check_value(&self, parameter: &Parameter, value: &Value) -> Result<(), ParameterError> {
        if !parameter.kind.accepts(value) {
            return Err(self.unfit(parameter.name, value, parameter.kind.expected()));
        }
        parameter.kind.check_content(&values::content(value)).map_err(|problem| {
            ParameterError::Content { row: self.name, name: parameter.name, problem }
        })
    }

    /// The error that a value does not fit, for rows whose parameters depend on each other.
    pub fn unfit(&self, name: &'static str, given: &Value, expected: String) -> ParameterError {
        ParameterError::Unfit { row: self.name, name, given: given.to_string(), expected }
    }

    /// Every parameter at its default; without those that have none.
    pub fn defaults(&self) -> Values {
        let values = self.parameters.iter().map(|parameter| parameter.kind.default_value());
        Values::new(self.name, self.parameters, values.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limit;
    use crate::parameter::{Kind, MAX_FILE_BYTES};

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
    fn what_has_a_default_gives_one() {
        let (min_bytes, max_bytes) = (0, 1);
        let size = |default_bytes| Kind::Size { default_bytes, min_bytes, max_bytes };
        let limit = |default| Kind::Limit { default, min_bytes, max_bytes };
        let probability = |default| Kind::Probability { default };
        let given = [size(Some(1)), limit(Some(Limit::Bytes(1))), probability(Some(0.5))];
        let silent = [size(None), limit(None), probability(None)];
        let others = ENTRY.parameters.iter().map(|parameter| parameter.kind);
        for kind in given.into_iter().chain(silent).chain(others) {
            assert_eq!(kind.has_default(), kind.default_value().is_some(), "{}", kind.expected());
        }
    }

    #[test]
    fn what_is_missing_without_a_default_is_named() {
        const SHARE: Parameter =
            Parameter { name: "share", summary: "", kind: Kind::Probability { default: None } };
        let parameters = &[SHARE];
        let refused = Entry { parameters, ..ENTRY }.check(&BTreeMap::new()).unwrap_err();
        assert!(matches!(refused, ParameterError::Missing { name: "share", .. }), "{refused}");
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
