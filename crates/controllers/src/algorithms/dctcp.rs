//! DCTCP as implemented in Linux.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::Time;

use crate::cwnd::CongestionWindow;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::window_based::{CongestionAvoidance, WindowBasedController};
use jostle_congestion::{
    CongestionEvent, CongestionSignal, EcnFeedback, EcnMarks, RecoveryState, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "dctcp",
        summary: "Reno that reduces cwnd in proportion to the share of CE marks",
        class: "ecn",
        based_on: &["reno"],
        source: "Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010; RFC 8257; \
                 Linux 6.1 tcp_dctcp.c",
        parameters: &[
            Parameter::integer("dctcp_shift_g", 4, 0..=10)
                .summary("weight of a round's share of marks in the average alpha: 2^-g"),
            Parameter::integer("dctcp_alpha_on_init", 1024, 0..=1024)
                .summary("initial alpha, in 1024ths"),
        ],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| {
        Box::new(WindowBasedController::new(Dctcp::new(&parts.values), parts.slow_start))
    },
};

/// α = 1 (`DCTCP_MAX_ALPHA`).
const ONE: u64 = 1024;

/// Congestion avoidance of DCTCP: Reno, except that marks reduce the window by W · α/2 instead of
/// W/2. α is a moving average of the share of marked packets. Without ECN it is Reno.
#[derive(Clone, Debug)]
pub struct Dctcp {
    shift_g: u32,
    /// α in 1024ths.
    alpha: u64,
    /// Packet whose acknowledgement ends the round (`next_seq`).
    round_end: u64,
    /// Packets delivered and marked at the start of the round.
    delivered: u64,
    marked: u64,
    /// cwnd before the last reaction to congestion (`loss_cwnd`).
    prior_cwnd: u32,
    /// Whether ECN was not negotiated.
    is_reno: bool,
}

impl Dctcp {
    /// Creates DCTCP with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            shift_g: values.u32("dctcp_shift_g"),
            alpha: u64::from(values.u32("dctcp_alpha_on_init")),
            round_end: 0,
            delivered: 0,
            marked: 0,
            prior_cwnd: 0,
            is_reno: false,
        }
    }

    /// RFC 8257 §3.3: "DCTCP.Alpha = DCTCP.Alpha * (1 - g) + g * M", in Linux's integers.
    /// `tcp_dctcp.c::dctcp_update_alpha`.
    fn update_alpha(&mut self, marked: u64, delivered: u64) {
        // If a 16th of α is less than one unit, Linux subtracts all of α (`min_not_zero`): an α
        // below 2^g/1024 becomes zero immediately.
        let faded = self.alpha >> self.shift_g;
        self.alpha -= if faded == 0 { self.alpha } else { faded };
        if marked > 0 {
            let share = (marked << (10 - self.shift_g)) / delivered.max(1);
            self.alpha = (self.alpha + share).min(ONE);
        }
    }

    /// RFC 8257 §3.5: "a DCTCP sender MUST react to loss episodes in the same way as conventional
    /// TCP" (`tcp_dctcp.c::dctcp_react_to_loss`).
    fn halve(&mut self, window: &CongestionWindow) -> u32 {
        self.prior_cwnd = window.cwnd;
        (window.cwnd / 2).max(2)
    }
}

/// cwnd grows as in conventional TCP (RFC 8257 §3.4).
impl CongestionAvoidance for Dctcp {
    fn required_ecn_feedback(&self) -> EcnFeedback {
        EcnFeedback::DctcpEcho
    }

    fn on_ecn_negotiated(&mut self, feedback: EcnFeedback) {
        self.is_reno = feedback == EcnFeedback::None;
    }

    fn on_ecn_feedback(&mut self, _window: &mut CongestionWindow, marks: &EcnMarks) {
        if self.is_reno || marks.first_unacked < self.round_end {
            return;
        }
        self.update_alpha(marks.marked - self.marked, marks.delivered - self.delivered);
        self.round_end = marks.next_to_send;
        self.delivered = marks.delivered;
        self.marked = marks.marked;
    }

    /// RFC 8257 §3.3: "cwnd = cwnd * (1 - DCTCP.Alpha / 2)". Linux also uses this for a loss and
    /// corrects it when recovery begins ([`on_recovery_state`](Self::on_recovery_state)). A loss
    /// that was repaired by a probe alone (RFC 8985 §7.4.2) is not corrected.
    /// `tcp_dctcp.c::dctcp_ssthresh`.
    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        if self.is_reno || congestion.signal == CongestionSignal::Timeout {
            return self.halve(window);
        }
        self.prior_cwnd = window.cwnd;
        // Linux multiplies in 32 bits, which a window above four million packets would overflow.
        let reduction = (u64::from(window.cwnd) * self.alpha) >> 11;
        (window.cwnd - reduction as u32).max(2)
    }

    /// `tcp_dctcp.c::dctcp_state`.
    fn on_recovery_state(
        &mut self,
        window: &mut CongestionWindow,
        _now: Time,
        state: RecoveryState,
    ) {
        if state == RecoveryState::Recovery && !self.is_reno {
            window.ssthresh = self.halve(window);
        }
    }

    /// `tcp_dctcp.c::dctcp_cwnd_undo`.
    fn cwnd_after_undo(&mut self, window: &CongestionWindow, prior_cwnd: u32) -> u32 {
        window.cwnd.max(if self.is_reno { prior_cwnd } else { self.prior_cwnd })
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("alpha", self.alpha as f64 / ONE as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slow_start::Standard;
    use jostle_congestion::CongestionController;

    fn dctcp() -> Dctcp {
        Dctcp::new(&ROW.entry.resolve(&Default::default()).unwrap())
    }

    fn window(cwnd: u32) -> CongestionWindow {
        CongestionWindow { cwnd, ..CongestionWindow::default() }
    }

    fn signal(signal: CongestionSignal) -> CongestionEvent {
        CongestionEvent { now: Time::ZERO, signal, in_flight: 0, next_to_send: 0 }
    }

    /// A round of ten packets, `marked` of them marked.
    fn round(law: &mut Dctcp, number: u64, marked: u64) {
        law.on_ecn_feedback(
            &mut window(10),
            &EcnMarks {
                now: Time::ZERO,
                delivered: 10 * number,
                marked: law.marked + marked,
                first_unacked: 10 * number,
                next_to_send: 10 * number + 10,
            },
        );
    }

    /// algorithms.md: after 16 clean rounds α is 0.36 ± 0.01, which is (15/16)^16.
    #[test]
    fn alpha_fades_by_a_16th_per_round() {
        let mut law = dctcp();
        assert_eq!(law.alpha, 1024);
        for number in 1..=16 {
            round(&mut law, number, 0);
        }
        assert!((law.alpha as f64 / 1024.0 - 0.36).abs() < 0.01, "{}", law.alpha);
        // 1024, 960, 900, 844, 792 …: each step truncates.
        let mut law = dctcp();
        for (number, expected) in (1..).zip([960, 900, 844, 792, 743]) {
            round(&mut law, number, 0);
            assert_eq!(law.alpha, expected);
        }
    }

    /// What is less than a 16th of a unit cannot fade by a 16th: Linux drops it at once.
    #[test]
    fn an_alpha_below_16_units_falls_to_zero() {
        for (before, after) in [(32, 30), (16, 15), (15, 0), (1, 0), (0, 0)] {
            let mut law = Dctcp { alpha: before, ..dctcp() };
            law.update_alpha(0, 10);
            assert_eq!(law.alpha, after, "from {before}");
        }
    }

    #[test]
    fn alpha_converges_to_the_share_of_marks() {
        let mut law = dctcp();
        for number in 1..=200 {
            round(&mut law, number, 3);
        }
        // 3 · 64 / 10 = 19 units per round against α/16: 19 · 16 = 304 ≤ α < 320; 0.3 = 307.2.
        assert!((304..320).contains(&law.alpha), "{}", law.alpha);
        for number in 201..=300 {
            round(&mut law, number, 10);
        }
        assert_eq!(law.alpha, 1024);
    }

    #[test]
    fn a_round_ends_when_the_packet_sent_last_at_its_start_is_acknowledged() {
        let mut law = dctcp();
        round(&mut law, 1, 10);
        let before = law.alpha;
        let mut within = |first_unacked| {
            let marks = EcnMarks {
                now: Time::ZERO,
                delivered: first_unacked,
                marked: 10,
                first_unacked,
                next_to_send: 100,
            };
            law.on_ecn_feedback(&mut window(10), &marks);
            law.alpha
        };
        assert_eq!(within(19), before, "round 1 sent packets up to number 19");
        assert_ne!(within(20), before);
    }

    #[test]
    fn a_mark_takes_half_of_alpha_and_the_first_one_half_of_the_window() {
        let mut law = dctcp();
        assert_eq!(
            law.ssthresh_after(&window(101), &signal(CongestionSignal::Ecn)),
            51,
            "101 − (101·1024 >> 11)"
        );
        law.alpha = 256;
        assert_eq!(
            law.ssthresh_after(&window(100), &signal(CongestionSignal::Ecn)),
            88,
            "100 − (25600 >> 11)"
        );
        law.alpha = 10;
        assert_eq!(law.ssthresh_after(&window(100), &signal(CongestionSignal::Ecn)), 100);
        assert_eq!(law.ssthresh_after(&window(2), &signal(CongestionSignal::Ecn)), 2);
    }

    #[test]
    fn a_loss_halves_when_recovery_begins_and_a_timeout_at_once() {
        let mut controller =
            WindowBasedController::new(Dctcp { alpha: 0, ..dctcp() }, Box::new(Standard));
        controller.set_cwnd(100);
        controller.on_congestion_event(&signal(CongestionSignal::Loss));
        assert_eq!(controller.ssthresh(), Some(100), "as a mark would have it");
        controller.on_recovery_state(Time::ZERO, RecoveryState::Recovery);
        assert_eq!(controller.ssthresh(), Some(50));
        controller.set_cwnd(50);
        controller.on_undo(Time::ZERO);
        assert_eq!(controller.cwnd(), 100);
        controller.on_congestion_event(&signal(CongestionSignal::Timeout));
        assert_eq!(controller.ssthresh(), Some(50));
    }

    /// A loss while marks already bring the window down halves what is left of it.
    #[test]
    fn recovery_halves_the_window_that_it_finds() {
        let mut controller =
            WindowBasedController::new(Dctcp { alpha: 512, ..dctcp() }, Box::new(Standard));
        controller.set_cwnd(100);
        controller.on_congestion_event(&signal(CongestionSignal::Ecn));
        controller.on_recovery_state(Time::ZERO, RecoveryState::Cwr);
        assert_eq!(controller.ssthresh(), Some(75));
        controller.set_cwnd(80);
        controller.on_recovery_state(Time::ZERO, RecoveryState::Recovery);
        assert_eq!(controller.ssthresh(), Some(40));
    }

    #[test]
    fn without_ecn_it_is_reno() {
        let law = Dctcp { alpha: 0, ..dctcp() };
        let mut controller = WindowBasedController::new(law, Box::new(Standard));
        assert_eq!(controller.required_ecn_feedback(), EcnFeedback::DctcpEcho);
        controller.on_ecn_negotiated(EcnFeedback::None);
        controller.set_cwnd(100);
        controller.on_congestion_event(&signal(CongestionSignal::Loss));
        assert_eq!(controller.ssthresh(), Some(50));
        controller.set_cwnd(60);
        controller.on_recovery_state(Time::ZERO, RecoveryState::Recovery);
        assert_eq!(controller.ssthresh(), Some(50), "not halved again");
    }
}
