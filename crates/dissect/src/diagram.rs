//! One flow's packets and answers, one by one: what a time–sequence diagram is drawn from.

use crate::packet::Segment;
use crate::sequence::{Block, blocks};

/// What a packet of data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Bytes that were not sent before.
    New,
    /// Sent again after news of a hole: SACKs, or three duplicate ACKs.
    Fast,
    /// Sent again for nothing was heard.
    Timeout,
    /// The last packet again, before any timeout (TLP).
    Probe,
    /// Not sent again: another packet was seen before it.
    OutOfOrder,
    /// Near the receiver: fills a hole.
    Again,
    /// Near the receiver: was there already.
    Twice,
}

impl Kind {
    /// Names, in the order of the numbers that stand in a column.
    pub const NAMES: [&str; 7] =
        ["new", "fast", "timeout", "probe", "out_of_order", "again", "twice"];
}

/// Which part of which flow is wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its name; the one with the most payload if none is given.
    pub flow: Option<String>,
    /// A window on the clock of the measurement.
    pub from_ns: u64,
    /// Its end, which is not part of it.
    pub to_ns: u64,
    /// Rows of each table at most: what is beyond them is left out.
    pub rows: usize,
}

/// Packets of data. Bytes count from the first one of data that was seen: of what is older and comes
/// later, down from it.
#[derive(Clone, Debug, Default)]
pub struct PacketColumns {
    /// When it was seen.
    pub time_ns: Vec<u64>,
    /// Its first byte.
    pub start: Vec<i64>,
    /// After its last one.
    pub end: Vec<i64>,
    /// A [`Kind`].
    pub kind: Vec<u8>,
}

/// Segments of the receiver.
#[derive(Clone, Debug, Default)]
pub struct AnswerColumns {
    /// When it was seen.
    pub time_ns: Vec<u64>,
    /// The first byte that it does not acknowledge.
    pub acknowledged: Vec<i64>,
    /// The first byte that the window does not allow; NaN where its scale is not known.
    pub edge: Vec<f64>,
}

/// Selective acknowledgements, one row per block.
#[derive(Clone, Debug, Default)]
pub struct SackColumns {
    /// When it was seen.
    pub time_ns: Vec<u64>,
    /// Its first byte.
    pub start: Vec<i64>,
    /// After its last one.
    pub end: Vec<i64>,
    /// It tells of something that came twice (RFC 2883).
    pub is_duplicate: Vec<bool>,
}

/// A flow, packet by packet.
#[derive(Clone, Debug)]
pub struct Diagram {
    /// The file, as a position of what was given.
    pub file: usize,
    /// Name of the flow.
    pub flow: String,
    /// Its controller, if the file says it.
    pub controller: String,
    /// It was captured near the sender.
    pub is_near_sender: bool,
    /// When the flow began.
    pub start_ns: u64,
    /// Part of the clock that the tables cover; less than what was wanted if there were too many rows.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
    /// More rows were wanted than there may be.
    pub is_cut: bool,
    /// Packets of data.
    pub packets: PacketColumns,
    /// What the receiver said.
    pub answers: AnswerColumns,
    /// And of single blocks.
    pub sacks: SackColumns,
    pub(crate) rows: usize,
}

/// A packet of data as its follower understood it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub start: u64,
    pub end: u64,
    pub kind: Kind,
}

/// An answer as its follower understood it: its number, and the first byte of data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub number: u64,
    pub origin: u64,
    pub scale: Option<u8>,
}

/// Where a byte lies behind another one.
fn offset(number: u64, origin: u64) -> i64 {
    number.wrapping_sub(origin) as i64
}

impl Diagram {
    /// Whether a row of this time belongs here; once there is no room for one, nothing later does.
    fn takes(&mut self, now_ns: u64, rows: usize) -> bool {
        if self.is_cut || now_ns < self.from_ns || now_ns >= self.to_ns {
            return false;
        }
        if rows >= self.rows {
            self.is_cut = true;
            self.to_ns = now_ns;
            return false;
        }
        true
    }

    pub(crate) fn packet(&mut self, now_ns: u64, seen: Seen, origin: u64) {
        if !self.takes(now_ns, self.packets.time_ns.len()) {
            return;
        }
        self.packets.time_ns.push(now_ns);
        self.packets.start.push(offset(seen.start, origin));
        self.packets.end.push(offset(seen.end, origin));
        self.packets.kind.push(seen.kind as u8);
    }

    pub(crate) fn answer(&mut self, now_ns: u64, answer: Answer, segment: &Segment) {
        let Answer { number, origin, scale } = answer;
        if !self.takes(now_ns, self.answers.time_ns.len()) {
            return;
        }
        let acknowledged = offset(number, origin);
        let room = scale.map(|scale| i64::from(segment.window) << scale.min(14));
        self.answers.time_ns.push(now_ns);
        self.answers.acknowledged.push(acknowledged);
        self.answers.edge.push(room.map_or(f64::NAN, |room| (acknowledged + room) as f64));
        for Block { start, end, is_duplicate } in blocks(number, segment) {
            if start < end && self.takes(now_ns, self.sacks.time_ns.len()) {
                self.sacks.time_ns.push(now_ns);
                self.sacks.start.push(offset(start, origin));
                self.sacks.end.push(offset(end, origin));
                self.sacks.is_duplicate.push(is_duplicate);
            }
        }
    }

    /// Nothing that comes later will be taken.
    pub(crate) fn is_over(&self, now_ns: u64) -> bool {
        self.is_cut || now_ns >= self.to_ns
    }
}
