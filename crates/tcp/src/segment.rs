//! The header that travels in a packet.
//!
//! Sequence numbers count segments, not bytes: every segment but the last of a message is full
//! sized, and 2³² of them are 6 TB. A run that could exceed that is refused beforehand.

use jostle_control::RateCode;
use jostle_units::{HEADER_BYTES, Time};

/// SACK blocks that fit beside the timestamps option (RFC 2018).
pub const MAX_BLOCKS: usize = 3;

/// Size on the wire of a SYN or SYN-ACK: Ethernet, IPv4, TCP with 20 bytes of options.
pub const SYN_BYTES: u32 = 14 + 20 + 40;

/// Size of Quick-Start's option (RFC 4782): of IP in a SYN, of TCP in the SYN-ACK that answers it.
const QUICK_START_BYTES: u32 = 8;

/// A range of segments, end excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The first.
    pub start: u32,
    /// The one after the last.
    pub end: u32,
}

impl Block {
    /// The segment `number` alone.
    #[inline]
    pub const fn of(number: u32) -> Self {
        Self { start: number, end: number + 1 }
    }

    /// Whether `other` lies inside.
    #[inline]
    pub const fn covers(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// The millisecond clock of the timestamps option (`TCP_TS_HZ` 1000 in Linux), never 0.
#[inline]
pub const fn timestamp_ms(now: Time) -> u32 {
    (now.as_ns() / 1_000_000) as u32 + 1
}

/// What kind of segment it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Opens the connection, from the sender.
    Syn,
    /// Answers it.
    SynAck,
    /// Data, from the sender.
    Data,
    /// An ACK, from the receiver.
    Ack,
}

/// A TCP header. One layout serves both directions so that packets have one size.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// What it is for.
    pub kind: Kind,
    /// Data: CWR (RFC 3168). ACK: ECE. SYN and SYN-ACK: ECN is understood.
    pub ecn_flag: bool,
    /// ACK: the first block is a duplicate (RFC 2883).
    pub duplicate: bool,
    /// ACK: number of blocks.
    pub block_count: u8,
    /// Data: payload bytes. ACK: packets that came in marked, modulo 2¹⁶ (RFC 9768).
    /// SYN and SYN-ACK: see [`rate`](Self::rate).
    pub payload: u16,
    /// ACK and SYN-ACK: the low bits of TSval, in milliseconds. The sender has the same clock and
    /// completes them; all 32 would make the packet outgrow a cache line.
    pub clock: u16,
    /// Data: its number. ACK: the first segment that has not arrived.
    pub number: u32,
    /// TSval of data and SYN, TSecr of ACK and SYN-ACK, in milliseconds as Linux ticks.
    pub timestamp_ms: u32,
    /// ACK: segments that the receiver can take beyond `number`. Data, where a window would mean
    /// nothing: TSecr.
    pub window: u32,
    /// ACK: segments that arrived out of order, most recent first.
    pub blocks: [Block; MAX_BLOCKS],
}

impl Segment {
    const EMPTY: Self = Self {
        kind: Kind::Data,
        ecn_flag: false,
        duplicate: false,
        block_count: 0,
        payload: 0,
        clock: 0,
        number: 0,
        timestamp_ms: 0,
        window: 0,
        blocks: [Block { start: 0, end: 0 }; MAX_BLOCKS],
    };

    /// A SYN that asks for `rate`.
    pub const fn syn(ecn: bool, timestamp_ms: u32, rate: RateCode) -> Self {
        let syn = Self { kind: Kind::Syn, ecn_flag: ecn, timestamp_ms, ..Self::EMPTY };
        syn.with_rate(rate)
    }

    /// The answer to `syn`, which agrees to ECN or not and offers `window` segments.
    pub const fn syn_ack(syn: &Self, ecn: bool, window: u32) -> Self {
        Self { kind: Kind::SynAck, window, ecn_flag: ecn, ..*syn }
    }

    /// SYN: rate asked for, as lowered on the way. SYN-ACK: what was granted (RFC 4782). It has the
    /// place of the payload's size, which neither has: the packet would outgrow a cache line.
    #[inline]
    pub const fn rate(&self) -> RateCode {
        RateCode::from_bits(self.payload as u8)
    }

    /// The SYN with another [`rate`](Self::rate).
    #[inline]
    pub const fn with_rate(self, rate: RateCode) -> Self {
        Self { payload: rate.to_bits() as u16, ..self }
    }

    /// A data segment.
    #[inline]
    pub const fn data(number: u32, payload: u16, timestamp_ms: u32, cwr: bool) -> Self {
        Self { number, payload, timestamp_ms, ecn_flag: cwr, ..Self::EMPTY }
    }

    /// The data segment, as it echoes the timestamp that arrived last.
    #[inline]
    pub const fn echoing(self, tsecr_ms: u32) -> Self {
        Self { window: tsecr_ms, ..self }
    }

    /// Which timestamp of the receiver a data segment echoes.
    #[inline]
    pub const fn tsecr_ms(&self) -> u32 {
        self.window
    }

    /// An ACK without blocks.
    #[inline]
    pub const fn ack(number: u32, timestamp_ms: u32, window: u32, ece: bool) -> Self {
        Self { kind: Kind::Ack, number, timestamp_ms, window, ecn_flag: ece, ..Self::EMPTY }
    }

    /// How many more packets came in marked than the `known` of which earlier ACKs told.
    #[inline]
    pub const fn newly_marked(&self, known: u64) -> u16 {
        let news = self.payload.wrapping_sub(known as u16);
        // An ACK that was overtaken knows of fewer.
        if news < 1 << 15 { news } else { 0 }
    }

    /// The ACK or SYN-ACK leaves with a timestamp of its own.
    #[inline]
    pub fn stamp(&mut self, now: Time) {
        self.clock = timestamp_ms(now) as u16;
    }

    /// TSval of an ACK or SYN-ACK that is seen at `now`: none travels for the 65 s after which its
    /// 16 bits would be ambiguous.
    #[inline]
    pub fn tsval_ms(&self, now: Time) -> u32 {
        let now_ms = timestamp_ms(now);
        now_ms.wrapping_sub(u32::from((now_ms as u16).wrapping_sub(self.clock)))
    }

    /// The blocks of an ACK.
    #[inline]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks[..usize::from(self.block_count)]
    }

    /// Size on the wire, link header included.
    #[inline]
    pub const fn wire_bytes(&self) -> u32 {
        match self.kind {
            Kind::Syn | Kind::SynAck if self.rate().is_none() => SYN_BYTES,
            Kind::Syn | Kind::SynAck => SYN_BYTES + QUICK_START_BYTES,
            Kind::Data => HEADER_BYTES + self.payload as u32,
            // A SACK option of n blocks takes 2 + 8·n bytes, padded to a multiple of 4.
            Kind::Ack if self.block_count == 0 => HEADER_BYTES,
            Kind::Ack => HEADER_BYTES + 4 + 8 * self.block_count as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of the simulator has 20 bytes beside it in a cache line.
    #[test]
    fn a_segment_leaves_room_in_a_cache_line() {
        assert_eq!(size_of::<Segment>(), 44);
    }

    #[test]
    fn the_clock_of_an_ack_is_completed_by_whoever_sees_it() {
        for (sent_ms, seen_ms) in [(0, 0), (0, 40), (65_530, 65_600), (131_071, 190_000)] {
            let at = |ms: u64| Time::from_ns(ms * 1_000_000);
            let mut ack = Segment::ack(0, 0, 0, false);
            ack.stamp(at(sent_ms));
            assert_eq!(ack.tsval_ms(at(seen_ms)), timestamp_ms(at(sent_ms)));
        }
    }

    #[test]
    fn sizes_are_those_of_ethernet_frames() {
        assert_eq!(Segment::data(0, 1448, 0, false).wire_bytes(), 1514);
        let mut ack = Segment::ack(0, 0, 0, false);
        assert_eq!(ack.wire_bytes(), 66);
        ack.block_count = 3;
        assert_eq!(ack.wire_bytes(), 66 + 28);
    }
}
