//! Simulated packets as frames: Ethernet, IPv4 and TCP or UDP headers as Linux would have written them.

mod datagrams;

use std::collections::VecDeque;

use etherparse::{
    Ethernet2Header, IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, TcpOptionWriteError,
    ether_type,
};
use jostle_path::Ecn;
use jostle_units::{LINK_HEADER_BYTES, MAX_MTU_BYTES, mss_of};

use crate::sink::{Header, HeaderKind};
use crate::{End, FlowSpec, QuicCrypto, QuicSpec};

pub(super) use datagrams::DatagramFramer;

/// Most of a packet that is kept. Headers are shorter: 14 bytes of Ethernet, 20 of IPv4, at most 60 of
/// TCP; of a datagram of QUIC its first frames are in it.
const SNAP_BYTES: u32 = 128;
/// Of what can be decrypted: a packet's tag, which is at its end, is needed for that.
const WHOLE_BYTES: u32 = MAX_MTU_BYTES + LINK_HEADER_BYTES;

const SENDER_PORT: u16 = 40_000;
const RECEIVER_PORT: u16 = 5201;
const SENDER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const RECEIVER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// Linux's default.
const TIME_TO_LIVE: u8 = 64;

/// What the MSS that TCP announces lacks of an MTU: headers without the timestamps (RFC 6691).
const FIXED_HEADER_BYTES: u32 = 20 + 20;
/// The sender's own window, which nothing ever uses: Linux offers this much by default.
const SENDER_SYN_WINDOW: u16 = 64_240;
const SENDER_WINDOW: u16 = 502;
const SENDER_WINDOW_SCALE: u8 = 7;
const SCALE_MAX: u32 = 14;

/// Payloads are zeros, of which checksums know nothing but the length.
static ZEROS: [u8; MAX_MTU_BYTES as usize] = [0; MAX_MTU_BYTES as usize];

/// Messages whose ends can still be asked for: all that may be outstanding, and far more.
const ENDS_KEPT: usize = 64;

/// Address of one end of a flow, as the kernel backend has it.
pub(super) fn address(flow: usize, end: End) -> [u8; 4] {
    let network = match end {
        End::Sender => 1,
        End::Receiver => 2,
    };
    [10, network, (flow / 250) as u8, (flow % 250 + 1) as u8]
}

/// Most that is kept of a packet of `flow`.
pub(super) fn snap_bytes(flow: &FlowSpec) -> u32 {
    let protected =
        |quic: &QuicSpec| quic.implementation.is_some() || quic.crypto == QuicCrypto::Tls;
    if flow.quic.as_ref().is_some_and(protected) { WHOLE_BYTES } else { SNAP_BYTES }
}

/// The two ends of a flow as addresses.
#[derive(Clone, Copy, Debug)]
struct Addresses {
    sender: [u8; 4],
    receiver: [u8; 4],
}

impl Addresses {
    fn of(flow: usize) -> Self {
        Self { sender: address(flow, End::Sender), receiver: address(flow, End::Receiver) }
    }

    /// Headers around `inner_bytes` of `protocol` that come from the end `from`.
    fn headers(
        &self,
        from: End,
        protocol: IpNumber,
        ecn: Ecn,
        inner_bytes: u16,
    ) -> (Ethernet2Header, Ipv4Header) {
        let mut ends = [(SENDER_MAC, self.sender), (RECEIVER_MAC, self.receiver)];
        if from == End::Receiver {
            ends.swap(0, 1);
        }
        let [(source_mac, source), (destination_mac, destination)] = ends;
        let mut ip = Ipv4Header {
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

/// Where segments, which are counted, lie in the stream of bytes.
#[derive(Debug)]
struct Numbering {
    /// Payload of a full segment.
    mss_bytes: u32,
    /// First segment that was never sent.
    next: u32,
    /// Segments that are not full, and how many bytes they and all before them lack.
    short: VecDeque<(u32, u64)>,
    /// What those before `short` lack.
    lacking: u64,
}

impl Numbering {
    const fn new(mss_bytes: u32) -> Self {
        Self { mss_bytes, next: 0, short: VecDeque::new(), lacking: 0 }
    }

    /// The sender sends `number`.
    fn note(&mut self, number: u32, payload_bytes: u16) {
        if number < self.next {
            return;
        }
        self.next = number + 1;
        let lacks = u64::from(self.mss_bytes) - u64::from(payload_bytes);
        if lacks > 0 {
            let before = self.short.back().map_or(self.lacking, |(_, lacking)| *lacking);
            self.short.push_back((number, before + lacks));
            if self.short.len() > ENDS_KEPT
                && let Some((_, lacking)) = self.short.pop_front()
            {
                self.lacking = lacking;
            }
        }
    }

    /// Sequence number of the first byte of `number`; the SYN has 0.
    fn sequence(&self, number: u32) -> u32 {
        let before = self.short.partition_point(|(short, _)| *short < number);
        let lacking = match before.checked_sub(1) {
            None => self.lacking,
            Some(last) => self.short[last].1,
        };
        (1 + u64::from(number) * u64::from(self.mss_bytes) - lacking) as u32
    }
}

/// Writes the frames of one flow.
#[derive(Debug)]
pub(super) struct Framer {
    addresses: Addresses,
    window_scale: u8,
    /// The MSS that both ends announce.
    announced_mss_bytes: u16,
    numbering: Numbering,
    /// The frame that was written last, kept for its memory.
    frame: Vec<u8>,
}

impl Framer {
    pub fn new(position: usize, flow: &FlowSpec) -> Self {
        // `tcp_select_initial_window`: as little as makes the largest window fit into 16 bits.
        let scale = flow.receive_window_bytes.max(1).ilog2().saturating_sub(15).min(SCALE_MAX);
        Self {
            addresses: Addresses::of(position),
            window_scale: scale as u8,
            announced_mss_bytes: (flow.mtu_bytes - FIXED_HEADER_BYTES) as u16,
            numbering: Numbering::new(mss_of(flow.mtu_bytes)),
            frame: Vec::with_capacity(SNAP_BYTES as usize),
        }
    }

    /// The headers of a segment seen at `end`, and its size on the wire.
    pub fn frame(
        &mut self,
        end: End,
        header: &Header,
    ) -> Result<(&[u8], u32), TcpOptionWriteError> {
        if end == End::Sender && header.kind == HeaderKind::Data {
            self.numbering.note(header.number, header.payload_bytes);
        }
        let forward = matches!(header.kind, HeaderKind::Syn | HeaderKind::Data);
        let from = if forward { End::Sender } else { End::Receiver };
        let payload = &ZEROS[..usize::from(header.payload_bytes)];
        let mut tcp = self.tcp(header)?;
        let inner_bytes = tcp.header_len_u16() + header.payload_bytes;
        let (ethernet, ip) = self.addresses.headers(from, IpNumber::TCP, header.ecn, inner_bytes);
        // Fails for payloads beyond 64 kB alone.
        tcp.checksum =
            tcp.calc_checksum_ipv4_raw(ip.source, ip.destination, payload).unwrap_or_default();
        self.frame.clear();
        self.frame.extend_from_slice(&ethernet.to_bytes());
        self.frame.extend_from_slice(&ip.to_bytes());
        self.frame.extend_from_slice(&tcp.to_bytes());
        let size_bytes = self.frame.len() as u32 + u32::from(header.payload_bytes);
        Ok((&self.frame, size_bytes))
    }

    fn tcp(&self, header: &Header) -> Result<TcpHeader, TcpOptionWriteError> {
        use TcpOptionElement as Kind;
        let stamps = Kind::Timestamp(header.tsval_ms, header.tsecr_ms);
        let (from, to) = match header.kind {
            HeaderKind::Syn | HeaderKind::Data => (SENDER_PORT, RECEIVER_PORT),
            HeaderKind::SynAck | HeaderKind::Ack => (RECEIVER_PORT, SENDER_PORT),
        };
        let mut tcp = TcpHeader::new(from, to, 0, 0);
        match header.kind {
            HeaderKind::Syn => {
                tcp.syn = true;
                // RFC 3168 §6.1.1: "an ECN-setup SYN packet" has both flags, …
                (tcp.ece, tcp.cwr) = (header.ecn_flag, header.ecn_flag);
                tcp.window_size = SENDER_SYN_WINDOW;
                tcp.set_options(&self.greeting(&stamps, SENDER_WINDOW_SCALE))?;
            }
            HeaderKind::SynAck => {
                (tcp.syn, tcp.ack) = (true, true);
                // … "an ECN-setup SYN-ACK packet" ECE alone.
                tcp.ece = header.ecn_flag;
                tcp.acknowledgment_number = 1;
                tcp.window_size = self.window(header.window_packets, 0);
                tcp.set_options(&self.greeting(&stamps, self.window_scale))?;
            }
            HeaderKind::Data => {
                tcp.ack = true;
                tcp.cwr = header.ecn_flag;
                // The end of a message.
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
            }
        }
        Ok(tcp)
    }

    fn sack(&self, header: &Header) -> Option<TcpOptionElement> {
        let block = |i: usize| {
            let (start, end) = header.blocks().get(i).copied()?;
            Some((self.numbering.sequence(start), self.numbering.sequence(end)))
        };
        Some(TcpOptionElement::SelectiveAcknowledgement(block(0)?, [block(1), block(2), None]))
    }

    /// Options of a SYN in Linux's order.
    fn greeting(&self, stamps: &TcpOptionElement, scale: u8) -> [TcpOptionElement; 5] {
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
