//! What a measure is, and how the measures of one kind of things are defined.

use serde::Serialize;

use crate::captured::Captured;
use crate::page::PageLoads;
use crate::ping_meter::Pings;
use crate::playback::Watched;
use crate::stretch::{Stretch, known};
use crate::transfer::{Transfer, Transfers};

/// What has a value of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Each flow.
    Flow,
    /// Each group of flows that were written as one.
    Group,
    /// Each link.
    Link,
    /// The run.
    Run,
}

/// Where the summary has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In each phase of a flow, a group or a link.
    Phases,
    /// In each phase of `fairness`.
    Fairness,
    /// In each phase of `totals`.
    Totals,
    /// Beside a flow's phases: it is of the whole run.
    Flow,
    /// Beside a group's phases: it is of the whole run.
    Group,
    /// Nowhere: it is of the whole run, and computed when it is asked for.
    Asked,
    /// Nowhere in a run: two conditions are compared.
    Conditions,
}

/// Unit of a number, and how a person reads it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Unit {
    /// Unit of the number.
    pub unit: &'static str,
    /// Unit in tables and figures; empty for a bare number.
    pub reads: &'static str,
    /// What the number is multiplied by to be read in it.
    pub factor: f64,
}

impl Unit {
    const fn new(unit: &'static str, reads: &'static str, factor: f64) -> Self {
        Self { unit, reads, factor }
    }
}

pub(super) const RATE: Unit = Unit::new("bit/s", "Mbit/s", 1e-6);
pub(super) const ROUND_TRIP: Unit = Unit::new("s", "ms", 1e3);
pub(super) const TIME: Unit = Unit::new("s", "s", 1.0);
pub(super) const SIZE: Unit = Unit::new("byte", "kB", 1e-3);
pub(super) const FLOWS: Unit = Unit::new("flow", "flows", 1.0);
pub(super) const TRANSFERS: Unit = Unit::new("transfer", "", 1.0);
pub(super) const PACKETS: Unit = Unit::new("packet", "packets", 1.0);
pub(super) const PERCENT: Unit = Unit::new("1", "%", 100.0);
pub(super) const NUMBER: Unit = Unit::new("1", "", 1.0);
pub(super) const POWER: Unit = Unit::new("bit", "Mbit", 1e-6);

/// What a measure of the whole run may be asked with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Asked {
    /// Size of a download.
    pub size_bytes: Option<u64>,
    /// Percentile, 0 … 100.
    pub percentile: Option<f64>,
    /// Round trips from here on.
    pub above_ms: Option<f64>,
    /// Round trips below.
    pub below_ms: Option<f64>,
}

/// How a measure is computed.
#[derive(Clone, Copy, Debug)]
pub enum Compute {
    /// From what was done in a stretch of time; the position is that of the flow or the link.
    Stretch(fn(&Stretch<'_>, usize) -> Option<f64>),
    /// From a flow's transfer.
    Transfer(fn(&Transfer) -> Option<f64>),
    /// From the transfers of a group.
    Group(fn(&Transfers) -> Option<f64>),
    /// From what became of a flow's pings.
    Pings(fn(&Pings, &Asked) -> Option<f64>),
    /// From what became of a flow's video.
    Video(fn(&Watched) -> Option<f64>),
    /// From what became of a browser's pages.
    Pages(fn(&PageLoads) -> Option<f64>),
    /// From what a capture shows of a flow.
    Captured(fn(&Captured) -> Option<f64>),
    /// Not from one run: two conditions are compared.
    Conditions,
    /// From the time at which so many bytes were delivered, counted from the flow's start.
    Download,
}

/// A measure.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Measure {
    /// Name in scenarios, studies and estimates.
    pub name: &'static str,
    /// What it is called in tables and figures.
    pub title: &'static str,
    /// Key in the summary; empty where that has none.
    pub key: &'static str,
    /// Unit.
    #[serde(flatten)]
    pub unit: Unit,
    /// What has a value.
    pub scope: Scope,
    /// Where the summary has it.
    pub place: Place,
    /// Whether the series is enough to compute it over any stretch of time.
    pub any_window: bool,
    /// The column of the series that shows it over time, if there is one.
    pub column: Option<&'static str>,
    /// What it is.
    #[serde(serialize_with = "in_one_line")]
    pub definition: &'static str,
    /// How it is computed.
    #[serde(skip)]
    pub compute: Compute,
}

impl Measure {
    /// Its value over a stretch of time, of the flow or the link at a position; none if it has none,
    /// or is not of a stretch of time.
    pub fn over(&self, stretch: &Stretch<'_>, position: usize) -> Option<f64> {
        match self.compute {
            Compute::Stretch(compute) => compute(stretch, position).and_then(known),
            _ => None,
        }
    }

    /// What it is, in one line.
    pub fn definition(&self) -> String {
        self.definition.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

fn in_one_line<S: serde::Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A number as a field of a summary.
pub(super) trait Field {
    fn of(value: Option<f64>) -> Self;
}

impl Field for Option<f64> {
    fn of(value: Option<f64>) -> Self {
        value
    }
}

/// For measures that are never absent from a phase.
impl Field for f64 {
    fn of(value: Option<f64>) -> Self {
        value.unwrap_or(0.0)
    }
}

/// For counts that some do not have.
impl Field for Option<u64> {
    fn of(value: Option<f64>) -> Self {
        value.map(|count| count as u64)
    }
}

/// For counts.
impl Field for u64 {
    fn of(value: Option<f64>) -> Self {
        value.unwrap_or(0.0) as u64
    }
}

/// Defines the measures of one kind of things: the struct that the summary has of each phase, how it
/// is filled, and the rows. A line says key and type in the summary, name, title, unit, whether the
/// series is enough (`any`) or phases are needed (`phase`), the column of the series, and how it is
/// computed from the thing and from all things. Its comment is the definition.
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
            pub(crate) fn of(it: &$of, all: &$crate::stretch::Stretch<'_>) -> Self {
                Self {$(
                    $key: {
                        let compute: fn(&$of, &$crate::stretch::Stretch<'_>) -> Option<f64> = $compute;
                        $crate::measures::row::Field::of(compute(it, all))
                    },
                )+}
            }
        }

        pub(super) const $rows: &[$crate::measures::row::Measure] = &[$(
            $crate::measures::row::Measure {
                name: $name,
                title: $title,
                key: stringify!($key),
                unit: $crate::measures::row::$unit,
                scope: $crate::measures::row::Scope::$scope,
                place: $crate::measures::row::Place::$place,
                any_window: $crate::measures::row::measures!(@window $window),
                column: $crate::measures::row::measures!(@column $($column)?),
                definition: concat!($($definition),+),
                compute: $crate::measures::row::Compute::Stretch(|all, at| {
                    let compute: fn(&$of, &$crate::stretch::Stretch<'_>) -> Option<f64> = $compute;
                    let pick: for<'a> fn(&'a $crate::stretch::Stretch<'a>, usize) -> &'a $of = $pick;
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

/// Defines the measures of one kind of things over the whole run: the struct that the summary has of
/// a flow, how it is filled (`of`), and the rows. A line says key and type in the summary, name,
/// title, unit, and how it is computed from the thing. Its comment is the definition.
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
            /// What it is of one.
            $see fn of(it: &$of) -> Self {
                Self {$(
                    $key: {
                        let compute: fn(&$of) -> Option<f64> = $compute;
                        $crate::measures::row::Field::of(compute(it))
                    },
                )+}
            }
        }

        pub(super) const ROWS: &[$crate::measures::row::Measure] = &[$(
            $crate::measures::row::Measure {
                name: $name,
                title: $title,
                key: stringify!($key),
                unit: $crate::measures::row::$unit,
                scope: $crate::measures::row::Scope::Flow,
                place: $crate::measures::row::Place::Flow,
                any_window: false,
                column: None,
                definition: concat!($($definition),+),
                compute: $crate::measures::row::Compute::$kind($compute),
            },
        )+];
    };
}
pub(super) use measures_of_a_run;
