//! The window that congestion avoidance and slow start share.

mod fractional;

pub(crate) use fractional::FractionalWindow;

/// `TCP_INFINITE_SSTHRESH` in Linux: no slow-start threshold yet.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// The window that congestion avoidance and slow start share, in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionWindow {
    /// Congestion window, at least 1.
    pub cwnd: u32,
    /// Slow-start threshold.
    pub ssthresh: u32,
    /// Packets acknowledged towards the next increase by one (`snd_cwnd_cnt` in Linux).
    pub count: u32,
    /// Largest cwnd (`snd_cwnd_clamp` in Linux).
    pub clamp: u32,
}

impl Default for CongestionWindow {
    fn default() -> Self {
        Self { cwnd: 10, ssthresh: INFINITE_SSTHRESH, count: 0, clamp: u32::MAX }
    }
}

impl CongestionWindow {
    /// Returns whether slow start applies.
    #[inline]
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Returns three quarters of cwnd, rounded as in Linux.
    #[inline]
    pub const fn three_quarters(&self) -> u32 {
        self.cwnd / 2 + self.cwnd / 4
    }

    /// Standard slow start (RFC 5681: "increments cwnd by at most SMSS bytes for each ACK received
    /// that cumulatively acknowledges new data"), in packets and without the limit per ACK as in
    /// Linux: adds one packet per acknowledged packet, up to ssthresh. Returns the packets left
    /// over for congestion avoidance.
    /// `tcp_cong.c::tcp_slow_start`.
    #[inline]
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let target = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let left_over = acked - (target - self.cwnd);
        self.cwnd = target.min(self.clamp);
        left_over
    }

    /// Additive increase: adds one packet per `per_increase` acknowledged packets
    /// (`tcp_cong.c::tcp_cong_avoid_ai` in Linux). As in Linux, credits collected under a larger
    /// `per_increase` count immediately when it falls, but only as a single packet.
    #[inline]
    pub fn additive_increase(&mut self, per_increase: u32, acked: u32) {
        let per_increase = per_increase.max(1);
        if self.count >= per_increase {
            self.count = 0;
            self.cwnd = self.cwnd.saturating_add(1);
        }
        self.count = self.count.saturating_add(acked);
        if self.count >= per_increase {
            let increase = self.count / per_increase;
            self.count -= increase * per_increase;
            self.cwnd = self.cwnd.saturating_add(increase);
        }
        self.cwnd = self.cwnd.min(self.clamp);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(cwnd: u32, ssthresh: u32) -> CongestionWindow {
        CongestionWindow { cwnd, ssthresh, ..CongestionWindow::default() }
    }

    #[test]
    fn slow_start_hands_the_overshoot_to_avoidance() {
        let mut w = window(10, 14);
        assert_eq!(w.slow_start(3), 0);
        assert_eq!(w.slow_start(3), 2);
        assert_eq!(w.cwnd, 14);
    }

    #[test]
    fn additive_increase_adds_one_packet_per_window() {
        let mut w = window(10, 5);
        for _ in 0..10 {
            w.additive_increase(10, 1);
        }
        assert_eq!((w.cwnd, w.count), (11, 0));
        w.additive_increase(11, 25);
        assert_eq!((w.cwnd, w.count), (13, 3));
    }

    #[test]
    fn credit_from_a_larger_period_counts_once() {
        let mut w = window(10, 5);
        w.additive_increase(100, 60);
        w.additive_increase(20, 1);
        assert_eq!((w.cwnd, w.count), (11, 1));
    }

    #[test]
    fn the_clamp_holds() {
        let mut w = CongestionWindow { clamp: 12, ..window(11, 100) };
        w.slow_start(50);
        assert_eq!(w.cwnd, 12);
        w.additive_increase(1, 50);
        assert_eq!(w.cwnd, 12);
    }
}
