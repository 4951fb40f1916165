//! Receiving application: takes data from the stack at once, and delivers them in stream order.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use noq_proto::{Connection, Dir, StreamId, VarInt};

use crate::settings::Settings;

/// Largest window of a stream whose data the stack puts in order: 1,024 pieces with gaps between
/// them take 2,047 packets, which are at least 2.4 MB.
const IN_ORDER_WINDOW_BYTES: u64 = 2 << 20;

/// The receive window divided by this: how far data beyond gaps may exceed the withheld bytes.
const WITHHELD_DIVISOR: u64 = 32;
/// The receive window divided by this is returned at once, as by the stack.
const RETURNED_DIVISOR: u64 = 8;

/// Receiving application of a connection.
///
/// The stack closes a connection if one of its streams has more than 1,024 buffered pieces, which
/// happens when slow start overshoots a window of a few MB. Data are therefore read as they arrive,
/// so that the stack buffers none, and this reader puts their ranges in order. It stores no
/// contents: a range beyond a gap takes 16 bytes.
#[derive(Debug)]
pub(super) struct StreamReader {
    streams: BTreeMap<StreamId, ReceivedRanges>,
    /// Whether the stack puts data in order. Only this limits a stream whose window is smaller than
    /// the connection's, because the stack's window of a stream grows with every byte that is read.
    in_order: bool,
    /// Bytes beyond gaps, of all streams. The application has not consumed them, so they occupy the
    /// receive window of the connection (RFC 9000 §4.1).
    waiting_bytes: u64,
    window_bytes: u64,
    /// Part of the window that is withheld from the stack for `waiting_bytes`.
    withheld_bytes: u64,
}

impl StreamReader {
    pub fn new(settings: &Settings) -> Self {
        Self {
            streams: BTreeMap::new(),
            in_order: settings.stream_window_bytes < settings.connection_window_bytes
                && settings.stream_window_bytes <= IN_ORDER_WINDOW_BYTES,
            waiting_bytes: 0,
            window_bytes: settings.connection_window_bytes,
            withheld_bytes: 0,
        }
    }

    /// Reads the streams that the peer opened, and returns the number of bytes that are delivered.
    pub fn read_opened(&mut self, connection: &mut Connection, dir: Dir) -> u64 {
        let mut bytes = 0;
        while let Some(id) = connection.streams().accept(dir) {
            bytes += self.read(connection, id);
        }
        bytes
    }

    /// Reads the available data of a stream, and returns the number of bytes that are delivered:
    /// those that complete the stream up to the next gap.
    pub fn read(&mut self, connection: &mut Connection, id: StreamId) -> u64 {
        let ranges = self.streams.entry(id).or_default();
        let waited = ranges.waiting_bytes;
        let mut delivered = 0;
        let mut is_open = false;
        let mut stream = connection.recv_stream(id);
        if let Ok(mut chunks) = stream.read(self.in_order) {
            is_open = loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => {
                        let end = chunk.offset + chunk.bytes.len() as u64;
                        delivered += ranges.insert(chunk.offset..end);
                    }
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            };
            // Flow control frames are sent with the next packet.
            let _ = chunks.finalize();
        }
        self.waiting_bytes = self.waiting_bytes - waited + ranges.waiting_bytes;
        if !is_open {
            self.streams.remove(&id);
        }
        self.withhold_credit(connection);
        delivered
    }

    /// Adapts the stack's receive window, which grows with every byte that is read, to an
    /// application that consumes data in order.
    fn withhold_credit(&mut self, connection: &mut Connection) {
        let wanted = self.waiting_bytes.min(self.window_bytes);
        let more = wanted.saturating_sub(self.withheld_bytes);
        let returned = self.withheld_bytes.saturating_sub(wanted);
        // An increase of the window sends a MAX_DATA frame. As in the stack, a small part of the
        // window is not worth a frame.
        let is_due = more > self.window_bytes / WITHHELD_DIVISOR
            || returned >= self.window_bytes / RETURNED_DIVISOR
            || (returned > 0 && wanted == 0);
        if !is_due {
            return;
        }
        if let Ok(window) = VarInt::from_u64(self.window_bytes - wanted) {
            connection.set_receive_window(window);
            self.withheld_bytes = wanted;
        }
    }
}

/// Received ranges of a stream.
#[derive(Debug, Default)]
struct ReceivedRanges {
    /// End of the data without a gap.
    complete: u64,
    /// Ranges beyond the first gap, in order, with a gap between any two.
    beyond: VecDeque<Range<u64>>,
    /// Bytes of `beyond`.
    waiting_bytes: u64,
}

impl ReceivedRanges {
    /// Adds a range that was not received before, and returns the number of bytes by which the data
    /// without a gap grow.
    fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.start > self.complete {
            self.waiting_bytes += range.end - range.start;
            self.insert_beyond(range);
            return 0;
        }
        let before = self.complete;
        self.complete = range.end;
        if let Some(next) = self.beyond.pop_front_if(|next| next.start == range.end) {
            self.waiting_bytes -= next.end - next.start;
            self.complete = next.end;
        }
        self.complete - before
    }

    fn insert_beyond(&mut self, range: Range<u64>) {
        let at = self.beyond.partition_point(|other| other.start < range.start);
        let joins_next = self.beyond.get(at).is_some_and(|next| next.start == range.end);
        match at.checked_sub(1).and_then(|at| self.beyond.get_mut(at)) {
            Some(previous) if previous.end == range.start => {
                previous.end = range.end;
                if joins_next && let Some(next) = self.beyond.remove(at) {
                    self.beyond[at - 1].end = next.end;
                }
            }
            _ if joins_next => self.beyond[at].start = range.start,
            _ => self.beyond.insert(at, range),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ReceivedRanges;

    #[test]
    fn pieces_in_any_order_are_delivered_once_and_in_order() {
        // Every seventh, third, … piece of 97: a prime step visits each piece once.
        for step in [1, 3, 7, 50, 96] {
            let mut ranges = ReceivedRanges::default();
            let mut arrived = [false; 97];
            for piece in (1..=97).map(|number| number * step % 97) {
                arrived[piece] = true;
                let complete = arrived.iter().take_while(|&&there| there).count() as u64;
                let before = ranges.complete;
                let offset = piece as u64 * 10;
                assert_eq!(ranges.insert(offset..offset + 10), complete * 10 - before);
                assert_eq!(ranges.complete, complete * 10);
                let received = arrived.iter().filter(|&&there| there).count() as u64;
                assert_eq!(ranges.waiting_bytes, (received - complete) * 10);
                let gaps = arrived.windows(2).filter(|two| !two[0] && two[1]).count();
                assert_eq!(ranges.beyond.len(), gaps, "step {step}, piece {piece}");
            }
            assert!(ranges.beyond.is_empty());
        }
    }
}
