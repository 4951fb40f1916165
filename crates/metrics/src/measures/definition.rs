//! Definition of a measure, and macros that define all measures of one kind.

use serde::Serialize;

use crate::capture_counters::CaptureCounters;
use crate::interval_stats::{IntervalStats, known};
use crate::ping_meter::Pings;
use crate::transfer_stats::{GroupTransfers, TransferOutcome};
use jostle_traffic::PageLoads;
use jostle_traffic::VideoSession;

/// Object that has a value of the measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Each flow.
    Flow,
    /// Each group of flows that one scenario entry created.
    Group,
    /// Each link.
    Link,
    /// The run.
    Run,
}

/// Location of the measure in the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryLocation {
    /// In each phase of a flow, a group or a link.
    Phases,
    /// In each phase of `fairness`.
    Fairness,
    /// In each phase of `totals`.
    Totals,
    /// Next to a flow's phases; the measure covers the complete run.
    Flow,
    /// Next to a group's phases; the measure covers the complete run.
    Group,
    /// Not in the summary; the measure covers the complete run and is computed on demand.
    Asked,
    /// Not in the summary; the measure compares two conditions.
    Conditions,
}

/// Unit of a number, and unit for display.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DisplayUnit {
    /// Unit of the number.
    pub unit: &'static str,
    /// Unit in tables and figures; empty for a plain number.
    pub display_unit: &'static str,
    /// Factor that converts the number to the display unit.
    pub factor: f64,
}

impl DisplayUnit {
    const fn new(unit: &'static str, reads: &'static str, factor: f64) -> Self {
        Self { unit, display_unit: reads, factor }
    }
}

pub(super) const RATE: DisplayUnit = DisplayUnit::new("bit/s", "Mbit/s", 1e-6);
pub(super) const ROUND_TRIP: DisplayUnit = DisplayUnit::new("s", "ms", 1e3);
pub(super) const TIME: DisplayUnit = DisplayUnit::new("s", "s", 1.0);
pub(super) const SIZE: DisplayUnit = DisplayUnit::new("byte", "kB", 1e-3);
pub(super) const FLOWS: DisplayUnit = DisplayUnit::new("flow", "flows", 1.0);
pub(super) const TRANSFERS: DisplayUnit = DisplayUnit::new("transfer", "", 1.0);
pub(super) const PACKETS: DisplayUnit = DisplayUnit::new("packet", "packets", 1.0);
pub(super) const PERCENT: DisplayUnit = DisplayUnit::new("1", "%", 100.0);
pub(super) const NUMBER: DisplayUnit = DisplayUnit::new("1", "", 1.0);
pub(super) const POWER: DisplayUnit = DisplayUnit::new("bit", "Mbit", 1e-6);

/// Arguments of a measure of the complete run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasureArguments {
    /// Size of a download.
    pub size_bytes: Option<u64>,
    /// Percentile, 0 … 100.
    pub percentile: Option<f64>,
    /// Lower limit of the RTTs to count, included.
    pub above_ms: Option<f64>,
    /// Upper limit of the RTTs to count, excluded.
    pub below_ms: Option<f64>,
}

/// Function that computes a measure.
#[derive(Clone, Copy, Debug)]
pub enum MeasureFunction {
    /// From the statistics of an interval; the argument is the position of the flow or link.
    Interval(fn(&IntervalStats, usize) -> Option<f64>),
    /// From a flow's transfer.
    Transfer(fn(&TransferOutcome) -> Option<f64>),
    /// From the transfers of a group.
    Group(fn(&GroupTransfers) -> Option<f64>),
    /// From the statistics of a flow's pings.
    Pings(fn(&Pings, &MeasureArguments) -> Option<f64>),
    /// From a flow's video session.
    Video(fn(&VideoSession) -> Option<f64>),
    /// From the page loads of a browser.
    Pages(fn(&PageLoads) -> Option<f64>),
    /// From the counters of a captured flow.
    Captured(fn(&CaptureCounters) -> Option<f64>),
    /// From two conditions, not from one run.
    Conditions,
    /// From the time at which a flow had delivered a number of bytes, counted from its start.
    Download,
}

/// A measure.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Measure {
    /// Name in scenarios, studies and estimates.
    pub name: &'static str,
    /// Title in tables and figures.
    pub title: &'static str,
    /// Key in the summary; empty if the summary does not contain the measure.
    pub key: &'static str,
    /// Unit.
    #[serde(flatten)]
    pub unit: DisplayUnit,
    /// Object that has a value.
    pub scope: Scope,
    /// Location in the summary.
    pub place: SummaryLocation,
    /// Whether the time series is sufficient to compute the measure over any interval.
    pub any_window: bool,
    /// Column of the time series that shows the measure over time, if there is one.
    pub column: Option<&'static str>,
    /// Meaning of the measure.
    #[serde(serialize_with = "serialize_definition")]
    pub definition: &'static str,
    /// Function that computes the measure.
    #[serde(skip)]
    pub compute: MeasureFunction,
}

impl Measure {
    /// Returns the value in an interval for the flow or link at `position`. `None` if there is no
    /// value, or if the measure covers the complete run.
    pub fn over(&self, stats: &IntervalStats, position: usize) -> Option<f64> {
        match self.compute {
            MeasureFunction::Interval(compute) => compute(stats, position).and_then(known),
            _ => None,
        }
    }

    /// Returns the definition in one line.
    pub fn definition(&self) -> String {
        self.definition.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

fn serialize_definition<S: serde::Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Field of a summary that a measure fills.
pub(super) trait Field {
    fn of(value: Option<f64>) -> Self;
}

impl Field for Option<f64> {
    fn of(value: Option<f64>) -> Self {
        value
    }
}

/// Measures that are never absent from a phase.
impl Field for f64 {
    fn of(value: Option<f64>) -> Self {
        value.unwrap_or(0.0)
    }
}

/// Counts that can be absent.
impl Field for Option<u64> {
    fn of(value: Option<f64>) -> Self {
        value.map(|count| count as u64)
    }
}

/// Counts that are never absent.
impl Field for u64 {
    fn of(value: Option<f64>) -> Self {
        value.unwrap_or(0.0) as u64
    }
}

/// Defines the measures of one kind in an interval: the struct of a phase in the summary, the
/// function that fills it, and the registry entries. Each entry lists the key and type in the
/// summary, name, title, unit, whether the series is sufficient (`any`) or phases are needed
/// (`phase`), the column of the series, and the computation from the object and from all
/// statistics. The doc comment is the definition.
macro_rules! measures {
    (
        $(#[$about:meta])+ $phase:ident, rows $rows:ident, $scope:ident in $place:ident;
        of $of:ty, at $pick:expr;
        $(
            $(#[doc = $definition:literal])+
            $key:ident: $type:ty, $name:literal, $title:literal, $unit:ident, $window:ident
                $(, $column:literal)?; $compute:expr;
        )+
    ) => {
        $(#[$about])+
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        pub struct $phase {
            $($(#[doc = $definition])+ pub $key: $type,)+
        }

        impl $phase {
            pub(crate) fn of(it: &$of, all: &$crate::interval_stats::IntervalStats) -> Self {
                Self {$(
                    $key: {
                        let compute: fn(&$of, &$crate::interval_stats::IntervalStats) -> Option<f64> = $compute;
                        $crate::measures::definition::Field::of(compute(it, all))
                    },
                )+}
            }
        }

        pub(super) const $rows: &[$crate::measures::definition::Measure] = &[$(
            $crate::measures::definition::Measure {
                name: $name,
                title: $title,
                key: stringify!($key),
                unit: $crate::measures::definition::$unit,
                scope: $crate::measures::definition::Scope::$scope,
                place: $crate::measures::definition::SummaryLocation::$place,
                any_window: $crate::measures::definition::measures!(@window $window),
                column: $crate::measures::definition::measures!(@column $($column)?),
                definition: concat!($($definition),+),
                compute: $crate::measures::definition::MeasureFunction::Interval(|all, at| {
                    let compute: fn(&$of, &$crate::interval_stats::IntervalStats) -> Option<f64> = $compute;
                    let pick: fn(&$crate::interval_stats::IntervalStats, usize) -> &$of = $pick;
                    compute(pick(all, at), all)
                }),
            },
        )+];
    };
    (@window any) => { true };
    (@window phase) => { false };
    (@column) => { None };
    (@column $column:literal) => { Some($column) };
}
pub(super) use measures;

/// Defines the measures of one kind over the complete run: the struct in the summary of a flow, the
/// function that fills it (`of`), and the registry entries. Each entry lists the key and type in
/// the summary, name, title, unit, and the computation. The doc comment is the definition.
macro_rules! measures_of_a_run {
    (
        $(#[$about:meta])+ $see:vis $summary:ident, of $of:ident by $kind:ident;
        $(
            $(#[doc = $definition:literal])+
            $key:ident: $type:ty, $name:literal, $title:literal, $unit:ident; $compute:expr;
        )+
    ) => {
        $(#[$about])+
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
        pub struct $summary {
            $($(#[doc = $definition])+ pub $key: $type,)+
        }

        impl $summary {
            /// Computes the summary of an object.
            $see fn of(it: &$of) -> Self {
                Self {$(
                    $key: {
                        let compute: fn(&$of) -> Option<f64> = $compute;
                        $crate::measures::definition::Field::of(compute(it))
                    },
                )+}
            }
        }

        pub(super) const ROWS: &[$crate::measures::definition::Measure] = &[$(
            $crate::measures::definition::Measure {
                name: $name,
                title: $title,
                key: stringify!($key),
                unit: $crate::measures::definition::$unit,
                scope: $crate::measures::definition::Scope::Flow,
                place: $crate::measures::definition::SummaryLocation::Flow,
                any_window: false,
                column: None,
                definition: concat!($($definition),+),
                compute: $crate::measures::definition::MeasureFunction::$kind($compute),
            },
        )+];
    };
}
pub(super) use measures_of_a_run;
