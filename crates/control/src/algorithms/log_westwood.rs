//! LogWestwood+.

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::Time;

use super::westwood::Westwood;
use crate::controller::{AckSample, Congestion, Established, Measurement, Observer};
use crate::jiffies::HZ;
use crate::row::{ControllerRow, Start};
use crate::window::Fraction;
use crate::window::Window;
use crate::windowed::{WindowLaw, Windowed};

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "log-westwood+",
        summary: "Westwood+ that returns to the window of the last loss logarithmically",
        class: "loss",
        based_on: &["westwood"],
        source: "Kliazovich, Granelli & Miorandi, Logarithmic Window Increase for TCP Westwood+ \
                 for Improvement in High Speed, Long Distance Networks, Computer Networks 52(12), \
                 2008",
        parameters: &[
            Parameter {
                name: "alpha",
                summary: "round trips in which the distance would be covered at the first one's \
                          speed",
                kind: Kind::Number { default: 2.0, min: 1.0, max: 1_000.0 },
            },
            HZ,
        ],
    },
    start: Start::Composed("standard"),
    build: |parts| Box::new(Windowed::new(LogWestwood::new(&parts.values), parts.slow_start)),
};

/// The LogWestwood+ window law. Below the window of the last loss an ACK adds
/// (Wmax − W)/(α W), so that the distance falls by a factor e^(−1/α) per round trip, and Reno's 1/W
/// at least; above, and in all that follows a loss, it is Westwood+.
#[derive(Clone, Debug)]
pub struct LogWestwood {
    alpha: f64,
    westwood: Westwood,
    /// cwnd at the last congestion signal (`Wmax`); 0 before one.
    max_window: u32,
    fraction: Fraction,
}

impl LogWestwood {
    /// LogWestwood+ with the parameters of its registry row.
    pub fn new(values: &Values) -> Self {
        Self {
            alpha: values.number("alpha"),
            westwood: Westwood::new(values),
            max_window: 0,
            fraction: Fraction::default(),
        }
    }
}

impl WindowLaw for LogWestwood {
    fn on_established(&mut self, window: &mut Window, established: &Established) {
        self.westwood.on_established(window, established);
    }

    fn on_measurement(&mut self, window: &mut Window, measurement: &Measurement) {
        self.westwood.on_measurement(window, measurement);
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

    fn avoid(&mut self, window: &mut Window, acked: u32, ack: &AckSample) {
        if window.cwnd >= self.max_window {
            self.westwood.avoid(window, acked, ack);
            return;
        }
        let per_round = (f64::from(self.max_window - window.cwnd) / self.alpha).max(1.0);
        self.fraction.add(window, per_round * f64::from(acked) / f64::from(window.cwnd));
        // An ACK of many packets must not jump over the target.
        window.cwnd = window.cwnd.min(self.max_window);
    }

    fn ssthresh(&mut self, window: &Window, congestion: &Congestion) -> u32 {
        self.max_window = window.cwnd;
        self.fraction.clear();
        self.westwood.ssthresh(window, congestion)
    }

    fn on_reduction_end(&mut self, window: &mut Window, now: Time) {
        self.westwood.on_reduction_end(window, now);
    }

    fn mode(&self) -> &'static str {
        "avoidance"
    }

    fn observe(&self, observer: &mut dyn Observer) {
        observer.value("max_window_packets", f64::from(self.max_window));
        self.westwood.observe(observer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{ack, loss};

    /// The law after a loss at 1000 packets, and a window of `cwnd`.
    fn after_a_loss(cwnd: u32) -> (LogWestwood, Window) {
        let mut law = LogWestwood::new(&ROW.entry.defaults());
        law.ssthresh(&Window { cwnd: 1_000, ..Window::default() }, &loss());
        (law, Window { cwnd, ssthresh: 2, ..Window::default() })
    }

    /// α ln 2 = 1.386 round trips halve the distance: ∫ W dW / ((1000 − W)/2) ACKs are, from 500 to
    /// 750, 2 (1000 ln 2 − 250) = 886.
    #[test]
    fn the_distance_to_the_old_maximum_halves_in_two_ln_2_round_trips() {
        let (mut law, mut window) = after_a_loss(500);
        let mut acks = 0;
        while window.cwnd < 750 {
            law.avoid(&mut window, 1, &ack(1));
            acks += 1;
        }
        assert!((880..=892).contains(&acks), "{acks}");
    }

    #[test]
    fn it_never_grows_slower_than_reno_nor_jumps() {
        let (mut law, mut window) = after_a_loss(999);
        (0..1_000).for_each(|_| law.avoid(&mut window, 1, &ack(1)));
        assert_eq!(window.cwnd, 1_000);
        (0..1_000).for_each(|_| law.avoid(&mut window, 1, &ack(1)));
        assert_eq!(window.cwnd, 1_001);
        let (mut law, mut window) = after_a_loss(100);
        law.avoid(&mut window, 1_000, &ack(1));
        assert_eq!(window.cwnd, 1_000);
    }
}
