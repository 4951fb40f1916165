//! The registries as JSON: help, documentation and checks in Python derive from them.

use jostle_catalogue::Entry;
use jostle_control::EcnFeedback;
use jostle_control::registry::{CONTROLLERS, ControllerRow, MEMORIES, SLOW_STARTS, Start};
use jostle_path::registry::{CAPACITIES, DELAYS, LOSSES, QUEUES};
use jostle_record::RunSpec;
use pyo3::prelude::*;
use serde_json::{Value, json};

/// All registries as a JSON document: lists of rows by kind, in the order of the registry. A
/// controller's row names its default slow start under `slow_start`, or null if it has its own, and
/// says under `needs_ecn` whether it is for connections with ECN.
#[pyfunction]
pub fn registry() -> String {
    let controllers: Vec<_> = CONTROLLERS.iter().map(controller).collect();
    json!({
        "controllers": controllers,
        "slow_starts": rows(SLOW_STARTS.iter().map(|row| &row.entry)),
        "memories": rows(MEMORIES.iter().map(|row| &row.entry)),
        "queues": rows(QUEUES.iter().map(|row| &row.entry)),
        "capacities": rows(CAPACITIES.iter().map(|row| &row.entry)),
        "delays": rows(DELAYS.iter().map(|row| &row.entry)),
        "losses": rows(LOSSES.iter().map(|row| &row.entry)),
    })
    .to_string()
}

fn rows<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<Value> {
    entries.map(|entry| json!(entry)).collect()
}

fn controller(row: &ControllerRow) -> Value {
    let mut entry = json!(row.entry);
    entry["slow_start"] = match row.start {
        Start::Composed(name) => name.into(),
        Start::Own => Value::Null,
    };
    entry["needs_ecn"] = (row.needs_ecn() != EcnFeedback::None).into();
    entry
}

/// JSON Schema of a RunSpec.
#[pyfunction]
pub fn run_spec_schema() -> String {
    json!(schemars::schema_for!(RunSpec)).to_string()
}
