//! Packets and ACKs of one flow, the data of a time–sequence diagram.

use crate::packet::Segment;
use crate::sequence_number::{Block, blocks};

/// Kind of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// New data.
    New,
    /// Fast retransmission, after SACKs or three duplicate ACKs.
    Fast,
    /// Retransmission after a timeout.
    Timeout,
    /// Tail Loss Probe: retransmission of the last packet.
    Probe,
    /// Not a retransmission: captured after a packet that was sent later.
    OutOfOrder,
    /// Captured near the receiver: a retransmission that fills a gap.
    Again,
    /// Captured near the receiver: a duplicate of data that had already arrived.
    Twice,
}

impl Kind {
    /// Names of the kinds, by the numbers in the `kind` column.
    pub const NAMES: [&str; 7] =
        ["new", "fast", "timeout", "probe", "out_of_order", "again", "twice"];
}

/// Flow, time window and size of a diagram.
#[derive(Clone, Debug)]
pub struct TimeSequenceOptions {
    /// Name of the flow. `None`: the TCP flow with the most payload.
    pub flow: Option<String>,
    /// Start of the time window, on the clock of the measurement.
    pub from_ns: u64,
    /// End of the time window, exclusive.
    pub to_ns: u64,
    /// Maximum number of rows of each table. Later rows are omitted.
    pub rows: usize,
}

/// Data packets. Bytes are counted from the first byte of data in the capture. Older data that
/// arrives later has negative numbers.
#[derive(Clone, Debug, Default)]
pub struct PacketColumns {
    /// Time of capture.
    pub time_ns: Vec<u64>,
    /// First byte.
    pub start: Vec<i64>,
    /// End, exclusive.
    pub end: Vec<i64>,
    /// Number of the [`Kind`].
    pub kind: Vec<u8>,
}

/// ACKs of the receiver.
#[derive(Clone, Debug, Default)]
pub struct AckColumns {
    /// Time of capture.
    pub time_ns: Vec<u64>,
    /// First byte that is not acknowledged.
    pub acknowledged: Vec<i64>,
    /// First byte beyond the receive window. NaN if the window scale is unknown.
    pub edge: Vec<f64>,
}

/// SACK blocks, one row each.
#[derive(Clone, Debug, Default)]
pub struct SackColumns {
    /// Time of capture.
    pub time_ns: Vec<u64>,
    /// First byte.
    pub start: Vec<i64>,
    /// End, exclusive.
    pub end: Vec<i64>,
    /// Whether the block is a D-SACK (RFC 2883).
    pub is_duplicate: Vec<bool>,
}

/// Packets and ACKs of one flow.
#[derive(Clone, Debug)]
pub struct TimeSequence {
    /// The file, as an index into the list of files.
    pub file: usize,
    /// Name of the flow.
    pub flow: String,
    /// Congestion controller, if the file names it, else `unknown`.
    pub controller: String,
    /// Whether it was captured near the sender.
    pub is_near_sender: bool,
    /// Start of the flow.
    pub start_ns: u64,
    /// Start of the time that the tables cover.
    pub from_ns: u64,
    /// End of that time. Earlier than requested if there were too many rows.
    pub to_ns: u64,
    /// Whether rows were omitted because a table was full.
    pub is_cut: bool,
    /// Data packets.
    pub packets: PacketColumns,
    /// ACKs of the receiver.
    pub answers: AckColumns,
    /// SACK blocks of the ACKs.
    pub sacks: SackColumns,
    pub(crate) rows: usize,
}

/// A classified data packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataPacket {
    pub start: u64,
    pub end: u64,
    pub kind: Kind,
}

/// An ACK with extended sequence numbers. `origin` is the first byte of data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckPacket {
    pub number: u64,
    pub origin: u64,
    pub scale: Option<u8>,
}

/// Returns the distance of a byte from `origin`.
fn offset(number: u64, origin: u64) -> i64 {
    number.wrapping_sub(origin) as i64
}

impl TimeSequence {
    /// Returns whether a row at this time is recorded. After a table is full, later rows are
    /// omitted.
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

    pub(crate) fn packet(&mut self, now_ns: u64, seen: DataPacket, origin: u64) {
        if !self.takes(now_ns, self.packets.time_ns.len()) {
            return;
        }
        self.packets.time_ns.push(now_ns);
        self.packets.start.push(offset(seen.start, origin));
        self.packets.end.push(offset(seen.end, origin));
        self.packets.kind.push(seen.kind as u8);
    }

    pub(crate) fn add_ack(&mut self, now_ns: u64, ack: AckPacket, segment: &Segment) {
        let AckPacket { number, origin, scale } = ack;
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

    /// Returns whether all later packets would be ignored.
    pub(crate) fn is_over(&self, now_ns: u64) -> bool {
        self.is_cut || now_ns >= self.to_ns
    }
}
