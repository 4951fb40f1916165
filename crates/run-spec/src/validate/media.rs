//! Validation of applications that write on a schedule.

use super::{MAX_BYTES, MAX_NS, SpecError, SpecPath, within};
use crate::{MediaSpec, TraceSpec};

/// Maximum number of frames per 1000 s: one every 100 µs.
const MAX_FRAMES: u64 = 10_000_000;
/// Maximum number of writes in a trace: some tens of megabytes of specification.
const MAX_WRITES: u64 = 1_000_000;

pub(super) fn check(at: SpecPath<'_>, spec: &MediaSpec) -> Result<(), SpecError> {
    within(format_args!("{at}.frames_per_1000_s"), spec.frames_per_1000_s, 1..=MAX_FRAMES)?;
    within(format_args!("{at}.key_bytes"), spec.key_bytes, 1..=MAX_BYTES)?;
    within(format_args!("{at}.delta_bytes"), spec.delta_bytes, 1..=MAX_BYTES)?;
    within(format_args!("{at}.key_every"), spec.key_every, 1..=u64::MAX)?;
    within(format_args!("{at}.deadline_ns"), spec.deadline_ns, 1..=MAX_NS)
}

pub(super) fn check_trace(at: SpecPath<'_>, spec: &TraceSpec) -> Result<(), SpecError> {
    within(format_args!("{at}.deadline_ns"), spec.deadline_ns.unwrap_or(1), 1..=MAX_NS)?;
    within(format_args!("{at}.writes.len()"), spec.writes.len() as u64, 1..=MAX_WRITES)?;
    let (mut last_ns, mut sum) = (0, 0u64);
    for (i, write) in spec.writes.iter().enumerate() {
        within(format_args!("{at}.writes[{i}].at_ns"), write.at_ns, last_ns..=MAX_NS)?;
        within(format_args!("{at}.writes[{i}].bytes"), write.bytes, 1..=MAX_BYTES - sum)?;
        (last_ns, sum) = (write.at_ns, sum + write.bytes);
    }
    Ok(())
}
