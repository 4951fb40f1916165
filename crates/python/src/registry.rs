//! The registries as JSON: help, documentation and checks in Python derive from them.

use jostle_catalogue::Entry;
use jostle_control::EcnFeedback;
use jostle_control::registry::{CONTROLLERS, ControllerRow, MEMORIES, SLOW_STARTS, Start};
use jostle_path::registry::{CAPACITIES, DELAYS, LOSSES, OUTAGES, queues};
use jostle_record::{QUIC_CONTROLLERS, RunSpec};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::measures;

/// All registries as a JSON document: lists of rows by kind, in the order of the registry. A
/// controller's row names its default slow start under `slow_start`, or null if it has its own, and
/// says under `needs_ecn` whether it is for connections with ECN. Only QUIC flows can have
/// `quic_controllers`.
#[pyfunction]
pub fn registry() -> String {
    let controllers: Vec<_> = CONTROLLERS.iter().map(controller).collect();
    json!({
        "controllers": controllers,
        "quic_controllers": rows(QUIC_CONTROLLERS.iter()),
        "slow_starts": rows(SLOW_STARTS.iter().map(|row| &row.entry)),
        "memories": rows(MEMORIES.iter().map(|row| &row.entry)),
        "queues": rows(queues::<()>().iter().map(|row| &row.entry)),
        "capacities": rows(CAPACITIES.iter()),
        "delays": rows(DELAYS.iter()),
        "measures": measures::rows(),
        "losses": rows(LOSSES.iter().map(|row| &row.entry)),
        "outages": rows([OUTAGES].iter()),
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

/// Checks the content of a file that a parameter names.
///
/// Parameters
/// ----------
/// registry, row, parameter : str
///     As in `registry`.
/// content : bytes
///     The file.
///
/// Raises
/// ------
/// ValueError
///     What is wrong with it, and where; or if there is no such parameter.
#[pyfunction]
pub fn check_file(registry: &str, row: &str, parameter: &str, content: &[u8]) -> PyResult<()> {
    let found = match registry {
        "controllers" => find(CONTROLLERS.iter().map(|it| &it.entry), row),
        "slow_starts" => find(SLOW_STARTS.iter().map(|it| &it.entry), row),
        "memories" => find(MEMORIES.iter().map(|it| &it.entry), row),
        "queues" => find(queues::<()>().iter().map(|it| &it.entry), row),
        "losses" => find(LOSSES.iter().map(|it| &it.entry), row),
        _ => None,
    };
    let parameters = found.map_or(&[][..], |entry| entry.parameters);
    match parameters.iter().find(|it| it.name == parameter) {
        Some(it) => it.kind.check_content(content).map_err(PyValueError::new_err),
        None => Err(PyValueError::new_err(format!("no {registry} has `{row}.{parameter}`"))),
    }
}

fn find<'a>(mut entries: impl Iterator<Item = &'a Entry>, row: &str) -> Option<&'a Entry> {
    entries.find(|entry| entry.name == row)
}

/// JSON Schema of a RunSpec.
#[pyfunction]
pub fn run_spec_schema() -> String {
    json!(schemars::schema_for!(RunSpec)).to_string()
}
