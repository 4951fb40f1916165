//! LogWestwood+.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::Time;

use super::westwood::{Westwood, forward_to_westwood};
use crate::cwnd::CongestionWindow;
use crate::cwnd::FractionalWindow;
use crate::jiffies::HZ;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::window_based::{CongestionAvoidance, WindowBasedController};
use jostle_congestion::{
    AckSample, CongestionEvent, EstablishedEvent, RawAckSample, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "log-westwood+",
        summary: "Westwood+ that approaches the cwnd of the last loss logarithmically",
        class: "loss",
        based_on: &["westwood"],
        source: "Kliazovich, Granelli & Miorandi, Logarithmic Window Increase for TCP Westwood+ \
                 for Improvement in High Speed, Long Distance Networks, Computer Networks 52(12), \
                 2008",
        parameters: &[
            Parameter::number("alpha", 2.0, 1.0..=1_000.0)
                .summary("round trips in which the distance would be covered at the initial speed"),
            HZ,
        ],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| {
        Box::new(WindowBasedController::new(LogWestwood::new(&parts.values), parts.slow_start))
    },
};

/// Congestion avoidance of LogWestwood+. Below the window of the last loss an ACK adds (Wmax −
/// W)/(α W), so that the distance falls by a factor e^(−1/α) per round trip, but at least Reno's
/// 1/W. Above it, and after a loss, it is Westwood+.
#[derive(Clone, Debug)]
pub struct LogWestwood {
    alpha: f64,
    westwood: Westwood,
    /// cwnd at the last congestion signal (`Wmax`); 0 before one.
    max_window: u32,
    fraction: FractionalWindow,
}

impl LogWestwood {
    /// Creates LogWestwood+ with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            alpha: values.number("alpha"),
            westwood: Westwood::new(values),
            max_window: 0,
            fraction: FractionalWindow::default(),
        }
    }
}

impl CongestionAvoidance for LogWestwood {
    fn on_established(&mut self, window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.westwood.on_established(window, established);
    }

    fn on_ack_before_loss_detection(
        &mut self,
        window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        self.westwood.on_ack_before_loss_detection(window, measurement);
    }

    forward_to_westwood!();

    fn on_ack(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        self.westwood.on_ack(window, ack);
    }

    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, ack: &AckSample) {
        if window.cwnd >= self.max_window {
            self.westwood.increase_cwnd(window, acked, ack);
            return;
        }
        let per_round = (f64::from(self.max_window - window.cwnd) / self.alpha).max(1.0);
        self.fraction.add(window, per_round * f64::from(acked) / f64::from(window.cwnd));
        // An ACK of many packets must not exceed the target.
        window.cwnd = window.cwnd.min(self.max_window);
    }

    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        self.max_window = window.cwnd;
        self.fraction.clear();
        self.westwood.ssthresh_after(window, congestion)
    }

    fn on_cwr_complete(&mut self, window: &mut CongestionWindow, now: Time) {
        self.westwood.on_cwr_complete(window, now);
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("max_window_packets", f64::from(self.max_window));
        self.westwood.observe(observer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{ack, loss};

    /// The law after a loss at 1000 packets, and a window of `cwnd`.
    fn after_a_loss(cwnd: u32) -> (LogWestwood, CongestionWindow) {
        let mut law = LogWestwood::new(&ROW.entry.defaults());
        law.ssthresh_after(
            &CongestionWindow { cwnd: 1_000, ..CongestionWindow::default() },
            &loss(),
        );
        (law, CongestionWindow { cwnd, ssthresh: 2, ..CongestionWindow::default() })
    }

    /// α ln 2 = 1.386 round trips halve the distance: ∫ W dW / ((1000 − W)/2) ACKs are, from 500 to
    /// 750, 2 (1000 ln 2 − 250) = 886.
    #[test]
    fn the_distance_to_the_old_maximum_halves_in_two_ln_2_round_trips() {
        let (mut law, mut window) = after_a_loss(500);
        let mut acks = 0;
        while window.cwnd < 750 {
            law.increase_cwnd(&mut window, 1, &ack(1));
            acks += 1;
        }
        assert!((880..=892).contains(&acks), "{acks}");
    }

    #[test]
    fn it_never_grows_slower_than_reno_nor_jumps() {
        let (mut law, mut window) = after_a_loss(999);
        (0..1_000).for_each(|_| law.increase_cwnd(&mut window, 1, &ack(1)));
        assert_eq!(window.cwnd, 1_000);
        (0..1_000).for_each(|_| law.increase_cwnd(&mut window, 1, &ack(1)));
        assert_eq!(window.cwnd, 1_001);
        let (mut law, mut window) = after_a_loss(100);
        law.increase_cwnd(&mut window, 1_000, &ack(1));
        assert_eq!(window.cwnd, 1_000);
    }
}
