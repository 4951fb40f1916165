//! The end that waits for the connection and takes the data.

use jostle_record::{FlowSpec, SourceSpec};
use jostle_units::Time;

use crate::clock::Clock;
use crate::end::Wired;
use crate::notes::Notes;
use crate::samples::{ReceiverSample, Samples};
use crate::socket::Socket;
use crate::{HostError, Job};

pub(crate) fn run(job: &Job, flow: &FlowSpec) -> Result<(), HostError> {
    let ends = jostle_sim::quic_ends(flow, &job.spec)?;
    let clock = Clock::new(job.start_ns);
    let mut wired = Wired::waiting(ends.server, clock, Socket::bind(job.local)?);
    let mut samples = Samples::create(&job.samples, &job.moments_ns)?;
    let mut taken = Taken::new(&flow.source);
    let mut notes = Notes::beside(&job.samples);
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

/// What the application has got.
struct Taken {
    bytes: u64,
    /// Size of a response, if it asks for any.
    response_bytes: Option<u64>,
    responses: u64,
    whole_ns: Vec<u64>,
}

impl Taken {
    fn new(source: &SourceSpec) -> Self {
        let response_bytes = match *source {
            SourceSpec::RequestResponse { bytes, .. } => Some(bytes),
            _ => None,
        };
        Self { bytes: 0, response_bytes, responses: 0, whole_ns: Vec::new() }
    }

    fn add(&mut self, now: Time, bytes: u64) {
        self.bytes += bytes;
        let Some(size_bytes) = self.response_bytes else { return };
        while self.bytes >= (self.responses + 1) * size_bytes {
            self.responses += 1;
            self.whole_ns.push(now.as_ns());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_whole_with_its_last_byte() {
        let source = SourceSpec::RequestResponse {
            bytes: 100,
            think_ns: 0,
            exponential: false,
            count: None,
        };
        let mut taken = Taken::new(&source);
        taken.add(Time::from_ns(5), 99);
        assert!(taken.whole_ns.is_empty());
        taken.add(Time::from_ns(6), 101);
        assert_eq!(taken.whole_ns, [6, 6]);
        assert_eq!(taken.bytes, 200);
    }
}
