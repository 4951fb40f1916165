//! Validation of receivers.

use jostle_controllers::registry;

use super::{SpecError, SpecPath, algorithms, within};
use crate::{Algorithm, FlowSpec, ReceiverSpec, SourceSpec, Transport};

/// Maximum number of ACKs in place of one. Each is a packet.
const MAX_ACKS: u32 = 100;

/// Validates a receiver. `at` is the flow's path; `is_split` means that the flow is one of several
/// proxy legs.
pub(super) fn check(at: SpecPath<'_>, flow: &FlowSpec, is_split: bool) -> Result<(), SpecError> {
    let Some(receiver) = &flow.receiver else { return Ok(()) };
    let at = format_args!("{at}.receiver");
    if flow.transport != Transport::Tcp {
        return Err(SpecError::unfit(at, "there", "absent: it is one of TCP"));
    }
    if is_split {
        return Err(SpecError::unfit(at, "there", "absent: a proxy joins the flow's connections"));
    }
    match *receiver {
        ReceiverSpec::AckDivision { pieces } => {
            within(format_args!("{at}.pieces"), pieces, 2..=MAX_ACKS)
        }
        ReceiverSpec::DupackSpoofing { copies } => {
            within(format_args!("{at}.copies"), copies, 1..=MAX_ACKS)
        }
        ReceiverSpec::OptimisticAcking { lead } => optimistic(at, lead, flow),
        ReceiverSpec::Rledbat { .. } if flow.memory.is_some() => {
            let expected = "another one: of senders that remember, some send beyond the window, which is \
                            all that rLEDBAT has";
            Err(SpecError::unfit(at, "`rledbat`", expected))
        }
        ReceiverSpec::Rledbat { .. } => runs(at, receiver),
        ReceiverSpec::HiddenEcnMarks if flow.ecn => Ok(()),
        ReceiverSpec::HiddenEcnMarks => {
            let expected = "another one: without `ecn` there are no marks to hide";
            Err(SpecError::unfit(at, "`hidden_ecn_marks`", expected))
        }
    }
}

/// Checks the parameters of the receiver's controller against the registry.
fn runs(at: SpecPath<'_>, receiver: &ReceiverSpec) -> Result<(), SpecError> {
    let Some(Algorithm { name, parameters }) = receiver.controller() else { return Ok(()) };
    let Some(row) = registry::controller(&name) else { return Ok(()) };
    algorithms::parameters(at, &row.entry, &parameters)
}

/// Checks an optimistic receiver. It never receives lost data, so that the flow must not wait for
/// complete messages.
fn optimistic(at: SpecPath<'_>, lead: f64, flow: &FlowSpec) -> Result<(), SpecError> {
    if !(0.0..=1.0).contains(&lead) {
        return Err(SpecError::unfit(format_args!("{at}.lead"), lead, "0 to 1"));
    }
    if flow.memory.is_some() {
        let expected = "another one: of senders that remember, some send beyond the window, and here \
                        nothing else bounds them";
        return Err(SpecError::unfit(at, "`optimistic_acking`", expected));
    }
    match flow.source {
        SourceSpec::Bulk | SourceSpec::Fixed { .. } | SourceSpec::OnOff { .. } => Ok(()),
        _ => {
            let expected = "another one: what is lost never comes, and the source waits for it";
            Err(SpecError::unfit(at, "`optimistic_acking`", expected))
        }
    }
}
