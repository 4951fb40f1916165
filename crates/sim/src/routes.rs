//! The ways of flows through the network: which links, which delay line, whether by a card.

use std::collections::{BTreeMap, VecDeque};

use jostle_record::{FlowSpec, Transport};
use jostle_units::{Rate, mss_of};

use crate::packet::SimPacket;

/// A sender's network card: packets leave it one after the other.
#[derive(Debug)]
pub(crate) struct Card {
    pub rate: Rate,
    pub queue: VecDeque<SimPacket>,
    pub queued_bytes: u64,
}

impl Card {
    fn new(rate: Rate) -> Self {
        Self { rate, queue: VecDeque::new(), queued_bytes: 0 }
    }
}

/// The links of one direction, in order. Most ways have one link, which is kept at hand: ten
/// thousand flows do not fit into the cache, and every look elsewhere counts.
pub(crate) struct Way {
    len: u8,
    first: u32,
    pub links: Box<[u32]>,
}

impl Way {
    fn new(links: &[u32]) -> Self {
        Self {
            len: links.len() as u8,
            first: links.first().copied().unwrap_or(0),
            links: links.into(),
        }
    }

    #[inline]
    pub fn get(&self, hop: u8) -> Option<u32> {
        match hop {
            _ if hop >= self.len => None,
            0 => Some(self.first),
            _ => Some(self.links[usize::from(hop)]),
        }
    }
}

/// A flow's way.
pub(crate) struct Route {
    pub path: Way,
    pub reverse_path: Way,
    /// The delay line behind the last link of `reverse_path`.
    pub line: u32,
    pub card: Option<Box<Card>>,
    /// The receiver's card puts together what arrives at the same moment: payload of a full-sized
    /// segment.
    pub merged_mss_bytes: Option<u16>,
}

/// The ways of all flows, and of their connections where a flow is many: those have its way. Flows that
/// go the same way share it, for the ways of ten thousand flows do not fit into a cache. One with a
/// card has a way of its own.
pub(crate) struct Routes {
    routes: Vec<Route>,
    /// Positions in `routes`, first those of flows.
    places: Vec<u32>,
    /// Some receiver's card puts packets together.
    pub merge: bool,
}

impl Routes {
    pub fn new(flows: &[FlowSpec], delays_ns: &[u64]) -> Self {
        let places = Vec::with_capacity(flows.len());
        let mut routes = Self { routes: Vec::new(), places, merge: false };
        let mut known = BTreeMap::new();
        for flow in flows {
            let line = delays_ns.partition_point(|delay| *delay < flow.access_delay_ns) as u32;
            let merged_mss_bytes = (flow.gro && flow.transport == Transport::Tcp)
                .then(|| mss_of(flow.mtu_bytes) as u16);
            let next = routes.routes.len() as u32;
            let place = match flow.nic_rate_bps {
                Some(_) => next,
                None => *known
                    .entry((&flow.path, &flow.reverse_path, line, merged_mss_bytes))
                    .or_insert(next),
            };
            if place == next {
                routes.routes.push(Route {
                    path: Way::new(&flow.path),
                    reverse_path: Way::new(&flow.reverse_path),
                    line,
                    card: flow.nic_rate_bps.map(|bps| Box::new(Card::new(Rate::from_bps(bps)))),
                    merged_mss_bytes,
                });
            }
            routes.places.push(place);
            routes.merge |= merged_mss_bytes.is_some();
        }
        routes
    }

    #[inline]
    pub fn of(&self, flow: u32) -> &Route {
        &self.routes[self.places[flow as usize] as usize]
    }

    #[inline]
    pub fn of_mut(&mut self, flow: u32) -> &mut Route {
        &mut self.routes[self.places[flow as usize] as usize]
    }

    /// The next connection has the way of `flow`: its number.
    pub fn admit(&mut self, flow: u32) -> u32 {
        let connection = self.places.len() as u32;
        self.places.push(self.places[flow as usize]);
        connection
    }
}
