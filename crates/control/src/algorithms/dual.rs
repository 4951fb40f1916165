//! DUAL.

use jostle_catalogue::{Entry, Kind, Parameter, Values};

use crate::controller::{AckSample, Congestion, Established, Measurement, Observer, Signal};
use crate::estimate::RttRange;
use crate::row::{ControllerRow, Start};
use crate::slow_start::SlowStart;
use crate::window::Window;
use crate::windowed::{WindowLaw, Windowed, grow_as_reno};

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "dual",
        summary: "Reno that gives up an eighth when the queue is half as long as it ever was",
        class: "delay",
        based_on: &["reno"],
        source: "Wang & Crowcroft, Eliminating Periodic Packet Losses in the 4.3-Tahoe BSD TCP \
                 Congestion Control Algorithm, ACM SIGCOMM CCR 22(2), 1992",
        parameters: &[Parameter {
            name: "threshold",
            summary: "where between the least and the greatest RTT congestion begins",
            kind: Kind::Number { default: 0.5, min: 0.0, max: 1.0 },
        }],
    },
    start: Start::Composed("standard"),
    build: |parts| Box::new(Windowed::new(Dual::new(&parts.values), parts.slow_start)),
};

/// The DUAL window law: Reno, and at the end of every other round trip W = ⅞ W if the RTT is beyond
/// (RTTmin + RTTmax)/2.
#[derive(Clone, Debug)]
pub struct Dual {
    threshold: f64,
    rtts: RttRange,
    /// The packet whose acknowledgement ends the round.
    round_end: u64,
    /// The round that ends next is one that checks.
    checks: bool,
}

impl Dual {
    /// DUAL with the parameters of its registry row.
    pub fn new(values: &Values) -> Self {
        Self {
            threshold: values.number("threshold"),
            rtts: RttRange::default(),
            round_end: 0,
            checks: false,
        }
    }

    fn end_round(&mut self, window: &mut Window) {
        if self.checks && self.rtts.position() > self.threshold {
            window.cwnd = (window.cwnd - window.cwnd / 8).max(2);
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
        self.checks = !self.checks;
    }
}

impl WindowLaw for Dual {
    fn on_established(&mut self, _window: &mut Window, established: &Established) {
        if let Some(rtt) = established.rtt {
            self.rtts.on_sample(rtt);
        }
    }

    fn on_measurement(&mut self, _window: &mut Window, measurement: &Measurement) {
        if let Some(rtt) = measurement.rtt {
            self.rtts.on_sample(rtt);
        }
    }

    fn grow(&mut self, window: &mut Window, slow_start: &mut dyn SlowStart, ack: &AckSample) {
        // In slow start the greatest RTT is the latest, and any queue would end it.
        if ack.first_unacked > self.round_end {
            self.round_end = ack.next_to_send;
            if !window.in_slow_start() {
                self.end_round(window);
            }
        }
        grow_as_reno(window, slow_start, ack);
    }

    fn avoid(&mut self, window: &mut Window, acked: u32, _ack: &AckSample) {
        window.additive_increase(window.cwnd, acked);
    }

    fn ssthresh(&mut self, window: &Window, congestion: &Congestion) -> u32 {
        if congestion.signal == Signal::Timeout {
            // The path may have become another one.
            self.rtts = RttRange::default();
        }
        (window.cwnd / 2).max(2)
    }

    fn observe(&self, observer: &mut dyn Observer) {
        observer.value("least_rtt_s", self.rtts.least_us() as f64 * 1e-6);
        observer.value("greatest_rtt_s", self.rtts.greatest_us() as f64 * 1e-6);
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::Span;

    use super::*;
    use crate::fixtures::loss;

    /// The windows after four rounds at 80 packets with an RTT between 100 and 200 ms.
    fn after_rounds_at(rtt_ms: u64) -> [u32; 4] {
        let mut law = Dual::new(&ROW.entry.defaults());
        [100, 200, rtt_ms].into_iter().for_each(|ms| law.rtts.on_sample(Span::from_ms(ms)));
        let mut window = Window { cwnd: 80, ssthresh: 2, ..Window::default() };
        [(); 4].map(|()| {
            law.end_round(&mut window);
            window.cwnd
        })
    }

    #[test]
    fn every_other_round_gives_up_an_eighth_in_the_upper_half() {
        assert_eq!(after_rounds_at(150), [80; 4]);
        assert_eq!(after_rounds_at(151), [80, 70, 70, 62]);
    }

    #[test]
    fn a_timeout_forgets_the_path_and_a_loss_does_not() {
        let mut law = Dual::new(&ROW.entry.defaults());
        law.rtts.on_sample(Span::from_ms(100));
        let window = Window { cwnd: 80, ..Window::default() };
        assert_eq!((law.ssthresh(&window, &loss()), law.rtts.least_us()), (40, 100_001));
        law.ssthresh(&window, &Congestion { signal: Signal::Timeout, ..loss() });
        assert_eq!(law.rtts.least_us(), 0);
    }
}
