//! Measures of a flow's transfer, over the whole run.

use super::row::{Compute, FLOWS, Measure, NUMBER, PERCENT, Place, RATE, Scope, TIME};
use crate::transfer::Transfer;

pub(super) const ROWS: &[Measure] = &[
    Measure {
        name: "completion",
        title: "completion",
        key: "completion_s",
        unit: TIME,
        scope: Scope::Flow,
        place: Place::Flow,
        any_window: false,
        column: None,
        definition: "Time from the flow's start until all its data were acknowledged; absent if
            that never was.",
        compute: Compute::Transfer(completion),
    },
    Measure {
        name: "completion_rate",
        title: "completion rate",
        key: "completion_rate_bps",
        unit: RATE,
        scope: Scope::Flow,
        place: Place::Flow,
        any_window: false,
        column: None,
        definition: "All the payload of a flow that ends by itself ÷ its completion time; absent if
            it was not complete.",
        compute: Compute::Transfer(completion_rate),
    },
    Measure {
        name: "unfinished",
        title: "unfinished",
        key: "unfinished",
        unit: FLOWS,
        scope: Scope::Flow,
        place: Place::Flow,
        any_window: false,
        column: None,
        definition:
            "1 if the flow should have ended by itself and was not complete at the end of the
            run, else 0; absent of flows that have no end of their own.",
        compute: Compute::Transfer(unfinished),
    },
    Measure {
        name: "efficiency",
        title: "efficiency",
        key: "efficiency",
        unit: NUMBER,
        scope: Scope::Flow,
        place: Place::Flow,
        any_window: false,
        column: None,
        definition:
            "Least completion time, 1.5 d + S ÷ C + 0.5 d for S bytes over a capacity C with
            the two-way propagation delay d (Guo and Lee 2020), ÷ the one that was measured; at most
            1. Absent of flows without a size, and where a capacity of the path varies.",
        compute: Compute::Transfer(efficiency),
    },
    Measure {
        name: "estimate",
        title: "estimate",
        key: "estimate_bps",
        unit: RATE,
        scope: Scope::Flow,
        place: Place::Flow,
        any_window: false,
        column: None,
        definition: "What the bandwidth estimator of the flow's memory says in the end; without
            one, what BBR's does.",
        compute: Compute::Transfer(estimate),
    },
    Measure {
        name: "harm",
        title: "harm",
        key: "",
        unit: PERCENT,
        scope: Scope::Flow,
        place: Place::Conditions,
        any_window: false,
        column: None,
        definition:
            "What of its throughput (or of another measure) a flow loses through a newcomer,
            against the condition without it: (x − y) ÷ x with x alone and y beside it, (y − x) ÷ y
            where less is better (Ware et al. 2019). `ResultSet.harm` computes it.",
        compute: Compute::Conditions,
    },
    Measure {
        name: "download_time",
        title: "download time",
        key: "",
        unit: TIME,
        scope: Scope::Flow,
        place: Place::Asked,
        any_window: false,
        column: None,
        definition: "Time from the flow's start until a given size had been delivered, between ends
            of intervals of the series on the line that joins them; absent if it never was.",
        compute: Compute::Download,
    },
];

pub(crate) fn completion(transfer: &Transfer) -> Option<f64> {
    transfer.completion_s
}

pub(crate) fn completion_rate(transfer: &Transfer) -> Option<f64> {
    Some(transfer.bytes? as f64 * 8.0 / transfer.completion_s?)
}

pub(crate) fn unfinished(transfer: &Transfer) -> Option<f64> {
    transfer.bytes.map(|_| f64::from(u8::from(transfer.completion_s.is_none())))
}

/// A transfer ends with the last ACK's arrival, half a round trip after the last byte's. That makes
/// up for the client's request, which takes as long and which it does not have.
pub(crate) fn efficiency(transfer: &Transfer) -> Option<f64> {
    Some((transfer.ideal?.completion_s() / transfer.completion_s?).min(1.0))
}

pub(crate) fn estimate(transfer: &Transfer) -> Option<f64> {
    transfer.estimate_bps
}

/// The arithmetic mean; none of nothing.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0u32);
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::Ideal;

    #[test]
    fn efficiency_is_the_least_time_over_the_time_taken() {
        // 1 MB over 8 Mbit/s and 100 ms: 0.15 + 1 + 0.05 s.
        let ideal = Ideal { bytes: 1e6, capacity_bps: 8e6, rtt_s: 0.1 };
        let transfer =
            |took_s| Transfer { completion_s: took_s, ideal: Some(ideal), ..Transfer::default() };
        assert!((efficiency(&transfer(Some(2.4))).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(efficiency(&transfer(Some(1.0))), Some(1.0));
        assert_eq!(efficiency(&transfer(None)), None);
    }

    #[test]
    fn what_has_an_end_is_complete_or_unfinished() {
        let of = |bytes, completion_s| Transfer { bytes, completion_s, ..Transfer::default() };
        let (ended, late) = (of(Some(1_000_000), Some(0.5)), of(Some(1_000_000), None));
        assert_eq!((completion_rate(&ended), unfinished(&ended)), (Some(16e6), Some(0.0)));
        assert_eq!((completion_rate(&late), unfinished(&late)), (None, Some(1.0)));
        assert_eq!((completion_rate(&of(None, None)), unfinished(&of(None, None))), (None, None));
    }
}
