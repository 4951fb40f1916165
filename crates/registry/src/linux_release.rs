//! Linux releases with different behaviour.

use serde::{Deserialize, Serialize};

/// A Linux release whose TCP differs measurably from 6.1's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LinuxRelease {
    /// 6.1 (2022).
    #[default]
    #[serde(rename = "6.1")]
    V6_1,
    /// 4.15 (2018), the kernel of many published measurements. Bursts do not grow on short paths
    /// (`tcp_tso_rtt_log` was added in 5.18), and ACKs of out-of-order data are not compressed
    /// (added in 4.18).
    #[serde(rename = "4.15")]
    V4_15,
}

impl LinuxRelease {
    /// Values of the `linux` parameter of registry entries.
    pub const CHOICES: &'static [&'static str] = &["6.1", "4.15"];

    /// Returns the release for an element of [`CHOICES`](Self::CHOICES).
    pub fn from_choice(choice: &str) -> Self {
        if choice == "4.15" { Self::V4_15 } else { Self::V6_1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_specs_have_the_same_words() {
        for choice in LinuxRelease::CHOICES {
            let written = serde_json::to_value(LinuxRelease::from_choice(choice)).unwrap();
            assert_eq!(written, *choice);
        }
    }
}
