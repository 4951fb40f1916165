//! Headers in front of IP: link layers, tags, labels and tunnels.

use std::fmt;

use crate::netmon;

/// Maximum number of headers that are followed in one frame.
pub(crate) const HEADERS_MAX: u8 = 24;

/// An encapsulation around an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Encapsulation {
    Ppp,
    Pppoe,
    CiscoHdlc,
    Mpls,
    Nsh,
    Gre,
    Erspan,
    IpInIp,
    Vxlan,
    Geneve,
    GtpU,
}

impl Encapsulation {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 11] = [
        Self::Ppp,
        Self::Pppoe,
        Self::CiscoHdlc,
        Self::Mpls,
        Self::Nsh,
        Self::Gre,
        Self::Erspan,
        Self::IpInIp,
        Self::Vxlan,
        Self::Geneve,
        Self::GtpU,
    ];

    /// Whether it adds an IP header, so that the inner packet has the addresses of other hosts.
    pub fn has_addresses(self) -> bool {
        matches!(
            self,
            Self::Gre | Self::Erspan | Self::IpInIp | Self::Vxlan | Self::Geneve | Self::GtpU
        )
    }
}

impl fmt::Display for Encapsulation {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Ppp => "PPP",
            Self::Pppoe => "PPPoE",
            Self::CiscoHdlc => "Cisco HDLC",
            Self::Mpls => "MPLS",
            Self::Nsh => "NSH",
            Self::Gre => "GRE",
            Self::Erspan => "ERSPAN",
            Self::IpInIp => "IP in IP",
            Self::Vxlan => "VXLAN",
            Self::Geneve => "Geneve",
            Self::GtpU => "GTP-U",
        })
    }
}

/// The first header that is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UnreadHeader {
    LinkType(i32),
    /// Network type of Microsoft Network Monitor.
    NetMon(u16),
    EtherType(u16),
    Ppp(u16),
    IpProtocol(u8),
    /// IEEE 802.2 LLC without IP.
    Llc,
    /// The headers are not captured completely.
    CutOff,
    Malformed,
    /// More than [`HEADERS_MAX`] headers.
    TooDeep,
}

/// Why a frame is not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnreadKind {
    /// The innermost encapsulation that was read.
    pub inside: Option<Encapsulation>,
    pub header: UnreadHeader,
}

impl fmt::Display for UnreadKind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(inside) = self.inside {
            write!(to, "{inside}/")?;
        }
        match self.header {
            UnreadHeader::LinkType(number) => write!(to, "link type {number}"),
            UnreadHeader::NetMon(number) => write!(to, "network type {number} of Network Monitor"),
            UnreadHeader::EtherType(0x0806) => to.write_str("ARP"),
            UnreadHeader::EtherType(0x8863) => to.write_str("PPPoE discovery"),
            UnreadHeader::EtherType(0x88cc) => to.write_str("LLDP"),
            UnreadHeader::EtherType(0x88e5) => to.write_str("MACsec"),
            UnreadHeader::EtherType(number) => write!(to, "EtherType 0x{number:04x}"),
            UnreadHeader::Ppp(number) => write!(to, "PPP protocol 0x{number:04x}"),
            UnreadHeader::IpProtocol(1) => to.write_str("ICMP"),
            UnreadHeader::IpProtocol(2) => to.write_str("IGMP"),
            UnreadHeader::IpProtocol(50) => to.write_str("ESP"),
            UnreadHeader::IpProtocol(58) => to.write_str("ICMPv6"),
            UnreadHeader::IpProtocol(89) => to.write_str("OSPF"),
            UnreadHeader::IpProtocol(115) => to.write_str("L2TP"),
            UnreadHeader::IpProtocol(132) => to.write_str("SCTP"),
            UnreadHeader::IpProtocol(number) => write!(to, "IP protocol {number}"),
            UnreadHeader::Llc => to.write_str("LLC"),
            UnreadHeader::CutOff => to.write_str("headers cut off"),
            UnreadHeader::Malformed => to.write_str("malformed headers"),
            UnreadHeader::TooDeep => write!(to, "more than {HEADERS_MAX} headers"),
        }
    }
}

/// The kind of header at a position of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// The first header of a frame, by the link type of the capture.
    Link(i32),
    /// Linux's cooked captures, of version 1 and 2.
    Cooked,
    Cooked2,
    NetMon,
    Ethernet,
    /// The header that an EtherType announces.
    EtherType(u16),
    Ppp,
    CiscoHdlc,
    Mpls,
    Nsh,
    Gre,
    /// ERSPAN with the GRE protocol that names its version; `true` if GRE had a sequence number.
    Erspan(u16, bool),
    Ip,
}

/// Position in a frame: which header begins where, and what surrounds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    pub layer: Layer,
    pub at: usize,
    pub inside: Option<Encapsulation>,
    headers_left: u8,
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const PPPOE_SESSION: u16 = 0x8864;

/// Link types that are read: number and name of <https://www.tcpdump.org/linktypes.html>, the first
/// header and its offset.
pub(crate) const LINK_TYPES: [(i32, &str, Layer, usize); 16] = [
    (1, "ETHERNET", Layer::Ethernet, 0),
    (113, "LINUX_SLL", Layer::Cooked, 0),
    (276, "LINUX_SLL2", Layer::Cooked2, 0),
    (101, "RAW", Layer::Ip, 0),
    // The numbers of RAW on OpenBSD and other systems.
    (12, "RAW", Layer::Ip, 0),
    (14, "RAW", Layer::Ip, 0),
    (228, "IPV4", Layer::Ip, 0),
    (229, "IPV6", Layer::Ip, 0),
    // A 4-byte address family, whose value depends on the operating system.
    (0, "NULL", Layer::Ip, 4),
    (108, "LOOP", Layer::Ip, 4),
    (9, "PPP", Layer::Ppp, 0),
    (50, "PPP_HDLC", Layer::Ppp, 0),
    // The header of PPPoE without Ethernet.
    (51, "PPP_ETHER", Layer::EtherType(PPPOE_SESSION), 0),
    // A byte for the direction.
    (204, "PPP_WITH_DIR", Layer::Ppp, 1),
    (104, "C_HDLC", Layer::CiscoHdlc, 0),
    (219, "MPLS", Layer::Mpls, 0),
];

/// Tags behind the addresses of Ethernet: EtherType, name, offset of the next EtherType, length.
pub(crate) const TAGS: [(u16, &str, usize, usize); 4] = [
    (0x8100, "VLAN (802.1Q)", 2, 4),
    (0x88a8, "VLAN (802.1ad)", 2, 4),
    // A value from before 802.1ad.
    (0x9100, "VLAN (0x9100)", 2, 4),
    (0x893f, "E-tag (802.1BR)", 6, 8),
];

impl Position {
    /// The position of the first header of a frame.
    #[inline]
    pub fn first(link: i32, bytes: &[u8]) -> Self {
        let frame =
            Self { layer: Layer::Link(link), at: 0, inside: None, headers_left: HEADERS_MAX };
        // Most frames.
        if link == 1 && matches!(bytes.get(12..14), Some([0x08, 0] | [0x86, 0xdd])) {
            return Self { layer: Layer::Ip, at: 14, ..frame };
        }
        frame
    }

    /// Continues with a header after the present one.
    pub fn enter(&mut self, layer: Layer, at: usize, inside: Encapsulation) {
        (self.layer, self.at) = (layer, at);
        self.note(inside);
    }

    /// Remembers the innermost encapsulation, but rather one with addresses.
    fn note(&mut self, inside: Encapsulation) {
        if inside.has_addresses() || !self.inside.is_some_and(Encapsulation::has_addresses) {
            self.inside = Some(inside);
        }
    }

    pub fn unread(&self, header: UnreadHeader) -> UnreadKind {
        UnreadKind { inside: self.inside, header }
    }

    /// Follows headers up to the next IP header.
    #[inline]
    pub fn find_ip(&mut self, bytes: &[u8]) -> Result<(), UnreadKind> {
        while self.layer != Layer::Ip {
            self.step(bytes).map_err(|header| self.unread(header))?;
        }
        self.headers_left =
            self.headers_left.checked_sub(1).ok_or(self.unread(UnreadHeader::TooDeep))?;
        Ok(())
    }

    #[inline]
    fn step(&mut self, bytes: &[u8]) -> Result<(), UnreadHeader> {
        self.headers_left = self.headers_left.checked_sub(1).ok_or(UnreadHeader::TooDeep)?;
        let rest = bytes.get(self.at..).ok_or(UnreadHeader::CutOff)?;
        let (layer, header_bytes) = match self.layer {
            Layer::Link(link) if link == netmon::LINK_TYPE as i32 => (Layer::NetMon, 0),
            Layer::Link(link) => {
                let known = LINK_TYPES.iter().find(|(number, ..)| *number == link);
                let (_, _, layer, offset) = known.ok_or(UnreadHeader::LinkType(link))?;
                (*layer, *offset)
            }
            Layer::NetMon => (netmon_network(word(rest, 0)?)?, netmon::TYPE_BYTES),
            Layer::Cooked => (Layer::EtherType(word(rest, 14)?), 16),
            Layer::Cooked2 => (Layer::EtherType(word(rest, 0)?), 20),
            Layer::Ethernet => (Layer::EtherType(word(rest, 12)?), 14),
            Layer::EtherType(IPV4 | IPV6) | Layer::Ip => (Layer::Ip, 0),
            Layer::EtherType(kind) => self.ether_type(kind, rest)?,
            Layer::Ppp => self.ppp(rest)?,
            Layer::CiscoHdlc => {
                self.note(Encapsulation::CiscoHdlc);
                (Layer::EtherType(word(rest, 2)?), 4)
            }
            Layer::Mpls => self.mpls(rest)?,
            Layer::Nsh => self.nsh(rest)?,
            Layer::Gre => self.gre(rest)?,
            Layer::Erspan(version, numbered) => self.erspan(version, numbered, rest)?,
        };
        (self.layer, self.at) = (layer, self.at + header_bytes);
        Ok(())
    }

    fn ether_type(&mut self, kind: u16, rest: &[u8]) -> Result<(Layer, usize), UnreadHeader> {
        if let Some((_, _, next, length)) = TAGS.iter().find(|(tag, ..)| *tag == kind) {
            return Ok((Layer::EtherType(word(rest, *next)?), *length));
        }
        Ok(match kind {
            0x8847 | 0x8848 => (Layer::Mpls, 0),
            PPPOE_SESSION => {
                self.note(Encapsulation::Pppoe);
                // RFC 2516 §4: a session packet has the code 0.
                if byte(rest, 1)? != 0 {
                    return Err(UnreadHeader::Malformed);
                }
                (Layer::Ppp, 6)
            }
            // PPP in GRE (RFC 2637).
            0x880b => (Layer::Ppp, 0),
            0x894f => (Layer::Nsh, 0),
            // Transparent Ethernet bridging.
            0x6558 => (Layer::Ethernet, 0),
            0..=1500 => match (rest.get(..3), rest.get(3..6)) {
                // SNAP.
                (Some([0xaa, 0xaa, 3]), Some([0, 0, 0])) => (Layer::EtherType(word(rest, 6)?), 8),
                (Some([6, 6, 3]), _) => (Layer::Ip, 3),
                _ => return Err(UnreadHeader::Llc),
            },
            _ => return Err(UnreadHeader::EtherType(kind)),
        })
    }

    /// RFC 1661 and RFC 1662: address and control are optional, the protocol has one or two bytes.
    fn ppp(&mut self, rest: &[u8]) -> Result<(Layer, usize), UnreadHeader> {
        let skipped = if rest.starts_with(&[0xff, 3]) { 2 } else { 0 };
        let first = byte(rest, skipped)?;
        // Addresses of Cisco HDLC, which has the same link types. No protocol of PPP begins with them.
        if skipped == 0 && matches!(first, 0x0f | 0x8f) {
            return Ok((Layer::CiscoHdlc, 0));
        }
        if self.inside != Some(Encapsulation::Pppoe) {
            self.note(Encapsulation::Ppp);
        }
        let (protocol, bytes) =
            if first & 1 == 1 { (u16::from(first), 1) } else { (word(rest, skipped)?, 2) };
        match protocol {
            0x21 | 0x57 => Ok((Layer::Ip, skipped + bytes)),
            0x281 | 0x283 => Ok((Layer::Mpls, skipped + bytes)),
            _ => Err(UnreadHeader::Ppp(protocol)),
        }
    }

    /// RFC 3032. RFC 4385: the first four bits after the labels distinguish IP from a pseudowire.
    fn mpls(&mut self, rest: &[u8]) -> Result<(Layer, usize), UnreadHeader> {
        self.note(Encapsulation::Mpls);
        if byte(rest, 2)? & 1 == 0 {
            return Ok((Layer::Mpls, 4));
        }
        Ok(match byte(rest, 4)? >> 4 {
            4 | 6 => (Layer::Ip, 4),
            // A control word, or the first byte of a MAC address.
            0 if matches!(word(rest, 8 + 12)?, IPV4 | IPV6 | 0x0806 | 0x8100 | 0x88a8 | 0x8847) => {
                (Layer::Ethernet, 8)
            }
            _ => (Layer::Ethernet, 4),
        })
    }

    /// RFC 8300.
    fn nsh(&mut self, rest: &[u8]) -> Result<(Layer, usize), UnreadHeader> {
        self.note(Encapsulation::Nsh);
        let header_bytes = usize::from(word(rest, 0)? & 0x3f) * 4;
        if header_bytes < 8 {
            return Err(UnreadHeader::Malformed);
        }
        let layer = match byte(rest, 3)? {
            1 | 2 => Layer::Ip,
            3 => Layer::Ethernet,
            4 => Layer::Nsh,
            5 => Layer::Mpls,
            _ => return Err(UnreadHeader::EtherType(0x894f)),
        };
        Ok((layer, header_bytes))
    }

    /// RFC 2784, RFC 2890 and, for version 1, RFC 2637.
    fn gre(&mut self, rest: &[u8]) -> Result<(Layer, usize), UnreadHeader> {
        self.note(Encapsulation::Gre);
        let (flags, protocol) = (word(rest, 0)?, word(rest, 2)?);
        let has = |bit: u16| usize::from(flags & bit != 0);
        let [checksum, routing, key, sequence] = [0x8000, 0x4000, 0x2000, 0x1000].map(has);
        let fields = match flags & 7 {
            0 if routing == 0 => checksum + key + sequence,
            // The acknowledgment number.
            1 => key + sequence + has(0x0080),
            _ => return Err(UnreadHeader::Malformed),
        };
        let layer = match protocol {
            0x88be | 0x22eb => Layer::Erspan(protocol, sequence == 1),
            other => Layer::EtherType(other),
        };
        Ok((layer, 4 + 4 * fields))
    }

    /// draft-foschiano-erspan: types I (no header), II and III.
    fn erspan(
        &mut self,
        version: u16,
        numbered: bool,
        rest: &[u8],
    ) -> Result<(Layer, usize), UnreadHeader> {
        self.note(Encapsulation::Erspan);
        let header_bytes = match (version, numbered) {
            (0x88be, false) => 0,
            (0x88be, true) => 8,
            // The last bit announces a subheader of 8 bytes.
            _ => 12 + 8 * usize::from(byte(rest, 11)? & 1),
        };
        Ok((Layer::Ethernet, header_bytes))
    }

    /// Enters a tunnel over UDP, if the ports and the header in `payload` belong to a tunnel.
    /// `payload_at` is the offset of `payload` in the frame.
    pub fn enter_udp(&mut self, ports: (u16, u16), payload: &[u8], payload_at: usize) -> bool {
        let found = match ports.1 {
            // 8472 is the default of Linux.
            4789 | 8472 => vxlan(payload),
            6081 => geneve(payload),
            2152 => gtp_u(payload),
            _ if ports.0 == 2152 => gtp_u(payload),
            _ => return false,
        };
        let Some((layer, header_bytes, inside)) = found else { return false };
        self.enter(layer, payload_at + header_bytes, inside);
        true
    }
}

/// The first header of a frame of Network Monitor, by its network type. From 0xe000 on, it is the link
/// type of pcap.
fn netmon_network(number: u16) -> Result<Layer, UnreadHeader> {
    match number {
        1 => Ok(Layer::Ethernet),
        0xe000..=0xefff => Ok(Layer::Link(i32::from(number & 0xfff))),
        _ => Err(UnreadHeader::NetMon(number)),
    }
}

type Tunnel = Option<(Layer, usize, Encapsulation)>;

/// RFC 7348: the bit of a valid network identifier, and an Ethernet frame.
fn vxlan(payload: &[u8]) -> Tunnel {
    let &[flags, _, _, _, _, _, _, 0] = payload.first_chunk::<8>()? else { return None };
    (flags & 0x08 != 0 && is_ethernet(payload.get(8..)?)).then_some((
        Layer::Ethernet,
        8,
        Encapsulation::Vxlan,
    ))
}

/// RFC 8926.
fn geneve(payload: &[u8]) -> Tunnel {
    let &[first, _, high, low, _, _, _, 0] = payload.first_chunk::<8>()? else { return None };
    let header_bytes = 8 + 4 * usize::from(first & 0x3f);
    let layer = match u16::from_be_bytes([high, low]) {
        0x6558 => Layer::Ethernet,
        IPV4 | IPV6 => Layer::Ip,
        _ => return None,
    };
    let inner = payload.get(header_bytes..)?;
    let fits = if layer == Layer::Ip { is_ip(inner) } else { is_ethernet(inner) };
    (first >> 6 == 0 && fits).then_some((layer, header_bytes, Encapsulation::Geneve))
}

/// 3GPP TS 29.281 §5: version 1, G-PDU.
fn gtp_u(payload: &[u8]) -> Tunnel {
    const G_PDU: u8 = 255;
    let (&flags, &kind) = (payload.first()?, payload.get(1)?);
    if flags >> 4 != 3 || kind != G_PDU {
        return None;
    }
    let mut at = 8;
    if flags & 7 != 0 {
        at = 12;
        // Extension headers: a length in units of 4 bytes, contents, the type of the next one.
        let mut next = if flags & 4 != 0 { *payload.get(11)? } else { 0 };
        while next != 0 {
            let length = 4 * usize::from(*payload.get(at)?);
            if length == 0 {
                return None;
            }
            at += length;
            next = *payload.get(at - 1)?;
        }
    }
    is_ip(payload.get(at..)?).then_some((Layer::Ip, at, Encapsulation::GtpU))
}

fn is_ip(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| matches!(first, 0x45..=0x4f | 0x60..=0x6f))
}

/// Returns whether the bytes may be an Ethernet II frame: its EtherType is at least 0x0600.
fn is_ethernet(bytes: &[u8]) -> bool {
    bytes.get(12).is_some_and(|high| *high >= 6)
}

fn byte(bytes: &[u8], at: usize) -> Result<u8, UnreadHeader> {
    bytes.get(at).copied().ok_or(UnreadHeader::CutOff)
}

fn word(bytes: &[u8], at: usize) -> Result<u16, UnreadHeader> {
    Ok(u16::from_be_bytes([byte(bytes, at)?, byte(bytes, at + 1)?]))
}
