//! Which controllers, slow starts and memories go together.

use jostle_control::registry::{self, CONTROLLERS, MEMORIES, SLOW_STARTS, Start};

use super::SpecError;
use crate::FlowSpec;

pub(super) fn controller(at: &str, flow: &FlowSpec) -> Result<(), SpecError> {
    let at_controller = format!("{at}.controller");
    if flow.controller.is_python_controller() {
        let Some(given) = &flow.slow_start else { return Ok(()) };
        let expected = format!("none: `{}` has its own", flow.controller.name);
        return Err(SpecError::unfit(
            &format!("{at}.slow_start"),
            format!("\"{}\"", given.name),
            expected,
        ));
    }
    if flow.controller.is_of_stack() {
        let given = format!("\"{}\"", flow.controller.name);
        let expected = "a controller of any transport: only QUIC flows can have this one";
        return Err(SpecError::unfit(&at_controller, given, expected));
    }
    let Some(row) = registry::controller(&flow.controller.name) else {
        let known: Vec<_> = CONTROLLERS.iter().map(|row| row.entry.name).collect();
        return Err(SpecError::unknown(&at_controller, &flow.controller.name, &known));
    };
    row.entry
        .resolve(&flow.controller.parameters)
        .map_err(|source| SpecError::Parameter { at: at_controller, source })?;

    let at_start = format!("{at}.slow_start");
    let known: Vec<_> = SLOW_STARTS.iter().map(|row| row.entry.name).collect();
    match (&flow.slow_start, row.start) {
        (None, Start::Own) => Ok(()),
        (Some(given), Start::Composed(_)) => match registry::slow_start(&given.name) {
            Some(method) => method
                .entry
                .resolve(&given.parameters)
                .map(|_| ())
                .map_err(|source| SpecError::Parameter { at: at_start, source }),
            None => Err(SpecError::unknown(&at_start, &given.name, &known)),
        },
        (Some(given), Start::Own) => Err(SpecError::unfit(
            &at_start,
            format!("\"{}\"", given.name),
            format!("none: `{}` has its own", row.entry.name),
        )),
        (None, Start::Composed(_)) => {
            Err(SpecError::unfit(&at_start, "absent", format!("one of {}", known.join(", "))))
        }
    }
}

pub(super) fn memory(at: &str, flow: &FlowSpec) -> Result<(), SpecError> {
    let Some(given) = &flow.memory else { return Ok(()) };
    let at = format!("{at}.memory");
    let Some(row) = registry::memory(&given.name) else {
        let known: Vec<_> = MEMORIES.iter().map(|row| row.entry.name).collect();
        return Err(SpecError::unknown(&at, &given.name, &known));
    };
    row.entry
        .resolve(&given.parameters)
        .map(|_| ())
        .map_err(|source| SpecError::Parameter { at, source })
}
