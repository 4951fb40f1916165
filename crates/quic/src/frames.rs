//! Parser for the frames of an unencrypted packet (RFC 9000 §19), limited to data and ACKs.

/// Fields of an ACK frame without its ranges (RFC 9000 §19.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckFrame {
    /// Largest acknowledged packet number.
    pub largest: u64,
    /// ACK Delay field: the delay in µs divided by 2^`ack_delay_exponent`.
    pub delay: u64,
    /// Number of CE-marked packets, if the frame has ECN counts.
    pub marked: Option<u64>,
}

/// Parser for varints (RFC 9000 §16).
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    /// Returns the bytes that were not read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        let (&first, _) = self.rest.split_first()?;
        let length = 1 << (first >> 6);
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        let low = bytes[1..].iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
        Some(u64::from(first & 0x3f) << (8 * (length - 1)) | low)
    }

    pub fn skip(&mut self, bytes: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    /// Skips PADDING frames and returns their number.
    pub fn skip_zeros(&mut self) -> usize {
        let zeros = self.rest.iter().take_while(|&&byte| byte == 0).count();
        self.rest = &self.rest[zeros..];
        zeros
    }

    fn varints(&mut self, count: u32) -> Option<()> {
        for _ in 0..count {
            self.varint()?;
        }
        Some(())
    }
}

/// Highest offsets sent, by stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentOffsets {
    /// Sorted by stream. There are few streams at a time.
    ends: Vec<(u64, u64)>,
}

impl SentOffsets {
    /// Records that a frame is sent. Returns how many of its bytes had been sent before.
    pub fn note(&mut self, frame: StreamFrame) -> u64 {
        let end = frame.offset + frame.length;
        match self.ends.binary_search_by_key(&frame.stream, |&(id, _)| id) {
            Ok(at) => {
                let known = self.ends[at].1;
                self.ends[at].1 = known.max(end);
                end.min(known).saturating_sub(frame.offset)
            }
            Err(at) => {
                self.ends.insert(at, (frame.stream, end));
                0
            }
        }
    }

    /// Removes a completed stream.
    pub fn forget(&mut self, stream: u64) {
        self.ends.retain(|&(id, _)| id != stream);
    }
}

/// STREAM frame without its data (RFC 9000 §19.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamFrame {
    pub stream: u64,
    pub offset: u64,
    pub length: u64,
    /// Whether the data end the stream.
    pub is_last: bool,
}

/// Frames of a packet other than STREAM frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OtherFrames {
    /// Last ACK frame.
    pub ack: Option<AckFrame>,
    /// Data in DATAGRAM frames (RFC 9221 §4).
    pub datagram_bytes: u64,
}

/// Reads the frames of a packet up to the first unknown one, and calls `on_stream` with each STREAM
/// frame. Known are the frames of RFC 9000 and of the extensions in use.
pub(crate) fn read(payload: &[u8], mut on_stream: impl FnMut(StreamFrame)) -> OtherFrames {
    let mut others = OtherFrames::default();
    let mut reader = Reader::new(payload);
    while !reader.rest.is_empty() {
        if read_frame(&mut reader, &mut others, &mut on_stream).is_none() {
            break;
        }
    }
    others
}

fn read_frame(
    reader: &mut Reader<'_>,
    others: &mut OtherFrames,
    on_stream: &mut impl FnMut(StreamFrame),
) -> Option<()> {
    match reader.varint()? {
        // PADDING up to the next frame.
        0x00 => {
            reader.skip_zeros();
        }
        // PING, HANDSHAKE_DONE, IMMEDIATE_ACK
        0x01 | 0x1e | 0x1f => {}
        kind @ (0x02 | 0x03) => others.ack = Some(read_ack(reader, kind == 0x03)?),
        // RESET_STREAM
        0x04 => reader.varints(3)?,
        // STOP_SENDING, MAX_STREAM_DATA, STREAM_DATA_BLOCKED
        0x05 | 0x11 | 0x15 => reader.varints(2)?,
        // CRYPTO
        0x06 => {
            reader.varint()?;
            let length = reader.varint()?;
            reader.skip(length)?;
        }
        // NEW_TOKEN
        0x07 => {
            let length = reader.varint()?;
            reader.skip(length)?;
        }
        kind @ 0x08..=0x0f => on_stream(read_stream(reader, kind)?),
        // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID
        0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => reader.varints(1)?,
        // NEW_CONNECTION_ID
        0x18 => {
            reader.varints(2)?;
            let (&length, _) = reader.rest.split_first()?;
            reader.skip(1 + u64::from(length) + 16)?;
        }
        // PATH_CHALLENGE, PATH_RESPONSE
        0x1a | 0x1b => reader.skip(8)?,
        // DATAGRAM, to the end of the packet or with a length
        kind @ (0x30 | 0x31) => {
            let length = if kind == 0x31 { reader.varint()? } else { reader.rest.len() as u64 };
            reader.skip(length)?;
            others.datagram_bytes += length;
        }
        // ACK_FREQUENCY
        0xaf => reader.varints(4)?,
        _ => return None,
    }
    Some(())
}

fn read_ack(reader: &mut Reader<'_>, counts: bool) -> Option<AckFrame> {
    let largest = reader.varint()?;
    let delay = reader.varint()?;
    let ranges = reader.varint()?;
    reader.varint()?;
    for _ in 0..ranges {
        reader.varints(2)?;
    }
    let marked = if counts {
        reader.varints(2)?;
        Some(reader.varint()?)
    } else {
        None
    };
    Some(AckFrame { largest, delay, marked })
}

fn read_stream(reader: &mut Reader<'_>, kind: u64) -> Option<StreamFrame> {
    let stream = reader.varint()?;
    let offset = if kind & 0x04 != 0 { reader.varint()? } else { 0 };
    let length = if kind & 0x02 != 0 { reader.varint()? } else { reader.rest.len() as u64 };
    reader.skip(length)?;
    Some(StreamFrame { stream, offset, length, is_last: kind & 0x01 != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000 §A.1.
    #[test]
    fn varints_are_those_of_the_appendix() {
        let examples: [(&[u8], u64); 4] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ];
        for (bytes, value) in examples {
            assert_eq!(Reader { rest: bytes }.varint(), Some(value));
        }
        assert_eq!(Reader { rest: &[0x7b] }.varint(), None);
    }

    #[test]
    fn an_ack_is_read_between_other_frames() {
        // PING, ACK_ECN (largest 9, delay 5, one more range, counts 7, 0, 2), a stream to the end.
        let payload = [1, 3, 9, 5, 1, 0, 2, 1, 7, 0, 2, 0x08 | 0x04, 2, 40, 1, 1, 1];
        let mut frames = Vec::new();
        let others = read(&payload, |frame| frames.push(frame));
        assert_eq!(others.ack, Some(AckFrame { largest: 9, delay: 5, marked: Some(2) }));
        assert_eq!(frames, [StreamFrame { stream: 2, offset: 40, length: 3, is_last: false }]);
        let mut sent = SentOffsets::default();
        assert_eq!(sent.note(frames[0]), 0);
        assert_eq!(sent.note(frames[0]), 3);
        sent.forget(2);
        assert_eq!(sent.note(frames[0]), 0);
    }

    #[test]
    fn foreign_bytes_end_the_reading() {
        for length in 0..64 {
            let payload: Vec<u8> = (0..length).map(|i| (i as u8).wrapping_mul(37) ^ 0x1c).collect();
            read(&payload, |_| ());
        }
        let nothing = read(&[0, 0, 0, 0xff], |_| panic!("a STREAM frame"));
        assert_eq!(nothing, OtherFrames::default());
    }

    #[test]
    fn datagrams_are_read_with_and_without_a_length() {
        // Two bytes with a length, PING, then three bytes to the end of the packet.
        let payload = [0x31, 2, 7, 7, 0x01, 0x30, 1, 1, 1];
        let others = read(&payload, |_| panic!("a STREAM frame"));
        assert_eq!(others, OtherFrames { ack: None, datagram_bytes: 5 });
    }
}
