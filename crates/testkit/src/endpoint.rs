//! The traits that a protocol stack implements.

use std::net::{IpAddr, SocketAddr};
use std::ops::{Deref, DerefMut};

use etherparse::{
    IpEcn, IpNumber, Ipv4Header, Ipv6Header, NetSlice, SlicedPacket, TransportSlice, UdpHeader,
};
use jostle_qlog::SenderState;
use jostle_units::{Ecn, Time};

const TIME_TO_LIVE: u8 = 64;

/// A host that sends and receives complete IP packets, such as a TCP.
///
/// After each call of [`handle`](Self::handle) and [`on_deadline`](Self::on_deadline), and after a
/// test has changed it, the host is polled until it has nothing to send.
pub trait Host {
    /// Handles an IP packet that arrived. A link that corrupts packets flips one bit: the stack's
    /// checksum must detect it.
    fn handle(&mut self, now: Time, packet: &[u8]);

    /// Appends the next IP packet to send to `packet`, which is empty. Returns false if there is
    /// none.
    fn poll_transmit(&mut self, now: Time, packet: &mut Vec<u8>) -> bool;

    /// Returns the time of the next timer. A time that has passed means "now".
    fn deadline(&mut self) -> Option<Time>;

    /// Handles the timers that expire at `now`. A host that does so in
    /// [`poll_transmit`](Self::poll_transmit) needs no implementation.
    fn on_deadline(&mut self, now: Time) {
        let _ = now;
    }

    /// Returns whether packets to this address are for this host.
    fn has_address(&self, address: IpAddr) -> bool;

    /// Returns whether the network drops corrupted packets on arrival, because the host does not
    /// verify the checksum.
    fn drops_corrupted(&self) -> bool {
        false
    }

    /// Returns what the congestion control of a sender has at present, for
    /// [`Simulation::qlog`](crate::Simulation::qlog).
    fn sender_state(&mut self) -> Option<SenderState> {
        None
    }
}

impl<H: Host + ?Sized> Host for Box<H> {
    fn handle(&mut self, now: Time, packet: &[u8]) {
        (**self).handle(now, packet);
    }

    fn poll_transmit(&mut self, now: Time, packet: &mut Vec<u8>) -> bool {
        (**self).poll_transmit(now, packet)
    }

    fn deadline(&mut self) -> Option<Time> {
        (**self).deadline()
    }

    fn on_deadline(&mut self, now: Time) {
        (**self).on_deadline(now);
    }

    fn has_address(&self, address: IpAddr) -> bool {
        (**self).has_address(address)
    }

    fn drops_corrupted(&self) -> bool {
        (**self).drops_corrupted()
    }

    fn sender_state(&mut self) -> Option<SenderState> {
        (**self).sender_state()
    }
}

/// A protocol stack above UDP, such as QUIC.
pub trait Endpoint {
    /// Handles a datagram that arrived.
    fn handle(&mut self, now: Time, datagram: &Datagram<'_>);

    /// Appends the payload of the next datagram to `payload`, which is empty, and returns where to
    /// send it. Returns `None` if there is nothing to send.
    fn poll_transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Transmit>;

    /// Returns the time of the next timer. A time that has passed means "now".
    fn deadline(&mut self) -> Option<Time>;

    /// Handles the timers that expire at `now`. An endpoint that does so in
    /// [`poll_transmit`](Self::poll_transmit) needs no implementation.
    fn on_deadline(&mut self, now: Time) {
        let _ = now;
    }

    /// Returns what the congestion control of a sender has at present, for
    /// [`Simulation::qlog`](crate::Simulation::qlog).
    fn sender_state(&mut self) -> Option<SenderState> {
        None
    }
}

/// A datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Address and port of the sender.
    pub source: SocketAddr,
    /// Address and port to which it was sent.
    pub destination: SocketAddr,
    /// ECN field of the IP header, with the mark of a queue.
    pub ecn: Ecn,
    /// UDP payload.
    pub payload: &'a [u8],
}

/// A datagram to send, or several of equal size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Address and port of the receiver.
    pub destination: SocketAddr,
    /// Address and port of the sender; by default the [`UdpHost`]'s.
    pub source: Option<SocketAddr>,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// The payload is divided into datagrams of this size; the last may be shorter (generic
    /// segmentation offload). `None`: it is one datagram.
    pub segment_bytes: Option<usize>,
}

impl Transmit {
    /// Returns a single datagram to `destination`, without ECN.
    pub const fn to(destination: SocketAddr) -> Self {
        Self { destination, source: None, ecn: Ecn::NotCapable, segment_bytes: None }
    }
}

/// An [`Endpoint`] with an address: builds and parses UDP and IP headers, with checksums.
///
/// It dereferences to the endpoint.
#[derive(Debug)]
pub struct UdpHost<E> {
    /// The endpoint.
    pub endpoint: E,
    /// Address and port. A test can change them, as a NAT would.
    pub address: SocketAddr,
    /// Segments of the last transmission that are still to be sent.
    payload: Vec<u8>,
    sent_bytes: usize,
    transmit: Option<Transmit>,
}

impl<E> UdpHost<E> {
    /// Creates a host with one endpoint.
    pub const fn new(address: SocketAddr, endpoint: E) -> Self {
        Self { endpoint, address, payload: Vec::new(), sent_bytes: 0, transmit: None }
    }
}

impl<E> Deref for UdpHost<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.endpoint
    }
}

impl<E> DerefMut for UdpHost<E> {
    fn deref_mut(&mut self) -> &mut E {
        &mut self.endpoint
    }
}

impl<E: Endpoint> Host for UdpHost<E> {
    fn handle(&mut self, now: Time, packet: &[u8]) {
        let Some(datagram) = parse(packet) else { return };
        if datagram.destination == self.address {
            self.endpoint.handle(now, &datagram);
        }
    }

    fn poll_transmit(&mut self, now: Time, packet: &mut Vec<u8>) -> bool {
        let transmit = match self.transmit {
            Some(transmit) => transmit,
            None => {
                self.payload.clear();
                self.sent_bytes = 0;
                let Some(transmit) = self.endpoint.poll_transmit(now, &mut self.payload) else {
                    return false;
                };
                transmit
            }
        };
        let left = &self.payload[self.sent_bytes..];
        let segment_bytes = transmit.segment_bytes.unwrap_or(usize::MAX).max(1);
        let segment = &left[..left.len().min(segment_bytes)];
        let source = transmit.source.unwrap_or(self.address);
        build(source, transmit.destination, transmit.ecn, segment, packet);
        self.sent_bytes += segment.len();
        self.transmit = (self.sent_bytes < self.payload.len()).then_some(transmit);
        true
    }

    fn deadline(&mut self) -> Option<Time> {
        self.endpoint.deadline()
    }

    fn on_deadline(&mut self, now: Time) {
        self.endpoint.on_deadline(now);
    }

    fn has_address(&self, address: IpAddr) -> bool {
        self.address.ip() == address
    }

    fn drops_corrupted(&self) -> bool {
        true
    }

    fn sender_state(&mut self) -> Option<SenderState> {
        self.endpoint.sender_state()
    }
}

/// Returns the UDP datagram in an IP packet. `None` if it is another packet, or a fragment.
pub(crate) fn parse(packet: &[u8]) -> Option<Datagram<'_>> {
    let packet = SlicedPacket::from_ip(packet).ok()?;
    let (source, destination, ecn) = match packet.net? {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into(), header.ecn().value())
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header();
            let (source, destination) = (header.source_addr(), header.destination_addr());
            (source.into(), destination.into(), header.traffic_class())
        }
        NetSlice::Arp(_) => return None,
    };
    let TransportSlice::Udp(udp) = packet.transport? else { return None };
    let (source, destination): (IpAddr, IpAddr) = (source, destination);
    Some(Datagram {
        source: SocketAddr::new(source, udp.source_port()),
        destination: SocketAddr::new(destination, udp.destination_port()),
        ecn: Ecn::from_bits(ecn),
        payload: udp.payload(),
    })
}

/// Appends an IP packet with a UDP datagram.
///
/// # Panics
/// If the addresses are of different families, or the payload does not fit into an IP packet: both
/// are errors of the endpoint.
fn build(source: SocketAddr, destination: SocketAddr, ecn: Ecn, payload: &[u8], to: &mut Vec<u8>) {
    let udp_bytes = UdpHeader::LEN + payload.len();
    let Some(length) = u16::try_from(udp_bytes + Ipv4Header::MIN_LEN).ok() else {
        panic!("a datagram of {} bytes to {destination} does not fit into a packet", payload.len());
    };
    let mut udp = UdpHeader {
        source_port: source.port(),
        destination_port: destination.port(),
        length: udp_bytes as u16,
        checksum: 0,
    };
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut ip = Ipv4Header {
                ecn: IpEcn::try_new(ecn.bits()).unwrap_or_default(),
                total_len: length,
                dont_fragment: true,
                time_to_live: TIME_TO_LIVE,
                protocol: IpNumber::UDP,
                source: source.octets(),
                destination: destination.octets(),
                ..Ipv4Header::default()
            };
            ip.header_checksum = ip.calc_header_checksum();
            udp.checksum = udp.calc_checksum_ipv4(&ip, payload).unwrap_or(0);
            to.extend_from_slice(&ip.to_bytes());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ip = Ipv6Header {
                traffic_class: ecn.bits(),
                payload_length: udp.length,
                next_header: IpNumber::UDP,
                hop_limit: TIME_TO_LIVE,
                source: source.octets(),
                destination: destination.octets(),
                ..Ipv6Header::default()
            };
            udp.checksum = udp.calc_checksum_ipv6(&ip, payload).unwrap_or(0);
            to.extend_from_slice(&ip.to_bytes());
        }
        _ => panic!("a datagram from {source} to {destination}: different address families"),
    }
    to.extend_from_slice(&udp.to_bytes());
    to.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(source: &str, destination: &str, ecn: Ecn) -> Vec<u8> {
        let mut packet = Vec::new();
        let address = |text: &str| text.parse().unwrap();
        build(address(source), address(destination), ecn, b"payload", &mut packet);
        packet
    }

    #[test]
    fn what_is_built_is_parsed() {
        for (source, destination) in [("10.0.0.1:7", "10.0.1.1:9"), ("[fd00::1]:7", "[fd00::2]:9")]
        {
            for ecn in [Ecn::NotCapable, Ecn::Capable, Ecn::L4s, Ecn::Marked] {
                let packet = packet(source, destination, ecn);
                let datagram = parse(&packet).unwrap();
                assert_eq!(datagram.source, source.parse().unwrap());
                assert_eq!(datagram.destination, destination.parse().unwrap());
                assert_eq!((datagram.ecn, datagram.payload), (ecn, &b"payload"[..]));
            }
        }
    }

    #[test]
    fn checksums_are_right() {
        let bytes = packet("10.0.0.1:7", "10.0.1.1:9", Ecn::Capable);
        let sum = |bytes: &[u8]| {
            let pair =
                |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            bytes.chunks(2).map(pair).sum::<u32>()
        };
        let folded = |sum: u32| (sum & 0xffff) + (sum >> 16);
        assert_eq!(folded(sum(&bytes[..20])), 0xffff);
        // Pseudo-header (RFC 768): addresses, protocol and length.
        let udp = &bytes[20..];
        assert_eq!(folded(sum(&bytes[12..20]) + 17 + udp.len() as u32 + sum(udp)), 0xffff);
    }

    #[test]
    fn what_is_no_datagram_is_ignored() {
        assert_eq!(parse(&[]), None);
        let mut fragment = packet("10.0.0.1:7", "10.0.1.1:9", Ecn::Capable);
        fragment[7] = 1;
        assert_eq!(parse(&fragment), None);
    }
}
