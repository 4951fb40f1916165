//! Quick-Start: routers determine the rate of the first flight.

use alloc::boxed::Box;

use jostle_registry::{LinuxRelease, Parameter, ParameterValues, RegistryEntry};
use jostle_units::{HEADER_BYTES, Rate, Time};

use super::first_flight::PacedFirstFlight;
use super::{HyStart, SlowStart, Standard, hystart};
use crate::cwnd::CongestionWindow;
use crate::registry_rows::SlowStartEntry;
use jostle_congestion::QuickStartRate;
use jostle_congestion::{
    AckSample, CongestionEvent, CongestionSignal, EstablishedEvent, RawAckSample, RecoveryState,
};

pub(crate) const ROW: SlowStartEntry = SlowStartEntry {
    entry: RegistryEntry {
        name: "quickstart",
        summary: "requests a rate from the routers of the path and paces the first window at it",
        class: "router-assisted",
        based_on: &["standard"],
        source: "RFC 4782",
        parameters: &[
            Parameter::rate(
                "request",
                Rate::from_bps(1_310_720_000),
                Rate::from_bps(80_000)..=Rate::from_bps(1_310_720_000),
            )
            .summary("requested rate, rounded down to 80 kbit/s · 2ⁿ"),
            Parameter::choice("then", "standard", &["standard", "hystart"])
                .summary("slow start that follows the first flight, or a refusal"),
        ],
    },
    build: |values| Box::new(QuickStart::new(values)),
};

/// The SYN requests a rate, each router on the path may reduce it, and the SYN-ACK returns it. The
/// sender uses the granted rate for one round trip and then continues with slow start. A loss or
/// mark among these packets reverts the grant.
pub struct QuickStart {
    request: QuickStartRate,
    then: Box<dyn SlowStart>,
    flight: PacedFirstFlight,
    /// ssthresh of congestion avoidance, while recovery reduces the window to the initial window.
    threshold: Option<u32>,
}

impl QuickStart {
    /// Creates Quick-Start with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        let then: Box<dyn SlowStart> = match values.choice("then") {
            "hystart" => Box::new(HyStart::new(&hystart::ROW.entry.defaults())),
            _ => Box::new(Standard),
        };
        Self {
            request: QuickStartRate::not_above(values.rate("request")),
            then,
            flight: PacedFirstFlight::default(),
            threshold: None,
        }
    }
}

/// R·T / (MSS + H): packets that the granted rate carries in a round trip. Headers include the
/// Ethernet header, as on the links.
fn packets(established: &EstablishedEvent) -> u32 {
    let (Some(rate), Some(rtt)) = (established.prospect.quick_start_rate, established.rtt) else {
        return 0;
    };
    let wire_bytes = u64::from(established.mss_bytes + HEADER_BYTES);
    u32::try_from(rate.bytes_in(rtt) / wire_bytes).unwrap_or(u32::MAX)
}

/// Returns half of a number of packets as a slow-start threshold.
fn half(packets: u64) -> u32 {
    u32::try_from(packets / 2).unwrap_or(u32::MAX).max(2)
}

impl SlowStart for QuickStart {
    fn set_linux_release(&mut self, kernel: LinuxRelease) {
        self.then.set_linux_release(kernel);
    }

    fn rate_request(&self) -> QuickStartRate {
        self.request
    }

    fn on_established(&mut self, window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.threshold = None;
        self.flight = PacedFirstFlight::spread(window, established, packets(established));
        self.then.on_established(window, established);
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.then.on_mss_change(mss_bytes);
    }

    fn on_ack_before_loss_detection(
        &mut self,
        window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        self.flight.on_ack_before_loss_detection(measurement);
        self.then.on_ack_before_loss_detection(window, measurement);
    }

    fn on_ack(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        self.flight.ends_with(ack, window);
        if matches!(ack.state, RecoveryState::Open | RecoveryState::Disorder)
            && let Some(threshold) = self.threshold.take()
        {
            let delivered = self.flight.end().saturating_sub(ack.total_lost);
            window.ssthresh = threshold.min(half(delivered));
        }
        self.then.on_ack(window, ack);
    }

    fn grow(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> u32 {
        self.then.grow(window, ack)
    }

    /// RFC 4782 §4.6: a loss or mark in the flight restores the state without a grant. Recovery
    /// reduces the window to the initial window, and slow start continues from there. Because the
    /// flight was too large, slow start then ends at half of the flight's packets that arrived, or
    /// at the ssthresh of congestion avoidance if this is lower.
    fn on_congestion_event(&mut self, window: &mut CongestionWindow, congestion: &CongestionEvent) {
        if self.flight.concerns(congestion) {
            if congestion.signal == CongestionSignal::Timeout {
                window.ssthresh = window.ssthresh.min(half(self.flight.acknowledged()));
            } else {
                self.threshold = Some(window.ssthresh);
                window.ssthresh = window.ssthresh.min(self.flight.initial_window().max(2));
            }
        }
        self.then.on_congestion_event(window, congestion);
    }

    fn on_undo(&mut self) {
        self.threshold = None;
        self.then.on_undo();
    }

    fn on_timeout(&mut self, now: Time, next_to_send: u64) {
        self.flight.cut_short();
        self.then.on_timeout(now, next_to_send);
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.flight.rate()
    }

    fn mode(&self) -> &'static str {
        if self.flight.rate().is_some() { "quick_start" } else { self.then.mode() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::ack;
    use jostle_congestion::FirstFlightLimits;
    use jostle_units::Span;

    const RTT: Span = Span::from_ms(100);

    fn start(granted: Option<Rate>) -> (QuickStart, CongestionWindow) {
        let mut quick = QuickStart::new(&ROW.entry.defaults());
        let mut window = CongestionWindow::default();
        let established = EstablishedEvent {
            now: Time::ZERO + RTT,
            mss_bytes: 1448,
            initial_window: 10,
            rtt: Some(RTT),
            prospect: FirstFlightLimits {
                quick_start_rate: granted,
                ..FirstFlightLimits::default()
            },
        };
        quick.on_established(&mut window, &established);
        (quick, window)
    }

    #[test]
    fn the_granted_rate_is_the_first_window() {
        let (quick, window) = start(QuickStartRate::from_bits(8).rate());
        // 128,000 bytes in 1514 each.
        assert_eq!(window.cwnd, 84);
        assert_eq!(quick.pacing_rate(), Some(Rate::of(84 * 1448, RTT)));
        for refused in [None, QuickStartRate::from_bits(4).rate()] {
            let (quick, window) = start(refused);
            assert_eq!((window.cwnd, quick.pacing_rate()), (10, None), "{refused:?}");
        }
    }

    #[test]
    fn slow_start_goes_on_from_what_was_sent() {
        let (mut quick, mut window) = start(QuickStartRate::from_bits(8).rate());
        let first = AckSample { prior_in_flight: 84, next_to_send: 84, ..ack(2) };
        quick.on_ack(&mut window, &first);
        assert_eq!(quick.grow(&mut window, &first), 0);
        assert_eq!((window.cwnd, quick.pacing_rate()), (85, None));
    }

    /// RFC 4782 §4.6: slow start from the initial window, up to half of the 84 packets that
    /// arrived, or to the law's threshold of 58 if this is lower.
    #[test]
    fn a_loss_takes_it_back() {
        for (signal, lost, threshold) in [
            (CongestionSignal::Loss, 4, 40),
            (CongestionSignal::Loss, 60, 12),
            (CongestionSignal::Loss, 82, 2),
            (CongestionSignal::Ecn, 0, 42),
        ] {
            let (mut quick, mut window) = start(QuickStartRate::from_bits(8).rate());
            window.ssthresh = 58;
            let event =
                CongestionEvent { now: Time::ZERO, signal, in_flight: 80, next_to_send: 84 };
            quick.on_congestion_event(&mut window, &event);
            assert_eq!(window.ssthresh, 10, "what recovery goes down to");
            window.cwnd = 10;
            let state = RecoveryState::Cwr;
            quick.on_ack(&mut window, &AckSample { state, total_lost: lost, ..ack(60) });
            assert_eq!(window.ssthresh, 10, "until the reduction is over");
            quick.on_ack(&mut window, &AckSample { total_lost: lost, ..ack(84) });
            assert_eq!((window.cwnd, window.ssthresh), (10, threshold), "{signal:?}");
        }
    }

    #[test]
    fn a_timeout_in_the_flight_counts_what_arrived() {
        let (mut quick, mut window) = start(QuickStartRate::from_bits(8).rate());
        window.ssthresh = 58;
        let raw = RawAckSample { first_unacked: 30, next_to_send: 84, ..RawAckSample::default() };
        quick.on_ack_before_loss_detection(&mut window, &raw);
        let signal = CongestionSignal::Timeout;
        let event = CongestionEvent { now: Time::ZERO, signal, in_flight: 0, next_to_send: 84 };
        quick.on_congestion_event(&mut window, &event);
        assert_eq!(window.ssthresh, 15);
    }
}
