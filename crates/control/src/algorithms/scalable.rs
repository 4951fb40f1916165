//! Scalable TCP as Linux has it.

use jostle_catalogue::Entry;

use crate::controller::{AckSample, Congestion};
use crate::row::{ControllerRow, Start};
use crate::window::Window;
use crate::windowed::{WindowLaw, Windowed};

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "scalable",
        summary: "adds a hundredth of a packet per packet acknowledged, gives up an eighth on loss",
        class: "loss",
        based_on: &["reno"],
        source: "Kelly, Scalable TCP, ACM SIGCOMM CCR 33(2), 2003; Linux 6.1 tcp_scalable.c",
        parameters: &[],
    },
    start: Start::Composed("standard"),
    build: |parts| Box::new(Windowed::new(Scalable, parts.slow_start)),
};

/// Packets acknowledged per increase by one: the paper's a = 0.01, inverted.
const PER_INCREASE: u32 = 100;

/// The paper's b = 1/8, as a shift.
const DECREASE_SHIFT: u32 = 3;

/// The Scalable window law: multiplicative increase as well as decrease, so that the time between
/// two losses does not depend on the window. Up to 100 packets it grows as Reno does, where that
/// is faster.
#[derive(Clone, Copy, Debug)]
pub struct Scalable;

impl WindowLaw for Scalable {
    fn avoid(&mut self, window: &mut Window, acked: u32, _ack: &AckSample) {
        window.additive_increase(window.cwnd.min(PER_INCREASE), acked);
    }

    fn ssthresh(&mut self, window: &Window, _congestion: &Congestion) -> u32 {
        (window.cwnd - (window.cwnd >> DECREASE_SHIFT)).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{ack, loss};

    fn growth(cwnd: u32, acks: u32) -> u32 {
        let mut window = Window { cwnd, ssthresh: 2, ..Window::default() };
        (0..acks).for_each(|_| Scalable.avoid(&mut window, 1, &ack(1)));
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
            let window = Window { cwnd, ..Window::default() };
            assert_eq!(Scalable.ssthresh(&window, &loss()), ssthresh, "at {cwnd}");
        }
    }
}
