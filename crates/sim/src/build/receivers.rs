//! Receivers that deviate from Linux: misbehaving receivers and rLEDBAT.

use jostle_congestion::CongestionController;
use jostle_controllers::registry;
use jostle_controllers::slow_start::Standard;
use jostle_run_spec::{Algorithm, FlowRandomStreams, ReceiverSpec};
use jostle_tcp::ReceiverBehaviour;
use jostle_units::Span;

use crate::Error;

/// Builds the receiver behaviour of `flow`. `rtt` is the base RTT of the path, `most_bytes` the
/// largest receive window.
pub(super) fn receiver_behaviour(
    receiver: &ReceiverSpec,
    (flow, streams): (&str, FlowRandomStreams),
    rtt: Span,
    (most_bytes, mss_bytes): (u64, u16),
) -> Result<ReceiverBehaviour, Error> {
    Ok(match *receiver {
        ReceiverSpec::AckDivision { pieces } => ReceiverBehaviour::ack_division(pieces),
        ReceiverSpec::DupackSpoofing { copies } => ReceiverBehaviour::dupack_spoofing(copies),
        ReceiverSpec::HiddenEcnMarks => ReceiverBehaviour::hides_ecn_marks(),
        ReceiverSpec::OptimisticAcking { lead } => {
            ReceiverBehaviour::optimistic_acking(lead, rtt, most_bytes, mss_bytes)
        }
        ReceiverSpec::Rledbat { .. } => {
            ReceiverBehaviour::rledbat(controller(receiver, flow, streams)?, mss_bytes, most_bytes)
        }
    })
}

/// Creates the controller that runs at the receiver.
fn controller(
    receiver: &ReceiverSpec,
    flow: &str,
    streams: FlowRandomStreams,
) -> Result<Box<dyn CongestionController>, Error> {
    let unknown = || Error::unbuildable(flow, "its receiver runs no controller");
    let Algorithm { name, parameters } = receiver.controller().ok_or_else(unknown)?;
    let row = registry::controller(&name).ok_or_else(unknown)?;
    let created = row.create(&parameters, Box::new(Standard), streams.stream("receiver"));
    created.map_err(|e| Error::unbuildable(flow, e))
}
