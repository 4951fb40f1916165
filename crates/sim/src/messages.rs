//! Messages on their way: what was written, and when it is whole at the receiver.

use std::collections::VecDeque;

use jostle_units::{Span, Time};

/// Messages that the receiver does not have as a whole, in the order of the stream.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// Bytes of each that have not come, and when it was asked for or written.
    missing: VecDeque<(u64, Time)>,
}

impl Messages {
    /// There is one.
    #[inline]
    pub fn are_awaited(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Another one of so many bytes.
    pub fn write(&mut self, bytes: u64, now: Time) {
        self.missing.push_back((bytes, now));
    }

    /// Bytes have come: calls `whole` for each message that is whole by that, with how long it took.
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
        let mut messages = Messages::default();
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
