//! Applications that write on a schedule: media frames, and recorded traces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SourceSpec;

/// Frames of two sizes at a constant rate. The first is written at the flow's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MediaSpec {
    /// Number of frames per 1000 s.
    pub frames_per_1000_s: u64,
    /// Payload bytes of a key frame, which is decodable without other frames.
    pub key_bytes: u64,
    /// Payload bytes of every other frame.
    pub delta_bytes: u64,
    /// Distance from one key frame to the next, in frames.
    pub key_every: u64,
    /// Deadline after the write: a frame that is complete later is late.
    pub deadline_ns: u64,
}

/// Recorded writes of an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// Writes in order of time.
    pub writes: Vec<WriteSpec>,
    /// Deadline after a write: data that are complete later are late (absent: none).
    pub deadline_ns: Option<u64>,
}

/// One write of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteSpec {
    /// Time, counted from the flow's start.
    pub at_ns: u64,
    /// Payload bytes.
    pub bytes: u64,
}

impl MediaSpec {
    /// 1000 s in ns.
    const PERIOD_NS: u128 = 1_000_000_000_000;

    fn write(&self, number: u64) -> WriteSpec {
        let at_ns = u128::from(number) * Self::PERIOD_NS / u128::from(self.frames_per_1000_s);
        let is_key = number.is_multiple_of(self.key_every);
        let bytes = if is_key { self.key_bytes } else { self.delta_bytes };
        WriteSpec { at_ns: u64::try_from(at_ns).unwrap_or(u64::MAX), bytes }
    }

    fn writes_before(&self, ns: u64) -> u64 {
        let frames =
            (u128::from(ns) * u128::from(self.frames_per_1000_s)).div_ceil(Self::PERIOD_NS);
        u64::try_from(frames).unwrap_or(u64::MAX)
    }
}

impl SourceSpec {
    /// Returns write `number`, counted from 0, if the source writes on a schedule and has so many
    /// writes.
    pub fn write(&self, number: u64) -> Option<WriteSpec> {
        match self {
            Self::Media(media) => Some(media.write(number)),
            Self::Trace(trace) => trace.writes.get(usize::try_from(number).ok()?).copied(),
            _ => None,
        }
    }

    /// Returns the number of scheduled writes in the first `ns` nanoseconds.
    pub fn writes_before(&self, ns: u64) -> u64 {
        match self {
            Self::Media(media) => media.writes_before(ns),
            Self::Trace(trace) => trace.writes.partition_point(|write| write.at_ns < ns) as u64,
            _ => 0,
        }
    }

    /// Returns whether the source writes on a schedule.
    pub const fn is_timed(&self) -> bool {
        matches!(self, Self::Media(_) | Self::Trace(_))
    }

    /// Returns the deadline of scheduled writes.
    pub fn deadline_ns(&self) -> Option<u64> {
        match self {
            Self::Media(media) => Some(media.deadline_ns),
            Self::Trace(trace) => trace.deadline_ns,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_at_their_rate_and_every_so_many_is_a_key_frame() {
        let video = SourceSpec::Media(MediaSpec {
            frames_per_1000_s: 30_000,
            key_bytes: 37_500,
            delta_bytes: 3_750,
            key_every: 30,
            deadline_ns: 250_000_000,
        });
        let write = |number| video.write(number).map(|write| (write.at_ns, write.bytes));
        assert_eq!(write(0), Some((0, 37_500)));
        assert_eq!(write(1), Some((33_333_333, 3_750)));
        assert_eq!(write(30), Some((1_000_000_000, 37_500)));
        assert_eq!(video.writes_before(0), 0);
        for number in 0..100 {
            let at_ns = video.write(number).unwrap().at_ns;
            assert_eq!(video.writes_before(at_ns), number, "before {at_ns} ns");
            assert_eq!(video.writes_before(at_ns + 1), number + 1, "by {at_ns} ns");
        }
    }
}
