//! Data that the application has written (`sk_write_queue`), counted in segments.

use std::collections::VecDeque;

use crate::reciprocal_division::ReciprocalDivisor;

/// Maximum payload of a buffer in the queue (`tcp.c::tcp_xmit_size_goal`: `gso_max_size` − 1 −
/// `MAX_TCP_HEADER`).
const BUFFER_MAX_BYTES: u32 = 65_536 - 1 - 320;

/// Buffers (skbs) of equal size from a segment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Buffers {
    start: u32,
    /// Full-sized segments in each of them.
    segments: ReciprocalDivisor,
}

impl Buffers {
    /// Returns the number of segments from `number` to the end of its buffer.
    #[inline]
    const fn left_from(self, number: u32) -> u32 {
        self.segments.get() - self.segments.remainder(number - self.start)
    }

    /// Returns the first segment of the buffer that holds `number`.
    const fn start_of(self, number: u32) -> u32 {
        number - self.segments.remainder(number - self.start)
    }
}

/// Data of the application. All segments are full-sized except for the ends of messages.
#[derive(Clone, Debug)]
pub(super) struct WriteQueue {
    /// Payload of a full-sized segment.
    mss: ReciprocalDivisor,
    /// Unsent data that the application keeps, if it has as much. It writes again when less than half is
    /// left.
    unsent_bytes: u32,
    /// Buffers of the next segments. Bursts do not cross their boundaries.
    buffers: Buffers,
    /// Buffers of another size that follow, in order.
    later: VecDeque<Buffers>,
    /// Segment from which on the buffers change.
    changes_at: u32,
    /// End of the written data; `u32::MAX` for unlimited data.
    end: u32,
    /// End of the buffers that the application has filled.
    filled: u32,
    /// Segments that are not full-sized and were never sent, lowest first.
    short: VecDeque<(u32, u16)>,
}

impl WriteQueue {
    pub const fn new(mss_bytes: u16, unsent_bytes: u32) -> Self {
        let mss = ReciprocalDivisor::new(mss_bytes as u32);
        Self {
            mss,
            unsent_bytes,
            buffers: Buffers { start: 0, segments: ReciprocalDivisor::new(1) },
            later: VecDeque::new(),
            changes_at: u32::MAX,
            end: 0,
            filled: 0,
            short: VecDeque::new(),
        }
    }

    /// Appends `bytes`, or unlimited data, if segment `next` is sent next. `window` is the largest receive
    /// window that the peer has offered. Returns whether data may leave before the last are written; see
    /// [`go_on`](Self::go_on).
    pub fn append(&mut self, bytes: Option<u64>, next: u32, window: u32) -> bool {
        let segments = self.buffer_segments(window);
        let start = self.lay_buffers(next, segments);
        match bytes {
            None => self.end = u32::MAX,
            Some(bytes) => self.append_bytes(bytes),
        }
        self.fill(next, start, segments);
        start == next && self.end - next > segments
    }

    /// Lets the application go on writing after the segments before `next` are sent: the rest of the buffer
    /// that they were in is filled again (`tcp.c::tcp_sendmsg_locked`). Returns whether there is more than
    /// a buffer.
    pub fn go_on(&mut self, next: u32, window: u32) -> bool {
        let segments = self.buffer_segments(window);
        self.begin_buffers(next, segments);
        self.fill(next, next, segments);
        self.end - next > segments
    }

    /// Returns the full-sized segments of a new buffer (`tcp.c::tcp_xmit_size_goal`): not more than half
    /// of the largest receive window.
    fn buffer_segments(&self, window: u32) -> u32 {
        (window / 2).min(self.segments_in(BUFFER_MAX_BYTES.into())).max(1)
    }

    /// Sets the size of the buffers of data that are appended, of which the last buffer takes the first
    /// if it is not full. Returns its start.
    fn lay_buffers(&mut self, next: u32, segments: u32) -> u32 {
        let last = self.later.back().unwrap_or(&self.buffers);
        let has_unsent = self.end > next;
        let start = if has_unsent { last.start_of(self.end - 1).max(next) } else { self.end };
        if start == next {
            self.begin_buffers(next, segments);
        } else {
            self.resize(start, segments);
            self.changes_at = self.changes_at.min(start);
        }
        start
    }

    /// Sets the size of all buffers, the first of which starts with segment `next`.
    fn begin_buffers(&mut self, next: u32, segments: u32) {
        self.later.clear();
        self.buffers = Buffers { start: next, segments: ReciprocalDivisor::new(segments) };
        self.changes_at = u32::MAX;
    }

    /// Sets the size of the buffers from `start` on, which none of the next segments has reached.
    fn resize(&mut self, start: u32, segments: u32) {
        if self.later.back().unwrap_or(&self.buffers).segments.get() != segments {
            while self.later.pop_back_if(|buffers| buffers.start >= start).is_some() {}
            self.later.push_back(Buffers { start, segments: ReciprocalDivisor::new(segments) });
        }
    }

    /// Fills buffers from `start` on, ahead of segment `next`.
    fn fill(&mut self, next: u32, start: u32, segments: u32) {
        let unsent_bytes = u64::from(self.unsent_bytes.max(2));
        let ahead = self.segments_in(unsent_bytes - 1) + 1;
        let count = (next - start.min(next) + ahead).div_ceil(segments);
        self.filled = start.saturating_add(count.saturating_mul(segments));
        if self.filled < self.end {
            let least = self.segments_in(unsent_bytes / 2 - 1);
            self.changes_at = self.changes_at.min(self.filled.saturating_sub(least).max(next + 1));
        }
    }

    /// Changes the buffers if segment `next` is sent next.
    #[cold]
    fn change_buffers(&mut self, next: u32, window: u32) {
        self.changes_at = u32::MAX;
        if self.filled < self.end {
            let segments = self.buffer_segments(window);
            let last = *self.later.back().unwrap_or(&self.buffers);
            // The last buffer has room if buffers have become larger.
            let start = self.filled.saturating_sub(last.segments.get()).max(last.start);
            self.resize(start, segments);
            self.fill(next, start, segments);
        }
        while let Some(buffers) = self.later.pop_front_if(|buffers| buffers.start <= next) {
            self.buffers = buffers;
        }
        if let Some(buffers) = self.later.front() {
            self.changes_at = self.changes_at.min(buffers.start);
        }
    }

    fn append_bytes(&mut self, bytes: u64) {
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

    /// Ends the data with what the application has written when segment `next` is sent next.
    pub fn stop_writing(&mut self, next: u32) {
        self.end = self.end.min(self.filled.max(next));
    }

    /// Discards the data from segment `next` on.
    pub fn truncate(&mut self, next: u32) {
        self.end = self.end.min(next);
        self.later.clear();
        self.changes_at = u32::MAX;
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

    /// Returns the number of segments from `next`, which is sent next, to the end of its buffer.
    #[inline]
    pub fn buffered(&mut self, next: u32, window: u32) -> u32 {
        if next >= self.changes_at {
            self.change_buffers(next, window);
        }
        (self.end - next).min(self.buffers.left_from(next))
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
            && self.buffers.start <= next
            && self.later.iter().is_sorted_by(|one, other| one.start < other.start)
            && self.short.front().is_none_or(|&(number, _)| number >= next)
            && self.short.back().is_none_or(|&(number, _)| number < self.end)
            && self.short.iter().is_sorted_by(|one, other| one.0 < other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS_BYTES: u16 = 1448;

    fn ends(queue: &mut WriteQueue, from: u32, window: u32, count: usize) -> Vec<u32> {
        let mut next = from;
        let mut end = || {
            next += queue.buffered(next, window);
            next
        };
        (0..count).map(|_| end()).collect()
    }

    /// Linux 6.1 with a window of 65,535 bytes: 10 packets leave while the application writes, and buffers
    /// of 22 segments follow, until it writes again with a larger window.
    #[test]
    fn buffers_begin_with_what_the_first_flight_left() {
        let mut queue = WriteQueue::new(MSS_BYTES, 2 << 20);
        queue.append(None, 0, 0);
        assert!(queue.go_on(0, 45));
        assert_eq!(queue.buffered(0, 45), 22);
        queue.go_on(10, 45);
        assert_eq!(ends(&mut queue, 10, 45, 3), [32, 54, 76]);
        // 66 buffers hold 2 MiB, of which less than half is left from segment 738 on.
        assert_eq!(queue.buffered(737, 600), 21);
        assert_eq!(ends(&mut queue, 738, 600, 2), [758, 780]);
        assert_eq!(ends(&mut queue, 1418, 600, 3), [1440, 1485, 1530], "the last one is filled up");
        assert_eq!(queue.buffered(100_000, 600), 45 - (100_000 - 1440) % 45);
    }

    #[test]
    fn a_message_begins_a_buffer_unless_others_wait() {
        let bytes = |segments: u64| Some(segments * u64::from(MSS_BYTES));
        let mut queue = WriteQueue::new(MSS_BYTES, 2 << 20);
        queue.append(bytes(100), 0, 0);
        assert!(queue.go_on(0, 600));
        queue.go_on(10, 600);
        assert_eq!(ends(&mut queue, 10, 600, 3), [55, 100, 100]);
        assert!(!queue.append(bytes(30), 100, 600), "it fits into a buffer");
        assert_eq!(ends(&mut queue, 100, 600, 1), [130]);
        assert!(queue.append(bytes(100), 110, 600));
        assert_eq!(ends(&mut queue, 110, 600, 3), [155, 200, 230]);
        assert!(queue.append(bytes(100), 230, 600));
        assert_eq!(ends(&mut queue, 230, 600, 2), [275, 320]);
    }

    #[test]
    fn an_application_that_stops_leaves_its_buffers() {
        let mut queue = WriteQueue::new(MSS_BYTES, 128 << 10);
        queue.append(None, 0, 600);
        queue.go_on(10, 600);
        queue.stop_writing(10);
        assert_eq!(queue.end(), 10 + 3 * 45, "the first whole buffers from 128 KiB on");
        queue.append(None, 145, 600);
        assert_eq!(ends(&mut queue, 145, 600, 2), [190, 235]);
    }

    #[test]
    fn a_buffer_holds_at_most_half_of_the_window() {
        for (window, segments) in [(0, 1), (3, 1), (9, 4), (88, 44), (90, 45), (1000, 45)] {
            let mut queue = WriteQueue::new(MSS_BYTES, 2 << 20);
            queue.append(None, 0, window);
            assert_eq!(queue.buffered(0, window), segments, "{window}");
        }
    }
}
