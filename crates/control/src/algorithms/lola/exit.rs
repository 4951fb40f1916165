//! Where slow start ends: HyStart of Linux 4.4, its rounds and its ACK train.

/// A window from which on an end is looked for (`hystart_low_window`).
pub const LEAST_CWND: u32 = 16;
/// ACKs so far apart at most are a train (`hystart_ack_delta`).
const SPACING_MS: u64 = 2;

/// Rounds of slow start, and the trains of ACKs that begin with them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    start_ms: u64,
    /// The packet whose acknowledgement ends the round.
    end: u64,
    last_ack_ms: u64,
    /// A train was as long as half of the base RTT. The module looks no further then, for good.
    pub train_found: bool,
}

impl Rounds {
    /// A round begins, which ends with the acknowledgement of `end`.
    pub fn begin(&mut self, now_ms: u64, end: u64) {
        (self.start_ms, self.last_ack_ms, self.end) = (now_ms, now_ms, end);
    }

    /// Whether the round is over.
    pub fn over(&self, first_unacked: u64) -> bool {
        first_unacked > self.end
    }

    /// Idle time is no part of a round.
    pub fn shift(&mut self, idle_ms: u64, now_ms: u64) {
        self.start_ms = (self.start_ms + idle_ms).min(now_ms);
    }

    /// An ACK came. Returns whether it makes the train long enough, which Linux before 5.5 judges
    /// by half of the base RTT, paced or not.
    pub fn take_ack(&mut self, now_ms: u64, base_us: u64) -> bool {
        if now_ms.saturating_sub(self.last_ack_ms) > SPACING_MS {
            return false;
        }
        self.last_ack_ms = now_ms;
        self.train_found = now_ms.saturating_sub(self.start_ms) > base_us / 1000 / 2;
        self.train_found
    }
}
