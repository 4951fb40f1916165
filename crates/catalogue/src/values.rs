//! What a row is built from.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jostle_units::{Rate, Span};

use crate::limit::Limit;
use crate::parameter::{Kind, Parameter, Value};

/// A value for each parameter of a row.
///
/// Whoever builds the row asks for them by name. A name that the row does not declare, or one of
/// another kind, is a mistake in the engine: that panics, in every build, and the tests of a registry
/// build every row in every setting. Copies share what they hold, so that a row can be built from the
/// same values again and again.
#[derive(Clone, Debug)]
pub struct Values {
    row: &'static str,
    parameters: &'static [Parameter],
    /// One for each of `parameters`; only [`Entry::defaults`](crate::Entry::defaults) may leave one out.
    values: Arc<[Option<Value>]>,
}

/// Values of the same row that are the same.
impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        self.row == other.row && self.values == other.values
    }
}

/// The content of a file; nothing if `value` has none.
pub(crate) fn content(value: &Value) -> Vec<u8> {
    match value {
        Value::Text(text) => BASE64.decode(text).unwrap_or_default(),
        _ => Vec::new(),
    }
}

impl Values {
    /// `values` are those of the `parameters` of `row`, in their order, and fit them.
    pub(crate) fn new(
        row: &'static str,
        parameters: &'static [Parameter],
        values: Arc<[Option<Value>]>,
    ) -> Self {
        debug_assert_eq!(parameters.len(), values.len());
        Self { row, parameters, values }
    }

    /// The value of a parameter that is `expected`, of the kinds that `is` names.
    fn get(&self, name: &str, expected: &str, is: impl Fn(&Kind) -> bool) -> &Value {
        let row = self.row;
        let mut both = self.parameters.iter().zip(&*self.values);
        let Some((parameter, value)) = both.find(|(parameter, _)| parameter.name == name) else {
            panic!("`{row}` asks for `{name}`, a parameter that it does not declare");
        };
        assert!(is(&parameter.kind), "`{row}.{name}` is not {expected}");
        value.as_ref().unwrap_or_else(|| panic!("`{row}.{name}` has no default"))
    }

    /// A parameter whose values are whole numbers.
    fn whole(&self, name: &str, expected: &str, is: impl Fn(&Kind) -> bool) -> i64 {
        match self.get(name, expected, is) {
            Value::Integer(value) => *value,
            other => panic!("`{}.{name}` is {other:?}", self.row),
        }
    }

    /// The same, of a range without numbers below 0.
    fn natural(&self, name: &str, expected: &str, is: impl Fn(&Kind) -> bool) -> u64 {
        self.whole(name, expected, is).unsigned_abs()
    }

    /// A `Bool` parameter.
    ///
    /// # Panics
    /// Here and below, when the row has no such parameter.
    pub fn bool(&self, name: &str) -> bool {
        *self.get(name, "true or false", |kind| matches!(kind, Kind::Bool { .. }))
            == Value::Bool(true)
    }

    /// An `Integer` parameter.
    pub fn integer(&self, name: &str) -> i64 {
        self.whole(name, "a whole number", |kind| matches!(kind, Kind::Integer { .. }))
    }

    /// An `Integer`, `Size` or `Packets` parameter whose range lies in that of `u32`.
    pub fn u32(&self, name: &str) -> u32 {
        let value = self.natural(name, "a whole number of 32 bits", |kind| match *kind {
            Kind::Integer { min, max, .. }
            | Kind::Size { min_bytes: min, max_bytes: max, .. }
            | Kind::Packets { min, max, .. } => min >= 0 && max <= i64::from(u32::MAX),
            _ => false,
        });
        value as u32
    }

    /// A `Number` or `Probability` parameter.
    pub fn number(&self, name: &str) -> f64 {
        let is = |kind: &Kind| matches!(kind, Kind::Number { .. } | Kind::Probability { .. });
        match self.get(name, "a number", is) {
            Value::Number(value) => *value,
            Value::Integer(value) => *value as f64,
            other => panic!("`{}.{name}` is {other:?}", self.row),
        }
    }

    /// A `Span` parameter.
    pub fn span(&self, name: &str) -> Span {
        let is = |kind: &Kind| matches!(kind, Kind::Span { min_ns: 0.., .. });
        Span::from_ns(self.natural(name, "a span", is))
    }

    /// A `Rate` parameter.
    pub fn rate(&self, name: &str) -> Rate {
        let is = |kind: &Kind| matches!(kind, Kind::Rate { min_bps: 0.., .. });
        Rate::from_bps(self.natural(name, "a rate", is))
    }

    /// A `Size` or `Packets` parameter.
    pub fn amount(&self, name: &str) -> u64 {
        self.natural(name, "a size or a number of packets", |kind| {
            matches!(kind, Kind::Size { min_bytes: 0.., .. } | Kind::Packets { min: 0.., .. })
        })
    }

    /// A `Limit` parameter.
    pub fn limit(&self, name: &str) -> Limit {
        match self.get(name, "a limit", |kind| matches!(kind, Kind::Limit { .. })) {
            Value::Limit(limit) => *limit,
            other => panic!("`{}.{name}` is {other:?}", self.row),
        }
    }

    /// A `Choice` parameter.
    pub fn choice(&self, name: &str) -> &str {
        match self.get(name, "one of some words", |kind| matches!(kind, Kind::Choice { .. })) {
            Value::Text(word) => word,
            other => panic!("`{}.{name}` is {other:?}", self.row),
        }
    }

    /// Content of a `File` parameter.
    pub fn file(&self, name: &str) -> Vec<u8> {
        content(self.get(name, "a file", |kind| matches!(kind, Kind::File { .. })))
    }
}

#[cfg(test)]
mod tests {
    use crate::entry::Entry;
    use crate::parameter::{Kind, Parameter};

    const ENTRY: Entry = Entry {
        name: "example",
        summary: "",
        class: "",
        based_on: &[],
        source: "",
        parameters: &[Parameter {
            name: "gain",
            summary: "",
            kind: Kind::Integer { default: 5, min: -1, max: 9 },
        }],
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
