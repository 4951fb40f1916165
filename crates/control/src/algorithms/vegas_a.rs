//! Vegas-A.

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::{Span, Time};

use super::vegas::{GAMMA, end_slow_start};
use crate::controller::{AckSample, Congestion, Measurement, Observer, RecoveryState};
use crate::estimate::RoundRtts;
use crate::row::{ControllerRow, Start};
use crate::slow_start::SlowStart;
use crate::window::Window;
use crate::windowed::{WindowLaw, Windowed, grow_as_reno};

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "vegas-a",
        summary: "Vegas whose thresholds move up while the throughput rises with them",
        class: "delay",
        based_on: &["vegas"],
        source: "Srijith, Jacob & Ananda, TCP Vegas-A: Improving the Performance of TCP Vegas, \
                 Computer Communications 28(4), 2005",
        parameters: &[
            Parameter {
                name: "alpha",
                summary: "fewest packets to keep in the queue, to begin with",
                kind: Kind::Integer { default: 1, min: 1, max: 10_000 },
            },
            Parameter {
                name: "beta",
                summary: "most packets to keep in the queue, to begin with",
                kind: Kind::Integer { default: 3, min: 1, max: 10_000 },
            },
            GAMMA,
        ],
    },
    start: Start::Own,
    build: |parts| Box::new(Windowed::new(VegasA::new(&parts.values), parts.slow_start)),
};

/// The Vegas-A window law: Vegas' decision at the end of a round, with thresholds that the flow's
/// throughput moves.
#[derive(Clone, Debug)]
pub struct VegasA {
    alpha: u64,
    beta: u64,
    gamma: u64,
    rtts: RoundRtts,
    /// When the round began, and what had been delivered then; none where one was cut short.
    round_start: Option<(Time, u64)>,
    /// Throughput of the round before, in packets per second; 0 before one.
    throughput: f64,
    /// Packets in the queue when last computed.
    queued: f64,
}

impl VegasA {
    /// Vegas-A with the parameters of its registry row.
    pub fn new(values: &Values) -> Self {
        let alpha = u64::from(values.u32("alpha"));
        Self {
            alpha,
            beta: u64::from(values.u32("beta")).max(alpha),
            gamma: u64::from(values.u32("gamma")),
            rtts: RoundRtts::default(),
            round_start: None,
            throughput: 0.0,
            queued: 0.0,
        }
    }

    fn lower_thresholds(&mut self) {
        if self.alpha > 1 {
            (self.alpha, self.beta) = (self.alpha - 1, self.beta - 1);
        }
    }

    /// The decision in avoidance; `throughput` is that of the round.
    fn adjust(&mut self, window: &mut Window, throughput: f64) {
        let (rose, fell) = (throughput > self.throughput, throughput < self.throughput);
        let cwnd = window.cwnd;
        if self.queued > self.beta as f64 {
            window.cwnd = cwnd - 1;
            self.lower_thresholds();
        } else if self.queued >= self.alpha as f64 {
            if rose {
                window.cwnd = cwnd.saturating_add(1);
                (self.alpha, self.beta) = (self.alpha + 1, self.beta + 1);
            }
        } else if self.alpha == 1 || rose {
            window.cwnd = cwnd.saturating_add(1);
        } else if fell {
            window.cwnd = cwnd - 1;
            self.lower_thresholds();
        }
        window.cwnd = window.cwnd.min(window.clamp).max(2);
        window.ssthresh = window.ssthresh.min(window.cwnd);
    }

    fn end_round(
        &mut self,
        window: &mut Window,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
        (rtt_us, base_us): (u64, u64),
    ) {
        // The paper's Diff: (Expected − Actual) · base.
        self.queued = f64::from(window.cwnd) * (rtt_us - base_us) as f64 / rtt_us as f64;
        let throughput = self.round_start.map_or(0.0, |(start, delivered)| {
            let packets = ack.delivered.saturating_sub(delivered) as f64;
            packets / ack.now.since(start).as_secs_f64().max(1e-6)
        });
        if !window.in_slow_start() {
            self.adjust(window, throughput);
        } else if self.queued > self.gamma as f64 {
            end_slow_start(window, rtt_us, base_us);
        } else {
            slow_start.grow(window, ack);
        }
        self.throughput = throughput;
    }
}

impl WindowLaw for VegasA {
    fn on_flight_start(&mut self, _window: &mut Window, _now: Time, _idle: Span) {
        self.rtts.on_flight_start();
        self.round_start = None;
    }

    fn on_measurement(&mut self, _window: &mut Window, measurement: &Measurement) {
        self.rtts.on_measurement(measurement);
    }

    fn grow(&mut self, window: &mut Window, slow_start: &mut dyn SlowStart, ack: &AckSample) {
        if !self.rtts.enabled() {
            grow_as_reno(window, slow_start, ack);
        } else if self.rtts.round_is_over(ack) {
            match self.rtts.minima_us() {
                Some(minima_us) => self.end_round(window, slow_start, ack, minima_us),
                None => grow_as_reno(window, slow_start, ack),
            }
            self.rtts.start_round(ack.next_to_send);
            self.round_start = Some((ack.now, ack.delivered));
        } else if window.in_slow_start() {
            slow_start.grow(window, ack);
        }
    }

    /// Reno's, where there are no samples to go by.
    fn avoid(&mut self, window: &mut Window, acked: u32, _ack: &AckSample) {
        window.additive_increase(window.cwnd, acked);
    }

    fn ssthresh(&mut self, window: &Window, congestion: &Congestion) -> u32 {
        self.rtts.on_congestion(congestion);
        (window.cwnd / 2).max(2)
    }

    fn on_state(&mut self, _window: &mut Window, _now: Time, state: RecoveryState) {
        self.rtts.on_state(state);
        self.round_start = None;
    }

    fn observe(&self, observer: &mut dyn Observer) {
        observer.value("alpha_packets", self.alpha as f64);
        observer.value("beta_packets", self.beta as f64);
        observer.value("queued_packets", self.queued);
        observer.value("base_rtt_s", self.rtts.base_us().unwrap_or(0) as f64 * 1e-6);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Window, α and β after a round that began with 20 packets, α, α + 2, and a throughput of 100.
    fn after(alpha: u64, queued: f64, throughput: f64) -> (u32, u64, u64) {
        let mut law = VegasA::new(&ROW.entry.defaults());
        (law.alpha, law.beta) = (alpha, alpha + 2);
        (law.queued, law.throughput) = (queued, 100.0);
        let mut window = Window { cwnd: 20, ssthresh: 2, ..Window::default() };
        law.adjust(&mut window, throughput);
        (window.cwnd, law.alpha, law.beta)
    }

    #[test]
    fn in_the_band_a_rising_throughput_lifts_window_and_thresholds() {
        assert_eq!(after(1, 2.0, 101.0), (21, 2, 4));
        assert_eq!(after(1, 2.0, 100.0), (20, 1, 3));
        assert_eq!(after(1, 2.0, 99.0), (20, 1, 3));
    }

    #[test]
    fn below_it_a_falling_throughput_lowers_them_again() {
        assert_eq!(after(1, 0.5, 99.0), (21, 1, 3), "Vegas, at the lowest thresholds");
        assert_eq!(after(4, 0.5, 101.0), (21, 4, 6));
        assert_eq!(after(4, 0.5, 100.0), (20, 4, 6));
        assert_eq!(after(4, 0.5, 99.0), (19, 3, 5));
    }

    #[test]
    fn above_it_window_and_thresholds_come_down() {
        assert_eq!(after(4, 6.5, 101.0), (19, 3, 5));
        assert_eq!(after(1, 3.5, 101.0), (19, 1, 3));
    }
}
