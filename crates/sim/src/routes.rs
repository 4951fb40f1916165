//! Routes of flows through the network: links, delay line and NIC.

use std::collections::{BTreeMap, VecDeque};

use jostle_run_spec::{FlowSpec, RouteSpec, SourceSpec, Transport, requests_of};
use jostle_units::{ConnectionId, FlowId, LinkId, Rate, Time, mss_of};

use crate::packet::SimPacket;

/// A sender's NIC, which sends packets one after another at its rate.
#[derive(Debug)]
pub(crate) struct NetworkCard {
    pub rate: Rate,
    pub queue: VecDeque<SimPacket>,
    pub queued_bytes: u64,
}

impl NetworkCard {
    fn new(rate: Rate) -> Self {
        Self { rate, queue: VecDeque::new(), queued_bytes: 0 }
    }
}

/// A link of a flow, and the one that follows it.
struct Hop {
    link: LinkId,
    /// Position of the next link; `LAST` if there is none.
    next: u8,
}

/// No position of a link.
const LAST: u8 = u8::MAX;

/// The links of one direction on all routes of a flow. A packet stores the position of its link.
/// Each link knows its successor on the latest route that it belongs to, so that packets which are
/// on a former route when the route changes still reach their end. The first link is stored inline
/// to avoid a cache miss, because most paths have one link and the routes of ten thousand flows do
/// not fit into the cache.
pub(crate) struct LinkSequence {
    entry: u8,
    first: LinkId,
    hops: Box<[Hop]>,
}

impl LinkSequence {
    /// Builds the links of some paths, the first of which is used.
    fn new<'a>(mut paths: impl Iterator<Item = &'a [LinkId]>) -> Self {
        let path = paths.next().unwrap_or(&[]);
        let mut hops: Vec<Hop> = Vec::with_capacity(path.len());
        // Without changes, a path may cross a link twice.
        hops.extend((1..).zip(path).map(|(next, link)| Hop { link: *link, next }));
        if let Some(last) = hops.last_mut() {
            last.next = LAST;
        }
        for link in paths.flatten() {
            if hops.iter().all(|hop| hop.link != *link) {
                hops.push(Hop { link: *link, next: LAST });
            }
        }
        Self {
            entry: if path.is_empty() { LAST } else { 0 },
            first: path.first().copied().unwrap_or(LinkId(0)),
            hops: hops.into(),
        }
    }

    /// Returns all links of all routes.
    pub fn links(&self) -> impl Iterator<Item = LinkId> {
        self.hops.iter().map(|hop| hop.link)
    }

    /// Returns the first link and its position.
    #[inline]
    pub fn first(&self) -> Option<(u8, LinkId)> {
        (self.entry != LAST).then_some((self.entry, self.first))
    }

    /// Returns the link after the one at `position`, and its position.
    #[inline]
    pub fn after(&self, position: u8) -> Option<(u8, LinkId)> {
        if self.hops.len() <= 1 {
            return None;
        }
        let next = self.hops[usize::from(position)].next;
        Some((next, self.hops.get(usize::from(next))?.link))
    }

    /// Sets the path of packets that are sent, or that reach the end of one of its links, from now
    /// on.
    fn change(&mut self, path: &[LinkId]) {
        let hops = &mut self.hops;
        let mut next = LAST;
        for link in path.iter().rev() {
            let Some(position) = hops.iter().position(|hop| hop.link == *link) else { continue };
            hops[position].next = next;
            next = position as u8;
        }
        self.entry = next;
        self.first = path.first().copied().unwrap_or(LinkId(0));
    }
}

/// Route of a flow in both directions.
pub(crate) struct FlowRoute {
    pub path: LinkSequence,
    pub reverse_path: LinkSequence,
    /// The delay line after the last link of `reverse_path`.
    pub line: u32,
    /// Whether the delay line is after the last link of `path` instead: the flow sends data from the
    /// receiver of another flow.
    pub delays_data: bool,
    pub nic: Option<Box<NetworkCard>>,
    /// Differentiated services codepoint of its packets.
    pub dscp: u8,
    /// MSS, if the receiver's NIC merges packets that arrive at the same time (GRO).
    pub merged_mss_bytes: Option<u16>,
}

/// A change of a route that is due.
struct RouteChange {
    route: u32,
    change: RouteSpec,
}

/// Routes of all flows and connections. Connections use the route of their flow. Flows with equal
/// routes share one to save cache, except flows with a NIC.
pub(crate) struct Routes {
    routes: Vec<FlowRoute>,
    /// Indices into `routes`, by connection.
    places: Vec<u32>,
    /// Indices into `routes` of the requests of browsers, by flow.
    requests: BTreeMap<FlowId, u32>,
    /// Changes that are still due, the next one last.
    changes: Vec<RouteChange>,
    /// Whether any receiver uses GRO.
    pub merge: bool,
}

impl Routes {
    pub fn new(flows: &[FlowSpec], delays_ns: &[u64]) -> Self {
        let places = Vec::with_capacity(flows.len());
        let (changes, merge, requests) = (Vec::new(), false, BTreeMap::new());
        let mut routes = Self { routes: Vec::new(), places, requests, changes, merge };
        let browsers = (0..).map(FlowId).zip(flows);
        let browsers = browsers.filter(|(_, flow)| matches!(flow.source, SourceSpec::Web(_)));
        let requests: Vec<_> = browsers.map(|(id, flow)| (id, requests_of(flow))).collect();
        let mut known = BTreeMap::new();
        let own = flows.iter().map(|flow| (flow, None));
        for (flow, of) in own.chain(requests.iter().map(|(id, flow)| (flow, Some(*id)))) {
            let delays_data = of.is_some() || flow.connection_of.is_some();
            let line = delays_ns.partition_point(|delay| *delay < flow.base_delay_ns) as u32;
            let merged_mss_bytes = (flow.gro && flow.transport == Transport::Tcp)
                .then(|| mss_of(flow.mtu_bytes) as u16);
            let next = routes.routes.len() as u32;
            let place = match flow.nic_rate_bps {
                Some(_) => next,
                None => *known
                    .entry((
                        (&flow.path, &flow.reverse_path, &flow.routes),
                        line,
                        flow.dscp,
                        delays_data,
                        merged_mss_bytes,
                    ))
                    .or_insert(next),
            };
            if place == next {
                let change =
                    |change: &RouteSpec| RouteChange { route: next, change: change.clone() };
                routes.changes.extend(flow.routes.iter().map(change));
                routes.routes.push(FlowRoute {
                    path: LinkSequence::new(flow.paths()),
                    reverse_path: LinkSequence::new(flow.reverse_paths()),
                    line,
                    delays_data,
                    nic: flow
                        .nic_rate_bps
                        .map(|bps| Box::new(NetworkCard::new(Rate::from_bps(bps)))),
                    dscp: flow.dscp.unwrap_or(0),
                    merged_mss_bytes,
                });
            }
            match of {
                None => routes.places.push(place),
                Some(browser) => {
                    routes.requests.insert(browser, place);
                }
            }
            routes.merge |= merged_mss_bytes.is_some();
        }
        routes.changes.sort_by_key(|it| std::cmp::Reverse((it.change.at_ns, it.route)));
        routes
    }

    /// Returns the time of the next change of a route.
    pub fn next_change(&self) -> Option<Time> {
        self.changes.last().map(|it| Time::from_ns(it.change.at_ns))
    }

    /// Makes the changes that are due at `now`.
    pub fn change(&mut self, now: Time) {
        while self.next_change().is_some_and(|at| at <= now)
            && let Some(RouteChange { route, change }) = self.changes.pop()
        {
            let route = &mut self.routes[route as usize];
            route.path.change(&change.path);
            route.reverse_path.change(&change.reverse_path);
        }
    }

    #[inline]
    pub fn of(&self, connection: ConnectionId) -> &FlowRoute {
        &self.routes[self.places[connection.index()] as usize]
    }

    #[inline]
    pub fn of_mut(&mut self, connection: ConnectionId) -> &mut FlowRoute {
        &mut self.routes[self.places[connection.index()] as usize]
    }

    /// Assigns the route of `flow` to the next connection, and returns that connection.
    pub fn admit(&mut self, flow: FlowId) -> ConnectionId {
        let connection = ConnectionId::at(self.places.len());
        self.places.push(self.places[flow.index()]);
        connection
    }

    /// Assigns the route of the requests of `flow` to the next connection, and returns that
    /// connection.
    pub fn admit_requests(&mut self, flow: FlowId) -> ConnectionId {
        let connection = ConnectionId::at(self.places.len());
        self.places.push(self.requests[&flow]);
        connection
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(numbers: &[u32]) -> Vec<LinkId> {
        numbers.iter().copied().map(LinkId).collect()
    }

    /// The links from the first one, or from `link`, to the end.
    fn way(sequence: &LinkSequence, from: Option<u32>) -> Vec<u32> {
        let mut at = match from {
            None => sequence.first(),
            Some(link) => {
                let position = sequence.links().position(|it| it == LinkId(link)).unwrap_or(0);
                Some((position as u8, LinkId(link)))
            }
        };
        let mut way = Vec::new();
        while let Some((position, link)) = at {
            way.push(link.0);
            at = sequence.after(position);
        }
        way
    }

    #[test]
    fn packets_on_a_former_route_reach_its_end_or_the_new_route() {
        let paths = [links(&[0, 1, 2]), links(&[3, 2, 4]), links(&[])];
        let mut sequence = LinkSequence::new(paths.iter().map(Vec::as_slice));
        assert_eq!(way(&sequence, None), [0, 1, 2]);
        sequence.change(&paths[1]);
        assert_eq!(way(&sequence, None), [3, 2, 4]);
        assert_eq!(way(&sequence, Some(0)), [0, 1, 2, 4], "link 2 belongs to the new route");
        sequence.change(&paths[2]);
        assert!(way(&sequence, None).is_empty());
        assert_eq!(way(&sequence, Some(3)), [3, 2, 4]);
        sequence.change(&paths[0]);
        assert_eq!(way(&sequence, None), [0, 1, 2]);
        assert_eq!(way(&sequence, Some(3)), [3, 2], "the first route ends with link 2");
    }

    #[test]
    fn a_fixed_path_may_cross_a_link_twice() {
        let path = links(&[0, 1, 0]);
        let sequence = LinkSequence::new(std::iter::once(path.as_slice()));
        assert_eq!(way(&sequence, None), [0, 1, 0]);
    }
}
