//! The state of a sender that selects its actions.

use jostle_units::{Span, Time};

/// Number of axes.
pub const AXES: usize = 6;

/// Weight of a new gap in the fast averages.
const ALPHA: f64 = 1.0 / 8.0;
/// Weight of a new gap in the slow average.
const SLOW_ALPHA: f64 = 1.0 / 256.0;

const SEND_EWMA: usize = 0;
const REC_EWMA: usize = 1;
const RTT_RATIO: usize = 2;
const SLOW_REC_EWMA: usize = 3;
const RTT_DIFF: usize = 4;
const QUEUEING_DELAY: usize = 5;

/// Names of the axes, with their units.
pub const NAMES: [&str; AXES] = [
    "send_ewma_ms",
    "rec_ewma_ms",
    "rtt_ratio",
    "slow_rec_ewma_ms",
    "rtt_diff_ms",
    "queueing_delay_ms",
];

/// `Memory` of Remy, in the order of its message. A tick of Remy is a millisecond. All values are
/// zero until the second packet is acknowledged.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    values: [f64; AXES],
    /// Send time of the last acknowledged packet and arrival time of its ACK; `None` before the
    /// first.
    last: Option<(Time, Time)>,
    min_rtt_ms: f64,
}

impl Memory {
    /// Creates a memory with these values.
    #[cfg(test)]
    pub fn of(values: [f64; AXES]) -> Self {
        Self { values, ..Self::default() }
    }

    /// One value per axis.
    pub fn values(&self) -> &[f64; AXES] {
        &self.values
    }

    /// Returns the gaps per packet since the last ACK. The current ACK of `packets` arrived at
    /// `now` for a packet sent at `sent`. `None` for the first ACK.
    pub fn gaps(&mut self, sent: Time, now: Time, packets: u32) -> Option<(f64, f64)> {
        let latest = self.last.map_or(sent, |(last_sent, _)| last_sent.max(sent));
        let (last_sent, last_now) = self.last.replace((latest, now))?;
        let per_packet = |gap: Span| ms(gap) / f64::from(packets);
        Some((per_packet(sent.since(last_sent)), per_packet(now.since(last_now))))
    }

    /// Processes the first ACK, which only sets the minimum RTT.
    pub fn begin(&mut self, rtt: Span) {
        self.min_rtt_ms = ms(rtt);
    }

    /// Processes an acknowledged packet (`Memory::packets_received`). `lost` packets before it were
    /// lost.
    pub fn update(&mut self, (send_gap_ms, rec_gap_ms): (f64, f64), rtt: Span, lost: u32) {
        let mut average = |axis: usize, weight: f64, gap_ms: f64| {
            self.values[axis] += weight * (gap_ms - self.values[axis]);
        };
        average(SEND_EWMA, ALPHA, send_gap_ms);
        average(REC_EWMA, ALPHA, rec_gap_ms);
        average(SLOW_REC_EWMA, SLOW_ALPHA, rec_gap_ms);
        let rtt_ms = ms(rtt);
        self.min_rtt_ms = self.min_rtt_ms.min(rtt_ms);
        self.values[RTT_RATIO] = if self.min_rtt_ms > 0.0 { rtt_ms / self.min_rtt_ms } else { 1.0 };
        self.values[RTT_DIFF] = rtt_ms - self.min_rtt_ms;
        // Difference to the number of the previous packet (`pkt_outstanding`): 1 unless packets
        // were lost.
        let step = 1.0 + f64::from(lost);
        self.values[QUEUEING_DELAY] = self.values[REC_EWMA] * step;
    }
}

fn ms(span: Span) -> f64 {
    span.as_secs_f64() * 1e3
}
