//! Counters of one-way datagrams.

use std::iter::Peekable;

use jostle_units::{Span, Time};

use crate::e_model::{Codec, rating};
use crate::histogram::Histogram;
use jostle_run_spec::{CbrSpec, PlayoutSpec, SourceSpec, VoiceSpec};
use jostle_traffic::DatagramTimes;

/// Counters of numbered datagrams in an interval. A datagram belongs to the interval in which it was
/// sent, a value of the jitter to the one in which the datagram arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct DatagramCounters {
    /// Datagrams sent that arrived or are lost.
    pub sent: u64,
    /// Datagrams sent that arrived.
    pub received: u64,
    /// One-way delays of these datagrams without the propagation delay of the path.
    pub excess_ns: Histogram,
    /// Sum of the jitter after each datagram except the first, in 1/16 ns.
    pub jitter_sum_16ns: u64,
    /// Number of terms in that sum.
    pub jitters: u64,
}

impl DatagramCounters {
    /// Adds the counters of a disjoint interval.
    pub(crate) fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.excess_ns.merge(&other.excess_ns);
        self.jitter_sum_16ns += other.jitter_sum_16ns;
        self.jitters += other.jitters;
    }

    /// Returns the fraction lost. `None` if no datagram arrived or is lost.
    pub(crate) fn lost_share(&self) -> Option<f64> {
        let lost = self.sent.saturating_sub(self.received);
        (self.sent > 0).then(|| lost as f64 / self.sent as f64)
    }

    /// Returns the mean interarrival jitter.
    pub(crate) fn jitter_mean_s(&self) -> Option<f64> {
        let mean_16ns = self.jitter_sum_16ns as f64 / self.jitters as f64;
        (self.jitters > 0).then(|| mean_16ns / 16e9)
    }
}

/// Counts datagrams that are sent on a schedule, and the receiver's jitter (RFC 3550).
///
/// The departure times are from the schedule. They assign datagrams to segments, even if none of
/// them arrives.
#[derive(Clone, Debug)]
pub(crate) struct DatagramMeter {
    source: SourceSpec,
    start: Time,
    stop: Time,
    propagation: Span,
    /// Departure times from now on; `None` before the flow starts.
    times: Option<Peekable<DatagramTimes>>,
    sent: u64,
    /// Numbers of the first datagrams after the completed segments.
    bounds: Vec<u64>,
    /// Counters of the completed segments, and of the current one.
    segments: Vec<DatagramCounters>,
    /// Largest number received, counted from 1.
    highest: u64,
    longest_delay: Option<Span>,
    last_delay: Option<Span>,
    jitter_16ns: u64,
}

impl DatagramMeter {
    /// Creates a meter of datagrams that are sent before `stop`. `propagation` is the minimum
    /// one-way propagation delay of the path.
    pub(crate) fn new(source: CbrSpec, stop: Time, propagation: Span) -> Self {
        Self {
            source: SourceSpec::Cbr(source),
            start: Time::NEVER,
            stop,
            propagation,
            times: None,
            sent: 0,
            bounds: Vec::new(),
            segments: vec![DatagramCounters::default()],
            highest: 0,
            longest_delay: None,
            last_delay: None,
            jitter_16ns: 0,
        }
    }

    /// Sets the time at which the flow starts.
    pub(crate) fn start(&mut self, now: Time) {
        if now != self.start {
            self.start = now;
            self.times = self.times_from_start();
        }
    }

    fn times_from_start(&self) -> Option<Peekable<DatagramTimes>> {
        let times = DatagramTimes::new(&self.source, self.start).filter(|_| self.start < self.stop);
        times.map(Iterator::peekable)
    }

    /// Records the datagram `number`, counted from 0, that arrived `delay` after it was sent.
    pub(crate) fn arrived(&mut self, number: u32, delay: Span) {
        let number = u64::from(number);
        self.highest = self.highest.max(number + 1);
        self.longest_delay = self.longest_delay.max(Some(delay));
        let segment = self.bounds.partition_point(|first| *first <= number);
        let counters = &mut self.segments[segment];
        counters.received += 1;
        counters.excess_ns.record(delay.as_ns().saturating_sub(self.propagation.as_ns()), 1);
        let current = &mut self.segments[self.bounds.len()];
        if let Some(last) = self.last_delay.replace(delay) {
            let apart_ns = delay.as_ns().abs_diff(last.as_ns());
            // RFC 3550 §6.4.1: J += (|D| − J) ÷ 16, in integers as in §A.8.
            self.jitter_16ns = self.jitter_16ns + apart_ns - ((self.jitter_16ns + 8) >> 4);
            current.jitter_sum_16ns += self.jitter_16ns;
            current.jitters += 1;
        }
    }

    /// Ends the current segment at `now`.
    pub(crate) fn close_segment(&mut self, now: Time) {
        let end = now.min(self.stop);
        if let Some(times) = &mut self.times {
            while times.next_if(|time| *time < end).is_some() {
                self.sent += 1;
            }
        }
        self.bounds.push(self.sent);
        self.segments.push(DatagramCounters::default());
    }

    /// Returns the counters of all completed segments at the end of the run.
    pub(crate) fn finish(mut self, end: Time) -> Vec<DatagramCounters> {
        let settled = self.settled(end);
        let mut first = 0;
        for (counters, bound) in self.segments.iter_mut().zip(&self.bounds) {
            counters.sent = bound.min(&settled) - first;
            first += counters.sent;
        }
        self.segments.truncate(self.bounds.len());
        self.segments
    }

    /// Returns how many datagrams, in the order of their numbers, arrived or are lost. The others
    /// may be under way.
    fn settled(&self, end: Time) -> u64 {
        // A datagram under way can take longer than all before it, because a queue may be growing.
        let longest = self.longest_delay.unwrap_or(self.propagation);
        let latest = Time::ZERO + end.since(Time::ZERO + longest + longest);
        let times = self.times_from_start().into_iter().flatten();
        let early = times.take_while(|time| *time < latest.min(self.stop)).count() as u64;
        // RFC 3550 §A.3: what a later datagram overtakes is lost.
        early.max(self.highest)
    }
}

/// Quality of speech at the listener.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct VoiceQuality {
    /// Mouth-to-ear delay. `None` if no datagram arrived.
    pub delay_s: Option<f64>,
    /// Transmission rating R of the E-model.
    pub rating: f64,
}

/// Returns the speech quality in an interval. `propagation_s` is the minimum one-way delay of the
/// path. `None` if no datagram arrived or is lost.
pub(crate) fn voice_quality(
    voice: &VoiceSpec,
    counters: &DatagramCounters,
    propagation_s: f64,
) -> Option<VoiceQuality> {
    let DatagramCounters { excess_ns, received, .. } = counters;
    let lost = counters.lost_share()?;
    let codec = Codec { impairment: voice.equipment_impairment, robustness: voice.loss_robustness };
    let least_s = voice.coding_delay_ns as f64 / 1e9 + propagation_s;
    if *received == 0 {
        // The delay of a call without any speech is unknown.
        return Some(VoiceQuality { delay_s: None, rating: rating(codec, least_s, 1.0) });
    }
    let came = *received as f64;
    let at = |wait_ns: u64, in_time: u64| {
        let late = (1.0 - in_time as f64 / came).max(0.0);
        let delay_s = least_s + wait_ns as f64 / 1e9;
        let rating = rating(codec, delay_s, lost + (1.0 - lost) * late);
        VoiceQuality { delay_s: Some(delay_s), rating }
    };
    let mut played = excess_ns.cumulative().map(|(wait_ns, in_time)| at(wait_ns, in_time));
    match voice.playout {
        PlayoutSpec::Best => played.max_by(|a, b| a.rating.total_cmp(&b.rating)),
        PlayoutSpec::Quantile { share } => {
            let position = excess_ns
                .cumulative()
                .position(|(_, in_time)| in_time as f64 >= share * came)
                .unwrap_or(usize::MAX);
            played.nth(position).or_else(|| excess_ns.cumulative().last().map(|(w, n)| at(w, n)))
        }
        PlayoutSpec::Buffer { length_ns } => {
            let played_ns = excess_ns.min()?.saturating_add(length_ns);
            let in_time = excess_ns.cumulative().take_while(|(wait_ns, _)| *wait_ns <= played_ns);
            Some(at(played_ns, in_time.last().map_or(0, |(_, in_time)| in_time)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jostle_run_spec::RateStep;

    /// A datagram every 10 ms from 0 on, over a path with a propagation delay of 10 ms.
    fn meter() -> DatagramMeter {
        let steps = vec![RateStep { at_ns: 0, rate_bps: 800_000 }];
        let source = CbrSpec { bytes: 1_000, steps, voice: None };
        let mut meter = DatagramMeter::new(source, Time::NEVER, Span::from_ms(10));
        meter.start(Time::ZERO);
        meter
    }

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    /// Returns the counters of a run that is long enough for all datagrams.
    fn of(delays_ms: &[u64]) -> DatagramCounters {
        let mut meter = meter();
        for (number, delay_ms) in (0..).zip(delays_ms) {
            meter.arrived(number, Span::from_ms(*delay_ms));
        }
        meter.close_segment(at(delays_ms.len() as u64 * 10));
        meter.finish(at(1_000_000)).remove(0)
    }

    #[test]
    fn jitter_is_that_of_rfc_3550() {
        let delays_ms = [30_u64, 40, 25, 25, 60, 31, 30];
        let (mut expected_s, mut sum_s) = (0.0, 0.0);
        for pair in delays_ms.windows(2) {
            let apart_s = pair[0].abs_diff(pair[1]) as f64 / 1e3;
            expected_s += (apart_s - expected_s) / 16.0;
            sum_s += expected_s;
        }
        let found_s = of(&delays_ms).jitter_mean_s().unwrap();
        assert!((found_s - sum_s / 6.0).abs() < 1e-8, "{found_s} beside {}", sum_s / 6.0);
    }

    #[test]
    fn datagrams_count_in_the_segment_in_which_they_were_sent() {
        let mut meter = meter();
        for number in [0, 1, 4, 3] {
            meter.arrived(number, Span::from_ms(10));
        }
        meter.close_segment(at(100));
        // Late, and not of this segment, of which all datagrams are lost.
        meter.arrived(2, Span::from_ms(110));
        meter.close_segment(at(200));
        for number in 20..29 {
            meter.arrived(number, Span::from_ms(10));
        }
        meter.close_segment(at(300));
        let shares: Vec<_> = meter.finish(at(300)).iter().map(|it| it.lost_share()).collect();
        assert_eq!(shares, [Some(0.5), Some(1.0), Some(0.0)]);
    }

    #[test]
    fn datagrams_under_way_at_the_end_are_not_lost() {
        let shares = |first: &[(u32, u64)], second: &[(u32, u64)]| {
            let mut meter = meter();
            for (end_ms, arrivals) in [(100, first), (200, second)] {
                for (number, delay_ms) in arrivals {
                    meter.arrived(*number, Span::from_ms(*delay_ms));
                }
                meter.close_segment(at(end_ms));
            }
            meter.finish(at(200)).iter().map(|it| it.lost_share()).collect::<Vec<_>>()
        };
        // Datagrams that left in the last 60 ms may take as long, …
        assert_eq!(shares(&[(0, 10), (1, 30)], &[]), [Some(0.8), Some(1.0)]);
        // … here all of the second segment, …
        assert_eq!(shares(&[(0, 10), (1, 50)], &[]), [Some(0.8), None]);
        // … of which later arrivals show that they are lost.
        assert_eq!(shares(&[(1, 50)], &[(14, 10)]), [Some(0.9), Some(0.8)]);
        // If none arrives, twice the propagation delay decides.
        assert_eq!(shares(&[], &[]), [Some(1.0), Some(1.0)]);
    }

    #[test]
    fn a_flow_that_never_starts_has_no_losses() {
        let mut meter = DatagramMeter { start: Time::NEVER, times: None, ..meter() };
        meter.close_segment(at(100));
        assert_eq!(meter.finish(at(100))[0].lost_share(), None);
    }

    fn voice(playout: PlayoutSpec) -> VoiceSpec {
        VoiceSpec {
            equipment_impairment: 0.0,
            loss_robustness: 25.1,
            coding_delay_ns: 20_000_000,
            playout,
        }
    }

    fn close(quality: Option<VoiceQuality>, delay_s: f64, loss: f64) {
        let quality = quality.unwrap();
        let found_s = quality.delay_s.unwrap();
        let r = rating(Codec { impairment: 0.0, robustness: 25.1 }, found_s, loss);
        // A bucket of the histogram is a 64th wide.
        assert!((found_s / delay_s - 1.0).abs() < 0.02, "{quality:?} beside {delay_s} s");
        assert!((quality.rating - r).abs() < 1e-9, "{quality:?} beside {r}");
    }

    #[test]
    fn a_playout_buffer_trades_delay_for_losses() {
        let delays_ms: Vec<u64> =
            (0..100).map(|number| if number < 90 { 40 } else { 410 }).collect();
        let counters = of(&delays_ms);
        let quality = |playout| voice_quality(&voice(playout), &counters, 0.05);
        // Everything is played, …
        close(quality(PlayoutSpec::Quantile { share: 1.0 }), 0.47, 0.0);
        // … or a tenth is late, …
        close(quality(PlayoutSpec::Quantile { share: 0.9 }), 0.1, 0.1);
        close(quality(PlayoutSpec::Buffer { length_ns: 10_000_000 }), 0.11, 0.1);
        // … of which the better is taken.
        let best = quality(PlayoutSpec::Best).unwrap();
        let both = [1.0, 0.9].map(|share| quality(PlayoutSpec::Quantile { share }).unwrap().rating);
        assert_eq!(best.rating, both[0].max(both[1]));
    }

    #[test]
    fn a_call_without_speech_has_the_rating_of_its_losses() {
        let counters = DatagramCounters { sent: 50, ..DatagramCounters::default() };
        let quality = voice_quality(&voice(PlayoutSpec::Best), &counters, 0.05).unwrap();
        let codec = Codec { impairment: 0.0, robustness: 25.1 };
        assert_eq!(quality, VoiceQuality { delay_s: None, rating: rating(codec, 0.07, 1.0) });
        let nothing = DatagramCounters::default();
        assert_eq!(voice_quality(&voice(PlayoutSpec::Best), &nothing, 0.05), None);
    }
}
