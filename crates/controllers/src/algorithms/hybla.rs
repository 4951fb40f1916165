//! Hybla as implemented in Linux.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Span, Time};

use crate::cwnd::CongestionWindow;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{BETA_ECN, CongestionAvoidance, WindowBasedController};
use jostle_congestion::{AckSample, EstablishedEvent, RecoveryState, StateObserver};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "hybla",
        summary: "Reno with an increase scaled to a reference RTT of 25 ms, for satellite paths",
        class: "loss",
        based_on: &["reno"],
        source: "Caini & Firrincieli, TCP Hybla, Int. J. Satell. Commun. 22(5), 2004; \
                 Linux 6.1 tcp_hybla.c",
        parameters: &[
            Parameter::span("rtt0", Span::from_ms(25), Span::from_ms(1)..=Span::from_secs(10))
                .summary("RTT of the reference connection"),
            BETA_ECN,
        ],
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| {
        Box::new(
            WindowBasedController::new(Hybla::new(&parts.values), parts.slow_start)
                .with_abe(&parts.values),
        )
    },
};

/// Unit of fractions of a packet: 128ths.
const ONE: u32 = 128;

/// 128 · 2^(k/8), rounded down.
const POWERS_OF_TWO_EIGHTHS: [u32; 8] = [128, 139, 152, 165, 181, 197, 215, 234];

/// Largest window of Hybla in Linux.
const CLAMP: u32 = 65_535;

/// Congestion avoidance of Hybla: with ρ = max(RTT / RTT0, 1) an ACK adds 2^ρ − 1 packets in slow
/// start and ρ²/W in congestion avoidance. The growth per second is then the same as with an RTT of
/// RTT0.
///
/// As in Linux, an ACK counts once regardless of the number of packets it acknowledges, so that
/// delayed ACKs halve the growth; ρ is updated only when the smoothed RTT falls to a new minimum;
/// its integer part is limited to 16 in slow start; the initial window is ρ.
#[derive(Clone, Debug)]
pub struct Hybla {
    rtt0_us: u64,
    /// Whether the connection is in state `Open`; otherwise Hybla is Reno.
    open: bool,
    /// ρ in eighths.
    rho_eighths: u64,
    /// Smallest smoothed RTT seen, in eighths of a microsecond.
    min_srtt_8us: u64,
    /// Fraction of a packet that the window has yet to grow, in 128ths.
    due: u32,
}

impl Hybla {
    /// Creates Hybla with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        let rtt0_us = values.span("rtt0").as_us().max(1);
        Self { rtt0_us, open: true, rho_eighths: 8, min_srtt_8us: 0, due: 0 }
    }

    fn set_rho(&mut self, srtt_8us: u64) {
        // An eighth of a microsecond over a microsecond is an eighth of ρ.
        self.rho_eighths = (srtt_8us / self.rtt0_us).max(8);
        self.min_srtt_8us = srtt_8us;
    }

    const fn rho(&self) -> u64 {
        self.rho_eighths >> 3
    }

    /// 2^ρ − 1 in 128ths.
    fn slow_start_increment(&self) -> u32 {
        let fraction = POWERS_OF_TWO_EIGHTHS[(self.rho_eighths & 7) as usize];
        (fraction << self.rho().min(16)) - ONE
    }

    /// ρ²/W in 128ths.
    fn avoidance_increment(&self, cwnd: u32) -> u32 {
        // (8ρ)² · 2 = 128 ρ².
        let rho_squared = self.rho_eighths.saturating_mul(self.rho_eighths).saturating_mul(2);
        u32::try_from(rho_squared / u64::from(cwnd.max(1))).unwrap_or(u32::MAX)
    }

    fn add(&mut self, window: &mut CongestionWindow, increment: u32) {
        window.cwnd = window.cwnd.saturating_add(increment / ONE);
        self.due += increment % ONE;
        if self.due >= ONE {
            window.cwnd = window.cwnd.saturating_add(1);
            self.due -= ONE;
            window.count = 0;
        }
        // A window above 128 ρ² would not grow by the formula; add one packet per window.
        if increment == 0 && window.count >= window.cwnd {
            window.cwnd = window.cwnd.saturating_add(1);
            window.count = 0;
        }
    }
}

const fn eighths_of_us(span: Span) -> u64 {
    span.as_ns() / 125
}

/// Outside state `Open`, cwnd grows as in Reno (`tcp_hybla.c::hybla_cong_avoid`).
impl CongestionAvoidance for Hybla {
    fn on_established(&mut self, window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.open = true;
        self.due = 0;
        self.set_rho(established.rtt.map_or(0, eighths_of_us));
        window.clamp = CLAMP;
        window.cwnd = self.rho().min(u64::from(CLAMP)) as u32;
    }

    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        let srtt_8us = eighths_of_us(ack.srtt);
        if srtt_8us < self.min_srtt_8us {
            self.set_rho(srtt_8us);
        }
        if !ack.cwnd_limited {
            return;
        }
        if !self.open {
            let mut acked = ack.acked;
            if window.in_slow_start() {
                acked = slow_start.grow(window, ack);
            }
            if acked > 0 {
                self.increase_cwnd(window, acked, ack);
            }
        } else if window.in_slow_start() {
            self.add(window, self.slow_start_increment());
            window.cwnd = window.cwnd.min(window.ssthresh).min(window.clamp);
        } else {
            let increment = self.avoidance_increment(window.cwnd);
            if increment < ONE {
                window.count = window.count.saturating_add(1);
            }
            self.add(window, increment);
            window.cwnd = window.cwnd.min(window.clamp);
        }
    }

    fn on_recovery_state(
        &mut self,
        _window: &mut CongestionWindow,
        _now: Time,
        state: RecoveryState,
    ) {
        self.open = state == RecoveryState::Open;
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("rho", self.rho_eighths as f64 / 8.0);
        observer.record_value("min_srtt_s", self.min_srtt_8us as f64 * 0.125e-6);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn established(rtt: Option<Span>) -> (Hybla, CongestionWindow) {
        let mut law = Hybla::new(&ROW.entry.defaults());
        let mut window = CongestionWindow::default();
        let established = EstablishedEvent {
            now: Time::ZERO,
            mss_bytes: 1448,
            initial_window: 10,
            rtt,
            prospect: Default::default(),
        };
        law.on_established(&mut window, &established);
        (law, window)
    }

    #[test]
    fn the_powers_are_those_of_two() {
        for (k, power) in POWERS_OF_TWO_EIGHTHS.into_iter().enumerate() {
            assert_eq!(power, libm::floor(128.0 * libm::exp2(k as f64 / 8.0)) as u32);
        }
    }

    /// algorithms.md: 600 ms → 24, up to 25 ms → 1.
    #[test]
    fn the_initial_window_is_rho() {
        for (rtt_ms, window_packets) in [(600, 24), (40, 1), (55, 2), (25, 1), (1, 1)] {
            let (_, window) = established(Some(Span::from_ms(rtt_ms)));
            assert_eq!((window.cwnd, window.clamp), (window_packets, 65_535), "{rtt_ms} ms");
        }
        assert_eq!(established(None).1.cwnd, 1);
    }

    /// At 600 ms 2^ρ − 1 is 2^16 − 1 after the cap: one ACK takes the window to its clamp.
    #[test]
    fn one_ack_opens_the_window_of_a_geostationary_path() {
        let (mut law, mut window) = established(Some(Span::from_ms(600)));
        assert_eq!(law.slow_start_increment() / ONE, 65_535);
        law.add(&mut window, law.slow_start_increment());
        assert_eq!(window.cwnd.min(window.clamp), 65_535);
    }

    #[test]
    fn fractions_add_up() {
        // 40 ms: ρ = 12/8, 2^1.5 − 1 = 1.828 (Linux: 362 − 128 = 234 of 128ths).
        let (mut law, mut window) = established(Some(Span::from_ms(40)));
        assert_eq!(law.slow_start_increment(), 234);
        for _ in 0..128 {
            law.add(&mut window, 234);
        }
        assert_eq!(window.cwnd, 1 + 234);
    }

    #[test]
    fn a_window_beyond_the_fractions_still_grows_by_one_per_window() {
        let (mut law, mut window) = established(Some(Span::from_ms(25)));
        window.cwnd = 1000;
        assert_eq!(law.avoidance_increment(1000), 0);
        for _ in 0..1000 {
            window.count += 1;
            law.add(&mut window, 0);
        }
        assert_eq!((window.cwnd, window.count), (1001, 0));
    }
}
