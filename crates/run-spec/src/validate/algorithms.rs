//! Validation of controllers, slow-start methods and peer caches, and of their combinations.

use std::collections::BTreeMap;

use jostle_controllers::registry::{self, CONTROLLERS, MEMORIES, SLOW_STARTS, SlowStartChoice};
use jostle_registry::{ParameterValue, RegistryEntry};

use super::{SpecError, SpecPath};
use crate::{Algorithm, FlowSpec};

pub(super) fn controller(at: SpecPath<'_>, flow: &FlowSpec) -> Result<(), SpecError> {
    let at_controller = format_args!("{at}.controller");
    let at_start = format_args!("{at}.slow_start");
    if flow.controller.is_user_defined() {
        let Some(given) = &flow.slow_start else { return Ok(()) };
        if flow.controller.crate_controller().is_some() {
            // Whether the controller has its own, the crate's library checks.
            return slow_start(at_start, given);
        }
        let expected = format!("none: `{}` has its own", flow.controller.name);
        return Err(SpecError::unfit(at_start, format_args!("\"{}\"", given.name), expected));
    }
    if flow.controller.is_of_stack() {
        let given = format_args!("\"{}\"", flow.controller.name);
        let expected = "a controller of any transport: only QUIC flows can have this one";
        return Err(SpecError::unfit(at_controller, given, expected));
    }
    let Some(row) = registry::controller(&flow.controller.name) else {
        let known: Vec<_> = CONTROLLERS.iter().map(|row| row.entry.name).collect();
        return Err(SpecError::unknown(at_controller, &flow.controller.name, &known));
    };
    parameters(at_controller, &row.entry, &flow.controller.parameters)?;

    match (&flow.slow_start, row.start) {
        (None, SlowStartChoice::BuiltIn) => Ok(()),
        (Some(given), SlowStartChoice::Composed(_)) => slow_start(at_start, given),
        (Some(given), SlowStartChoice::BuiltIn) => Err(SpecError::unfit(
            at_start,
            format_args!("\"{}\"", given.name),
            format!("none: `{}` has its own", row.entry.name),
        )),
        (None, SlowStartChoice::Composed(_)) => {
            Err(SpecError::unfit(at_start, "absent", format!("one of {}", starts().join(", "))))
        }
    }
}

fn starts() -> Vec<&'static str> {
    SLOW_STARTS.iter().map(|row| row.entry.name).collect()
}

fn slow_start(at: SpecPath<'_>, given: &Algorithm) -> Result<(), SpecError> {
    match registry::slow_start(&given.name) {
        Some(method) => parameters(at, &method.entry, &given.parameters),
        None => Err(SpecError::unknown(at, &given.name, &starts())),
    }
}

pub(super) fn memory(at: SpecPath<'_>, flow: &FlowSpec) -> Result<(), SpecError> {
    let Some(given) = &flow.memory else { return Ok(()) };
    let at = format_args!("{at}.memory");
    let Some(row) = registry::memory(&given.name) else {
        let known: Vec<_> = MEMORIES.iter().map(|row| row.entry.name).collect();
        return Err(SpecError::unknown(at, &given.name, &known));
    };
    parameters(at, &row.entry, &given.parameters)
}

/// Checks the parameters of a registry entry.
pub(super) fn parameters(
    at: SpecPath<'_>,
    row: &RegistryEntry,
    given: &BTreeMap<String, ParameterValue>,
) -> Result<(), SpecError> {
    row.check(given).map_err(|source| SpecError::Parameter { at: at.to_string(), source })
}
