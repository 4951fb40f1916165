//! Routes of flows: the links that a flow crosses, and changes during the run.

use jostle_units::{LinkId, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CapacitySpec, FlowSpec, RunSpec};

/// A change of a flow's route. Every router forwards by the new route from `at_ns` on: packets that
/// are on a link of the old route stay there, and continue on the new route if they meet a link of
/// it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteSpec {
    /// Time of the change.
    pub at_ns: u64,
    /// Links from sender to receiver from then on.
    #[schemars(with = "Vec<u32>")]
    pub path: Vec<LinkId>,
    /// Links from receiver to sender from then on.
    #[schemars(with = "Vec<u32>")]
    pub reverse_path: Vec<LinkId>,
}

impl FlowSpec {
    /// Returns the path of the data on every route of the flow, the first one first.
    pub fn paths(&self) -> impl Iterator<Item = &[LinkId]> {
        let later = self.routes.iter().map(|route| route.path.as_slice());
        std::iter::once(self.path.as_slice()).chain(later)
    }

    /// Returns the path of the ACKs on every route of the flow.
    pub fn reverse_paths(&self) -> impl Iterator<Item = &[LinkId]> {
        let later = self.routes.iter().map(|route| route.reverse_path.as_slice());
        std::iter::once(self.reverse_path.as_slice()).chain(later)
    }

    /// Returns whether data or ACKs of the flow cross a link on any route.
    pub fn crosses(&self, link: LinkId) -> bool {
        self.paths().chain(self.reverse_paths()).any(|path| path.contains(&link))
    }
}

impl RunSpec {
    /// Returns the links of some paths, and after each tunnel the links below it.
    pub fn links_with_tunnels<'a>(&self, paths: impl Iterator<Item = &'a [LinkId]>) -> Vec<LinkId> {
        let mut links = Vec::new();
        for link in paths.flatten() {
            links.push(*link);
            if let Some(CapacitySpec::Tunnel { flow }) =
                self.links.get(link.index()).map(|it| &it.capacity)
                && let Some(carrier) = self.flows.get(flow.index())
            {
                links.extend(&carrier.path);
            }
        }
        links
    }

    /// Returns the propagation delay of some links at the start of the run.
    pub fn propagation(&self, links: &[LinkId]) -> Span {
        let ns = |link: LinkId| self.links[link.index()].delay.steps[0].delay_ns;
        let links = self.links_with_tunnels(std::iter::once(links));
        Span::from_ns(links.into_iter().map(ns).sum())
    }

    /// Returns the lowest and the highest long-term rate of a link; of a tunnel, 0 and the highest
    /// rate of the links below.
    pub(crate) fn bounds_bps(&self, link: LinkId) -> (u64, u64) {
        let Some(spec) = self.links.get(link.index()) else { return (0, 0) };
        let CapacitySpec::Tunnel { flow } = spec.capacity else {
            return spec.capacity.bounds_bps();
        };
        let below = self.flows.get(flow.index()).into_iter().flat_map(FlowSpec::paths).flatten();
        let rates =
            below.filter_map(|link| Some(self.links.get(link.index())?.capacity.bounds_bps().1));
        (0, rates.max().unwrap_or(0))
    }

    /// Returns the propagation delay from the receiver of a flow to its sender, on its first route.
    pub fn reverse_propagation(&self, flow: &FlowSpec) -> Span {
        self.propagation(&flow.reverse_path) + Span::from_ns(flow.base_delay_ns)
    }
}
