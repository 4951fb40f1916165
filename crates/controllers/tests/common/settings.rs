//! The settings with which a row of a registry is tried.

use std::collections::BTreeMap;

use jostle_registry::{ParameterType, ParameterValue, RegistryEntry};

/// Parameters of a scenario.
pub type Given = BTreeMap<String, ParameterValue>;

/// The smallest and the largest value of a parameter, or all of its words.
fn extremes(kind: &ParameterType) -> Vec<ParameterValue> {
    match *kind {
        ParameterType::Bool { .. } => vec![ParameterValue::Bool(false), ParameterValue::Bool(true)],
        ParameterType::Integer { min, max, .. }
        | ParameterType::Span { min_ns: min, max_ns: max, .. }
        | ParameterType::Rate { min_bps: min, max_bps: max, .. }
        | ParameterType::Size { min_bytes: min, max_bytes: max, .. }
        | ParameterType::Packets { min, max, .. } => {
            vec![ParameterValue::Integer(min), ParameterValue::Integer(max)]
        }
        ParameterType::Number { min, max, .. } => {
            vec![ParameterValue::Number(min), ParameterValue::Number(max)]
        }
        ParameterType::Choice { choices, .. } => {
            choices.iter().map(|&word| ParameterValue::Text(word.to_owned())).collect()
        }
        ParameterType::Probability { .. } => {
            vec![ParameterValue::Number(0.0), ParameterValue::Number(1.0)]
        }
        // Links alone have limits.
        ParameterType::File { .. } | ParameterType::Limit { .. } => {
            kind.default_value().into_iter().collect()
        }
    }
}

/// Every parameter alone at each of its extremes, then all at their first, all at their last.
pub fn settings(entry: &RegistryEntry) -> Vec<Given> {
    let one = |name: &str, value| Given::from([(name.to_owned(), value)]);
    let mut settings = vec![Given::new()];
    for parameter in entry.parameters {
        settings.extend(extremes(&parameter.kind).into_iter().map(|v| one(parameter.name, v)));
    }
    // What has flavours is several controllers: each meets every setting.
    let flavours = entry.parameters.iter().filter(|parameter| parameter.name == "flavour");
    for flavour in flavours.flat_map(|parameter| extremes(&parameter.kind)) {
        let with: Vec<Given> = settings
            .iter()
            .filter(|given| !given.contains_key("flavour"))
            .map(|given| {
                let mut given = given.clone();
                given.insert("flavour".to_owned(), flavour.clone());
                given
            })
            .collect();
        settings.extend(with);
    }
    for end in [0, usize::MAX] {
        let all = entry.parameters.iter().map(|parameter| {
            let values = extremes(&parameter.kind);
            (parameter.name.to_owned(), values[end.min(values.len() - 1)].clone())
        });
        settings.push(all.collect());
    }
    settings
}
