//! Estimates the queueing delays of packets from samples of a queue.

use std::collections::VecDeque;

use jostle_units::{Span, Time};

/// Bytes that came to a queue and left it, at the times of samples. A byte has waited for the time
/// since as many bytes had come, if the queue keeps their order; the mean holds for any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Departures {
    /// Totals of bytes that had come, oldest first, from the one before the next byte to leave.
    arrivals: VecDeque<(Time, f64)>,
    /// Time of the last sample, and bytes that had left.
    last: (Time, u64),
}

impl Departures {
    /// Returns how long the bytes that left since the last sample had waited. By now `sent_bytes` have
    /// left, and `queue_bytes` are in the queue.
    pub fn wait(&mut self, now: Time, sent_bytes: u64, queue_bytes: f64) -> Span {
        let (before, sent_before) = std::mem::replace(&mut self.last, (now, sent_bytes));
        if self.arrivals.is_empty() {
            self.arrivals.push_back((Time::ZERO, 0.0));
        }
        let came_before = self.arrivals.back().map_or(0.0, |(_, came)| *came);
        // Bytes that are dropped from the queue are in neither of the numbers.
        let came = (sent_bytes as f64 + queue_bytes).max(came_before);
        self.arrivals.push_back((now, came));
        let middle = u64::midpoint(sent_before, sent_bytes) as f64;
        while self.arrivals.get(1).is_some_and(|(_, came)| *came <= middle) {
            self.arrivals.pop_front();
        }
        let left_ns = u64::midpoint(before.as_ns(), now.as_ns());
        let (Some((from, less)), Some((to, more))) = (self.arrivals.front(), self.arrivals.get(1))
        else {
            return Span::ZERO;
        };
        let part = (middle - less) / (more - less);
        let came_ns = from.as_ns() + (to.since(*from).as_ns() as f64 * part) as u64;
        Span::from_ns(left_ns.saturating_sub(came_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interval of the samples.
    const SAMPLED_MS: u64 = 10;

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    /// Returns the delays in seconds of packets of 1,500 bytes that leave at `rate_bps`.
    fn delays_s(rate_bps: f64, queue_bytes: f64, samples: u64) -> Vec<f64> {
        let mut departures = Departures::default();
        let mut sent = 0;
        let mut delays = Vec::new();
        for step in 1..=samples {
            let left = (rate_bps * step as f64 * 0.01 / 8.0 / 1_500.0) as u64 * 1_500;
            let wait = departures.wait(at(step * SAMPLED_MS), left, queue_bytes);
            if left > sent {
                delays.push(wait.as_secs_f64());
            }
            sent = left;
        }
        delays
    }

    #[test]
    fn delays_of_slow_and_fast_links_are_the_length_over_the_rate() {
        for (rate_bps, queue_bytes) in [(1e6, 600_000.0), (3e5, 3_000.0), (1e8, 1e6)] {
            let expected_s = queue_bytes * 8.0 / rate_bps;
            // The first packets found a shorter queue.
            let first = (expected_s * rate_bps / 12_000.0) as usize + 2;
            let delays = delays_s(rate_bps, queue_bytes, 2_000);
            let known = &delays[first.min(delays.len() / 2)..];
            let mean_s = known.iter().sum::<f64>() / known.len() as f64;
            assert!((mean_s / expected_s - 1.0).abs() < 0.01, "{mean_s} of {expected_s} s");
            assert!(known.iter().all(|delay| (delay / expected_s - 1.0).abs() < 0.1), "{known:?}");
        }
    }

    #[test]
    fn packets_that_find_no_queue_do_not_wait() {
        let mut departures = Departures::default();
        assert_eq!(departures.wait(at(1_000), 1_500, 0.0), Span::ZERO);
        assert_eq!(departures.wait(at(1_010), 3_000, 0.0), Span::ZERO);
    }

    /// A link that sends 1,500 bytes in 10 ms stops for half a second with 15,000 bytes in its queue.
    /// Each byte of the queue waits for half a second more.
    #[test]
    fn a_pause_of_the_link_counts_for_all_packets_in_the_queue() {
        let mut departures = Departures::default();
        let mut waits_ms = Vec::new();
        for step in 1..=100_u64 {
            let served = if step <= 30 { step } else { step.saturating_sub(50).max(30) };
            let came = (step + 10).min(40).max(served + if step > 80 { 10 } else { 0 });
            let wait = departures.wait(
                at(step * SAMPLED_MS),
                served * 1_500,
                (came - served) as f64 * 1_500.0,
            );
            waits_ms.push(wait.as_ns() / 1_000_000);
        }
        assert_eq!(waits_ms[20..30], [100; 10]);
        assert_eq!(waits_ms[80..90], [600; 10]);
    }
}
