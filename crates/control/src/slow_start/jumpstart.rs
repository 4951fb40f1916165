//! JumpStart: no start-up phase at all.

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::{Rate, Time};

use super::{SlowStart, first_flight::FirstFlight};
use crate::controller::{AckSample, Congestion, Established, Measurement, Signal};
use crate::row::SlowStartRow;
use crate::window::Window;

pub(crate) const ROW: SlowStartRow = SlowStartRow {
    entry: Entry {
        name: "jumpstart",
        summary: "spreads all there is to send over the first round trip, then lets ACKs decide",
        class: "window",
        based_on: &["standard"],
        source: "Liu, Allman, Jin & Wang, Congestion Control Without a Startup Phase, PFLDnet 2007",
        parameters: &[Parameter {
            name: "then",
            summary: "what follows the first flight: congestion avoidance from its size on, or slow \
                      start",
            kind: Kind::Choice { default: "avoidance", choices: &["avoidance", "slow_start"] },
        }],
    },
    build: |values| Box::new(JumpStart::new(values)),
};

/// The first flight is all that the application has written and the receiver takes, paced over the
/// round trip that the handshake took. It ends with its first ACK, and what it carried by then is
/// the window. "The remainder of TCP's congestion control algorithms remain intact", but for a loss
/// in that flight: of D packets, R of which had to be sent again, D − R got through, and half of
/// them is the window with which recovery ends.
#[derive(Clone, Debug)]
pub struct JumpStart {
    avoids: bool,
    flight: FirstFlight,
    /// What the jump's recovery repairs.
    recovering: Option<Signal>,
}

impl JumpStart {
    /// JumpStart with the parameters of its registry row.
    pub fn new(values: &Values) -> Self {
        let avoids = values.choice("then") == "avoidance";
        Self { avoids, flight: FirstFlight::default(), recovering: None }
    }

    /// The jump's recovery is over.
    fn settle(&mut self, window: &mut Window, repaired: Signal, ack: &AckSample) {
        let got_through = self.flight.end().saturating_sub(ack.total_lost);
        let half = u32::try_from(got_through / 2).unwrap_or(u32::MAX).max(2);
        window.ssthresh = half;
        window.cwnd = match repaired {
            Signal::Timeout => window.cwnd.min(half),
            Signal::Loss | Signal::Ecn | Signal::Request => half,
        };
    }
}

impl SlowStart for JumpStart {
    fn on_established(&mut self, window: &mut Window, established: &Established) {
        self.recovering = None;
        self.flight = FirstFlight::spread(window, established, established.prospect.sendable());
    }

    fn on_measurement(&mut self, _window: &mut Window, measurement: &Measurement) {
        self.flight.on_measurement(measurement);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if self.flight.ends_with(ack, window) && self.avoids && window.in_slow_start() {
            window.ssthresh = window.cwnd.max(2);
        }
        if ack.left_recovery
            && let Some(repaired) = self.recovering.take()
        {
            self.settle(window, repaired, ack);
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &AckSample) -> u32 {
        window.slow_start(ack.acked)
    }

    fn on_congestion(&mut self, _window: &mut Window, congestion: &Congestion) {
        if self.flight.concerns(congestion) && congestion.signal != Signal::Ecn {
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
    use crate::controller::Prospect;
    use crate::fixtures::ack;
    use jostle_units::Span;

    const RTT: Span = Span::from_ms(100);

    fn start(prospect: Prospect) -> (JumpStart, Window) {
        let mut jump = JumpStart::new(&ROW.entry.defaults());
        let mut window = Window::default();
        let established = Established {
            now: Time::ZERO + RTT,
            mss_bytes: 1448,
            initial_window: 10,
            rtt: Some(RTT),
            prospect,
        };
        jump.on_established(&mut window, &established);
        (jump, window)
    }

    fn of_200() -> (JumpStart, Window) {
        start(Prospect { backlog: Some(200), ..Prospect::default() })
    }

    fn measured(first_unacked: u64) -> Measurement {
        Measurement {
            now: Time::ZERO + RTT + RTT,
            rtt: Some(RTT),
            packets: 2,
            first_unacked,
            next_to_send: 200,
            ..Measurement::default()
        }
    }

    #[test]
    fn the_first_flight_is_the_lesser_of_data_and_window_over_a_round_trip() {
        for (backlog, receive_window, flight) in
            [(Some(200), 1_000, 200), (None, 1_000, 1_000), (Some(200), 44, 44)]
        {
            let (jump, window) = start(Prospect { backlog, receive_window, ..Prospect::default() });
            assert_eq!(window.cwnd, flight);
            let bytes = u64::from(flight) * 1448;
            assert_eq!(jump.pacing_rate(), Some(Rate::of(bytes, RTT)));
        }
        let (jump, window) = start(Prospect { backlog: Some(10), ..Prospect::default() });
        assert_eq!((window.cwnd, jump.pacing_rate()), (10, None), "the initial window holds it");
    }

    #[test]
    fn the_first_ack_ends_it_with_what_was_sent() {
        let (mut jump, mut window) = of_200();
        let first = AckSample { prior_in_flight: 150, next_to_send: 150, ..ack(2) };
        jump.on_measurement(&mut window, &Measurement { next_to_send: 150, ..measured(2) });
        jump.on_ack(&mut window, &first);
        assert_eq!((window.cwnd, window.ssthresh, jump.pacing_rate()), (150, 150, None));
    }

    /// (D − R) / 2: of 200 packets 60 were lost.
    #[test]
    fn recovery_ends_with_half_of_what_got_through() {
        let (mut jump, mut window) = of_200();
        let first = AckSample { prior_in_flight: 200, next_to_send: 200, ..ack(2) };
        jump.on_measurement(&mut window, &measured(2));
        jump.on_ack(&mut window, &first);
        let congestion =
            Congestion { now: Time::ZERO, signal: Signal::Loss, in_flight: 140, next_to_send: 200 };
        jump.on_congestion(&mut window, &congestion);
        window.cwnd = 100;
        let last =
            AckSample { left_recovery: true, total_lost: 60, first_unacked: 200, ..ack(200) };
        jump.on_ack(&mut window, &last);
        assert_eq!((window.cwnd, window.ssthresh), (70, 70));
        // A loss of later packets is the law's.
        jump.on_measurement(&mut window, &measured(250));
        jump.on_congestion(&mut window, &congestion);
        window.cwnd = 50;
        jump.on_ack(&mut window, &last);
        assert_eq!(window.cwnd, 50);
    }

    #[test]
    fn what_proves_to_be_spurious_costs_nothing() {
        let (mut jump, mut window) = of_200();
        let congestion =
            Congestion { now: Time::ZERO, signal: Signal::Loss, in_flight: 140, next_to_send: 200 };
        jump.on_congestion(&mut window, &congestion);
        jump.on_undo();
        jump.on_ack(&mut window, &AckSample { left_recovery: true, total_lost: 60, ..ack(200) });
        assert_eq!(window.cwnd, 10, "only the first ACK's rule applied");
    }
}
