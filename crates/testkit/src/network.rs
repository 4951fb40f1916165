//! The network between the hosts.

use jostle_forwarding::{LinkError, validate_paths};
use jostle_run_spec::{LinkSpec, RunSpec, SpecError};
use jostle_units::{LinkId, MTU_BYTES, Rate, Span};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Link;

/// Links in both directions, and the size of the largest IP packet.
///
/// Its JSON has the keys `forward`, `reverse` (lists of links as in a run specification of jostle)
/// and `mtu_bytes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Links from the left to the right side, in the order in which packets cross them.
    pub forward: Vec<LinkSpec>,
    /// Links from the right to the left side.
    pub reverse: Vec<LinkSpec>,
    /// Largest IP packet. Larger packets are dropped without ICMP, as by a path whose MTU has to be
    /// discovered (RFC 8899).
    pub mtu_bytes: u16,
}

/// A network is invalid.
#[derive(Debug, Error)]
pub enum NetworkError {
    /// The specification is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A link cannot be built.
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl Network {
    /// Creates a network from the links of each direction. They are named `forward0`, `forward1` …,
    /// `reverse0` ….
    pub fn new(forward: &[Link], reverse: &[Link]) -> Self {
        let named = |direction: &str, links: &[Link]| {
            let named = links.iter().enumerate();
            named.map(|(i, link)| link.named(format!("{direction}{i}"))).collect()
        };
        Self {
            forward: named("forward", forward),
            reverse: named("reverse", reverse),
            mtu_bytes: MTU_BYTES as u16,
        }
    }

    /// Creates a network with a link of the same kind in each direction, with separate random
    /// streams.
    pub fn symmetric(link: &Link) -> Self {
        let link = std::slice::from_ref(link);
        Self::new(link, link)
    }

    /// Sets the size of the largest IP packet.
    #[must_use]
    pub fn mtu(self, mtu_bytes: u16) -> Self {
        Self { mtu_bytes, ..self }
    }

    /// Reads a network from its JSON.
    ///
    /// # Errors
    /// If `json` is not a valid network.
    pub fn from_json(json: &str) -> Result<Self, NetworkError> {
        let network: Self = serde_json::from_str(json).map_err(SpecError::from)?;
        network.validate()?;
        Ok(network)
    }

    /// Reads the network of a flow from a run specification of jostle. Senders of its data are on
    /// the left. The flow's own delay is added to its last link.
    ///
    /// # Errors
    /// If `json` is not a run specification, has no such flow, or a path without links.
    pub fn of_flow(json: &str, flow: &str) -> Result<Self, NetworkError> {
        let spec = RunSpec::from_json(json)?;
        let Some(flow) = spec.flows.iter().find(|it| it.name == flow) else {
            let names: Vec<_> = spec.flows.iter().map(|flow| flow.name.as_str()).collect();
            return Err(NetworkError::Spec(SpecError::Unfit {
                at: "flow".to_owned(),
                given: format!("\"{flow}\""),
                expected: format!("one of {}", names.join(", ")),
            }));
        };
        if !flow.routes.is_empty() {
            return Err(NetworkError::Spec(SpecError::Unfit {
                at: "routes".to_owned(),
                given: "there".to_owned(),
                expected: "absent: the links of a flow here are fixed".to_owned(),
            }));
        }
        let links = |path: &[LinkId]| -> Vec<LinkSpec> {
            path.iter().map(|link| spec.links[link.index()].clone()).collect()
        };
        let (forward, mut reverse) = (links(&flow.path), links(&flow.reverse_path));
        match reverse.last_mut() {
            Some(last) => {
                last.delay.steps.iter_mut().for_each(|step| step.delay_ns += flow.base_delay_ns);
            }
            // Paths without links have no queue either.
            None => {
                let delay = Span::from_ns(flow.base_delay_ns);
                reverse
                    .push(Link::new(Rate::from_mbps(100_000), delay).named("reverse".to_owned()));
            }
        }
        let network = Self { forward, reverse, mtu_bytes: flow.mtu_bytes as u16 };
        network.validate()?;
        Ok(network)
    }

    /// Checks the network.
    ///
    /// # Errors
    /// Returns the first violation, with its location and the accepted values.
    pub fn validate(&self) -> Result<(), SpecError> {
        validate_paths(&self.forward, &self.reverse, self.mtu_bytes)
    }
}
