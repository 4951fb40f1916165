//! Measures of a flow's transfer over the complete run.

use super::definition::{
    FLOWS, Measure, MeasureFunction, NUMBER, PERCENT, RATE, Scope, SummaryLocation, TIME,
};
use crate::transfer_stats::TransferOutcome;

pub(super) const ROWS: &[Measure] = &[
    Measure {
        name: "completion_time",
        title: "flow completion time",
        key: "completion_time_s",
        unit: TIME,
        scope: Scope::Flow,
        place: SummaryLocation::Flow,
        any_window: false,
        column: None,
        definition: "Time from the flow's start until all its data were acknowledged, or until its
            last web page was complete; absent if that never was.",
        compute: MeasureFunction::Transfer(completion),
    },
    Measure {
        name: "completion_rate",
        title: "completion rate",
        key: "completion_rate_bps",
        unit: RATE,
        scope: Scope::Flow,
        place: SummaryLocation::Flow,
        any_window: false,
        column: None,
        definition: "All the payload of a flow that ends by itself ÷ its completion time; absent if
            it was not complete, and of video and web pages.",
        compute: MeasureFunction::Transfer(completion_rate),
    },
    Measure {
        name: "unfinished",
        title: "unfinished flows",
        key: "unfinished",
        unit: FLOWS,
        scope: Scope::Flow,
        place: SummaryLocation::Flow,
        any_window: false,
        column: None,
        definition:
            "1 if the flow should have ended by itself and was not complete at the end of the
            run, else 0; absent of flows that never end by themselves.",
        compute: MeasureFunction::Transfer(unfinished),
    },
    Measure {
        name: "efficiency",
        title: "efficiency",
        key: "efficiency",
        unit: NUMBER,
        scope: Scope::Flow,
        place: SummaryLocation::Flow,
        any_window: false,
        column: None,
        definition:
            "Least completion time ÷ the one that was measured; at most 1. The least is 1.5 d +
            S ÷ C + 0.5 d for S bytes over a data path of capacity C with the two-way propagation
            delay d (Guo and Lee 2020); 0-RTT saves one d. Absent of flows without a size, and where
            a capacity of the data path varies.",
        compute: MeasureFunction::Transfer(efficiency),
    },
    Measure {
        name: "bandwidth_estimate",
        title: "bandwidth estimate",
        key: "bandwidth_estimate_bps",
        unit: RATE,
        scope: Scope::Flow,
        place: SummaryLocation::Flow,
        any_window: false,
        column: None,
        definition: "Last bandwidth estimate of the flow's peer cache, or of BBR without one.",
        compute: MeasureFunction::Transfer(estimate),
    },
    Measure {
        name: "harm",
        title: "harm",
        key: "",
        unit: PERCENT,
        scope: Scope::Flow,
        place: SummaryLocation::Conditions,
        any_window: false,
        column: None,
        definition:
            "Share of its throughput (or of another measure) that a flow loses to a newcomer,
            against the condition without it: (x − y) ÷ x with x alone and y next to it, (y − x) ÷ y
            where less is better (Ware et al. 2019). `ResultSet.harm` computes it.",
        compute: MeasureFunction::Conditions,
    },
    Measure {
        name: "download_time",
        title: "download time",
        key: "",
        unit: TIME,
        scope: Scope::Flow,
        place: SummaryLocation::Asked,
        any_window: false,
        column: None,
        definition: "Time from the flow's start until a given size had been delivered, between ends
            of intervals of the series on the line that joins them; absent if it never was.",
        compute: MeasureFunction::Download,
    },
];

pub(crate) fn completion(transfer: &TransferOutcome) -> Option<f64> {
    transfer.completion_time_s
}

pub(crate) fn completion_rate(transfer: &TransferOutcome) -> Option<f64> {
    Some(transfer.bytes? as f64 * 8.0 / transfer.completion_time_s?)
}

pub(crate) fn unfinished(transfer: &TransferOutcome) -> Option<f64> {
    transfer.has_end.then(|| f64::from(u8::from(transfer.completion_time_s.is_none())))
}

/// A transfer ends when the last ACK arrives, half an RTT after the last byte. This compensates for
/// the client's request, which the simulation omits and which takes as long.
pub(crate) fn efficiency(transfer: &TransferOutcome) -> Option<f64> {
    Some((transfer.ideal?.completion_time_s() / transfer.completion_time_s?).min(1.0))
}

pub(crate) fn estimate(transfer: &TransferOutcome) -> Option<f64> {
    transfer.bandwidth_estimate_bps
}

/// Returns the arithmetic mean, or `None` without values.
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
    use crate::transfer_stats::IdealTransfer;

    #[test]
    fn efficiency_is_the_least_time_over_the_time_taken() {
        // 1 MB over 8 Mbit/s and 100 ms: 0.15 + 1 + 0.05 s.
        let ideal = IdealTransfer { sending_s: 1.0, rtt_s: 0.1, handshake_s: 0.1 };
        let transfer = |took_s| TransferOutcome {
            completion_time_s: took_s,
            ideal: Some(ideal),
            ..TransferOutcome::default()
        };
        assert!((efficiency(&transfer(Some(2.4))).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(efficiency(&transfer(Some(1.0))), Some(1.0));
        assert_eq!(efficiency(&transfer(None)), None);
    }

    #[test]
    fn what_has_an_end_is_complete_or_unfinished() {
        let of = |bytes: Option<u64>, completion_time_s| TransferOutcome {
            has_end: bytes.is_some(),
            bytes,
            completion_time_s,
            ..TransferOutcome::default()
        };
        let (ended, late) = (of(Some(1_000_000), Some(0.5)), of(Some(1_000_000), None));
        assert_eq!((completion_rate(&ended), unfinished(&ended)), (Some(16e6), Some(0.0)));
        assert_eq!((completion_rate(&late), unfinished(&late)), (None, Some(1.0)));
        assert_eq!((completion_rate(&of(None, None)), unfinished(&of(None, None))), (None, None));
        // A film, whose bytes depend on the bitrates.
        let film = TransferOutcome { has_end: true, ..of(None, Some(60.0)) };
        assert_eq!((completion_rate(&film), unfinished(&film)), (None, Some(0.0)));
    }
}
