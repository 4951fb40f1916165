//! TCP-Africa.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};

use super::highspeed::HighSpeed;
use crate::cwnd::CongestionWindow;
use crate::estimators::RoundRtts;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{CongestionAvoidance, WindowBasedController, slow_start_then_remaining};
use jostle_congestion::{AckSample, CongestionEvent, EstablishedEvent, StateObserver};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "africa",
        summary: "HighSpeed while the queue is empty, otherwise Reno",
        class: "hybrid",
        based_on: &["highspeed", "reno", "vegas"],
        source: "King, Baraniuk & Riedi, TCP-Africa: An Adaptive and Fair Rapid Increase Rule for \
                 Scalable TCP, IEEE INFOCOM 2005",
        parameters: &[Parameter::number("alpha", 1.64, 0.0..=10_000.0)
            .summary("number of packets in the queue above which it is Reno")],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| {
        Box::new(WindowBasedController::new(Africa::new(&parts.values), parts.slow_start))
    },
};

/// Congestion avoidance of TCP-Africa: growth and decrease of HighSpeed while W (RTT − RTTmin)/RTT
/// < α, of Reno otherwise. RTT is the minimum of the round, as in Vegas: the latest sample would
/// count the bursts of growth itself as a queue.
#[derive(Clone, Debug)]
pub struct Africa {
    alpha: f64,
    highspeed: HighSpeed,
    rtts: RoundRtts,
    /// Estimated packets in the queue in the last round.
    queued: f64,
}

impl Africa {
    /// Creates TCP-Africa with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            alpha: values.number("alpha"),
            highspeed: HighSpeed::default(),
            rtts: RoundRtts::default(),
            queued: 0.0,
        }
    }

    fn is_fast(&self) -> bool {
        self.queued < self.alpha
    }

    fn judge(&mut self, cwnd: u32, (rtt_us, base_us): (u64, u64)) {
        self.queued = f64::from(cwnd) * (rtt_us - base_us) as f64 / rtt_us as f64;
    }
}

impl CongestionAvoidance for Africa {
    fn on_established(&mut self, window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.highspeed.on_established(window, established);
    }

    fn round_rtts(&mut self) -> Option<&mut RoundRtts> {
        Some(&mut self.rtts)
    }

    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        if self.rtts.enabled() && self.rtts.round_is_over(ack) {
            if let Some(minima_us) = self.rtts.minima_us() {
                self.judge(window.cwnd, minima_us);
            }
            self.rtts.start_round(ack.next_to_send);
        }
        if let Some(acked) = slow_start_then_remaining(window, slow_start, ack)
            && acked > 0
        {
            self.increase_cwnd(window, acked, ack);
        }
    }

    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, ack: &AckSample) {
        if self.is_fast() {
            self.highspeed.increase_cwnd(window, acked, ack);
        } else {
            window.additive_increase(window.cwnd, acked);
        }
    }

    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        self.rtts.on_congestion_event(congestion);
        if self.is_fast() {
            self.highspeed.ssthresh_after(window, congestion)
        } else {
            (window.cwnd / 2).max(2)
        }
    }

    fn mode(&self) -> &'static str {
        if self.is_fast() { "fast" } else { "slow" }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("queued_packets", self.queued);
        self.highspeed.observe(observer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{ack, loss};

    /// Packets that a thousand ACKs add at a window of 1000 and a base RTT of 100 ms, and the
    /// threshold that answers a loss there.
    fn at_rtt(us: u64) -> (u32, u32) {
        let mut law = Africa::new(&ROW.entry.defaults());
        law.judge(1_000, (us, 100_000));
        let mut window =
            CongestionWindow { cwnd: 1_000, ssthresh: 2, ..CongestionWindow::default() };
        (0..1_000).for_each(|_| law.increase_cwnd(&mut window, 1, &ack(1)));
        let grown = window.cwnd - 1_000;
        window.cwnd = 1_000;
        (grown, law.ssthresh_after(&window, &loss()))
    }

    /// 1.64 packets of 1000 are 164 µs of 100 ms; HighSpeed adds 8 there and keeps 676.
    #[test]
    fn it_is_highspeed_up_to_a_queue_of_164_hundredths_and_reno_beyond() {
        assert_eq!(at_rtt(100_000), (7, 676));
        assert_eq!(at_rtt(100_150), (7, 676));
        assert_eq!(at_rtt(100_170), (1, 500));
        assert_eq!(at_rtt(150_000), (1, 500));
    }
}
