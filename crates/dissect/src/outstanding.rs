//! What a sender has sent and not heard of yet: one piece per packet, as the network carries them,
//! whatever a card was to cut.

use std::collections::VecDeque;

use crate::ranges::{Range, Ranges};

/// Most packets that are remembered: 1.4 GB in flight. What has more has no ACKs in the capture.
const PIECES_MAX: usize = 1 << 20;

/// RFC 6675 §4: with DupThresh packets SACKed above it, a packet is lost.
const REORDERING_PACKETS: u64 = 3;

/// A packet that is outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
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

impl Piece {
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    fn timed_from(&self, sent_ns: u64) -> Timed {
        Timed { sent_ns, length: self.length }
    }
}

/// A packet that an ACK tells the round trip of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timed {
    pub sent_ns: u64,
    /// Its payload.
    pub length: u32,
}

/// What an ACK newly says to have arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    pub packets: u32,
    pub bytes: u64,
    /// Something that is acknowledged in order was sent more than once.
    pub repeated: bool,
    /// The last of what was sent once, by its number.
    pub acknowledged: Option<Timed>,
    /// The same of what was SACKed.
    pub sacked: Option<Timed>,
    /// What the ACK echoes the time stamp of.
    pub echoed: Option<Timed>,
}

impl Arrived {
    /// The packet whose RTT the ACK tells, as Linux takes it (`tcp_clean_rtx_queue`, `tcp_ack_update_rtt`):
    /// the last one that was sent once, SACKed, or acknowledged in order if nothing that was sent again
    /// was; else the one whose time stamp comes back.
    pub fn timed(&self) -> Option<Timed> {
        let in_order = self.acknowledged.filter(|_| !self.repeated);
        self.sacked.or(in_order).or(self.echoed)
    }
}

/// All that is outstanding.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outstanding {
    pieces: VecDeque<Piece>,
    sacked: Ranges,
    bytes: u64,
    sacked_bytes: u64,
    lost_bytes: u64,
    /// Pieces before it were looked at for losses.
    judged: u64,
}

impl Outstanding {
    /// Bytes that are in the network: sent, and neither acknowledged, nor SACKed, nor lost.
    pub fn in_flight_bytes(&self) -> u64 {
        self.bytes - self.sacked_bytes - self.lost_bytes
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// End of the highest byte that was SACKed.
    pub fn highest_sacked(&self) -> Option<u64> {
        self.sacked.highest()
    }

    /// The piece that a byte is in.
    pub fn piece(&self, byte: u64) -> Option<&Piece> {
        self.pieces.get(self.index(byte)).filter(|piece| piece.start <= byte)
    }

    fn index(&self, byte: u64) -> usize {
        self.pieces.partition_point(|piece| piece.end() <= byte)
    }

    /// New data leave.
    pub fn push(&mut self, start: u64, length: u32, now_ns: u64, stamp: u32) {
        if self.pieces.len() >= PIECES_MAX {
            self.drop_first();
        }
        self.bytes += u64::from(length);
        self.pieces.push_back(Piece {
            start,
            length,
            first_ns: now_ns,
            last_ns: now_ns,
            first_stamp: stamp,
            last_stamp: stamp,
            times: 1,
            is_sacked: false,
            is_lost: false,
        });
    }

    fn drop_first(&mut self) -> Option<Piece> {
        let piece = self.pieces.pop_front()?;
        let length = u64::from(piece.length);
        self.bytes -= length;
        self.sacked_bytes -= if piece.is_sacked { length } else { 0 };
        self.lost_bytes -= if piece.is_lost { length } else { 0 };
        Some(piece)
    }

    /// `start..end` leave again. Returns whether that was the first time for all of them.
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

    /// A receiver has `start..end`.
    pub fn sack(&mut self, start: u64, end: u64, arrived: &mut Arrived) {
        let Self { pieces, sacked, sacked_bytes, lost_bytes, .. } = self;
        let mut parts = [(0, 0); 2];
        let mut count = 0;
        // More than two parts in one block: ACKs are missing; what is between is looked at, too.
        let whole = sacked.add(Range { start, end, stamp: 0, since_ns: 0 }, |from, to| {
            if count < parts.len() {
                parts[count] = (from, to);
                count += 1;
            } else {
                parts[1].1 = to;
            }
        });
        let Some((first, last)) = whole else { return };
        for &(from, to) in &parts[..count] {
            let index = pieces.partition_point(|piece| piece.end() <= from);
            for piece in pieces.range_mut(index..).take_while(|piece| piece.start < to) {
                // A piece of which a part is missing waits for that.
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

    /// Everything before `end` is acknowledged by an ACK that echoes a time stamp.
    pub fn acknowledge(&mut self, end: u64, echo: Option<u32>, arrived: &mut Arrived) {
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

    /// Finds what is lost now that something beyond it has come; returns how many packets.
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
