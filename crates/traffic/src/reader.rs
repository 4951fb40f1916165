//! The application that reads a flow's data: when it reads, and how much at once.

use jostle_run_spec::{PauseSpec, ReaderSpec};
use jostle_units::{Rate, Span, Time};

/// An application that reads slowly. It reads what has arrived, but at most [`Reader::read_bytes`],
/// handles these data at its rate, and reads again.
#[derive(Clone, Debug)]
pub struct Reader {
    rate: Option<Rate>,
    read_bytes: u64,
    pauses: Vec<PauseSpec>,
    /// Time from which it can read again.
    ready: Time,
}

impl Reader {
    /// Creates the application of `spec`.
    pub fn new(spec: &ReaderSpec) -> Self {
        let ReaderSpec { rate_bps, read_bytes, ref pauses } = *spec;
        let pauses = pauses.clone();
        Self { rate: rate_bps.map(Rate::from_bps), read_bytes, pauses, ready: Time::ZERO }
    }

    /// Returns the maximum amount of data of one read.
    pub const fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Returns the time at which it reads data that are available at `now`.
    pub fn next_read(&self, now: Time) -> Time {
        let mut at = self.ready.max(now);
        // At most one pause repeats, so that a time between all of them is found.
        while let Some(end) = self.pauses.iter().find_map(|pause| end_of_pause(pause, at)) {
            at = end;
        }
        at
    }

    /// Handles a read of `bytes`.
    pub fn on_read(&mut self, now: Time, bytes: u64) {
        self.ready = now + self.rate.map_or(Span::ZERO, |rate| rate.time_for(bytes));
    }
}

/// Returns the end of the pause in which `now` is, if there is one.
const fn end_of_pause(pause: &PauseSpec, now: Time) -> Option<Time> {
    let Some(since_ns) = now.as_ns().checked_sub(pause.at_ns) else { return None };
    let paused_ns = match pause.every_ns {
        Some(every_ns) => since_ns % every_ns,
        None => since_ns,
    };
    if paused_ns >= pause.duration_ns {
        return None;
    }
    Some(Time::from_ns(now.as_ns() - paused_ns + pause.duration_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    fn reader(rate_bps: Option<u64>, pauses: &[(u64, u64, Option<u64>)]) -> Reader {
        let ns = |ms: u64| ms * 1_000_000;
        let pause = |&(at, duration, every): &(u64, u64, Option<u64>)| PauseSpec {
            at_ns: ns(at),
            duration_ns: ns(duration),
            every_ns: every.map(ns),
        };
        let pauses = pauses.iter().map(pause).collect();
        Reader::new(&ReaderSpec { rate_bps, read_bytes: 1_000, pauses })
    }

    #[test]
    fn it_reads_again_when_it_has_handled_the_data() {
        let mut reader = reader(Some(8_000_000), &[]);
        assert_eq!(reader.next_read(ms(5)), ms(5));
        reader.on_read(ms(5), 1_000);
        assert_eq!(reader.next_read(ms(5)), ms(6), "1,000 bytes at 1 MB/s");
        assert_eq!(reader.next_read(ms(9)), ms(9), "no data came in the meantime");
        reader.on_read(ms(9), 500);
        assert_eq!(reader.next_read(ms(9)), Time::from_ns(9_500_000));
    }

    #[test]
    fn a_reader_without_a_rate_reads_at_once() {
        let mut reader = reader(None, &[]);
        reader.on_read(ms(5), 1_000);
        assert_eq!(reader.next_read(ms(5)), ms(5));
    }

    #[test]
    fn it_does_not_read_in_pauses() {
        // Every second from 1 s on, 200 ms; and 2.1 s to 3.1 s, which touches two of them.
        let reader = reader(None, &[(1_000, 200, Some(1_000)), (2_100, 1_000, None)]);
        for (now, next) in [
            (999, 999),
            (1_000, 1_200),
            (1_199, 1_200),
            (1_200, 1_200),
            (2_000, 3_200),
            (7_100, 7_200),
        ] {
            assert_eq!(reader.next_read(ms(now)), ms(next), "at {now} ms");
        }
    }

    /// The data that it read last take longer than the pause.
    #[test]
    fn a_pause_stops_the_next_read_and_not_the_handling() {
        let mut reader = reader(Some(8_000), &[(100, 500, None)]);
        reader.on_read(ms(50), 500);
        assert_eq!(reader.next_read(ms(120)), ms(600));
        reader.on_read(ms(50), 1_000);
        assert_eq!(reader.next_read(ms(120)), ms(1_050));
    }
}
