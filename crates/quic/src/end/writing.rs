//! What the application writes, and the streams that carry it.

use bytes::Bytes;
use noq_proto::{Connection, Dir, StreamId};

/// Bytes that are handed to the stack at once. Their contents do not matter.
static BLOCK: [u8; 1 << 14] = [0; 1 << 14];

/// A part of what was written, which has a stream of its own.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// [`u64::MAX`]: there is no end to it.
    left: u64,
    stream: Option<StreamId>,
    /// More may follow.
    open: bool,
}

/// The application's side of the sending end.
#[derive(Debug, Default)]
pub(super) struct Writing {
    parts: Vec<Part>,
    /// Streams that were finished, and not yet acknowledged as a whole.
    unfinished: u32,
    /// Bytes that the stack has taken.
    taken: u64,
}

impl Writing {
    /// The application writes `bytes` more over so many streams; none: without end.
    pub fn supply(&mut self, bytes: Option<u64>, streams: u32) {
        match bytes {
            None => {
                let part = Part { left: u64::MAX, stream: None, open: false };
                self.parts.extend((0..streams).map(|_| part));
            }
            Some(bytes) => {
                let streams = u64::from(streams).min(bytes);
                for i in 0..streams {
                    let left = bytes / streams + u64::from(i < bytes % streams);
                    self.parts.push(Part { left, stream: None, open: false });
                }
            }
        }
    }

    /// The application writes `bytes` more into the stream that it has, which ends with the `last`.
    pub fn append(&mut self, bytes: u64, last: bool) {
        match self.parts.last_mut().filter(|part| part.open) {
            Some(part) => (part.left, part.open) = (part.left + bytes, !last),
            None => self.parts.push(Part { left: bytes, stream: None, open: !last }),
        }
    }

    /// The application writes nothing more. Whether anything was discarded.
    pub fn withdraw(&mut self, connection: Option<&mut Connection>) -> bool {
        let discarded = self.has_left();
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

    /// Gives the stack what keeps it busy: until `unsent_max` bytes wait that it has not sent.
    /// `sent`: bytes that it has.
    pub fn pump(&mut self, connection: &mut Connection, sent: u64, unsent_max: u64) {
        while self.has_left() && self.taken < sent + unsent_max {
            let before = self.taken;
            let mut at = 0;
            while at < self.parts.len() {
                if self.write_part(at, connection) {
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

    /// Writes a block of a part: whether that was the last of it.
    fn write_part(&mut self, at: usize, connection: &mut Connection) -> bool {
        let part = &mut self.parts[at];
        if part.stream.is_none() {
            part.stream = connection.streams().open(Dir::Uni);
        }
        let Some(id) = part.stream else { return false };
        let mut stream = connection.send_stream(id);
        let bytes = part.left.min(BLOCK.len() as u64);
        let mut block = [Bytes::from_static(&BLOCK[..bytes as usize])];
        // What it does not take it will when its flow control allows: it is asked again whenever
        // something is sent.
        let taken = stream.write_chunks(&mut &mut block[..]).unwrap_or(0) as u64;
        self.taken += taken;
        if part.left < u64::MAX {
            part.left -= taken;
        }
        let complete = part.left == 0 && !part.open;
        if complete && stream.finish().is_ok() {
            self.unfinished += 1;
        }
        complete
    }

    /// A stream was acknowledged as a whole.
    pub const fn on_finished(&mut self) {
        self.unfinished = self.unfinished.saturating_sub(1);
    }

    /// Everything was handed to the stack, which has sent `sent` bytes: whether that is all.
    pub fn is_sent(&self, sent: u64) -> bool {
        !self.has_left() && self.taken <= sent
    }

    /// Something is left to be handed over.
    fn has_left(&self) -> bool {
        self.parts.iter().any(|part| part.left > 0)
    }

    /// Everything that was written is acknowledged.
    pub const fn is_drained(&self) -> bool {
        self.parts.is_empty() && self.unfinished == 0
    }

    /// Bytes that are left to be handed over; none if there is no end to them.
    pub fn backlog_bytes(&self) -> Option<u64> {
        self.parts.iter().try_fold(0, |sum, part| (part.left < u64::MAX).then(|| sum + part.left))
    }
}
