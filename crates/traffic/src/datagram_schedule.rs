//! Departure times of datagrams.

use jostle_run_spec::{CbrSpec, RateStep, SourceSpec};
use jostle_units::{Span, Time};

/// Departure times of datagrams: the next one leaves when the rate has accumulated its size.
/// Rounding up to nanoseconds is subtracted from the next wait, so that the rate does not drift.
#[derive(Clone, Debug)]
pub struct SendSchedule {
    steps: Vec<RateStep>,
    /// Bits of a datagram times 10⁹: bit/s times ns.
    size_bit_ns: u64,
    ahead_bit_ns: u64,
}

impl SendSchedule {
    /// Creates the departure times of a source.
    pub fn new(spec: &CbrSpec) -> Self {
        let size_bit_ns = 8_000_000_000 * u64::from(spec.bytes);
        Self { steps: spec.steps.clone(), size_bit_ns, ahead_bit_ns: 0 }
    }

    /// Returns `Ok` if the rate is not 0 at `now`, otherwise the time at which it becomes positive.
    pub fn is_on(&self, now: Time) -> Result<(), Time> {
        let from = self.step(now);
        let on = self.steps[from..].iter().find(|step| step.rate_bps > 0);
        let on = on.map_or(Time::NEVER, |step| Time::from_ns(step.at_ns));
        if on <= now { Ok(()) } else { Err(on) }
    }

    /// Returns the departure time of the datagram after one that leaves at `now`. [`Time::NEVER`]
    /// if there is none.
    pub fn after(&mut self, now: Time) -> Time {
        let mut needed_bit_ns = self.size_bit_ns - self.ahead_bit_ns;
        let mut at_ns = now.as_ns();
        for step in self.step(now)..self.steps.len() {
            let rate_bps = self.steps[step].rate_bps;
            let ends_ns = self.steps.get(step + 1).map_or(Time::NEVER.as_ns(), |next| next.at_ns);
            let lasts_ns = ends_ns - at_ns;
            if rate_bps > 0 {
                let wait_ns = needed_bit_ns.div_ceil(rate_bps);
                if wait_ns <= lasts_ns {
                    self.ahead_bit_ns = wait_ns * rate_bps - needed_bit_ns;
                    return Time::from_ns(at_ns + wait_ns);
                }
                needed_bit_ns -= rate_bps * lasts_ns;
            }
            at_ns = ends_ns;
        }
        Time::NEVER
    }

    /// Returns the index of the rate step that applies at `now`.
    fn step(&self, now: Time) -> usize {
        self.steps.partition_point(|step| step.at_ns <= now.as_ns()).saturating_sub(1)
    }
}

/// Departure times of the datagrams of a flow.
#[derive(Clone, Debug)]
pub struct DatagramTimes {
    intervals: Intervals,
    next: Time,
}

#[derive(Clone, Debug)]
enum Intervals {
    Equal(Span),
    AtRate(SendSchedule),
}

impl DatagramTimes {
    /// Creates the times of a source that begins at `start`; `None` if it does not send datagrams.
    pub fn new(source: &SourceSpec, start: Time) -> Option<Self> {
        match source {
            SourceSpec::Ping { every_ns, .. } => {
                Some(Self { intervals: Intervals::Equal(Span::from_ns(*every_ns)), next: start })
            }
            SourceSpec::Cbr(spec) => {
                let schedule = SendSchedule::new(spec);
                let next = schedule.is_on(start).map_or_else(|on| on, |()| start);
                Some(Self { intervals: Intervals::AtRate(schedule), next })
            }
            _ => None,
        }
    }
}

impl Iterator for DatagramTimes {
    type Item = Time;

    fn next(&mut self) -> Option<Time> {
        let now = self.next;
        if now == Time::NEVER {
            return None;
        }
        self.next = match &mut self.intervals {
            Intervals::Equal(every) => now + *every,
            Intervals::AtRate(schedule) => schedule.after(now),
        };
        Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    fn cadence(bytes: u32, steps: &[(u64, u64)]) -> SendSchedule {
        let step = |&(at_ns, rate_bps): &(u64, u64)| RateStep { at_ns, rate_bps };
        let steps = steps.iter().map(step).collect();
        SendSchedule::new(&CbrSpec { bytes, steps, voice: None })
    }

    fn times_ns(cadence: &mut SendSchedule, from_ns: u64, count: usize) -> Vec<u64> {
        let times = std::iter::successors(Some(Time::from_ns(from_ns)), |now| {
            Some(cadence.after(*now)).filter(|next| *next < Time::NEVER)
        });
        times.take(count).map(Time::as_ns).collect()
    }

    #[test]
    fn speech_leaves_every_20_ms() {
        let mut speech = cadence(160, &[(0, 64_000)]);
        assert_eq!(times_ns(&mut speech, 7, 3), [7, 20_000_007, 40_000_007]);
    }

    #[test]
    fn a_step_takes_effect_at_its_time_even_between_two_datagrams() {
        // 1000 bit: 1 s at 1 kbit/s. Half of the third is gathered before the rate doubles.
        let mut stepped =
            cadence(125, &[(0, 1_000), (5 * S / 2, 2_000), (4 * S, 0), (6 * S, 1_000)]);
        let halves = times_ns(&mut stepped, 0, 8).iter().map(|ns| ns * 4 / S).collect::<Vec<_>>();
        assert_eq!(halves, [0, 4, 8, 11, 13, 15, 26, 30]);
        assert_eq!(stepped.is_on(Time::from_ns(3 * S)), Ok(()));
        assert_eq!(stepped.is_on(Time::from_ns(5 * S)), Err(Time::from_ns(6 * S)));
        let mut ended = cadence(125, &[(0, 1_000), (S / 2, 0)]);
        assert_eq!(
            (ended.is_on(Time::from_ns(S)), ended.after(Time::ZERO)),
            (Err(Time::NEVER), Time::NEVER)
        );
    }

    proptest! {
        /// The n-th leaves at the first nanosecond by which the rate has made up for n of them.
        #[test]
        fn no_rate_drifts(bytes in 1u32..1_473, rate_bps in 1_000u64..1_000_000, n in 1usize..2_000) {
            let last_ns = times_ns(&mut cadence(bytes, &[(0, rate_bps)]), 0, n + 1)[n];
            let exact = (u128::from(bytes) * 8 * u128::from(S) * n as u128).div_ceil(u128::from(rate_bps));
            prop_assert_eq!(u128::from(last_ns), exact);
        }
    }
}
