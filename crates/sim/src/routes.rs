//! Routes of flows through the network: links, delay line and NIC.

use std::collections::{BTreeMap, VecDeque};

use jostle_run_spec::{FlowSpec, Transport};
use jostle_units::{ConnectionId, FlowId, LinkId, Rate, mss_of};

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

/// The links of one direction, in order. The first link is stored inline to avoid a cache miss,
/// because most paths have one link and the routes of ten thousand flows do not fit into the cache.
pub(crate) struct LinkSequence {
    len: u8,
    first: LinkId,
    pub links: Box<[LinkId]>,
}

impl LinkSequence {
    fn new(links: &[LinkId]) -> Self {
        Self {
            len: links.len() as u8,
            first: links.first().copied().unwrap_or(LinkId(0)),
            links: links.into(),
        }
    }

    #[inline]
    pub fn get(&self, hop: u8) -> Option<LinkId> {
        match hop {
            _ if hop >= self.len => None,
            0 => Some(self.first),
            _ => Some(self.links[usize::from(hop)]),
        }
    }
}

/// Route of a flow in both directions.
pub(crate) struct FlowRoute {
    pub path: LinkSequence,
    pub reverse_path: LinkSequence,
    /// The delay line after the last link of `reverse_path`.
    pub line: u32,
    pub nic: Option<Box<NetworkCard>>,
    /// Differentiated services codepoint of its packets.
    pub dscp: u8,
    /// MSS, if the receiver's NIC merges packets that arrive at the same time (GRO).
    pub merged_mss_bytes: Option<u16>,
}

/// Routes of all flows and connections. Connections use the route of their flow. Flows with equal
/// routes share one to save cache, except flows with a NIC.
pub(crate) struct Routes {
    routes: Vec<FlowRoute>,
    /// Indices into `routes`, by connection.
    places: Vec<u32>,
    /// Whether any receiver uses GRO.
    pub merge: bool,
}

impl Routes {
    pub fn new(flows: &[FlowSpec], delays_ns: &[u64]) -> Self {
        let places = Vec::with_capacity(flows.len());
        let mut routes = Self { routes: Vec::new(), places, merge: false };
        let mut known = BTreeMap::new();
        for flow in flows {
            let line = delays_ns.partition_point(|delay| *delay < flow.base_delay_ns) as u32;
            let merged_mss_bytes = (flow.gro && flow.transport == Transport::Tcp)
                .then(|| mss_of(flow.mtu_bytes) as u16);
            let next = routes.routes.len() as u32;
            let place = match flow.nic_rate_bps {
                Some(_) => next,
                None => *known
                    .entry((&flow.path, &flow.reverse_path, line, flow.dscp, merged_mss_bytes))
                    .or_insert(next),
            };
            if place == next {
                routes.routes.push(FlowRoute {
                    path: LinkSequence::new(&flow.path),
                    reverse_path: LinkSequence::new(&flow.reverse_path),
                    line,
                    nic: flow
                        .nic_rate_bps
                        .map(|bps| Box::new(NetworkCard::new(Rate::from_bps(bps)))),
                    dscp: flow.dscp.unwrap_or(0),
                    merged_mss_bytes,
                });
            }
            routes.places.push(place);
            routes.merge |= merged_mss_bytes.is_some();
        }
        routes
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
}
