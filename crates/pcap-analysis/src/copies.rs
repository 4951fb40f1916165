//! Packets that a capture contains several times, because several interfaces or ports saw them.

use crate::packet::{Body, Packet};

/// Bits of the fingerprint that choose the set in which a packet is remembered.
const SET_BITS: u32 = 7;
/// Packets that a set remembers, the latest ones.
const SET_SIZE: usize = 4;
/// Maximum time between a packet with an IP identification and its copy.
const LATER_NS: u64 = 10_000_000;
/// The same for packets without identification, which may be equal and yet different packets.
const LATER_UNNUMBERED_NS: u64 = 1_000_000;
/// A retransmission follows later than this: after a round trip, at least.
const AT_ONCE_NS: u64 = 10_000;
/// Maximum number of equal packets that count as copies of one. Generators of load send more.
const EQUAL_MAX: u8 = 4;
/// A file has each packet several times if at least 1/10 of its packets are copies.
const MIN_COPIES_FRACTION: u64 = 10;
const MIN_COPIES: u64 = 3;

#[derive(Clone, Copy, Debug, Default)]
struct RecentPacket {
    fingerprint: u64,
    time_ns: u64,
    equal: u8,
}

/// How certain it is that two equal packets are copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Certainty {
    /// A TCP segment with an IP identification, since a retransmission has another one, or one that
    /// follows sooner than any retransmission can.
    Certain,
    /// Equal packets are copies if many packets of the file have copies.
    Likely,
    /// As `Likely`, but it is no evidence for copies: ACKs, and datagrams without content.
    Possible,
}

/// Finds copies of packets.
#[derive(Clone, Debug)]
pub(crate) struct CopyFilter {
    recent: Vec<[RecentPacket; SET_SIZE]>,
    /// Whether packets that are equal, but not certainly copies, are removed as well.
    removes_likely: bool,
    /// Packets that may be evidence, and their copies.
    packets: u64,
    copies: u64,
    certain: u64,
    uncertain: u64,
}

impl CopyFilter {
    pub fn new(removes_likely: bool) -> Self {
        Self {
            recent: vec![[RecentPacket::default(); SET_SIZE]; 1 << SET_BITS],
            removes_likely,
            packets: 0,
            copies: 0,
            certain: 0,
            uncertain: 0,
        }
    }

    /// Returns whether a packet is a copy of one before it that is counted already.
    pub fn is_copy(&mut self, time_ns: u64, packet: &Packet) -> bool {
        let fingerprint = fingerprint(packet);
        let limit_ns = if packet.identification == 0 { LATER_UNNUMBERED_NS } else { LATER_NS };
        let set = &mut self.recent[(fingerprint >> (64 - SET_BITS)) as usize];
        let known = set.iter().position(|recent| recent.fingerprint == fingerprint);
        let later_ns = known.map_or(0, |at| time_ns.saturating_sub(set[at].time_ns));
        let certainty = certainty(packet, later_ns);
        self.packets += u64::from(certainty != Certainty::Possible);
        let Some(at) = known.filter(|_| later_ns <= limit_ns) else {
            set.rotate_right(1);
            set[0] = RecentPacket { fingerprint, time_ns, equal: 1 };
            return false;
        };
        let recent = &mut set[at];
        recent.equal = recent.equal.saturating_add(1);
        if recent.equal <= EQUAL_MAX {
            self.copies += u64::from(certainty != Certainty::Possible);
        }
        match certainty {
            Certainty::Certain => self.certain += 1,
            Certainty::Likely | Certainty::Possible => self.uncertain += 1,
        }
        certainty == Certainty::Certain || self.removes_likely
    }

    /// Returns whether so many packets have copies that equal packets are copies.
    pub fn removes_likely(&self) -> bool {
        self.removes_likely
            || (self.copies >= MIN_COPIES && self.copies * MIN_COPIES_FRACTION >= self.packets)
    }

    /// Returns the number of copies in the file.
    pub fn count(&self) -> u64 {
        self.certain + if self.removes_likely() { self.uncertain } else { 0 }
    }
}

fn certainty(packet: &Packet, later_ns: u64) -> Certainty {
    match &packet.body {
        Body::Tcp(_) if packet.identification != 0 || later_ns == 0 => Certainty::Certain,
        Body::Tcp(segment) if segment.length() > 0 => {
            if later_ns <= AT_ONCE_NS {
                Certainty::Certain
            } else {
                Certainty::Likely
            }
        }
        Body::Udp { .. } if packet.content != 0 => Certainty::Likely,
        _ => Certainty::Possible,
    }
}

/// Returns a hash of all that copies have in common: not the TTL and the checksums, which routers
/// and network cards change.
#[inline]
fn fingerprint(packet: &Packet) -> u64 {
    // Sums of products with odd numbers (multilinear hashing), which do not wait for each other.
    const ODD: [u64; 8] = [
        0x9e37_79b9_7f4a_7c15,
        0xbf58_476d_1ce4_e5b9,
        0x94d0_49bb_1331_11eb,
        0xc2b2_ae3d_27d4_eb4f,
        0x1656_67b1_9e37_79f9,
        0xd6e8_feb8_6659_fd93,
        0xa076_1d64_78bd_642f,
        0xe703_7ed1_a0b4_28db,
    ];
    let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let ports = u32::from(packet.from.port) << 16 | u32::from(packet.to.port);
    let mut words = [
        pair(ports, u32::from(packet.identification)),
        address(&packet.from.address),
        address(&packet.to.address),
        u64::from(packet.content),
        0,
        0,
        0,
        0,
    ];
    match &packet.body {
        Body::Tcp(segment) => {
            words[3] = pair(segment.sequence, segment.acknowledgment);
            let flags = [segment.syn, segment.ack, segment.fin, segment.rst, segment.ece];
            let flags = flags.iter().fold(0, |bits, flag| bits << 1 | u32::from(*flag));
            words[4] = pair(segment.payload_bytes, flags << 16 | u32::from(segment.window));
            words[5] = segment.stamps.map_or(0, |(value, echo)| pair(value, echo));
            for (at, (start, end)) in segment.blocks().iter().enumerate() {
                let word = &mut words[6 + at % 2];
                *word = word.wrapping_mul(ODD[0]) ^ pair(*start, *end);
            }
        }
        Body::Udp { payload_bytes, .. } => words[4] = u64::from(*payload_bytes),
    }
    let products = words.iter().zip(ODD).map(|(word, odd)| {
        let product = u128::from(word ^ odd.rotate_left(32)) * u128::from(odd);
        (product >> 64) as u64 ^ product as u64
    });
    // 0 marks an empty place.
    products.fold(0, u64::wrapping_add) | 1
}

fn address(address: &std::net::IpAddr) -> u64 {
    match address {
        std::net::IpAddr::V4(address) => u64::from(address.to_bits()),
        std::net::IpAddr::V6(address) => {
            let bits = address.to_bits();
            (bits >> 64) as u64 ^ (bits as u64).rotate_left(32)
        }
    }
}
