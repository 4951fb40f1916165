//! Messages in flight: their writes and their completion at the receiver.

use std::collections::VecDeque;

use jostle_units::{Span, Time};

/// Messages that are incomplete at the receiver, in stream order.
#[derive(Debug, Default)]
pub struct MessageTracker {
    /// For each message, its missing bytes, and the time of its request or write.
    missing: VecDeque<(u64, Time)>,
}

impl MessageTracker {
    /// Returns whether any message is incomplete.
    #[inline]
    pub fn are_awaited(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Adds a message of `bytes`.
    pub fn write(&mut self, bytes: u64, now: Time) {
        self.missing.push_back((bytes, now));
    }

    /// Handles received bytes. Calls `whole` with the response time of each message that is now
    /// complete.
    pub fn deliver(&mut self, mut bytes: u64, now: Time, mut whole: impl FnMut(Span)) {
        while let Some((missing, since)) = self.missing.front_mut() {
            if bytes < *missing {
                *missing -= bytes;
                return;
            }
            bytes -= *missing;
            whole(now.since(*since));
            self.missing.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_whole_with_its_last_byte() {
        let at = |ms: u64| Time::from_ns(ms * 1_000_000);
        let mut messages = MessageTracker::default();
        for (bytes, ms) in [(10, 0), (5, 1), (5, 2)] {
            messages.write(bytes, at(ms));
        }
        let mut took = Vec::new();
        messages.deliver(9, at(10), |after| took.push(after));
        assert!(took.is_empty());
        messages.deliver(6, at(11), |after| took.push(after));
        messages.deliver(4, at(12), |after| took.push(after));
        assert_eq!(took, [Span::from_ms(11), Span::from_ms(10)]);
        assert!(messages.are_awaited());
        messages.deliver(1, at(20), |after| took.push(after));
        assert_eq!(took[2..], [Span::from_ms(18)]);
        assert!(!messages.are_awaited());
    }
}
