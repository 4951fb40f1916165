//! The Python module `jostle._core`: runs one [`RunSpec`] without holding the interpreter's lock,
//! and shows the registries.

use jostle_control::registry::{CONTROLLERS, SLOW_STARTS, Start};
use jostle_record::RunSpec;
use pyo3::prelude::*;

/// The registries as a JSON document.
#[pyfunction]
fn registry() -> String {
    let controllers: Vec<_> = CONTROLLERS
        .iter()
        .map(|row| {
            let mut entry = serde_json::json!(row.entry);
            entry["slow_start"] = match row.start {
                Start::Composed(name) => name.into(),
                Start::Own => serde_json::Value::Null,
            };
            entry
        })
        .collect();
    let slow_starts: Vec<_> = SLOW_STARTS.iter().map(|row| row.entry).collect();
    serde_json::json!({ "controllers": controllers, "slow_starts": slow_starts }).to_string()
}

/// JSON Schema of a RunSpec.
#[pyfunction]
fn run_spec_schema() -> String {
    serde_json::json!(schemars::schema_for!(RunSpec)).to_string()
}

/// The engine behind `jostle`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(registry, module)?)?;
    module.add_function(wrap_pyfunction!(run_spec_schema, module)?)?;
    Ok(())
}
