//! Registries as JSON, from which Python derives help, documentation and validation.

use jostle_controllers::registry::{CONTROLLERS, MEMORIES, SLOW_STARTS};
use jostle_link::registry::{CAPACITIES, DELAYS, LOSSES, OUTAGES, queues};
use jostle_registry::RegistryEntry;
use jostle_run_spec::{QUIC_CONTROLLERS, RunSpec};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::time_series;

/// Returns all registries as a JSON document: lists of entries by kind, in registry order. For a
/// controller, `slow_start` is the name of its default slow start, or null if it is built in.
/// `needs_ecn` says whether the controller needs ECN, and `needs_accecn` whether it counts marks. `quic_controllers` are available
/// for QUIC flows only.
#[pyfunction]
pub fn registry() -> String {
    json!({
        "controllers": CONTROLLERS,
        "quic_controllers": rows(QUIC_CONTROLLERS.iter()),
        "slow_starts": rows(SLOW_STARTS.iter().map(|row| &row.entry)),
        "peer_caches": rows(MEMORIES.iter().map(|row| &row.entry)),
        "queues": rows(queues::<()>().iter().map(|row| &row.entry)),
        "capacities": rows(CAPACITIES.iter()),
        "delays": rows(DELAYS.iter()),
        "measures": time_series::rows(),
        "losses": rows(LOSSES.iter().map(|row| &row.entry)),
        "outages": rows([OUTAGES].iter()),
    })
    .to_string()
}

fn rows<'a>(entries: impl Iterator<Item = &'a RegistryEntry>) -> Vec<Value> {
    entries.map(|entry| json!(entry)).collect()
}

/// Validates the content of a file to which a parameter refers.
///
/// Parameters
/// ----------
/// registry, row, parameter : str
///     Names as in `registry`.
/// content : bytes
///     Content of the file.
///
/// Raises
/// ------
/// ValueError
///     If the content is invalid, with the location; or if there is no such parameter.
#[pyfunction]
pub fn check_file(registry: &str, row: &str, parameter: &str, content: &[u8]) -> PyResult<()> {
    let found = match registry {
        "controllers" => find(CONTROLLERS.iter().map(|it| &it.entry), row),
        "slow_starts" => find(SLOW_STARTS.iter().map(|it| &it.entry), row),
        "peer_caches" => find(MEMORIES.iter().map(|it| &it.entry), row),
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

fn find<'a>(
    mut entries: impl Iterator<Item = &'a RegistryEntry>,
    row: &str,
) -> Option<&'a RegistryEntry> {
    entries.find(|entry| entry.name == row)
}

/// Returns the JSON Schema of a RunSpec.
#[pyfunction]
pub fn run_spec_schema() -> String {
    json!(schemars::schema_for!(RunSpec)).to_string()
}
