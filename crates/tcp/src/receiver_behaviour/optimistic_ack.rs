//! Optimistic ACKs: a receiver that acknowledges data before it arrives.

use jostle_units::{Span, Time};

use crate::segment::{AccEcnFeedback, Ack, AckTag, Data, MAX_BLOCKS, SackBlock, TimestampClock};

/// Result of a segment that was processed in place of the receiver.
#[derive(Clone, Copy, Debug)]
pub struct OptimisticArrival {
    /// Payload that the application can now read.
    pub bytes: u64,
    /// The ACK to send, if one is due.
    pub ack: Option<Ack>,
}

/// Acknowledges data before it arrives and never reports missing data. Lost data that was already
/// acknowledged never arrives, because the sender has removed it.
#[derive(Debug)]
pub(super) struct OptimisticAcker {
    /// The segment after the highest segment that has arrived.
    next: u32,
    /// TSval to echo.
    echo_ms: u32,
    /// Offered window in segments.
    window: u32,
    /// Lead of ACKs over arriving data, in round trips.
    lead: f64,
    /// Base RTT of the path.
    rtt: Span,
    /// Start of the current round trip; segments that arrived in it and in the previous one.
    since: Time,
    arrived: u32,
    arrived_before: u32,
}

impl OptimisticAcker {
    pub const fn new(lead: f64, rtt: Span, window: u32) -> Self {
        let since = Time::ZERO;
        Self { next: 0, echo_ms: 0, window, lead, rtt, since, arrived: 0, arrived_before: 0 }
    }

    /// Processes a segment.
    pub fn take(&mut self, now: Time, data: &Data, part: bool) -> OptimisticArrival {
        self.echo_ms = self.echo_ms.max(data.tsval_ms);
        self.count(now);
        let is_news = data.payload_bytes > 0 && data.number >= self.next;
        let mut number = self.next;
        if is_news {
            self.next = data.number + 1;
            // The sender ignores an ACK of data that it has not sent (RFC 9293 §3.10.7.4), so such
            // an ACK is wasted. At most the data that arrives in a round trip can be in flight.
            let lead = (f64::from(self.arrived_before) * self.lead) as u32;
            number = self.next.saturating_add(lead);
        }
        // A retransmission shows that the sender did not accept the ACK: acknowledge without lead,
        // so that this ACK is not ignored too.
        OptimisticArrival {
            bytes: if is_news { u64::from(data.payload_bytes) } else { 0 },
            ack: (!part).then(|| self.acknowledge(now, number)),
        }
    }

    /// Counts arriving segments per round trip. After a pause of more than one round trip the
    /// previous count is unknown and becomes 0.
    fn count(&mut self, now: Time) {
        let passed = now.since(self.since);
        if passed >= self.rtt {
            self.arrived_before = if passed < self.rtt + self.rtt { self.arrived } else { 0 };
            self.since = now;
            self.arrived = 0;
        }
        self.arrived += 1;
    }

    const fn acknowledge(&self, now: Time, number: u32) -> Ack {
        Ack {
            tag: AckTag::Ack,
            ece: false,
            duplicate: false,
            block_count: 0,
            accecn: AccEcnFeedback::NONE,
            clock: TimestampClock::at(now),
            number,
            tsecr_ms: self.echo_ms,
            window: self.window,
            blocks: [SackBlock { start: 0, end: 0 }; MAX_BLOCKS],
        }
    }
}
