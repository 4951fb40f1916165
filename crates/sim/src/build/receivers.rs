//! Receivers that do otherwise than Linux's.

use jostle_control::slow_start::Standard;
use jostle_control::{Controller, registry};
use jostle_record::{Algorithm, FlowStreams, ReceiverSpec};
use jostle_tcp::Conduct;
use jostle_units::Span;

use crate::Error;

/// What a receiver of `flow` does otherwise than Linux's, if it does. `rtt` is the path's base RTT,
/// `most_bytes` the largest window.
pub(super) fn conduct(
    receiver: &ReceiverSpec,
    (flow, streams): (&str, FlowStreams),
    rtt: Span,
    (most_bytes, mss_bytes): (u64, u16),
) -> Result<Conduct, Error> {
    Ok(match *receiver {
        ReceiverSpec::DividedAcks { pieces } => Conduct::divided(pieces),
        ReceiverSpec::RepeatedAcks { copies } => Conduct::repeated(copies),
        ReceiverSpec::HiddenMarks => Conduct::unmarked(),
        ReceiverSpec::OptimisticAcks { lead } => {
            Conduct::optimistic(lead, rtt, most_bytes, mss_bytes)
        }
        ReceiverSpec::Rledbat { .. } => {
            Conduct::rledbat(controller(receiver, flow, streams)?, mss_bytes, most_bytes)
        }
    })
}

/// The controller that a receiver runs.
fn controller(
    receiver: &ReceiverSpec,
    flow: &str,
    streams: FlowStreams,
) -> Result<Box<dyn Controller>, Error> {
    let unknown = || Error::unbuildable(flow, "its receiver runs no controller");
    let Algorithm { name, parameters } = receiver.controller().ok_or_else(unknown)?;
    let row = registry::controller(&name).ok_or_else(unknown)?;
    let created = row.create(&parameters, Box::new(Standard), streams.stream("receiver"));
    created.map_err(|e| Error::unbuildable(flow, e))
}
