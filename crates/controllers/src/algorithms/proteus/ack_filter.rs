//! ACK filter: only RTTs of ACKs with usual spacing are reliable.
//!
//! On wireless links ACKs arrive in bursts after pauses. An RTT is ignored if the gaps before and
//! after its ACK differ far more than on average. The following RTTs are also ignored until they
//! have fallen to the average. The values are the release's (`OnCongestionEvent` of its
//! queue of intervals), which averages over the ACKs of useful intervals; here all ACKs are
//! averaged.

use jostle_units::{Span, Time};

use jostle_congestion::AckSample;

/// A ratio of successive gaps of this many times the average starts a burst.
const BURST_RATIO: f64 = 50.0;
/// Weight of the latest ratio in the average.
const RATIO_WEIGHT: f64 = 0.1;
/// Resolution of the release's clock. Here gaps can be shorter and RTTs can remain equal forever.
/// In the release, the ratio to a gap of 0, as in its loss reports, is infinite and makes the
/// average infinite for good.
const TICK: Span = Span::from_us(1);

/// An ACK whose RTT is evaluated at the next ACK.
#[derive(Clone, Copy, Debug)]
struct PendingAck {
    sent_at: Time,
    rtt: Span,
    /// Smoothed RTT after the ACK.
    srtt: Span,
    /// Time since the previous ACK; `None` for the first.
    gap: Option<Span>,
}

/// An RTT with its evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilteredRtt {
    /// Send time of the packet.
    pub(super) sent_at: Time,
    pub(super) rtt: Span,
    pub(super) trusted: bool,
}

/// State of the filter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckFilter {
    pending: Option<PendingAck>,
    /// Arrival time of the latest ACK with an RTT.
    latest: Option<Time>,
    /// Average ratio of the longer to the shorter of two successive gaps.
    ratio: Option<f64>,
    in_burst: bool,
}

impl AckFilter {
    /// Processes an ACK with RTT `rtt`. Returns the evaluation of the previous one.
    pub(super) fn next(&mut self, ack: &AckSample, rtt: Span) -> Option<FilteredRtt> {
        let gap = self.latest.map(|latest| ack.now.since(latest).max(TICK));
        self.latest = Some(ack.now);
        let next = PendingAck { sent_at: ack.sent_at, rtt, srtt: ack.srtt, gap };
        let judged = self.pending.replace(next)?;
        let trusted = match (judged.gap, gap) {
            (Some(before), Some(after)) => self.trusts(&judged, before, after, rtt),
            _ => false,
        };
        Some(FilteredRtt { sent_at: judged.sent_at, rtt: judged.rtt, trusted })
    }

    fn trusts(&mut self, judged: &PendingAck, before: Span, after: Span, next_rtt: Span) -> bool {
        let ratio = before.max(after).as_secs_f64() / before.min(after).as_secs_f64();
        let average = self.ratio.unwrap_or(ratio);
        self.ratio = Some(average + RATIO_WEIGHT * (ratio - average));
        if ratio > BURST_RATIO * average {
            self.in_burst = true;
            return false;
        }
        if !self.in_burst {
            return true;
        }
        // The release compares with `>` and `<`, which are both false while all RTTs are equal.
        if next_rtt >= judged.rtt && judged.rtt <= judged.srtt + TICK {
            self.in_burst = false;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::ack;

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;

    /// An ACK at `now_ns` of a packet with an RTT of `rtt_ns`; the smoothed RTT is 40 ms.
    fn next(filter: &mut AckFilter, now_ns: u64, rtt_ns: u64) -> Option<FilteredRtt> {
        let now = Time::from_ns(now_ns);
        let sent_at = Time::from_ns(now_ns - rtt_ns);
        filter.next(&AckSample { now, sent_at, ..ack(1) }, Span::from_ns(rtt_ns))
    }

    #[test]
    fn an_rtt_is_judged_by_the_gaps_around_its_ack() {
        let mut filter = AckFilter::default();
        assert_eq!(next(&mut filter, 100 * MS, 40 * MS), None, "nothing came before");
        let first = next(&mut filter, 101 * MS, 41 * MS).unwrap();
        assert_eq!(
            (first.sent_at, first.trusted),
            (Time::from_ns(60 * MS), false),
            "no gap before"
        );
        let second = next(&mut filter, 102 * MS, 42 * MS).unwrap();
        assert_eq!((second.rtt, second.trusted), (Span::from_ms(41), true));
    }

    /// Gaps of 1 ms, then a pause of 60 ms, 60 times the average, and the burst after it at 10 µs.
    #[test]
    fn a_burst_after_a_pause_is_overlooked_until_the_rtt_is_down() {
        let mut filter = AckFilter::default();
        let mut now = 100 * MS;
        for _ in 0..10 {
            next(&mut filter, now, 40 * MS);
            now += MS;
        }
        // The ACK at the end of the regular ones: the gap after it is 60 times that before.
        now += 59 * MS;
        assert!(!next(&mut filter, now, 100 * MS).unwrap().trusted);
        // The first of the burst, and those that follow with RTTs above the average.
        for rtt_ms in [99, 98, 97] {
            now += 10 * US;
            assert!(!next(&mut filter, now, rtt_ms * MS).unwrap().trusted, "{rtt_ms} ms");
        }
        // 39 ms are below the average, and the next RTT is longer: what follows is trusted again.
        for (rtt_ms, trusted) in [(39, false), (41, false), (40, true), (40, true)] {
            now += MS;
            assert_eq!(
                next(&mut filter, now, rtt_ms * MS).unwrap().trusted,
                trusted,
                "{rtt_ms} ms"
            );
        }
    }

    #[test]
    fn acks_of_one_instant_and_equal_rtts_end_no_trust_for_good() {
        let mut filter = AckFilter::default();
        let mut now = 100 * MS;
        let mut trusted = 0;
        for _ in 0..100 {
            for _ in 0..2 {
                trusted += u32::from(next(&mut filter, now, 40 * MS).is_some_and(|it| it.trusted));
            }
            now += MS;
        }
        // All but the two that have no ACK on one side.
        assert_eq!(trusted, 198);
    }
}
