//! Exit from slow start: HyStart of Linux 4.4, its rounds and its ACK train.

/// Minimum window for an exit (`hystart_low_window`).
pub const LEAST_CWND: u32 = 16;
/// Maximum spacing of ACKs in a train (`hystart_ack_delta`).
const SPACING_MS: u64 = 2;

/// Rounds of slow start, and the trains of ACKs that begin with them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    start_ms: u64,
    /// Packet whose acknowledgement ends the round.
    end: u64,
    last_ack_ms: u64,
    /// Whether a train was as long as half of the base RTT. The module then never checks again.
    pub train_found: bool,
}

impl Rounds {
    /// Starts a round, which ends with the acknowledgement of `end`.
    pub fn begin(&mut self, now_ms: u64, end: u64) {
        (self.start_ms, self.last_ack_ms, self.end) = (now_ms, now_ms, end);
    }

    /// Returns whether the round has ended.
    pub fn over(&self, first_unacked: u64) -> bool {
        first_unacked > self.end
    }

    /// Excludes idle time from the round.
    pub fn shift(&mut self, idle_ms: u64, now_ms: u64) {
        self.start_ms = (self.start_ms + idle_ms).min(now_ms);
    }

    /// Processes an ACK. Returns whether the train is long enough. Linux before 5.5 compares it
    /// with half of the base RTT, with or without pacing.
    pub fn take_ack(&mut self, now_ms: u64, base_us: u64) -> bool {
        if now_ms.saturating_sub(self.last_ack_ms) > SPACING_MS {
            return false;
        }
        self.last_ack_ms = now_ms;
        self.train_found = now_ms.saturating_sub(self.start_ms) > base_us / 1000 / 2;
        self.train_found
    }
}
