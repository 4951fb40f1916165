//! CUBIC as implemented in Linux and as specified in RFC 9438 (`flavour`).

mod region;
mod rfc9438;

use alloc::boxed::Box;

use jostle_registry::{LinuxRelease, Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Span, Time};

use self::region::Region;
use self::rfc9438::Rfc9438;
use crate::cwnd::CongestionWindow;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::Standard;
use crate::window_based::{BETA_ECN, CongestionAvoidance, WindowBasedController};
use jostle_congestion::{
    AckSample, CongestionEvent, EstablishedEvent, RawAckSample, RecoveryState, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "cubic",
        summary: "increases cwnd as a cubic function of the time since the last loss; reduces it \
            by 30 %",
        class: "loss",
        based_on: &["bic"],
        source: "Ha, Rhee & Xu, CUBIC, ACM SIGOPS OSR 42(5), 2008; RFC 9438; \
                 Linux 6.1 and 4.15 tcp_cubic.c",
        parameters: &[
            Parameter::choice("flavour", "linux", &["linux", "rfc9438"]).summary(
                "version of CUBIC: Linux's, with its integers and deviations, or the text of RFC \
                 9438, in real numbers; in real time, the Linux backend has the former only",
            ),
            Parameter::bool("fast_convergence", true)
                .summary("set W_max below cwnd if a loss occurs below the previous W_max"),
            Parameter::integer("beta", 717, 1..=1023).summary(
                "share of cwnd kept at a loss, in 1024ths; rfc9438 rounds it to the thousandth, so \
                 the default is 0.7",
            ),
            Parameter::integer("initial_ssthresh", 0, 0..=0x7fff_ffff)
                .summary("initial ssthresh in packets, only with hystart off; 0: none"),
            Parameter::integer("bic_scale", 41, 1..=1_000_000).summary(
                "steepness: C in packets/s³ is 10/1024 of it; rfc9438 rounds it to the thousandth, \
                 so the default is 0.4",
            ),
            Parameter::bool("tcp_friendliness", true).summary("never grow slower than Reno would"),
            Parameter::bool("hystart", true)
                .summary("off: standard slow start instead of the configured one"),
            Parameter::choice("linux", "6.1", LinuxRelease::CHOICES).summary(
                "kernel to follow, also in HyStart; 4.15 looks ahead by whole milliseconds rounded \
                 down, 6.1 rounded up",
            ),
            BETA_ECN,
        ],
    },
    start: SlowStartChoice::Composed("hystart"),
    build: |parts| {
        let values = &parts.values;
        let mut slow_start = parts.slow_start;
        if !values.bool("hystart") {
            slow_start = Box::new(Standard);
        }
        slow_start.set_linux_release(LinuxRelease::from_choice(values.choice("linux")));
        if values.choice("flavour") == "rfc9438" {
            return Box::new(
                WindowBasedController::new(Rfc9438::new(values), slow_start).with_abe(values),
            );
        }
        Box::new(WindowBasedController::new(Cubic::new(values), slow_start).with_abe(values))
    },
};

/// `BICTCP_BETA_SCALE`.
const BETA_ONE: u64 = 1024;

/// Clock of the curve: 1024ths of a second (`BICTCP_HZ`).
const TICKS_PER_S: u64 = 1 << 10;

/// Fixed point of the curve: C is in 1024ths, the cube of a time in 1024ths of a second in 2⁻³⁰ s³.
const CURVE_SHIFT: u32 = 10 + 3 * 10;

/// Linux recomputes the curve for an unchanged cwnd only after more than a 32nd of a second.
const REFRESH_MS: u64 = 1000 / 32;

/// RTT samples in the first second of an epoch still contain the queue of the loss.
const DEAF_MS: u64 = 1000;

/// Congestion avoidance of CUBIC with Linux's integer arithmetic on a clock of 1 ms (HZ = 1000).
///
/// Differences from RFC 9438, as in Linux: the target looks ahead by the minimum RTT instead of the
/// smoothed RTT; growth is limited to one packet per two acknowledged (1.5 × per round trip); the
/// Reno estimate never switches to a slope of 1 (RFC 9438 §4.3 "α_cubic to 1 once W_est ≥
/// cwnd_prior"); β applies to cwnd, not to the packets in flight.
///
/// One difference from Linux: K is the exact cubic root. Linux takes one Newton step from a table,
/// which deviates by at most 0.15 %.
#[derive(Clone, Debug)]
pub struct Cubic {
    fast_convergence: bool,
    beta: u64,
    initial_ssthresh: u32,
    friendly: bool,
    hystart: bool,
    kernel: LinuxRelease,
    /// 1024 · C, C in packets per s³.
    curve_scale: u64,
    /// 2⁴⁰ / (1024 · C): converts a distance in packets to the cube of a time in ticks.
    cube_factor: u64,
    /// 8 times the packets that Reno with the same β acknowledges per increase by one, per packet
    /// of window: RFC 9438's α_cubic = 3 (1 − β) / (1 + β), inverted.
    reno_scale: u64,
    state: State,
}

/// State that a timeout resets (`tcp_cubic.c::bictcp_reset`).
#[derive(Clone, Debug, Default)]
struct State {
    /// Packets to acknowledge for an increase by one.
    per_increase: u32,
    /// W_max: cwnd at the last loss, or less by fast convergence; 0 before the first.
    w_max: u32,
    last_cwnd: u32,
    last_update_ms: u64,
    /// Window of the plateau.
    origin: u32,
    /// Time from the start of the epoch to the plateau, in ticks.
    k: u64,
    delay_min_us: Option<u64>,
    epoch_ms: Option<u64>,
    /// Packets acknowledged and not yet counted in `reno_cwnd`.
    acks: u64,
    /// cwnd of Reno under the same losses.
    reno_cwnd: u32,
    region: Region,
}

pub(super) const fn ms(now: Time) -> u64 {
    now.as_ns() / 1_000_000
}

/// Returns the largest integer whose cube does not exceed `x`.
fn cubic_root(x: u64) -> u64 {
    // The floating-point result is correct to ±1; integers then correct it.
    let mut root = libm::cbrt(x as f64) as u64;
    let cube = |r: u64| u128::from(r) * u128::from(r) * u128::from(r);
    while cube(root) > u128::from(x) {
        root -= 1;
    }
    while cube(root + 1) <= u128::from(x) {
        root += 1;
    }
    root
}

impl Cubic {
    /// Creates CUBIC with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        let beta = u64::from(values.u32("beta")).clamp(1, BETA_ONE - 1);
        let curve_scale = u64::from(values.u32("bic_scale")).max(1) * 10;
        Self {
            fast_convergence: values.bool("fast_convergence"),
            beta,
            initial_ssthresh: values.u32("initial_ssthresh"),
            friendly: values.bool("tcp_friendliness"),
            hystart: values.bool("hystart"),
            kernel: LinuxRelease::from_choice(values.choice("linux")),
            curve_scale,
            cube_factor: (1 << CURVE_SHIFT) / curve_scale,
            reno_scale: 8 * (BETA_ONE + beta) / 3 / (BETA_ONE - beta),
            state: State::default(),
        }
    }

    /// Sets the kernel release to follow.
    pub(super) fn following(self, kernel: LinuxRelease) -> Self {
        Self { kernel, ..self }
    }

    /// Ends the epoch. The plateau of the next one is `w_max`.
    pub(super) fn restart(&mut self, w_max: u32) {
        self.state.w_max = w_max;
        self.forget_epoch();
    }

    /// Ends the epoch. The plateau of the next one remains the same.
    pub(super) fn forget_epoch(&mut self) {
        (self.state.epoch_ms, self.state.last_cwnd) = (None, 0);
    }

    /// Window of the plateau; 0 before the first reduction.
    pub(super) fn w_max(&self) -> u32 {
        self.state.w_max
    }

    /// Start of the epoch; `None` before its first packet.
    pub(super) fn epoch_ms(&self) -> Option<u64> {
        self.state.epoch_ms
    }

    /// Returns the last computed number of packets to acknowledge per increase by one.
    pub(super) fn per_increase(&self) -> u32 {
        self.state.per_increase
    }

    /// Sets the look-ahead time to a delay that was measured elsewhere.
    pub(super) fn look_ahead(&mut self, delay_us: u64) {
        self.state.delay_min_us = Some(delay_us);
    }

    /// Returns the look-ahead time of the curve: the minimum RTT in clock ticks.
    fn look_ahead_ms(&self) -> u64 {
        let us = self.state.delay_min_us.unwrap_or(0);
        match self.kernel {
            LinuxRelease::V4_15 => us / 1000,
            LinuxRelease::V6_1 => us.div_ceil(1000),
        }
    }

    /// Starts an epoch with the first packet acknowledged in congestion avoidance after a loss.
    fn start_epoch(&mut self, cwnd: u32, acked: u32, now_ms: u64) {
        let s = &mut self.state;
        s.epoch_ms = Some(now_ms);
        s.acks = u64::from(acked);
        s.reno_cwnd = cwnd;
        let below = u64::from(s.w_max.saturating_sub(cwnd));
        s.k = cubic_root(self.cube_factor.saturating_mul(below));
        s.origin = s.w_max.max(cwnd);
    }

    /// Computes the cubic curve one minimum RTT ahead, and the growth towards it.
    fn follow_curve(&mut self, cwnd: u32, now_ms: u64) {
        let elapsed_ms = now_ms.saturating_sub(self.state.epoch_ms.unwrap_or(now_ms));
        let t = (elapsed_ms + self.look_ahead_ms()) * TICKS_PER_S / 1000;
        let s = &mut self.state;
        let offset = u128::from(t.abs_diff(s.k));
        // Linux's 64-bit cube is exact for 346 s at the default steepness and wraps afterwards.
        let height = (u128::from(self.curve_scale) * offset)
            .saturating_mul(offset * offset)
            .checked_shr(CURVE_SHIFT)
            .and_then(|h| u32::try_from(h).ok())
            .unwrap_or(u32::MAX);
        let target = if t < s.k {
            s.region = Region::Concave;
            s.origin.saturating_sub(height)
        } else {
            s.region = Region::Convex;
            s.origin.saturating_add(height)
        };
        s.per_increase = match target.checked_sub(cwnd) {
            None | Some(0) => cwnd.saturating_mul(100),
            Some(gap) => cwnd / gap,
        };
        if s.w_max == 0 {
            // "The initial growth may be too conservative": at least 5 % per round trip.
            s.per_increase = s.per_increase.min(20);
        }
    }

    /// RFC 9438 §4.3, "Reno-friendly region": grows on average at least like Reno with the same β.
    fn follow_reno(&mut self, cwnd: u32) {
        let s = &mut self.state;
        let per_increase = (u64::from(cwnd) * self.reno_scale / 8).max(1);
        if s.acks > per_increase {
            let increases = (s.acks - 1) / per_increase;
            s.acks -= increases * per_increase;
            let reno = u64::from(s.reno_cwnd).saturating_add(increases);
            s.reno_cwnd = u32::try_from(reno).unwrap_or(u32::MAX);
        }
        if let Some(ahead) = s.reno_cwnd.checked_sub(cwnd).filter(|&ahead| ahead > 0)
            && s.per_increase > cwnd / ahead
        {
            s.per_increase = cwnd / ahead;
            s.region = Region::RenoFriendly;
        }
    }

    /// Recomputes the growth (`tcp_cubic.c::bictcp_update`), unless it was just computed for this
    /// cwnd.
    fn update(&mut self, cwnd: u32, acked: u32, now_ms: u64) {
        let s = &mut self.state;
        s.acks += u64::from(acked);
        let since_update_ms = now_ms.saturating_sub(s.last_update_ms);
        if s.last_cwnd == cwnd && since_update_ms <= REFRESH_MS {
            return;
        }
        // Compute the curve at most once per clock tick. The Reno estimate may still change.
        if s.epoch_ms.is_none() || since_update_ms > 0 {
            s.last_cwnd = cwnd;
            s.last_update_ms = now_ms;
            if s.epoch_ms.is_none() {
                self.start_epoch(cwnd, acked, now_ms);
            }
            self.follow_curve(cwnd, now_ms);
        }
        if self.friendly {
            self.follow_reno(cwnd);
        }
        self.state.per_increase = self.state.per_increase.max(2);
    }
}

impl CongestionAvoidance for Cubic {
    fn on_established(&mut self, window: &mut CongestionWindow, _established: &EstablishedEvent) {
        self.state = State::default();
        if !self.hystart && self.initial_ssthresh > 0 {
            window.ssthresh = self.initial_ssthresh;
        }
    }

    /// Excludes idle time: the epoch is shifted by it, so that the window continues to grow from
    /// its previous position on the curve.
    /// `tcp_cubic.c::cubictcp_cwnd_event`.
    fn on_flight_start(&mut self, _window: &mut CongestionWindow, now: Time, idle: Span) {
        if let Some(epoch_ms) = &mut self.state.epoch_ms {
            let idle_ms = ms(now) - ms(now - idle);
            *epoch_ms = (*epoch_ms + idle_ms).min(ms(now));
        }
    }

    fn on_ack_before_loss_detection(
        &mut self,
        _window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        let Some(rtt) = measurement.rtt else { return };
        let s = &mut self.state;
        let now_ms = ms(measurement.now);
        if s.epoch_ms.is_some_and(|epoch_ms| now_ms.saturating_sub(epoch_ms) < DEAF_MS) {
            return;
        }
        let delay_us = rtt.as_us().max(1);
        s.delay_min_us = Some(s.delay_min_us.map_or(delay_us, |min| min.min(delay_us)));
    }

    /// `tcp_cubic.c::cubictcp_cong_avoid`.
    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, ack: &AckSample) {
        self.update(window.cwnd, acked, ms(ack.now));
        window.additive_increase(self.state.per_increase, acked);
    }

    /// `tcp_cubic.c::cubictcp_recalc_ssthresh`.
    fn ssthresh_after(&mut self, window: &CongestionWindow, _congestion: &CongestionEvent) -> u32 {
        let cwnd = u64::from(window.cwnd);
        let s = &mut self.state;
        s.epoch_ms = None;
        // RFC 9438 §4.7, fast convergence: a window that did not reach the last W_max leaves
        // capacity to others by aiming lower. Both products fit, because the factors are at most 1.
        s.w_max = if window.cwnd < s.w_max && self.fast_convergence {
            (cwnd * (BETA_ONE + self.beta) / (2 * BETA_ONE)) as u32
        } else {
            window.cwnd
        };
        ((cwnd * self.beta / BETA_ONE) as u32).max(2)
    }

    fn on_recovery_state(
        &mut self,
        _window: &mut CongestionWindow,
        _now: Time,
        state: RecoveryState,
    ) {
        if state == RecoveryState::Loss {
            self.state = State::default();
        }
    }

    fn mode(&self) -> &'static str {
        self.state.region.name()
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        let s = &self.state;
        observer.record_value("w_max_packets", f64::from(s.w_max));
        observer.record_value("origin_packets", f64::from(s.origin));
        observer.record_value("k_s", s.k as f64 / TICKS_PER_S as f64);
        observer.record_value("reno_cwnd_packets", f64::from(s.reno_cwnd));
        observer.record_value("delay_min_s", s.delay_min_us.unwrap_or(0) as f64 * 1e-6);
    }
}

#[cfg(test)]
mod tests;
