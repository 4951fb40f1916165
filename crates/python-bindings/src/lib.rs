//! The Python module `jostle._core`: runs simulations without the GIL, passes their time series to
//! NumPy without copying, and exposes the registries.

mod canonical_json;
mod controller;
mod controller_library;
#[cfg(target_os = "linux")]
mod emulator;
mod episodes;
mod impairments;
mod measure_columns;
mod packet_ring;
mod pcap_analysis;
mod policy;
#[cfg(target_os = "linux")]
mod quic_endpoint;
mod registry;
mod run;
mod run_names;
mod run_record;
mod testkit;
mod thrift;
mod time_series;
mod toml_lines;
mod traffic;

use pyo3::prelude::*;

/// The compiled engine of `jostle`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Version of the package, with a hash of all sources on which results depend.
    module.add("ENGINE_VERSION", env!("JOSTLE_ENGINE_VERSION"))?;
    // Hash of the sources that compute measures from samples of any backend.
    module.add("METRICS_VERSION", env!("JOSTLE_METRICS_VERSION"))?;
    // Hash of the sources that analyse captures.
    module.add("PCAP_ANALYSIS_VERSION", env!("JOSTLE_PCAP_ANALYSIS_VERSION"))?;
    module.add("CancelledError", module.py().get_type::<run::CancelledError>())?;
    module.add("ControllerError", module.py().get_type::<controller::ControllerError>())?;
    module.add_class::<run_record::RunRecord>()?;
    module.add_class::<time_series::Series>()?;
    module.add_class::<episodes::Episodes>()?;
    module.add_class::<policy::Policy>()?;
    module.add_function(wrap_pyfunction!(policy::learning_features, module)?)?;
    module.add_function(wrap_pyfunction!(policy::design, module)?)?;
    module.add_class::<testkit::TestKit>()?;
    module.add_function(wrap_pyfunction!(testkit::testkit_link, module)?)?;
    module.add_class::<traffic::Traffic>()?;
    module.add_class::<pcap_analysis::Measurement>()?;
    module.add_class::<pcap_analysis::TimeSequence>()?;
    #[cfg(target_os = "linux")]
    {
        module.add_class::<emulator::Emulator>()?;
        module.add_class::<emulator::Emulation>()?;
        module.add_function(wrap_pyfunction!(quic_endpoint::quic_end, module)?)?;
    }
    module.add_function(wrap_pyfunction!(registry::registry, module)?)?;
    module.add_function(wrap_pyfunction!(registry::run_spec_schema, module)?)?;
    module.add_function(wrap_pyfunction!(registry::check_file, module)?)?;
    module.add_function(wrap_pyfunction!(controller_library::describe_library, module)?)?;
    module.add_function(wrap_pyfunction!(controller_library::kernel_registration, module)?)?;
    module.add_function(wrap_pyfunction!(packet_ring::capture_from_ring, module)?)?;
    module.add_function(wrap_pyfunction!(packet_ring::host_capture_from_ring, module)?)?;
    module.add_function(wrap_pyfunction!(pcap_analysis::analyze_captures, module)?)?;
    module.add_function(wrap_pyfunction!(pcap_analysis::capture_formats, module)?)?;
    module.add_function(wrap_pyfunction!(pcap_analysis::sequence_diagrams, module)?)?;
    module.add_function(wrap_pyfunction!(time_series::record_of_samples, module)?)?;
    module.add_function(wrap_pyfunction!(run::check, module)?)?;
    module.add_function(wrap_pyfunction!(run::find_problem, module)?)?;
    module.add_function(wrap_pyfunction!(run::constant_service_bps, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(run::run_summary, module)?)?;
    module.add_function(wrap_pyfunction!(run_names::drawn_starts, module)?)?;
    module.add_function(wrap_pyfunction!(run_names::names_of_specs, module)?)?;
    module.add_function(wrap_pyfunction!(run_names::run_names, module)?)?;
    module.add_function(wrap_pyfunction!(run_names::run_text, module)?)?;
    module.add_function(wrap_pyfunction!(thrift::thrift_structure, module)?)?;
    module.add_function(wrap_pyfunction!(measure_columns::measure_columns, module)?)?;
    module.add_function(wrap_pyfunction!(toml_lines::toml_lines, module)?)?;
    module.add_function(wrap_pyfunction!(impairments::draw_impairments, module)?)?;
    Ok(())
}
