//! Frames of QUIC datagrams, whose payload is simulated.

use etherparse::{IpNumber, UdpHeader};
use jostle_units::FlowId;

use super::{Addresses, SENDER_PORT, snap_bytes};
use jostle_metrics::{Datagram, EndpointRole};
use jostle_run_spec::FlowSpec;

/// Port of the server, as in the kernel backend.
const RECEIVER_PORT: u16 = 4433;

/// Builds the frames of one QUIC flow.
#[derive(Debug)]
pub(crate) struct DatagramFramer {
    addresses: Addresses,
    kept_max: usize,
    /// Reusable buffer for the current frame.
    frame: Vec<u8>,
}

impl DatagramFramer {
    pub fn new(position: FlowId, flow: &FlowSpec) -> Self {
        let kept_max = snap_bytes(flow) as usize;
        Self { addresses: Addresses::of(position, flow), kept_max, frame: Vec::new() }
    }

    /// Returns the captured part of a datagram, and its size on the wire.
    pub fn frame(&mut self, datagram: &Datagram<'_>) -> (&[u8], u32) {
        let &Datagram { from, ecn, payload } = datagram;
        let (source_port, destination_port) = match from {
            EndpointRole::Sender => (SENDER_PORT, RECEIVER_PORT),
            EndpointRole::Receiver => (RECEIVER_PORT, SENDER_PORT),
        };
        let length = UdpHeader::LEN as u16 + payload.len() as u16;
        let (ethernet, ip) = self.addresses.headers(from, IpNumber::UDP, ecn, length);
        let mut udp = UdpHeader { source_port, destination_port, length, checksum: 0 };
        // Fails only for payloads above 64 kB.
        udp.checksum =
            udp.calc_checksum_ipv4_raw(ip.source, ip.destination, payload).unwrap_or_default();
        self.frame.clear();
        self.frame.extend_from_slice(&ethernet.to_bytes());
        self.frame.extend_from_slice(&ip.to_bytes());
        self.frame.extend_from_slice(&udp.to_bytes());
        let size_bytes = (self.frame.len() + payload.len()) as u32;
        let room = self.kept_max.saturating_sub(self.frame.len());
        self.frame.extend_from_slice(&payload[..payload.len().min(room)]);
        (&self.frame, size_bytes)
    }
}
