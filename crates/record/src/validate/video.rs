//! Which videos make sense.

use super::{MAX_BPS, MAX_NS, SpecError, within};
use crate::{VideoChoice, VideoSpec};

/// Most bitrates: players look at all of them for every segment.
const MAX_BITRATES: usize = 100;
/// Shortest segment. Low-delay players use a tenth of a second at least.
const MIN_SEGMENT_NS: u64 = 10_000_000;
/// Most segments whose throughputs count.
const MAX_SAMPLES: u32 = 1_000;

pub(super) fn check(at: &str, video: &VideoSpec) -> Result<(), SpecError> {
    let name = |key: &str| format!("{at}.{key}");
    let bitrates = &video.bitrates_bps;
    if !(1..=MAX_BITRATES).contains(&bitrates.len()) {
        let given = format!("{} of them", bitrates.len());
        return Err(SpecError::unfit(&name("bitrates_bps"), given, format!("1 to {MAX_BITRATES}")));
    }
    for &bitrate_bps in bitrates {
        within(&name("bitrates_bps"), bitrate_bps, 1..=MAX_BPS)?;
    }
    if let Some(pair) = bitrates.windows(2).find(|pair| pair[0] >= pair[1]) {
        let given = format!("{} after {}", pair[1], pair[0]);
        return Err(SpecError::unfit(&name("bitrates_bps"), given, "each larger than the last"));
    }
    within(&name("segment_ns"), video.segment_ns, MIN_SEGMENT_NS..=MAX_NS)?;
    within(&name("segments"), video.segments.unwrap_or(1), 1..=u64::MAX)?;
    if !(0.0..1.0).contains(&video.variation) {
        return Err(SpecError::unfit(&name("variation"), video.variation, "from 0 up to 1"));
    }
    within(&name("buffer_ns"), video.buffer_ns, video.segment_ns..=MAX_NS)?;
    // Whole segments come: else a player that does not play yet has no room for what it waits for.
    let most_ns = video.buffer_ns / video.segment_ns * video.segment_ns;
    within(&name("startup_ns"), video.startup_ns, 1..=most_ns)?;
    match video.choice {
        VideoChoice::Buffer { reservoir_ns, cushion_ns } => {
            within(&name("choice.reservoir_ns"), reservoir_ns, 0..=MAX_NS)?;
            within(&name("choice.cushion_ns"), cushion_ns, 1..=MAX_NS)
        }
        VideoChoice::Throughput { samples, safety } => {
            within(&name("choice.samples"), u64::from(samples), 1..=u64::from(MAX_SAMPLES))?;
            if !(safety > 0.0 && safety <= 10.0) {
                return Err(SpecError::unfit(
                    &name("choice.safety"),
                    safety,
                    "above 0, at most 10",
                ));
            }
            Ok(())
        }
    }
}
