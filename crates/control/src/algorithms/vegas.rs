//! Vegas as Linux has it.

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::{Span, Time};

use crate::controller::{AckSample, Congestion, Measurement, Observer, RecoveryState};
use crate::registry::{ControllerRow, Start};
use crate::slow_start::SlowStart;
use crate::windowed::{Window, WindowLaw, Windowed};

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "vegas",
        summary: "keeps a few packets in the queue, judged by the RTT of each round",
        class: "delay",
        based_on: &["reno"],
        source: "Brakmo & Peterson, TCP Vegas, IEEE JSAC 13(8), 1995; Linux 6.1 tcp_vegas.c",
        parameters: &[
            Parameter {
                name: "alpha",
                summary: "fewest packets to keep in the queue",
                kind: Kind::Integer { default: 2, min: 0, max: 10_000 },
            },
            Parameter {
                name: "beta",
                summary: "most packets to keep in the queue",
                kind: Kind::Integer { default: 4, min: 0, max: 10_000 },
            },
            Parameter {
                name: "gamma",
                summary: "packets in the queue that end slow start",
                kind: Kind::Integer { default: 1, min: 0, max: 10_000 },
            },
        ],
    },
    start: Start::Own,
    build: |parts| Box::new(Windowed::new(Vegas::new(&parts.values), parts.slow_start)),
};

/// The Vegas window law. Once per round trip it takes W · (RTT − base) / base for the packets in
/// the queue, RTT being the round's minimum and base the connection's, and moves the window by one
/// packet to bring them between α and β. With two samples or fewer, or outside state `Open`, it is
/// Reno.
#[derive(Clone, Debug)]
pub struct Vegas {
    alpha: u64,
    beta: u64,
    gamma: u64,
    /// The connection is in state `Open`.
    enabled: bool,
    /// The packet whose acknowledgement ends the round (`beg_snd_nxt`).
    round_end: u64,
    /// `snd_nxt` as last heard of.
    next_to_send: u64,
    /// RTT samples in the round.
    samples: u32,
    /// Minimum RTT of the round, plus 1 µs so that it is never zero; none before a sample.
    round_min_us: Option<u64>,
    /// Minimum RTT since the last idle time.
    base_us: Option<u64>,
    /// Packets in the queue when last computed.
    queued: u64,
}

impl Vegas {
    /// Vegas with the parameters of its registry row.
    pub fn new(values: &Values) -> Self {
        Self {
            alpha: u64::from(values.u32("alpha")),
            beta: u64::from(values.u32("beta")),
            gamma: u64::from(values.u32("gamma")),
            enabled: true,
            round_end: 0,
            next_to_send: 0,
            samples: 0,
            round_min_us: None,
            base_us: None,
            queued: 0,
        }
    }

    /// Waits for a full round of fresh samples (`vegas_enable`).
    fn enable(&mut self) {
        self.enabled = true;
        self.start_round(self.next_to_send);
    }

    fn start_round(&mut self, round_end: u64) {
        self.round_end = round_end;
        self.samples = 0;
        self.round_min_us = None;
    }

    fn reno(&mut self, window: &mut Window, slow_start: &mut dyn SlowStart, ack: &AckSample) {
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.acked;
        if window.in_slow_start() {
            acked = slow_start.grow(window, ack);
        }
        if acked > 0 {
            self.avoid(window, acked, ack);
        }
    }

    /// The adjustment at the end of a round. Like Linux it does not ask whether cwnd was used up.
    fn adjust(
        &mut self,
        window: &mut Window,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
        (rtt_us, base_us): (u64, u64),
    ) {
        let cwnd = u128::from(window.cwnd);
        // The paper's Diff divides by RTT; Linux divides by base, which counts a long queue longer.
        let queued = cwnd * u128::from(rtt_us - base_us) / u128::from(base_us);
        self.queued = u64::try_from(queued).unwrap_or(u64::MAX);
        if window.in_slow_start() {
            if self.queued > self.gamma {
                // The window that the measured rate fills without a queue; + 1 for the truncation.
                // It fits: the quotient is at most cwnd.
                let target = (cwnd * u128::from(base_us) / u128::from(rtt_us)) as u32;
                window.cwnd = window.cwnd.min(target.saturating_add(1));
                window.ssthresh = window.ssthresh.min(window.cwnd);
            } else {
                slow_start.grow(window, ack);
            }
        } else if self.queued > self.beta {
            window.cwnd -= 1;
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else if self.queued < self.alpha {
            window.cwnd = window.cwnd.saturating_add(1);
        }
        window.cwnd = window.cwnd.min(window.clamp).max(2);
        window.ssthresh = window.ssthresh.max(window.three_quarters());
    }
}

impl WindowLaw for Vegas {
    /// After an idle time the path may be another: base RTT is learnt anew.
    fn on_flight_start(&mut self, _window: &mut Window, _now: Time, _idle: Span) {
        self.base_us = None;
        self.enable();
    }

    fn on_measurement(&mut self, _window: &mut Window, measurement: &Measurement) {
        self.next_to_send = measurement.next_to_send;
        let Some(rtt) = measurement.rtt else { return };
        let rtt_us = rtt.as_us() + 1;
        self.base_us = Some(self.base_us.map_or(rtt_us, |base| base.min(rtt_us)));
        self.round_min_us = Some(self.round_min_us.map_or(rtt_us, |min| min.min(rtt_us)));
        self.samples = self.samples.saturating_add(1);
    }

    fn grow(&mut self, window: &mut Window, slow_start: &mut dyn SlowStart, ack: &AckSample) {
        if !self.enabled {
            self.reno(window, slow_start, ack);
        } else if ack.first_unacked > self.round_end {
            match (self.round_min_us, self.base_us) {
                (Some(rtt_us), Some(base_us)) if self.samples > 2 => {
                    self.adjust(window, slow_start, ack, (rtt_us, base_us));
                }
                // One or two ACKs per round are probably delayed ones.
                _ => self.reno(window, slow_start, ack),
            }
            self.start_round(ack.next_to_send);
        } else if window.in_slow_start() {
            slow_start.grow(window, ack);
        }
    }

    /// Reno's, where Vegas has no samples to go by.
    fn avoid(&mut self, window: &mut Window, acked: u32, _ack: &AckSample) {
        window.additive_increase(window.cwnd, acked);
    }

    fn ssthresh(&mut self, window: &Window, congestion: &Congestion) -> u32 {
        self.next_to_send = congestion.next_to_send;
        (window.cwnd / 2).max(2)
    }

    fn on_state(&mut self, _window: &mut Window, _now: Time, state: RecoveryState) {
        if state == RecoveryState::Open {
            self.enable();
        } else {
            self.enabled = false;
        }
    }

    fn observe(&self, observer: &mut dyn Observer) {
        observer.value("base_rtt_s", self.base_us.unwrap_or(0) as f64 * 1e-6);
        observer.value("queued_packets", self.queued as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slow_start::Standard;

    fn vegas() -> Vegas {
        Vegas::new(&ROW.entry.defaults())
    }

    fn hear(law: &mut Vegas, window: &mut Window, rtt_us: u64, next_to_send: u64) {
        law.on_measurement(
            window,
            &Measurement {
                now: Time::ZERO,
                rtt: Some(Span::from_us(rtt_us)),
                packets: 1,
                first_unacked: 1,
                next_to_send,
                state: RecoveryState::Open,
                pacing_rate: None,
            },
        );
    }

    fn ack(first_unacked: u64) -> AckSample {
        AckSample {
            now: Time::ZERO,
            acked: 1,
            lost: 0,
            rtt: None,
            srtt: Span::ZERO,
            min_rtt: Span::ZERO,
            rate: None,
            prior_delivered: 0,
            sent_at: Time::ZERO,
            in_flight_at_send: 10,
            lost_since_send: 0,
            app_limited: false,
            ack_delayed: false,
            delivered: 0,
            total_lost: 0,
            total_sent: 0,
            prior_in_flight: 0,
            in_flight: 0,
            first_unacked,
            next_to_send: first_unacked + 100,
            next_departure: Time::ZERO,
            state: RecoveryState::Open,
            cwnd_limited: true,
            may_grow: true,
            left_recovery: false,
            ce_marked: 0,
        }
    }

    /// A round in avoidance at a window of 100 and a base RTT of 100 ms: the window after it.
    fn after_a_round(rtt_us: u64, samples: u32) -> u32 {
        let mut law = vegas();
        let mut window = Window { cwnd: 100, ssthresh: 50, ..Window::default() };
        law.base_us = Some(100_000);
        for _ in 0..samples {
            hear(&mut law, &mut window, rtt_us - 1, 100);
        }
        law.grow(&mut window, &mut Standard, &ack(1));
        window.cwnd
    }

    #[test]
    fn the_window_moves_by_one_to_keep_two_to_four_packets_queued() {
        for (rtt_us, cwnd) in
            [(100_000, 101), (101_999, 101), (102_000, 100), (104_999, 100), (105_000, 99)]
        {
            assert_eq!(after_a_round(rtt_us, 3), cwnd, "at {rtt_us} us");
        }
    }

    #[test]
    fn two_samples_are_not_enough() {
        // Reno's step: one of a hundred ACKs towards the next packet.
        assert_eq!(after_a_round(150_000, 2), 100);
        assert_eq!(after_a_round(150_000, 3), 99);
    }

    #[test]
    fn slow_start_ends_at_the_window_that_fills_the_path() {
        let mut law = vegas();
        let mut window = Window { cwnd: 100, ..Window::default() };
        law.base_us = Some(100_000);
        (0..3).for_each(|_| hear(&mut law, &mut window, 199_999, 100));
        law.grow(&mut window, &mut Standard, &ack(1));
        assert_eq!((window.cwnd, window.ssthresh), (51, 51));
    }

    #[test]
    fn only_state_open_is_vegas_and_only_a_new_flight_forgets_the_base() {
        let mut law = vegas();
        let mut window = Window::default();
        hear(&mut law, &mut window, 9_999, 500);
        law.on_state(&mut window, Time::ZERO, RecoveryState::Disorder);
        assert!(!law.enabled);
        law.on_state(&mut window, Time::ZERO, RecoveryState::Open);
        assert!(law.enabled);
        assert_eq!((law.round_end, law.base_us), (500, Some(10_000)));
        law.on_flight_start(&mut window, Time::ZERO, Span::ZERO);
        assert_eq!(law.base_us, None);
    }
}
