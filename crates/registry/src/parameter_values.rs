//! Values of the parameters of a registry entry.

use alloc::sync::Arc;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jostle_units::{Rate, Span};

use crate::parameter::{Parameter, ParameterType, ParameterValue};
use crate::queue_limit::QueueLimit;

/// A value for each parameter of a row.
///
/// Constructors read them by name. To read a parameter that the entry does not declare, or with the
/// wrong type, is an error of the engine and panics in every build. The tests of a registry build
/// each entry with all settings. Clones share their values, so that an entry can be built many
/// times from the same values.
#[derive(Clone, Debug)]
pub struct ParameterValues {
    row: &'static str,
    parameters: &'static [Parameter],
    /// Parallel to `parameters`. Only [`RegistryEntry::defaults`](crate::RegistryEntry::defaults)
    /// leaves out values.
    values: Arc<[Option<ParameterValue>]>,
}

/// Compares the entry and its values.
impl PartialEq for ParameterValues {
    fn eq(&self, other: &Self) -> bool {
        self.row == other.row && self.values == other.values
    }
}

/// Decodes the content of a file; empty if `value` is not text.
pub(crate) fn content(value: &ParameterValue) -> Vec<u8> {
    match value {
        ParameterValue::Text(text) => BASE64.decode(text).unwrap_or_default(),
        _ => Vec::new(),
    }
}

impl ParameterValues {
    /// Creates the values of `row`. `values` are in the order of `parameters` and valid.
    pub(crate) fn new(
        row: &'static str,
        parameters: &'static [Parameter],
        values: Arc<[Option<ParameterValue>]>,
    ) -> Self {
        debug_assert_eq!(parameters.len(), values.len());
        Self { row, parameters, values }
    }

    /// Returns the value of a parameter. Panics unless `is` accepts its type, which `expected`
    /// describes.
    fn get(
        &self,
        name: &str,
        expected: &str,
        is: impl Fn(&ParameterType) -> bool,
    ) -> &ParameterValue {
        let row = self.row;
        let mut both = self.parameters.iter().zip(&*self.values);
        let Some((parameter, value)) = both.find(|(parameter, _)| parameter.name == name) else {
            panic!("`{row}` asks for `{name}`, a parameter that it does not declare");
        };
        assert!(is(&parameter.kind), "`{row}.{name}` is not {expected}");
        value.as_ref().unwrap_or_else(|| panic!("`{row}.{name}` has no default"))
    }

    /// Returns the value of a parameter with whole numbers.
    fn integer_where(
        &self,
        name: &str,
        expected: &str,
        is: impl Fn(&ParameterType) -> bool,
    ) -> i64 {
        match self.get(name, expected, is) {
            ParameterValue::Integer(value) => *value,
            other => panic!("`{}.{name}` is {other:?}", self.row),
        }
    }

    /// Returns the value of a parameter whose range contains no negative numbers.
    fn natural(&self, name: &str, expected: &str, is: impl Fn(&ParameterType) -> bool) -> u64 {
        self.integer_where(name, expected, is).unsigned_abs()
    }

    /// Returns the value of a `Bool` parameter.
    ///
    /// # Panics
    /// This and the following methods panic if the entry has no such parameter.
    pub fn bool(&self, name: &str) -> bool {
        *self.get(name, "true or false", |kind| matches!(kind, ParameterType::Bool { .. }))
            == ParameterValue::Bool(true)
    }

    /// Returns the value of an `Integer` parameter.
    pub fn integer(&self, name: &str) -> i64 {
        self.integer_where(name, "a whole number", |kind| {
            matches!(kind, ParameterType::Integer { .. })
        })
    }

    /// Returns the value of an `Integer`, `Size` or `Packets` parameter whose range fits into
    /// `u32`.
    pub fn u32(&self, name: &str) -> u32 {
        let value = self.natural(name, "a whole number of 32 bits", |kind| match *kind {
            ParameterType::Integer { min, max, .. }
            | ParameterType::Size { min_bytes: min, max_bytes: max, .. }
            | ParameterType::Packets { min, max, .. } => min >= 0 && max <= i64::from(u32::MAX),
            _ => false,
        });
        value as u32
    }

    /// Returns the value of a `Number` or `Probability` parameter.
    pub fn number(&self, name: &str) -> f64 {
        let is = |kind: &ParameterType| {
            matches!(kind, ParameterType::Number { .. } | ParameterType::Probability { .. })
        };
        match self.get(name, "a number", is) {
            ParameterValue::Number(value) => *value,
            ParameterValue::Integer(value) => *value as f64,
            other => panic!("`{}.{name}` is {other:?}", self.row),
        }
    }

    /// Returns the value of a `Span` parameter.
    pub fn span(&self, name: &str) -> Span {
        let is = |kind: &ParameterType| matches!(kind, ParameterType::Span { min_ns: 0.., .. });
        Span::from_ns(self.natural(name, "a span", is))
    }

    /// Returns the value of a `Rate` parameter.
    pub fn rate(&self, name: &str) -> Rate {
        let is = |kind: &ParameterType| matches!(kind, ParameterType::Rate { min_bps: 0.., .. });
        Rate::from_bps(self.natural(name, "a rate", is))
    }

    /// Returns the value of a `Size` or `Packets` parameter.
    pub fn amount(&self, name: &str) -> u64 {
        self.natural(name, "a size or a number of packets", |kind| {
            matches!(
                kind,
                ParameterType::Size { min_bytes: 0.., .. }
                    | ParameterType::Packets { min: 0.., .. }
            )
        })
    }

    /// Returns the value of a `Limit` parameter.
    pub fn limit(&self, name: &str) -> QueueLimit {
        match self.get(name, "a limit", |kind| matches!(kind, ParameterType::Limit { .. })) {
            ParameterValue::Limit(limit) => *limit,
            other => panic!("`{}.{name}` is {other:?}", self.row),
        }
    }

    /// Returns the value of a `Choice` parameter.
    pub fn choice(&self, name: &str) -> &str {
        match self
            .get(name, "one of some words", |kind| matches!(kind, ParameterType::Choice { .. }))
        {
            ParameterValue::Text(word) => word,
            other => panic!("`{}.{name}` is {other:?}", self.row),
        }
    }

    /// Returns the content of a `File` parameter.
    pub fn file(&self, name: &str) -> Vec<u8> {
        content(self.get(name, "a file", |kind| matches!(kind, ParameterType::File { .. })))
    }
}

#[cfg(test)]
mod tests {
    use crate::entry::RegistryEntry;
    use crate::parameter::Parameter;

    const ENTRY: RegistryEntry = RegistryEntry {
        name: "example",
        summary: "",
        class: "",
        based_on: &[],
        source: "",
        parameters: &[Parameter::integer("gain", 5, -1..=9)],
    };

    #[test]
    #[should_panic(expected = "`example` asks for `gian`, a parameter that it does not declare")]
    fn a_name_that_no_row_declares_is_no_zero() {
        ENTRY.defaults().integer("gian");
    }

    #[test]
    #[should_panic(expected = "`example.gain` is not a span")]
    fn a_parameter_of_another_kind_is_no_zero() {
        ENTRY.defaults().span("gain");
    }

    #[test]
    #[should_panic(expected = "`example.gain` is not a whole number of 32 bits")]
    fn a_number_below_0_is_not_cut_off() {
        ENTRY.defaults().u32("gain");
    }

    #[test]
    fn what_is_declared_is_there() {
        assert_eq!(ENTRY.defaults().integer("gain"), 5);
    }
}
