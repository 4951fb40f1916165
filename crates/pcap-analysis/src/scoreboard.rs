//! Scoreboard of a captured sender: outstanding data, one entry per packet on the wire. Segments
//! larger than the MSS (TSO) are split into packets.

use std::collections::VecDeque;

use crate::byte_ranges::{Range, Ranges};

/// Maximum number of tracked packets, 1.4 GB in flight. More packets can only be outstanding if the
/// capture contains no ACKs.
const PIECES_MAX: usize = 1 << 20;

/// DupThresh (RFC 6675 §4): a packet is lost once this many packets above it were SACKed.
const REORDERING_PACKETS: u64 = 3;

/// A packet that was sent and not yet cumulatively acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutstandingPacket {
    pub start: u64,
    pub length: u32,
    pub first_ns: u64,
    pub last_ns: u64,
    pub first_stamp: u32,
    pub last_stamp: u32,
    pub times: u16,
    pub is_sacked: bool,
    is_lost: bool,
}

impl OutstandingPacket {
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    fn timed_from(&self, sent_ns: u64) -> TimedPacket {
        TimedPacket { sent_ns, length: self.length }
    }
}

/// A packet that yields an RTT sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimedPacket {
    pub sent_ns: u64,
    /// Payload bytes.
    pub length: u32,
}

/// Packets that one ACK reports as arrived for the first time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NewlyAcked {
    pub packets: u32,
    pub bytes: u64,
    /// Whether a cumulatively acknowledged packet was retransmitted.
    pub repeated: bool,
    /// Last cumulatively acknowledged packet that was sent once.
    pub acknowledged: Option<TimedPacket>,
    /// Last SACKed packet that was sent once.
    pub sacked: Option<TimedPacket>,
    /// Packet whose time stamp the ACK echoes.
    pub echoed: Option<TimedPacket>,
}

impl NewlyAcked {
    /// Returns the packet whose RTT the ACK samples, as in Linux
    /// (`tcp_input.c::tcp_clean_rtx_queue`, `tcp_input.c::tcp_ack_update_rtt`): the last SACKed
    /// packet that was sent once; else the last cumulatively acknowledged one, if none of them was
    /// retransmitted; else the packet whose time stamp was echoed.
    pub fn timed(&self) -> Option<TimedPacket> {
        let in_order = self.acknowledged.filter(|_| !self.repeated);
        self.sacked.or(in_order).or(self.echoed)
    }
}

/// Outstanding packets of a flow, in sequence order.
#[derive(Clone, Debug, Default)]
pub(crate) struct CapturedScoreboard {
    pieces: VecDeque<OutstandingPacket>,
    sacked: Ranges,
    bytes: u64,
    sacked_bytes: u64,
    lost_bytes: u64,
    /// Packets below this number were checked for loss.
    judged: u64,
}

impl CapturedScoreboard {
    /// Returns the bytes in flight: sent, and neither acknowledged, SACKed nor lost.
    pub fn in_flight_bytes(&self) -> u64 {
        self.bytes - self.sacked_bytes - self.lost_bytes
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Returns the end of the highest SACKed byte.
    pub fn highest_sacked(&self) -> Option<u64> {
        self.sacked.highest()
    }

    /// Returns the outstanding packet that contains a byte.
    pub fn piece(&self, byte: u64) -> Option<&OutstandingPacket> {
        self.pieces.get(self.index(byte)).filter(|piece| piece.start <= byte)
    }

    fn index(&self, byte: u64) -> usize {
        self.pieces.partition_point(|piece| piece.end() <= byte)
    }

    /// Adds a packet of data that was not yet captured.
    pub fn insert(&mut self, start: u64, length: u32, now_ns: u64, stamp: u32) {
        if self.pieces.len() >= PIECES_MAX {
            self.drop_first();
        }
        self.bytes += u64::from(length);
        let is_last = self.pieces.back().is_none_or(|last| last.end() <= start);
        let at = if is_last { self.pieces.len() } else { self.index(start) };
        self.pieces.insert(
            at,
            OutstandingPacket {
                start,
                length,
                first_ns: now_ns,
                last_ns: now_ns,
                first_stamp: stamp,
                last_stamp: stamp,
                times: 1,
                is_sacked: false,
                is_lost: false,
            },
        );
    }

    fn drop_first(&mut self) -> Option<OutstandingPacket> {
        let piece = self.pieces.pop_front()?;
        let length = u64::from(piece.length);
        self.bytes -= length;
        self.sacked_bytes -= if piece.is_sacked { length } else { 0 };
        self.lost_bytes -= if piece.is_lost { length } else { 0 };
        Some(piece)
    }

    /// Marks the packets in `start..end` as retransmitted. Returns whether it was the first
    /// retransmission of all of them.
    pub fn repeat(&mut self, start: u64, end: u64, now_ns: u64, stamp: u32) -> bool {
        let mut first_time = true;
        let from = self.index(start);
        for piece in self.pieces.range_mut(from..).take_while(|piece| piece.start < end) {
            first_time &= piece.times == 1;
            piece.times = piece.times.saturating_add(1);
            piece.last_ns = now_ns;
            piece.last_stamp = stamp;
            if std::mem::take(&mut piece.is_lost) {
                self.lost_bytes -= u64::from(piece.length);
            }
        }
        first_time
    }

    /// Marks the packets in `start..end` as SACKed.
    pub fn sack(&mut self, start: u64, end: u64, arrived: &mut NewlyAcked) {
        let Self { pieces, sacked, sacked_bytes, lost_bytes, .. } = self;
        let mut parts = [(0, 0); 2];
        let mut count = 0;
        // If a block adds more than two ranges, ACKs are missing in the capture. Then the second
        // range covers all further ones.
        let merged_range = sacked.add(Range { start, end, ..Range::default() }, |from, to| {
            if count < parts.len() {
                parts[count] = (from, to);
                count += 1;
            } else {
                parts[1].1 = to;
            }
        });
        let Some((first, last)) = merged_range else { return };
        for &(from, to) in &parts[..count] {
            let index = pieces.partition_point(|piece| piece.end() <= from);
            for piece in pieces.range_mut(index..).take_while(|piece| piece.start < to) {
                // A partly SACKed packet counts as outstanding.
                if piece.is_sacked || piece.start < first || piece.end() > last {
                    continue;
                }
                piece.is_sacked = true;
                let length = u64::from(piece.length);
                *sacked_bytes += length;
                if std::mem::take(&mut piece.is_lost) {
                    *lost_bytes -= length;
                }
                arrived.packets += 1;
                arrived.bytes += length;
                if piece.times == 1 {
                    arrived.sacked = Some(piece.timed_from(piece.last_ns));
                }
            }
        }
    }

    /// Removes the packets below `end`, which an ACK acknowledges. `echo` is its echoed time stamp.
    pub fn acknowledge(&mut self, end: u64, echo: Option<u32>, arrived: &mut NewlyAcked) {
        while let Some(piece) = self.pieces.front()
            && piece.end() <= end
        {
            let Some(piece) = self.drop_first() else { break };
            arrived.repeated |= piece.times > 1;
            if let Some(echo) = echo {
                if echo == piece.last_stamp {
                    arrived.echoed = Some(piece.timed_from(piece.last_ns));
                } else if echo == piece.first_stamp {
                    arrived.echoed = Some(piece.timed_from(piece.first_ns));
                }
            }
            if piece.is_sacked {
                continue;
            }
            arrived.packets += 1;
            arrived.bytes += u64::from(piece.length);
            if piece.times == 1 {
                arrived.acknowledged = Some(piece.timed_from(piece.last_ns));
            }
        }
        self.sacked.forget_before(end);
    }

    /// Marks packets as lost by DupThresh. Returns how many were marked.
    pub fn judge(&mut self, mss_bytes: u32) -> u32 {
        let Some(highest) = self.sacked.highest() else { return 0 };
        let until = highest.saturating_sub(REORDERING_PACKETS * u64::from(mss_bytes));
        if until <= self.judged {
            return 0;
        }
        let (from, mut lost) = (self.index(self.judged), 0);
        for piece in self.pieces.range_mut(from..).take_while(|piece| piece.end() <= until) {
            if !piece.is_sacked && piece.times == 1 && !piece.is_lost {
                piece.is_lost = true;
                self.lost_bytes += u64::from(piece.length);
                lost += 1;
            }
        }
        self.judged = until;
        lost
    }
}
