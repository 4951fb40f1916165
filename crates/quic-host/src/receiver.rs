//! The end that waits for the connection and takes the data.

use jostle_record::{FlowSpec, Sizes, SourceSpec};
use jostle_units::Time;

use crate::clock::Clock;
use crate::end::Wired;
use crate::samples::{ReceiverSample, Samples};
use crate::socket::Socket;
use crate::{HostError, Job};

pub(crate) fn run(job: &Job, flow: &FlowSpec) -> Result<(), HostError> {
    let ends = jostle_sim::quic_ends(flow, &job.spec)?;
    let clock = Clock::new(job.start_ns);
    let mut wired = Wired::waiting(ends.server, clock, Socket::bind(job.local)?);
    let mut samples = Samples::create(&job.samples, &job.moments_ns)?;
    let mut taken = Taken::new(match &flow.source {
        SourceSpec::RequestResponse { bytes, .. } => {
            Some(Sizes::new(bytes, job.spec.seed, &flow.name))
        }
        _ => None,
    });
    while !samples.is_over() {
        let now = wired.turn(samples.next(), &mut ())?;
        taken.add(now, wired.end.take_delivered());
        wired.flush(now, |_| ())?;
        samples.take(now, || ReceiverSample {
            received_bytes: wired.received_bytes,
            delivered_bytes: taken.bytes,
            whole_ns: std::mem::take(&mut taken.whole_ns),
        })?;
    }
    samples.finish()
}

/// What the application has got.
struct Taken {
    bytes: u64,
    /// Sizes of responses, if it asks for any, and the end of the one that it waits for.
    responses: Option<(Sizes, u64)>,
    whole_ns: Vec<u64>,
}

impl Taken {
    fn new(sizes: Option<Sizes>) -> Self {
        let responses = sizes.map(|mut sizes| {
            let first_bytes = sizes.draw();
            (sizes, first_bytes)
        });
        Self { bytes: 0, responses, whole_ns: Vec::new() }
    }

    fn add(&mut self, now: Time, bytes: u64) {
        self.bytes += bytes;
        let Some((sizes, end_bytes)) = &mut self.responses else { return };
        while self.bytes >= *end_bytes {
            *end_bytes += sizes.draw();
            self.whole_ns.push(now.as_ns());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_whole_with_its_last_byte() {
        let mut taken = Taken::new(Some(Sizes::new(&100.into(), 1, "web")));
        taken.add(Time::from_ns(5), 99);
        assert!(taken.whole_ns.is_empty());
        taken.add(Time::from_ns(6), 101);
        assert_eq!(taken.whole_ns, [6, 6]);
        assert_eq!(taken.bytes, 200);
    }
}
