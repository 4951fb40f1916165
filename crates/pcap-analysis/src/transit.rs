//! Packets that left the sender and have not arrived at the capture near the receiver.

use std::collections::VecDeque;

/// Number of data packets that are remembered; more are not on their way at a time.
const PACKETS_MAX: usize = 1 << 16;

/// Packets sent since the last one that the other end has seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketsInTransit {
    /// Time and number of packets.
    sent: VecDeque<(u64, u32)>,
    /// Longest time that a packet needed to the other end.
    longest_ns: u64,
}

impl PacketsInTransit {
    /// Notes packets that leave the sender.
    pub fn sent(&mut self, now_ns: u64, packets: u32) {
        if self.sent.len() == PACKETS_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back((now_ns, packets));
    }

    /// Notes that a packet sent at `sent_ns` has arrived.
    pub fn arrived(&mut self, sent_ns: u64, delay_ns: u64) {
        self.longest_ns = self.longest_ns.max(delay_ns);
        while self.sent.front().is_some_and(|(at_ns, _)| *at_ns <= sent_ns) {
            self.sent.pop_front();
        }
    }

    /// Returns the number of packets that may have been on their way when the captures ended: they
    /// were sent after the last packet that arrived, and at most the longest delay before the end.
    pub fn at_end(&self, end_ns: u64) -> u64 {
        let late =
            self.sent.iter().filter(|(at_ns, _)| end_ns.saturating_sub(*at_ns) <= self.longest_ns);
        late.map(|(_, packets)| u64::from(*packets)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_can_still_arrive_are_not_lost() {
        let mut transit = PacketsInTransit::default();
        for at_ns in [100, 200, 300, 400] {
            transit.sent(at_ns, 2);
        }
        transit.arrived(200, 150);
        assert_eq!(transit.at_end(400), 4);
        // The packet sent at 300 would have arrived until 450.
        assert_eq!(transit.at_end(500), 2);
        assert_eq!(transit.at_end(600), 0);
    }
}
