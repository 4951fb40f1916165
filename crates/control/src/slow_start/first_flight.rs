//! A first flight that is larger than the initial window and spread over a round trip.

use jostle_units::Rate;

use crate::controller::{AckSample, Congestion, Established, Measurement, RecoveryState};
use crate::window::Window;

/// A first flight that a start-up has made larger, from the handshake to the acknowledgement of its
/// last packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FirstFlight {
    /// Rate until its first ACK; none if there is no such flight, or it is over.
    rate: Option<Rate>,
    initial_window: u32,
    /// One past its last packet, once it is known.
    end: u64,
    /// Packets acknowledged so far.
    first_unacked: u64,
}

impl FirstFlight {
    /// Takes the window to `packets` and their pacing over the round trip of the handshake, if that
    /// is more than the initial window and the round trip is known.
    pub(super) fn spread(window: &mut Window, established: &Established, packets: u32) -> Self {
        let initial_window = established.initial_window.max(1);
        let mut flight = Self { initial_window, ..Self::default() };
        if let Some(rtt) = established.rtt
            && packets > initial_window
        {
            window.cwnd = packets.min(window.clamp);
            let payload_bytes = u64::from(window.cwnd) * u64::from(established.mss_bytes);
            flight.rate = Some(Rate::of(payload_bytes, rtt)).filter(|rate| *rate > Rate::ZERO);
        }
        flight
    }

    /// Rate at which its packets leave; none if it is over.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// One past the last packet of the flight; 0 before its first ACK, or if there is none.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn initial_window(&self) -> u32 {
        self.initial_window
    }

    /// An ACK arrived.
    pub(super) fn on_measurement(&mut self, measurement: &Measurement) {
        self.first_unacked = measurement.first_unacked;
    }

    /// Whether `ack` is the first one. If so, what had been sent by then is the window, unless
    /// recovery owns it: no more than that was seen to fit.
    pub(super) fn ends_with(&mut self, ack: &AckSample, window: &mut Window) -> bool {
        if self.rate.is_none() || ack.delivered == 0 {
            return false;
        }
        self.rate = None;
        self.end = self.end.max(ack.next_to_send);
        if matches!(ack.state, RecoveryState::Open | RecoveryState::Disorder) {
            window.cwnd = window.cwnd.min(ack.prior_in_flight).max(self.initial_window);
        }
        true
    }

    /// Whether congestion met a packet of the flight.
    pub(super) fn concerns(&mut self, congestion: &Congestion) -> bool {
        if self.rate.is_some() {
            // It ends with this ACK, of which `ends_with` has yet to hear.
            self.end = congestion.next_to_send;
        }
        self.first_unacked < self.end
    }

    /// A timeout: nothing is left to be spread.
    pub(super) fn cut_short(&mut self) {
        self.rate = None;
    }
}
