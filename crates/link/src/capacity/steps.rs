//! Piecewise constant rate.

use jostle_registry::RegistryEntry;
use jostle_units::{Rate, Time};

use super::Capacity;
use super::serialiser::{Serialiser, finish_across};
use crate::error::Error;

/// Registry entry.
pub const ENTRY: RegistryEntry = RegistryEntry {
    name: "steps",
    summary: "list of times and the rates from then on; 0 pauses the link",
    class: "synthetic",
    based_on: &["constant"],
    source: "",
    parameters: &[],
};

/// A piecewise constant rate. Transmission pauses while the rate is 0. If the rate changes during
/// the transmission of a packet, the rest of the packet is sent at the new rate.
#[derive(Clone, Debug)]
pub struct Steps {
    steps: Vec<Step>,
    /// Current step and its end.
    current: usize,
    until: Time,
    sender: Serialiser,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    at: Time,
    rate: Rate,
    /// Bytes offered until `at`.
    offered_bytes: f64,
}

impl Steps {
    /// Creates a capacity from times and the rates that apply from then on. The first time must be
    /// 0, and times must increase.
    ///
    /// # Errors
    /// If there is no step, the first is not at 0, or they are not in order.
    pub fn new(steps: Vec<(Time, Rate)>) -> Result<Self, Error> {
        let (first, rate) = *steps.first().ok_or(Error::Empty("rate steps"))?;
        if first != Time::ZERO {
            return Err(Error::Start("rate steps"));
        }
        if let Some(index) = steps.windows(2).position(|pair| pair[0].0 >= pair[1].0) {
            return Err(Error::Order("rate steps", index + 1));
        }
        let mut offered_bytes = 0.0;
        let mut before = (first, rate);
        let mut list = Vec::with_capacity(steps.len());
        for (at, rate) in steps {
            offered_bytes += bytes_between(before, at);
            list.push(Step { at, rate, offered_bytes });
            before = (at, rate);
        }
        let until = list.get(1).map_or(Time::NEVER, |step| step.at);
        Ok(Self { steps: list, current: 0, until, sender: Serialiser::new(rate) })
    }

    fn step(&mut self) {
        self.current += 1;
        self.until = self.steps.get(self.current + 1).map_or(Time::NEVER, |step| step.at);
        self.sender = Serialiser::new(self.steps[self.current].rate);
    }

    /// Returns the finish time of a packet that is not sent completely within the current step.
    #[cold]
    fn finish_later(&mut self, start: Time, size_bytes: u32) -> Time {
        let in_force = (Rate::from_bps(self.sender.rate_bps()), self.until);
        finish_across(start, size_bytes, in_force, || {
            self.step();
            (Rate::from_bps(self.sender.rate_bps()), self.until)
        })
    }
}

fn bytes_between((from, rate): (Time, Rate), to: Time) -> f64 {
    rate.as_bps() as f64 / 8.0 * to.since(from).as_secs_f64()
}

impl Capacity for Steps {
    #[inline]
    fn finish(&mut self, start: Time, size_bytes: u32) -> Time {
        while start >= self.until {
            if self.until == Time::NEVER {
                return Time::NEVER;
            }
            self.step();
        }
        let finish = self.sender.finish(start, size_bytes);
        if finish <= self.until { finish } else { self.finish_later(start, size_bytes) }
    }

    fn offered_bytes(&mut self, now: Time) -> f64 {
        let after = self.steps.partition_point(|step| step.at <= now);
        let step = self.steps[after - 1];
        step.offered_bytes + bytes_between((step.at, step.rate), now)
    }

    fn next_change(&mut self, now: Time) -> Time {
        let after = self.steps.partition_point(|step| step.at <= now);
        self.steps.get(after).map_or(Time::NEVER, |step| step.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    fn steps(list: &[(u64, u64)]) -> Steps {
        Steps::new(list.iter().map(|(at, mbps)| (ms(*at), Rate::from_mbps(*mbps))).collect())
            .unwrap()
    }

    #[test]
    fn a_packet_goes_on_at_the_new_rate() {
        // 12,500 bytes are 1 ms at 100 Mbit/s and 10 ms at 10 Mbit/s.
        let mut link = steps(&[(0, 100), (10, 10), (20, 0), (50, 100)]);
        assert_eq!(link.finish(ms(9), 12_500), ms(10));
        assert_eq!(link.finish(ms(10), 6_250), ms(15));
        // 5 of 10 ms before the pause, the rest after it at ten times the rate.
        assert_eq!(link.finish(ms(15), 12_500), Time::from_ns(50_500_000));
        assert_eq!(link.finish(ms(100), 12_500), ms(101));
    }

    #[test]
    fn half_a_packet_before_a_step_and_half_after_it() {
        let mut link = steps(&[(0, 100), (10, 50)]);
        assert_eq!(link.finish(Time::from_ns(9_500_000), 12_500), ms(11));
        assert_eq!(link.offered_bytes(ms(11)), 125_000.0 + 6_250.0);
        assert_eq!(link.offered_bytes(Time::ZERO), 0.0);
    }

    #[test]
    fn a_last_rate_of_zero_stops_the_link_for_good() {
        let mut link = steps(&[(0, 100), (1, 0)]);
        assert_eq!(link.finish(Time::ZERO, 12_501), Time::NEVER);
        assert_eq!(link.offered_bytes(ms(1_000)), 12_500.0);
        let mut late = steps(&[(0, 100), (1, 0)]);
        assert_eq!(late.finish(ms(7), 1), Time::NEVER);
    }

    #[test]
    fn an_impossible_list_is_refused() {
        let rate = Rate::from_mbps(1);
        let refused = |list: Vec<(Time, Rate)>| Steps::new(list).unwrap_err();
        assert_eq!(refused(vec![]), Error::Empty("rate steps"));
        assert_eq!(refused(vec![(ms(1), rate)]), Error::Start("rate steps"));
        assert_eq!(
            refused(vec![(ms(0), rate), (ms(2), rate), (ms(2), rate)]),
            Error::Order("rate steps", 2)
        );
    }
}
