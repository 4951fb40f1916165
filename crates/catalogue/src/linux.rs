//! Releases of Linux that behave differently.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A release of Linux whose TCP differs from 6.1's in what can be measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Linux {
    /// 6.1 (2022).
    #[default]
    #[serde(rename = "6.1")]
    V6_1,
    /// 4.15 (2018), the kernel of many published measurements: bursts do not grow on short paths
    /// (`tcp_tso_rtt_log` came with 5.18), ACKs of what comes out of order are not compressed
    /// (4.18).
    #[serde(rename = "4.15")]
    V4_15,
}

impl Linux {
    /// The words of a registry's `linux` parameter.
    pub const CHOICES: &'static [&'static str] = &["6.1", "4.15"];

    /// The release that one of [`CHOICES`](Self::CHOICES) names.
    pub fn from_choice(choice: &str) -> Self {
        if choice == "4.15" { Self::V4_15 } else { Self::V6_1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_specs_have_the_same_words() {
        for choice in Linux::CHOICES {
            let written = serde_json::to_value(Linux::from_choice(choice)).unwrap();
            assert_eq!(written, *choice);
        }
    }
}
