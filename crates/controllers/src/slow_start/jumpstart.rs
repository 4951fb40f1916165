//! JumpStart: no start-up phase.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Rate, Time};

use super::{SlowStart, first_flight::PacedFirstFlight};
use crate::cwnd::CongestionWindow;
use crate::registry_rows::SlowStartEntry;
use jostle_congestion::{
    AckSample, CongestionEvent, CongestionSignal, EstablishedEvent, RawAckSample,
};

pub(crate) const ROW: SlowStartEntry = SlowStartEntry {
    entry: RegistryEntry {
        name: "jumpstart",
        summary: "paces all available data over the first RTT, then continues with ACK clocking",
        class: "window",
        based_on: &["standard"],
        source: "Liu, Allman, Jin & Wang, Congestion Control Without a Startup Phase, PFLDnet 2007",
        parameters: &[Parameter::choice("then", "avoidance", &["avoidance", "slow_start"])
            .summary(
                "phase after the first flight: congestion avoidance from its size on, or slow \
                 start",
            )],
    },
    build: |values| Box::new(JumpStart::new(values)),
};

/// The first flight contains all data that the application has written and the receive window
/// allows, paced over the RTT of the handshake. It ends with its first ACK, and the window is then
/// the number of packets sent so far. "The remainder of TCP's congestion control algorithms remain
/// intact", except for a loss in this flight: if R of D packets were retransmitted, D − R packets
/// fitted, and recovery ends with half of them as the window.
#[derive(Clone, Debug)]
pub struct JumpStart {
    avoids: bool,
    flight: PacedFirstFlight,
    /// Congestion signal that started the recovery of the first flight.
    recovering: Option<CongestionSignal>,
}

impl JumpStart {
    /// Creates JumpStart with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        let avoids = values.choice("then") == "avoidance";
        Self { avoids, flight: PacedFirstFlight::default(), recovering: None }
    }

    /// Ends the recovery of the first flight.
    fn finish_recovery(
        &mut self,
        window: &mut CongestionWindow,
        repaired: CongestionSignal,
        ack: &AckSample,
    ) {
        let got_through = self.flight.end().saturating_sub(ack.total_lost);
        let half = u32::try_from(got_through / 2).unwrap_or(u32::MAX).max(2);
        window.ssthresh = half;
        window.cwnd = match repaired {
            CongestionSignal::Timeout => window.cwnd.min(half),
            CongestionSignal::Loss | CongestionSignal::Ecn | CongestionSignal::Request => half,
        };
    }
}

impl SlowStart for JumpStart {
    fn on_established(&mut self, window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.recovering = None;
        self.flight =
            PacedFirstFlight::spread(window, established, established.prospect.sendable());
    }

    fn on_ack_before_loss_detection(
        &mut self,
        _window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        self.flight.on_ack_before_loss_detection(measurement);
    }

    fn on_ack(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        if self.flight.ends_with(ack, window) && self.avoids && window.in_slow_start() {
            window.ssthresh = window.cwnd.max(2);
        }
        if ack.recovery_ended
            && let Some(repaired) = self.recovering.take()
        {
            self.finish_recovery(window, repaired, ack);
        }
    }

    fn grow(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> u32 {
        window.slow_start(ack.acked)
    }

    fn on_congestion_event(
        &mut self,
        _window: &mut CongestionWindow,
        congestion: &CongestionEvent,
    ) {
        if self.flight.concerns(congestion) && congestion.signal != CongestionSignal::Ecn {
            self.recovering = Some(congestion.signal);
        }
    }

    fn on_undo(&mut self) {
        self.recovering = None;
    }

    fn on_timeout(&mut self, _now: Time, _next_to_send: u64) {
        self.flight.cut_short();
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.flight.rate()
    }

    fn mode(&self) -> &'static str {
        if self.flight.rate().is_some() { "jump" } else { "slow_start" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::ack;
    use jostle_congestion::FirstFlightLimits;
    use jostle_units::Span;

    const RTT: Span = Span::from_ms(100);

    fn start(prospect: FirstFlightLimits) -> (JumpStart, CongestionWindow) {
        let mut jump = JumpStart::new(&ROW.entry.defaults());
        let mut window = CongestionWindow::default();
        let established = EstablishedEvent {
            now: Time::ZERO + RTT,
            mss_bytes: 1448,
            initial_window: 10,
            rtt: Some(RTT),
            prospect,
        };
        jump.on_established(&mut window, &established);
        (jump, window)
    }

    fn of_200() -> (JumpStart, CongestionWindow) {
        start(FirstFlightLimits { send_backlog_packets: Some(200), ..FirstFlightLimits::default() })
    }

    fn measured(first_unacked: u64) -> RawAckSample {
        RawAckSample {
            now: Time::ZERO + RTT + RTT,
            rtt: Some(RTT),
            packets: 2,
            first_unacked,
            next_to_send: 200,
            ..RawAckSample::default()
        }
    }

    #[test]
    fn the_first_flight_is_the_lesser_of_data_and_window_over_a_round_trip() {
        for (backlog, receive_window, flight) in
            [(Some(200), 1_000, 200), (None, 1_000, 1_000), (Some(200), 44, 44)]
        {
            let (jump, window) = start(FirstFlightLimits {
                send_backlog_packets: backlog,
                receive_window,
                ..FirstFlightLimits::default()
            });
            assert_eq!(window.cwnd, flight);
            let bytes = u64::from(flight) * 1448;
            assert_eq!(jump.pacing_rate(), Some(Rate::of(bytes, RTT)));
        }
        let (jump, window) = start(FirstFlightLimits {
            send_backlog_packets: Some(10),
            ..FirstFlightLimits::default()
        });
        assert_eq!((window.cwnd, jump.pacing_rate()), (10, None), "the initial window holds it");
    }

    #[test]
    fn the_first_ack_ends_it_with_what_was_sent() {
        let (mut jump, mut window) = of_200();
        let first = AckSample { prior_in_flight: 150, next_to_send: 150, ..ack(2) };
        jump.on_ack_before_loss_detection(
            &mut window,
            &RawAckSample { next_to_send: 150, ..measured(2) },
        );
        jump.on_ack(&mut window, &first);
        assert_eq!((window.cwnd, window.ssthresh, jump.pacing_rate()), (150, 150, None));
    }

    /// (D − R) / 2: of 200 packets 60 were lost.
    #[test]
    fn recovery_ends_with_half_of_what_got_through() {
        let (mut jump, mut window) = of_200();
        let first = AckSample { prior_in_flight: 200, next_to_send: 200, ..ack(2) };
        jump.on_ack_before_loss_detection(&mut window, &measured(2));
        jump.on_ack(&mut window, &first);
        let congestion = CongestionEvent {
            now: Time::ZERO,
            signal: CongestionSignal::Loss,
            in_flight: 140,
            next_to_send: 200,
        };
        jump.on_congestion_event(&mut window, &congestion);
        window.cwnd = 100;
        let last =
            AckSample { recovery_ended: true, total_lost: 60, first_unacked: 200, ..ack(200) };
        jump.on_ack(&mut window, &last);
        assert_eq!((window.cwnd, window.ssthresh), (70, 70));
        // A loss of later packets is the law's.
        jump.on_ack_before_loss_detection(&mut window, &measured(250));
        jump.on_congestion_event(&mut window, &congestion);
        window.cwnd = 50;
        jump.on_ack(&mut window, &last);
        assert_eq!(window.cwnd, 50);
    }

    #[test]
    fn what_proves_to_be_spurious_costs_nothing() {
        let (mut jump, mut window) = of_200();
        let congestion = CongestionEvent {
            now: Time::ZERO,
            signal: CongestionSignal::Loss,
            in_flight: 140,
            next_to_send: 200,
        };
        jump.on_congestion_event(&mut window, &congestion);
        jump.on_undo();
        jump.on_ack(&mut window, &AckSample { recovery_ended: true, total_lost: 60, ..ack(200) });
        assert_eq!(window.cwnd, 10, "only the first ACK's rule applied");
    }
}
