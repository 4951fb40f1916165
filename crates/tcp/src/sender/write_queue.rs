//! Data that the application has written (`sk_write_queue`), counted in segments.

use std::collections::VecDeque;

use crate::reciprocal_division::ReciprocalDivisor;

/// Maximum payload of a buffer in the queue (`tcp.c::tcp_xmit_size_goal`: `gso_max_size` − 1 −
/// `MAX_TCP_HEADER`).
const BUFFER_MAX_BYTES: u32 = 65_536 - 1 - 320;

/// Data of the application. All segments are full-sized except for the ends of messages.
#[derive(Clone, Debug)]
pub(super) struct WriteQueue {
    /// Payload of a full-sized segment.
    mss: ReciprocalDivisor,
    /// Full-sized segments in one buffer. Bursts do not cross a buffer boundary.
    buffer_segments: ReciprocalDivisor,
    /// End of the written data; `u32::MAX` for unlimited data.
    end: u32,
    /// Segments that are not full-sized and were never sent, lowest first.
    short: VecDeque<(u32, u16)>,
}

impl WriteQueue {
    pub const fn new(mss_bytes: u16) -> Self {
        let fitting = BUFFER_MAX_BYTES / mss_bytes as u32;
        Self {
            mss: ReciprocalDivisor::new(mss_bytes as u32),
            buffer_segments: ReciprocalDivisor::new(if fitting == 0 { 1 } else { fitting }),
            end: 0,
            short: VecDeque::new(),
        }
    }

    /// Appends `bytes`, or unlimited data.
    pub fn append(&mut self, bytes: Option<u64>) {
        let Some(bytes) = bytes else {
            self.end = u32::MAX;
            return;
        };
        // Append to a short segment that has not been sent (`tcp.c::tcp_sendmsg_locked` appends to the
        // tail of the write queue).
        let tail = self.short.pop_back_if(|&mut (number, _)| number + 1 == self.end);
        let bytes = match tail {
            None => bytes,
            Some((number, rest)) => {
                self.end = number;
                bytes + u64::from(rest)
            }
        };
        let full = u64::from(self.mss.get());
        // Saturate: no valid run can send this many segments.
        let segments = u32::try_from(bytes / full).unwrap_or(u32::MAX);
        self.end = self.end.saturating_add(segments);
        let rest = (bytes % full) as u16;
        if rest > 0 && self.end < u32::MAX {
            self.short.push_back((self.end, rest));
            self.end += 1;
        }
    }

    /// Discards the data from segment `next` on.
    pub fn truncate(&mut self, next: u32) {
        self.end = self.end.min(next);
        while self.short.back().is_some_and(|&(number, _)| number >= self.end) {
            self.short.pop_back();
        }
    }

    /// Returns the end of the written data.
    #[inline]
    pub const fn end(&self) -> u32 {
        self.end
    }

    /// Returns the number of written segments, unless the data is unlimited.
    pub fn limit(&self) -> Option<u32> {
        (self.end < u32::MAX).then_some(self.end)
    }

    /// Returns the payload of a full-sized segment.
    #[inline]
    pub const fn mss_bytes(&self) -> u32 {
        self.mss.get()
    }

    /// Returns how many full-sized segments fit into `bytes`.
    #[inline]
    pub const fn segments_in(&self, bytes: u64) -> u32 {
        self.mss.divide(bytes) as u32
    }

    /// Returns the payload of `segments` full-sized segments.
    #[inline]
    pub fn bytes_of(&self, segments: u32) -> u64 {
        u64::from(segments) * u64::from(self.mss.get())
    }

    /// Returns the number of segments from `next` to the end of its buffer.
    #[inline]
    pub fn buffered(&self, next: u32) -> u32 {
        let boundary = self.buffer_segments.get() - self.buffer_segments.remainder(next);
        (self.end - next).min(boundary)
    }

    /// Returns the payload of `burst` unsent segments from `next` on.
    #[inline]
    pub fn payload_of(&self, next: u32, burst: u32) -> u64 {
        let short = self.short.iter().take_while(|(number, _)| *number < next + burst);
        let lacking: u64 = short.map(|(_, it)| u64::from(self.mss.get()) - u64::from(*it)).sum();
        self.bytes_of(burst) - lacking
    }

    /// Returns the payload of the segment `number`, which is sent for the first time.
    #[inline]
    pub fn take_payload(&mut self, number: u32) -> u16 {
        match self.short.front() {
            Some(&(short, payload)) if short == number => {
                self.short.pop_front();
                payload
            }
            _ => self.mss.get() as u16,
        }
    }

    /// Returns whether all short segments are unsent, written and in order, if `next` is sent next.
    pub fn is_consistent(&self, next: u32) -> bool {
        next <= self.end
            && self.short.front().is_none_or(|&(number, _)| number >= next)
            && self.short.back().is_none_or(|&(number, _)| number < self.end)
            && self.short.iter().is_sorted_by(|one, other| one.0 < other.0)
    }
}
