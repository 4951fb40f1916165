//! TCP New Vegas.

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::{Rate, Span, Time};

use super::vegas::{ALPHA, BETA, GAMMA, end_slow_start};
use crate::controller::{AckSample, Congestion, Established, Measurement, Observer, RecoveryState};
use crate::estimate::RoundRtts;
use crate::row::{ControllerRow, Start};
use crate::slow_start::SlowStart;
use crate::window::{INFINITE_SSTHRESH, Window};
use crate::windowed::{WindowLaw, Windowed, grow_as_reno};

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "new-vegas",
        summary: "Vegas that paces its packets and converges by ever smaller exponential steps",
        class: "delay",
        based_on: &["vegas"],
        source: "Sing & Soh, TCP New Vegas: Improving the Performance of TCP Vegas over High \
                 Latency Links, IEEE NCA 2005",
        parameters: &[
            ALPHA,
            BETA,
            GAMMA,
            Parameter {
                name: "steps",
                summary: "signs of congestion that halve the growth of slow start before one ends \
                          it",
                kind: Kind::Integer { default: 3, min: 0, max: 16 },
            },
        ],
    },
    start: Start::Own,
    build: |parts| Box::new(Windowed::new(NewVegas::new(&parts.values), parts.slow_start)),
};

/// The New Vegas window law: Vegas, whose packets are spread over the base RTT, and whose slow start
/// goes on at half of its growth after each of the first signs of congestion.
#[derive(Clone, Debug)]
pub struct NewVegas {
    alpha: u64,
    beta: u64,
    gamma: u64,
    steps: u32,
    rtts: RoundRtts,
    /// Signs of congestion in this slow start.
    signs: u32,
    /// A sign was seen, and what led to it still queues: a round's RTT tells of the window before.
    draining: bool,
    mss_bytes: u32,
    /// Packets in the queue when last computed.
    queued: u64,
}

impl NewVegas {
    /// New Vegas with the parameters of its registry row.
    pub fn new(values: &Values) -> Self {
        Self {
            alpha: u64::from(values.u32("alpha")),
            beta: u64::from(values.u32("beta")),
            gamma: u64::from(values.u32("gamma")),
            steps: values.u32("steps"),
            rtts: RoundRtts::default(),
            signs: 0,
            draining: false,
            mss_bytes: 0,
            queued: 0,
        }
    }

    /// Slow start: W / 2ᵏ packets per round trip after k signs of congestion.
    fn start(&self, window: &mut Window, acked: u32) {
        let per_increase = 1 << self.signs;
        window.additive_increase(per_increase, acked);
        window.cwnd = window.cwnd.min(window.ssthresh);
    }

    /// The adjustment at the end of a round.
    fn adjust(&mut self, window: &mut Window, acked: u32, (rtt_us, base_us): (u64, u64)) {
        // The paper's Diff: (Expected − Actual) · base.
        let queued = u128::from(window.cwnd) * u128::from(rtt_us - base_us) / u128::from(rtt_us);
        self.queued = u64::try_from(queued).unwrap_or(u64::MAX);
        if window.in_slow_start() {
            if self.queued <= self.gamma {
                self.draining = false;
                self.start(window, acked);
            } else {
                let ssthresh = window.ssthresh;
                end_slow_start(window, rtt_us, base_us);
                if (self.draining || self.signs < self.steps) && ssthresh == INFINITE_SSTHRESH {
                    self.signs += u32::from(!self.draining);
                    self.draining = true;
                    window.ssthresh = ssthresh;
                }
            }
        } else if self.queued > self.beta {
            window.cwnd -= 1;
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else if self.queued < self.alpha {
            window.cwnd = window.cwnd.saturating_add(1);
        }
        window.cwnd = window.cwnd.min(window.clamp).max(2);
    }
}

impl WindowLaw for NewVegas {
    fn on_established(&mut self, _window: &mut Window, established: &Established) {
        self.mss_bytes = established.mss_bytes;
    }

    fn on_packet_size(&mut self, mss_bytes: u32) {
        self.mss_bytes = mss_bytes;
    }

    fn on_flight_start(&mut self, _window: &mut Window, _now: Time, _idle: Span) {
        self.rtts.on_flight_start();
    }

    fn on_measurement(&mut self, _window: &mut Window, measurement: &Measurement) {
        self.rtts.on_measurement(measurement);
    }

    fn grow(&mut self, window: &mut Window, slow_start: &mut dyn SlowStart, ack: &AckSample) {
        if !self.rtts.enabled() {
            grow_as_reno(window, slow_start, ack);
        } else if self.rtts.round_is_over(ack) {
            match self.rtts.minima_us() {
                Some(minima_us) => self.adjust(window, ack.acked, minima_us),
                None => grow_as_reno(window, slow_start, ack),
            }
            self.rtts.start_round(ack.next_to_send);
        } else if window.in_slow_start() && !self.draining {
            self.start(window, ack.acked);
        }
    }

    /// Reno's, where there are no samples to go by.
    fn avoid(&mut self, window: &mut Window, acked: u32, _ack: &AckSample) {
        window.additive_increase(window.cwnd, acked);
    }

    fn ssthresh(&mut self, window: &Window, congestion: &Congestion) -> u32 {
        self.rtts.on_congestion(congestion);
        (self.signs, self.draining) = (0, false);
        (window.cwnd / 2).max(2)
    }

    fn on_state(&mut self, _window: &mut Window, _now: Time, state: RecoveryState) {
        self.rtts.on_state(state);
    }

    /// A window in a base RTT: no faster than the window allows on an empty path, and no brake when
    /// something queues.
    fn pacing_rate(&self, window: &Window) -> Option<Rate> {
        let base = Span::from_us(self.rtts.base_us()?);
        let bytes = u64::from(window.cwnd) * u64::from(self.mss_bytes);
        Some(Rate::of(bytes, base)).filter(|rate| rate.as_bps() > 0)
    }

    fn observe(&self, observer: &mut dyn Observer) {
        observer.value("base_rtt_s", self.rtts.base_us().unwrap_or(0) as f64 * 1e-6);
        observer.value("queued_packets", self.queued as f64);
        observer.value("growth_share", 1.0 / f64::from(1u32 << self.signs));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law() -> NewVegas {
        NewVegas { mss_bytes: 1_000, ..NewVegas::new(&ROW.entry.defaults()) }
    }

    #[test]
    fn signs_of_congestion_halve_the_growth_until_the_fourth_ends_slow_start() {
        let mut law = law();
        for (signs, growth) in [(0, 64), (1, 32), (2, 16), (3, 8)] {
            assert_eq!(law.signs, signs);
            law.draining = false;
            let mut window = Window { cwnd: 64, ..Window::default() };
            (0..64).for_each(|_| law.start(&mut window, 1));
            assert_eq!(window.cwnd, 64 + growth);
            window.cwnd = 100;
            law.adjust(&mut window, 1, (200_000, 100_000));
            assert_eq!((window.cwnd, window.in_slow_start()), (51, signs < 3));
        }
    }

    #[test]
    fn two_to_four_packets_stay_in_the_queue() {
        for (rtt_us, cwnd) in [(101_000, 101), (103_000, 100), (104_000, 100), (106_000, 99)] {
            let mut window = Window { cwnd: 100, ssthresh: 50, ..Window::default() };
            law().adjust(&mut window, 1, (rtt_us, 100_000));
            assert_eq!(window.cwnd, cwnd, "at {rtt_us} us");
        }
    }

    #[test]
    fn a_window_leaves_within_the_base_rtt() {
        let mut law = law();
        assert_eq!(law.pacing_rate(&Window::default()), None);
        law.rtts = RoundRtts::with_base_us(100_000);
        assert_eq!(law.pacing_rate(&Window::default()), Some(Rate::from_bps(800_000)));
    }
}
