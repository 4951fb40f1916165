//! What an end says of itself at fixed times: a line of JSON each, which
//! `jostle.backends.kernel.quic_samples` reads.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use jostle_control::Observer;
use jostle_units::Time;
use serde::Serialize;

use crate::HostError;

/// Moments at which samples are due, and the file that they go to.
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

    /// When the next one is due; [`Time::NEVER`] when all are taken.
    pub(crate) fn next(&self) -> Time {
        self.moments_ns.get(self.taken).map_or(Time::NEVER, |ns| Time::from_ns(*ns))
    }

    /// All are taken: the run is over.
    pub(crate) fn is_over(&self) -> bool {
        self.taken == self.moments_ns.len()
    }

    /// Writes a sample for each moment that has come.
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

/// What a sender has counted and how it stands. Times are in ns; what is not there is null.
#[derive(Debug, Serialize)]
pub(crate) struct SenderSample {
    /// The handshake is over.
    pub connected: bool,
    /// ACKs that gave an RTT sample.
    pub rtt_samples: u64,
    /// Sum of these samples.
    pub rtt_sum_ns: u64,
    pub rtt_min_ns: Option<u64>,
    pub srtt_ns: Option<u64>,
    pub cwnd_bytes: u64,
    pub ssthresh_bytes: Option<u64>,
    pub in_flight_bytes: u64,
    pub pacing_rate_bps: Option<u64>,
    pub mode: &'static str,
    pub sent_packets: u64,
    /// On the wire.
    pub sent_bytes: u64,
    /// Of these packets, those that carry data sent before.
    pub repeated_packets: u64,
    /// When each response was asked for since the sample before, in ns of the run.
    pub asked_ns: Vec<u64>,
    /// What the controller shows.
    pub internals: Internals,
}

/// What a receiver has counted.
#[derive(Debug, Serialize)]
pub(crate) struct ReceiverSample {
    /// On the wire.
    pub received_bytes: u64,
    pub delivered_bytes: u64,
    /// When each response was whole since the sample before, in ns of the run.
    pub whole_ns: Vec<u64>,
}

/// Quantities of a controller, in its order.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Internals(Vec<(&'static str, f64)>);

impl Observer for Internals {
    fn value(&mut self, name: &'static str, value: f64) {
        self.0.push((name, value));
    }
}
