//! Limited slow start.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};

use super::algorithm::SlowStart;
use crate::cwnd::CongestionWindow;
use crate::registry_rows::SlowStartEntry;
use jostle_congestion::AckSample;

pub(super) const MAX_SSTHRESH: Parameter = Parameter::integer("max_ssthresh", 100, 1..=0x7fff_ffff)
    .summary(
        "cwnd up to which it doubles, in packets; above, it grows by half of this per round trip",
    );

pub(crate) const ROW: SlowStartEntry = SlowStartEntry {
    entry: RegistryEntry {
        name: "limited",
        summary: "doubles cwnd up to 100 packets, then adds at most 50 per round trip",
        class: "window",
        based_on: &["standard"],
        source: "RFC 3742",
        parameters: &[MAX_SSTHRESH],
    },
    build: |values| Box::new(Limited::new(values)),
};

/// RFC 3742 §2: "If (cwnd <= max_ssthresh) cwnd += MSS; else K = int(cwnd/(0.5 max_ssthresh));
/// cwnd += int(MSS/K);" for each ACK.
///
/// The window has whole packets, so int(MSS/K) is one packet per K packets acknowledged. Packets
/// are counted, not ACKs: delayed ACKs do not halve the growth. Its bound of max_ssthresh / 2 per
/// round trip holds in both cases.
#[derive(Clone, Copy, Debug)]
pub struct Limited {
    max_ssthresh: u32,
    /// Packets acknowledged towards the next increase by one.
    count: u32,
}

impl Limited {
    /// Creates Limited slow start with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self { max_ssthresh: values.u32(MAX_SSTHRESH.name).max(1), count: 0 }
    }

    /// Increases `window` for `acked` packets. Returns the packets left over when it reaches
    /// ssthresh.
    pub(super) fn increase(&mut self, window: &mut CongestionWindow, acked: u32) -> u32 {
        let doubling = acked.min(self.max_ssthresh.saturating_sub(window.cwnd));
        let mut left = window.slow_start(doubling) + (acked - doubling);
        // At most max_ssthresh / 2 iterations for a window of packets.
        while left > 0 && window.in_slow_start() && window.cwnd < window.clamp {
            let k = u64::from(window.cwnd) * 2 / u64::from(self.max_ssthresh);
            let k = u32::try_from(k.max(1)).unwrap_or(u32::MAX);
            let missing = k.saturating_sub(self.count);
            if left < missing {
                self.count += left;
                return 0;
            }
            left -= missing;
            self.count = 0;
            window.cwnd += 1;
        }
        if window.in_slow_start() { 0 } else { left }
    }
}

impl SlowStart for Limited {
    fn grow(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> u32 {
        self.increase(window, ack.acked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited() -> Limited {
        Limited::new(&ROW.entry.defaults())
    }

    /// Rounds of one ACK per `per_ack` packets in flight until the window reaches `goal`.
    fn rounds(window: &mut CongestionWindow, per_ack: u32, goal: u32) -> Vec<u32> {
        let mut limited = limited();
        let mut windows = vec![window.cwnd];
        while window.cwnd < goal {
            let mut in_flight = window.cwnd;
            while in_flight > 0 {
                let acked = in_flight.min(per_ack);
                assert_eq!(limited.increase(window, acked), 0);
                in_flight -= acked;
            }
            windows.push(window.cwnd);
        }
        windows
    }

    #[test]
    fn up_to_max_ssthresh_it_doubles() {
        let mut window = CongestionWindow { cwnd: 10, ..CongestionWindow::default() };
        assert_eq!(rounds(&mut window, 1, 80), [10, 20, 40, 80]);
    }

    /// algorithms.md: 100 → 1000 takes 18 round trips at least; RFC 3742's K makes each of them
    /// worth 50 packets to the packet, whether ACKs are delayed or not.
    #[test]
    fn above_it_every_round_adds_half_of_max_ssthresh() {
        for per_ack in [1, 2, 7] {
            let mut window = CongestionWindow { cwnd: 100, ..CongestionWindow::default() };
            let windows = rounds(&mut window, per_ack, 1000);
            let expected: Vec<u32> = (2..=20).map(|halves| 50 * halves).collect();
            assert_eq!(windows, expected, "{per_ack} packets per ACK");
        }
    }

    #[test]
    fn one_ack_may_cross_max_ssthresh() {
        let mut window = CongestionWindow { cwnd: 96, ..CongestionWindow::default() };
        // Four packets to 100, then K = 2: six more make three.
        assert_eq!(limited().increase(&mut window, 10), 0);
        assert_eq!(window.cwnd, 103);
    }

    #[test]
    fn what_ssthresh_leaves_over_is_for_avoidance() {
        for (cwnd, ssthresh, left) in [(10, 12, 8), (100, 102, 6)] {
            let mut window = CongestionWindow { cwnd, ssthresh, ..CongestionWindow::default() };
            assert_eq!(limited().increase(&mut window, 10), left);
            assert_eq!(window.cwnd, ssthresh);
        }
    }

    #[test]
    fn the_clamp_holds() {
        let mut window = CongestionWindow { cwnd: 100, clamp: 103, ..CongestionWindow::default() };
        assert_eq!(limited().increase(&mut window, 50), 0);
        assert_eq!(window.cwnd, 103);
    }
}
