//! Statistics of the pings of a flow.

use std::collections::BTreeMap;

use jostle_units::Span;

use crate::tables::seconds;

/// Outcome of pings: `sent` = `echoed` + `lost` + `waiting`.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Pings {
    /// Pings sent.
    pub sent: u64,
    /// Pings whose reply arrived in time.
    pub echoed: u64,
    /// Pings without a reply in time.
    pub lost: u64,
    /// Pings without a reply whose timeout lies after the end of the run.
    pub waiting: u64,
    /// Smallest RTT.
    pub rtt_min_s: Option<f64>,
    /// Largest RTT.
    pub rtt_max_s: Option<f64>,
    /// Number of replies per RTT in whole milliseconds, without zero counts.
    pub echoes_by_ms: Vec<(u64, u64)>,
    /// Number of loss runs per length.
    pub losses_by_length: Vec<(u64, u64)>,
}

/// Counts replies by RTT, and losses by the length of consecutive losses. Memory grows with the
/// range of the RTTs, not with the number of pings.
#[derive(Clone, Debug, Default)]
pub(crate) struct PingMeter {
    echoed: u64,
    lost: u64,
    /// Replies per RTT in whole milliseconds.
    by_ms: BTreeMap<u64, u64>,
    rtt_min: Option<Span>,
    rtt_max: Span,
    /// Numbers of the first and the last ping of the most recent loss run.
    row: Option<(u32, u32)>,
    /// Number of loss runs per length, without the most recent one.
    by_length: BTreeMap<u64, u64>,
}

impl PingMeter {
    pub(crate) fn echoed(&mut self, rtt: Span) {
        self.echoed += 1;
        *self.by_ms.entry(rtt.as_ns() / 1_000_000).or_default() += 1;
        self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
        self.rtt_max = self.rtt_max.max(rtt);
    }

    /// Records a lost ping. Numbers must increase.
    pub(crate) fn unanswered(&mut self, number: u32) {
        self.lost += 1;
        self.row = match self.row {
            Some((first, last)) if number == last + 1 => Some((first, number)),
            ended => {
                if let Some(length) = ended.map(length) {
                    *self.by_length.entry(length).or_default() += 1;
                }
                Some((number, number))
            }
        };
    }

    /// Returns the statistics at the end of the run, in which `sent` pings were sent.
    pub(crate) fn finish(&self, sent: u64) -> Pings {
        let mut by_length = self.by_length.clone();
        if let Some(length) = self.row.map(length) {
            *by_length.entry(length).or_default() += 1;
        }
        Pings {
            sent,
            echoed: self.echoed,
            lost: self.lost,
            waiting: sent - self.echoed - self.lost,
            rtt_min_s: self.rtt_min.map(|rtt| seconds(rtt.as_ns())),
            rtt_max_s: (self.echoed > 0).then(|| seconds(self.rtt_max.as_ns())),
            echoes_by_ms: self.by_ms.iter().map(|(&ms, &count)| (ms, count)).collect(),
            losses_by_length: by_length.into_iter().collect(),
        }
    }
}

fn length((first, last): (u32, u32)) -> u64 {
    u64::from(last - first) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn losses_in_a_row_are_one_event() {
        let mut meter = PingMeter::default();
        for number in [3, 7, 8, 9, 11, 20, 21] {
            meter.unanswered(number);
        }
        let pings = meter.finish(30);
        assert_eq!(pings.losses_by_length, [(1, 2), (2, 1), (3, 1)]);
        assert_eq!((pings.lost, pings.waiting), (7, 23));
    }

    #[test]
    fn echoes_are_counted_by_whole_milliseconds() {
        let mut meter = PingMeter::default();
        for us in [564_000, 564_999, 565_000, 2_174_001] {
            meter.echoed(Span::from_us(us));
        }
        let pings = meter.finish(4);
        assert_eq!(pings.echoes_by_ms, [(564, 2), (565, 1), (2174, 1)]);
        assert_eq!((pings.rtt_min_s, pings.rtt_max_s), (Some(0.564), Some(2.174_001)));
        assert_eq!(PingMeter::default().finish(0).rtt_max_s, None);
    }

    proptest! {
        #[test]
        fn events_hold_every_loss(lost in prop::collection::btree_set(0u32..200, 0..100)) {
            let mut meter = PingMeter::default();
            lost.iter().for_each(|&number| meter.unanswered(number));
            let pings = meter.finish(200);
            let held: u64 = pings.losses_by_length.iter().map(|(length, count)| length * count).sum();
            prop_assert_eq!(held, lost.len() as u64);
            let events = lost.iter().filter(|&&n| n == 0 || !lost.contains(&(n - 1))).count();
            let counted: u64 = pings.losses_by_length.iter().map(|(_, count)| count).sum();
            prop_assert_eq!(counted, events as u64);
        }
    }
}
