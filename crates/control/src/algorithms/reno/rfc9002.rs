//! NewReno by the text of RFC 9002, section 7, whose window is in bytes: one of packets is here with
//! its fraction.

use jostle_units::Time;

use crate::controller::{AckSample, Congestion, Established, RecoveryState, Signal};
use crate::window::{Fraction, Window};
use crate::windowed::WindowLaw;

/// "kLossReductionFactor" (B.1; §7.3.2: "half the value of the congestion window").
const LOSS_REDUCTION_FACTOR: f64 = 0.5;

/// "kMinimumWindow", in datagrams (§7.2).
const MINIMUM_WINDOW: f64 = 2.0;

/// The window law of RFC 9002.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rfc9002 {
    fraction: Fraction,
    /// In a recovery period.
    recovering: bool,
}

impl WindowLaw for Rfc9002 {
    fn on_established(&mut self, _window: &mut Window, _established: &Established) {
        *self = Self::default();
    }

    /// B.5, packet by packet: "congestion_window += max_datagram_size * acked_packet.sent_bytes /
    /// congestion_window".
    fn avoid(&mut self, window: &mut Window, acked: u32, _ack: &AckSample) {
        for _ in 0..acked {
            let cwnd = self.fraction.of(window);
            self.fraction.add(window, 1.0 / cwnd);
        }
    }

    /// B.6: "ssthresh = congestion_window * kLossReductionFactor", but "no reaction if already in a
    /// recovery period": persistent congestion, which this calls a timeout, takes the window to the
    /// minimum in addition (B.8), and leaves ssthresh as it is.
    fn ssthresh(&mut self, window: &Window, congestion: &Congestion) -> u32 {
        if congestion.signal == Signal::Timeout {
            self.fraction.clear();
            if self.recovering {
                // PRR may have taken cwnd lower meanwhile.
                return window.ssthresh.min(window.cwnd).max(2);
            }
        }
        let half = self.fraction.of(window) * LOSS_REDUCTION_FACTOR;
        let whole = half.max(MINIMUM_WINDOW).floor();
        if congestion.signal != Signal::Timeout {
            // In bytes half a packet counts; the transport takes cwnd to the whole ones.
            self.fraction.set((half - whole).max(0.0));
        }
        whole as u32
    }

    /// The text has no way back; what the transport takes back is no recovery period.
    fn undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
        self.recovering = false;
        window.cwnd.max(prior_cwnd)
    }

    fn on_state(&mut self, _window: &mut Window, _now: Time, state: RecoveryState) {
        self.recovering = matches!(state, RecoveryState::Cwr | RecoveryState::Recovery);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{ack, loss};

    /// A window with its fraction after an event: reduced at once, as over QUIC.
    fn after(law: &mut Rfc9002, window: &mut Window, signal: Signal) -> f64 {
        window.ssthresh = law.ssthresh(window, &Congestion { signal, ..loss() });
        window.cwnd = if signal == Signal::Timeout { 2 } else { window.ssthresh };
        law.fraction.of(window)
    }

    fn avoiding(cwnd: u32) -> Window {
        Window { cwnd, ssthresh: 2, ..Window::default() }
    }

    /// In packets: 10, 10 + 1 / 10 = 10.1, 10.1 + 1 / 10.1 = 10.19901, 10.29706; whether three ACKs
    /// say so or one does.
    #[test]
    fn a_window_of_packets_brings_less_than_one() {
        for acks in [vec![1, 1, 1], vec![3]] {
            let (mut law, mut window) = (Rfc9002::default(), avoiding(10));
            acks.iter().for_each(|&acked| law.avoid(&mut window, acked, &ack(0)));
            assert!((law.fraction.of(&window) - 10.297_06).abs() < 1e-5);
        }
    }

    /// 25 packets leave 12.5, and those 6.25; never less than two.
    #[test]
    fn half_of_the_bytes_stays() {
        let (mut law, mut window) = (Rfc9002::default(), avoiding(25));
        for left in [12.5, 6.25, 3.125, 2.0, 2.0] {
            assert_eq!(after(&mut law, &mut window, Signal::Loss), left);
            assert_eq!(window.ssthresh, left as u32);
        }
        let (mut law, mut window) = (Rfc9002::default(), avoiding(25));
        assert_eq!(after(&mut law, &mut window, Signal::Ecn), 12.5);
    }

    /// The losses that begin a recovery period and establish persistent congestion are one congestion
    /// event: ssthresh is half of the window, where Linux's Reno would come to a quarter.
    #[test]
    fn persistent_congestion_does_not_halve_again() {
        let (mut law, mut window) = (Rfc9002::default(), avoiding(100));
        after(&mut law, &mut window, Signal::Loss);
        law.on_state(&mut window, Time::ZERO, RecoveryState::Recovery);
        assert_eq!(after(&mut law, &mut window, Signal::Timeout), 2.0);
        assert_eq!((window.cwnd, window.ssthresh), (2, 50));
        // Outside of a recovery period it is an event.
        law.on_state(&mut window, Time::ZERO, RecoveryState::Open);
        window.cwnd = 40;
        after(&mut law, &mut window, Signal::Timeout);
        assert_eq!(window.ssthresh, 20);
    }
}
