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

    /// Name of the parameter of user-defined controllers that identifies their code.
    pub const SOURCE_DIGEST: &'static str = "source_sha256";

    /// Returns the name of a controller of a user's crate, `crate:NAME`.
    pub fn crate_controller(&self) -> Option<&str> {
        self.name.strip_prefix("crate:")
    }

    /// Returns whether the algorithm is a user's instead of a registry entry: a Python class, named
    /// `module:Class`, or a controller of a crate.
    pub fn is_user_defined(&self) -> bool {
        self.name.contains(':') && !self.is_of_stack()
    }

    /// Returns whether the algorithm is part of the QUIC implementation ([`QUIC_CONTROLLERS`]),
    /// such as `noq:cubic`.
    pub fn is_of_stack(&self) -> bool {
        quic::is_of_stack(&self.name)
    }
}
