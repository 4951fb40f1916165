//! TCP-Fusion.

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::Time;

use super::westwood::Westwood;
use crate::controller::{AckSample, Congestion, Established, Measurement, Observer};
use crate::estimate::RttRange;
use crate::jiffies::HZ;
use crate::row::{ControllerRow, Start};
use crate::slow_start::SlowStart;
use crate::window::Fraction;
use crate::window::Window;
use crate::windowed::{WindowLaw, Windowed};

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "fusion",
        summary: "grows by the rate until a few milliseconds queue, and never below a Reno window",
        class: "hybrid",
        based_on: &["reno", "vegas", "westwood"],
        source: "Kaneko, Fujikawa, Su & Katto, TCP-Fusion: A Hybrid Congestion Control Algorithm \
                 for High-speed Networks, PFLDnet 2007",
        parameters: &[
            Parameter {
                name: "d_min",
                summary: "queueing delay that it grows up to; three times as much makes it shrink",
                kind: Kind::Span { default_ns: 4_000_000, min_ns: 1_000, max_ns: 1_000_000_000 },
            },
            Parameter {
                name: "rate_per_packet",
                summary: "bandwidth that adds a packet per round trip to growth",
                kind: Kind::Rate {
                    default_bps: 12_000_000,
                    min_bps: 10_000,
                    max_bps: 100_000_000_000,
                },
            },
            HZ,
        ],
    },
    start: Start::Composed("standard"),
    build: |parts| Box::new(Windowed::new(Fusion::new(&parts.values), parts.slow_start)),
};

/// The TCP-Fusion window law. Of the W (1 − base/RTT) packets in the queue, up to
/// α = W Dmin/RTT are too few, and the window grows by what the bandwidth carries in a millisecond;
/// up to 3 α are enough; beyond, all above α are given up. A Reno window that runs beside is the
/// least. A loss leaves what fits into the path, or half.
#[derive(Clone, Debug)]
pub struct Fusion {
    d_min_us: f64,
    rate_per_packet_bps: f64,
    westwood: Westwood,
    rtts: RttRange,
    /// The packet whose acknowledgement ends the round.
    round_end: u64,
    /// Packets per round trip that this round adds.
    increase: f64,
    /// The Reno window.
    reno: f64,
    fraction: Fraction,
}

impl Fusion {
    /// TCP-Fusion with the parameters of its registry row.
    pub fn new(values: &Values) -> Self {
        Self {
            d_min_us: values.span("d_min").as_ns() as f64 * 1e-3,
            rate_per_packet_bps: values.rate("rate_per_packet").as_bps() as f64,
            westwood: Westwood::new(values),
            rtts: RttRange::default(),
            round_end: 0,
            increase: 0.0,
            reno: 0.0,
            fraction: Fraction::default(),
        }
    }

    /// The decision at the end of a round.
    fn judge(&mut self, window: &mut Window) {
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

impl WindowLaw for Fusion {
    fn on_established(&mut self, window: &mut Window, established: &Established) {
        self.westwood.on_established(window, established);
        if let Some(rtt) = established.rtt {
            self.rtts.on_sample(rtt);
        }
    }

    fn on_measurement(&mut self, window: &mut Window, measurement: &Measurement) {
        self.westwood.on_measurement(window, measurement);
        if let Some(rtt) = measurement.rtt {
            self.rtts.on_sample(rtt);
        }
    }

    fn on_packet_size(&mut self, mss_bytes: u32) {
        self.westwood.on_packet_size(mss_bytes);
    }

    fn hears_headers(&self) -> bool {
        self.westwood.hears_headers()
    }

    fn on_ack_event(&mut self, window: &mut Window, now: Time, slow_path: bool) {
        self.westwood.on_ack_event(window, now, slow_path);
    }

    fn on_any_ack(&mut self, window: &mut Window, ack: &AckSample) {
        self.westwood.on_any_ack(window, ack);
    }

    fn grow(&mut self, window: &mut Window, slow_start: &mut dyn SlowStart, ack: &AckSample) {
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
        self.avoid(window, acked, ack);
    }

    fn avoid(&mut self, window: &mut Window, acked: u32, _ack: &AckSample) {
        let rounds = f64::from(acked) / f64::from(window.cwnd);
        self.reno = (self.reno + rounds).min(f64::from(window.clamp));
        self.fraction.add(window, self.increase * rounds);
        window.cwnd = window.cwnd.max(self.reno as u32);
    }

    fn ssthresh(&mut self, window: &Window, _congestion: &Congestion) -> u32 {
        self.fraction.clear();
        self.increase = 0.0;
        self.reno = self.reno.min(f64::from(window.cwnd)) / 2.0;
        let fits = f64::from(window.cwnd) * (1.0 - self.rtts.queueing_share());
        (fits as u32).max(window.cwnd / 2).max(2)
    }

    fn observe(&self, observer: &mut dyn Observer) {
        observer.value("reno_packets", self.reno);
        observer.value("increase_packets", self.increase);
        observer.value("bandwidth_bps", self.westwood.bandwidth_bps());
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::Span;

    use super::*;
    use crate::fixtures::{ack, loss};

    /// A law at 120 Mbit/s, a least RTT of 96 ms and an RTT of `rtt_ms`.
    fn at_rtt(rtt_ms: u64) -> Fusion {
        let mut law = Fusion::new(&ROW.entry.defaults());
        law.westwood = Westwood::with_bandwidth_bps(120_000_000);
        [96, rtt_ms].into_iter().for_each(|ms| law.rtts.on_sample(Span::from_us(1_000 * ms - 1)));
        law
    }

    fn at(cwnd: u32) -> Window {
        Window { cwnd, ssthresh: 2, ..Window::default() }
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
        law.avoid(&mut window, 1, &ack(1));
        assert_eq!(window.cwnd, 900);
    }

    #[test]
    fn a_loss_leaves_what_fits_or_half() {
        assert_eq!(at_rtt(96).ssthresh(&at(1_000), &loss()), 1_000);
        assert_eq!(at_rtt(120).ssthresh(&at(1_000), &loss()), 800);
        assert_eq!(at_rtt(400).ssthresh(&at(1_000), &loss()), 500);
    }
}
