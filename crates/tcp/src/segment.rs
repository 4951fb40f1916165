//! Segment headers.
//!
//! Sequence numbers count segments, not bytes: all segments of a message except the last are
//! full-sized. 2³² segments are 6 TB. A run that could exceed this is rejected before it starts.

use jostle_congestion::QuickStartRate;
use jostle_units::{Ecn, HEADER_BYTES, Span, Time};

/// SACK blocks that fit in the header together with the timestamps option (RFC 2018).
pub const MAX_BLOCKS: usize = 3;

/// Size on the wire of a SYN or SYN-ACK: Ethernet, IPv4, TCP with 20 bytes of options.
pub const SYN_BYTES: u32 = 14 + 20 + 40;

/// Size of the Quick-Start option (RFC 4782): an IP option in a SYN, a TCP option in the SYN-ACK.
const QUICK_START_BYTES: u32 = 8;

/// A range of segments, excluding its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First segment.
    pub start: u32,
    /// Segment after the last.
    pub end: u32,
}

impl SackBlock {
    /// Returns the range that contains only segment `number`.
    #[inline]
    pub const fn of(number: u32) -> Self {
        Self { start: number, end: number + 1 }
    }

    /// Returns whether `other` is within this range.
    #[inline]
    pub const fn covers(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// Returns the millisecond clock of the timestamps option (`TCP_TS_HZ` 1000 in Linux), never 0.
#[inline]
pub const fn timestamp_ms(now: Time) -> u32 {
    (now.as_ns() / 1_000_000) as u32 + 1
}

/// TSval of segments from the receiver: the lower 16 bits, in milliseconds. Both ends have the same
/// clock, so that the reader of a segment can restore the upper bits. With 32 bits a packet would
/// exceed a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimestampClock(u16);

impl TimestampClock {
    /// Returns the clock at `now`.
    #[inline]
    pub const fn at(now: Time) -> Self {
        Self(timestamp_ms(now) as u16)
    }

    /// Returns the TSval of a segment that is processed at `now`. No segment travels for 65 s,
    /// after which 16 bits would be ambiguous.
    #[inline]
    pub const fn tsval_ms(self, now: Time) -> u32 {
        let now_ms = timestamp_ms(now);
        now_ms.wrapping_sub((now_ms as u16).wrapping_sub(self.0) as u32)
    }
}

/// A SYN from the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syn {
    /// Whether the sender supports ECN (RFC 3168 §6.1.1).
    pub ecn: bool,
    /// Requested rate, possibly reduced by routers (RFC 4782).
    pub rate: QuickStartRate,
    /// TSval.
    pub tsval_ms: u32,
}

/// A SYN-ACK from the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynAck {
    /// Whether the end that sends it also sends data.
    pub tag: AckTag,
    /// Whether both ends support ECN.
    pub ecn: bool,
    /// Granted rate (RFC 4782), or the requested rate.
    pub rate: QuickStartRate,
    /// Whether it requests a rate for the end that sends it.
    pub requests_rate: bool,
    /// TSval.
    pub clock: TimestampClock,
    /// TSecr.
    pub tsecr_ms: u32,
    /// Receive window in segments.
    pub window: u32,
}

/// Measurements that the network writes into a data segment. TCP does not read them. They use the
/// space that SACK blocks occupy in an ACK, as bytes, so that they do not change the alignment of a
/// segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransitTimes {
    left_ns: [u8; 8],
    waited_ns: [u8; 8],
}

impl TransitTimes {
    /// The value for a segment that has not left its host.
    pub const NONE: Self = Self { left_ns: [0; 8], waited_ns: [0; 8] };

    /// Records the departure from the host.
    #[inline]
    pub const fn leave(&mut self, now: Time) {
        self.left_ns = now.as_ns().to_ne_bytes();
    }

    /// Adds time spent in a queue.
    #[inline]
    pub const fn wait(&mut self, span: Span) {
        let sum_ns = u64::from_ne_bytes(self.waited_ns) + span.as_ns();
        self.waited_ns = sum_ns.to_ne_bytes();
    }

    /// Returns the time of departure.
    #[inline]
    pub const fn departure_time(&self) -> Time {
        Time::from_ns(u64::from_ne_bytes(self.left_ns))
    }

    /// Returns the total time spent in queues.
    #[inline]
    pub const fn queueing_delay(&self) -> Span {
        Span::from_ns(u64::from_ne_bytes(self.waited_ns))
    }
}

/// A data segment from the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// CWR: the sender reduced its window (RFC 3168).
    pub cwr: bool,
    /// Payload; 0 for a window probe.
    pub payload_bytes: u16,
    /// Segment number.
    pub number: u32,
    /// TSval.
    pub tsval_ms: u32,
    /// TSecr.
    pub tsecr_ms: u32,
    /// Measurements of the network.
    pub trip: TransitTimes,
}

/// Data of an end that also receives data, with the ACK of the data that it received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataWithAck {
    /// The data. Without payload, a window probe.
    pub data: Data,
    /// Where the carrier of the segment keeps its [`Ack`], which would not fit into a cache line.
    pub place: u32,
    /// Size of the options of the ACK, in addition to the timestamps option.
    pub option_bytes: u8,
    /// ECN field of the IP header at arrival, for a carrier that does not keep the header.
    pub ecn: Ecn,
}

/// The byte that distinguishes an ACK from other segments. The tag of [`Segment`] must be within
/// its largest variant, because a packet would otherwise exceed a cache line. If the compiler
/// stored it in the unused values of a `bool`, it would be mixed with that flag, which costs 0.5 %
/// per packet. The first value of this enum is the number of [`Segment::Ack`] among the variants.
/// The values below and above are free, so that the byte is a plain tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum AckTag {
    /// The end that sends it only receives data.
    #[default]
    Ack = 4,
    /// The end that sends it also sends data: its ACKs take the path of its data.
    OfSender = 5,
    /// The third segment of a handshake, from an end that only sends data.
    OfHandshake = 6,
}

/// AccECN feedback of an ACK (RFC 9768): the ACE field of the header, which counts marked packets
/// modulo 8, and the AccECN option, which counts them by their bytes modulo 2²⁴. Because the sender
/// counts full-sized segments, so does the option here, modulo 2¹⁴. A connection without
/// AccECN has the default value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccEcnFeedback(u16);

impl AccEcnFeedback {
    const HAS_OPTION: u16 = 1 << 15;
    const IS_USED: u16 = 1 << 14;
    const COUNTER_MASK: u16 = Self::IS_USED - 1;
    const ACE_MASK: u16 = 7;

    /// The value without AccECN.
    pub const NONE: Self = Self(0);

    /// Returns the feedback of `marks` marked packets by the header alone.
    #[inline]
    pub const fn in_header(marks: u64) -> Self {
        Self(marks as u16 & Self::ACE_MASK | Self::IS_USED)
    }

    /// Returns the feedback of `marks` marked packets by the header and the option.
    #[inline]
    pub const fn with_option(marks: u64) -> Self {
        Self(marks as u16 & Self::COUNTER_MASK | Self::IS_USED | Self::HAS_OPTION)
    }

    /// Returns the header's counter, 0 … 7.
    #[inline]
    pub const fn ace(self) -> u32 {
        (self.0 & Self::ACE_MASK) as u32
    }

    /// Returns the packets that the option counts beyond `known`; `None` without the option.
    #[inline]
    pub const fn option_beyond(self, known: u64) -> Option<u32> {
        if self.0 & Self::HAS_OPTION == 0 {
            return None;
        }
        Some((self.0.wrapping_sub(known as u16) & Self::COUNTER_MASK) as u32)
    }

    /// Returns this feedback without the option.
    #[inline]
    pub const fn without_option(self) -> Self {
        Self(self.0 & (Self::ACE_MASK | Self::IS_USED))
    }

    /// Returns the bytes of the option next to `blocks` SACK blocks. Two blocks leave space for two
    /// of its three counters, of which the marks' is one (`tcp_options_fit_accecn`).
    #[inline]
    const fn option_bytes(self, blocks: u8) -> u32 {
        match (self.0 & Self::HAS_OPTION, blocks) {
            (0, _) => 0,
            (_, 2) => 8,
            _ => 12,
        }
    }

    /// Returns whether the connection uses AccECN.
    #[inline]
    pub const fn is_used(self) -> bool {
        self.0 & Self::IS_USED != 0
    }

    /// Returns the option's counter; `None` without the option.
    #[inline]
    pub const fn option(self) -> Option<u16> {
        match self.0 & Self::HAS_OPTION {
            0 => None,
            _ => Some(self.0 & Self::COUNTER_MASK),
        }
    }

    /// Returns the word that changes with the feedback.
    #[inline]
    pub const fn bits(self) -> u16 {
        self.0
    }
}

/// An ACK from the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// The tag of [`Segment`].
    pub tag: AckTag,
    /// ECE: marked packets have arrived (RFC 3168).
    pub ece: bool,
    /// Whether the first block reports a duplicate (RFC 2883).
    pub duplicate: bool,
    /// Number of blocks.
    pub block_count: u8,
    /// Feedback of marks by AccECN (RFC 9768).
    pub accecn: AccEcnFeedback,
    /// TSval.
    pub clock: TimestampClock,
    /// First segment that has not arrived.
    pub number: u32,
    /// TSecr.
    pub tsecr_ms: u32,
    /// Receive window in segments beyond `number`.
    pub window: u32,
    /// Segments that arrived out of order, most recent first.
    pub blocks: [SackBlock; MAX_BLOCKS],
}

impl Ack {
    /// Returns the SACK blocks.
    #[inline]
    pub fn blocks(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.block_count)]
    }

    /// Returns the size of its options in addition to the timestamps option. A SACK option of n blocks
    /// takes 2 + 8·n bytes, padded to a multiple of 4.
    #[inline]
    pub const fn option_bytes(&self) -> u32 {
        let option_bytes = self.accecn.option_bytes(self.block_count);
        if self.block_count == 0 {
            option_bytes
        } else {
            4 + 8 * self.block_count as u32 + option_bytes
        }
    }
}

/// The header of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// SYN.
    Syn(Syn),
    /// SYN-ACK.
    SynAck(SynAck),
    /// Data.
    Data(Data),
    /// Data with an acknowledgement.
    DataWithAck(DataWithAck),
    /// An acknowledgement.
    Ack(Ack),
}

impl Segment {
    /// Returns the size on the wire, including the link header.
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
            Self::DataWithAck(DataWithAck { data, option_bytes, .. }) => {
                HEADER_BYTES + data.payload_bytes as u32 + *option_bytes as u32
            }
            Self::Ack(ack) => HEADER_BYTES + ack.option_bytes(),
        }
    }
}

#[cfg(test)]
pub(crate) mod test_support;

#[cfg(test)]
mod tests {
    use super::*;

    const ACK: Ack = test_support::ack(0, 0, 0, false);

    /// A packet of the simulator has 20 bytes beside it in a cache line.
    #[test]
    fn a_segment_leaves_room_in_a_cache_line() {
        assert_eq!(size_of::<Segment>(), 44);
    }

    #[test]
    fn the_clock_of_an_ack_is_completed_by_whoever_sees_it() {
        for (sent_ms, seen_ms) in [(0, 0), (0, 40), (65_530, 65_600), (131_071, 190_000)] {
            let at = |ms: u64| Time::from_ns(ms * 1_000_000);
            let clock = TimestampClock::at(at(sent_ms));
            assert_eq!(clock.tsval_ms(at(seen_ms)), timestamp_ms(at(sent_ms)));
        }
    }

    #[test]
    fn a_trip_is_remembered_to_the_nanosecond() {
        let mut trip = TransitTimes::NONE;
        trip.leave(Time::from_ns((7 << 32) + 5));
        for ns in [u64::from(u32::MAX), 3, 1 << 40] {
            trip.wait(Span::from_ns(ns));
        }
        assert_eq!(trip.departure_time(), Time::from_ns((7 << 32) + 5));
        assert_eq!(trip.queueing_delay(), Span::from_ns((1 << 40) + (1 << 32) + 2));
    }

    #[test]
    fn the_header_counts_marks_modulo_eight_and_the_option_further() {
        let (header, option) = (AccEcnFeedback::in_header(21), AccEcnFeedback::with_option(21));
        assert_eq!((header.ace(), header.option_beyond(4)), (5, None));
        assert_eq!((option.ace(), option.option_beyond(4)), (5, Some(17)));
        assert_eq!(option.without_option(), header);
        assert_eq!(AccEcnFeedback::with_option(16_390).option_beyond(16_380), Some(10));
        assert!(header.is_used() && !AccEcnFeedback::default().is_used());
    }

    /// 40 bytes of options: 12 for timestamps, 12 for AccECN, and the rest for SACK blocks.
    #[test]
    fn the_accecn_option_has_its_size() {
        let bytes =
            |block_count, accecn| Segment::Ack(Ack { block_count, accecn, ..ACK }).wire_bytes();
        let option = AccEcnFeedback::with_option(0);
        assert_eq!([0, 1, 2].map(|blocks| bytes(blocks, option)), [78, 90, 94]);
        assert_eq!(bytes(2, option.without_option()), 86);
    }

    #[test]
    fn sizes_are_those_of_ethernet_frames() {
        assert_eq!(Segment::Data(test_support::data(0, 1448, 0, false)).wire_bytes(), 1514);
        assert_eq!(Segment::Ack(ACK).wire_bytes(), 66);
        assert_eq!(Segment::Ack(Ack { block_count: 3, ..ACK }).wire_bytes(), 66 + 28);
        let syn = |rate| Segment::Syn(Syn { ecn: false, rate, tsval_ms: 1 });
        assert_eq!(syn(QuickStartRate::NONE).wire_bytes(), 74);
        assert_eq!(syn(QuickStartRate::from_bits(1)).wire_bytes(), 82);
    }
}
