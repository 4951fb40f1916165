//! Service of the links of a kernel run, from counters of packets and bytes.

use jostle_link::{Error, Service, ServiceRate};
use jostle_run_spec::RunSpec;
use jostle_units::Time;

/// Service rate of a link, and the packets that were counted at the last reading.
pub(crate) struct LinkService {
    rate: ServiceRate,
    as_of: Time,
    sent_packets: u64,
    sent_bytes: u64,
}

impl LinkService {
    /// Creates the services of the links of a run.
    ///
    /// # Errors
    /// If a capacity in the spec is invalid.
    pub(crate) fn all(spec: &RunSpec) -> Result<Vec<Self>, Error> {
        let service =
            |rate: ServiceRate| Self { rate, as_of: Time::ZERO, sent_packets: 0, sent_bytes: 0 };
        spec.links.iter().map(|link| link.service_rate(spec.seed).map(service)).collect()
    }

    /// Returns the service until `now`, when the link had sent these packets and bytes.
    pub(crate) fn until(&mut self, now: Time, sent_packets: u64, sent_bytes: u64) -> Service {
        let packets = sent_packets - self.sent_packets;
        let bytes = sent_bytes - self.sent_bytes;
        (self.sent_packets, self.sent_bytes) = (sent_packets, sent_bytes);
        // These packets determine the rate since the last reading.
        self.rate.count(self.as_of, packets, bytes as f64 / packets.max(1) as f64);
        self.as_of = now;
        self.rate.until(now)
    }
}
