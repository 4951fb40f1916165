//! Packets that left the sender, matched with those that arrive at the capture near the receiver.

use std::collections::{BTreeMap, VecDeque};

/// Number of transmissions that wait for their arrival; the oldest one is lost if there are more.
const TRANSMISSIONS_MAX: usize = 1 << 16;

/// First byte of a packet, and its time stamp. Without time stamps, transmissions of the same data
/// have the same key and arrive in their order.
type Key = (u64, u32);

/// Transmissions with the same key.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    sent: u32,
    arrived: u32,
}

/// Transmissions of a flow that was captured at both ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transmissions {
    waiting: BTreeMap<Key, Waiting>,
    /// Times and keys in the order of sending.
    order: VecDeque<(u64, Key)>,
    last_sent_ns: u64,
    /// Longest time that a packet needed to the other end.
    longest_ns: u64,
    lost: u64,
    arrived: u64,
    /// Arrivals that match no transmission while the sender was captured: copies made by the network.
    unmatched: u64,
}

/// Times between which the capture near the receiver was running.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaptureWindow {
    pub begins_ns: u64,
    pub ends_ns: u64,
}

impl CaptureWindow {
    /// Returns whether the capture was running.
    pub fn includes(&self, now_ns: u64) -> bool {
        (self.begins_ns..self.ends_ns).contains(&now_ns)
    }
}

impl Transmissions {
    /// Notes a packet that leaves the sender.
    pub fn sent(&mut self, now_ns: u64, key: Key, window: CaptureWindow) {
        if self.order.len() == TRANSMISSIONS_MAX {
            self.judge_oldest(window);
        }
        self.last_sent_ns = now_ns;
        self.order.push_back((now_ns, key));
        self.waiting.entry(key).or_default().sent += 1;
    }

    /// Notes a packet that arrives.
    pub fn arrived(&mut self, now_ns: u64, key: Key) {
        match self.waiting.get_mut(&key).filter(|waiting| waiting.arrived < waiting.sent) {
            Some(waiting) => {
                waiting.arrived += 1;
                self.arrived += 1;
            }
            None => self.unmatched += u64::from(now_ns <= self.last_sent_ns),
        }
    }

    /// Notes the time that a packet needed.
    pub fn took(&mut self, delay_ns: u64) {
        self.longest_ns = self.longest_ns.max(delay_ns);
    }

    /// Decides on the oldest transmission. One that the capture near the receiver could not see is
    /// not lost.
    fn judge_oldest(&mut self, window: CaptureWindow) {
        let Some((sent_ns, key)) = self.order.pop_front() else { return };
        let Some(waiting) = self.waiting.get_mut(&key) else { return };
        waiting.sent -= 1;
        if waiting.arrived > 0 {
            waiting.arrived -= 1;
        } else if sent_ns >= window.begins_ns && sent_ns + self.longest_ns <= window.ends_ns {
            self.lost += 1;
        }
        if waiting.sent == 0 {
            self.waiting.remove(&key);
        }
    }

    /// Returns the number of packets that were sent and the number that arrived. `None` if most
    /// arrivals match nothing that was sent, because something on the path changed the packets.
    pub fn counts(mut self, window: CaptureWindow) -> Option<(u64, u64)> {
        while !self.order.is_empty() {
            self.judge_oldest(window);
        }
        (self.arrived >= self.unmatched).then_some((self.arrived + self.lost, self.arrived))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: CaptureWindow = CaptureWindow { begins_ns: 100, ends_ns: 1_000 };

    #[test]
    fn packets_that_the_other_capture_could_not_see_are_not_lost() {
        let mut all = Transmissions::default();
        for (sent_ns, start) in [(50, 0), (100, 1), (200, 2), (849, 3), (851, 4)] {
            all.sent(sent_ns, (start, 7), WINDOW);
        }
        all.took(150);
        all.arrived(350, (2, 7));
        // Those sent at 100 and 849 would have arrived while it ran.
        assert_eq!(all.counts(WINDOW), Some((3, 1)));
    }

    #[test]
    fn copies_hide_no_losses() {
        let mut all = Transmissions::default();
        for start in 0..4 {
            all.sent(200, (start, 7), WINDOW);
        }
        all.sent(300, (3, 8), WINDOW);
        for key in [(0, 7), (0, 7), (1, 7), (1, 7), (3, 8)] {
            all.arrived(300, key);
        }
        assert_eq!(all.counts(WINDOW), Some((5, 3)));
    }

    #[test]
    fn without_time_stamps_transmissions_arrive_in_their_order() {
        let mut all = Transmissions::default();
        for sent_ns in [200, 400, 500] {
            all.sent(sent_ns, (0, 0), WINDOW);
        }
        all.arrived(500, (0, 0));
        all.arrived(500, (0, 0));
        assert_eq!(all.counts(WINDOW), Some((3, 2)));
    }

    #[test]
    fn changed_packets_match_nothing() {
        let mut all = Transmissions::default();
        all.sent(200, (0, 0), WINDOW);
        all.arrived(201, (9, 0));
        assert_eq!(all.clone().counts(WINDOW), Some((1, 0)), "the sender's capture had ended");
        all.arrived(200, (9, 0));
        assert_eq!(all.counts(WINDOW), None);
    }
}
