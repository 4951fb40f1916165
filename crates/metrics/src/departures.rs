//! Queueing delay from samples of a queue's length and of the bytes that have left it.

use jostle_units::{Span, Time};

/// Bytes from which the rate of a queue is known well enough: ten packets. Fewer may leave between
/// two samples, where their number is 0 or 1 on a link with a packet in 12 ms.
const RATE_BYTES: u64 = 15_000;

/// Departures from a queue: totals of bytes at some times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Departures {
    /// Two times with at least [`RATE_BYTES`] between them.
    older: (Time, u64),
    newer: (Time, u64),
    /// The last sample.
    last: (Time, u64),
}

impl Departures {
    /// Returns how long packets wait in a queue of `queue_bytes` at its present rate. `sent_bytes`
    /// have left it by now.
    pub fn wait(&mut self, now: Time, sent_bytes: u64, queue_bytes: f64) -> Span {
        let here = (now, sent_bytes);
        let many = sent_bytes - self.last.1 >= RATE_BYTES;
        let since = if many { self.last } else { self.older };
        self.last = here;
        if queue_bytes == 0.0 {
            (self.older, self.newer) = (here, here);
            return Span::ZERO;
        }
        if sent_bytes - self.newer.1 >= RATE_BYTES {
            (self.older, self.newer) = (if many { here } else { self.newer }, here);
        }
        let span_ns = now.since(since.0).as_ns() as f64;
        Span::from_ns((queue_bytes / (sent_bytes - since.1).max(1) as f64 * span_ns) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the delays in seconds of packets of 1,500 bytes that leave at `rate_bps`, with
    /// samples every 10 ms.
    fn delays_s(rate_bps: f64, queue_bytes: f64, samples: u64) -> Vec<f64> {
        let mut departures = Departures::default();
        let mut sent = 0;
        let mut delays = Vec::new();
        for step in 1..=samples {
            let left = (rate_bps * step as f64 * 0.01 / 8.0 / 1_500.0) as u64 * 1_500;
            let wait = departures.wait(Time::from_ns(step * 10_000_000), left, queue_bytes);
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
            let (delays, expected_s) =
                (delays_s(rate_bps, queue_bytes, 2_000), queue_bytes * 8.0 / rate_bps);
            let mean_s = delays.iter().sum::<f64>() / delays.len() as f64;
            // Samples lag behind departures.
            assert!((mean_s / expected_s - 1.0).abs() < 0.05, "{mean_s} of {expected_s} s");
            let known = &delays[20..];
            assert!(known.iter().all(|delay| (delay / expected_s - 1.0).abs() < 0.1), "{known:?}");
        }
    }

    #[test]
    fn times_with_an_empty_queue_do_not_count() {
        let mut departures = Departures::default();
        let at = |ms: u64| Time::from_ns(ms * 1_000_000);
        assert_eq!(departures.wait(at(1_000), 1_500, 0.0), Span::ZERO);
        assert_eq!(departures.wait(at(1_010), 3_000, 3_000.0), Span::from_ms(20));
    }
}
