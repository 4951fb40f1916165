//! Types of registry entries.

use alloc::boxed::Box;

use jostle_registry::{ParameterValues, RegistryEntry};
use jostle_units::RandomStream;

use crate::slow_start::SlowStart;
use jostle_congestion::CongestionController;

/// Slow start of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStartChoice {
    /// Any method of [`SLOW_STARTS`](crate::registry::SLOW_STARTS). This is the default method.
    Composed(&'static str),
    /// A built-in slow start.
    BuiltIn,
}

/// Inputs of a controller's constructor.
pub struct ControllerInputs {
    /// Values of the parameters.
    pub values: ParameterValues,
    /// Slow start of a composed controller; [`Standard`](crate::slow_start::Standard) for others.
    pub slow_start: Box<dyn SlowStart>,
    /// Random stream of the controller.
    pub random: RandomStream,
}

/// A controller of the registry.
pub struct ControllerEntry {
    /// Name, source, parameters.
    pub entry: RegistryEntry,
    /// Slow start of the controller.
    pub start: SlowStartChoice,
    /// Constructor.
    pub build: fn(ControllerInputs) -> Box<dyn CongestionController>,
}

/// A slow-start method of the registry.
pub struct SlowStartEntry {
    /// Name, source, parameters.
    pub entry: RegistryEntry,
    /// Constructor.
    pub build: fn(&ParameterValues) -> Box<dyn SlowStart>,
}

/// A peer-cache layer of the registry.
pub struct PeerCacheEntry {
    /// Name, source, parameters.
    pub entry: RegistryEntry,
    /// Constructor, called with the inner controller.
    pub build: fn(&ParameterValues, Box<dyn CongestionController>) -> Box<dyn CongestionController>,
}
