//! The Python module `jostle._core`: runs one RunSpec without holding the interpreter's lock, hands
//! its columns to NumPy without copying them, and shows the registries.

mod capture;
mod controller;
mod dissect;
#[cfg(target_os = "linux")]
mod emulate;
mod episodes;
mod impairments;
mod learning;
mod measures;
mod quantity;
#[cfg(target_os = "linux")]
mod quic_end;
mod record;
mod registry;
mod run;
mod toml_lines;

use pyo3::prelude::*;

/// The engine behind `jostle`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Version of the package, and of everything that results depend on.
    module.add("ENGINE_VERSION", env!("JOSTLE_ENGINE_VERSION"))?;
    // Version of what measures samples, whoever took them.
    module.add("RECORD_VERSION", env!("JOSTLE_RECORD_VERSION"))?;
    // Version of what measures captures.
    module.add("DISSECT_VERSION", env!("JOSTLE_DISSECT_VERSION"))?;
    module.add("Cancelled", module.py().get_type::<run::Cancelled>())?;
    module.add("ControllerError", module.py().get_type::<controller::ControllerError>())?;
    module.add_class::<record::Record>()?;
    module.add_class::<measures::Series>()?;
    module.add_class::<episodes::Episodes>()?;
    module.add_class::<learning::Policy>()?;
    module.add_function(wrap_pyfunction!(learning::learning, module)?)?;
    module.add_function(wrap_pyfunction!(learning::design, module)?)?;
    module.add_class::<dissect::Measurement>()?;
    module.add_class::<dissect::Diagram>()?;
    #[cfg(target_os = "linux")]
    {
        module.add_class::<emulate::Emulator>()?;
        module.add_class::<emulate::Emulation>()?;
        module.add_function(wrap_pyfunction!(quic_end::quic_end, module)?)?;
    }
    module.add_function(wrap_pyfunction!(registry::registry, module)?)?;
    module.add_function(wrap_pyfunction!(registry::run_spec_schema, module)?)?;
    module.add_function(wrap_pyfunction!(registry::check_file, module)?)?;
    module.add_function(wrap_pyfunction!(capture::capture_from_ring, module)?)?;
    module.add_function(wrap_pyfunction!(dissect::analyze_captures, module)?)?;
    module.add_function(wrap_pyfunction!(dissect::sequence_diagrams, module)?)?;
    module.add_function(wrap_pyfunction!(measures::record_of_samples, module)?)?;
    module.add_function(wrap_pyfunction!(run::check, module)?)?;
    module.add_function(wrap_pyfunction!(run::find_problem, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(toml_lines::toml_lines, module)?)?;
    module.add_function(wrap_pyfunction!(quantity::draw_quantities, module)?)?;
    module.add_function(wrap_pyfunction!(impairments::draw_impairments, module)?)?;
    Ok(())
}
