//! When the bytes of a flow were sent for the first time: what the RTT of an ACK is counted from in
//! a capture.
//!
//! Wireshark (`tcp_analyze_sequence_number` in packet-tcp.c) notes every segment that it sees with
//! its time, newest first. An ACK is held against all of them, those whose end it names set
//! `tcp.analysis.ack_rtt`, and all that it covers are forgotten. The oldest comes last in that list,
//! so that a segment that was sent again counts from its first transmission, and an ACK that says
//! nothing new has no RTT. Here there is no bound on the segments noted (Wireshark: 10,000).

use std::collections::VecDeque;

use jostle_units::{Span, Time};

/// Most bursts that wait for their ACKs: more have none, in a capture of one direction.
const BURSTS_MAX: usize = 1 << 20;

/// First transmissions of what has not been acknowledged.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstSent {
    /// Payload since the connection began up to its end, and when it left, in order.
    bursts: VecDeque<(u64, Time)>,
    sent_bytes: u64,
    acked_bytes: u64,
}

impl FirstSent {
    /// New data leave: so much payload.
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

    /// An ACK for all payload up to `acked_bytes` comes: the time since the last of it left first;
    /// none if it says nothing new.
    #[inline]
    pub(crate) fn acked(&mut self, now: Time, acked_bytes: u64) -> Option<Span> {
        if acked_bytes <= self.acked_bytes {
            return None;
        }
        self.acked_bytes = acked_bytes;
        while let Some((end_bytes, at)) = self.bursts.front().copied() {
            if end_bytes > acked_bytes {
                return Some(now.since(at));
            }
            self.bursts.pop_front();
            if end_bytes == acked_bytes {
                return Some(now.since(at));
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
}
