//! The registry of controllers and slow-start methods. To add one: write its file, add its row.

use std::collections::BTreeMap;

use jostle_catalogue::{Entry, ParameterError, Value, Values};
use jostle_units::Stream;

use crate::algorithms;
use crate::controller::{Controller, EcnFeedback};
use crate::slow_start::{self, SlowStart};

/// Which slow start a controller uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Composed with any method of [`SLOW_STARTS`]; this one if a scenario is silent.
    Composed(&'static str),
    /// The controller's own.
    Own,
}

/// What a controller is built from.
pub struct Parts {
    /// A value for each of its parameters.
    pub values: Values,
    /// Its slow start, if it is composed with one; otherwise [`slow_start::Standard`].
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

/// All controllers, in the order they are listed.
pub const CONTROLLERS: &[ControllerRow] = &[
    algorithms::RENO,
    algorithms::CUBIC,
    algorithms::BBR,
    algorithms::HYBLA,
    algorithms::VEGAS,
    algorithms::VIVACE,
    algorithms::DCTCP,
    algorithms::PRAGUE,
];

/// All slow-start methods, in the order they are listed.
pub const SLOW_STARTS: &[SlowStartRow] = &[slow_start::STANDARD, slow_start::HYSTART];

/// The controller called `name`.
pub fn controller(name: &str) -> Option<&'static ControllerRow> {
    CONTROLLERS.iter().find(|row| row.entry.name == name)
}

/// The slow-start method called `name`.
pub fn slow_start(name: &str) -> Option<&'static SlowStartRow> {
    SLOW_STARTS.iter().find(|row| row.entry.name == name)
}

impl ControllerRow {
    /// The feedback on marks that the controller needs ([`Controller::needs_ecn`]).
    pub fn needs_ecn(&self) -> EcnFeedback {
        let random = Stream::new(0, self.entry.name);
        self.create(&BTreeMap::new(), Box::new(slow_start::Standard), random)
            .map_or(EcnFeedback::None, |controller| controller.needs_ecn())
    }

    /// Builds the controller from parameters as a scenario gives them.
    ///
    /// # Errors
    /// When a parameter is unknown or does not fit.
    pub fn create(
        &self,
        given: &BTreeMap<String, Value>,
        slow_start: Box<dyn SlowStart>,
        random: Stream,
    ) -> Result<Box<dyn Controller>, ParameterError> {
        let values = self.entry.resolve(given)?;
        Ok((self.build)(Parts { values, slow_start, random }))
    }
}

impl SlowStartRow {
    /// Builds the method from parameters as a scenario gives them.
    ///
    /// # Errors
    /// When a parameter is unknown or does not fit.
    pub fn create(
        &self,
        given: &BTreeMap<String, Value>,
    ) -> Result<Box<dyn SlowStart>, ParameterError> {
        Ok((self.build)(&self.entry.resolve(given)?))
    }
}
