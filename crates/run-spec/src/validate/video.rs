//! Validation of videos.

use super::{MAX_BPS, MAX_NS, SpecError, SpecPath, within};
use crate::{VideoChoice, VideoSpec};

/// Maximum number of bitrates. Players examine all of them for every segment.
const MAX_BITRATES: usize = 100;
/// Minimum duration of a segment. Low-delay players use at least a tenth of a second.
const MIN_SEGMENT_NS: u64 = 10_000_000;
/// Maximum number of segments in a throughput estimate.
const MAX_SAMPLES: u32 = 1_000;

pub(super) fn check(at: SpecPath<'_>, video: &VideoSpec) -> Result<(), SpecError> {
    let bitrates = &video.bitrates_bps;
    if !(1..=MAX_BITRATES).contains(&bitrates.len()) {
        let given = format!("{} of them", bitrates.len());
        return Err(SpecError::unfit(
            format_args!("{at}.bitrates_bps"),
            given,
            format!("1 to {MAX_BITRATES}"),
        ));
    }
    for &bitrate_bps in bitrates {
        within(format_args!("{at}.bitrates_bps"), bitrate_bps, 1..=MAX_BPS)?;
    }
    if let Some(pair) = bitrates.windows(2).find(|pair| pair[0] >= pair[1]) {
        let given = format!("{} after {}", pair[1], pair[0]);
        return Err(SpecError::unfit(
            format_args!("{at}.bitrates_bps"),
            given,
            "each larger than the last",
        ));
    }
    within(format_args!("{at}.segment_ns"), video.segment_ns, MIN_SEGMENT_NS..=MAX_NS)?;
    within(format_args!("{at}.segments"), video.segments.unwrap_or(1), 1..=u64::MAX)?;
    if !(0.0..1.0).contains(&video.variation) {
        return Err(SpecError::unfit(
            format_args!("{at}.variation"),
            video.variation,
            "from 0 up to 1",
        ));
    }
    within(format_args!("{at}.buffer_ns"), video.buffer_ns, video.segment_ns..=MAX_NS)?;
    // Segments arrive as a unit. A larger start-up threshold would wait for a segment that has no
    // room.
    let most_ns = video.buffer_ns / video.segment_ns * video.segment_ns;
    within(format_args!("{at}.startup_ns"), video.startup_ns, 1..=most_ns)?;
    match video.choice {
        VideoChoice::Buffer { reservoir_ns, cushion_ns } => {
            within(format_args!("{at}.choice.reservoir_ns"), reservoir_ns, 0..=MAX_NS)?;
            within(format_args!("{at}.choice.cushion_ns"), cushion_ns, 1..=MAX_NS)
        }
        VideoChoice::Throughput { samples, safety } => {
            within(
                format_args!("{at}.choice.samples"),
                u64::from(samples),
                1..=u64::from(MAX_SAMPLES),
            )?;
            if !(safety > 0.0 && safety <= 10.0) {
                return Err(SpecError::unfit(
                    format_args!("{at}.choice.safety"),
                    safety,
                    "above 0, at most 10",
                ));
            }
            Ok(())
        }
    }
}
