//! TCP-Fusion.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Rate, Span, Time};

use super::westwood::{Westwood, forward_to_westwood};
use crate::cwnd::CongestionWindow;
use crate::cwnd::FractionalWindow;
use crate::estimators::RttRange;
use crate::jiffies::HZ;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{CongestionAvoidance, WindowBasedController};
use jostle_congestion::{
    AckSample, CongestionEvent, EstablishedEvent, RawAckSample, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "fusion",
        summary: "increases cwnd with the rate until the queueing delay reaches a few ms; at \
            least Reno's cwnd",
        class: "hybrid",
        based_on: &["reno", "vegas", "westwood"],
        source: "Kaneko, Fujikawa, Su & Katto, TCP-Fusion: A Hybrid Congestion Control Algorithm \
                 for High-speed Networks, PFLDnet 2007",
        parameters: &[
            Parameter::span("d_min", Span::from_ms(4), Span::from_us(1)..=Span::from_secs(1))
                .summary(
                    "queueing delay up to which cwnd grows; above three times this, it shrinks",
                ),
            Parameter::rate(
                "rate_per_packet",
                Rate::from_mbps(12),
                Rate::from_bps(10_000)..=Rate::from_mbps(100_000),
            )
            .summary("bandwidth that adds a packet per round trip to growth"),
            HZ,
        ],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| {
        Box::new(WindowBasedController::new(Fusion::new(&parts.values), parts.slow_start))
    },
};

/// Congestion avoidance of TCP-Fusion. W (1 − base/RTT) packets are queued, and α = W Dmin/RTT.
/// With up to α queued packets, the window grows by the packets that the bandwidth carries in a
/// millisecond. With up to 3 α it stays the same. Above 3 α, all packets beyond α are removed from
/// the window. A Reno window computed in parallel is the minimum. A loss reduces the window to the
/// BDP or to half.
#[derive(Clone, Debug)]
pub struct Fusion {
    d_min_us: f64,
    rate_per_packet_bps: f64,
    westwood: Westwood,
    rtts: RttRange,
    /// Packet whose acknowledgement ends the round.
    round_end: u64,
    /// Increase in this round, in packets per round trip.
    increase: f64,
    /// The Reno window.
    reno: f64,
    fraction: FractionalWindow,
}

impl Fusion {
    /// Creates TCP-Fusion with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            d_min_us: values.span("d_min").as_ns() as f64 * 1e-3,
            rate_per_packet_bps: values.rate("rate_per_packet").as_bps() as f64,
            westwood: Westwood::new(values),
            rtts: RttRange::default(),
            round_end: 0,
            increase: 0.0,
            reno: 0.0,
            fraction: FractionalWindow::default(),
        }
    }

    /// Chooses the growth at the end of a round.
    fn judge(&mut self, window: &mut CongestionWindow) {
        let cwnd = f64::from(window.cwnd);
        let alpha = cwnd * self.d_min_us / self.rtts.latest_us().max(1) as f64;
        let queued = cwnd * self.rtts.queueing_share();
        self.increase = 0.0;
        if queued < alpha {
            self.increase = self.westwood.bandwidth_bps() / self.rate_per_packet_bps;
        } else if queued > 3.0 * alpha {
            self.fraction.add(window, alpha - queued);
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
    }
}

impl CongestionAvoidance for Fusion {
    fn on_established(&mut self, window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.westwood.on_established(window, established);
        if let Some(rtt) = established.rtt {
            self.rtts.on_sample(rtt);
        }
    }

    fn on_ack_before_loss_detection(
        &mut self,
        window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        self.westwood.on_ack_before_loss_detection(window, measurement);
        if let Some(rtt) = measurement.rtt {
            self.rtts.on_sample(rtt);
        }
    }

    forward_to_westwood!();

    fn on_ack(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        self.westwood.on_ack(window, ack);
    }

    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.acked;
        if window.in_slow_start() {
            acked = slow_start.grow(window, ack);
            self.reno = f64::from(window.cwnd);
            if acked == 0 {
                return;
            }
        }
        if ack.first_unacked > self.round_end {
            self.round_end = ack.next_to_send;
            self.judge(window);
        }
        self.increase_cwnd(window, acked, ack);
    }

    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, _ack: &AckSample) {
        let rounds = f64::from(acked) / f64::from(window.cwnd);
        self.reno = (self.reno + rounds).min(f64::from(window.clamp));
        self.fraction.add(window, self.increase * rounds);
        window.cwnd = window.cwnd.max(self.reno as u32);
    }

    fn ssthresh_after(&mut self, window: &CongestionWindow, _congestion: &CongestionEvent) -> u32 {
        self.fraction.clear();
        self.increase = 0.0;
        self.reno = self.reno.min(f64::from(window.cwnd)) / 2.0;
        let fits = f64::from(window.cwnd) * (1.0 - self.rtts.queueing_share());
        (fits as u32).max(window.cwnd / 2).max(2)
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("reno_packets", self.reno);
        observer.record_value("increase_packets", self.increase);
        observer.record_value("bandwidth_bps", self.westwood.bandwidth_bps());
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::Span;

    use super::*;
    use crate::test_support::{ack, loss};

    /// A law at 120 Mbit/s, a least RTT of 96 ms and an RTT of `rtt_ms`.
    fn at_rtt(rtt_ms: u64) -> Fusion {
        let mut law = Fusion::new(&ROW.entry.defaults());
        law.westwood = Westwood::with_bandwidth_bps(120_000_000);
        [96, rtt_ms].into_iter().for_each(|ms| law.rtts.on_sample(Span::from_us(1_000 * ms - 1)));
        law
    }

    fn at(cwnd: u32) -> CongestionWindow {
        CongestionWindow { cwnd, ssthresh: 2, ..CongestionWindow::default() }
    }

    /// Winc = 120/12 = 10 packets below 4 ms of queue; none up to 12 ms; beyond, all above 4 ms.
    #[test]
    fn up_to_d_min_it_grows_and_beyond_three_it_shrinks() {
        for (rtt_ms, increase, cwnd) in
            [(97, 10.0, 1_000), (99, 10.0, 1_000), (101, 0.0, 1_000), (107, 0.0, 1_000)]
        {
            let (mut law, mut window) = (at_rtt(rtt_ms), at(1_000));
            law.judge(&mut window);
            assert_eq!((law.increase, window.cwnd), (increase, cwnd), "at {rtt_ms} ms");
        }
        // 1000 · 24/120 = 200 in the queue, α = 1000 · 4/120 = 33.3.
        let (mut law, mut window) = (at_rtt(120), at(1_000));
        law.judge(&mut window);
        assert_eq!(window.cwnd, 833);
    }

    #[test]
    fn the_reno_window_is_the_least() {
        let (mut law, mut window) = (at_rtt(120), at(1_000));
        law.reno = 900.0;
        law.judge(&mut window);
        law.increase_cwnd(&mut window, 1, &ack(1));
        assert_eq!(window.cwnd, 900);
    }

    #[test]
    fn a_loss_leaves_what_fits_or_half() {
        assert_eq!(at_rtt(96).ssthresh_after(&at(1_000), &loss()), 1_000);
        assert_eq!(at_rtt(120).ssthresh_after(&at(1_000), &loss()), 800);
        assert_eq!(at_rtt(400).ssthresh_after(&at(1_000), &loss()), 500);
    }
}
