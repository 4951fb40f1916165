//! The window that the receiver offers, as the sender knows it.

/// How far the sender may go. All numbers are of segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerWindow {
    /// End of the window: what was offered once stays offered.
    pub end: u32,
    /// `snd_wnd`: the window as it was last offered.
    offered: u32,
    /// `icsk_probes_out`: probes of a window that has not opened since.
    pub probes: u32,
}

impl PeerWindow {
    /// The window of a SYN-ACK.
    pub const fn of_handshake(window: u32) -> Self {
        Self { end: window, offered: window, probes: 0 }
    }

    /// An ACK of everything before `number` offers `window`: whether the sender may go farther.
    #[inline]
    pub const fn extend(&mut self, number: u32, window: u32) -> bool {
        let end = number.saturating_add(window);
        let grown = end > self.end;
        if grown {
            self.end = end;
        }
        grown
    }

    /// Whether an ACK offers another window than the one before it, which header prediction does not
    /// expect. Of two ACKs of the same number the larger window holds (`tcp_may_update_window`).
    #[inline]
    pub const fn differs(&mut self, window: u32, advanced: bool) -> bool {
        let differs = window != self.offered;
        if advanced || window > self.offered {
            self.offered = window;
        }
        differs
    }

    /// Segments from `number` on that may be sent.
    #[inline]
    pub const fn room(&self, number: u32) -> u32 {
        self.end.saturating_sub(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_offered_stays_offered() {
        let mut window = PeerWindow::of_handshake(45);
        assert!(!window.extend(10, 30));
        assert_eq!((window.room(10), window.room(45), window.room(50)), (35, 0, 0));
        assert!(window.extend(10, 36));
        assert_eq!(window.room(10), 36);
        assert!(window.extend(u32::MAX - 1, 7));
        assert_eq!(window.end, u32::MAX);
    }

    #[test]
    fn of_two_acks_of_one_number_the_larger_window_holds() {
        let mut window = PeerWindow::of_handshake(45);
        assert!(!window.differs(45, true));
        assert!(window.differs(40, false));
        assert!(!window.differs(45, false), "40 came with the same number");
        assert!(window.differs(40, true));
        assert!(!window.differs(40, false));
    }
}
