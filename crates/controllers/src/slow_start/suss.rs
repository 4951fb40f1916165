//! SUSS: slow start that quadruples the window if no harm is predicted.
//!
//! Details follow the authors' kernel (`suss_measurements`, `suss_speedup` and `suss_cap` in its
//! `tcp_cubic.c`). That kernel also raises the receive window to what the round may send; here the
//! receive window keeps its limit.

use alloc::boxed::Box;

use jostle_registry::{LinuxRelease, Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Rate, Span, Time};

use super::SlowStart;
use super::hystart::{self, AckTrainShare, ExitConditions, HyStart};
use crate::cwnd::CongestionWindow;
use crate::registry_rows::SlowStartEntry;
use jostle_congestion::{
    AckSample, CongestionEvent, CongestionSignal, EstablishedEvent, RawAckSample, SendEvent,
};

pub(crate) const ROW: SlowStartEntry = SlowStartEntry {
    entry: RegistryEntry {
        name: "suss",
        summary: "HyStart that quadruples cwnd in rounds with room for it, half of the growth \
            paced",
        class: "delay",
        based_on: &["hystart"],
        source: "Arghavani, Zhang, Eyers & Arghavani, SUSS: Improving TCP Performance by Speeding \
                 Up Slow-Start, SIGCOMM 2024; the authors' kernel for Linux 6.8, \
                 github.com/SUSSdeveloper/SUSSprg",
        parameters: &[
            Parameter::integer("last_round", 4, 1..=16).summary(
                "last round trip that may quadruple cwnd; the initial window is the first \
                 (suss_max + 1)",
            ),
            Parameter::span("min_rtt", Span::from_ms(10), Span::ZERO..=Span::from_secs(1))
                .summary("RTT up to which SUSS is not used"),
            Parameter::bool("hystart", true).summary("use HyStart's conditions for a full pipe"),
        ],
    },
    build: |values| Box::new(Suss::new(values)),
};

/// Packets that a quadrupling window gains with each paced packet (`tcp_update_skb_after_send` of
/// the authors' kernel), and most that leave at once meanwhile, so that none is deferred.
const GROWTH_PER_BURST: u32 = 2;

/// A timeout below this window ends SUSS, and HyStart takes over (`tcp_enter_loss`).
const TIMEOUT_MIN_WINDOW: u32 = 40;

/// Some packets of a round were sent in response to ACKs, two per ACK: the *blue* packets. Their
/// number doubles each round, starting from the initial window. Only blue packets keep the
/// bottleneck's spacing, so that only their ACKs show the time that the complete window takes at
/// the bottleneck. The other packets, the *red* ones, were paced into the rest of the round trip.
///
/// When all blue ACKs of a round have arrived, their span, scaled to the complete window, predicts
/// the span of a window four times as large. If it fits into the minimum RTT, and the RTT does not
/// rise towards HyStart's limit, the window grows to four times its size.
///
/// The delay condition of HyStart ends slow start. Its ACK-train condition, found with the blue
/// ACKs of a part of the window, does not: it sets the window at which slow start ends to the size
/// that the complete window has then.
pub struct Suss {
    last_round: u32,
    shortest_rtt: Span,
    /// Whether HyStart's conditions end slow start.
    exits: bool,
    /// Measures rounds and delays, and is slow start after SUSS was disabled.
    hystart: HyStart,
    mss_bytes: u32,
    initial_window: u32,
    state: SussState,
    /// Whether all rounds so far grew fourfold, so that the next one may (`suss_gf`).
    fast: bool,
    /// Round number; 1 for the initial window.
    round: u32,
    round_start: Time,
    /// `snd_nxt` when the round began: its acknowledgement ends the round.
    round_end: u64,
    /// End of the blue packets that the round acknowledges.
    blue_end: u64,
    position: TrainPosition,
    /// Packets that the round's ACKs up to the last blue one acknowledged.
    blue_acked: u32,
    /// Number of rounds that grew fourfold (`suss_num_of_jump`): the window is the number of blue
    /// packets times 2 to this power.
    quadruplings: u32,
    /// Span of the previous round's blue ACKs.
    prior_train: Option<Span>,
    min_rtt_round: u32,
    /// Window at which slow start ends, after HyStart's ACK-train condition (`suss_cap`).
    cap: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum SussState {
    /// ACKs clock the packets.
    AckClocked,
    /// The window grows by red packets.
    Quadrupling(RedPackets),
    /// SUSS has ended: slow start was left, or a packet was lost.
    Ended,
    /// The first round allowed no growth: HyStart alone.
    Disabled,
}

/// Red packets to be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RedPackets {
    start: Time,
    /// Window including these packets.
    window: u32,
    rate: Rate,
    begun: bool,
    /// Packets that ACKs would have released before `start`.
    withheld: u32,
}

/// Position of an ACK in its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrainPosition {
    Blue,
    LastBlue,
    Red,
}

impl Suss {
    /// Creates SUSS with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            last_round: values.u32("last_round"),
            shortest_rtt: values.span("min_rtt"),
            exits: values.bool("hystart"),
            hystart: HyStart::new(&hystart::ROW.entry.defaults()),
            mss_bytes: 0,
            initial_window: 0,
            state: SussState::Ended,
            fast: false,
            round: 0,
            round_start: Time::ZERO,
            round_end: 0,
            blue_end: 0,
            position: TrainPosition::Red,
            blue_acked: 0,
            quadruplings: 0,
            prior_train: None,
            min_rtt_round: 0,
            cap: None,
        }
    }

    const fn is_active(&self) -> bool {
        matches!(self.state, SussState::AckClocked | SussState::Quadrupling(_))
    }

    /// Returns the blue packets that the round sends, twice those that it acknowledges.
    fn blue_packets(&self) -> u64 {
        u64::from(self.initial_window) << self.round.saturating_sub(1).min(20)
    }

    /// `suss_measurements`: follows rounds and decides on growth.
    fn take_ack(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        if self.position == TrainPosition::LastBlue {
            self.position = TrainPosition::Red;
        }
        if ack.first_unacked > self.round_end {
            self.position = TrainPosition::Blue;
            self.blue_acked = 0;
            self.round = self.round.saturating_add(1);
            self.round_start = ack.now;
            self.round_end = ack.next_to_send;
            self.stop_pacing(window);
        }
        if ack.first_unacked >= self.blue_end {
            self.position = TrainPosition::LastBlue;
            self.blue_end = self.round_end + self.blue_packets();
            self.decide(window, ack);
        }
        if self.position != TrainPosition::Red {
            self.blue_acked = self.blue_acked.saturating_add(ack.acked);
        } else if matches!(self.state, SussState::Quadrupling(_)) {
            // Slow start adds them again: a red ACK releases what it acknowledges.
            window.cwnd = window.cwnd.saturating_sub(ack.acked).max(1);
        }
    }

    /// Decides whether to grow fourfold, after all blue ACKs of the round have arrived.
    fn decide(&mut self, window: &CongestionWindow, ack: &AckSample) {
        if !self.fast {
            return;
        }
        let blue = self.blue_packets();
        let elapsed = ack.now.since(self.round_start);
        // The span counts from the first of the ACKs on: extrapolate it to all of them.
        let train = elapsed.mul_div(blue / 2, u64::from(self.blue_acked.max(1)));
        let Some(min_rtt) = self.hystart.min_rtt() else { return };
        self.fast = self.can_quadruple(train, min_rtt);
        if !self.fast || !self.is_active() {
            return;
        }
        self.prior_train = Some(train);
        let shift = self.round - 1;
        let red = (blue << shift) - blue;
        // Red packets that red ACKs of this round release.
        let released = ((blue / 2) << (shift - 1)) - blue / 2;
        let target = u64::from(window.cwnd) + u64::from(ack.acked) + red - released;
        let target = u32::try_from(target).unwrap_or(u32::MAX).min(window.clamp);
        // The blue packets of the next round use the first part of the round trip, in proportion to
        // their share of the window; the red packets use the rest.
        let blue_part = min_rtt.mul_div(1, 1 << shift);
        let rate = Rate::of(red * u64::from(self.mss_bytes), min_rtt - blue_part);
        if blue_part > train && rate > Rate::ZERO {
            self.quadruplings += 1;
            let guard = (blue_part - train).mul_div(1, 2).max(Span::from_ns(1));
            self.state = SussState::Quadrupling(RedPackets {
                start: ack.now + guard,
                window: target,
                rate,
                begun: false,
                withheld: 0,
            });
        }
    }

    /// `suss_speedup`: returns whether a window four times as large still fits into the minimum
    /// RTT, given the span of the blue ACKs. Disables SUSS in the first round that allows no growth.
    fn can_quadruple(&mut self, train: Span, min_rtt: Span) -> bool {
        let Some(prior) = self.prior_train else {
            // The packets of the initial window were sent together: their train grows with the
            // window. There is no earlier round whose RTT it could exceed. If the application did
            // not fill the initial window, a later round has no train to compare with.
            let allowed = self.round == 2 && self.last_round >= 2 && min_rtt > self.shortest_rtt;
            let fits = allowed && train < min_rtt.mul_div(1, 4);
            if !fits {
                self.state = SussState::Disabled;
                self.hystart.set_train(AckTrainShare::Of(1));
            }
            return fits;
        };
        let shift = self.round - 2;
        let whole = train.mul_div(1 << shift, 1);
        let prior_whole = prior.mul_div(1 << (shift - 1), 1);
        // Extrapolate the last growth: 2μΔt with μ = Δt / (2Δt').
        let predicted = whole.mul_div(whole.as_ns(), prior_whole.as_ns().max(1));
        predicted <= min_rtt && self.round <= self.last_round && self.rtt_is_steady(min_rtt)
    }

    /// Returns whether the RTT stays within an eighth of its minimum if it continues to rise as in
    /// the k rounds since its minimum: RTT ≤ minRTT·(1 + k / (8(k + 1))).
    fn rtt_is_steady(&self, min_rtt: Span) -> bool {
        let k = u64::from(self.round.saturating_sub(self.min_rtt_round));
        let eighths = 8 * (k + 1);
        let limit = min_rtt.mul_div(eighths + k, eighths);
        self.hystart.round_min_rtt().is_some_and(|rtt| rtt <= limit)
    }

    /// Returns to ACK clocking, with the packets that were withheld.
    fn stop_pacing(&mut self, window: &mut CongestionWindow) {
        if let SussState::Quadrupling(plan) = self.state {
            window.cwnd = window.cwnd.saturating_add(plan.withheld).min(window.clamp);
            self.state = SussState::AckClocked;
        }
    }

    /// Ends SUSS. With more than one round of red packets, the window shrinks to what is in flight.
    fn end(&mut self, window: &mut CongestionWindow, in_flight: u32) {
        self.stop_pacing(window);
        self.state = SussState::Ended;
        if self.quadruplings > 1 {
            window.cwnd = window.cwnd.min(in_flight).max(1);
        }
    }

    /// Applies HyStart's conditions while SUSS is active (`suss_cap` and `hystart_update`).
    fn watch(&mut self, window: &mut CongestionWindow, measurement: &RawAckSample, rtt: Span) {
        let share = match (self.position, self.cap) {
            (TrainPosition::Blue | TrainPosition::LastBlue, None) => {
                AckTrainShare::Of(1 << self.quadruplings)
            }
            _ => AckTrainShare::None,
        };
        self.hystart.set_train(share);
        // The authors' kernel halves the limit whether or not packets are paced.
        let measurement = RawAckSample { pacing_rate: None, ..*measurement };
        let ExitConditions { ack_train, delay } =
            self.hystart.watch(window.cwnd, &measurement, rtt);
        if !self.exits {
            return;
        }
        if self.cap.is_some_and(|cap| window.cwnd > cap) || delay {
            let outstanding = measurement.next_to_send.saturating_sub(measurement.first_unacked);
            let in_flight = outstanding.saturating_sub(u64::from(measurement.sacked));
            self.end(window, u32::try_from(in_flight).unwrap_or(u32::MAX));
            self.hystart.exit(window);
        } else if ack_train {
            let beyond = self.blue_acked.saturating_mul((1 << self.quadruplings) - 1);
            self.cap = Some(window.cwnd.saturating_add(beyond));
        }
    }
}

impl SlowStart for Suss {
    fn set_linux_release(&mut self, kernel: LinuxRelease) {
        self.hystart.set_linux_release(kernel);
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.mss_bytes = mss_bytes;
        self.hystart.on_mss_change(mss_bytes);
    }

    fn on_established(&mut self, window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.mss_bytes = established.mss_bytes;
        self.initial_window = established.initial_window.max(1);
        self.hystart.on_established(window, established);
        self.state = SussState::AckClocked;
        self.fast = true;
        (self.round, self.min_rtt_round) = (1, 1);
        (self.round_end, self.blue_end) = (0, u64::from(self.initial_window));
        (self.position, self.blue_acked) = (TrainPosition::Red, 0);
        (self.quadruplings, self.prior_train, self.cap) = (0, None, None);
    }

    fn observes_sends(&self) -> bool {
        true
    }

    fn on_send(&mut self, window: &mut CongestionWindow, sent: &SendEvent) {
        let in_flight = sent.prior_in_flight.saturating_add(sent.packets);
        if let SussState::Quadrupling(plan) = self.state
            && plan.begun
            && window.cwnd < plan.window
            && window.cwnd <= in_flight
        {
            window.cwnd = (window.cwnd + GROWTH_PER_BURST).min(window.clamp);
        }
    }

    fn on_ack_before_loss_detection(
        &mut self,
        window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        if self.state == SussState::Disabled {
            if self.exits {
                self.hystart.on_ack_before_loss_detection(window, measurement);
            }
            return;
        }
        let Some(rtt) = measurement.rtt else { return };
        if self.hystart.add_rtt(rtt) {
            self.min_rtt_round = self.round;
        }
        if self.hystart.has_exited() || !window.in_slow_start() {
            return;
        }
        self.watch(window, measurement, rtt);
    }

    fn on_ack(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        if self.is_active() && self.cap.is_none() && ack.can_increase_cwnd {
            self.take_ack(window, ack);
        }
    }

    fn grow(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> u32 {
        match &mut self.state {
            SussState::Quadrupling(plan)
                if !plan.begun && self.position == TrainPosition::Red && self.cap.is_none() =>
            {
                plan.withheld += ack.acked;
                0
            }
            _ => self.hystart.grow(window, ack),
        }
    }

    fn before_congestion_event(
        &mut self,
        window: &mut CongestionWindow,
        congestion: &CongestionEvent,
    ) {
        if self.state == SussState::Disabled {
            return;
        }
        if congestion.signal == CongestionSignal::Timeout {
            if window.cwnd < TIMEOUT_MIN_WINDOW {
                self.state = SussState::Disabled;
                self.hystart.set_train(AckTrainShare::Of(1));
            } else if self.is_active() {
                self.state = SussState::AckClocked;
            }
            return;
        }
        if self.is_active() {
            window.cwnd = window.cwnd.min(congestion.in_flight).max(1);
        }
        self.state = SussState::Ended;
    }

    fn on_timeout(&mut self, now: Time, next_to_send: u64) {
        self.hystart.on_timeout(now, next_to_send);
    }

    fn mode(&self) -> &'static str {
        match self.state {
            SussState::Quadrupling(_) => "quadrupling",
            _ => "slow_start",
        }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        match self.state {
            SussState::Quadrupling(plan) if plan.begun => Some(plan.rate),
            _ => None,
        }
    }

    fn max_burst_packets(&self) -> Option<u32> {
        self.pacing_rate().map(|_| GROWTH_PER_BURST)
    }

    fn next_wakeup(&self) -> Option<Time> {
        match self.state {
            SussState::Quadrupling(plan) if !plan.begun => Some(plan.start),
            _ => None,
        }
    }

    fn on_wakeup(&mut self, window: &mut CongestionWindow, now: Time) {
        if let SussState::Quadrupling(plan) = &mut self.state
            && now >= plan.start
            && !plan.begun
        {
            plan.begun = true;
            let opened = core::mem::take(&mut plan.withheld) + GROWTH_PER_BURST;
            window.cwnd = window.cwnd.saturating_add(opened).min(window.clamp);
        }
    }
}

#[cfg(test)]
mod tests;
