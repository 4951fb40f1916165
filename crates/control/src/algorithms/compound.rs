//! Compound TCP.

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::{Span, Time};

use crate::controller::{AckSample, Congestion, Measurement, Observer, RecoveryState, Signal};
use crate::estimate::RoundRtts;
use crate::row::{ControllerRow, Start};
use crate::slow_start::SlowStart;
use crate::window::Window;
use crate::windowed::{Abe, BETA_ECN, WindowLaw, Windowed, grow_as_reno};

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "compound",
        summary: "Reno's window and beside it one that grows while the queue is short",
        class: "hybrid",
        based_on: &["reno", "vegas", "highspeed"],
        source: "Tan, Song, Zhang & Sridharan, A Compound TCP Approach for High-speed and Long \
                 Distance Networks, IEEE INFOCOM 2006; draft-sridharan-tcpm-ctcp-02",
        parameters: &[
            Parameter {
                name: "alpha",
                summary: "factor of the delay window's growth per round trip, alpha win^k",
                kind: Kind::Number { default: 0.125, min: 0.0, max: 1.0 },
            },
            Parameter {
                name: "k",
                summary: "exponent of the delay window's growth per round trip, alpha win^k",
                kind: Kind::Number { default: 0.75, min: 0.0, max: 1.0 },
            },
            Parameter {
                name: "gamma",
                summary: "packets in the queue from which on the delay window shrinks",
                kind: Kind::Integer { default: 30, min: 1, max: 10_000 },
            },
            Parameter {
                name: "zeta",
                summary: "how many times the packets in the queue it then gives up",
                kind: Kind::Number { default: 1.0, min: 0.0, max: 100.0 },
            },
            Parameter {
                name: "low_window",
                summary: "window below which it is Reno",
                kind: Kind::Integer { default: 38, min: 2, max: 10_000 },
            },
            BETA_ECN,
        ],
    },
    start: Start::Composed("standard"),
    build: |parts| {
        Box::new(
            Windowed::new(Compound::new(&parts.values), parts.slow_start).with_abe(&parts.values),
        )
    },
};

/// The Compound window law: win = W + D. W is Reno's. D, the delay window, gains α win^k − 1 per
/// round trip while fewer than γ packets queue, which makes win grow as HighSpeed's does, and
/// gives up what queues once there are more.
#[derive(Clone, Debug)]
pub struct Compound {
    alpha: f64,
    k: f64,
    gamma: f64,
    zeta: f64,
    low_window: u32,
    abe: Abe,
    rtts: RoundRtts,
    /// D (`dwnd`), of which the whole packets are part of cwnd.
    delay_window: f64,
    /// D before the last congestion signal.
    prior_delay_window: f64,
    /// Packets in the queue when last computed (`diff`).
    queued: f64,
}

impl Compound {
    /// Compound with the parameters of its registry row.
    pub fn new(values: &Values) -> Self {
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

    /// The delay window's step at the end of a round (draft §3.3).
    fn adjust(&mut self, window: &mut Window, (rtt_us, base_us): (u64, u64)) {
        let win = f64::from(window.cwnd);
        self.queued = win * (rtt_us - base_us) as f64 / rtt_us as f64;
        // The transport may have taken the window down without asking; two packets are Reno's.
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

impl WindowLaw for Compound {
    fn on_flight_start(&mut self, _window: &mut Window, _now: Time, _idle: Span) {
        self.rtts.on_flight_start();
    }

    fn on_measurement(&mut self, _window: &mut Window, measurement: &Measurement) {
        self.rtts.on_measurement(measurement);
    }

    fn grow(&mut self, window: &mut Window, slow_start: &mut dyn SlowStart, ack: &AckSample) {
        // W's step. A packet per win, not per W: W + D grows by one per round trip.
        grow_as_reno(window, slow_start, ack);
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

    fn avoid(&mut self, window: &mut Window, acked: u32, _ack: &AckSample) {
        window.additive_increase(window.cwnd, acked);
    }

    fn ssthresh(&mut self, window: &Window, congestion: &Congestion) -> u32 {
        self.rtts.on_congestion(congestion);
        self.prior_delay_window = self.delay_window;
        // Draft §3.4: D = win (1 − β) − W/2, at β = ½ the half of D, as of W; with ABE both keep more.
        // A timeout ends it (§3.5).
        let timeout = congestion.signal == Signal::Timeout;
        let kept = if timeout { 0.0 } else { self.abe.share(window, congestion).max(0.5) };
        self.delay_window *= kept;
        (window.cwnd / 2).max(2)
    }

    fn on_state(&mut self, _window: &mut Window, _now: Time, state: RecoveryState) {
        self.rtts.on_state(state);
    }

    fn on_idle_restart(&mut self, _window: &mut Window, _now: Time) {
        self.delay_window = 0.0;
    }

    fn undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
        self.delay_window = self.prior_delay_window;
        window.cwnd.max(prior_cwnd)
    }

    fn observe(&self, observer: &mut dyn Observer) {
        observer.value("delay_window_packets", self.delay_window);
        observer.value("queued_packets", self.queued);
        observer.value("base_rtt_s", self.rtts.base_us().unwrap_or(0) as f64 * 1e-6);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::loss;

    fn compound() -> Compound {
        Compound::new(&ROW.entry.defaults())
    }

    fn at(cwnd: u32) -> Window {
        Window { cwnd, ssthresh: 2, ..Window::default() }
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
        assert_eq!((law.ssthresh(&window, &loss()), law.delay_window), (50, 20.0));
        let timeout = Congestion { signal: Signal::Timeout, ..loss() };
        assert_eq!((law.ssthresh(&window, &timeout), law.delay_window), (50, 0.0));
        assert_eq!((law.undo(&at(1), 100), law.delay_window), (100, 20.0));
    }
}
