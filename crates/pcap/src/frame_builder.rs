//! Frames of simulated packets: Ethernet, IPv4 and TCP or UDP headers like Linux writes them.

mod udp;

use std::collections::VecDeque;

use etherparse::{
    Ethernet2Header, IpDscp, IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement,
    TcpOptionWriteError, ether_type,
};
use jostle_link::Ecn;
use jostle_units::{FlowId, LINK_HEADER_BYTES, MAX_MTU_BYTES, mss_of};

use jostle_metrics::EndpointRole;
use jostle_metrics::{HeaderKind, SegmentHeader};
use jostle_run_spec::{FlowSpec, QuicCrypto, QuicSpec};

pub(super) use udp::DatagramFramer;

/// Snap length. Covers all headers (14 bytes of Ethernet, 20 of IPv4, at most 60 of TCP) and the
/// first frames of a QUIC datagram.
const SNAP_BYTES: u32 = 128;
/// Snap length of encrypted packets: decryption needs the authentication tag at the packet's end.
const ENCRYPTED_SNAP_BYTES: u32 = MAX_MTU_BYTES + LINK_HEADER_BYTES;

const SENDER_PORT: u16 = 40_000;
const RECEIVER_PORT: u16 = 5201;
pub(super) const SENDER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(super) const RECEIVER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// Default TTL of Linux.
const TIME_TO_LIVE: u8 = 64;

/// Difference of MTU and announced MSS: headers without the timestamp option (RFC 6691).
const FIXED_HEADER_BYTES: u32 = 20 + 20;
/// Receive window of the sender, Linux's default. No data is sent to it.
const SENDER_SYN_WINDOW: u16 = 64_240;
const SENDER_WINDOW: u16 = 502;
const SENDER_WINDOW_SCALE: u8 = 7;
const SCALE_MAX: u32 = 14;

/// Payloads are zeros, so a checksum depends only on their length.
static ZEROS: [u8; MAX_MTU_BYTES as usize] = [0; MAX_MTU_BYTES as usize];

/// `s.cep` of a new connection (RFC 9768 §3.2.1).
const ACE_INITIAL: u8 = 5;
/// Kind of the AccECN option that begins with ECT(0) bytes.
const ACCECN_OPTION: u8 = 172;
/// Number of recent short segments, far more than can be outstanding.
const SHORT_SEGMENTS_MAX: usize = 64;

/// Returns the address of one end of a flow. The kernel backend uses the same addresses.
pub(super) fn address(flow: FlowId, end: EndpointRole) -> [u8; 4] {
    let network = match end {
        EndpointRole::Sender => 1,
        EndpointRole::Receiver => 2,
    };
    [10, network, (flow.0 / 250) as u8, (flow.0 % 250 + 1) as u8]
}

/// Returns the snap length of a flow.
pub(super) fn snap_bytes(flow: &FlowSpec) -> u32 {
    let protected =
        |quic: &QuicSpec| quic.implementation.is_some() || quic.crypto == QuicCrypto::Tls;
    if flow.quic.as_ref().is_some_and(protected) { ENCRYPTED_SNAP_BYTES } else { SNAP_BYTES }
}

/// IP addresses of both ends of a flow, and the codepoint of its packets.
#[derive(Clone, Copy, Debug)]
struct Addresses {
    sender: [u8; 4],
    receiver: [u8; 4],
    dscp: IpDscp,
}

impl Addresses {
    fn of(position: FlowId, flow: &FlowSpec) -> Self {
        Self {
            sender: address(position, EndpointRole::Sender),
            receiver: address(position, EndpointRole::Receiver),
            dscp: IpDscp::try_new(flow.dscp.unwrap_or(0)).unwrap_or_default(),
        }
    }

    /// Returns the headers for `inner_bytes` of `protocol` sent by the end `from`.
    fn headers(
        &self,
        from: EndpointRole,
        protocol: IpNumber,
        ecn: Ecn,
        inner_bytes: u16,
    ) -> (Ethernet2Header, Ipv4Header) {
        let mut ends = [(SENDER_MAC, self.sender), (RECEIVER_MAC, self.receiver)];
        if from == EndpointRole::Receiver {
            ends.swap(0, 1);
        }
        let [(source_mac, source), (destination_mac, destination)] = ends;
        let mut ip = Ipv4Header {
            dscp: self.dscp,
            ecn: codepoint(ecn),
            total_len: 20 + inner_bytes,
            dont_fragment: true,
            time_to_live: TIME_TO_LIVE,
            protocol,
            source,
            destination,
            ..Ipv4Header::default()
        };
        ip.header_checksum = ip.calc_header_checksum();
        let ethernet = Ethernet2Header {
            source: source_mac,
            destination: destination_mac,
            ether_type: ether_type::IPV4,
        };
        (ethernet, ip)
    }
}

/// Maps segment numbers of the simulator to TCP sequence numbers.
#[derive(Debug)]
struct Numbering {
    /// Payload of a full-sized segment.
    mss_bytes: u32,
    /// Number of the first segment not yet sent.
    next: u32,
    /// Numbers of short segments, with the cumulative number of bytes by which they and all earlier
    /// ones are shorter than the MSS.
    short: VecDeque<(u32, u64)>,
    /// Cumulative number of such bytes before the first entry of `short`.
    lacking: u64,
}

impl Numbering {
    const fn new(mss_bytes: u32) -> Self {
        Self { mss_bytes, next: 0, short: VecDeque::new(), lacking: 0 }
    }

    /// Records that the sender sent segment `number`.
    fn note(&mut self, number: u32, payload_bytes: u16) {
        if number < self.next {
            return;
        }
        self.next = number + 1;
        let lacks = u64::from(self.mss_bytes) - u64::from(payload_bytes);
        if lacks > 0 {
            let before = self.short.back().map_or(self.lacking, |(_, lacking)| *lacking);
            self.short.push_back((number, before + lacks));
            if self.short.len() > SHORT_SEGMENTS_MAX
                && let Some((_, lacking)) = self.short.pop_front()
            {
                self.lacking = lacking;
            }
        }
    }

    /// Returns the sequence number of the first byte of segment `number`. The SYN has number 0.
    fn sequence(&self, number: u32) -> u32 {
        let before = self.short.partition_point(|(short, _)| *short < number);
        let lacking = match before.checked_sub(1) {
            None => self.lacking,
            Some(last) => self.short[last].1,
        };
        (1 + u64::from(number) * u64::from(self.mss_bytes) - lacking) as u32
    }
}

/// Builds the frames of one TCP flow.
#[derive(Debug)]
pub(super) struct FrameBuilder {
    addresses: Addresses,
    window_scale: u8,
    /// MSS option of both ends.
    announced_mss_bytes: u16,
    numbering: Numbering,
    /// Reusable buffer for the current frame.
    frame: Vec<u8>,
}

impl FrameBuilder {
    pub fn new(position: FlowId, flow: &FlowSpec) -> Self {
        // As `tcp_output.c::tcp_select_initial_window`: the smallest scale with which the largest
        // window fits into 16 bits.
        let scale = flow.receive_window_bytes.max(1).ilog2().saturating_sub(15).min(SCALE_MAX);
        Self {
            addresses: Addresses::of(position, flow),
            window_scale: scale as u8,
            announced_mss_bytes: (flow.mtu_bytes - FIXED_HEADER_BYTES) as u16,
            numbering: Numbering::new(mss_of(flow.mtu_bytes)),
            frame: Vec::with_capacity(SNAP_BYTES as usize),
        }
    }

    /// Returns the headers of a segment captured at `end`, and its size on the wire.
    pub fn frame(
        &mut self,
        end: EndpointRole,
        header: &SegmentHeader,
    ) -> Result<(&[u8], u32), TcpOptionWriteError> {
        if end == EndpointRole::Sender && header.kind == HeaderKind::Data {
            self.numbering.note(header.number, header.payload_bytes);
        }
        let forward =
            matches!(header.kind, HeaderKind::Syn | HeaderKind::HandshakeAck | HeaderKind::Data);
        let from = if forward { EndpointRole::Sender } else { EndpointRole::Receiver };
        let payload = &ZEROS[..usize::from(header.payload_bytes)];
        let mut tcp = self.tcp(header)?;
        let inner_bytes = tcp.header_len_u16() + header.payload_bytes;
        let (ethernet, ip) = self.addresses.headers(from, IpNumber::TCP, header.ecn, inner_bytes);
        // Fails only for payloads above 64 kB.
        tcp.checksum =
            tcp.calc_checksum_ipv4_raw(ip.source, ip.destination, payload).unwrap_or_default();
        self.frame.clear();
        self.frame.extend_from_slice(&ethernet.to_bytes());
        self.frame.extend_from_slice(&ip.to_bytes());
        self.frame.extend_from_slice(&tcp.to_bytes());
        let size_bytes = self.frame.len() as u32 + u32::from(header.payload_bytes);
        Ok((&self.frame, size_bytes))
    }

    fn tcp(&self, header: &SegmentHeader) -> Result<TcpHeader, TcpOptionWriteError> {
        use TcpOptionElement as Kind;
        let stamps = Kind::Timestamp(header.tsval_ms, header.tsecr_ms);
        let (from, to) = match header.kind {
            HeaderKind::Syn | HeaderKind::HandshakeAck | HeaderKind::Data => {
                (SENDER_PORT, RECEIVER_PORT)
            }
            HeaderKind::SynAck | HeaderKind::Ack => (RECEIVER_PORT, SENDER_PORT),
        };
        let mut tcp = TcpHeader::new(from, to, 0, 0);
        match header.kind {
            HeaderKind::Syn => {
                tcp.syn = true;
                // RFC 3168 §6.1.1: an ECN-setup SYN sets ECE and CWR.
                (tcp.ece, tcp.cwr) = (header.ecn_flag, header.ecn_flag);
                tcp.window_size = SENDER_SYN_WINDOW;
                tcp.set_options(&self.syn_options(&stamps, SENDER_WINDOW_SCALE))?;
            }
            HeaderKind::SynAck => {
                (tcp.syn, tcp.ack) = (true, true);
                // RFC 3168 §6.1.1: an ECN-setup SYN-ACK sets only ECE.
                tcp.ece = header.ecn_flag;
                tcp.acknowledgment_number = 1;
                tcp.window_size = self.window(header.window_packets, 0);
                tcp.set_options(&self.syn_options(&stamps, self.window_scale))?;
            }
            HeaderKind::HandshakeAck => {
                tcp.ack = true;
                (tcp.sequence_number, tcp.acknowledgment_number) = (1, 1);
                tcp.window_size = SENDER_WINDOW;
                tcp.set_options(&[Kind::Noop, Kind::Noop, stamps])?;
            }
            HeaderKind::Data => {
                tcp.ack = true;
                tcp.cwr = header.ecn_flag;
                // A short segment ends a message.
                tcp.psh = u32::from(header.payload_bytes) < self.numbering.mss_bytes;
                tcp.sequence_number = self.numbering.sequence(header.number);
                tcp.acknowledgment_number = 1;
                tcp.window_size = SENDER_WINDOW;
                tcp.set_options(&[Kind::Noop, Kind::Noop, stamps])?;
            }
            HeaderKind::Ack => {
                tcp.ack = true;
                tcp.ece = header.ecn_flag;
                tcp.sequence_number = 1;
                tcp.acknowledgment_number = self.numbering.sequence(header.number);
                tcp.window_size = self.window(header.window_packets, self.window_scale);
                match self.sack(header) {
                    None => tcp.set_options(&[Kind::Noop, Kind::Noop, stamps])?,
                    Some(sack) => {
                        use Kind::Noop;
                        tcp.set_options(&[Noop, Noop, stamps, Noop, Noop, sack])?;
                    }
                }
                if let Some((marks, option)) = header.accecn {
                    self.add_accecn(&mut tcp, marks, option)?;
                }
            }
        }
        Ok(tcp)
    }

    /// Adds AccECN feedback (RFC 9768): the ACE field, which begins with 5, and the option with two
    /// of its counters. The one of ECT(0) bytes stays at its initial value of 1; the one of ECT(1)
    /// bytes is left out. Padding brings it to the size on the wire.
    fn add_accecn(
        &self,
        tcp: &mut TcpHeader,
        marks: u8,
        option: Option<u16>,
    ) -> Result<(), TcpOptionWriteError> {
        let ace = marks.wrapping_add(ACE_INITIAL);
        (tcp.ns, tcp.cwr, tcp.ece) = (ace & 4 != 0, ace & 2 != 0, ace & 1 != 0);
        let Some(marked) = option else { return Ok(()) };
        let mut options = tcp.options.as_slice().to_vec();
        let marked_bytes = u32::from(marked).wrapping_mul(self.numbering.mss_bytes);
        options.extend_from_slice(&[ACCECN_OPTION, 8, 0, 0, 1]);
        options.extend_from_slice(&marked_bytes.to_be_bytes()[1..]);
        if options.len() < 40 {
            options.extend_from_slice(&[1; 4]);
        }
        tcp.set_options_raw(&options)
    }

    fn sack(&self, header: &SegmentHeader) -> Option<TcpOptionElement> {
        let block = |i: usize| {
            let (start, end) = header.blocks().get(i).copied()?;
            Some((self.numbering.sequence(start), self.numbering.sequence(end)))
        };
        Some(TcpOptionElement::SelectiveAcknowledgement(block(0)?, [block(1), block(2), None]))
    }

    /// Returns the options of a SYN in Linux's order.
    fn syn_options(&self, stamps: &TcpOptionElement, scale: u8) -> [TcpOptionElement; 5] {
        use TcpOptionElement as Kind;
        [
            Kind::MaximumSegmentSize(self.announced_mss_bytes),
            Kind::SelectiveAcknowledgementPermitted,
            stamps.clone(),
            Kind::Noop,
            Kind::WindowScale(scale),
        ]
    }

    fn window(&self, packets: u32, scale: u8) -> u16 {
        let bytes = (u64::from(packets) * u64::from(self.numbering.mss_bytes)) >> scale;
        u16::try_from(bytes).unwrap_or(u16::MAX)
    }
}

fn codepoint(ecn: Ecn) -> IpEcn {
    match ecn {
        Ecn::NotCapable => IpEcn::NotEct,
        Ecn::Capable => IpEcn::Ect0,
        Ecn::L4s => IpEcn::Ect1,
        Ecn::Marked => IpEcn::CongestionExperienced,
    }
}

#[cfg(test)]
mod tests;
