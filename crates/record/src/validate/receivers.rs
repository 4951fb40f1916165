//! Which receivers make sense.

use jostle_control::registry;

use super::{Place, SpecError, algorithms, within};
use crate::{Algorithm, FlowSpec, ReceiverSpec, SourceSpec, Transport};

/// Most ACKs in place of one: each is a packet on its way.
const MAX_ACKS: u32 = 100;

/// `at`: the flow's place. `is_split`: its connection is one of several that a proxy joins.
pub(super) fn check(at: Place<'_>, flow: &FlowSpec, is_split: bool) -> Result<(), SpecError> {
    let Some(receiver) = &flow.receiver else { return Ok(()) };
    let at = format_args!("{at}.receiver");
    if flow.transport != Transport::Tcp {
        return Err(SpecError::unfit(at, "there", "absent: it is one of TCP"));
    }
    if is_split {
        return Err(SpecError::unfit(at, "there", "absent: a proxy joins the flow's connections"));
    }
    match *receiver {
        ReceiverSpec::DividedAcks { pieces } => {
            within(format_args!("{at}.pieces"), pieces, 2..=MAX_ACKS)
        }
        ReceiverSpec::RepeatedAcks { copies } => {
            within(format_args!("{at}.copies"), copies, 1..=MAX_ACKS)
        }
        ReceiverSpec::OptimisticAcks { lead } => optimistic(at, lead, flow),
        ReceiverSpec::Rledbat { .. } if flow.memory.is_some() => {
            let expected = "another one: of senders that remember, some send beyond the window, which is \
                            all that rLEDBAT has";
            Err(SpecError::unfit(at, "`rledbat`", expected))
        }
        ReceiverSpec::Rledbat { .. } => runs(at, receiver),
        ReceiverSpec::HiddenMarks if flow.ecn => Ok(()),
        ReceiverSpec::HiddenMarks => {
            let expected = "another one: without `ecn` there are no marks to hide";
            Err(SpecError::unfit(at, "`hidden_marks`", expected))
        }
    }
}

/// The parameters of the controller that it runs have the bounds of the registry.
fn runs(at: Place<'_>, receiver: &ReceiverSpec) -> Result<(), SpecError> {
    let Some(Algorithm { name, parameters }) = receiver.controller() else { return Ok(()) };
    let Some(row) = registry::controller(&name) else { return Ok(()) };
    algorithms::parameters(at, &row.entry, &parameters)
}

/// Of what is lost it never gets a copy, so that nothing may wait for a message to be whole.
fn optimistic(at: Place<'_>, lead: f64, flow: &FlowSpec) -> Result<(), SpecError> {
    if !(0.0..=1.0).contains(&lead) {
        return Err(SpecError::unfit(format_args!("{at}.lead"), lead, "0 to 1"));
    }
    if flow.memory.is_some() {
        let expected = "another one: of senders that remember, some send beyond the window, and here \
                        nothing else bounds them";
        return Err(SpecError::unfit(at, "`optimistic_acks`", expected));
    }
    match flow.source {
        SourceSpec::Bulk | SourceSpec::Fixed { .. } | SourceSpec::OnOff { .. } => Ok(()),
        _ => {
            let expected = "another one: what is lost never comes, and the source waits for it";
            Err(SpecError::unfit(at, "`optimistic_acks`", expected))
        }
    }
}
