//! RTTs of a round as in Vegas and YeAH (`struct vegas` in Linux).

use jostle_congestion::{AckSample, CongestionEvent, RawAckSample, RecoveryState};

/// Minimum RTTs of the round and of the connection, and where rounds end.
#[derive(Clone, Debug)]
pub struct RoundRtts {
    /// The connection is in state `Open` (`doing_vegas_now`).
    enabled: bool,
    /// Packet whose acknowledgement ends the round (`beg_snd_nxt`).
    round_end: u64,
    /// Current `snd_nxt`.
    next_to_send: u64,
    /// RTT samples in the round.
    samples: u32,
    /// Minimum RTT of the round, plus 1 µs so that it is never zero; `None` before a sample.
    round_min_us: Option<u64>,
    /// Minimum RTT since the last idle time.
    base_us: Option<u64>,
}

impl Default for RoundRtts {
    fn default() -> Self {
        Self {
            enabled: true,
            round_end: 0,
            next_to_send: 0,
            samples: 0,
            round_min_us: None,
            base_us: None,
        }
    }
}

impl RoundRtts {
    /// Waits for a complete round of fresh samples (`tcp_vegas.c::vegas_enable`).
    fn enable(&mut self) {
        self.enabled = true;
        self.start_round(self.next_to_send);
    }

    /// Starts a round. `round_end` is `snd_nxt`.
    pub fn start_round(&mut self, round_end: u64) {
        self.round_end = round_end;
        self.samples = 0;
        self.round_min_us = None;
    }

    /// After an idle time the path may have changed: measure the base RTT again.
    pub fn on_flight_start(&mut self) {
        self.base_us = None;
        self.enable();
    }

    pub fn on_ack_before_loss_detection(&mut self, measurement: &RawAckSample) {
        self.next_to_send = measurement.next_to_send;
        let Some(rtt) = measurement.rtt else { return };
        let rtt_us = rtt.as_us() + 1;
        self.base_us = Some(self.base_us.map_or(rtt_us, |base| base.min(rtt_us)));
        self.round_min_us = Some(self.round_min_us.map_or(rtt_us, |min| min.min(rtt_us)));
        self.samples = self.samples.saturating_add(1);
    }

    pub fn on_congestion_event(&mut self, congestion: &CongestionEvent) {
        self.next_to_send = congestion.next_to_send;
    }

    pub fn on_recovery_state(&mut self, state: RecoveryState) {
        if state == RecoveryState::Open {
            self.enable();
        } else {
            self.enabled = false;
        }
    }

    pub fn enabled(&self) -> bool {
        self.enabled
    }

    pub fn round_is_over(&self, ack: &AckSample) -> bool {
        ack.first_unacked > self.round_end
    }

    /// Returns the minimum RTTs of the round and of the connection. The latter is never larger.
    /// `None` if the round has at most two samples, which are probably from delayed ACKs.
    pub fn minima_us(&self) -> Option<(u64, u64)> {
        match (self.round_min_us, self.base_us) {
            (Some(rtt_us), Some(base_us)) if self.samples > 2 => Some((rtt_us, base_us)),
            _ => None,
        }
    }

    pub fn base_us(&self) -> Option<u64> {
        self.base_us
    }

    #[cfg(test)]
    pub fn with_base_us(base_us: u64) -> Self {
        Self { base_us: Some(base_us), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::Span;

    use super::*;

    #[test]
    fn only_state_open_counts_and_only_a_new_flight_forgets_the_base() {
        let mut rtts = RoundRtts::default();
        rtts.on_ack_before_loss_detection(&RawAckSample {
            rtt: Some(Span::from_us(9_999)),
            next_to_send: 500,
            ..RawAckSample::default()
        });
        rtts.on_recovery_state(RecoveryState::Disorder);
        assert!(!rtts.enabled());
        rtts.on_recovery_state(RecoveryState::Open);
        assert!(rtts.enabled());
        assert_eq!((rtts.round_end, rtts.base_us), (500, Some(10_000)));
        rtts.on_flight_start();
        assert_eq!(rtts.base_us, None);
    }
}
