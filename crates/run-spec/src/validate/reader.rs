//! Validation of reading applications.

use super::{MAX_BPS, MAX_BYTES, MAX_NS, SpecError, SpecPath, within};
use crate::{FlowSpec, PauseSpec, ReaderSpec, ReceiverSpec, SourceSpec, Transport};

/// Maximum number of pauses: one per second of a quarter of an hour.
const MAX_PAUSES: usize = 1_000;
/// Maximum number of reads of a run: each is an event of the simulator, and a wake-up of a process
/// on a kernel.
const MAX_READS: u64 = 1_000_000_000;

/// Validates the application that reads a flow's data. `at` is the flow's path; `is_relayed` means
/// that a proxy reads them.
pub(super) fn check(
    at: SpecPath<'_>,
    flow: &FlowSpec,
    is_relayed: bool,
    duration_ns: u64,
) -> Result<(), SpecError> {
    let Some(reader) = &flow.reader else { return Ok(()) };
    let at = format_args!("{at}.reader");
    let unfit = |expected: &str| Err(SpecError::unfit(at, "there", expected));
    if flow.transport == Transport::Udp {
        return unfit("absent: datagrams have no receive window");
    }
    if is_relayed {
        return unfit("absent: a proxy reads the data of this connection");
    }
    if flow.arrivals.is_some() {
        return unfit("absent: connections of the flow end before all their data are read");
    }
    let connection_bytes = flow.receive_window_bytes;
    if flow.quic.as_ref().is_some_and(|quic| quic.stream_receive_window_bytes < connection_bytes) {
        return unfit("absent: only the window of the connection shrinks with unread data");
    }
    if flow.quic.as_ref().is_some_and(|quic| quic.implementation.is_some()) {
        return unfit("absent: the program reads its data itself");
    }
    if matches!(flow.source, SourceSpec::Web(_)) {
        return unfit("absent: the browser reads its pages itself");
    }
    if matches!(flow.receiver, Some(ReceiverSpec::OptimisticAcking { .. })) {
        return unfit("absent: an optimistic receiver keeps no data");
    }
    let ReaderSpec { rate_bps, read_bytes, pauses } = reader;
    within(format_args!("{at}.read_bytes"), *read_bytes, 1..=MAX_BYTES)?;
    if let Some(rate_bps) = *rate_bps {
        within(format_args!("{at}.rate_bps"), rate_bps, 1..=MAX_BPS)?;
        let bytes = u128::from(rate_bps) * u128::from(duration_ns) / 8_000_000_000;
        let least_bytes = u64::try_from(bytes / u128::from(MAX_READS)).unwrap_or(MAX_BYTES);
        within(format_args!("{at}.read_bytes"), *read_bytes, least_bytes..=MAX_BYTES)?;
    }
    if pauses.len() > MAX_PAUSES {
        let given = format!("{} of them", pauses.len());
        let expected = format!("at most {MAX_PAUSES}");
        return Err(SpecError::unfit(format_args!("{at}.pauses"), given, expected));
    }
    let mut repeats = 0;
    for (i, &PauseSpec { at_ns, duration_ns, every_ns }) in pauses.iter().enumerate() {
        let at = format_args!("{at}.pauses[{i}]");
        within(format_args!("{at}.at_ns"), at_ns, 0..=MAX_NS)?;
        within(format_args!("{at}.duration_ns"), duration_ns, 1..=MAX_NS)?;
        let Some(every_ns) = every_ns else { continue };
        within(format_args!("{at}.every_ns"), every_ns, duration_ns + 1..=MAX_NS)?;
        repeats += 1;
        if repeats > 1 {
            let expected = "absent: another pause repeats";
            return Err(SpecError::unfit(format_args!("{at}.every_ns"), every_ns, expected));
        }
    }
    Ok(())
}
