//! Scalable TCP as implemented in Linux.

use alloc::boxed::Box;

use jostle_registry::RegistryEntry;

use crate::cwnd::CongestionWindow;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::window_based::{CongestionAvoidance, WindowBasedController};
use jostle_congestion::{AckSample, CongestionEvent};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "scalable",
        summary: "adds 0.01 packets per acknowledged packet; reduces cwnd by 1/8 on loss",
        class: "loss",
        based_on: &["reno"],
        source: "Kelly, Scalable TCP, ACM SIGCOMM CCR 33(2), 2003; Linux 6.1 tcp_scalable.c",
        parameters: &[],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| Box::new(WindowBasedController::new(Scalable, parts.slow_start)),
};

/// Packets acknowledged per increase by one: the paper's a = 0.01, inverted.
const PER_INCREASE: u32 = 100;

/// The paper's b = 1/8, as a shift.
const DECREASE_SHIFT: u32 = 3;

/// Congestion avoidance of Scalable TCP: multiplicative increase and decrease, so that the time
/// between two losses does not depend on the window. Up to 100 packets it grows like Reno if that
/// is faster.
#[derive(Clone, Copy, Debug)]
pub struct Scalable;

impl CongestionAvoidance for Scalable {
    /// `tcp_scalable.c::tcp_scalable_cong_avoid`.
    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, _ack: &AckSample) {
        window.additive_increase(window.cwnd.min(PER_INCREASE), acked);
    }

    /// `tcp_scalable.c::tcp_scalable_ssthresh`.
    fn ssthresh_after(&mut self, window: &CongestionWindow, _congestion: &CongestionEvent) -> u32 {
        (window.cwnd - (window.cwnd >> DECREASE_SHIFT)).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{ack, loss};

    fn growth(cwnd: u32, acks: u32) -> u32 {
        let mut window = CongestionWindow { cwnd, ssthresh: 2, ..CongestionWindow::default() };
        (0..acks).for_each(|_| Scalable.increase_cwnd(&mut window, 1, &ack(1)));
        window.cwnd - cwnd
    }

    #[test]
    fn a_hundred_packets_acknowledged_add_one() {
        assert_eq!((growth(500, 99), growth(500, 100), growth(5_000, 5_000)), (0, 1, 50));
        assert_eq!(growth(50, 50), 1, "as Reno does");
    }

    #[test]
    fn a_loss_takes_an_eighth() {
        for (cwnd, ssthresh) in [(1000, 875), (15, 14), (7, 7), (2, 2), (1, 2)] {
            let window = CongestionWindow { cwnd, ..CongestionWindow::default() };
            assert_eq!(Scalable.ssthresh_after(&window, &loss()), ssthresh, "at {cwnd}");
        }
    }
}
