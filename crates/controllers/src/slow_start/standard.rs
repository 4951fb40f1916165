//! Standard slow start.

use alloc::boxed::Box;

use jostle_registry::RegistryEntry;

use super::algorithm::SlowStart;
use crate::cwnd::CongestionWindow;
use crate::registry_rows::SlowStartEntry;
use jostle_congestion::AckSample;

pub(crate) const ROW: SlowStartEntry = SlowStartEntry {
    entry: RegistryEntry {
        name: "standard",
        summary: "doubles cwnd per round trip until ssthresh",
        class: "window",
        based_on: &[],
        source: "RFC 5681 §3.1; Linux 6.1 tcp_cong.c, tcp_slow_start",
        parameters: &[],
    },
    build: |_| Box::new(Standard),
};

/// Adds one packet per acknowledged packet, without appropriate byte counting, as in Linux.
#[derive(Clone, Copy, Debug)]
pub struct Standard;

impl SlowStart for Standard {
    fn grow(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> u32 {
        window.slow_start(ack.acked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// algorithms.md: round n sends 10·2ⁿ.
    #[test]
    fn every_round_doubles() {
        let mut window = CongestionWindow::default();
        for round in 0..6 {
            let in_flight = window.cwnd;
            assert_eq!(in_flight, 10 << round);
            for _ in 0..in_flight {
                assert_eq!(window.slow_start(1), 0);
            }
        }
    }
}
