//! BIC as implemented in Linux.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::Time;

use crate::cwnd::CongestionWindow;
use crate::jiffies::{HZ, Jiffies};
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::window_based::{BETA_ECN, CongestionAvoidance, WindowBasedController};
use jostle_congestion::{
    AckSample, CongestionEvent, EstablishedEvent, RawAckSample, RecoveryState, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "bic",
        summary: "binary search between cwnd and the cwnd of the last loss; reduces cwnd by 20 %",
        class: "loss",
        based_on: &["reno"],
        source: "Xu, Harfoush & Rhee, Binary Increase Congestion Control, IEEE INFOCOM 2004; \
                 Linux 6.1 tcp_bic.c",
        parameters: &[
            Parameter::bool("fast_convergence", true)
                .summary("set W_max below cwnd if a loss occurs below the previous W_max"),
            Parameter::integer("max_increment", 16, 1..=1_000_000)
                .summary("largest increase per round trip, in packets (S_max of the paper)"),
            Parameter::integer("low_window", 14, 0..=1_000_000)
                .summary("cwnd in packets up to which it behaves like Reno"),
            Parameter::integer("beta", 819, 1..=1023)
                .summary("share of cwnd kept at a loss, in 1024ths"),
            Parameter::integer("initial_ssthresh", 0, 0..=0x7fff_ffff)
                .summary("initial ssthresh in packets; 0: none"),
            Parameter::integer("smooth_part", 20, 1..=1_000_000).summary(
                "round trips for the last 4 packets below the old maximum, and for the first 4 \
                 above",
            ),
            HZ,
            BETA_ECN,
        ],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| {
        Box::new(
            WindowBasedController::new(Bic::new(&parts.values), parts.slow_start)
                .with_abe(&parts.values),
        )
    },
};

/// `BICTCP_BETA_SCALE`.
const BETA_ONE: u64 = 1024;

/// A round trip closes a fourth of the gap to the old maximum (`BICTCP_B`). The binary search of
/// the paper closes half of it.
const SEARCH: u64 = 4;

/// Fixed point of the ACK ratio (`ACK_RATIO_SHIFT`).
const RATIO_SHIFT: u32 = 4;

/// Initial value of the ratio: two packets per ACK.
const FIRST_RATIO: u32 = 2 << RATIO_SHIFT;

/// Growth before the first loss: a packet per 20 acknowledged, 5 % per round trip.
const BLIND: u64 = 20;

/// Congestion avoidance of BIC: additive increase by `max_increment` while far below the window of
/// the last loss, a search by fractions of the gap when near, and the mirror image beyond it.
///
/// As in Linux, the growth is divided by the ratio of packets to ACKs although packets and not ACKs
/// are counted, so that delayed ACKs double it.
#[derive(Clone, Debug)]
pub struct Bic {
    fast_convergence: bool,
    max_increment: u64,
    low_window: u32,
    beta: u64,
    initial_ssthresh: u32,
    smooth_part: u64,
    clock: Jiffies,
    state: State,
}

/// State that a timeout resets (`tcp_bic.c::bictcp_reset`).
#[derive(Clone, Debug)]
struct State {
    /// Packets to acknowledge for an increase by one.
    per_increase: u32,
    /// cwnd at the last loss, or less by fast convergence; 0 before the first.
    last_max: u32,
    last_cwnd: u32,
    last_update: u64,
    /// Packets per ACK in 16ths, smoothed over 16 ACKs (`delayed_ack`).
    ack_ratio_16ths: u32,
    region: Region,
}

impl Default for State {
    fn default() -> Self {
        Self {
            per_increase: 0,
            last_max: 0,
            last_cwnd: 0,
            last_update: 0,
            ack_ratio_16ths: FIRST_RATIO,
            region: Region::Reno,
        }
    }
}

/// Part of the curve that determines the growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Region {
    Reno,
    Linear,
    Search,
    Probe,
}

impl Bic {
    /// Creates BIC with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            fast_convergence: values.bool("fast_convergence"),
            max_increment: u64::from(values.u32("max_increment")),
            low_window: values.u32("low_window"),
            beta: u64::from(values.u32("beta")),
            initial_ssthresh: values.u32("initial_ssthresh"),
            smooth_part: u64::from(values.u32("smooth_part")),
            clock: Jiffies::new(values),
            state: State::default(),
        }
    }

    /// Returns the packets to acknowledge per increase, assuming one ACK per packet, and the region
    /// of the curve.
    fn curve(&self, cwnd: u32) -> (u64, Region) {
        if cwnd <= self.low_window {
            return (u64::from(cwnd), Region::Reno);
        }
        let (cwnd, last_max) = (u64::from(cwnd), u64::from(self.state.last_max));
        let linear = cwnd / self.max_increment;
        let smooth = cwnd * self.smooth_part / SEARCH;
        if cwnd < last_max {
            return match (last_max - cwnd) / SEARCH {
                step if step > self.max_increment => (linear, Region::Linear),
                0 | 1 => (smooth, Region::Search),
                step => (cwnd / step, Region::Search),
            };
        }
        let (growth, region) = match cwnd - last_max {
            above if above < SEARCH => (smooth, Region::Probe),
            above if above < self.max_increment * (SEARCH - 1) => {
                (cwnd * (SEARCH - 1) / above, Region::Probe)
            }
            _ => (linear, Region::Linear),
        };
        (if last_max == 0 { growth.min(BLIND) } else { growth }, region)
    }

    /// Recomputes the growth (`tcp_bic.c::bictcp_update`), unless it was just computed for this
    /// cwnd.
    fn update(&mut self, cwnd: u32, now: Time) {
        let now = self.clock.at(now);
        let refresh = self.clock.hz() / 32;
        if self.state.last_cwnd == cwnd && now - self.state.last_update <= refresh {
            return;
        }
        let (growth, region) = self.curve(cwnd);
        let s = &mut self.state;
        s.last_cwnd = cwnd;
        s.last_update = now;
        s.region = region;
        s.per_increase = if region == Region::Reno {
            cwnd
        } else {
            let per_ack = (growth << RATIO_SHIFT) / u64::from(s.ack_ratio_16ths.max(1));
            u32::try_from(per_ack).unwrap_or(u32::MAX).max(1)
        };
    }
}

impl CongestionAvoidance for Bic {
    fn on_established(&mut self, window: &mut CongestionWindow, _established: &EstablishedEvent) {
        self.state = State::default();
        if self.initial_ssthresh > 0 {
            window.ssthresh = self.initial_ssthresh;
        }
    }

    fn on_ack_before_loss_detection(
        &mut self,
        _window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        if measurement.state == RecoveryState::Open {
            let ratio = self.state.ack_ratio_16ths;
            self.state.ack_ratio_16ths =
                (ratio - (ratio >> RATIO_SHIFT)).saturating_add(measurement.packets);
        }
    }

    /// `tcp_bic.c::bictcp_cong_avoid`.
    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, ack: &AckSample) {
        self.update(window.cwnd, ack.now);
        window.additive_increase(self.state.per_increase, acked);
    }

    /// `tcp_bic.c::bictcp_recalc_ssthresh`.
    fn ssthresh_after(&mut self, window: &CongestionWindow, _congestion: &CongestionEvent) -> u32 {
        let cwnd = u64::from(window.cwnd);
        // Both products fit, because the factors are at most 1.
        self.state.last_max = if window.cwnd < self.state.last_max && self.fast_convergence {
            (cwnd * (BETA_ONE + self.beta) / (2 * BETA_ONE)) as u32
        } else {
            window.cwnd
        };
        let kept = if window.cwnd <= self.low_window {
            window.cwnd / 2
        } else {
            (cwnd * self.beta / BETA_ONE) as u32
        };
        kept.max(2)
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
        match self.state.region {
            Region::Reno => "reno",
            Region::Linear => "linear",
            Region::Search => "binary_search",
            Region::Probe => "max_probing",
        }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("w_max_packets", f64::from(self.state.last_max));
        observer.record_value("packets_per_ack", f64::from(self.state.ack_ratio_16ths) / 16.0);
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::Span;

    use super::*;
    use crate::test_support::{ack, loss, measured};

    const OPEN: u32 = 1 << RATIO_SHIFT;

    fn bic(last_max: u32) -> Bic {
        let mut law = Bic::new(&ROW.entry.defaults());
        law.state.last_max = last_max;
        law.state.ack_ratio_16ths = OPEN;
        law
    }

    /// With an ACK per packet, packets to acknowledge per increase at a window.
    fn per_increase(law: &mut Bic, cwnd: u32) -> u32 {
        law.state.last_cwnd = 0;
        law.update(cwnd, Time::ZERO);
        law.state.per_increase
    }

    /// algorithms.md: AI(W/16), AI(W/d), AI(5W) below the old maximum; 5W, 3W/(W − Wmax), W/16
    /// above it.
    #[test]
    fn the_step_follows_the_distance_to_the_old_maximum() {
        let mut law = bic(1000);
        for (cwnd, expected, mode) in [
            (14, 14, "reno"),
            (800, 50, "linear"),
            (932, 58, "linear"),
            (933, 58, "binary_search"),
            (960, 96, "binary_search"),
            (991, 495, "binary_search"),
            (993, 4965, "binary_search"),
            (999, 4995, "binary_search"),
            (1000, 5000, "max_probing"),
            (1003, 5015, "max_probing"),
            (1004, 753, "max_probing"),
            (1047, 66, "max_probing"),
            (1048, 65, "linear"),
        ] {
            assert_eq!((per_increase(&mut law, cwnd), law.mode()), (expected, mode), "at {cwnd}");
        }
    }

    /// algorithms.md: with an ACK per packet 800 → 936 takes 8.5 round trips. So it does where the
    /// ratio is 1.
    #[test]
    fn the_straight_line_adds_sixteen_packets_per_round_trip() {
        let mut law = bic(1000);
        let mut window = CongestionWindow { cwnd: 800, ssthresh: 2, ..CongestionWindow::default() };
        let mut rounds = 0.0;
        while window.cwnd < 936 {
            rounds += 1.0 / f64::from(window.cwnd);
            law.increase_cwnd(&mut window, 1, &ack(1));
        }
        assert!((rounds - 8.5).abs() < 0.1, "{rounds:.2} round trips");
    }

    /// The average begins at 2, and its steps are rounded down: 31 − 31/16 + 1 is 31 again.
    #[test]
    fn the_ratio_of_a_packet_per_ack_stays_near_two() {
        let mut law = Bic::new(&ROW.entry.defaults());
        for _ in 0..1_000 {
            law.on_ack_before_loss_detection(
                &mut CongestionWindow::default(),
                &measured(Time::ZERO, 1, None),
            );
        }
        assert_eq!(law.state.ack_ratio_16ths, 31);
    }

    #[test]
    fn before_a_loss_it_grows_by_a_twentieth() {
        assert_eq!(per_increase(&mut bic(0), 1000), 20);
        assert_eq!(per_increase(&mut bic(0), 100), 6);
    }

    #[test]
    fn growth_is_divided_by_the_packets_per_ack() {
        let mut law = bic(1000);
        for (packets, ratio, step) in [(1, 16, 50), (4, 64, 12), (2, 47, 17)] {
            for _ in 0..400 {
                let heard = measured(Time::ZERO, packets, None);
                law.on_ack_before_loss_detection(&mut CongestionWindow::default(), &heard);
            }
            assert_eq!(law.state.ack_ratio_16ths, ratio, "{packets} packets per ACK");
            assert_eq!(per_increase(&mut law, 800), step, "{packets} packets per ACK");
        }
        law.on_ack_before_loss_detection(
            &mut CongestionWindow::default(),
            &RawAckSample { state: RecoveryState::Disorder, ..measured(Time::ZERO, 90, None) },
        );
        assert_eq!(law.state.ack_ratio_16ths, 47, "only in state `Open`");
    }

    #[test]
    fn a_loss_keeps_four_fifths_and_a_small_window_half() {
        let mut law = bic(0);
        let mut window = CongestionWindow { cwnd: 1000, ..CongestionWindow::default() };
        assert_eq!((law.ssthresh_after(&window, &loss()), law.state.last_max), (799, 1000));
        window.cwnd = 900;
        // (1024 + 819) / 2048 of 900.
        assert_eq!((law.ssthresh_after(&window, &loss()), law.state.last_max), (719, 809));
        window.cwnd = 14;
        assert_eq!(law.ssthresh_after(&window, &loss()), 7);
    }

    #[test]
    fn a_timeout_forgets_everything() {
        let mut law = bic(1000);
        law.on_recovery_state(&mut CongestionWindow::default(), Time::ZERO, RecoveryState::Loss);
        assert_eq!((law.state.last_max, law.state.ack_ratio_16ths), (0, FIRST_RATIO));
    }

    /// More than three ticks of 10 ms, the 32nd part of 100 rounded down.
    #[test]
    fn growth_is_computed_once_in_a_while_where_cwnd_stands_still() {
        let mut law = bic(1000);
        let mut window = CongestionWindow { cwnd: 800, ..CongestionWindow::default() };
        let mut step = |at_ms: u64| {
            let now = Time::ZERO + Span::from_ms(at_ms);
            law.increase_cwnd(&mut window, 0, &jostle_congestion::AckSample { now, ..ack(1) });
            law.state.ack_ratio_16ths = 2 * OPEN;
            law.state.per_increase
        };
        assert_eq!((step(50), step(81), step(82)), (50, 50, 25), "HZ / 32 ticks");
    }
}
