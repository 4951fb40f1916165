//! The headers of segments.
//!
//! Sequence numbers count segments, not bytes: every segment but the last of a message is full
//! sized, and 2³² of them are 6 TB. A run that could exceed that is refused beforehand.

use jostle_control::RateCode;
use jostle_units::{HEADER_BYTES, Span, Time};

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

/// TSval of what the receiver sends: its low bits, in milliseconds. Both ends have the same clock,
/// and whoever sees the segment completes them; all 32 would make a packet outgrow a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock(u16);

impl Clock {
    /// What the clock shows at `now`.
    #[inline]
    pub const fn at(now: Time) -> Self {
        Self(timestamp_ms(now) as u16)
    }

    /// TSval of a segment that is seen at `now`: none travels for the 65 s after which its 16 bits
    /// would be ambiguous.
    #[inline]
    pub const fn tsval_ms(self, now: Time) -> u32 {
        let now_ms = timestamp_ms(now);
        now_ms.wrapping_sub((now_ms as u16).wrapping_sub(self.0) as u32)
    }
}

/// Opens the connection, from the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syn {
    /// ECN is understood (RFC 3168 §6.1.1).
    pub ecn: bool,
    /// Rate asked for, as lowered on the way (RFC 4782).
    pub rate: RateCode,
    /// TSval.
    pub tsval_ms: u32,
}

/// Answers the SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynAck {
    /// ECN is agreed on.
    pub ecn: bool,
    /// Rate that was granted (RFC 4782).
    pub rate: RateCode,
    /// TSval.
    pub clock: Clock,
    /// TSecr.
    pub tsecr_ms: u32,
    /// Segments that the receiver can take.
    pub window: u32,
}

/// What a network notes in a segment of data on its way, for those who measure it; no TCP reads it.
/// It lies in the room that an ACK's blocks need, in bytes, so that a segment is as aligned as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trip {
    left_ns: [u8; 8],
    waited_ns: [u8; 8],
}

impl Trip {
    /// A segment that has not left its host.
    pub const NONE: Self = Self { left_ns: [0; 8], waited_ns: [0; 8] };

    /// It leaves its host.
    #[inline]
    pub const fn leave(&mut self, now: Time) {
        self.left_ns = now.as_ns().to_ne_bytes();
    }

    /// It has waited in a queue.
    #[inline]
    pub const fn wait(&mut self, span: Span) {
        let sum_ns = u64::from_ne_bytes(self.waited_ns) + span.as_ns();
        self.waited_ns = sum_ns.to_ne_bytes();
    }

    /// When it left.
    #[inline]
    pub const fn left(&self) -> Time {
        Time::from_ns(u64::from_ne_bytes(self.left_ns))
    }

    /// For how long it has waited in queues.
    #[inline]
    pub const fn waited(&self) -> Span {
        Span::from_ns(u64::from_ne_bytes(self.waited_ns))
    }
}

/// Data, from the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// CWR: the window was reduced (RFC 3168).
    pub cwr: bool,
    /// Payload; none probes the window.
    pub payload_bytes: u16,
    /// Its number.
    pub number: u32,
    /// TSval.
    pub tsval_ms: u32,
    /// TSecr.
    pub tsecr_ms: u32,
    /// What the network notes.
    pub trip: Trip,
}

/// The byte by which an ACK is told from other segments. The tag of [`Segment`] has to lie within its
/// largest variant, or a packet would outgrow a cache line; in what a `bool` leaves unused it is
/// mixed with the flag, which costs every packet 0.5 %. Of this byte one value is an ACK's and the
/// others are free, and the value is the number of [`Segment::Ack`] among the variants: what lies
/// there is a plain tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum AckTag {
    /// The only one.
    #[default]
    Ack = 3,
}

/// An ACK, from the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Tells [`Segment`] that it is one.
    pub tag: AckTag,
    /// ECE: marked packets have come in (RFC 3168).
    pub ece: bool,
    /// The first block is a duplicate (RFC 2883).
    pub duplicate: bool,
    /// Number of blocks.
    pub block_count: u8,
    /// Packets that came in marked, modulo 2¹⁶ (RFC 9768).
    pub marks: u16,
    /// TSval.
    pub clock: Clock,
    /// The first segment that has not arrived.
    pub number: u32,
    /// TSecr.
    pub tsecr_ms: u32,
    /// Segments that the receiver can take beyond `number`.
    pub window: u32,
    /// Segments that arrived out of order, most recent first.
    pub blocks: [Block; MAX_BLOCKS],
}

impl Ack {
    /// The blocks.
    #[inline]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks[..usize::from(self.block_count)]
    }

    /// How many more packets came in marked than the `known` of which earlier ACKs told.
    #[inline]
    pub const fn newly_marked(&self, known: u64) -> u16 {
        let news = self.marks.wrapping_sub(known as u16);
        // An ACK that later ones overtook has a smaller counter, so the difference wraps.
        if news < 1 << 15 { news } else { 0 }
    }
}

/// A segment of TCP: its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Opens the connection.
    Syn(Syn),
    /// Answers it.
    SynAck(SynAck),
    /// Data.
    Data(Data),
    /// An acknowledgement.
    Ack(Ack),
}

impl Segment {
    /// Size on the wire, link header included.
    #[inline]
    pub const fn wire_bytes(&self) -> u32 {
        match self {
            Self::Syn(Syn { rate, .. }) | Self::SynAck(SynAck { rate, .. }) => {
                if rate.is_none() {
                    SYN_BYTES
                } else {
                    SYN_BYTES + QUICK_START_BYTES
                }
            }
            Self::Data(data) => HEADER_BYTES + data.payload_bytes as u32,
            // A SACK option of n blocks takes 2 + 8·n bytes, padded to a multiple of 4.
            Self::Ack(Ack { block_count: 0, .. }) => HEADER_BYTES,
            Self::Ack(ack) => HEADER_BYTES + 4 + 8 * ack.block_count as u32,
        }
    }
}

#[cfg(test)]
pub(crate) mod fixtures;

#[cfg(test)]
mod tests {
    use super::*;

    const ACK: Ack = fixtures::ack(0, 0, 0, false);

    /// A packet of the simulator has 20 bytes beside it in a cache line.
    #[test]
    fn a_segment_leaves_room_in_a_cache_line() {
        assert_eq!(size_of::<Segment>(), 44);
    }

    #[test]
    fn the_clock_of_an_ack_is_completed_by_whoever_sees_it() {
        for (sent_ms, seen_ms) in [(0, 0), (0, 40), (65_530, 65_600), (131_071, 190_000)] {
            let at = |ms: u64| Time::from_ns(ms * 1_000_000);
            let clock = Clock::at(at(sent_ms));
            assert_eq!(clock.tsval_ms(at(seen_ms)), timestamp_ms(at(sent_ms)));
        }
    }

    #[test]
    fn a_trip_is_remembered_to_the_nanosecond() {
        let mut trip = Trip::NONE;
        trip.leave(Time::from_ns((7 << 32) + 5));
        for ns in [u64::from(u32::MAX), 3, 1 << 40] {
            trip.wait(Span::from_ns(ns));
        }
        assert_eq!(trip.left(), Time::from_ns((7 << 32) + 5));
        assert_eq!(trip.waited(), Span::from_ns((1 << 40) + (1 << 32) + 2));
    }

    #[test]
    fn counts_of_marks_wrap_and_do_not_go_back() {
        let told = |marks, known| Ack { marks, ..ACK }.newly_marked(known);
        assert_eq!(told(7, 5), 2);
        assert_eq!(told(1, 65_535), 2);
        assert_eq!(told(4, 5), 0, "an ACK that was overtaken");
    }

    #[test]
    fn sizes_are_those_of_ethernet_frames() {
        assert_eq!(Segment::Data(fixtures::data(0, 1448, 0, false)).wire_bytes(), 1514);
        assert_eq!(Segment::Ack(ACK).wire_bytes(), 66);
        assert_eq!(Segment::Ack(Ack { block_count: 3, ..ACK }).wire_bytes(), 66 + 28);
        let syn = |rate| Segment::Syn(Syn { ecn: false, rate, tsval_ms: 1 });
        assert_eq!(syn(RateCode::NONE).wire_bytes(), 74);
        assert_eq!(syn(RateCode::from_bits(1)).wire_bytes(), 82);
    }
}
