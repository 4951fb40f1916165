//! First transmission times of a flow's bytes, from which the RTT of an ACK in a capture is
//! measured.
//!
//! Wireshark (`tcp_analyze_sequence_number` in packet-tcp.c) stores the time of every segment,
//! newest first. It compares an ACK with all of them, sets `tcp.analysis.ack_rtt` from those that
//! end at the acknowledged number, and removes all that the ACK covers. The oldest entry is
//! compared last. A retransmitted segment therefore counts from its first transmission, and an ACK
//! that acknowledges no new data has no RTT. Wireshark stores at most 10,000 segments; the limit
//! here is `BURSTS_MAX`.

use std::collections::VecDeque;

use jostle_units::{Span, Time};

/// Maximum number of stored bursts; the oldest is discarded first. Without ACKs, as in a capture of
/// the data direction only, nothing else removes bursts.
const BURSTS_MAX: usize = 1 << 20;

/// First transmission times of unacknowledged data.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstSent {
    /// For each burst in order, the end of its payload since the start of the connection and its
    /// send time; `Time::NEVER` if the capture misses it.
    bursts: VecDeque<(u64, Time)>,
    sent_bytes: u64,
    acked_bytes: u64,
}

impl FirstSent {
    /// Records that `payload_bytes` of new data were sent.
    #[inline]
    pub(crate) fn sent(&mut self, now: Time, payload_bytes: u64) {
        self.sent_bytes += payload_bytes;
        if self.bursts.len() == BURSTS_MAX {
            self.bursts.pop_front();
        }
        match self.bursts.back_mut() {
            Some((end_bytes, at)) if *at == now => *end_bytes = self.sent_bytes,
            _ => self.bursts.push_back((self.sent_bytes, now)),
        }
    }

    /// Records that `payload_bytes` of new data were sent at an unknown time.
    pub(crate) fn missed(&mut self, payload_bytes: u64) {
        self.sent(Time::NEVER, payload_bytes);
    }

    /// Processes an ACK up to `acked_bytes`. Returns the time since the first transmission of the
    /// last acknowledged byte, or `None` if the ACK acknowledges no new data or the time is unknown.
    #[inline]
    pub(crate) fn acked(&mut self, now: Time, acked_bytes: u64) -> Option<Span> {
        if acked_bytes <= self.acked_bytes {
            return None;
        }
        self.acked_bytes = acked_bytes;
        while let Some((end_bytes, at)) = self.bursts.front().copied() {
            if end_bytes <= acked_bytes {
                self.bursts.pop_front();
            }
            if end_bytes >= acked_bytes {
                return (at != Time::NEVER).then(|| now.since(at));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: u64 = 1_448;

    fn ms(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    #[test]
    fn an_ack_counts_from_the_first_transmission_of_the_last_segment_that_it_covers() {
        let mut first = FirstSent::default();
        first.sent(ms(0), 2 * PAYLOAD);
        first.sent(ms(5), PAYLOAD);
        first.sent(ms(6), 3 * PAYLOAD);
        assert_eq!(first.acked(ms(100), PAYLOAD), Some(Span::from_ms(100)));
        assert_eq!(first.acked(ms(101), PAYLOAD), None);
        assert_eq!(first.acked(ms(102), 3 * PAYLOAD), Some(Span::from_ms(97)));
        // The fourth was lost: what followed it waits for its retransmission.
        assert_eq!(first.acked(ms(300), 6 * PAYLOAD), Some(Span::from_ms(294)));
        first.sent(ms(400), 10);
        assert_eq!(first.acked(ms(450), 6 * PAYLOAD + 10), Some(Span::from_ms(50)));
        assert!(first.bursts.is_empty());
    }

    #[test]
    fn an_ack_of_data_that_the_capture_misses_has_no_rtt() {
        let mut first = FirstSent::default();
        first.sent(ms(0), PAYLOAD);
        first.missed(2 * PAYLOAD);
        first.sent(ms(9), PAYLOAD);
        assert_eq!(first.acked(ms(20), PAYLOAD), Some(Span::from_ms(20)));
        assert_eq!(first.acked(ms(21), 2 * PAYLOAD), None);
        assert_eq!(first.acked(ms(22), 3 * PAYLOAD), None);
        assert_eq!(first.acked(ms(29), 4 * PAYLOAD), Some(Span::from_ms(20)));
    }
}
