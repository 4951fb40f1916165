//! Standard slow start.

use jostle_catalogue::Entry;

use super::method::SlowStart;
use crate::controller::AckSample;
use crate::row::SlowStartRow;
use crate::window::Window;

pub(crate) const ROW: SlowStartRow = SlowStartRow {
    entry: Entry {
        name: "standard",
        summary: "doubles the window every round trip until ssthresh",
        class: "window",
        based_on: &[],
        source: "RFC 5681 §3.1; Linux 6.1 tcp_cong.c, tcp_slow_start",
        parameters: &[],
    },
    build: |_| Box::new(Standard),
};

/// One packet per packet acknowledged, without appropriate byte counting, as Linux does.
#[derive(Clone, Copy, Debug)]
pub struct Standard;

impl SlowStart for Standard {
    fn grow(&mut self, window: &mut Window, ack: &AckSample) -> u32 {
        window.slow_start(ack.acked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// algorithms.md: round n sends 10·2ⁿ.
    #[test]
    fn every_round_doubles() {
        let mut window = Window::default();
        for round in 0..6 {
            let in_flight = window.cwnd;
            assert_eq!(in_flight, 10 << round);
            for _ in 0..in_flight {
                assert_eq!(window.slow_start(1), 0);
            }
        }
    }
}
