//! Capture of the IP packets of one host.

use std::io::{self, Write};
use std::net::IpAddr;

use etherparse::ether_type;
use jostle_units::{LINK_HEADER_BYTES, MAX_MTU_BYTES, Time};

use crate::PROGRAM;
use crate::frame_builder::{RECEIVER_MAC, SENDER_MAC};
use crate::pcapng_writer::{Interface, Pcapng, Section};

/// A pcapng file with complete IP packets that others built, as `tcpdump` would see them on a host.
/// The Ethernet header is added: links count it.
pub struct HostCapture<W: Write> {
    file: Pcapng<W>,
    packets: u64,
    /// Reusable buffer for the current frame.
    frame: Vec<u8>,
}

impl<W: Write> HostCapture<W> {
    /// Begins the capture of the host `name` with this address.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn begin(out: W, name: &str, address: IpAddr, comment: &str) -> io::Result<Self> {
        let section = Section { comment, system: PROGRAM, program: PROGRAM };
        let snap_bytes = MAX_MTU_BYTES + LINK_HEADER_BYTES;
        let file = Pcapng::begin(out, &section, &Interface { name, address, snap_bytes })?;
        Ok(Self { file, packets: 0, frame: Vec::new() })
    }

    /// Adds an IP packet that the host sent or received.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn packet(&mut self, now: Time, ip_packet: &[u8], is_sent: bool) -> io::Result<()> {
        let is_ipv6 = ip_packet.first().is_some_and(|byte| byte >> 4 == 6);
        let kind = if is_ipv6 { ether_type::IPV6 } else { ether_type::IPV4 };
        let (from, to) =
            if is_sent { (SENDER_MAC, RECEIVER_MAC) } else { (RECEIVER_MAC, SENDER_MAC) };
        self.frame.clear();
        self.frame.extend_from_slice(&to);
        self.frame.extend_from_slice(&from);
        self.frame.extend_from_slice(&kind.0.to_be_bytes());
        self.frame.extend_from_slice(ip_packet);
        self.packets += 1;
        self.file.packet(now.as_ns(), &self.frame, self.frame.len() as u32)
    }

    /// Adds TLS secrets, lines in the format of `SSLKEYLOGFILE`, which decrypt later packets.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn secrets(&mut self, lines: &str) -> io::Result<()> {
        self.file.secrets(lines)
    }

    /// Ends the file at `now`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self, now: Time) -> io::Result<()> {
        self.file.finish(now.as_ns(), self.packets, 0)
    }
}
