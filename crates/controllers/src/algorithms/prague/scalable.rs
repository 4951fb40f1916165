//! Prague with accurate ECN feedback. The window has a fractional part, because a mark or an ACK
//! mostly changes it by less than a packet. cwnd follows it by at most a packet per ACK.

use jostle_registry::ParameterValues;
use jostle_units::{HEADER_BYTES, Rate, Span, Time};

use crate::cwnd::{CongestionWindow, INFINITE_SSTHRESH};
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CongestionSignal, CwndReductionBy,
    EstablishedEvent, RecoveryState, StateObserver,
};

/// One packet of the fractional window (`ONE_CWND`).
const PACKET_BITS: u32 = 20;
const PACKET: u64 = 1 << PACKET_BITS;
/// α = 1 (`PRAGUE_MAX_ALPHA`). The stored value is α / g, so that truncation loses nothing.
const ALPHA_BITS: u32 = 24;
const ALPHA_ONE: u64 = 1 << ALPHA_BITS;
/// g = 1/16 (`PRAGUE_SHIFT_G`).
const SHIFT_G: u32 = 4;
/// `MIN_CWND_RTT`. The fractional window is limited, too: the increase 1/W of a window near zero
/// would be huge. (Newer releases control the rate below four packets.)
const LEAST_WINDOW: u32 = 2;
const LEAST_FRACTION: u64 = LEAST_WINDOW as u64 * PACKET;
/// `MINIMUM_RATE`: 100 kbit/s.
const LEAST_BYTES_PER_S: u64 = 12_500;
/// `MAX_SCALED_RTT`, above which `rate` is not scaled in 0.7. In 0.6 it is compared with an RTT in
/// units of 128 µs and has no effect.
const LONGEST_SCALED_RTT: Span = Span::from_ms(100);
/// R0 and R1 of `prague_scalable_ai_ack_increase`, in µs: the increase starts to rise at R1 and has
/// its full slope at R0 + R1.
const SCALABLE_R0_US: u64 = 1 << 14;
const SCALABLE_R1_US: u64 = (1 << 10) + (1 << 9);
/// Units of the pacing rate's offset: 2⁻⁷.
const OFFSET_BITS: u32 = 7;
/// Upper bound of the packets per ACK, which limits the arithmetic.
const MOST_ACKED: u32 = 1 << 20;
/// Packet size of the additive increase (`MTU_SYS`).
const REFERENCE_MTU_BYTES: u64 = 1500;
/// IPv4 and TCP headers with timestamps: Linux paces by the MTU.
const IP_HEADER_BYTES: u64 = HEADER_BYTES as u64 - 14;

/// Dependency of the rate on the RTT (`prague_rtt_scaling` of 0.6, whose default is the only mode
/// of later releases).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RttScaling {
    None,
    Rate,
    Scalable,
    Additive,
}

pub(super) struct Scalable {
    rtt_scaling: RttScaling,
    /// Target RTT; zero if the rate does not depend on it.
    rtt_target: Span,
    rtt_transition: u32,
    starts_at_one: bool,
    rate_offset: u64,
    burst_shift: u32,
    mtu_bytes: u64,

    window: CongestionWindow,
    /// The window in 2⁻²⁰ packets (`frac_cwnd`).
    fraction: u64,
    /// α / g in 2⁻²⁴ (`upscaled_alpha`).
    alpha_by_g: u64,
    /// Whether a queue on the path sets marks.
    saw_mark: bool,
    /// Whether a loss has halved the window and recovery is still in progress.
    in_loss: bool,
    state: RecoveryState,

    /// Packet whose acknowledgement ends the round.
    round_end: u64,
    /// Rounds since slow start ended.
    rounds: u32,
    /// Packets marked so far, packets marked at the start of the round, and packets delivered at
    /// the start of the round.
    marked: u64,
    round_marked: u64,
    round_delivered: u64,
    alpha_at: Time,
    reduced_at: Option<Time>,
    /// Increase per acknowledged packet, in 2⁻²⁰ / window.
    increase: u64,
    srtt: Span,

    /// Window and fraction before the last loss.
    prior_cwnd: u32,
    prior_fraction: u64,
    bytes_per_s: u64,
    burst: u32,
}

impl Scalable {
    pub fn new(values: &ParameterValues) -> Self {
        let starts_at_one = values.u32("prague_alpha_mode") == 1;
        let rtt_scaling = match values.choice("prague_rtt_scaling") {
            "none" => RttScaling::None,
            "scalable" => RttScaling::Scalable,
            "additive" => RttScaling::Additive,
            _ => RttScaling::Rate,
        };
        let scales = rtt_scaling != RttScaling::None;
        Self {
            rtt_scaling,
            rtt_target: if scales { values.span("prague_rtt_target") } else { Span::ZERO },
            rtt_transition: values.u32("prague_rtt_transition"),
            starts_at_one,
            rate_offset: u64::from(values.u32("prague_rate_offset")),
            burst_shift: values.u32("prague_burst_shift"),
            mtu_bytes: 1500,
            window: CongestionWindow::default(),
            fraction: 10 * PACKET,
            alpha_by_g: if starts_at_one { ALPHA_ONE << SHIFT_G } else { 0 },
            saw_mark: false,
            in_loss: false,
            state: RecoveryState::Open,
            round_end: 0,
            rounds: 0,
            marked: 0,
            round_marked: 0,
            round_delivered: 0,
            alpha_at: Time::ZERO,
            reduced_at: None,
            increase: PACKET,
            srtt: Span::from_ms(1),
            prior_cwnd: 0,
            prior_fraction: 0,
            bytes_per_s: LEAST_BYTES_PER_S,
            burst: 1,
        }
    }

    /// `prague_is_rtt_indep`.
    fn is_rtt_independent(&self) -> bool {
        self.rtt_scaling != RttScaling::None
            && !self.window.in_slow_start()
            && self.rounds >= self.rtt_transition
    }

    /// `prague_target_rtt`: the RTT that the flow emulates, and the minimum time between updates of
    /// α and between reductions. With `additive` it is "an extra target RTT" in addition to the
    /// flow's RTT.
    fn target(&self) -> Span {
        if self.rtt_scaling == RttScaling::Additive {
            self.rtt_target.saturating_add(self.srtt)
        } else {
            self.rtt_target
        }
    }

    /// `prague_ai_ack_increase`: 1/W per packet, scaled by the RTT after the transition.
    fn set_increase(&mut self) {
        let rtt_us = self.srtt.as_us().max(1);
        self.increase = match self.rtt_scaling {
            _ if self.rounds < self.rtt_transition => PACKET,
            RttScaling::None => PACKET,
            RttScaling::Rate if self.srtt > LONGEST_SCALED_RTT => PACKET,
            // Scales by the square of the ratio, so that the *rate* grows as with the target RTT.
            RttScaling::Rate | RttScaling::Additive if self.srtt < self.target() => {
                scaled(rtt_us * rtt_us, self.target().as_us())
            }
            RttScaling::Rate | RttScaling::Additive => PACKET,
            // At least an eighth of a packet per round, times the ratio of the RTT to R0: "one mark
            // every 8 RTT". The release does not limit it at the target.
            RttScaling::Scalable => {
                let above_us = rtt_us.saturating_sub(SCALABLE_R1_US).min(SCALABLE_R0_US);
                scaled((SCALABLE_R0_US / 8 + above_us) * rtt_us, SCALABLE_R0_US)
            }
        };
    }

    /// `prague_update_cwnd`: packets without a mark increase the window.
    fn update_window(&mut self, ack: &AckSample) {
        if ack.ce_marked > 0 {
            if !self.saw_mark && !self.starts_at_one {
                self.fraction = self.fraction.div_ceil(2).max(LEAST_FRACTION);
            }
            self.saw_mark = true;
        }
        // The pacing rate counts only the whole packets of the fractional window, so pacing can keep
        // cwnd unused for ever.
        let is_used = ack.cwnd_limited || ack.pacing_limited;
        let mut acked = ack.acked.saturating_sub(ack.ce_marked).min(MOST_ACKED);
        if acked > 0 && !self.in_loss && is_used {
            if self.window.in_slow_start() {
                acked = self.window.slow_start(acked);
                self.fraction = u64::from(self.window.cwnd) << PACKET_BITS;
                if acked == 0 {
                    self.set_increase();
                    return;
                }
            }
            let increase = u64::from(acked) * self.increase;
            let step = ((increase << PACKET_BITS) + self.fraction / 2) / self.fraction;
            // The release adds packets of 1500 bytes, so that flows of any packet size share alike.
            let step = step * REFERENCE_MTU_BYTES / self.mtu_bytes;
            self.fraction += step.max(u64::from(acked));
        }
        self.follow();
    }

    /// Moves cwnd towards the fractional window by at most a packet.
    fn follow(&mut self) {
        let target = self.fraction.div_ceil(PACKET).min(u64::from(self.window.clamp)) as u32;
        if self.window.cwnd > target {
            self.window.cwnd -= 1;
            self.window.ssthresh = self.window.cwnd;
        } else if self.window.cwnd < target {
            self.window.cwnd += 1;
        } else {
            return;
        }
        self.set_increase();
    }

    /// `prague_should_update_ewma`, `prague_update_alpha`: once per round, on short paths once per
    /// target RTT.
    fn update_alpha(&mut self, ack: &AckSample) {
        if ack.first_unacked < self.round_end {
            return;
        }
        if self.is_rtt_independent() && ack.now.since(self.alpha_at) < self.target() {
            return;
        }
        // "Do not update alpha before we have proof that there's an AQM on the path."
        if self.saw_mark {
            let delivered = ack.delivered - self.round_delivered;
            let marked = self.marked - self.round_marked;
            let share = (marked << ALPHA_BITS) / delivered.max(1);
            let faded = self.alpha_by_g - (self.alpha_by_g >> SHIFT_G);
            self.alpha_by_g = (faded + share).min(ALPHA_ONE << SHIFT_G);
            self.alpha_at = ack.now;
        }
        self.round_end = ack.next_to_send;
        self.round_marked = self.marked;
        self.round_delivered = ack.delivered;
        if !self.window.in_slow_start() {
            self.rounds = self.rounds.saturating_add(1);
        }
        self.set_increase();
    }

    /// `prague_update_pacing_rate`: a window per SRTT, twice that in early slow start. The rate is
    /// slightly higher in the first half of a round than in the second.
    fn update_rate(&mut self, now: Time, in_flight: u32) {
        let packets = (self.fraction >> PACKET_BITS).max(u64::from(in_flight));
        let per_packet = self.mtu_bytes * 1_000_000_000 / self.srtt.as_ns().max(1);
        let mut rate = per_packet.saturating_mul(packets).max(LEAST_BYTES_PER_S);
        if self.window.cwnd < self.window.ssthresh / 2 {
            rate = rate.saturating_mul(2);
        } else {
            let offset = (rate >> OFFSET_BITS).saturating_mul(self.rate_offset);
            let virtual_rtt = self.target().max(self.srtt);
            let second_half = now.since(self.alpha_at) >= virtual_rtt.mul_div(1, 2);
            rate = if second_half { rate - offset } else { rate.saturating_add(offset) };
        }
        self.bytes_per_s = rate;
        let burst = (rate / self.mtu_bytes) >> self.burst_shift;
        self.burst = u32::try_from(burst).unwrap_or(u32::MAX).max(1);
    }

    /// `prague_enter_cwr`: reduces the window by W · α/2 with unbiased rounding, on short paths
    /// once per target RTT.
    fn reduce(&mut self, now: Time) {
        let recent = self.reduced_at.is_some_and(|at| now.since(at) < self.target());
        if self.is_rtt_independent() && recent {
            return;
        }
        self.reduced_at = Some(now);
        let alpha = u128::from(self.alpha_by_g >> SHIFT_G);
        let product = alpha * u128::from(self.fraction) + u128::from(ALPHA_ONE);
        let reduction = (product >> (ALPHA_BITS + 1)) as u64;
        self.fraction = (self.fraction - reduction).max(LEAST_FRACTION);
    }

    /// `prague_enter_loss`.
    fn halve(&mut self) {
        self.prior_cwnd = self.window.cwnd;
        self.prior_fraction = self.fraction;
        self.fraction = (self.fraction - (self.fraction >> 1)).max(LEAST_FRACTION);
        self.in_loss = true;
    }
}

/// `product_us2` / `unit_us`² of a packet, rounded to the nearest.
fn scaled(product_us2: u64, unit_us: u64) -> u64 {
    let square = u128::from(unit_us) * u128::from(unit_us);
    (((u128::from(product_us2) << PACKET_BITS) + square / 2) / square.max(1)) as u64
}

#[cfg(test)]
impl Scalable {
    pub fn leave_slow_start(&mut self) {
        self.window.ssthresh = self.window.cwnd;
        self.update_rate(self.alpha_at, 0);
    }

    pub fn saw_mark(&mut self) {
        self.saw_mark = true;
    }
}

impl CongestionController for Scalable {
    fn on_established(&mut self, established: &EstablishedEvent) {
        self.window.cwnd = established.initial_window.max(1);
        self.fraction = (u64::from(self.window.cwnd) << PACKET_BITS).max(LEAST_FRACTION);
        self.on_mss_change(established.mss_bytes);
        self.srtt = established.rtt.unwrap_or(self.srtt);
        self.alpha_at = established.now;
        self.update_rate(established.now, 0);
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.mtu_bytes = u64::from(mss_bytes) + IP_HEADER_BYTES;
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.srtt = ack.srtt;
        self.marked += u64::from(ack.ce_marked);
        self.update_window(ack);
        self.update_alpha(ack);
        self.update_rate(ack.now, ack.in_flight);
        debug_assert!(self.fraction > 0 && self.bytes_per_s > 0, "nothing may be sent");
        debug_assert!(self.alpha_by_g <= ALPHA_ONE << SHIFT_G, "α above 1");
    }

    /// Reacts to the first timeout of an episode. Marks and other losses are processed in
    /// `on_recovery_state`.
    fn on_congestion_event(&mut self, congestion: &CongestionEvent) {
        if congestion.signal == CongestionSignal::Timeout {
            self.halve();
        }
    }

    fn on_recovery_state(&mut self, now: Time, state: RecoveryState) {
        if state == self.state {
            return;
        }
        self.state = state;
        match state {
            RecoveryState::Recovery => self.halve(),
            RecoveryState::Cwr => self.reduce(now),
            RecoveryState::Open => self.in_loss = false,
            RecoveryState::Disorder | RecoveryState::Loss => {}
        }
    }

    fn on_undo(&mut self, _now: Time) {
        self.in_loss = false;
        self.fraction = self.fraction.max(self.prior_fraction);
        self.window.cwnd = self.window.cwnd.max(self.prior_cwnd);
    }

    fn set_cwnd(&mut self, cwnd: u32) {
        self.window.cwnd = cwnd.clamp(1, self.window.clamp);
    }

    fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    fn ssthresh(&self) -> Option<u32> {
        (self.window.ssthresh < INFINITE_SSTHRESH).then_some(self.window.ssthresh)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bytes_per_s(self.bytes_per_s))
    }

    fn max_burst_packets(&self) -> Option<u32> {
        Some(self.burst)
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        CwndReductionBy::Controller
    }

    fn mode(&self) -> &'static str {
        if self.window.in_slow_start() { "slow_start" } else { "avoidance" }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("alpha", (self.alpha_by_g >> SHIFT_G) as f64 / ALPHA_ONE as f64);
        observer.record_value("window_packets", self.fraction as f64 / PACKET as f64);
    }
}
