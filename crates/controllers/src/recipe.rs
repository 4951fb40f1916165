//! A controller, its slow start and its peer cache by name, with values for all parameters. The
//! look-up and the checks are done once, for any number of connections.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

use jostle_congestion::CongestionController;
use jostle_registry::{ParameterValue, ParameterValues};
use jostle_units::RandomStream;

use crate::registry::{
    self, CONTROLLERS, ControllerEntry, ControllerInputs, PeerCacheEntry, SlowStartChoice,
    SlowStartEntry,
};
use crate::slow_start::Standard;

/// Name and parameters of an algorithm in a scenario.
pub type NamedAlgorithm<'a> = (&'a str, &'a BTreeMap<String, ParameterValue>);

/// Creates the controllers of a flow's connections.
pub struct ControllerRecipe {
    controller: (&'static ControllerEntry, ParameterValues),
    /// `None` for [`Standard`], which controllers with a built-in slow start ignore.
    slow_start: Option<(&'static SlowStartEntry, ParameterValues)>,
}

impl ControllerRecipe {
    /// Looks up the algorithms.
    ///
    /// # Errors
    /// If the registry has no such entry or parameter, or the controller has its own slow start.
    pub fn of(
        controller: NamedAlgorithm<'_>,
        slow_start: Option<NamedAlgorithm<'_>>,
    ) -> Result<Self, String> {
        Self::among(CONTROLLERS, controller, slow_start)
    }

    /// Like [`of`](Self::of), with the controllers of a user's crate instead of the registry's.
    ///
    /// # Errors
    /// See [`of`](Self::of).
    pub fn among(
        controllers: &'static [ControllerEntry],
        (name, parameters): NamedAlgorithm<'_>,
        slow_start: Option<NamedAlgorithm<'_>>,
    ) -> Result<Self, String> {
        let row = controllers
            .iter()
            .find(|row| row.entry.name == name)
            .ok_or_else(|| missing("controller", name))?;
        if row.start == SlowStartChoice::BuiltIn && slow_start.is_some() {
            return Err(format!("`{name}` contains its slow start"));
        }
        let slow_start = slow_start.map(|(name, parameters)| {
            let row = registry::slow_start(name).ok_or_else(|| missing("slow start", name))?;
            let values = row.entry.resolve(parameters).map_err(|error| error.to_string())?;
            Ok::<_, String>((row, values))
        });
        let values = row.entry.resolve(parameters).map_err(|error| error.to_string())?;
        Ok(Self { controller: (row, values), slow_start: slow_start.transpose()? })
    }

    /// Returns the entry of the controller and the values of its parameters.
    pub fn controller(&self) -> (&'static ControllerEntry, &ParameterValues) {
        (self.controller.0, &self.controller.1)
    }

    /// Creates a controller with random numbers from `random`.
    pub fn create(&self, random: RandomStream) -> Box<dyn CongestionController> {
        let (row, values) = &self.controller;
        let slow_start = match &self.slow_start {
            None => Box::new(Standard),
            Some((row, values)) => (row.build)(values),
        };
        (row.build)(ControllerInputs { values: values.clone(), slow_start, random })
    }
}

/// Adds a peer cache to the controllers of a flow.
pub struct PeerCacheRecipe(&'static PeerCacheEntry, ParameterValues);

impl PeerCacheRecipe {
    /// Looks up the peer cache.
    ///
    /// # Errors
    /// If the registry has no such entry or parameter.
    pub fn of((name, parameters): NamedAlgorithm<'_>) -> Result<Self, String> {
        let row = registry::memory(name).ok_or_else(|| missing("memory", name))?;
        let values = row.entry.resolve(parameters).map_err(|error| error.to_string())?;
        Ok(Self(row, values))
    }

    /// Puts the peer cache around a controller.
    pub fn around(
        &self,
        controller: Box<dyn CongestionController>,
    ) -> Box<dyn CongestionController> {
        (self.0.build)(&self.1, controller)
    }
}

fn missing(what: &str, name: &str) -> String {
    format!("there is no {what} `{name}`")
}
