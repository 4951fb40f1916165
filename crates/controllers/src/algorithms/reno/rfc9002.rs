//! NewReno as specified in RFC 9002 §7. The RFC counts the window in bytes; here it has
//! packets and a fraction.

use crate::cwnd::{CongestionWindow, FractionalWindow};
use crate::window_based::CongestionAvoidance;
use jostle_congestion::{AckSample, CongestionEvent, CongestionSignal, EstablishedEvent};
#[cfg(not(feature = "std"))]
use jostle_units::FloatMath;

/// "kLossReductionFactor" (RFC 9002 §B.1 and §7.3.2: "half the value of the congestion window").
const LOSS_REDUCTION_FACTOR: f64 = 0.5;

/// "kMinimumWindow", in datagrams (RFC 9002 §7.2).
const MINIMUM_WINDOW: f64 = 2.0;

/// Congestion avoidance of RFC 9002.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rfc9002 {
    fraction: FractionalWindow,
}

impl CongestionAvoidance for Rfc9002 {
    fn on_established(&mut self, _window: &mut CongestionWindow, _established: &EstablishedEvent) {
        *self = Self::default();
    }

    /// RFC 9002 §7.3.3 and §B.5, packet by packet: "congestion_window += max_datagram_size *
    /// acked_packet.sent_bytes / congestion_window".
    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, _ack: &AckSample) {
        for _ in 0..acked {
            let cwnd = self.fraction.of(window);
            self.fraction.add(window, 1.0 / cwnd);
        }
    }

    /// RFC 9002 §B.6: "ssthresh = congestion_window * kLossReductionFactor". After persistent
    /// congestion, here called a timeout, the transport sets the window to the minimum
    /// (RFC 9002 §B.8).
    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        let half = self.fraction.of(window) * LOSS_REDUCTION_FACTOR;
        let whole = half.max(MINIMUM_WINDOW).floor();
        if congestion.signal == CongestionSignal::Timeout {
            self.fraction.clear();
        } else {
            // Half a packet counts in bytes; the transport sets cwnd to whole packets.
            self.fraction.set((half - whole).max(0.0));
        }
        whole as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{ack, loss};

    /// A window with its fraction after an event: reduced at once, as over QUIC.
    fn after(law: &mut Rfc9002, window: &mut CongestionWindow, signal: CongestionSignal) -> f64 {
        window.ssthresh = law.ssthresh_after(window, &CongestionEvent { signal, ..loss() });
        window.cwnd = if signal == CongestionSignal::Timeout { 2 } else { window.ssthresh };
        law.fraction.of(window)
    }

    fn avoiding(cwnd: u32) -> CongestionWindow {
        CongestionWindow { cwnd, ssthresh: 2, ..CongestionWindow::default() }
    }

    /// In packets: 10, 10 + 1 / 10 = 10.1, 10.1 + 1 / 10.1 = 10.19901, 10.29706; whether three ACKs
    /// say so or one does.
    #[test]
    fn a_window_of_packets_brings_less_than_one() {
        for acks in [vec![1, 1, 1], vec![3]] {
            let (mut law, mut window) = (Rfc9002::default(), avoiding(10));
            acks.iter().for_each(|&acked| law.increase_cwnd(&mut window, acked, &ack(0)));
            assert!((law.fraction.of(&window) - 10.297_06).abs() < 1e-5);
        }
    }

    /// 25 packets leave 12.5, and those 6.25; never less than two.
    #[test]
    fn half_of_the_bytes_stays() {
        let (mut law, mut window) = (Rfc9002::default(), avoiding(25));
        for left in [12.5, 6.25, 3.125, 2.0, 2.0] {
            assert_eq!(after(&mut law, &mut window, CongestionSignal::Loss), left);
            assert_eq!(window.ssthresh, left as u32);
        }
        let (mut law, mut window) = (Rfc9002::default(), avoiding(25));
        assert_eq!(after(&mut law, &mut window, CongestionSignal::Ecn), 12.5);
    }

    /// RFC 9002 §B.8: the fraction of a window that is set to its minimum does not stay.
    #[test]
    fn persistent_congestion_leaves_two_packets() {
        let (mut law, mut window) = (Rfc9002::default(), avoiding(25));
        assert_eq!(after(&mut law, &mut window, CongestionSignal::Timeout), 2.0);
        assert_eq!((window.cwnd, window.ssthresh), (2, 12));
    }
}
