//! One emulation, fully resolved.

use jostle_record::{LinkSpec, SpecError};
use serde::{Deserialize, Serialize};

/// Smallest MTU of an IPv6 link (RFC 8200, 5).
const MIN_MTU_BYTES: u16 = 1280;
/// The most links in a row: far more than anybody chains, few enough to be numbered in a byte.
const MAX_HOPS: usize = 64;

/// One emulation: the links of both directions, and how late a packet may leave them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmulationSpec {
    /// Every random stream is derived from this number and a link's name.
    pub seed: u64,
    /// Links from the first device to the second, in the order in which packets cross them.
    pub forward: Vec<LinkSpec>,
    /// Links from the second device to the first.
    pub reverse: Vec<LinkSpec>,
    /// Largest IP packet.
    pub mtu_bytes: u16,
    /// The emulation is late, and no result, if one packet in a thousand left later than this.
    pub lateness_bound_ns: u64,
    /// Most memory for packets on their way, in both directions together.
    pub memory_bytes: usize,
    /// Whether every drop and mark is kept.
    pub journal: bool,
}

impl EmulationSpec {
    /// Reads and checks a specification.
    ///
    /// # Errors
    /// When `json` is none, or one that makes no sense.
    pub fn from_json(json: &str) -> Result<Self, SpecError> {
        let spec: Self = serde_json::from_str(json)?;
        spec.validate()?;
        Ok(spec)
    }

    /// Checks what the types cannot say.
    ///
    /// # Errors
    /// The first thing that does not fit, where it is, and what would be accepted.
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
        // Streams are named after links: two of one name would draw the same numbers.
        let mut names: Vec<_> = self.forward.iter().chain(&self.reverse).map(|l| &l.name).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let given = format!("two links named \"{}\"", pair[0]);
            return Err(unfit("forward and reverse", given, "a name of its own for each".into()));
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
