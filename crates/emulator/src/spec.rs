//! Specification of an emulation.

use jostle_run_spec::{LinkSpec, SpecError};
use serde::{Deserialize, Serialize};

/// Minimum MTU of IPv6 (RFC 8200, 5).
const MIN_MTU_BYTES: u16 = 1280;
/// Maximum number of links in a row. Their index must fit into a byte.
const MAX_HOPS: usize = 64;

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
        for (at, links) in [("forward", &self.forward), ("reverse", &self.reverse)] {
            if links.is_empty() || links.len() > MAX_HOPS {
                return Err(unfit(
                    at,
                    format!("{} links", links.len()),
                    format!("1 to {MAX_HOPS}"),
                ));
            }
            for (i, link) in links.iter().enumerate() {
                link.validate(&format!("{at}[{i}]"))?;
            }
        }
        // Random streams are named after links, so equal names would yield equal numbers.
        let mut names: Vec<_> = self.forward.iter().chain(&self.reverse).map(|l| &l.name).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let given = format!("two links named \"{}\"", pair[0]);
            return Err(unfit("forward and reverse", given, "a unique name for each".into()));
        }
        if self.mtu_bytes < MIN_MTU_BYTES {
            let expected = format!("at least {MIN_MTU_BYTES}");
            return Err(unfit("mtu_bytes", self.mtu_bytes.to_string(), expected));
        }
        if self.memory_bytes < usize::from(self.mtu_bytes) {
            let expected = "at least `mtu_bytes`".to_owned();
            return Err(unfit("memory_bytes", self.memory_bytes.to_string(), expected));
        }
        Ok(())
    }
}

fn unfit(at: &str, given: String, expected: String) -> SpecError {
    SpecError::Unfit { at: at.to_owned(), given, expected }
}
