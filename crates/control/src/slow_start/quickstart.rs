//! Quick-Start: the routers say how fast the first flight may be.

use jostle_catalogue::{Entry, Kind, Linux, Parameter, Values};
use jostle_units::{HEADER_BYTES, Rate, Time};

use super::first_flight::FirstFlight;
use super::{HyStart, SlowStart, Standard, hystart};
use crate::controller::{AckSample, Congestion, Established, Measurement, Signal};
use crate::rate_code::RateCode;
use crate::row::SlowStartRow;
use crate::window::Window;

pub(crate) const ROW: SlowStartRow = SlowStartRow {
    entry: Entry {
        name: "quickstart",
        summary: "asks the routers of the path for a rate and spends it over the first round trip",
        class: "router-assisted",
        based_on: &["standard"],
        source: "RFC 4782",
        parameters: &[
            Parameter {
                name: "request",
                summary: "rate asked for; the request carries the next lower of 80 kbit/s · 2ⁿ",
                kind: Kind::Rate {
                    default_bps: 1_310_720_000,
                    min_bps: 80_000,
                    max_bps: 1_310_720_000,
                },
            },
            Parameter {
                name: "then",
                summary: "slow start that follows the first flight, or a refusal",
                kind: Kind::Choice { default: "standard", choices: &["standard", "hystart"] },
            },
        ],
    },
    build: |values| Box::new(QuickStart::new(values)),
};

/// The SYN asks for a rate, every router on the path may lower it, the SYN-ACK brings the answer
/// back. What was granted is sent for one round trip, then slow start goes on from there. A loss
/// among those packets takes all of it back.
pub struct QuickStart {
    request: RateCode,
    then: Box<dyn SlowStart>,
    flight: FirstFlight,
    /// The law's threshold, while recovery takes the window back to the initial one.
    threshold: Option<u32>,
}

impl QuickStart {
    /// Quick-Start with the parameters of its registry row.
    pub fn new(values: &Values) -> Self {
        let then: Box<dyn SlowStart> = match values.choice("then") {
            "hystart" => Box::new(HyStart::new(&hystart::ROW.entry.defaults())),
            _ => Box::new(Standard),
        };
        Self {
            request: RateCode::not_above(values.rate("request")),
            then,
            flight: FirstFlight::default(),
            threshold: None,
        }
    }
}

/// R·T / (MSS + H): packets that the granted rate carries in a round trip. Headers count as the links
/// count them, Ethernet's included.
fn packets(established: &Established) -> u32 {
    let (Some(rate), Some(rtt)) = (established.prospect.granted, established.rtt) else { return 0 };
    let wire_bytes = u64::from(established.mss_bytes + HEADER_BYTES);
    u32::try_from(rate.bytes_in(rtt) / wire_bytes).unwrap_or(u32::MAX)
}

impl SlowStart for QuickStart {
    fn follow(&mut self, kernel: Linux) {
        self.then.follow(kernel);
    }

    fn rate_request(&self) -> RateCode {
        self.request
    }

    fn on_established(&mut self, window: &mut Window, established: &Established) {
        self.threshold = None;
        self.flight = FirstFlight::spread(window, established, packets(established));
        self.then.on_established(window, established);
    }

    fn on_packet_size(&mut self, mss_bytes: u32) {
        self.then.on_packet_size(mss_bytes);
    }

    fn on_measurement(&mut self, window: &mut Window, measurement: &Measurement) {
        self.flight.on_measurement(measurement);
        self.then.on_measurement(window, measurement);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        self.flight.ends_with(ack, window);
        if ack.left_recovery
            && let Some(threshold) = self.threshold.take()
        {
            window.ssthresh = window.ssthresh.max(threshold);
        }
        self.then.on_ack(window, ack);
    }

    fn grow(&mut self, window: &mut Window, ack: &AckSample) -> u32 {
        self.then.grow(window, ack)
    }

    /// A loss in the flight reverts to what the sender would have done without a grant: recovery goes
    /// down to the initial window, slow start up from there. The RFC's text on ssthresh was not at
    /// hand: the law's answer to the loss is kept.
    fn on_congestion(&mut self, window: &mut Window, congestion: &Congestion) {
        if self.flight.concerns(congestion) && congestion.signal != Signal::Timeout {
            self.threshold = Some(window.ssthresh);
            window.ssthresh = window.ssthresh.min(self.flight.initial_window().max(2));
        }
        self.then.on_congestion(window, congestion);
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
    use crate::controller::Prospect;
    use crate::fixtures::ack;
    use jostle_units::Span;

    const RTT: Span = Span::from_ms(100);

    fn start(granted: Option<Rate>) -> (QuickStart, Window) {
        let mut quick = QuickStart::new(&ROW.entry.defaults());
        let mut window = Window::default();
        let established = Established {
            now: Time::ZERO + RTT,
            mss_bytes: 1448,
            initial_window: 10,
            rtt: Some(RTT),
            prospect: Prospect { granted, ..Prospect::default() },
        };
        quick.on_established(&mut window, &established);
        (quick, window)
    }

    #[test]
    fn the_granted_rate_is_the_first_window() {
        let (quick, window) = start(RateCode::from_bits(8).rate());
        // 128,000 bytes in 1514 each.
        assert_eq!(window.cwnd, 84);
        assert_eq!(quick.pacing_rate(), Some(Rate::of(84 * 1448, RTT)));
        for refused in [None, RateCode::from_bits(4).rate()] {
            let (quick, window) = start(refused);
            assert_eq!((window.cwnd, quick.pacing_rate()), (10, None), "{refused:?}");
        }
    }

    #[test]
    fn slow_start_goes_on_from_what_was_sent() {
        let (mut quick, mut window) = start(RateCode::from_bits(8).rate());
        let first = AckSample { prior_in_flight: 84, next_to_send: 84, ..ack(2) };
        quick.on_ack(&mut window, &first);
        assert_eq!(quick.grow(&mut window, &first), 0);
        assert_eq!((window.cwnd, quick.pacing_rate()), (85, None));
    }

    #[test]
    fn a_loss_takes_it_back() {
        let (mut quick, mut window) = start(RateCode::from_bits(8).rate());
        window.ssthresh = 42;
        let congestion =
            Congestion { now: Time::ZERO, signal: Signal::Loss, in_flight: 80, next_to_send: 84 };
        quick.on_congestion(&mut window, &congestion);
        assert_eq!(window.ssthresh, 10, "what recovery goes down to");
        window.cwnd = 10;
        quick.on_ack(&mut window, &AckSample { left_recovery: true, ..ack(84) });
        assert_eq!((window.cwnd, window.ssthresh), (10, 42));
        assert_eq!(quick.grow(&mut window, &ack(85)), 0, "slow start again");
        assert_eq!(window.cwnd, 11);
    }
}
