//! HighSpeed TCP as implemented in Linux.

use alloc::boxed::Box;

use jostle_registry::RegistryEntry;

use crate::cwnd::CongestionWindow;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{
    BETA_ECN, CongestionAvoidance, WindowBasedController, slow_start_or_remaining,
};
use jostle_congestion::{AckSample, CongestionEvent, EstablishedEvent, StateObserver};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "highspeed",
        summary: "Reno whose increase grows and whose decrease shrinks with cwnd",
        class: "loss",
        based_on: &["reno"],
        source: "RFC 3649; Linux 6.1 tcp_highspeed.c",
        parameters: &[BETA_ECN],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| {
        Box::new(
            WindowBasedController::new(HighSpeed::default(), parts.slow_start)
                .with_abe(&parts.values),
        )
    },
};

/// RFC 3649 §B: the windows at which a(w) reaches the next integer, and b(w) there in
/// 256ths, rounded down. Up to the window of row i, counted from 0, a(w) = i + 1.
const STEPS: [(u32, u32); 72] = [
    (38, 128),
    (118, 112),
    (221, 104),
    (347, 98),
    (495, 93),
    (663, 89),
    (851, 86),
    (1058, 83),
    (1284, 81),
    (1529, 78),
    (1793, 76),
    (2076, 74),
    (2378, 72),
    (2699, 71),
    (3039, 69),
    (3399, 68),
    (3778, 66),
    (4177, 65),
    (4596, 64),
    (5036, 62),
    (5497, 61),
    (5979, 60),
    (6483, 59),
    (7009, 58),
    (7558, 57),
    (8130, 56),
    (8726, 55),
    (9346, 54),
    (9991, 53),
    (10661, 52),
    (11358, 52),
    (12082, 51),
    (12834, 50),
    (13614, 49),
    (14424, 48),
    (15265, 48),
    (16137, 47),
    (17042, 46),
    (17981, 45),
    (18955, 45),
    (19965, 44),
    (21013, 43),
    (22101, 43),
    (23230, 42),
    (24402, 41),
    (25618, 41),
    (26881, 40),
    (28193, 39),
    (29557, 39),
    (30975, 38),
    (32450, 38),
    (33986, 37),
    (35586, 36),
    (37253, 36),
    (38992, 35),
    (40808, 35),
    (42707, 34),
    (44694, 33),
    (46776, 33),
    (48961, 32),
    (51258, 32),
    (53677, 31),
    (56230, 30),
    (58932, 30),
    (61799, 29),
    (64851, 28),
    (68113, 28),
    (71617, 27),
    (75401, 26),
    (79517, 26),
    (84035, 25),
    (89053, 24),
];

/// Largest window of HighSpeed in Linux: 128 times this value fits into 32 bits.
const CLAMP: u32 = u32::MAX / 128;

/// Congestion avoidance of HighSpeed: a(w) packets per round trip and w (1 − b(w)) after a loss.
/// The response function is therefore w = 0.12 / p^0.835 above 38 packets (RFC 3649 §5) and Reno's
/// below.
///
/// As in Linux, an ACK adds a(w)/w regardless of the number of packets it acknowledges, so that
/// delayed ACKs halve the growth; packets that an ACK acknowledges beyond the end of slow start are
/// not counted; b is taken at the window of the last increase, not of the loss.
#[derive(Clone, Debug, Default)]
pub struct HighSpeed {
    /// Current row of [`STEPS`] (`ai`).
    row: usize,
}

impl HighSpeed {
    /// Selects the first row whose window is not below `cwnd`, or the last row.
    fn find_row(&mut self, cwnd: u32) {
        // Windows grow by one per ACK, so this is at most one step, except for the first time and
        // after losses.
        while self.row + 1 < STEPS.len() && cwnd > STEPS[self.row].0 {
            self.row += 1;
        }
        while self.row > 0 && cwnd <= STEPS[self.row - 1].0 {
            self.row -= 1;
        }
    }

    /// a(w), packets per round trip.
    const fn increase(&self) -> u32 {
        self.row as u32 + 1
    }

    /// b(w) in 256ths.
    const fn decrease_256ths(&self) -> u32 {
        STEPS[self.row].1
    }
}

impl CongestionAvoidance for HighSpeed {
    fn on_established(&mut self, window: &mut CongestionWindow, _established: &EstablishedEvent) {
        self.row = 0;
        window.clamp = window.clamp.min(CLAMP);
    }

    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        if let Some(acked) = slow_start_or_remaining(window, slow_start, ack) {
            self.increase_cwnd(window, acked, ack);
        }
    }

    /// `tcp_highspeed.c::hstcp_cong_avoid`.
    fn increase_cwnd(&mut self, window: &mut CongestionWindow, _acked: u32, _ack: &AckSample) {
        self.find_row(window.cwnd);
        if window.cwnd < window.clamp {
            window.count = window.count.saturating_add(self.increase());
            if window.count >= window.cwnd {
                window.count -= window.cwnd;
                window.cwnd += 1;
            }
        }
    }

    /// `tcp_highspeed.c::hstcp_ssthresh`.
    fn ssthresh_after(&mut self, window: &CongestionWindow, _congestion: &CongestionEvent) -> u32 {
        // The product fits: cwnd is clamped, and the factor at most 128.
        let decrease = (window.cwnd.min(CLAMP) * self.decrease_256ths()) >> 8;
        (window.cwnd - decrease).max(2)
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("increase_packets", f64::from(self.increase()));
        observer.record_value("decrease", f64::from(self.decrease_256ths()) / 256.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{ack, loss};

    /// RFC 3649 §5: b(w) with High_Decrease 0.1 between Low_Window 38 and High_Window 83000.
    fn b(w: f64) -> f64 {
        0.5 - 0.4 * libm::log(w / 38.0) / libm::log(83_000.0 / 38.0)
    }

    /// RFC 3649 §5: a(w) = w² p(w) 2 b(w) / (2 − b(w)), p(w) = 0.078 / w^1.2.
    fn a(w: f64) -> f64 {
        w * w * 0.078 / libm::pow(w, 1.2) * 2.0 * b(w) / (2.0 - b(w))
    }

    #[test]
    fn the_table_is_that_of_the_formulas() {
        for (i, (window, decrease)) in STEPS.into_iter().enumerate() {
            let w = f64::from(window);
            assert_eq!(decrease, (256.0 * b(w)) as u32, "b({w})");
            assert!((a(w) - (i + 1) as f64).abs() < 0.05, "a({w}) = {}", a(w));
        }
    }

    fn at(cwnd: u32) -> (HighSpeed, CongestionWindow) {
        let mut law = HighSpeed::default();
        law.find_row(cwnd);
        (law, CongestionWindow { cwnd, ssthresh: 2, ..CongestionWindow::default() })
    }

    /// algorithms.md: w = 1000 → b = 0.33, a = 7.7 (table: 8 ± 1).
    #[test]
    fn a_thousand_packets_grow_by_eight_and_fall_by_a_third() {
        let (mut law, mut window) = at(1000);
        assert_eq!(law.increase(), 8);
        (0..1000).for_each(|_| law.increase_cwnd(&mut window, 1, &ack(1)));
        assert_eq!(window.cwnd, 1007);
        window.cwnd = 1000;
        // b(1058) = 83/256: 1000 − 324.
        assert_eq!(law.ssthresh_after(&window, &loss()), 676);
    }

    #[test]
    fn up_to_38_packets_it_is_reno() {
        let (mut law, mut window) = at(38);
        (0..38).for_each(|_| law.increase_cwnd(&mut window, 1, &ack(1)));
        assert_eq!((window.cwnd, window.count), (39, 0));
        assert_eq!(law.ssthresh_after(&CongestionWindow { cwnd: 38, ..window }, &loss()), 19);
        assert_eq!(law.ssthresh_after(&CongestionWindow { cwnd: 3, ..window }, &loss()), 2);
    }

    #[test]
    fn rows_are_found_upwards_and_downwards() {
        let mut law = HighSpeed::default();
        for (cwnd, increase) in [
            (38, 1),
            (39, 2),
            (118, 2),
            (119, 3),
            (84_036, 72),
            (89_054, 72),
            (1 << 24, 72),
            (2, 1),
        ] {
            law.find_row(cwnd);
            assert_eq!(law.increase(), increase, "at {cwnd}");
        }
    }

    #[test]
    fn a_stretch_ack_counts_once() {
        let (mut law, mut window) = at(1000);
        law.increase_cwnd(&mut window, 50, &ack(1));
        assert_eq!(window.count, 8);
    }
}
