//! Receiving endpoint, which accepts the connection.

use jostle_quic::QuicEndpoint;
use jostle_run_spec::{FlowRandomStreams, FlowSpec};
use jostle_sim::QuicEndpoints;
use jostle_traffic::{MessageSizes, Reader};
use jostle_units::Time;

use crate::event_loop::SocketEndpoint;
use crate::monotonic_clock::Clock;
use crate::output_files::OutputFiles;
use crate::samples::{ReceiverSample, Samples};
use crate::socket::Socket;
use crate::{HostError, Job};

pub(crate) fn run(job: &Job, flow: &FlowSpec, ends: QuicEndpoints) -> Result<(), HostError> {
    let clock = Clock::new(job.start_ns);
    let mut wired = SocketEndpoint::waiting(ends.server, clock, Socket::bind(job.local)?);
    let mut samples = Samples::create(&job.samples, &job.moments_ns)?;
    let streams = FlowRandomStreams::of(job.spec.seed, &flow.name);
    let mut taken = ReceivedData::new(MessageSizes::of(&flow.source, streams));
    let mut reader = flow.reader.as_ref().map(Reader::new);
    let mut next_read = Time::NEVER;
    let mut notes = OutputFiles::beside(&job.samples);
    while !samples.is_over() {
        let now = wired.turn(samples.next().min(next_read), &mut ())?;
        let arrived_bytes = wired.end.take_delivered();
        taken.bytes += arrived_bytes;
        match &mut reader {
            None => taken.read(now, arrived_bytes),
            Some(reader) => {
                next_read = read_due(now, reader, &mut wired.end, |bytes| taken.read(now, bytes));
            }
        }
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

/// Lets a slow application read the data that are due, and returns the time of its next read.
fn read_due(
    now: Time,
    reader: &mut Reader,
    end: &mut QuicEndpoint,
    mut on_read: impl FnMut(u64),
) -> Time {
    while end.unread_bytes() > 0 {
        let at = reader.next_read(now);
        if at > now {
            return at;
        }
        let bytes = end.unread_bytes().min(reader.read_bytes());
        reader.on_read(now, bytes);
        end.read(bytes);
        on_read(bytes);
    }
    Time::NEVER
}

/// Data received by the endpoint and its application.
struct ReceivedData {
    /// Bytes that arrived in order.
    bytes: u64,
    /// Bytes that the application has read.
    read_bytes: u64,
    sizes: MessageSizes,
    /// End of the next message, if there is one.
    message_end: Option<u64>,
    whole_ns: Vec<u64>,
}

impl ReceivedData {
    fn new(mut sizes: MessageSizes) -> Self {
        let message_end = sizes.next();
        Self { bytes: 0, read_bytes: 0, sizes, message_end, whole_ns: Vec::new() }
    }

    fn read(&mut self, now: Time, bytes: u64) {
        self.read_bytes += bytes;
        while let Some(end_bytes) = self.message_end.filter(|end| *end <= self.read_bytes) {
            self.whole_ns.push(now.as_ns());
            self.message_end = self.sizes.next().map(|next_bytes| end_bytes + next_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use jostle_run_spec::SourceSpec;

    use super::*;

    #[test]
    fn a_response_is_whole_with_its_last_byte() {
        let source = SourceSpec::RequestResponse {
            bytes: 100.into(),
            think_ns: 0.into(),
            count: Some(3.into()),
        };
        let streams = FlowRandomStreams::of(1, "web");
        let mut taken = ReceivedData::new(MessageSizes::of(&source, streams));
        taken.read(Time::from_ns(5), 99);
        assert!(taken.whole_ns.is_empty());
        taken.read(Time::from_ns(6), 101);
        assert_eq!(taken.whole_ns, [6, 6]);
        assert_eq!(taken.read_bytes, 200);
        taken.read(Time::from_ns(7), 150);
        assert_eq!(taken.whole_ns, [6, 6, 7]);
    }
}
