//! Constant rate.

use jostle_registry::{Parameter, RegistryEntry};
use jostle_units::{Rate, Time};

use super::Capacity;
use super::serialiser::Serialiser;
use crate::parameters::FASTEST;

/// Registry entry.
pub const ENTRY: RegistryEntry = RegistryEntry {
    name: "constant",
    summary: "one rate for the complete run",
    class: "synthetic",
    based_on: &[],
    source: "",
    parameters: &[Parameter::rate("rate", Rate::from_mbps(100), Rate::from_bps(1)..=FASTEST)
        .summary("bits per second, including the Ethernet header")],
};

/// A constant rate. At rate 0 no packet is ever sent.
#[derive(Clone, Debug)]
pub struct Constant(Serialiser);

impl Constant {
    /// Creates a capacity with this `rate`.
    pub fn new(rate: Rate) -> Self {
        Self(Serialiser::new(rate))
    }
}

impl Capacity for Constant {
    #[inline]
    fn finish(&mut self, start: Time, size_bytes: u32) -> Time {
        self.0.finish(start, size_bytes)
    }

    fn constant(&self) -> Option<Rate> {
        Some(Rate::from_bps(self.0.rate_bps()))
    }

    fn offered_bytes(&mut self, now: Time) -> f64 {
        self.0.rate_bps() as f64 / 8.0 * now.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_alone_takes_its_time_rounded_down() {
        for (mbps, size, ns) in [(100, 1514, 121_120), (144, 1514, 84_111), (10_000, 66, 52)] {
            let mut link = Constant::new(Rate::from_mbps(mbps));
            let start = Time::from_ns(77);
            assert_eq!(link.finish(start, size), Time::from_ns(77 + ns));
        }
    }

    #[test]
    fn packets_without_gaps_share_their_fractions() {
        // 121.12 ns each: 100 of them take 12,112 ns, and each ends at its own time rounded down.
        let mut link = Constant::new(Rate::from_mbps(100_000));
        let mut now = Time::ZERO;
        for n in 1..=100u64 {
            now = link.finish(now, 1514);
            assert_eq!(now.as_ns(), (12_112 * n) / 100);
        }
        // A gap ends that.
        let start = now + jostle_units::Span::from_ns(1);
        assert_eq!(link.finish(start, 1514).since(start).as_ns(), 121);
    }

    #[test]
    fn sizes_may_change_at_any_time() {
        let mut link = Constant::new(Rate::from_bps(3_000_000_000));
        let mut now = Time::ZERO;
        let mut bits = 0u64;
        for n in 0..10_000u64 {
            let size = if n % 3 == 0 { 1514 } else { 66 };
            bits += 8 * size;
            now = link.finish(now, size as u32);
            assert_eq!(now.as_ns(), bits / 3, "packet {n}");
        }
    }

    #[test]
    fn nothing_is_sent_at_rate_zero() {
        assert_eq!(Constant::new(Rate::ZERO).finish(Time::from_ns(5), 1), Time::NEVER);
    }
}
