//! Measures of a flow's pings over the complete run.

use super::definition::{
    DisplayUnit, Measure, MeasureArguments, MeasureFunction, NUMBER, PACKETS, PERCENT, ROUND_TRIP,
    Scope, SummaryLocation,
};
use crate::ping_meter::Pings;

type Of = fn(&Pings, &MeasureArguments) -> Option<f64>;

const fn row(
    name: &'static str,
    title: &'static str,
    unit: DisplayUnit,
    definition: &'static str,
    compute: Of,
) -> Measure {
    Measure {
        name,
        title,
        key: "",
        unit,
        scope: Scope::Flow,
        place: SummaryLocation::Asked,
        any_window: false,
        column: None,
        definition,
        compute: MeasureFunction::Pings(compute),
    }
}

pub(super) const ROWS: &[Measure] = &[
    row(
        "echo_rtt",
        "RTT of the echoes",
        ROUND_TRIP,
        "A percentile of the round trips of pings that came back in time: 0 and 100 are exact, others
        to a millisecond. Their mean is `rtt`.",
        rtt_s,
    ),
    row(
        "echo_share",
        "share of the echoes",
        PERCENT,
        "Echoes whose round trip, in whole milliseconds, lies in a range ÷ all echoes.",
        share,
    ),
    Measure {
        key: "pings_lost",
        place: SummaryLocation::Flow,
        ..row(
            "pings_lost",
            "pings lost",
            PACKETS,
            "Pings that were not back in time, without those whose timeout lies after the end of the run.",
            |pings, _| lost(pings).map(|lost| lost as f64),
        )
    },
    row(
        "single_losses",
        "single losses",
        PERCENT,
        "Lost pings whose neighbours came back ÷ lost pings; 0 if none was lost.",
        |pings, _| decided(pings).map(single),
    ),
    row(
        "loss_events",
        "loss events",
        NUMBER,
        "How often two or more pings in a row were lost.",
        |pings, _| {
            let pings = decided(pings)?;
            Some(in_a_row(pings).filter(|run| run.0 > 1).map(|run| run.1).sum::<u64>() as f64)
        },
    ),
    row(
        "longest_loss",
        "longest loss",
        PACKETS,
        "Most pings in a row that were lost.",
        |pings, _| {
            decided(pings).map(|it| in_a_row(it).map(|run| run.0).max().unwrap_or(0) as f64)
        },
    ),
];

/// Returns the pings if at least one was answered or lost.
fn decided(pings: &Pings) -> Option<&Pings> {
    (pings.echoed + pings.lost > 0).then_some(pings)
}

/// Returns the pings if at least one reply arrived. Without a reply the RTT is unknown.
fn came_back(pings: &Pings) -> Option<&Pings> {
    (pings.echoed > 0).then_some(pings)
}

/// Returns the number of lost pings, if at least one was answered or lost.
pub(crate) fn lost(pings: &Pings) -> Option<u64> {
    decided(pings).map(|pings| pings.lost)
}

/// Returns the lengths of loss runs with their number.
fn in_a_row(pings: &Pings) -> impl Iterator<Item = (u64, u64)> {
    pings.losses_by_length.iter().copied()
}

fn rtt_s(pings: &Pings, asked: &MeasureArguments) -> Option<f64> {
    let pings = came_back(pings)?;
    let percentile = asked.percentile?;
    if percentile <= 0.0 {
        return pings.rtt_min_s;
    }
    if percentile >= 100.0 {
        return pings.rtt_max_s;
    }
    let wanted = percentile / 100.0 * pings.echoed as f64;
    let mut counted = 0;
    let (ms, _) = pings.echoes_by_ms.iter().find(|(_, count)| {
        counted += count;
        counted as f64 >= wanted
    })?;
    // The RTT is known in whole milliseconds; the middle is at most half a millisecond off.
    Some((*ms as f64 + 0.5) / 1e3)
}

fn share(pings: &Pings, asked: &MeasureArguments) -> Option<f64> {
    let pings = came_back(pings)?;
    let low = asked.above_ms.unwrap_or(f64::NEG_INFINITY);
    let high = asked.below_ms.unwrap_or(f64::INFINITY);
    let inside = |(ms, _): &&(u64, u64)| (low..high).contains(&(*ms as f64));
    let count: u64 = pings.echoes_by_ms.iter().filter(inside).map(|(_, count)| count).sum();
    Some(count as f64 / pings.echoed as f64)
}

fn single(pings: &Pings) -> f64 {
    let count: u64 = in_a_row(pings).filter(|run| run.0 == 1).map(|run| run.1).sum();
    if pings.lost == 0 { 0.0 } else { count as f64 / pings.lost as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measures;

    fn pings() -> Pings {
        Pings {
            sent: 20,
            echoed: 10,
            lost: 10,
            waiting: 0,
            rtt_min_s: Some(0.564_1),
            rtt_max_s: Some(2.174_3),
            echoes_by_ms: vec![(564, 1), (597, 6), (620, 2), (2174, 1)],
            losses_by_length: vec![(1, 3), (2, 1), (5, 1)],
        }
    }

    fn of(name: &str, pings: &Pings, asked: MeasureArguments) -> Option<f64> {
        match measures::named(name).unwrap().compute {
            MeasureFunction::Pings(compute) => compute(pings, &asked),
            _ => None,
        }
    }

    #[test]
    fn quantiles_and_shares_of_echoes_are_those_of_the_counts() {
        let at = |percentile| MeasureArguments {
            percentile: Some(percentile),
            ..MeasureArguments::default()
        };
        assert_eq!(of("echo_rtt", &pings(), at(50.0)), Some(0.5975));
        assert_eq!(of("echo_rtt", &pings(), at(90.0)), Some(0.6205));
        assert_eq!(of("echo_rtt", &pings(), at(0.0)), Some(0.5641));
        assert_eq!(of("echo_rtt", &pings(), at(100.0)), Some(2.1743));
        let within = |above_ms, below_ms| MeasureArguments {
            above_ms,
            below_ms,
            ..MeasureArguments::default()
        };
        assert_eq!(of("echo_share", &pings(), within(Some(560.0), Some(625.0))), Some(0.9));
        assert_eq!(of("echo_share", &pings(), within(Some(564.0), Some(597.0))), Some(0.1));
        assert_eq!(of("echo_share", &pings(), MeasureArguments::default()), Some(1.0));
    }

    #[test]
    fn losses_are_counted_by_how_many_come_in_a_row() {
        let plain = MeasureArguments::default();
        assert_eq!(of("pings_lost", &pings(), plain), Some(10.0));
        assert_eq!(of("single_losses", &pings(), plain), Some(0.3));
        assert_eq!(of("loss_events", &pings(), plain), Some(2.0));
        assert_eq!(of("longest_loss", &pings(), plain), Some(5.0));
        let whole = Pings { lost: 0, losses_by_length: vec![], ..pings() };
        assert_eq!(of("single_losses", &whole, plain), Some(0.0));
        assert_eq!(of("longest_loss", &whole, plain), Some(0.0));
    }

    #[test]
    fn losses_are_known_without_an_echo_and_its_rtt_is_not() {
        let plain = MeasureArguments::default();
        let all_lost = Pings {
            sent: 10,
            echoed: 0,
            echoes_by_ms: vec![],
            losses_by_length: vec![(10, 1)],
            ..pings()
        };
        assert_eq!(of("pings_lost", &all_lost, plain), Some(10.0));
        assert_eq!(of("single_losses", &all_lost, plain), Some(0.0));
        assert_eq!(of("loss_events", &all_lost, plain), Some(1.0));
        assert_eq!(of("longest_loss", &all_lost, plain), Some(10.0));
        assert_eq!(of("echo_share", &all_lost, plain), None);
        let waiting = Pings { lost: 0, waiting: 10, losses_by_length: vec![], ..all_lost };
        assert_eq!(of("pings_lost", &waiting, plain), None);
        assert_eq!(of("longest_loss", &waiting, plain), None);
    }
}
