//! The window that a receiver offers: how it opens, what occupies it, that it is never taken back,
//! and when the sender should hear that it has opened.

use jostle_units::Time;

use super::autotuning::Autotuning;
use crate::size::Divisor;

/// Window of a SYN-ACK, which cannot be scaled (RFC 7323 §2.2), unless a run says otherwise.
const INITIAL_BYTES: u64 = 65_535;

/// A receiver's window.
#[derive(Debug)]
pub(super) struct Window {
    /// Payload of a full-sized segment.
    mss: Divisor,
    /// `rcv_ssthresh`: what has been grown into.
    bytes: u64,
    /// `window_clamp`: the most it may grow to.
    most_bytes: u64,
    /// What moves that limit; none where it stands. Few receivers have it, and all would be larger.
    autotuning: Option<Box<Autotuning>>,
    /// End of what was offered, in segments.
    offered: u32,
}

impl Window {
    /// A window that may grow to `most_bytes`.
    pub fn new(mss_bytes: u16, most_bytes: u64) -> Self {
        let mss = Divisor::new(u32::from(mss_bytes));
        let bytes = INITIAL_BYTES.min(most_bytes);
        let offered = mss.divide(bytes) as u32;
        Self { mss, bytes, most_bytes, autotuning: None, offered }
    }

    /// Is `bytes` before any data have arrived.
    pub fn begin_with(&mut self, bytes: u64) {
        self.bytes = bytes.min(self.most_bytes);
        self.offered = self.segments();
    }

    /// Lets the limit grow from what the window is now, with what is read.
    pub fn tune(&mut self) {
        self.autotuning =
            Some(Box::new(Autotuning::new(self.segment_bytes(), self.bytes, self.most_bytes)));
        self.most_bytes = self.bytes;
    }

    /// Payload of a full-sized segment.
    #[inline]
    pub fn segment_bytes(&self) -> u64 {
        u64::from(self.mss.get())
    }

    /// Whole segments that it holds.
    #[inline]
    pub fn segments(&self) -> u32 {
        self.mss.divide(self.bytes) as u32
    }

    /// A full-sized segment arrived that echoes `tsecr_ms`.
    #[inline]
    pub fn on_segment(&mut self, now: Time, tsecr_ms: u32) {
        if let Some(tuning) = &mut self.autotuning {
            tuning.on_segment(now, tsecr_ms);
        }
    }

    /// The application read `bytes`.
    #[inline]
    pub fn on_read(&mut self, now: Time, bytes: u64) {
        if let Some(limit) = self.autotuning.as_mut().and_then(|tuning| tuning.on_read(now, bytes))
        {
            self.most_bytes = self.most_bytes.max(limit);
        }
    }

    /// `tcp_grow_window`: two segments more for every one that arrives, up to the buffer. Whether
    /// there was room.
    #[inline]
    pub fn grow(&mut self) -> bool {
        let growing = self.bytes < self.most_bytes;
        if growing {
            self.bytes = (self.bytes + 2 * self.segment_bytes()).min(self.most_bytes);
        }
        growing
    }

    /// End of what was offered (`rcv_wup` + `rcv_wnd`).
    #[inline]
    pub const fn end(&self) -> u32 {
        self.offered
    }

    /// Whole segments that there is room for while `held` occupy the buffer; none if less than a
    /// sixteenth of it is free (`__tcp_select_window`).
    #[inline]
    fn room(&self, held: u32) -> u32 {
        let free = self.most_bytes.saturating_sub(u64::from(held) * self.segment_bytes());
        if free < self.most_bytes / 16 { 0 } else { self.mss.divide(free.min(self.bytes)) as u32 }
    }

    /// After a read that left `held` in the buffer: whether the window beyond `next` could be
    /// twice what it is as the sender knows it, or open again (`tcp_cleanup_rbuf`).
    #[inline]
    pub fn reopens(&self, next: u32, held: u32) -> bool {
        let twice = 2 * self.offered.saturating_sub(next);
        // Most windows are more than half open, and need no look at the room.
        u64::from(twice) * self.segment_bytes() <= self.most_bytes
            && twice <= self.segments()
            && self.room(held) >= twice.max(1)
    }

    /// Segments that the sender may send beyond `next`, while `held` occupy the buffer. What was
    /// offered once stays offered (`tcp_select_window`).
    #[inline]
    pub fn offer(&mut self, next: u32, held: u32) -> u32 {
        self.offered = self.offered.max(next.saturating_add(self.room(held)));
        self.offered - next
    }
}
