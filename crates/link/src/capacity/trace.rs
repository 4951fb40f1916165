//! Delivery opportunities of a recorded link, in the trace format of Mahimahi (Netravali et al.
//! 2015; its `src/packet/link_queue.cc`), which is common for cellular links.

use jostle_registry::{Parameter, RegistryEntry};
use jostle_units::Time;

use super::Capacity;
use crate::error::Error;
use crate::parameters::packets;

/// Registry entry.
pub const ENTRY: RegistryEntry = RegistryEntry {
    name: "trace",
    summary: "delivery opportunities from a file in Mahimahi's format, repeated at its end",
    class: "recorded",
    based_on: &[],
    source: "Netravali et al.: Mahimahi: Accurate Record-and-Replay for HTTP, ATC 2015",
    parameters: &[Parameter::size("opportunity", Some(packets(1)), 1..=1 << 20)
        .summary("bytes per opportunity, including the Ethernet header")],
};

const NS_PER_MS: u64 = 1_000_000;

/// Capacity that sends up to a number of bytes at each delivery opportunity.
///
/// As in Mahimahi, the trace repeats after its last entry. Several packets can share an
/// opportunity, a packet that is larger than the remaining bytes continues at the next one, and
/// unused bytes are lost. A packet that starts when its predecessor ends can use the remaining
/// bytes of the current opportunity. A packet that starts on an idle link uses only opportunities
/// after its start.
///
/// Costs O(1) per packet and opportunity used, and O(log n) to skip opportunities while idle.
#[derive(Clone, Debug)]
pub struct DeliveryTrace {
    opportunities_ns: Vec<u64>,
    opportunity_bytes: u32,
    period_ns: u64,
    /// Start of the repetition that contains `next`.
    base_ns: u64,
    /// Index of the opportunity after the current one.
    next: usize,
    /// Current opportunity: its time and its remaining bytes.
    at: Time,
    left_bytes: u32,
    /// Result of the previous call.
    finish: Option<Time>,
}

impl DeliveryTrace {
    /// Creates a trace of opportunities at `opportunities_ms`, each of `opportunity_bytes`
    /// (Mahimahi: 1504; 1514 for a full-sized packet with its Ethernet header).
    ///
    /// # Errors
    /// If the trace is empty, not in order, or ends at 0, or if an opportunity has no bytes.
    pub fn new(opportunities_ms: &[u32], opportunity_bytes: u32) -> Result<Self, Error> {
        let last = *opportunities_ms.last().ok_or(Error::Empty("delivery opportunities"))?;
        if let Some(index) = opportunities_ms.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(Error::Order("delivery opportunities", index + 1));
        }
        if last == 0 {
            return Err(Error::Zero("the time of the last delivery opportunity"));
        }
        if opportunity_bytes == 0 {
            return Err(Error::Zero("the size of a delivery opportunity"));
        }
        Ok(Self {
            opportunities_ns: opportunities_ms
                .iter()
                .map(|ms| u64::from(*ms) * NS_PER_MS)
                .collect(),
            opportunity_bytes,
            period_ns: u64::from(last) * NS_PER_MS,
            base_ns: 0,
            next: 0,
            at: Time::ZERO,
            left_bytes: 0,
            finish: None,
        })
    }

    /// Advances to the next opportunity.
    #[inline]
    fn step(&mut self) {
        self.at = Time::from_ns(self.base_ns + self.opportunities_ns[self.next]);
        self.left_bytes = self.opportunity_bytes;
        self.next += 1;
        if self.next == self.opportunities_ns.len() {
            self.next = 0;
            self.base_ns += self.period_ns;
        }
    }

    /// Skips all opportunities up to `start`. `base_ns` is never after `start`: it is 0 or the time
    /// of an opportunity that was used or skipped.
    fn skip_until(&mut self, start: Time) {
        let mut since_ns = start.since(Time::from_ns(self.base_ns)).as_ns();
        if since_ns >= self.period_ns {
            self.base_ns += since_ns - since_ns % self.period_ns;
            since_ns %= self.period_ns;
            self.next = 0;
        }
        // The last entry is at the end of the period, so at least one entry remains.
        self.next += self.opportunities_ns[self.next..].partition_point(|at| *at <= since_ns);
        self.left_bytes = 0;
    }
}

impl Capacity for DeliveryTrace {
    #[inline]
    fn finish(&mut self, start: Time, size_bytes: u32) -> Time {
        if self.finish != Some(start) {
            self.skip_until(start);
        }
        let mut rest = size_bytes;
        while rest > self.left_bytes || self.at < start {
            rest -= self.left_bytes.min(rest);
            self.step();
        }
        self.left_bytes -= rest;
        self.finish = Some(self.at);
        self.at
    }

    fn offered_bytes(&mut self, now: Time) -> f64 {
        let repetitions = now.as_ns() / self.period_ns;
        let since_ns = now.as_ns() % self.period_ns;
        let in_this = self.opportunities_ns.partition_point(|at| *at <= since_ns) as u64;
        let count = repetitions * self.opportunities_ns.len() as u64 + in_this;
        count as f64 * f64::from(self.opportunity_bytes)
    }

    fn next_change(&mut self, now: Time) -> Time {
        let since_ns = now.as_ns() % self.period_ns;
        let next = self.opportunities_ns.partition_point(|at| *at <= since_ns);
        // The last opportunity is at the end of the period, after every `since_ns`.
        Time::from_ns(now.as_ns() - since_ns + self.opportunities_ns[next])
    }

    fn is_in_bursts(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_ns(ms * NS_PER_MS)
    }

    #[test]
    fn packets_share_opportunities_and_spread_over_them() {
        let mut link = DeliveryTrace::new(&[2, 2, 5, 10], 1500).unwrap();
        assert_eq!(link.finish(ms(0), 700), ms(2));
        assert_eq!(link.finish(ms(2), 800), ms(2));
        // 1500 from the second opportunity at 2 ms, 1500 at 5 ms, the rest at 10 ms.
        assert_eq!(link.finish(ms(2), 3_100), ms(10));
        assert_eq!(link.finish(ms(10), 1_400), ms(10));
        assert_eq!(link.finish(ms(10), 1), ms(12));
    }

    #[test]
    fn the_trace_repeats_after_its_last_entry() {
        let mut link = DeliveryTrace::new(&[0, 3, 7], 1000).unwrap();
        let mut now = ms(0);
        let ends: Vec<u64> = (0..7)
            .map(|_| {
                now = link.finish(now, 1000);
                now.as_ns() / NS_PER_MS
            })
            .collect();
        // The entry at 0 comes together with the last of the repetition before.
        assert_eq!(ends, [3, 7, 7, 10, 14, 14, 17]);
        assert_eq!(link.offered_bytes(ms(17)), 8_000.0);
    }

    #[test]
    fn opportunities_that_nobody_uses_are_lost() {
        let mut link = DeliveryTrace::new(&[2, 4, 10], 1500).unwrap();
        assert_eq!(link.finish(ms(0), 100), ms(2));
        // Idle since 2 ms: neither the rest of that opportunity nor one at the start itself.
        assert_eq!(link.finish(ms(4), 1500), ms(10));
        assert_eq!(link.finish(ms(1_000), 1500), ms(1_002));
        assert_eq!(link.finish(ms(2_345), 1500), ms(2_350));
        assert_eq!(link.finish(ms(2_350), 1500), ms(2_352));
        assert_eq!(link.finish(ms(2_360), 1500), ms(2_362));
    }

    #[test]
    fn an_impossible_trace_is_refused() {
        assert!(DeliveryTrace::new(&[], 1500).is_err());
        assert_eq!(
            DeliveryTrace::new(&[3, 2], 1500).unwrap_err(),
            Error::Order("delivery opportunities", 1)
        );
        assert!(DeliveryTrace::new(&[0, 0], 1500).is_err());
        assert!(DeliveryTrace::new(&[1], 0).is_err());
    }
}
