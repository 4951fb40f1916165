//! ECN of the release of BBR v3 (`bbr_update_ecn_alpha` and its uses). The draft does not use ECN.

use alloc::collections::VecDeque;

use crate::algorithms::bbr::model::GAIN_UNIT;
use jostle_congestion::AckSample;

/// `bbr_ecn_max_rtt_us`: "Max RTT (in usec) at which to use sender-side ECN logic."
const MAX_RTT_US: u64 = 5_000;
/// `bbr_ecn_alpha_gain`, 1/16.
const ALPHA_GAIN: u64 = GAIN_UNIT / 16;
/// `bbr_ecn_factor`, 1/3: 85 of 256.
const FACTOR: u64 = GAIN_UNIT / 3;
/// `bbr_ecn_thresh`, 1/2: share of marked packets above which a flight was too high.
const THRESHOLD: u64 = GAIN_UNIT / 2;
/// `bbr_full_ecn_cnt`: number of rounds with such a share of marks that end Startup.
const STARTUP_ROUNDS: u32 = 2;
/// `bbr_ecn_reprobe_gain`, 1/2: growth of the long-term bound after marks have ceased.
const REPROBE_GAIN: u64 = GAIN_UNIT / 2;

/// ECN state of a connection.
#[derive(Clone, Debug)]
pub(super) struct Ecn {
    /// `bbr_can_use_ecn`: ECN was negotiated on a route with early marks and precise feedback.
    usable: bool,
    /// `ecn_eligible`: `usable`, and the path had a short RTT at least once.
    eligible: bool,
    /// `ecn_alpha` in 256ths.
    alpha: u64,
    history: History,
    /// Packets delivered and marked at the last update of alpha.
    at_alpha: (u64, u64),
    /// `ecn_in_round`, `ecn_in_cycle`.
    pub(super) in_round: bool,
    pub(super) in_cycle: bool,
    /// `startup_ecn_rounds`.
    startup_rounds: u32,
}

impl Ecn {
    /// `usable`: whether the route marks early. The handshake determines the feedback later.
    pub(super) fn new(usable: bool) -> Self {
        Self {
            usable,
            eligible: false,
            // `bbr_ecn_alpha_init`: "1.0 allows a flow to respond quickly to congestion if the
            // bottleneck is congested when the flow starts up".
            alpha: GAIN_UNIT,
            history: History::default(),
            at_alpha: (0, 0),
            in_round: false,
            in_cycle: false,
            startup_rounds: 0,
        }
    }

    pub(super) fn is_usable(&self) -> bool {
        self.usable
    }

    pub(super) fn give_up(&mut self) {
        self.usable = false;
    }

    pub(super) fn is_eligible(&self) -> bool {
        self.eligible
    }

    /// Alpha as a number, for plots.
    pub(super) fn alpha(&self) -> f64 {
        self.alpha as f64 / GAIN_UNIT as f64
    }

    /// Processes an ACK. Must be called before all other processing of the ACK. Returns whether it
    /// started a round whose marks show that Startup went too high.
    pub(super) fn on_ack(
        &mut self,
        ack: &AckSample,
        round_started: bool,
        min_rtt_us: Option<u64>,
    ) -> bool {
        if !self.usable {
            return false;
        }
        self.history.on_ack(ack);
        let too_high = round_started && self.on_round(ack, min_rtt_us);
        self.in_round |= self.eligible && ack.ce_marked > 0;
        too_high
    }

    fn on_round(&mut self, ack: &AckSample, min_rtt_us: Option<u64>) -> bool {
        self.eligible |= self.usable && min_rtt_us.is_some_and(|us| us <= MAX_RTT_US);
        let (delivered, marked) =
            (ack.delivered - self.at_alpha.0, self.history.marked - self.at_alpha.1);
        if !self.eligible || delivered == 0 {
            return false;
        }
        let share = marked * GAIN_UNIT / delivered;
        let kept = (GAIN_UNIT - ALPHA_GAIN) * self.alpha / GAIN_UNIT;
        self.alpha = (kept + ALPHA_GAIN * share / GAIN_UNIT).min(GAIN_UNIT);
        self.at_alpha = (ack.delivered, self.history.marked);
        self.history.on_round(ack.delivered);
        self.startup_rounds = if share >= THRESHOLD { self.startup_rounds + 1 } else { 0 };
        self.startup_rounds >= STARTUP_ROUNDS
    }

    /// Returns the number of marked packets in the rate sample (`rs->delivered_ce`).
    pub(super) fn marked_in(&self, ack: &AckSample) -> u64 {
        if !self.usable || ack.rate.is_none() {
            return 0;
        }
        self.history.marked - self.history.at(ack.prior_delivered)
    }

    /// The part of `bbr_is_inflight_too_high` that checks marks.
    pub(super) fn is_too_high(&self, ack: &AckSample) -> bool {
        let Some(rate) = ack.rate.as_ref().filter(|_| self.eligible) else { return false };
        self.marked_in(ack) > u64::from(rate.delivered) * THRESHOLD / GAIN_UNIT
    }

    /// "Reduce inflight to (1 - alpha*ecn_factor)."
    pub(super) fn lowered(&self, inflight: u32) -> u32 {
        let left = GAIN_UNIT - self.alpha * FACTOR / GAIN_UNIT;
        (u64::from(inflight) * left / GAIN_UNIT) as u32
    }

    /// Power of two by which the first round of a probe grows after marks have ceased.
    pub(super) fn reprobe_rounds(inflight_long: u32) -> u32 {
        (u64::from(inflight_long) * REPROBE_GAIN / GAIN_UNIT).checked_ilog2().unwrap_or(0)
    }
}

/// Number of marked packets as a function of the number of delivered packets, for all packets in
/// flight. With feedback per packet, either all packets of an ACK are marked or none, so that a
/// list of turning points is sufficient.
#[derive(Clone, Debug, Default)]
struct History {
    marked: u64,
    delivered: u64,
    turns: VecDeque<MarkingChange>,
    /// Packets delivered at the start of the current and of the previous round.
    rounds: [u64; 2],
}

/// A turning point: from this number of delivered packets on, all packets are marked, or none.
#[derive(Clone, Copy, Debug)]
struct MarkingChange {
    delivered: u64,
    marked: u64,
    marks: bool,
}

impl MarkingChange {
    fn at(&self, delivered: u64) -> u64 {
        self.marked + if self.marks { delivered.saturating_sub(self.delivered) } else { 0 }
    }
}

impl History {
    fn on_ack(&mut self, ack: &AckSample) {
        if ack.delivered == self.delivered {
            return;
        }
        let marks = ack.ce_marked > 0;
        if self.turns.back().is_none_or(|turn| turn.marks != marks) {
            let turn = MarkingChange { delivered: self.delivered, marked: self.marked, marks };
            self.turns.push_back(turn);
        }
        self.delivered = ack.delivered;
        self.marked += u64::from(ack.ce_marked);
    }

    /// Returns the number of marked packets when `delivered` packets were delivered.
    fn at(&self, delivered: u64) -> u64 {
        // If every second ACK reports marks, a round has as many turning points as ACKs.
        let after = self.turns.partition_point(|turn| turn.delivered <= delivered);
        let turn = after.checked_sub(1).and_then(|at| self.turns.get(at));
        turn.map_or(0, |turn| turn.at(delivered).min(self.marked))
    }

    /// Packets in flight were sent in this round or the previous one: discard older turning points.
    fn on_round(&mut self, delivered: u64) {
        let [latest, oldest] = self.rounds;
        self.rounds = [delivered, latest];
        while self.turns.get(1).is_some_and(|second| second.delivered <= oldest) {
            self.turns.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::ack;
    use jostle_congestion::RateSample;
    use jostle_units::Span;

    fn eligible() -> Ecn {
        let mut ecn = Ecn::new(true);
        ecn.on_round(&ack(0), Some(5_000));
        ecn
    }

    /// A round of `packets`, the last `marked` of which were marked.
    fn round(ecn: &mut Ecn, packets: u32, marked: u32) -> AckSample {
        let before = ecn.history.delivered;
        let clean = before + u64::from(packets - marked);
        ecn.on_ack(&AckSample { acked: packets - marked, ..ack(clean) }, false, None);
        let end = before + u64::from(packets);
        let rate = Some(RateSample { delivered: packets, interval: Span::from_ms(1) });
        let last = AckSample {
            acked: marked,
            ce_marked: marked,
            prior_delivered: before,
            rate,
            ..ack(end)
        };
        ecn.on_ack(&last, false, None);
        last
    }

    /// 1/16 of the share of marks per round, from 1; 240, 225, 210 …: each step truncates.
    #[test]
    fn alpha_is_the_average_of_the_share_of_marks() {
        let mut ecn = eligible();
        for expected in [240, 225, 210, 196] {
            let last = round(&mut ecn, 40, 0);
            ecn.on_round(&last, None);
            assert_eq!(ecn.alpha, expected);
        }
        let last = round(&mut ecn, 40, 20);
        ecn.on_round(&last, None);
        assert_eq!(ecn.alpha, 196 * 240 / 256 + 8);
    }

    #[test]
    fn only_short_paths_listen_to_marks() {
        let mut ecn = Ecn::new(true);
        ecn.on_round(&ack(0), Some(5_001));
        assert!(!ecn.is_eligible());
        ecn.on_round(&ack(0), Some(5_000));
        assert!(ecn.is_eligible());
        let mut never = Ecn::new(false);
        never.on_round(&ack(0), Some(100));
        assert!(!never.is_eligible());
    }

    /// "Exit STARTUP upon N consecutive rounds with ECN mark rate > ecn_thresh": 2, one half.
    #[test]
    fn two_rounds_of_half_marked_are_too_many_for_startup() {
        let mut ecn = eligible();
        for (marked, over) in [(20, false), (19, false), (20, false), (20, true)] {
            let last = round(&mut ecn, 40, marked);
            assert_eq!(ecn.on_round(&last, None), over, "{marked}");
        }
    }

    /// (1 − α/3): 171 of 256 at first.
    #[test]
    fn marks_take_a_third_of_alpha() {
        let ecn = eligible();
        assert_eq!(ecn.lowered(256), 171);
        assert_eq!(Ecn { alpha: 128, ..ecn }.lowered(256), 214);
    }

    /// The sample counts from when its newest packet was sent, to which count it goes back exactly.
    #[test]
    fn a_sample_knows_the_marks_of_its_own_flight() {
        let mut ecn = eligible();
        for (packets, marked) in [(40, 10), (40, 0), (40, 21)] {
            let last = round(&mut ecn, packets, marked);
            assert_eq!(ecn.marked_in(&last), u64::from(marked));
            assert_eq!(ecn.is_too_high(&last), marked == 21);
            let half = AckSample { prior_delivered: last.delivered - 5, ..last };
            assert_eq!(ecn.marked_in(&half), u64::from(marked.min(5)));
            ecn.on_round(&last, None);
        }
        for _ in 0..100 {
            let last = round(&mut ecn, 40, 10);
            ecn.on_round(&last, None);
        }
        assert!(ecn.history.turns.len() <= 8, "{} turns kept", ecn.history.turns.len());
    }

    #[test]
    fn a_probe_after_marks_starts_with_half_the_bound() {
        for (long, rounds) in [(200, 6), (256, 7), (1, 0)] {
            assert_eq!(Ecn::reprobe_rounds(long), rounds);
        }
    }
}
