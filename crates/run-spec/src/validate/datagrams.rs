//! Validation of constant bit rate sources.

use super::{MAX_NS, MIN_EVERY_NS, SpecError, SpecPath, steps, within};
use crate::{CbrSpec, PlayoutSpec, RateStep, VoiceSpec};

/// Maximum Ie: at this value R is not positive.
const MAX_IMPAIRMENT: f64 = 95.0;
/// Above the value of any codec.
const MAX_ROBUSTNESS: f64 = 1_000.0;

/// Validates a constant bit rate source. `most_bytes` is the maximum payload of a datagram.
pub(super) fn check(at: SpecPath<'_>, spec: &CbrSpec, most_bytes: u32) -> Result<(), SpecError> {
    within(format_args!("{at}.bytes"), spec.bytes, 1..=most_bytes)?;
    rates(format_args!("{at}.steps"), spec)?;
    spec.voice.as_ref().map_or(Ok(()), |it| voice(format_args!("{at}.voice"), it))
}

/// Returns the minimum interval between two datagrams.
pub(super) fn least_gap_ns(spec: &CbrSpec) -> u64 {
    let fastest_bps = spec.steps.iter().map(|step| step.rate_bps).max().unwrap_or(0);
    bit_ns(spec.bytes).checked_div(fastest_bps).map_or(u64::MAX, |gap_ns| gap_ns.max(1))
}

fn bit_ns(bytes: u32) -> u64 {
    8_000_000_000 * u64::from(bytes)
}

fn rates(at: SpecPath<'_>, spec: &CbrSpec) -> Result<(), SpecError> {
    steps(at, spec.steps.iter().map(|step| step.at_ns))?;
    let most_bps = bit_ns(spec.bytes) / MIN_EVERY_NS;
    for (i, &RateStep { at_ns, rate_bps }) in spec.steps.iter().enumerate() {
        within(format_args!("{at}[{i}].at_ns"), at_ns, 0..=MAX_NS)?;
        within(format_args!("{at}[{i}].rate_bps"), rate_bps, 0..=most_bps)?;
    }
    Ok(())
}

fn voice(at: SpecPath<'_>, voice: &VoiceSpec) -> Result<(), SpecError> {
    let between = |key: &str, given: f64, least: f64, most: f64| {
        if (least..=most).contains(&given) {
            return Ok(());
        }
        Err(SpecError::unfit(format_args!("{at}.{key}"), given, format!("{least} to {most}")))
    };
    between("equipment_impairment", voice.equipment_impairment, 0.0, MAX_IMPAIRMENT)?;
    between("loss_robustness", voice.loss_robustness, 0.1, MAX_ROBUSTNESS)?;
    within(format_args!("{at}.coding_delay_ns"), voice.coding_delay_ns, 0..=MAX_NS)?;
    match voice.playout {
        PlayoutSpec::Best => Ok(()),
        PlayoutSpec::Quantile { share } => between("playout.share", share, 0.0, 1.0),
        PlayoutSpec::Buffer { length_ns } => {
            within(format_args!("{at}.playout.length_ns"), length_ns, 0..=MAX_NS)
        }
    }
}
