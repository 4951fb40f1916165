//! Outages: periods in which all packets are lost. They depend on time, not on packets, so a busy
//! and an idle link have the same number of outages.

use jostle_registry::{Parameter, RegistryEntry};
use jostle_units::{RandomStream, Span, Time};

use super::Loss;
use crate::delay::Quantiles;
use crate::error::Error;
use crate::packet::DropReason;
use crate::parameters::{LONGEST, SHORTEST_PERIOD};

/// Registry entry.
pub const ENTRY: RegistryEntry = RegistryEntry {
    name: "outages",
    summary: "periods in which all packets are lost, with lengths from a quantile table",
    class: "in time",
    based_on: &[],
    source: "",
    parameters: &[Parameter::span(
        "mean_interval",
        Span::from_ms(1_200_000),
        SHORTEST_PERIOD..=LONGEST,
    )
    .summary("mean time from the end of one outage to the start of the next")],
};

/// Outages at random times. The time from the end of an outage to the start of the next one is
/// exponentially distributed; durations have a given distribution.
#[derive(Clone, Debug)]
pub struct Outages {
    mean_interval_ns: f64,
    durations: Quantiles,
    random: RandomStream,
    /// Current or next outage.
    start: Time,
    end: Time,
}

impl Outages {
    /// Creates outages with the mean interval `mean_interval` between them and the duration
    /// distribution `durations`.
    ///
    /// # Errors
    /// If `mean_interval` is zero.
    pub fn new(
        mean_interval: Span,
        durations: Quantiles,
        random: RandomStream,
    ) -> Result<Self, Error> {
        if mean_interval.is_zero() {
            return Err(Error::Zero("the mean interval of outages"));
        }
        let mut outages = Self {
            mean_interval_ns: mean_interval.as_ns() as f64,
            durations,
            random,
            start: Time::ZERO,
            end: Time::ZERO,
        };
        outages.draw();
        Ok(outages)
    }

    /// Returns start and end of every outage that begins before `until`.
    pub fn before(mut self, until: Time) -> Vec<(Time, Time)> {
        let mut spans = Vec::new();
        while self.start < until {
            spans.push((self.start, self.end));
            self.draw();
        }
        spans
    }

    #[cold]
    fn draw(&mut self) {
        // The gap is at least one nanosecond, so that time advances.
        let gap_ns = self.random.exponential(self.mean_interval_ns).max(1.0);
        self.start = self.end + Span::from_ns(gap_ns as u64);
        self.end = self.start + self.durations.value(self.random.uniform());
    }
}

impl Loss for Outages {
    #[inline]
    fn verdict(&mut self, now: Time) -> Option<DropReason> {
        self.advance_to(now);
        (now >= self.start).then_some(DropReason::Outage)
    }

    #[inline]
    fn advance_to(&mut self, now: Time) {
        while now >= self.end && self.end != Time::NEVER {
            self.draw();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outages(seed: u64) -> Outages {
        let durations =
            Quantiles::new(vec![(0.0, Span::from_ms(100)), (1.0, Span::from_ms(300))]).unwrap();
        Outages::new(Span::from_secs(10), durations, RandomStream::new(seed, "outage")).unwrap()
    }

    /// Start and length in milliseconds of all outages within `hours`, as a packet per ms sees them.
    fn seen(mut outages: Outages, hours: u64) -> Vec<(u64, u64)> {
        let mut list: Vec<(u64, u64)> = Vec::new();
        let mut before = false;
        for ms in 0..hours * 3_600_000 {
            let lost = outages.verdict(Time::ZERO + Span::from_ms(ms)).is_some();
            match (before, lost, list.last_mut()) {
                (false, true, _) => list.push((ms, 1)),
                (true, true, Some(last)) => last.1 += 1,
                _ => {}
            }
            before = lost;
        }
        list
    }

    #[test]
    fn outages_are_poisson_events_in_time_with_their_durations() {
        let list = seen(outages(1), 10);
        // 36,000 s at one per 10.2 s: 3,529 ± 59.
        assert!((3_300..3_760).contains(&list.len()), "{}", list.len());
        let mean = |values: &mut dyn Iterator<Item = f64>| {
            let values: Vec<f64> = values.collect();
            values.iter().sum::<f64>() / values.len() as f64
        };
        let length = mean(&mut list.iter().map(|outage| outage.1 as f64));
        assert!((length - 200.0).abs() < 4.0, "{length}");
        assert!(list.iter().all(|outage| (99..=301).contains(&outage.1)));
        let gaps =
            || list.windows(2).map(|pair| (pair[1].0 - pair[0].0 - pair[0].1) as f64 / 10_000.0);
        // An exponential's standard deviation equals its mean.
        assert!((mean(&mut gaps()) - 1.0).abs() < 0.06);
        assert!((mean(&mut gaps().map(|gap| gap * gap)) - 2.0).abs() < 0.3);
    }

    #[test]
    fn the_list_of_them_is_what_packets_meet() {
        let list = outages(3).before(Time::ZERO + Span::from_secs(3600));
        assert!(list.len() > 300);
        let mut met = outages(3);
        for (start, end) in list {
            let last = Time::from_ns(end.as_ns() - 1);
            let around = [Time::from_ns(start.as_ns() - 1), start, last, end];
            let verdicts = around.map(|now| met.verdict(now).is_some());
            assert_eq!(verdicts, [false, true, true, false], "{start:?} {end:?}");
        }
    }

    #[test]
    fn they_do_not_depend_on_how_often_packets_come() {
        let (mut often, mut rarely) = (outages(2), outages(2));
        for ms in 0..2_000_000 {
            let now = Time::ZERO + Span::from_ms(ms);
            let lost = often.verdict(now);
            if ms % 997 == 0 {
                assert_eq!(rarely.verdict(now), lost);
            }
        }
    }

    #[test]
    fn time_that_passes_changes_no_outage_and_leaves_nothing_to_draw() {
        let (mut plain, mut passing) = (outages(3), outages(3));
        for s in 1..2_000u64 {
            let now = Time::ZERO + Span::from_ms(s * 777);
            passing.advance_to(now);
            assert!(passing.end > now);
            if s.is_multiple_of(50) {
                assert_eq!(plain.verdict(now), passing.verdict(now));
                assert_eq!((plain.start, plain.end), (passing.start, passing.end));
            }
        }
    }
}
