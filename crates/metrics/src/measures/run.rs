//! Measures of all flows together in an interval.

use crate::interval_stats::{FlowIntervalStats, IntervalStats, bits_per_s, known, ratio};

/// Time for which shares have to be fair. Studies of convergence rarely define it; this definition is
/// jostle's.
const HOLD_S: f64 = 5.0;

super::definition::measures! {
    /// Fairness in a phase.
    Fairness, rows FAIRNESS, Run in Fairness;
    of IntervalStats, at |all, _| all;

    /// Jain's index of the throughputs of all flows that were active during part of the phase,
    /// between their start and their stop or completion. 1 if all throughputs are equal, 1/n if one
    /// of n flows gets everything; absent if no flow gets anything. Flows of datagrams
    /// (pings, constant bit rate) do not count, because their rate is fixed.
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

    /// Time since the beginning of the run after which every flow that counts in Jain's index of
    /// the phase has a throughput within 25 % of the mean of all in each second for 5 s; absent if
    /// the phase contains no such seconds. It does not depend on the sampling interval. Over another
    /// time window than a phase it is computed from the series; if the sampling interval exceeds
    /// 1 s, from its intervals.
    convergence_time_s: Option<f64>, "convergence_time", "convergence time", TIME, any;
    |all, _| all.fair_bins.first_that_last(HOLD_S);
}

super::definition::measures! {
    /// Sums and means over all flows in a phase.
    Totals, rows TOTALS, Run in Totals;
    of IntervalStats, at |all, _| all;

    /// Throughput of all flows together, without flows of datagrams.
    total_throughput_bps: f64, "total_throughput", "total throughput", RATE, any;
    |all, _| Some(all.throughput_bps());

    /// Data packets retransmitted by all flows together; absent if unknown for one of them.
    total_retransmitted_packets: Option<u64>, "total_retransmitted", "retransmitted packets, all flows", PACKETS,
        any;
    |all, _| {
        let flows = all.flows.iter().filter(|flow| !flow.carries_other_flows);
        known(flows.map(|flow| flow.retransmitted_packets).sum())
    };

    /// Mean of the flows' mean RTTs, without flows of datagrams.
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

fn starvation(all: &IntervalStats) -> Option<f64> {
    let shown = |flow: &&FlowIntervalStats| flow.is_bulk && !flow.delivered_bytes.is_nan();
    let alike = all.competitors().filter(shown);
    let bytes = alike.map(|flow| flow.delivered_bytes.max(flow.segment_bytes));
    let ends = |(least, most, count): (f64, f64, u32), bytes: f64| {
        (bytes.min(least), bytes.max(most), count + 1)
    };
    let (least, most, count) = bytes.fold((f64::INFINITY, 0.0, 0), ends);
    if count < 2 { None } else { ratio(most, least) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair_bins::FairBins;

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
        let all = IntervalStats::new(vec![pings], vec![], vec![], FairBins::default());
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
            let flows = flows.to_vec();
            starvation(&IntervalStats::new(flows, vec![], vec![], FairBins::default()))
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
}
