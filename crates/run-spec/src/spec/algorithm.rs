//! Algorithms with their parameters.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quic;
use jostle_registry::ParameterValue;

/// An algorithm of the registry with a value for each of its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Algorithm {
    /// Name in the registry.
    pub name: String,
    /// Values by parameter name.
    pub parameters: BTreeMap<String, ParameterValue>,
}

impl Algorithm {
    /// Name of the controller of flows without congestion control.
    pub const NONE: &'static str = "none";

    /// Returns the name and the parameters.
    pub fn named(&self) -> (&str, &BTreeMap<String, ParameterValue>) {
        (&self.name, &self.parameters)
    }

    /// Returns whether the algorithm is a user-defined Python class, named `module:Class`, instead
    /// of a registry entry.
    pub fn is_python_controller(&self) -> bool {
        self.name.contains(':') && !self.is_of_stack()
    }

    /// Returns whether the algorithm is part of the QUIC implementation ([`QUIC_CONTROLLERS`]),
    /// such as `noq:cubic`.
    pub fn is_of_stack(&self) -> bool {
        quic::is_of_stack(&self.name)
    }
}
