//! Bins and segments of a run's time.

use std::ops::Range;

use jostle_units::{Span, Time};

use jostle_run_spec::{PhaseSpec, RunSpec};

/// Bins of the series, and segments between phase boundaries.
///
/// Phases may overlap. The boundaries of all phases divide the run into disjoint segments, and each
/// phase is a union of segments. A sample is therefore recorded once, in however many phases it
/// counts.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    interval_ns: u64,
    end: Time,
    /// Starts of the segments, then the end of the run.
    cuts: Vec<Time>,
}

impl Timeline {
    pub(crate) fn new(spec: &RunSpec) -> Self {
        let bounds = spec.phases.iter().flat_map(|phase| [phase.from_ns, phase.to_ns]);
        let mut cuts: Vec<Time> = bounds
            .filter(|ns| *ns < spec.duration_ns)
            .chain([0, spec.duration_ns])
            .map(Time::from_ns)
            .collect();
        cuts.sort_unstable();
        cuts.dedup();
        Self { interval_ns: spec.interval_ns.max(1), end: Time::from_ns(spec.duration_ns), cuts }
    }

    /// Returns the end of the run.
    pub(crate) fn end(&self) -> Time {
        self.end
    }

    /// Returns the number of bins; the last bin may be shorter.
    pub(crate) fn bins(&self) -> usize {
        self.end.as_ns().div_ceil(self.interval_ns) as usize
    }

    /// Returns the end of a bin, or [`Time::NEVER`] after the last.
    pub(crate) fn bin_end(&self, bin: usize) -> Time {
        if bin >= self.bins() {
            return Time::NEVER;
        }
        Time::from_ns((bin as u64 + 1).saturating_mul(self.interval_ns)).min(self.end)
    }

    /// Returns the length of a bin.
    pub(crate) fn bin_length(&self, bin: usize) -> Span {
        self.bin_end(bin).since(Time::from_ns(bin as u64 * self.interval_ns))
    }

    /// Returns the number of segments.
    pub(crate) fn segments(&self) -> usize {
        self.cuts.len() - 1
    }

    /// Returns the end of a segment, or [`Time::NEVER`] after the last.
    pub(crate) fn segment_end(&self, segment: usize) -> Time {
        self.cuts.get(segment + 1).copied().unwrap_or(Time::NEVER)
    }

    /// Returns the segments of a phase.
    pub(crate) fn segments_of(&self, phase: &PhaseSpec) -> Range<usize> {
        let position = |ns| self.cuts.partition_point(|cut| cut.as_ns() < ns).min(self.segments());
        position(phase.from_ns)..position(phase.to_ns)
    }
}

/// Position in the timeline: the current bin and the current segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimelineCursor {
    bin: usize,
    segment: usize,
    /// Next end of a bin or segment; [`Time::NEVER`] after the run.
    cut: Time,
}

impl TimelineCursor {
    /// Creates a cursor at the start of the run.
    pub(crate) fn new(timeline: &Timeline) -> Self {
        let mut start = Self { bin: 0, segment: 0, cut: Time::NEVER };
        start.look_ahead(timeline);
        start
    }

    fn look_ahead(&mut self, timeline: &Timeline) {
        self.cut = timeline.bin_end(self.bin).min(timeline.segment_end(self.segment));
    }

    /// Returns the next end of a bin or segment.
    #[inline]
    pub(crate) fn cut(&self) -> Time {
        self.cut
    }

    /// Returns whether a bin or segment ends until `now`.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.cut <= now && self.cut != Time::NEVER
    }

    pub(crate) fn bin(&self) -> usize {
        self.bin
    }

    pub(crate) fn segment(&self) -> usize {
        self.segment
    }

    /// Moves past the next end. Returns whether a segment ended there.
    pub(crate) fn step(&mut self, timeline: &Timeline) -> bool {
        let cut = self.cut;
        let segment_ended = timeline.segment_end(self.segment) == cut;
        self.bin += usize::from(timeline.bin_end(self.bin) == cut);
        self.segment += usize::from(segment_ended);
        self.look_ahead(timeline);
        segment_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jostle_run_spec::TraceLevel;

    fn timeline(duration_ns: u64, interval_ns: u64, phases: &[(u64, u64)]) -> Timeline {
        Timeline::new(&RunSpec {
            seed: 1,
            duration_ns,
            interval_ns,
            record: TraceLevel::None,
            capture: None,
            measured: None,
            phases: phases.iter().map(phase).collect(),
            links: Vec::new(),
            flows: Vec::new(),
        })
    }

    fn phase(&(from_ns, to_ns): &(u64, u64)) -> PhaseSpec {
        PhaseSpec { name: format!("{from_ns}-{to_ns}"), from_ns, to_ns }
    }

    #[test]
    fn overlapping_phases_share_segments() {
        let timeline = timeline(100, 10, &[(0, 100), (0, 40), (20, 60)]);
        let ends: Vec<u64> =
            (0..timeline.segments()).map(|i| timeline.segment_end(i).as_ns()).collect();
        assert_eq!(ends, [20, 40, 60, 100]);
        assert_eq!(timeline.segments_of(&phase(&(0, 100))), 0..4);
        assert_eq!(timeline.segments_of(&phase(&(0, 40))), 0..2);
        assert_eq!(timeline.segments_of(&phase(&(20, 60))), 1..3);
        assert_eq!(timeline.segment_end(4), Time::NEVER);
    }

    #[test]
    fn a_cursor_stops_at_every_cut_once() {
        let timeline = timeline(30, 10, &[(0, 30), (10, 15)]);
        let mut cursor = TimelineCursor::new(&timeline);
        let mut stops = Vec::new();
        while cursor.is_due(Time::NEVER) {
            let cut_ns = cursor.cut().as_ns();
            stops.push((cut_ns, cursor.bin(), cursor.segment(), cursor.step(&timeline)));
        }
        assert_eq!(
            stops,
            [(10, 0, 0, true), (15, 1, 1, true), (20, 1, 2, false), (30, 2, 2, true),]
        );
    }

    #[test]
    fn the_last_bin_ends_with_the_run() {
        let timeline = timeline(25, 10, &[(0, 25)]);
        assert_eq!(timeline.bins(), 3);
        assert_eq!(timeline.bin_end(2), Time::from_ns(25));
        assert_eq!(timeline.bin_length(2), Span::from_ns(5));
        assert_eq!(timeline.bin_end(3), Time::NEVER);
    }
}
