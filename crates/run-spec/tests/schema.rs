//! The JSON Schema of a RunSpec is a contract: a copy is kept beside the code.

use crate::common;
use std::collections::BTreeSet;
use std::path::Path;

use jostle_run_spec::RunSpec;
use serde_json::Value;

fn schema() -> Value {
    serde_json::json!(schemars::schema_for!(RunSpec))
}

/// Set `JOSTLE_BLESS=1` to write the copy anew.
#[test]
fn the_committed_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/run-spec.json");
    let current = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("JOSTLE_BLESS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(committed == current, "schema/run-spec.json is out of date: JOSTLE_BLESS=1 renews it");
}

/// Take away the keys that are null: what came later is absent from what was written before.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, inner| !inner.is_null());
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

/// What 0.1.0 wrote stands in `tests/formats`: while the schema has that number, it is read as it was
/// written, key by key.
#[test]
fn the_number_of_the_format_is_that_of_what_the_first_release_wrote() {
    assert_eq!(schema()["$id"], "urn:jostle:run-spec:3");
    let path = "../../tests/formats/0.1.0.summary-3.segment-2/run-spec.json";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let mut written: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let spec: RunSpec = serde_json::from_value(written.clone()).unwrap();
    spec.validate().unwrap();
    let mut read = serde_json::to_value(&spec).unwrap();
    for one in [&mut written, &mut read] {
        without_nulls(one);
    }
    assert_eq!(read, written);
}

/// Names of all keys of objects below `value`.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                found.insert(key.clone());
                match (key.as_str(), inner) {
                    // What a row calls its parameters the registry says.
                    ("parameters", Value::Object(named)) => {
                        named.values().for_each(|value| keys(value, found));
                    }
                    _ => keys(inner, found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| keys(inner, found)),
        _ => {}
    }
}

/// Names of all properties that a schema describes.
fn properties(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(properties)) = map.get("properties") {
                found.extend(properties.keys().cloned());
            }
            map.values().for_each(|inner| properties(inner, found));
        }
        Value::Array(list) => list.iter().for_each(|inner| properties(inner, found)),
        _ => {}
    }
}

#[test]
fn the_schema_describes_every_key_and_no_other() {
    let (mut used, mut described) = (BTreeSet::new(), BTreeSet::new());
    keys(&common::dumbbell(), &mut used);
    keys(&common::everything(), &mut used);
    keys(&common::pings(), &mut used);
    keys(&common::calls(), &mut used);
    keys(&common::timed(), &mut used);
    keys(&common::classes(), &mut used);
    keys(&common::quic(), &mut used);
    keys(&common::many(), &mut used);
    keys(&common::measured(), &mut used);
    keys(&common::receivers(), &mut used);
    keys(&common::hosts(), &mut used);
    keys(&common::faulty(), &mut used);
    keys(&common::lines(), &mut used);
    keys(&common::routes(), &mut used);
    keys(&common::slow(), &mut used);
    keys(&common::tunnels(), &mut used);
    keys(&common::shared(), &mut used);
    properties(&schema(), &mut described);
    assert_eq!(used, described);
}

#[test]
fn every_property_says_what_it_means() {
    fn check(schema: &Value) {
        if let Some(Value::Object(properties)) = schema.get("properties") {
            // A variant's tag or only key is described with the variant.
            let variant = properties.len() == 1 && schema.get("description").is_some();
            for (name, property) in properties {
                let described = property.get("description").is_some();
                let tag = property.get("const").is_some();
                assert!(described || tag || variant, "`{name}` has no description");
            }
        }
        match schema {
            Value::Object(map) => map.values().for_each(check),
            Value::Array(list) => list.iter().for_each(check),
            _ => {}
        }
    }
    check(&schema());
}
