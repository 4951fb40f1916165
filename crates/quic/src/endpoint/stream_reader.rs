//! Receiving application: takes data from the stack at once, and delivers them in stream order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use noq_proto::{Connection, Dir, StreamId, VarInt};

use crate::crypto::{EncryptionLevel, PacketInspector};
use crate::frames::{self, StreamFrame};
use crate::settings::Settings;

/// Largest window of a stream whose data the stack puts in order: 1,024 pieces with gaps between
/// them take 2,047 packets, which are at least 2.4 MB.
const IN_ORDER_WINDOW_BYTES: u64 = 2 << 20;

/// The receive window divided by this: how far data beyond gaps may exceed the withheld bytes.
const WITHHELD_DIVISOR: u64 = 32;
/// The receive window divided by this is returned at once, as by the stack.
const RETURNED_DIVISOR: u64 = 8;

/// STREAM frames that arrived since the last call of [`lock`](Self::lock).
#[derive(Debug, Default)]
pub(super) struct ArrivedFrames(Mutex<Vec<StreamFrame>>);

impl ArrivedFrames {
    pub fn lock(&self) -> MutexGuard<'_, Vec<StreamFrame>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PacketInspector for ArrivedFrames {
    fn sealing(&self, _: EncryptionLevel, _: u64, _: &[u8], _: &[u8]) {}

    fn opened(&self, level: EncryptionLevel, _: u64, _: &[u8], payload: &[u8]) {
        if level == EncryptionLevel::Data {
            let mut arrived = self.lock();
            frames::read(payload, |frame| arrived.push(frame));
        }
    }
}

/// Receiving application of a connection.
///
/// The stack closes a connection if one of its streams has more than 1,024 buffered pieces, which
/// happens when slow start overshoots a window of a few MB. Data are therefore read as they arrive,
/// so that the stack buffers none, and this reader puts their ranges in order. It stores no
/// contents: a range beyond a gap takes 16 bytes.
///
/// The reader takes the ranges from the packets, not from the stack, because noq-proto 1.4 discards
/// data of a packet with more than about 22 frames of a stream (`Assembler::defragment`, which takes
/// the number of bytes read for the end of the data without a gap). Retransmissions make such
/// packets out of what did not fit into the packets before.
#[derive(Debug)]
pub(super) struct StreamReader {
    streams: BTreeMap<StreamId, ReceivedRanges>,
    complete: CompleteStreams,
    /// Whether the stack puts data in order. Only this limits a stream whose window is smaller than
    /// the connection's, because the stack's window of a stream grows with every byte that is read.
    in_order: bool,
    /// Bytes beyond gaps, of all streams. The application has not consumed them, so they occupy the
    /// receive window of the connection (RFC 9000 §4.1).
    waiting_bytes: u64,
    /// Bytes of the open streams that arrived but were not read. If the stack does not put data in
    /// order, it discarded them, so that reading does not return their part of the window.
    unread_bytes: u64,
    /// Bytes in order that a slow application has not read.
    backlog_bytes: u64,
    /// Whether the application reads later than data arrive, with [`consume`](Self::consume). Unread
    /// data occupy the receive window of the connection.
    is_slow: bool,
    window_bytes: u64,
    /// Window that the stack was given.
    given_bytes: u64,
}

impl StreamReader {
    pub fn new(settings: &Settings) -> Self {
        let window_bytes = settings.connection_window_bytes;
        Self {
            streams: BTreeMap::new(),
            complete: CompleteStreams::default(),
            in_order: settings.stream_window_bytes < window_bytes
                && settings.stream_window_bytes <= IN_ORDER_WINDOW_BYTES,
            waiting_bytes: 0,
            unread_bytes: 0,
            backlog_bytes: 0,
            is_slow: settings.slow_reader,
            window_bytes,
            given_bytes: window_bytes,
        }
    }

    /// Returns the bytes that a slow application has not read.
    pub const fn backlog_bytes(&self) -> u64 {
        self.backlog_bytes
    }

    /// Handles a read of `bytes` by a slow application.
    pub const fn consume(&mut self, bytes: u64) {
        self.backlog_bytes -= bytes;
    }

    /// Adds the data of a frame. Returns the number of bytes that are delivered: those that
    /// complete the stream up to the next gap.
    pub fn add(&mut self, frame: StreamFrame) -> u64 {
        let Ok(id) = VarInt::from_u64(frame.stream).map(StreamId::from) else { return 0 };
        if self.complete.contains(id) {
            return 0;
        }
        let ranges = self.streams.entry(id).or_default();
        let end = frame.offset + frame.length;
        if frame.is_last {
            ranges.size = Some(end);
        }
        let waited = ranges.waiting_bytes;
        let delivered = ranges.insert(frame.offset..end);
        self.waiting_bytes = self.waiting_bytes - waited + ranges.waiting_bytes;
        self.unread_bytes += delivered + ranges.waiting_bytes - waited;
        if self.is_slow {
            self.backlog_bytes += delivered;
        }
        debug_assert!(self.is_consistent(), "{self:?}");
        delivered
    }

    /// Returns whether the totals are the sums over the open streams, and no stream is open and
    /// complete.
    fn is_consistent(&self) -> bool {
        let sum = |bytes: fn(&ReceivedRanges) -> u64| self.streams.values().map(bytes).sum::<u64>();
        self.waiting_bytes == sum(|ranges| ranges.waiting_bytes)
            && self.unread_bytes == sum(ReceivedRanges::unread_bytes)
            && self.streams.keys().all(|&id| !self.complete.contains(id))
    }

    /// Reads the streams that the peer opened.
    pub fn read_opened(&mut self, connection: &mut Connection, dir: Dir) {
        while let Some(id) = connection.streams().accept(dir) {
            self.read(connection, id);
        }
    }

    /// Discards the available data of a stream, which returns their part of the window.
    pub fn read(&mut self, connection: &mut Connection, id: StreamId) {
        let Some(ranges) = self.streams.get_mut(&id) else { return };
        let mut stream = connection.recv_stream(id);
        let mut is_open = false;
        if let Ok(mut chunks) = stream.read(self.in_order) {
            is_open = loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => {
                        let bytes = chunk.bytes.len() as u64;
                        ranges.read_bytes += bytes;
                        self.unread_bytes -= bytes;
                    }
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            };
            // Flow control frames are sent with the next packet.
            let _ = chunks.finalize();
        }
        if !is_open && let Some(ranges) = self.streams.remove(&id) {
            self.waiting_bytes -= ranges.waiting_bytes;
            self.unread_bytes -= ranges.unread_bytes();
            self.complete.insert(id);
        }
        debug_assert!(self.is_consistent(), "{self:?}");
    }

    /// Ends streams that are complete although the stack discarded some of their data, and adapts
    /// the stack's receive window, which grows with every byte that is read, to an application that
    /// consumes data in order. Call it when all available data are read.
    pub fn adapt_credit(&mut self, connection: &mut Connection) {
        if self.discarded_bytes() > 0 {
            self.streams.retain(|&id, ranges| {
                let is_complete = ranges.size == Some(ranges.complete);
                if is_complete {
                    self.unread_bytes -= ranges.unread_bytes();
                    self.complete.insert(id);
                    // The stack returns the window of what it discarded.
                    let _ = connection.recv_stream(id).stop(VarInt::from_u32(0));
                }
                !is_complete
            });
        }
        debug_assert!(self.is_consistent(), "{self:?}");
        self.withhold_credit(connection);
    }

    const fn discarded_bytes(&self) -> u64 {
        if self.in_order { 0 } else { self.unread_bytes }
    }

    fn withhold_credit(&mut self, connection: &mut Connection) {
        let withheld = (self.waiting_bytes + self.backlog_bytes).min(self.window_bytes);
        let wanted = self.window_bytes + self.discarded_bytes() - withheld;
        let more = self.given_bytes.saturating_sub(wanted);
        let returned = wanted.saturating_sub(self.given_bytes);
        // An increase of the window sends a MAX_DATA frame. As in the stack, a small part of the
        // window is not worth a frame.
        let kept = if self.is_slow { 0 } else { self.window_bytes / WITHHELD_DIVISOR };
        let is_due = more > kept
            || returned >= self.window_bytes / RETURNED_DIVISOR
            || (returned > 0 && withheld == 0);
        if !is_due {
            return;
        }
        if let Ok(window) = VarInt::from_u64(wanted) {
            connection.set_receive_window(window);
            self.given_bytes = wanted;
        }
    }
}

/// Streams whose data were all delivered: frames that arrive later are duplicates.
#[derive(Debug, Default)]
struct CompleteStreams {
    /// All streams with a smaller index are complete.
    all_below: u64,
    others: BTreeSet<u64>,
}

impl CompleteStreams {
    fn contains(&self, id: StreamId) -> bool {
        id.index() < self.all_below || self.others.contains(&id.index())
    }

    fn insert(&mut self, id: StreamId) {
        self.others.insert(id.index());
        while self.others.remove(&self.all_below) {
            self.all_below += 1;
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
    /// Bytes that the stack returned.
    read_bytes: u64,
    /// Size of the stream, if it is known.
    size: Option<u64>,
}

impl ReceivedRanges {
    /// Returns the number of received bytes that the stack did not return.
    const fn unread_bytes(&self) -> u64 {
        self.complete + self.waiting_bytes - self.read_bytes
    }

    /// Adds a range, and returns the number of bytes by which the data without a gap grow.
    fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.start > self.complete {
            self.insert_beyond(range);
            return 0;
        }
        let before = self.complete;
        self.complete = before.max(range.end);
        while let Some(next) = self.beyond.pop_front_if(|next| next.start <= self.complete) {
            self.waiting_bytes -= next.end - next.start;
            self.complete = self.complete.max(next.end);
        }
        self.complete - before
    }

    /// Adds a range beyond a gap, and joins the ranges that it touches.
    fn insert_beyond(&mut self, mut range: Range<u64>) {
        let first = self.beyond.partition_point(|other| other.end < range.start);
        let mut end = first;
        while let Some(other) = self.beyond.get(end).filter(|other| other.start <= range.end) {
            self.waiting_bytes -= other.end - other.start;
            range = range.start.min(other.start)..range.end.max(other.end);
            end += 1;
        }
        self.waiting_bytes += range.end - range.start;
        if first == end {
            self.beyond.insert(first, range);
        } else {
            self.beyond[first] = range;
            self.beyond.drain(first + 1..end);
        }
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::RandomStream;

    use super::{CompleteStreams, ReceivedRanges};
    use noq_proto::{Dir, Side, StreamId};

    /// Checks the ranges against the bytes that have arrived.
    fn check(ranges: &ReceivedRanges, arrived: &[bool]) {
        let complete = arrived.iter().take_while(|&&there| there).count();
        assert_eq!(ranges.complete, complete as u64);
        let received = arrived.iter().filter(|&&there| there).count();
        assert_eq!(ranges.waiting_bytes, (received - complete) as u64);
        let gaps = arrived.windows(2).filter(|two| !two[0] && two[1]).count();
        assert_eq!(ranges.beyond.len(), gaps);
    }

    #[test]
    fn pieces_in_any_order_are_delivered_once_and_in_order() {
        // Every seventh, third, … piece of 97: a prime step visits each piece once.
        for step in [1, 3, 7, 50, 96] {
            let mut ranges = ReceivedRanges::default();
            let mut arrived = [false; 970];
            for piece in (1..=97).map(|number| number * step % 97) {
                arrived[piece * 10..piece * 10 + 10].fill(true);
                let before = ranges.complete;
                let offset = piece as u64 * 10;
                let delivered = ranges.insert(offset..offset + 10);
                assert_eq!(delivered, ranges.complete - before, "step {step}, piece {piece}");
                check(&ranges, &arrived);
            }
            assert!(ranges.beyond.is_empty());
        }
    }

    #[test]
    fn overlapping_pieces_count_once() {
        for seed in 0..50 {
            let mut random = RandomStream::new(seed, "pieces");
            let mut ranges = ReceivedRanges::default();
            let mut arrived = [false; 300];
            for _ in 0..200 {
                let start = random.bits() as usize % 300;
                let end = (start + random.bits() as usize % 30).min(300);
                arrived[start..end].fill(true);
                if start < end {
                    ranges.insert(start as u64..end as u64);
                }
                check(&ranges, &arrived);
            }
        }
    }

    #[test]
    fn complete_streams_are_known_in_any_order() {
        let mut complete = CompleteStreams::default();
        let stream = |index| StreamId::new(Side::Client, Dir::Uni, index);
        for index in [2, 0, 3, 1, 7] {
            assert!(!complete.contains(stream(index)));
            complete.insert(stream(index));
            assert!(complete.contains(stream(index)));
        }
        assert_eq!((complete.all_below, complete.others.len()), (4, 1));
        assert!(!complete.contains(stream(5)));
    }
}
