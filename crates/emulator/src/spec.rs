//! Specification of an emulation.

use jostle_forwarding::validate_paths;
use jostle_run_spec::{LinkSpec, SpecError};
use serde::{Deserialize, Serialize};

/// Specification of an emulation: the links of both directions, and the bound on the lateness.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmulationSpec {
    /// Seed. Each random stream is derived from it and a link's name.
    pub seed: u64,
    /// Links from the first device to the second, in the order in which packets cross them.
    pub forward: Vec<LinkSpec>,
    /// Links from the second device to the first.
    pub reverse: Vec<LinkSpec>,
    /// Largest IP packet, in bytes.
    pub mtu_bytes: u16,
    /// Maximum p99.9 lateness in ns. Above it, the result is invalid.
    pub lateness_bound_ns: u64,
    /// Memory limit for the packets in transit, for both directions together.
    pub memory_bytes: usize,
    /// Whether all drops and marks are logged.
    pub journal: bool,
}

impl EmulationSpec {
    /// Parses and validates a specification.
    ///
    /// # Errors
    /// Returns an error if `json` is not a valid specification.
    pub fn from_json(json: &str) -> Result<Self, SpecError> {
        let spec: Self = serde_json::from_str(json)?;
        spec.validate()?;
        Ok(spec)
    }

    /// Checks the constraints that the types do not express.
    ///
    /// # Errors
    /// Returns the first violation, with its location and the accepted values.
    pub fn validate(&self) -> Result<(), SpecError> {
        validate_paths(&self.forward, &self.reverse, self.mtu_bytes)?;
        if self.memory_bytes < usize::from(self.mtu_bytes) {
            let expected = "at least `mtu_bytes`".to_owned();
            let given = self.memory_bytes.to_string();
            return Err(SpecError::Unfit { at: "memory_bytes".to_owned(), given, expected });
        }
        Ok(())
    }
}
