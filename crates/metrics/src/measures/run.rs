//! Measures of all flows together in an interval.

use crate::interval_stats::{FlowIntervalStats, IntervalStats, bits_per_s, known, ratio};

/// Shares are fair if they are within this fraction of the mean …
const TOLERANCE: f64 = 0.25;
/// … for this time. Studies of convergence rarely define it; this definition is jostle's.
const HOLD_S: f64 = 5.0;

super::definition::measures! {
    /// Fairness in a phase.
    Fairness, rows FAIRNESS, Run in Fairness;
    of IntervalStats<'_>, at |all, _| all;

    /// Jain's index of the throughputs of all flows that were active during part of the phase,
    /// between their start and their stop or completion. 1 if all throughputs are equal, 1/n if one
    /// of n flows gets everything; absent if no flow gets anything. Pings do not count, because
    /// their rate is fixed.
    jain: Option<f64>, "jain", "Jain's index", NUMBER, any;
    |all, _| {
        let shares = all.competitors().map(|flow| bits_per_s(flow.received_bytes, flow.length_ns));
        jain(&shares.collect::<Vec<_>>())
    };

    /// Largest ÷ smallest goodput of the bulk flows that were active during part of the phase;
    /// absent if there are fewer than two. A flow without goodput counts as one segment, so that
    /// the ratio is a lower bound.
    starvation: Option<f64>, "starvation", "largest ÷ smallest goodput", NUMBER, any;
    |all, _| starvation(all);

    /// Time since the beginning of the run after which every flow, except pings, has a throughput
    /// within 25 % of the mean of all in each interval of the series for 5 s; absent if that never
    /// happens.
    convergence_time_s: Option<f64>, "convergence_time", "convergence time", TIME, any;
    |all, _| convergence_time_s(all);
}

super::definition::measures! {
    /// Sums and means over all flows in a phase.
    Totals, rows TOTALS, Run in Totals;
    of IntervalStats<'_>, at |all, _| all;

    /// Throughput of all flows together, without pings.
    total_throughput_bps: f64, "total_throughput", "total throughput", RATE, any;
    |all, _| Some(all.throughput_bps());

    /// Data packets retransmitted by all flows together; absent if unknown for one of them.
    total_retransmitted_packets: Option<u64>, "total_retransmitted", "retransmitted packets, all flows", PACKETS,
        any;
    |all, _| known(all.flows.iter().map(|flow| flow.retransmitted_packets).sum());

    /// Mean of the flows' mean RTTs, without pings.
    rtt_of_flows_s: Option<f64>, "mean_rtt", "mean RTT, all flows", ROUND_TRIP, any;
    |all, _| {
        let rtts_s = all.flows.iter().filter(|flow| flow.counts_for_share).filter_map(|flow| flow.rtt_mean_s);
        super::transfer::mean(rtts_s)
    };
}

/// Returns Jain's index (Σx)² ÷ n·Σx² (Jain, Chiu, Hawe 1984): 1 if all shares are equal, 1/n if
/// one of n flows has everything.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

fn starvation(all: &IntervalStats<'_>) -> Option<f64> {
    let shown = |flow: &&FlowIntervalStats| flow.is_bulk && !flow.delivered_bytes.is_nan();
    let alike = all.competitors().filter(shown);
    let bytes = alike.map(|flow| flow.delivered_bytes.max(flow.segment_bytes));
    let ends = |(least, most, count): (f64, f64, u32), bytes: f64| {
        (bytes.min(least), bytes.max(most), count + 1)
    };
    let (least, most, count) = bytes.fold((f64::INFINITY, 0.0, 0), ends);
    if count < 2 { None } else { ratio(most, least) }
}

fn convergence_time_s(all: &IntervalStats<'_>) -> Option<f64> {
    let interval_s = all.rates.interval_s()?;
    let needed = ((HOLD_S / interval_s).round() as u64).max(1);
    let competing = all.flows.iter().filter(|flow| flow.counts_for_share).count();
    let (mut held, mut begun_s) = (0, 0.0);
    for (end_s, rates) in all.rates.iter() {
        let shares = || {
            rates
                .iter()
                .zip(&all.flows)
                .filter(|(_, flow)| flow.counts_for_share)
                .map(|(rate, _)| *rate)
        };
        let mean = shares().sum::<f64>() / competing as f64;
        if mean > 0.0 && shares().all(|rate| (rate - mean).abs() <= TOLERANCE * mean) {
            held += 1;
            if held == 1 {
                begun_s = end_s - interval_s;
            }
            if held == needed {
                return Some(begun_s);
            }
        } else {
            held = 0;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval_stats::ThroughputSeries;
    use crate::tables::FlowTable;

    #[test]
    fn jain_goes_from_one_to_one_over_n() {
        assert_eq!(jain(&[5.0, 5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain(&[7.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[3.0, 1.0]), Some(0.8));
        // Two Vegas flows of +0 and +200 ms in Turkovic et al.: 14.99 and 72.60 Mbit/s, published as
        // 0.66 (a mean over time); the index of the means is 0.698.
        assert!((jain(&[14.99, 72.60]).unwrap() - 0.698).abs() < 5e-4);
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[]), None);
    }

    /// Pings alone: JSON writes −0 as another number than 0.
    #[test]
    fn nothing_in_total_has_no_sign() {
        let pings = FlowIntervalStats {
            received_bytes: 50.0,
            length_ns: 8e9,
            ..FlowIntervalStats::default()
        };
        let table = FlowTable::default();
        let all = IntervalStats::new(
            vec![pings],
            vec![],
            vec![],
            ThroughputSeries::between(&table, 1, 0.0, 8.0),
        );
        assert_eq!(all.throughput_bps().to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn starvation_is_the_ratio_of_the_ends_among_bulk_flows() {
        let flow = |is_bulk, delivered_bytes| FlowIntervalStats {
            counts_for_share: true,
            is_active: true,
            length_ns: 1e9,
            segment_bytes: 1_448.0,
            is_bulk,
            delivered_bytes,
            ..FlowIntervalStats::default()
        };
        let of = |flows: &[FlowIntervalStats]| {
            let table = FlowTable::default();
            let rates = ThroughputSeries::between(&table, flows.len(), 0.0, 1.0);
            starvation(&IntervalStats::new(flows.to_vec(), vec![], vec![], rates))
        };
        assert_eq!(of(&[flow(true, 8e6), flow(true, 2e6), flow(true, 4e6)]), Some(4.0));
        assert_eq!(of(&[flow(true, 8e6), flow(false, 1e3)]), None);
        assert_eq!(of(&[flow(true, 1_448e3), flow(true, 0.0)]), Some(1_000.0));
        let away = FlowIntervalStats { is_active: false, ..flow(true, 0.0) };
        assert_eq!(of(&[flow(true, 8e6), flow(true, 4e6), away]), Some(2.0));
    }

    proptest::proptest! {
        #[test]
        fn jain_lies_in_its_range(shares in proptest::collection::vec(0.0..1e12, 1..50)) {
            if let Some(index) = jain(&shares) {
                let least = 1.0 / shares.len() as f64;
                proptest::prop_assert!((least - 1e-12..=1.0 + 1e-12).contains(&index));
            }
        }
    }

    /// Two flows that share and one of pings, an interval per second.
    fn converged(rates: &[[f64; 2]], from_s: f64) -> Option<f64> {
        let mut table = FlowTable::default();
        for (second, [one, other]) in (1..).zip(rates) {
            for rate in [*one, *other, 0.01] {
                table.time_s.push(f64::from(second));
                table.throughput_bps.push(rate);
            }
        }
        let flow = |competes| FlowIntervalStats {
            counts_for_share: competes,
            ..FlowIntervalStats::default()
        };
        let flows = vec![flow(true), flow(true), flow(false)];
        convergence_time_s(&IntervalStats::new(
            flows,
            vec![],
            vec![],
            ThroughputSeries::between(&table, 3, from_s, 1e9),
        ))
    }

    #[test]
    fn flows_have_converged_when_they_stay_together_for_five_seconds() {
        let apart = [9.0, 1.0];
        let close = [5.0, 4.0];
        let rates = [apart, close, close, apart, close, close, close, close, close, apart];
        assert_eq!(converged(&rates, 0.0), Some(4.0));
        assert_eq!(converged(&rates, 5.0), None);
        assert_eq!(converged(&[[0.0; 2]; 10], 0.0), None);
        assert_eq!(converged(&[close], 0.0), None);
        // 25 % off the mean is still fair.
        assert_eq!(converged(&[[5.0, 3.0]; 6], 0.0), Some(0.0));
        assert_eq!(converged(&[[5.0, 2.9]; 6], 0.0), None);
    }
}
