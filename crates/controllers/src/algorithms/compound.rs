//! Compound TCP.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::Time;

use crate::cwnd::CongestionWindow;
use crate::estimators::RoundRtts;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{
    Abe, BETA_ECN, CongestionAvoidance, WindowBasedController, reno_increase,
};
use jostle_congestion::{AckSample, CongestionEvent, CongestionSignal, StateObserver};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "compound",
        summary: "sum of Reno's cwnd and a delay-based window that grows while the queue is short",
        class: "hybrid",
        based_on: &["reno", "vegas", "highspeed"],
        source: "Tan, Song, Zhang & Sridharan, A Compound TCP Approach for High-speed and Long \
                 Distance Networks, IEEE INFOCOM 2006; draft-sridharan-tcpm-ctcp-02",
        parameters: &[
            Parameter::number("alpha", 0.125, 0.0..=1.0)
                .summary("factor of the delay window's growth per round trip, alpha win^k"),
            Parameter::number("k", 0.75, 0.0..=1.0)
                .summary("exponent of the delay window's growth per round trip, alpha win^k"),
            Parameter::integer("gamma", 30, 1..=10_000)
                .summary("number of packets in the queue above which the delay window shrinks"),
            Parameter::number("zeta", 1.0, 0.0..=100.0).summary(
                "reduction of the delay window, as a multiple of the packets in the queue",
            ),
            Parameter::integer("low_window", 38, 2..=10_000).summary("cwnd below which it is Reno"),
            BETA_ECN,
        ],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| {
        Box::new(
            WindowBasedController::new(Compound::new(&parts.values), parts.slow_start)
                .with_abe(&parts.values),
        )
    },
};

/// Congestion avoidance of Compound TCP: win = W + D. W grows like Reno. The delay window D grows
/// by α win^k − 1 per round trip while fewer than γ packets are queued, so that win grows like
/// HighSpeed, and shrinks by the queued packets otherwise.
#[derive(Clone, Debug)]
pub struct Compound {
    alpha: f64,
    k: f64,
    gamma: f64,
    zeta: f64,
    low_window: u32,
    abe: Abe,
    rtts: RoundRtts,
    /// D (`dwnd`). Its integer part is included in cwnd.
    delay_window: f64,
    /// D before the last congestion signal.
    prior_delay_window: f64,
    /// Most recent estimate of the packets in the queue (`diff`).
    queued: f64,
}

impl Compound {
    /// Creates Compound with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            alpha: values.number("alpha"),
            k: values.number("k"),
            gamma: values.integer("gamma") as f64,
            zeta: values.number("zeta"),
            low_window: values.u32("low_window"),
            abe: Abe::new(values),
            rtts: RoundRtts::default(),
            delay_window: 0.0,
            prior_delay_window: 0.0,
            queued: 0.0,
        }
    }

    /// Adjusts the delay window at the end of a round (draft §3.3).
    fn adjust(&mut self, window: &mut CongestionWindow, (rtt_us, base_us): (u64, u64)) {
        let win = f64::from(window.cwnd);
        self.queued = win * (rtt_us - base_us) as f64 / rtt_us as f64;
        // The transport may have reduced the window on its own; two packets belong to Reno.
        let before = self.delay_window.min((win - 2.0).max(0.0));
        self.delay_window = if self.queued >= self.gamma {
            (before - self.zeta * self.queued).max(0.0)
        } else if window.cwnd >= self.low_window {
            // W adds the packet that is subtracted here.
            before + (self.alpha * libm::pow(win, self.k) - 1.0).max(0.0)
        } else {
            before
        };
        let reno = window.cwnd - before as u32;
        window.cwnd = reno.saturating_add(self.delay_window as u32).min(window.clamp);
    }
}

impl CongestionAvoidance for Compound {
    fn round_rtts(&mut self) -> Option<&mut RoundRtts> {
        Some(&mut self.rtts)
    }

    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        // Growth of W by one packet per win, not per W, so that W + D grows by one per round trip.
        reno_increase(window, slow_start, ack);
        if self.rtts.enabled() && self.rtts.round_is_over(ack) {
            if ack.cwnd_limited
                && !window.in_slow_start()
                && let Some(minima_us) = self.rtts.minima_us()
            {
                self.adjust(window, minima_us);
            }
            self.rtts.start_round(ack.next_to_send);
        }
    }

    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        self.rtts.on_congestion_event(congestion);
        self.prior_delay_window = self.delay_window;
        // Draft §3.4: D = win (1 − β) − W/2. With β = ½ both D and W are halved; with ABE both keep
        // more. A timeout resets D (§3.5).
        let timeout = congestion.signal == CongestionSignal::Timeout;
        let kept = if timeout { 0.0 } else { self.abe.share(window, congestion).max(0.5) };
        self.delay_window *= kept;
        (window.cwnd / 2).max(2)
    }

    fn on_idle_restart(&mut self, _window: &mut CongestionWindow, _now: Time) {
        self.delay_window = 0.0;
    }

    fn cwnd_after_undo(&mut self, window: &CongestionWindow, prior_cwnd: u32) -> u32 {
        self.delay_window = self.prior_delay_window;
        window.cwnd.max(prior_cwnd)
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("delay_window_packets", self.delay_window);
        observer.record_value("queued_packets", self.queued);
        observer.record_value("base_rtt_s", self.rtts.base_us().unwrap_or(0) as f64 * 1e-6);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::loss;

    fn compound() -> Compound {
        Compound::new(&ROW.entry.defaults())
    }

    fn at(cwnd: u32) -> CongestionWindow {
        CongestionWindow { cwnd, ssthresh: 2, ..CongestionWindow::default() }
    }

    /// algorithms.md: at 256 packets and without a queue D gains ⅛ · 256^¾ − 1 = 7 packets.
    #[test]
    fn the_delay_window_gains_by_the_three_quarter_power() {
        let (mut law, mut window) = (compound(), at(256));
        law.adjust(&mut window, (100_000, 100_000));
        assert_eq!((law.delay_window, window.cwnd), (7.0, 263));
        let (mut law, mut window) = (compound(), at(37));
        law.adjust(&mut window, (100_000, 100_000));
        assert_eq!((law.delay_window, window.cwnd), (0.0, 37), "Reno's below 38 packets");
    }

    #[test]
    fn from_thirty_queued_packets_on_it_gives_up_as_many() {
        let (mut law, mut window) = (compound(), at(300));
        law.delay_window = 100.0;
        law.adjust(&mut window, (100_000, 90_000));
        assert_eq!((law.delay_window, window.cwnd), (70.0, 270), "10 % of 300 queue");
        law.delay_window = 20.0;
        law.adjust(&mut window, (100_000, 50_000));
        assert_eq!((law.delay_window, window.cwnd), (0.0, 250), "W is never touched");
    }

    #[test]
    fn a_loss_halves_both_and_a_timeout_ends_the_delay_window() {
        let (mut law, window) = (compound(), at(100));
        law.delay_window = 40.0;
        assert_eq!((law.ssthresh_after(&window, &loss()), law.delay_window), (50, 20.0));
        let timeout = CongestionEvent { signal: CongestionSignal::Timeout, ..loss() };
        assert_eq!((law.ssthresh_after(&window, &timeout), law.delay_window), (50, 0.0));
        assert_eq!((law.cwnd_after_undo(&at(1), 100), law.delay_window), (100, 20.0));
    }
}
