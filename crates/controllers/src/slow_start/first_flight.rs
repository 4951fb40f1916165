//! A first flight larger than the initial window, paced over a round trip.

use jostle_units::Rate;

use crate::cwnd::CongestionWindow;
use jostle_congestion::{
    AckSample, CongestionEvent, EstablishedEvent, RawAckSample, RecoveryState,
};

/// An enlarged first flight, from the handshake until its last packet is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacedFirstFlight {
    /// Pacing rate until its first ACK; `None` without such a flight and after it.
    rate: Option<Rate>,
    initial_window: u32,
    /// Number after its last packet, once known.
    end: u64,
    /// Packets acknowledged so far.
    first_unacked: u64,
}

impl PacedFirstFlight {
    /// Increases the window to `packets` and paces them over the RTT of the handshake, if this is
    /// more than the initial window and the RTT is known.
    pub(super) fn spread(
        window: &mut CongestionWindow,
        established: &EstablishedEvent,
        packets: u32,
    ) -> Self {
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

    /// Returns the pacing rate of the flight; `None` after it.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Returns the number after the last packet of the flight; 0 before its first ACK, or if there
    /// is none.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the packets of the flight that were acknowledged cumulatively.
    pub(super) fn acknowledged(&self) -> u64 {
        self.first_unacked.min(self.end)
    }

    pub(super) fn initial_window(&self) -> u32 {
        self.initial_window
    }

    /// Processes an ACK.
    pub(super) fn on_ack_before_loss_detection(&mut self, measurement: &RawAckSample) {
        self.first_unacked = measurement.first_unacked;
    }

    /// Returns whether `ack` is the first ACK. If so, sets the window to the packets sent so far,
    /// unless recovery controls it: only these were shown to fit.
    pub(super) fn ends_with(&mut self, ack: &AckSample, window: &mut CongestionWindow) -> bool {
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

    /// Returns whether a congestion signal concerns a packet of the flight.
    pub(super) fn concerns(&mut self, congestion: &CongestionEvent) -> bool {
        if self.rate.is_some() {
            // The flight ends with this ACK, which `ends_with` has not processed yet.
            self.end = congestion.next_to_send;
        }
        self.first_unacked < self.end
    }

    /// Ends the flight after a timeout.
    pub(super) fn cut_short(&mut self) {
        self.rate = None;
    }
}
