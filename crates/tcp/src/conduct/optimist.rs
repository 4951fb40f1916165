//! A receiver that acknowledges what has not come.

use jostle_units::{Span, Time};

use crate::segment::{Ack, AckTag, Block, Clock, Data, MAX_BLOCKS};

/// What a segment brought about that was taken in the receiver's place.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Payload that the application can read now.
    pub bytes: u64,
    /// The ACK to send, if one is due.
    pub ack: Option<Ack>,
}

/// Acknowledges ahead of what arrives, and never says that something is missing. Whatever it has
/// acknowledged it goes without: the sender has forgotten it.
#[derive(Debug)]
pub(super) struct Optimist {
    /// The segment after the last one that has arrived.
    next: u32,
    /// TSval to be echoed.
    echo_ms: u32,
    /// Segments that it offers to take.
    window: u32,
    /// How far ahead of what arrives it acknowledges, in round trips.
    lead: f64,
    /// How long a round trip takes on the empty path.
    rtt: Span,
    /// When the present round trip began, what has arrived in it, and in the one before.
    since: Time,
    arrived: u32,
    arrived_before: u32,
}

impl Optimist {
    pub const fn new(lead: f64, rtt: Span, window: u32) -> Self {
        let since = Time::ZERO;
        Self { next: 0, echo_ms: 0, window, lead, rtt, since, arrived: 0, arrived_before: 0 }
    }

    /// A segment arrived.
    pub fn take(&mut self, now: Time, data: &Data, part: bool) -> Taken {
        self.echo_ms = self.echo_ms.max(data.tsval_ms);
        self.count(now);
        let is_news = data.payload_bytes > 0 && data.number >= self.next;
        let mut number = self.next;
        if is_news {
            self.next = data.number + 1;
            // The sender ignores what is beyond all that it has sent (RFC 9293 §3.10.7.4), so that it
            // costs an ACK: no more than arrives in a round trip can be on its way.
            let lead = (f64::from(self.arrived_before) * self.lead) as u32;
            number = self.next.saturating_add(lead);
        }
        // What was sent again was not believed to have come: no lead, lest all of it is ignored.
        Taken {
            bytes: if is_news { u64::from(data.payload_bytes) } else { 0 },
            ack: (!part).then(|| self.acknowledge(now, number)),
        }
    }

    /// Counts an arrival, by round trips. A pause of more than one leaves nothing to go by.
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
            marks: 0,
            clock: Clock::at(now),
            number,
            tsecr_ms: self.echo_ms,
            window: self.window,
            blocks: [Block { start: 0, end: 0 }; MAX_BLOCKS],
        }
    }
}
