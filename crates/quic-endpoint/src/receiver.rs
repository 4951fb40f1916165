//! Receiving endpoint, which accepts the connection.

use jostle_run_spec::{FlowSpec, Sizes, SourceSpec};
use jostle_units::Time;

use crate::event_loop::SocketEndpoint;
use crate::monotonic_clock::Clock;
use crate::output_files::OutputFiles;
use crate::samples::{ReceiverSample, Samples};
use crate::socket::Socket;
use crate::{HostError, Job};

pub(crate) fn run(job: &Job, flow: &FlowSpec) -> Result<(), HostError> {
    let ends = jostle_sim::quic_ends(flow, &job.spec)?;
    let clock = Clock::new(job.start_ns);
    let mut wired = SocketEndpoint::waiting(ends.server, clock, Socket::bind(job.local)?);
    let mut samples = Samples::create(&job.samples, &job.moments_ns)?;
    let mut taken = ReceivedData::new(MessageSizes::of(flow, job.spec.seed));
    let mut notes = OutputFiles::beside(&job.samples);
    while !samples.is_over() {
        let now = wired.turn(samples.next(), &mut ())?;
        taken.add(now, wired.end.take_delivered());
        wired.flush(now, |_| ())?;
        notes.take(&mut wired.end)?;
        samples.take(now, || ReceiverSample {
            received_bytes: wired.received_bytes,
            delivered_bytes: taken.bytes,
            whole_ns: std::mem::take(&mut taken.whole_ns),
        })?;
    }
    notes.finish(&mut wired.end)?;
    samples.finish()
}

/// Sizes of successive messages.
enum MessageSizes {
    /// Randomly sized responses.
    Drawn(Sizes),
    /// Frames on a schedule, and the number of sizes returned so far.
    Timed(Box<SourceSpec>, u64),
}

impl MessageSizes {
    fn of(flow: &FlowSpec, seed: u64) -> Option<Self> {
        match &flow.source {
            SourceSpec::RequestResponse { bytes, .. } => {
                Some(Self::Drawn(Sizes::new(bytes, seed, &flow.name)))
            }
            timed if timed.is_timed() => Some(Self::Timed(Box::new(timed.clone()), 0)),
            _ => None,
        }
    }

    fn next(&mut self) -> Option<u64> {
        match self {
            Self::Drawn(sizes) => Some(sizes.draw()),
            Self::Timed(source, number) => {
                let write = source.write(*number)?;
                *number += 1;
                Some(write.bytes)
            }
        }
    }
}

/// Data received by the application.
struct ReceivedData {
    bytes: u64,
    /// Message sizes, if there are any, and the end of the next message.
    messages: Option<(MessageSizes, u64)>,
    whole_ns: Vec<u64>,
}

impl ReceivedData {
    fn new(sizes: Option<MessageSizes>) -> Self {
        let messages = sizes.and_then(|mut sizes| {
            let first_bytes = sizes.next()?;
            Some((sizes, first_bytes))
        });
        Self { bytes: 0, messages, whole_ns: Vec::new() }
    }

    fn add(&mut self, now: Time, bytes: u64) {
        self.bytes += bytes;
        while let Some((sizes, end_bytes)) = &mut self.messages {
            if self.bytes < *end_bytes {
                break;
            }
            self.whole_ns.push(now.as_ns());
            match sizes.next() {
                Some(next_bytes) => *end_bytes += next_bytes,
                None => self.messages = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_whole_with_its_last_byte() {
        let mut taken =
            ReceivedData::new(Some(MessageSizes::Drawn(Sizes::new(&100.into(), 1, "web"))));
        taken.add(Time::from_ns(5), 99);
        assert!(taken.whole_ns.is_empty());
        taken.add(Time::from_ns(6), 101);
        assert_eq!(taken.whole_ns, [6, 6]);
        assert_eq!(taken.bytes, 200);
    }
}
