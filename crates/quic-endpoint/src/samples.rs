//! Samples of an endpoint's state at fixed times, one JSON object per line.
//! `jostle.backends.kernel.quic_samples` reads them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use jostle_congestion::StateObserver;
use jostle_units::Time;
use serde::Serialize;

use crate::HostError;

/// Sample times and output file.
pub(crate) struct Samples {
    file: BufWriter<File>,
    moments_ns: Vec<u64>,
    taken: usize,
}

impl Samples {
    pub(crate) fn create(path: &Path, moments_ns: &[u64]) -> Result<Self, HostError> {
        let file = File::create_new(path).map_err(HostError::system("cannot write samples"))?;
        Ok(Self { file: BufWriter::new(file), moments_ns: moments_ns.to_vec(), taken: 0 })
    }

    /// Returns the time of the next sample, or [`Time::NEVER`] after the last.
    pub(crate) fn next(&self) -> Time {
        self.moments_ns.get(self.taken).map_or(Time::NEVER, |ns| Time::from_ns(*ns))
    }

    /// Returns whether all samples are taken and the run is over.
    pub(crate) fn is_over(&self) -> bool {
        self.taken == self.moments_ns.len()
    }

    /// Writes a sample for each sample time that has passed.
    pub(crate) fn take<S: Serialize>(
        &mut self,
        now: Time,
        mut sample: impl FnMut() -> S,
    ) -> Result<(), HostError> {
        while self.next() <= now {
            let written = serde_json::to_writer(&mut self.file, &sample()).map_err(Into::into);
            let written = written.and_then(|()| self.file.write_all(b"\n"));
            written.map_err(HostError::system("cannot write samples"))?;
            self.taken += 1;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<(), HostError> {
        let synced = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        synced.map_err(HostError::system("cannot write samples"))
    }
}

/// Sample of a sender: counters and state. Times are in ns; a missing value is null.
#[derive(Debug, Serialize)]
pub(crate) struct SenderSample {
    /// Whether the handshake is complete.
    pub connected: bool,
    /// ACKs that gave an RTT sample.
    pub rtt_samples: u64,
    /// Sum of the RTT samples.
    pub rtt_sum_ns: u64,
    pub rtt_min_ns: Option<u64>,
    pub srtt_ns: Option<u64>,
    pub cwnd_bytes: u64,
    pub ssthresh_bytes: Option<u64>,
    pub in_flight_bytes: u64,
    pub pacing_rate_bps: Option<u64>,
    pub mode: &'static str,
    pub sent_packets: u64,
    /// Bytes on the wire.
    pub sent_bytes: u64,
    /// Packets that carry retransmitted data.
    pub repeated_packets: u64,
    /// Request time, in ns of the run, and size of each message since the previous sample.
    pub requested: Vec<(u64, u64)>,
    /// Internal values of the controller.
    pub internals: Internals,
}

/// Sample of a receiver: counters.
#[derive(Debug, Serialize)]
pub(crate) struct ReceiverSample {
    /// Bytes on the wire.
    pub received_bytes: u64,
    pub delivered_bytes: u64,
    /// Completion times of messages since the previous sample, in ns of the run.
    pub whole_ns: Vec<u64>,
}

/// Internal values of a controller, in its order.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Internals(Vec<(&'static str, f64)>);

impl StateObserver for Internals {
    fn record_value(&mut self, name: &'static str, value: f64) {
        self.0.push((name, value));
    }
}
