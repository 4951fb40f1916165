//! DUAL.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};

use crate::cwnd::CongestionWindow;
use crate::estimators::RttRange;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{CongestionAvoidance, WindowBasedController, reno_increase};
use jostle_congestion::{
    AckSample, CongestionEvent, CongestionSignal, EstablishedEvent, RawAckSample, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "dual",
        summary: "Reno that also reduces cwnd by 1/8 when the RTT is above the middle of its range",
        class: "delay",
        based_on: &["reno"],
        source: "Wang & Crowcroft, Eliminating Periodic Packet Losses in the 4.3-Tahoe BSD TCP \
                 Congestion Control Algorithm, ACM SIGCOMM CCR 22(2), 1992",
        parameters: &[Parameter::number("threshold", 0.5, 0.0..=1.0).summary(
            "position between the smallest and the largest RTT at which congestion begins",
        )],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| Box::new(WindowBasedController::new(Dual::new(&parts.values), parts.slow_start)),
};

/// Congestion avoidance of DUAL: Reno, and at the end of every second round trip W = ⅞ W if the RTT
/// exceeds (RTTmin + RTTmax)/2.
#[derive(Clone, Debug)]
pub struct Dual {
    threshold: f64,
    rtts: RttRange,
    /// Packet whose acknowledgement ends the round.
    round_end: u64,
    /// Whether the RTT is checked at the end of the current round.
    checks: bool,
}

impl Dual {
    /// Creates DUAL with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            threshold: values.number("threshold"),
            rtts: RttRange::default(),
            round_end: 0,
            checks: false,
        }
    }

    fn end_round(&mut self, window: &mut CongestionWindow) {
        if self.checks && self.rtts.position() > self.threshold {
            window.cwnd = (window.cwnd - window.cwnd / 8).max(2);
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
        self.checks = !self.checks;
    }
}

impl CongestionAvoidance for Dual {
    fn on_established(&mut self, _window: &mut CongestionWindow, established: &EstablishedEvent) {
        if let Some(rtt) = established.rtt {
            self.rtts.on_sample(rtt);
        }
    }

    fn on_ack_before_loss_detection(
        &mut self,
        _window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        if let Some(rtt) = measurement.rtt {
            self.rtts.on_sample(rtt);
        }
    }

    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        // In slow start the maximum RTT is the latest one, so that any queue would end it.
        if ack.first_unacked > self.round_end {
            self.round_end = ack.next_to_send;
            if !window.in_slow_start() {
                self.end_round(window);
            }
        }
        reno_increase(window, slow_start, ack);
    }

    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        if congestion.signal == CongestionSignal::Timeout {
            // The path may have changed.
            self.rtts = RttRange::default();
        }
        (window.cwnd / 2).max(2)
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("least_rtt_s", self.rtts.least_us() as f64 * 1e-6);
        observer.record_value("greatest_rtt_s", self.rtts.greatest_us() as f64 * 1e-6);
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::Span;

    use super::*;
    use crate::test_support::loss;

    /// The windows after four rounds at 80 packets with an RTT between 100 and 200 ms.
    fn after_rounds_at(rtt_ms: u64) -> [u32; 4] {
        let mut law = Dual::new(&ROW.entry.defaults());
        [100, 200, rtt_ms].into_iter().for_each(|ms| law.rtts.on_sample(Span::from_ms(ms)));
        let mut window = CongestionWindow { cwnd: 80, ssthresh: 2, ..CongestionWindow::default() };
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
        let window = CongestionWindow { cwnd: 80, ..CongestionWindow::default() };
        assert_eq!((law.ssthresh_after(&window, &loss()), law.rtts.least_us()), (40, 100_001));
        law.ssthresh_after(
            &window,
            &CongestionEvent { signal: CongestionSignal::Timeout, ..loss() },
        );
        assert_eq!(law.rtts.least_us(), 0);
    }
}
