//! The receive window: its growth, the data that occupies it, and window updates. It never shrinks.

use jostle_units::Time;

use super::autotuning::ReceiveBufferAutotuning;
use crate::reciprocal_division::ReciprocalDivisor;

/// Default window of a SYN-ACK, which cannot be scaled (RFC 7323 §2.2).
const INITIAL_BYTES: u64 = 65_535;

/// Memory of an `sk_buff` without its payload: the structure, its shared part, and the room for headers.
const BUFFER_BYTES: u64 = 256 + 320 + 192;
/// Segments that are coalesced into one `sk_buff` (`MAX_SKB_FRAGS` − 1).
const SEGMENTS_PER_BUFFER: u64 = 16;

/// The receive window.
#[derive(Debug)]
pub(super) struct ReceiveWindow {
    /// Payload of a full-sized segment.
    mss: ReciprocalDivisor,
    /// `rcv_ssthresh`: current size of the window.
    bytes: u64,
    /// `window_clamp`: maximum size of the window.
    most_bytes: u64,
    /// Autotuning of the maximum, if enabled. Boxed because few receivers use it.
    autotuning: Option<Box<ReceiveBufferAutotuning>>,
    /// End of the offered window, in segments.
    offered: u32,
}

impl ReceiveWindow {
    /// Creates a window that may grow to `most_bytes`.
    pub fn new(mss_bytes: u16, most_bytes: u64) -> Self {
        let mss = ReciprocalDivisor::new(u32::from(mss_bytes));
        let bytes = INITIAL_BYTES.min(most_bytes);
        let offered = mss.divide(bytes) as u32;
        Self { mss, bytes, most_bytes, autotuning: None, offered }
    }

    /// Sets the window before data arrives to `bytes`.
    pub fn begin_with(&mut self, bytes: u64) {
        self.bytes = bytes.min(self.most_bytes);
        self.offered = self.segments();
    }

    /// Enables autotuning: the limit starts at the current window and grows with the data read.
    pub fn tune(&mut self) {
        self.autotuning = Some(Box::new(ReceiveBufferAutotuning::new(
            self.segment_bytes(),
            self.bytes,
            self.most_bytes,
        )));
        self.most_bytes = self.bytes;
    }

    /// Returns the payload of a full-sized segment.
    #[inline]
    pub fn segment_bytes(&self) -> u64 {
        u64::from(self.mss.get())
    }

    /// Returns the size of the window in full-sized segments.
    #[inline]
    pub fn segments(&self) -> u32 {
        self.mss.divide(self.bytes) as u32
    }

    /// Processes a full-sized segment that echoes `tsecr_ms`.
    #[inline]
    pub fn on_segment(&mut self, now: Time, tsecr_ms: u32) {
        if let Some(tuning) = &mut self.autotuning {
            tuning.on_segment(now, tsecr_ms);
        }
    }

    /// Processes a read of `bytes` by the application.
    #[inline]
    pub fn on_read(&mut self, now: Time, bytes: u64) {
        if let Some(limit) = self.autotuning.as_mut().and_then(|tuning| tuning.on_read(now, bytes))
        {
            self.most_bytes = self.most_bytes.max(limit);
        }
    }

    /// `tcp_input.c::tcp_grow_window`: grows by two segments per arriving segment, up to the
    /// buffer. Returns whether the window was below its maximum.
    #[inline]
    pub fn grow(&mut self) -> bool {
        let growing = self.bytes < self.most_bytes;
        if growing {
            self.bytes = (self.bytes + 2 * self.segment_bytes()).min(self.most_bytes);
        }
        growing
    }

    /// Returns the end of the offered window (`rcv_wup` + `rcv_wnd`).
    #[inline]
    pub const fn end(&self) -> u32 {
        self.offered
    }

    /// Returns how much of the window `segments` of unread or out-of-order data occupy if they are
    /// coalesced (`tcp_input.c::tcp_try_coalesce`). Half of a socket's memory is receive window, and 16
    /// segments share the memory of one `sk_buff`: a buffer with a window of 500 kB holds 930 kB.
    pub fn coalesced_bytes(&self, segments: u32) -> u64 {
        let memory_bytes = self.segment_bytes() + BUFFER_BYTES / SEGMENTS_PER_BUFFER;
        u64::from(segments) * memory_bytes / 2
    }

    /// Returns the number of full-sized segments that fit while data occupy `occupied_bytes` of it,
    /// or 0 if less than a sixteenth of it is free (`tcp_output.c::__tcp_select_window`).
    #[inline]
    pub fn free_segments(&self, occupied_bytes: u64) -> u32 {
        let free = self.most_bytes.saturating_sub(occupied_bytes);
        if free < self.most_bytes / 16 { 0 } else { self.mss.divide(free.min(self.bytes)) as u32 }
    }

    /// Returns whether less than half of the window is free.
    pub const fn is_half_full(&self, occupied_bytes: u64) -> bool {
        self.most_bytes.saturating_sub(occupied_bytes) < self.most_bytes / 2
    }

    /// Returns whether the window has no free space to grow into (`tcp_input.c::tcp_grow_window`).
    pub const fn is_full(&self, occupied_bytes: u64) -> bool {
        self.most_bytes.saturating_sub(occupied_bytes) <= self.bytes
    }

    /// Returns whether to send a window update after a read that left `occupied_bytes` in the
    /// buffer: the window beyond `next` could be twice as large as the sender assumes, or is no
    /// longer zero (`tcp.c::tcp_cleanup_rbuf`).
    #[inline]
    pub fn reopens(&self, next: u32, occupied_bytes: u64) -> bool {
        let twice = 2 * self.offered.saturating_sub(next);
        // Most windows are more than half open, so that the free space need not be computed.
        u64::from(twice) * self.segment_bytes() <= self.most_bytes
            && twice <= self.segments()
            && self.free_segments(occupied_bytes) >= twice.max(1)
    }

    /// Returns the number of segments that the sender may send beyond `next` while data occupy
    /// `occupied_bytes`. The end of the window never moves back
    /// (`tcp_output.c::tcp_select_window`).
    #[inline]
    pub fn offer(&mut self, next: u32, occupied_bytes: u64) -> u32 {
        self.offered = self.offered.max(next.saturating_add(self.free_segments(occupied_bytes)));
        self.offered - next
    }
}
