//! What a row of the registry is.

use jostle_catalogue::{Entry, Values};
use jostle_units::Stream;

use crate::controller::Controller;
use crate::slow_start::SlowStart;

/// Which slow start a controller uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Composed with any method of [`SLOW_STARTS`](crate::registry::SLOW_STARTS); this one if a scenario is silent.
    Composed(&'static str),
    /// The controller's own.
    Own,
}

/// What a controller is built from.
pub struct Parts {
    /// A value for each of its parameters.
    pub values: Values,
    /// Its slow start, if it is composed with one; otherwise [`Standard`](crate::slow_start::Standard).
    pub slow_start: Box<dyn SlowStart>,
    /// Its own random numbers.
    pub random: Stream,
}

/// A controller of the registry.
pub struct ControllerRow {
    /// Name, source, parameters.
    pub entry: Entry,
    /// Which slow start it uses.
    pub start: Start,
    /// Builds it.
    pub build: fn(Parts) -> Box<dyn Controller>,
}

/// A slow-start method of the registry.
pub struct SlowStartRow {
    /// Name, source, parameters.
    pub entry: Entry,
    /// Builds it.
    pub build: fn(&Values) -> Box<dyn SlowStart>,
}

/// A layer of the registry that makes use of what a host remembers.
pub struct MemoryRow {
    /// Name, source, parameters.
    pub entry: Entry,
    /// Builds it over a controller.
    pub build: fn(&Values, Box<dyn Controller>) -> Box<dyn Controller>,
}
