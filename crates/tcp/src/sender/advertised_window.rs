//! The receive window as known to the sender.

/// The receive window and its probes. All numbers are in segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AdvertisedWindow {
    /// End of the window, which never moves back.
    pub end: u32,
    /// `snd_wnd`: the last offered window.
    offered: u32,
    /// `max_window`: the largest window ever offered.
    pub largest: u32,
    /// `icsk_probes_out`: number of probes since the window closed.
    pub probes: u32,
}

impl AdvertisedWindow {
    /// Creates the window of a SYN-ACK.
    pub const fn of_handshake(window: u32) -> Self {
        Self { end: window, offered: window, largest: window, probes: 0 }
    }

    /// Processes the `window` offered by an ACK of all data before `number`. Returns whether the
    /// end of the window advanced.
    #[inline]
    pub const fn extend(&mut self, number: u32, window: u32) -> bool {
        let end = number.saturating_add(window);
        let grown = end > self.end;
        if grown {
            self.end = end;
        }
        grown
    }

    /// Returns whether an ACK offers another window than the previous one, so that header
    /// prediction fails. Of two ACKs with the same number, the larger window applies
    /// (`tcp_input.c::tcp_may_update_window`).
    #[inline]
    pub fn differs(&mut self, window: u32, advanced: bool) -> bool {
        let differs = self.is_other(window);
        if advanced || window > self.offered {
            self.offered = window;
            self.largest = self.largest.max(window);
        }
        differs
    }

    /// Returns whether `window` differs from the window of the previous ACK.
    pub const fn is_other(&self, window: u32) -> bool {
        window != self.offered
    }

    /// Returns how many segments from `number` on the window allows.
    #[inline]
    pub const fn sendable_segments(&self, number: u32) -> u32 {
        self.end.saturating_sub(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_offered_stays_offered() {
        let mut window = AdvertisedWindow::of_handshake(45);
        assert!(!window.extend(10, 30));
        assert_eq!(
            (
                window.sendable_segments(10),
                window.sendable_segments(45),
                window.sendable_segments(50)
            ),
            (35, 0, 0)
        );
        assert!(window.extend(10, 36));
        assert_eq!(window.sendable_segments(10), 36);
        assert!(window.extend(u32::MAX - 1, 7));
        assert_eq!(window.end, u32::MAX);
    }

    #[test]
    fn of_two_acks_of_one_number_the_larger_window_holds() {
        let mut window = AdvertisedWindow::of_handshake(45);
        assert!(!window.differs(45, true));
        assert!(window.differs(40, false));
        assert!(!window.differs(45, false), "40 came with the same number");
        assert!(window.differs(40, true));
        assert!(!window.differs(40, false));
    }
}
