//! Sending application and its streams.

use std::sync::LazyLock;

use bytes::Bytes;
use noq_proto::{Connection, Dir, StreamId};

use crate::congestion::WrittenData;

const BLOCK_MIN: u64 = 1 << 14;
const BLOCK_MAX: u64 = 1 << 20;

/// Data that are passed to the stack. The contents do not matter.
static ZEROS: LazyLock<Bytes> = LazyLock::new(|| vec![0; BLOCK_MAX as usize].into());

/// Pending data of one stream.
#[derive(Clone, Copy, Debug)]
struct PendingStreamData {
    /// Bytes not passed to the stack yet; [`u64::MAX`] for unlimited data.
    left: u64,
    stream: Option<StreamId>,
    /// More data can follow.
    open: bool,
}

/// Sending application.
#[derive(Debug, Default)]
pub(super) struct StreamWriter {
    parts: Vec<PendingStreamData>,
    /// Streams that were finished but not completely acknowledged yet.
    unfinished: u32,
    /// Bytes that the stack has accepted.
    taken: u64,
}

impl StreamWriter {
    /// Supplies `bytes` of data, split over `streams`, or unlimited data if `bytes` is `None`.
    pub fn supply(&mut self, bytes: Option<u64>, streams: u32) {
        match bytes {
            None => {
                let part = PendingStreamData { left: u64::MAX, stream: None, open: false };
                self.parts.extend((0..streams).map(|_| part));
            }
            Some(bytes) => {
                let streams = u64::from(streams).min(bytes);
                for i in 0..streams {
                    let left = bytes / streams + u64::from(i < bytes % streams);
                    self.parts.push(PendingStreamData { left, stream: None, open: false });
                }
            }
        }
    }

    /// Appends `bytes` to the open stream. The `last` data end it.
    pub fn append(&mut self, bytes: u64, last: bool) {
        match self.parts.last_mut().filter(|part| part.open) {
            Some(part) => (part.left, part.open) = (part.left + bytes, !last),
            None => self.parts.push(PendingStreamData { left: bytes, stream: None, open: !last }),
        }
    }

    /// Ends the data. Returns whether any data were discarded.
    pub fn withdraw(&mut self, connection: Option<&mut Connection>) -> bool {
        let discarded = self.has_unsent_data();
        if let Some(connection) = connection {
            for stream in self.parts.iter().filter_map(|part| part.stream) {
                if connection.send_stream(stream).finish().is_ok() {
                    self.unfinished += 1;
                }
            }
        }
        self.parts.clear();
        discarded
    }

    /// Passes data to the stack until it has `unsent_max` unsent bytes. `sent` and `acked` are the
    /// numbers of bytes that it has sent and that were acknowledged.
    pub fn pump(&mut self, connection: &mut Connection, sent: u64, acked: u64, unsent_max: u64) {
        // For each packet, the stack walks over the blocks that are not acknowledged yet.
        let block_bytes = (sent.saturating_sub(acked) / 16).clamp(BLOCK_MIN, BLOCK_MAX);
        while self.has_unsent_data() && self.taken < sent + unsent_max {
            let before = self.taken;
            let mut at = 0;
            while at < self.parts.len() {
                if self.write_block(at, connection, block_bytes) {
                    self.parts.remove(at);
                } else {
                    at += 1;
                }
            }
            if self.taken == before {
                break;
            }
        }
    }

    /// Writes at most `most` bytes of a stream. Returns whether the stream is complete.
    fn write_block(&mut self, at: usize, connection: &mut Connection, most: u64) -> bool {
        let part = &mut self.parts[at];
        if part.stream.is_none() {
            part.stream = connection.streams().open(Dir::Uni);
        }
        let Some(id) = part.stream else { return false };
        let mut stream = connection.send_stream(id);
        let bytes = part.left.min(most);
        let mut block = [ZEROS.slice(..bytes as usize)];
        // Data that flow control blocks are written later, because `pump` runs after every
        // transmission.
        let taken = stream.write_chunks(&mut &mut block[..]).unwrap_or(0) as u64;
        self.taken += taken;
        debug_assert!(taken <= bytes, "{taken} of {bytes} bytes");
        if part.left < u64::MAX {
            part.left -= taken;
        }
        let complete = part.left == 0 && !part.open;
        if complete && stream.finish().is_ok() {
            self.unfinished += 1;
        }
        complete
    }

    /// Records a datagram that the stack has accepted.
    pub const fn note_datagram(&mut self, bytes: u64) {
        self.taken += bytes;
    }

    /// Handles a stream that was acknowledged completely.
    pub const fn on_finished(&mut self) {
        self.unfinished = self.unfinished.saturating_sub(1);
    }

    /// Returns what the application has written. The stack stores at most `buffer_bytes`.
    pub fn written(&self, buffer_bytes: u64) -> WrittenData {
        WrittenData { accepted_bytes: self.taken, has_more: self.has_unsent_data(), buffer_bytes }
    }

    /// Returns whether there are data that the stack has not accepted yet.
    fn has_unsent_data(&self) -> bool {
        self.parts.iter().any(|part| part.left > 0)
    }

    /// Returns whether all written data are acknowledged.
    pub const fn is_drained(&self) -> bool {
        self.parts.is_empty() && self.unfinished == 0
    }

    /// Returns the number of bytes that the stack has not accepted yet, or `None` if unlimited.
    pub fn backlog_bytes(&self) -> Option<u64> {
        self.parts.iter().try_fold(0, |sum, part| (part.left < u64::MAX).then(|| sum + part.left))
    }
}
