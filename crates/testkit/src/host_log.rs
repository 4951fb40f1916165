//! Log of the QUIC packets of one host, and of its congestion control.

use std::io::{self, Write};

use jostle_qlog::{Log, SenderState};
use jostle_units::Time;

use crate::endpoint::parse;
use crate::quic_packets::QuicPackets;

/// A qlog file. Each event is written at once, so that the file of a test that panics is complete.
pub(crate) struct HostLog {
    log: Log,
    out: Box<dyn Write>,
}

impl HostLog {
    pub fn begin(title: &str, is_client: bool, out: Box<dyn Write>) -> io::Result<Self> {
        let name = if is_client { "client" } else { "server" };
        let mut this = Self { log: Log::new(title, name, is_client), out };
        this.write()?;
        Ok(this)
    }

    /// Adds an IP packet that the host sent or received, if it contains a datagram.
    pub fn packet(&mut self, now: Time, packet: &[u8], is_sent: bool) -> io::Result<()> {
        let Some(datagram) = parse(packet) else { return Ok(()) };
        self.log.at(now);
        for (kind, bytes) in QuicPackets::new(datagram.payload) {
            let name = if is_sent { "transport:packet_sent" } else { "transport:packet_received" };
            self.log.begin(name);
            self.log.member("header", format_args!(r#"{{"packet_type":"{kind}"}}"#));
            self.log.member("raw", format_args!(r#"{{"length":{bytes}}}"#));
            self.log.end();
        }
        self.write()
    }

    pub fn state(&mut self, now: Time, state: &SenderState) -> io::Result<()> {
        self.log.at(now);
        self.log.state(state, None);
        self.write()
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn write(&mut self) -> io::Result<()> {
        let text = self.log.text();
        let written = self.out.write_all(text.as_bytes());
        text.clear();
        written
    }
}
