//! Capacity of a path from packet pairs.

use jostle_units::Time;

use jostle_congestion::RawAckSample;

/// Number of pairs in the median.
const PAIRS: usize = 9;

/// Packets that are sent closer together than the bottleneck can forward them arrive, and are
/// acknowledged, with the spacing of the bottleneck. The median of the latest such pairs excludes
/// pairs disturbed by other traffic and ACK bursts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PacketPairs {
    /// Send time of the packet that the last ACK acknowledged, and arrival time of that ACK.
    last: Option<(Time, Time)>,
    /// Nanoseconds per packet of the latest pairs, and the index of the next one.
    gaps_ns: [u64; PAIRS],
    next: usize,
    known: usize,
    /// The median of the gaps.
    median_ns: u64,
}

impl PacketPairs {
    pub fn on_ack_before_loss_detection(&mut self, measurement: &RawAckSample) {
        let Some(rtt) = measurement.rtt.filter(|_| measurement.packets > 0) else {
            self.last = None;
            return;
        };
        let this = (measurement.now - rtt, measurement.now);
        let Some((sent, acked)) = self.last.replace(this) else { return };
        let (sent_gap_ns, ack_gap_ns) = (this.0.since(sent).as_ns(), this.1.since(acked).as_ns());
        // Only packets that arrived further apart than they were sent were queued at the
        // bottleneck.
        if ack_gap_ns > 0 && ack_gap_ns / 2 >= sent_gap_ns {
            let gap_ns = ack_gap_ns / u64::from(measurement.packets);
            let oldest_ns = core::mem::replace(&mut self.gaps_ns[self.next], gap_ns);
            self.next = if self.next + 1 < PAIRS { self.next + 1 } else { 0 };
            if self.known == PAIRS && oldest_ns == gap_ns {
                // Skip the median if it cannot change: behind one bottleneck most pairs have the
                // same gap.
                return;
            }
            self.known = (self.known + 1).min(PAIRS);
            let mut gaps_ns = self.gaps_ns;
            let known = &mut gaps_ns[..self.known];
            known.sort_unstable();
            self.median_ns = known[known.len() / 2].max(1);
        }
    }

    /// Packets per second that the path carries; `None` before three pairs.
    pub fn packets_per_s(&self) -> Option<f64> {
        (self.known >= 3).then(|| 1e9 / self.median_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::Span;

    use super::*;

    /// Pairs after ACKs with the given gaps of sending and of arrival, in microseconds.
    fn after(gaps_us: &[(u64, u64)], packets: u32) -> PacketPairs {
        let mut pairs = PacketPairs::default();
        let (mut sent, mut now) = (Time::ZERO, Time::ZERO + Span::from_ms(50));
        for &(sent_us, acked_us) in [(0, 0)].iter().chain(gaps_us) {
            sent += Span::from_us(sent_us);
            now += Span::from_us(acked_us);
            let rtt = Some(now.since(sent));
            pairs.on_ack_before_loss_detection(&RawAckSample {
                now,
                rtt,
                packets,
                ..RawAckSample::default()
            });
        }
        pairs
    }

    #[test]
    fn the_median_of_what_the_path_drew_out_counts() {
        assert_eq!(after(&[(0, 100); 2], 1).packets_per_s(), None);
        assert_eq!(after(&[(0, 100); 3], 1).packets_per_s(), Some(10_000.0));
        assert_eq!(after(&[(0, 200); 3], 2).packets_per_s(), Some(10_000.0));
        assert_eq!(after(&[(100, 100); 20], 1).packets_per_s(), None, "no pairs");
        let mixed = [(0, 100), (0, 9_000), (0, 100), (0, 1), (0, 100)];
        assert_eq!(after(&mixed, 1).packets_per_s(), Some(10_000.0));
        let changed: Vec<_> = [(0, 100); 9].into_iter().chain([(0, 50); 5]).collect();
        assert_eq!(after(&changed, 1).packets_per_s(), Some(20_000.0), "five of nine");
    }
}
