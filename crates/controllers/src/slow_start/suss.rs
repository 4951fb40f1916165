//! SUSS: slow start that quadruples the window if no harm is predicted.

use std::ops::Range;

use jostle_registry::{LinuxRelease, Parameter, ParameterType, ParameterValues, RegistryEntry};
use jostle_units::{Rate, Span, Time};

use super::hystart::{self, AckTrainShare, HyStart};
use super::{SlowStart, Standard};
use crate::cwnd::CongestionWindow;
use crate::registry_rows::SlowStartEntry;
use jostle_congestion::{AckSample, CongestionEvent, EstablishedEvent, RawAckSample};

pub(crate) const ROW: SlowStartEntry = SlowStartEntry {
    entry: RegistryEntry {
        name: "suss",
        summary: "HyStart whose window grows fourfold in rounds that leave room for it, half of it \
                  paced",
        class: "delay",
        based_on: &["hystart"],
        source: "Arghavani, Zhang, Eyers & Arghavani, SUSS: Improving TCP Performance by Speeding \
                 Up Slow-Start, SIGCOMM 2024",
        parameters: &[
            Parameter {
                name: "last_round",
                summary: "last round trip that may grow fourfold; the initial window's is the first",
                kind: ParameterType::Integer { default: 4, min: 1, max: 16 },
            },
            Parameter {
                name: "min_rtt",
                summary: "round trips up to this are left alone",
                kind: ParameterType::Span {
                    default_ns: 10_000_000,
                    min_ns: 0,
                    max_ns: 1_000_000_000,
                },
            },
            Parameter {
                name: "hystart",
                summary: "watch for HyStart's signs of a full pipe",
                kind: ParameterType::Bool { default: true },
            },
        ],
    },
    build: |values| Box::new(Suss::new(values)),
};

/// Some packets of a round were sent in response to ACKs, two per ACK: the *blue* packets. Their
/// number doubles each round, starting from the initial window. Only blue packets keep the
/// bottleneck's spacing, so that only their ACKs show the time that the complete window takes at
/// the bottleneck. The other packets, the *red* ones, were paced into the rest of the round trip.
///
/// When all blue ACKs of a round have arrived, their span, scaled to the complete window, predicts
/// the span of a window four times as large. If it fits into the minimum RTT, and the RTT does not
/// rise towards HyStart's limit, the window grows to four times its size.
pub struct Suss {
    last_round: u32,
    shortest_rtt: Span,
    hystart: Option<HyStart>,
    mss_bytes: u32,
    /// Whether all rounds so far grew fourfold, so that the next one may.
    fast: bool,
    /// Round number; 1 for the initial window.
    round: u32,
    round_start: Time,
    /// `snd_nxt` when the round began: its acknowledgement ends the round.
    round_end: u64,
    /// Packets acknowledged in this round that were sent in response to ACKs.
    blue: Range<u64>,
    /// Number of rounds that grew fourfold: the window is the number of blue packets times 2 to
    /// this power.
    quadruplings: u32,
    /// Scaled span of the previous round's blue ACKs.
    prior_train: Option<Span>,
    min_rtt: Span,
    min_rtt_round: u32,
    round_min_rtt: Span,
    /// Whether all blue ACKs of the round have arrived.
    decided: bool,
    /// Whether the plan includes the growth of the round.
    planned: bool,
    plan: Option<RedPackets>,
}

/// Red packets to be sent.
#[derive(Clone, Copy, Debug)]
struct RedPackets {
    start: Time,
    end: Time,
    /// Window including these packets.
    window: u32,
    rate: Rate,
    begun: bool,
}

impl Suss {
    /// Creates SUSS with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        let hystart = values.bool("hystart").then(|| HyStart::new(&hystart::ROW.entry.defaults()));
        Self {
            last_round: values.u32("last_round"),
            shortest_rtt: values.span("min_rtt"),
            hystart,
            mss_bytes: 0,
            fast: false,
            round: 0,
            round_start: Time::ZERO,
            round_end: 0,
            blue: 0..0,
            quadruplings: 0,
            prior_train: None,
            min_rtt: Span::MAX,
            min_rtt_round: 0,
            round_min_rtt: Span::MAX,
            decided: false,
            planned: false,
            plan: None,
        }
    }

    fn start_round(&mut self, now: Time, next_to_send: u64) {
        self.round = self.round.saturating_add(1);
        self.round_start = now;
        self.blue = match self.round {
            2 => 0..next_to_send,
            _ => {
                let end = self.round_end + 2 * (self.blue.end - self.blue.start);
                self.round_end..end.min(next_to_send)
            }
        };
        self.round_end = next_to_send;
        self.round_min_rtt = Span::MAX;
        (self.decided, self.planned, self.plan) = (false, false, None);
    }

    fn take_rtt(&mut self, rtt: Span) {
        self.round_min_rtt = self.round_min_rtt.min(rtt);
        if rtt <= self.min_rtt {
            self.min_rtt = rtt;
            self.min_rtt_round = self.round;
        }
    }

    /// Returns whether the RTT stays within an eighth of its minimum if it continues to rise as in
    /// the k rounds since its minimum: RTT ≤ minRTT·(1 + k / (8(k + 1))).
    fn rtt_is_steady(&self) -> bool {
        let k = u64::from(self.round.saturating_sub(self.min_rtt_round));
        let eighths = 8 * (k + 1);
        self.round_min_rtt <= self.min_rtt.mul_div(eighths + k, eighths)
    }

    /// Returns whether a window four times as large still fits into the minimum RTT, given the span
    /// of the current train.
    fn can_quadruple(&self, train: Span) -> bool {
        let predicted = match self.prior_train {
            // The packets of the initial window were sent together: their train grows with the
            // window.
            None => train.mul_div(4, 1),
            // Extrapolate the last growth: 2μΔt with μ = Δt / (2Δt').
            Some(prior) => train.mul_div(train.as_ns(), prior.as_ns().max(1)),
        };
        predicted <= self.min_rtt && self.rtt_is_steady()
    }

    /// Decides whether to grow fourfold, after all blue ACKs of the round have arrived.
    fn decide(&mut self, window: &mut CongestionWindow, now: Time) {
        self.decided = true;
        let train = now.since(self.round_start).mul_div(1 << self.quadruplings, 1);
        let allowed = self.round <= self.last_round && self.min_rtt > self.shortest_rtt;
        self.fast = allowed && self.can_quadruple(train);
        self.prior_train = Some(train);
        if !self.fast {
            return;
        }
        let blue = self.blue.end - self.blue.start;
        let acknowledged = (blue << self.quadruplings).min(self.round_end - self.blue.start);
        self.quadruplings += 1;
        let target = u32::try_from(4 * acknowledged).unwrap_or(u32::MAX).min(window.clamp);
        // The blue packets of the next round use the first part of the round trip, in proportion to
        // their share of the window; the red packets use the rest.
        let guard = self.min_rtt.mul_div(1, 1 << self.quadruplings);
        let pacing = self.min_rtt - guard;
        let red = u64::from(target).saturating_sub(2 * blue);
        let start = (self.round_start + guard).max(now + Span::from_ns(1));
        let rate = Rate::of(red * u64::from(self.mss_bytes), pacing);
        if target > window.cwnd && rate > Rate::ZERO {
            let end = start + pacing;
            self.plan = Some(RedPackets { start, end, window: target, rate, begun: false });
            self.planned = true;
        }
    }

    fn stop(&mut self) {
        (self.fast, self.planned, self.plan) = (false, false, None);
    }
}

impl SlowStart for Suss {
    fn set_linux_release(&mut self, kernel: LinuxRelease) {
        if let Some(hystart) = &mut self.hystart {
            hystart.set_linux_release(kernel);
        }
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.mss_bytes = mss_bytes;
        if let Some(hystart) = &mut self.hystart {
            hystart.on_mss_change(mss_bytes);
        }
    }

    fn on_established(&mut self, window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.mss_bytes = established.mss_bytes;
        (self.round, self.round_end, self.blue) = (1, 0, 0..0);
        (self.quadruplings, self.prior_train) = (0, None);
        self.stop();
        self.fast = true;
        self.min_rtt = established.rtt.unwrap_or(Span::MAX);
        self.min_rtt_round = 1;
        if let Some(hystart) = &mut self.hystart {
            hystart.on_established(window, established);
        }
    }

    fn on_ack_before_loss_detection(
        &mut self,
        window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        if measurement.first_unacked > self.round_end && window.in_slow_start() {
            self.start_round(measurement.now, measurement.next_to_send);
        }
        if let Some(rtt) = measurement.rtt {
            self.take_rtt(rtt);
        }
        if let Some(hystart) = &mut self.hystart {
            let is_blue = measurement.first_unacked <= self.blue.end;
            let train = AckTrainShare::Of(1 << self.quadruplings);
            hystart.set_train(if is_blue { train } else { AckTrainShare::None });
            hystart.on_ack_before_loss_detection(window, measurement);
        }
    }

    fn grow(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> u32 {
        let mut grown = *window;
        let left_over = match &mut self.hystart {
            Some(hystart) => hystart.grow(&mut grown, ack),
            None => Standard.grow(&mut grown, ack),
        };
        if self.planned {
            return 0;
        }
        *window = grown;
        let is_last_blue = ack.first_unacked >= self.blue.end && !self.blue.is_empty();
        if self.fast && !self.decided && is_last_blue && window.in_slow_start() {
            self.decide(window, ack.now);
        }
        left_over
    }

    fn on_congestion_event(
        &mut self,
        _window: &mut CongestionWindow,
        _congestion: &CongestionEvent,
    ) {
        self.stop();
    }

    fn on_timeout(&mut self, now: Time, next_to_send: u64) {
        self.stop();
        if let Some(hystart) = &mut self.hystart {
            hystart.on_timeout(now, next_to_send);
        }
    }

    fn mode(&self) -> &'static str {
        if self.planned { "quadrupling" } else { "slow_start" }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.plan.filter(|plan| plan.begun).map(|plan| plan.rate)
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.plan.map(|plan| if plan.begun { plan.end } else { plan.start })
    }

    fn on_wakeup(&mut self, window: &mut CongestionWindow, now: Time) {
        let Some(plan) = &mut self.plan else { return };
        if !window.in_slow_start() || now >= plan.end {
            self.plan = None;
        } else if now >= plan.start {
            plan.begun = true;
            window.cwnd = window.cwnd.max(plan.window.min(window.ssthresh));
        }
    }
}
