//! State and counters of the sender, for measurements.

use jostle_qlog::SenderState;
use jostle_units::SendLimit;

use super::QuicEndpoint;
use crate::stats::SenderCounters;

impl QuicEndpoint {
    /// Returns the state of the sender; `None` for a server.
    pub fn state(&self) -> Option<SenderState> {
        let sending = self.sending.as_ref()?;
        let congestion = sending.congestion.lock();
        let size = u64::from(congestion.datagram_bytes());
        let established = self.live.as_ref().is_some_and(|live| live.established);
        let ssthresh = congestion.ssthresh();
        Some(SenderState {
            srtt: congestion.srtt(),
            min_rtt: congestion.min_rtt(),
            cwnd_bytes: u64::from(congestion.cwnd()) * size,
            ssthresh_bytes: ssthresh.map(|packets| u64::from(packets) * size),
            in_flight_bytes: congestion.in_flight_bytes(),
            pacing_rate: congestion.visible_pacing_rate(),
            mode: if established { congestion.mode() } else { "handshake" },
            datagram_bytes: congestion.datagram_bytes(),
        })
    }

    /// Returns what limited the sender when it sent last; `None` for a server, and before the
    /// handshake is complete.
    pub fn send_limit(&self) -> Option<SendLimit> {
        self.congestion()?.send_limit()
    }

    /// Returns the counters of the sender; `None` for a server.
    pub fn counters(&self) -> Option<SenderCounters> {
        let sending = self.sending.as_ref()?;
        let congestion = sending.congestion.lock();
        let totals = congestion.totals();
        Some(SenderCounters {
            sent_packets: totals.sent,
            sent_bytes: totals.sent_bytes,
            lost_packets: totals.lost,
            lost_bytes: totals.lost_bytes,
            new_bytes: totals.stream_bytes,
            retransmitted_bytes: totals.repeated_bytes,
            acked_bytes: totals.acked_bytes,
            spurious: totals.spurious,
            marked_packets: totals.marked,
        })
    }

    /// Reports the controller's internal state.
    pub fn observe(&self, observer: &mut dyn jostle_congestion::StateObserver) {
        if let Some(congestion) = self.congestion()
            && let Some(controller) = congestion.controller()
        {
            controller.observe(observer);
        }
    }
}
