//! Registry entries, and the validation of the parameters that a scenario sets.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::string::ToString;

use serde::Serialize;
use thiserror::Error;

use crate::parameter::{Parameter, ParameterValue};
use crate::parameter_values::{self, ParameterValues};

/// Description of a registry entry: everything except its constructor.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RegistryEntry {
    /// Name in scenarios; the Linux name if Linux has the algorithm.
    pub name: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// Group in listings (`loss`, `delay`, `model`, …).
    pub class: &'static str,
    /// Names of the entries that it extends, according to the literature.
    pub based_on: &'static [&'static str],
    /// RFC, paper or kernel file that specifies it.
    pub source: &'static str,
    /// Parameters in the order of listings.
    pub parameters: &'static [Parameter],
}

/// Reason why parameters are invalid.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ParameterError {
    /// The entry has no parameter of this name.
    #[error("`{row}` has no parameter `{name}`")]
    Unknown {
        /// Name of the entry.
        row: &'static str,
        /// Name in the scenario.
        name: String,
    },
    /// A required parameter is missing.
    #[error("`{row}` needs `{name}`: {expected}")]
    Missing {
        /// Name of the entry.
        row: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// Valid values.
        expected: String,
    },
    /// The value has the wrong type or is out of range.
    #[error("`{row}.{name}` cannot be {given}: {expected}")]
    Unfit {
        /// Name of the entry.
        row: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// The value in the scenario.
        given: String,
        /// Valid values.
        expected: String,
    },
    /// The content of a file is invalid.
    #[error("`{row}.{name}`: {problem}")]
    Content {
        /// Name of the entry.
        row: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// Description of the problem and its position.
        problem: String,
    },
}

impl ParameterError {
    /// Returns the name of the parameter.
    pub fn parameter(&self) -> &str {
        match self {
            Self::Unknown { name, .. } => name,
            Self::Missing { name, .. } | Self::Unfit { name, .. } | Self::Content { name, .. } => {
                name
            }
        }
    }
}

impl RegistryEntry {
    /// Checks the parameters `given`.
    ///
    /// # Errors
    /// If a name is unknown, a value is invalid, or a parameter without a default is
    /// missing.
    pub fn check(&self, given: &BTreeMap<String, ParameterValue>) -> Result<(), ParameterError> {
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

    /// Checks `given` and adds the defaults of the other parameters.
    ///
    /// # Errors
    /// See [`check`](Self::check).
    pub fn resolve(
        &self,
        given: &BTreeMap<String, ParameterValue>,
    ) -> Result<ParameterValues, ParameterError> {
        self.check(given)?;
        let value = |parameter: &Parameter| {
            given.get(parameter.name).cloned().or_else(|| parameter.kind.default_value())
        };
        Ok(ParameterValues::new(
            self.name,
            self.parameters,
            self.parameters.iter().map(value).collect(),
        ))
    }

    /// Returns the range of a parameter in base units, or `None` for a name without a range.
    /// Specifications that have the parameter as a separate field use this range.
    pub fn range(&self, name: &str) -> Option<(i64, i64)> {
        self.parameters.iter().find(|parameter| parameter.name == name)?.kind.range()
    }

    fn check_value(
        &self,
        parameter: &Parameter,
        value: &ParameterValue,
    ) -> Result<(), ParameterError> {
        if !parameter.kind.accepts(value) {
            return Err(self.unfit(parameter.name, value, parameter.kind.expected()));
        }
        parameter.kind.check_content(&parameter_values::content(value)).map_err(|problem| {
            ParameterError::Content { row: self.name, name: parameter.name, problem }
        })
    }

    /// Returns the error for an invalid value, for entries whose parameters depend on each other.
    pub fn unfit(
        &self,
        name: &'static str,
        given: &ParameterValue,
        expected: String,
    ) -> ParameterError {
        ParameterError::Unfit { row: self.name, name, given: given.to_string(), expected }
    }

    /// Returns the default of each parameter that has one.
    pub fn defaults(&self) -> ParameterValues {
        let values = self.parameters.iter().map(|parameter| parameter.kind.default_value());
        ParameterValues::new(self.name, self.parameters, values.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueueLimit;
    use crate::parameter::{MAX_FILE_BYTES, ParameterType};

    const ENTRY: RegistryEntry = RegistryEntry {
        name: "example",
        summary: "",
        class: "",
        based_on: &[],
        source: "",
        parameters: &[
            Parameter::number("gain", 0.5, 0.0..=2.0),
            Parameter::choice("flavour", "mild", &["mild", "hot"]),
            Parameter::file("recipe", b"salt", "a recipe", not_sweet),
        ],
    };

    fn not_sweet(content: &[u8]) -> Result<(), String> {
        match content.iter().position(|&byte| byte == b'!') {
            Some(at) => Err(format!("byte {at}: too sweet")),
            None => Ok(()),
        }
    }

    fn given(name: &str, value: ParameterValue) -> BTreeMap<String, ParameterValue> {
        BTreeMap::from([(name.to_owned(), value)])
    }

    #[test]
    fn what_has_a_default_gives_one() {
        let (min_bytes, max_bytes) = (0, 1);
        let size = |default_bytes| ParameterType::Size { default_bytes, min_bytes, max_bytes };
        let limit = |default| ParameterType::Limit { default, min_bytes, max_bytes };
        let probability = |default| ParameterType::Probability { default };
        let given = [size(Some(1)), limit(Some(QueueLimit::Bytes(1))), probability(Some(0.5))];
        let silent = [size(None), limit(None), probability(None)];
        let others = ENTRY.parameters.iter().map(|parameter| parameter.kind);
        for kind in given.into_iter().chain(silent).chain(others) {
            assert_eq!(kind.has_default(), kind.default_value().is_some(), "{}", kind.expected());
        }
    }

    #[test]
    fn what_is_missing_without_a_default_is_named() {
        const SHARE: Parameter = Parameter::probability("share", None);
        let parameters = &[SHARE];
        let refused = RegistryEntry { parameters, ..ENTRY }.check(&BTreeMap::new()).unwrap_err();
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
        assert_eq!(
            ENTRY.resolve(&given("gain", ParameterValue::Integer(2))).unwrap().number("gain"),
            2.0
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        let unknown = ENTRY.resolve(&given("gian", ParameterValue::Number(1.0))).unwrap_err();
        assert_eq!(unknown.to_string(), "`example` has no parameter `gian`");
        for value in [
            ParameterValue::Number(2.5),
            ParameterValue::Number(f64::NAN),
            ParameterValue::Bool(true),
        ] {
            assert!(ENTRY.resolve(&given("gain", value)).is_err());
        }
        let unfit =
            ENTRY.resolve(&given("flavour", ParameterValue::Text("cold".into()))).unwrap_err();
        assert!(unfit.to_string().ends_with("one of mild, hot"));
    }

    #[test]
    fn a_file_is_given_by_its_content() {
        assert_eq!(ENTRY.defaults().file("recipe"), b"salt");
        let values =
            ENTRY.resolve(&given("recipe", ParameterValue::Text("cGVwcGVy".into()))).unwrap();
        assert_eq!(values.file("recipe"), b"pepper");
        let sweet =
            ENTRY.resolve(&given("recipe", ParameterValue::Text("YSE=".into()))).unwrap_err();
        assert_eq!(sweet.to_string(), "`example.recipe`: byte 1: too sweet");
        let path =
            ENTRY.resolve(&given("recipe", ParameterValue::Text("pepper.txt".into()))).unwrap_err();
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
