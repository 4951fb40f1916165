//! Summary of an emulation.

use jostle_forwarding::{Direction, DirectionSummary};
use jostle_metrics::Histogram;
use jostle_units::Time;
use serde::Serialize;

const NS: f64 = 1e-9;
/// Quantile of the lateness that must not exceed the bound.
const PUNCTUAL: f64 = 0.999;

/// Whether the result of an emulation is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Validity {
    /// Valid: the p99.9 lateness is within the bound.
    OnTime,
    /// Invalid: the p99.9 lateness exceeds the bound, so the measures include delays of the host.
    Late,
    /// Invalid: packets were lost because the memory limit was reached.
    Overrun,
}

/// Lateness: delay of departures relative to the links' logical time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lateness {
    /// Bound on the p99.9 lateness.
    pub bound_s: f64,
    /// Median; null if there were no packets.
    pub p50_s: Option<f64>,
    /// 99th percentile.
    pub p99_s: Option<f64>,
    /// 99.9th percentile.
    pub p999_s: Option<f64>,
    /// Maximum.
    pub max_s: Option<f64>,
}

/// Summary of an emulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Duration of the emulation.
    pub duration_s: f64,
    /// Whether the result is valid.
    pub verdict: Validity,
    /// Lateness of both directions together.
    pub lateness: Lateness,
    /// Direction from the first device to the second.
    pub forward: DirectionSummary,
    /// Direction from the second device to the first.
    pub reverse: DirectionSummary,
}

impl Summary {
    pub(crate) fn of(
        end: Time,
        directions: &mut [Direction; 2],
        lateness_ns: &Histogram,
        bound_ns: u64,
    ) -> Self {
        let late = lateness_ns.quantile(PUNCTUAL).is_some_and(|p999| p999 > bound_ns as f64);
        let overrun = directions.iter().any(|direction| direction.unheld > 0);
        let quantile = |p| lateness_ns.quantile(p).map(|ns| ns * NS);
        let [forward, reverse] = directions.each_mut().map(|direction| direction.summary(end));
        Self {
            duration_s: end.as_secs_f64(),
            verdict: match (overrun, late) {
                (true, _) => Validity::Overrun,
                (false, true) => Validity::Late,
                (false, false) => Validity::OnTime,
            },
            lateness: Lateness {
                bound_s: bound_ns as f64 * NS,
                p50_s: quantile(0.5),
                p99_s: quantile(0.99),
                p999_s: quantile(PUNCTUAL),
                max_s: lateness_ns.max().map(|ns| ns as f64 * NS),
            },
            forward,
            reverse,
        }
    }
}
