//! Fractional part of a window.

use crate::cwnd::CongestionWindow;
#[cfg(not(feature = "std"))]
use jostle_units::FloatMath;

/// The fractional part of a window, for algorithms with real-valued steps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FractionalWindow(f64);

impl FractionalWindow {
    /// Changes `window` by `packets` plus the stored fraction, but not below two packets.
    pub fn add(&mut self, window: &mut CongestionWindow, packets: f64) {
        let due = (self.0 + packets).clamp(-f64::from(u32::MAX), f64::from(u32::MAX));
        let whole = due.floor();
        self.0 = due - whole;
        let cwnd = (f64::from(window.cwnd) + whole).min(f64::from(window.clamp));
        window.cwnd = (cwnd as u32).max(2);
        debug_assert!((0.0..=1.0).contains(&self.0), "{} of a packet", self.0);
    }

    /// Returns the window including the fraction.
    pub fn of(&self, window: &CongestionWindow) -> f64 {
        f64::from(window.cwnd) + self.0
    }

    /// Sets the fraction, below one packet.
    pub fn set(&mut self, packets: f64) {
        debug_assert!((0.0..1.0).contains(&packets), "{packets} of a packet");
        self.0 = packets;
    }

    /// Clears the fraction.
    pub fn clear(&mut self) {
        self.0 = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_add_up_and_windows_stay_in_bounds() {
        let mut window = CongestionWindow { cwnd: 10, clamp: 12, ..CongestionWindow::default() };
        let mut fraction = FractionalWindow::default();
        (0..7).for_each(|_| fraction.add(&mut window, 0.25));
        assert_eq!((window.cwnd, fraction.0, fraction.of(&window)), (11, 0.75, 11.75));
        fraction.add(&mut window, -0.5);
        assert_eq!((window.cwnd, fraction.0), (11, 0.25));
        fraction.add(&mut window, 1e300);
        assert_eq!(window.cwnd, 12);
        fraction.add(&mut window, -1e300);
        assert_eq!(window.cwnd, 2);
    }
}
